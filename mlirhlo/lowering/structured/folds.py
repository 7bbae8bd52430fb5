"""Instructions that fold: reductions, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.element_types import F32, PRED, S64, PrimitiveType
from mlirhlo.dialects.hlo.ops import ComputationOp, ConstantOp
from mlirhlo.dialects.hlo.ops.reduction import ReduceOp, ReduceWindowOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.quick import region_of
from mlirhlo.dialects.structured import AssembleOp, FoldOp, ScanOp, sizes_of
from mlirhlo.dialects.structured.index_maps import reversed_index, simplified_map
from mlirhlo.importing import LATE
from mlirhlo.interp.reducers import Reducer, identity_element
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import Body, applied, passing_body
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    in_memory_order,
    logical,
    parts_of,
    static_shape,
    tensor,
    tensor_of,
)

with LATE:
    from mlirhlo.lowering import reducer_samples


def _inits(
    kernel: Kernel, values: Sequence[SSAValue], elements: Sequence[PrimitiveType]
) -> list[SSAValue]:
    return [
        kernel.as_type(kernel.array(value), element)
        for value, element in zip(values, elements, strict=True)
    ]


def _combiner(kernel: Kernel, name: str, elements: Sequence[PrimitiveType]) -> Block:
    computation = kernel.computations[name]
    if elements[0] is not _parameter_type(computation):
        body = Body([elements[0]] * 2)
        total = body.emit(computation.root.opcode.name, body.arguments, elements[0])
        return body.finish([total])
    return applied(computation, [*elements, *elements], kernel.computations, elements)


def _parameter_type(computation: ComputationOp) -> PrimitiveType:
    return parts_of(computation.parameters[0].shape)[0].element_type


def _work_types(
    kernel: Kernel, name: str, elements: Sequence[PrimitiveType]
) -> Sequence[PrimitiveType]:
    """The types in which elements are folded: sums and products of narrow floats in f32, rounded once."""
    (element, *more), computation = elements, kernel.computations[name]
    is_narrow = element.is_float and element.bits < 32 and not more
    is_sum = computation.root.opcode.name in ("add", "multiply")
    if is_narrow and is_sum and identity_of(computation, element) is not None:
        return [F32]
    return elements


def _converting_body(elements: Sequence[PrimitiveType], work: Sequence[PrimitiveType]) -> Block:
    body = Body(elements)
    return body.finish(
        [body.convert(value, type_) for value, type_ in zip(body.arguments, work, strict=True)]
    )


@converts("reduce")
def convert_reduce(kernel: Kernel, op: ReduceOp) -> Sequence[SSAValue]:
    """A fold of the reduced dimensions, in their logical order."""
    count = len(op.inputs) // 2
    shapes = [static_shape(shape) for shape in op.input_shapes[:count]]
    first, result = shapes[0], parts_of(op.shape)[0]
    elements = [shape.element_type for shape in shapes]
    work = _work_types(kernel, op.to_apply, elements)
    folded = sorted(op.dimensions)
    indices = iter(logical(result))
    at: list[AffineExpr] = [
        AffineExpr.dimension(result.rank + folded.index(dim)) if dim in folded else next(indices)
        for dim in range(first.rank)
    ]
    sizes = [first.dimensions[dim] for dim in folded]
    space = (*physical_dimensions(result), *sizes)
    fold = FoldOp(
        [kernel.array(value) for value in op.inputs[:count]],
        [
            simplified_map(AffineMap(len(space), 0, tuple(in_memory_order(shape, at))), space)
            for shape in shapes
        ],
        _inits(kernel, op.inputs[count:], work),
        sizes,
        [tensor_of(result, element) for element in work],
        region_of(_converting_body(elements, work)),
        region_of(_combiner(kernel, op.to_apply, work)),
    )
    return _in_order_of_parts(kernel, kernel.add(fold), result, parts_of(op.shape))


def _in_order_of_parts(
    kernel: Kernel, values: Sequence[SSAValue], have: ArrayShape, parts: Sequence[ArrayShape]
) -> list[SSAValue]:
    return [
        kernel.read(value, have, logical(part), physical_dimensions(part))
        for value, part in zip(values, parts, strict=True)
    ]


# ------------------------------------------------------------------ windows


def window_indices(
    window: Window, result: Sequence[AffineExpr], taps: Sequence[AffineExpr]
) -> list[AffineExpr]:
    """Indices of a padded and dilated array that windows at `result` read at positions `taps`."""
    return [
        at * d.stride
        + (reversed_index(tap, d.size) if d.window_reversal else tap) * d.window_dilation
        for d, at, tap in zip(window.dimensions, result, taps, strict=True)
    ]


def is_padded(window: Window) -> bool:
    """Whether windows reach beyond the elements of the array."""
    return any(d.padding_low or d.padding_high or d.base_dilation > 1 for d in window.dimensions)


def padded(
    kernel: Kernel, value: SSAValue, rows: Sequence[WindowDimension], fill: SSAValue
) -> SSAValue:
    """An array with padding and gaps, a row a dimension."""
    sizes = [
        max(0, d.padding_low + d.padding_high + max(size - 1, 0) * d.base_dilation + min(size, 1))
        for d, size in zip(rows, sizes_of(value), strict=True)
    ]
    offsets, strides = [d.padding_low for d in rows], [d.base_dilation for d in rows]
    type_ = tensor(element_of(value), sizes)
    return kernel.add(AssembleOp([value], [offsets], type_, strides=[strides], fill=fill))[0]


@converts("reduce-window")
def convert_reduce_window(kernel: Kernel, op: ReduceWindowOp) -> Sequence[SSAValue]:
    """A scan where windows reach back to the first element, else a fold of the positions in each window.

    Padding takes no part: it holds the identity of a combiner that has one, else positions are guarded.
    """
    count = len(op.inputs) // 2
    shapes = [static_shape(shape) for shape in op.input_shapes[:count]]
    first, parts = shapes[0], parts_of(op.shape)
    result, window = parts[0], op.window
    elements = [shape.element_type for shape in shapes]
    along = window.running_dimension(first.dimensions)
    if along is not None and along[1] and not _folds_backwards(kernel, op, elements):
        along = None
    arrays = [kernel.as_laid_out(value, first) for value in op.inputs[:count]]
    work = _work_types(kernel, op.to_apply, elements)
    inits = _inits(kernel, op.inputs[count:], work)
    combiner = _combiner(kernel, op.to_apply, work)
    if along is not None and first.element_count:
        dim, is_reverse = along
        arrays = [kernel.as_type(a, type_) for a, type_ in zip(arrays, work, strict=True)]
        results = _scan(
            kernel, arrays, inits, physical_order(first).index(dim), combiner, reverse=is_reverse
        )
        return _in_order_of_parts(kernel, results, first, parts)
    computation = kernel.computations[op.to_apply]
    identities = [identity_of(computation, element) for element in elements]
    is_guarded = is_padded(window) and (count > 1 or identities[0] is None)
    if is_padded(window):
        rows = in_memory_order(first, window.dimensions)
        arrays = [
            padded(kernel, array, rows, kernel.scalar(element, 0 if is_guarded else number))
            for array, element, number in zip(arrays, elements, identities, strict=True)
        ]
    sizes = [d.size for d in window.dimensions]
    space = (*physical_dimensions(result), *sizes)
    taps = [AffineExpr.dimension(result.rank + dim) for dim in range(len(sizes))]
    at = in_memory_order(first, window_indices(window, logical(result), taps))
    map_ = simplified_map(AffineMap(len(space), 0, tuple(at)), space)
    body = _converting_body(elements, work)
    if is_guarded:
        body = _guarded_body(elements, first, result, window)
    fold = FoldOp(
        arrays,
        [map_] * count,
        inits,
        sizes,
        [tensor_of(result, element) for element in work],
        region_of(body),
        region_of(combiner),
        guarded=is_guarded,
    )
    return _in_order_of_parts(kernel, kernel.add(fold), result, parts)


def _guarded_body(
    elements: Sequence[PrimitiveType], operand: ArrayShape, result: ArrayShape, window: Window
) -> Block:
    """Its arguments, and whether the index read is that of an element."""
    body = Body(elements)
    inside: SSAValue | None = None
    for dim, d in enumerate(window.dimensions):
        out = body.convert(body.index(physical_order(result).index(dim), wide=True), S64)
        tap = body.index(result.rank + dim, wide=True)
        if d.window_reversal:
            tap = body.emit("subtract", [body.constant(S64, d.size - 1), tap], S64)
        start = body.emit("multiply", [out, body.constant(S64, d.stride)], S64)
        reach = body.emit("multiply", [tap, body.constant(S64, d.window_dilation)], S64)
        at = body.emit("add", [start, reach], S64)
        at = body.emit("subtract", [at, body.constant(S64, d.padding_low)], S64)
        last = (operand.dimensions[dim] - 1) * d.base_dilation
        checks = [
            body.compare("GE", at, body.constant(S64, 0)),
            body.compare("LE", at, body.constant(S64, last)),
        ]
        if d.base_dilation > 1:
            gap = body.emit("remainder", [at, body.constant(S64, d.base_dilation)], S64)
            checks.append(body.compare("EQ", gap, body.constant(S64, 0)))
        for check in checks:
            inside = check if inside is None else body.emit("and", [inside, check], PRED)
    assert inside is not None
    return body.finish([*body.arguments, inside])


def identity_of(computation: ComputationOp, element: PrimitiveType) -> Any:
    """The number that leaves the other operand of a reducer as it is; None when none is known."""
    import numpy as np

    parameters, root = computation.parameters, computation.root
    if len(parameters) != 2 or {p.output for p in parameters} != set(root.inputs):
        return None
    reducer = Reducer(computation.computation_name, element, root.opcode.name)
    if reducer.ufunc is None or len(root.inputs) != 2:
        return None
    return np.asarray(identity_element(reducer))


def _folds_backwards(kernel: Kernel, op: ReduceWindowOp, elements: Sequence[PrimitiveType]) -> bool:
    """Whether elements may be folded from the last one on, from initial values behind them."""
    computation = kernel.computations[op.to_apply]
    if identity_of(computation, elements[0]) is not None:
        return True
    owners = [v.owner for v in op.inputs[len(elements) :]]
    literals = [o.literal for o in owners if isinstance(o, ConstantOp) and o.literal is not None]
    folded = reducer_samples.fold_of(cast(ModuleOp, computation.parent_op()), computation)
    if len(literals) < len(owners) or folded is None:
        return False
    starts = [x.array.reshape(()) for x in literals]
    is_associative = reducer_samples.is_associative_on_samples(folded, elements)
    return is_associative and reducer_samples.are_identities_on_samples(folded, elements, starts)


def _scan(
    kernel: Kernel,
    arrays: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    dim: int,
    combiner: Block,
    *,
    reverse: bool,
) -> Sequence[SSAValue]:
    """Cumulative folds from scalars."""
    elements = [element_of(array) for array in arrays]
    sizes = sizes_of(arrays[0])
    rest = (*sizes[:dim], *sizes[dim + 1 :])
    states = [
        kernel.map(tensor(element, rest), [init], [[]], passing_body([element]))
        for init, element in zip(inits, elements, strict=True)
    ]
    body = Body([*elements, *elements])
    count = len(elements)
    xs, state = body.arguments[:count], body.arguments[count:]
    results = body.inline(combiner, [*xs, *state] if reverse else [*state, *xs])
    types = [*(array.type for array in arrays), *(state.type for state in states)]
    scan = ScanOp(
        arrays,
        states,
        dim,
        types,
        region_of(body.finish([*results, *results])),
        reverse=reverse,
        associative=True,
    )
    return kernel.add(scan)[:count]
