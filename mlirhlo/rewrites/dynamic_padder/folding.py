"""What takes many elements together: those that are not in use must have no part in it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import SSAValue

from mlirhlo.analysis.neutral import neutral_element
from mlirhlo.dialects.hlo.attributes.dimensions import WindowDimension
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConvolutionOp,
    DotOp,
    FftOp,
    ParameterOp,
    ReduceOp,
    ReduceWindowOp,
    SortOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.algsimp.common import splat_of
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation, called
from mlirhlo.rewrites.dynamic_padder.bounded import (
    Bounded,
    Scope,
    Sizes,
    Tree,
    handles,
    masked,
    merged,
    same_number,
    static,
)
from mlirhlo.rewrites.legalize.indexed_loops import S32, plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value


def _static(shape: Shape) -> Shape:
    """All arrays of a result with their bounds as sizes."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_static, shape.elements)))
    return static(shape) if isinstance(shape, ArrayShape) else shape


def _results(scope: Scope, made: Instruction, sizes: Sizes, count: int = 0) -> Tree:
    """The result, or the first `count` of several, of one size each."""
    if not isinstance(made.shape, TupleShape):
        return Bounded(scope.value(made.output), sizes)
    whole = scope.value(made.output)
    number = count or len(made.shape.elements)
    return tuple(Bounded(scope.graph.element(whole, k), sizes) for k in range(number))


# ---------------------------------------------------------------- batches


@handles("fft")
def transforms(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Arrays of a batch; None where a transformed dimension has a dynamic size."""
    assert isinstance(op, FftOp)
    return _batch(scope, op, operands, len(op.fft_length))


@handles("cholesky", "triangular-solve")
def matrices(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Matrices of a batch; None where they have a dynamic size."""
    return _batch(scope, op, operands, 2)


@handles("topk")
def largest(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Rows of a batch; None where they have a dynamic size."""
    return _batch(scope, op, operands, 1)


def _batch(scope: Scope, op: Instruction, operands: Sequence[Tree], rank: int) -> Tree | None:
    """Each problem of `rank` dimensions, the last ones, is solved on its own, those out of use too."""
    arrays = [scope.array(tree) for tree in operands]
    if any(size is not None for array in arrays for size in array.sizes[-rank:]):
        return None
    bounded = scope.again(op, [array.data for array in arrays], _static(op.shape))
    return _results(scope, bounded, merged(*arrays))


# ---------------------------------------------------------------- reduce


@handles("reduce")
def reduce(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Elements out of use become neutral; where none is known to be, a flag goes along with each element."""
    assert isinstance(op, ReduceOp)
    count = len(operands) // 2
    arrays = [scope.array(tree) for tree in operands[:count]]
    inits = [scope.array(tree).data for tree in operands[count:]]
    used = merged(*arrays)
    sizes = tuple(size for d, size in enumerate(used) if d not in op.dimensions)
    folded = [d for d in op.dimensions if used[d] is not None]
    data = [a.data for a in arrays]
    if not folded:
        return _results(scope, scope.again(op, [*data, *inits], _static(op.shape)), sizes)
    function = called(op, op.to_apply)
    neutral = neutral_element(function) if count == 1 else None
    if neutral is not None:
        begins = splat_of(inits[0].op.output) == neutral
        filled = masked(Bounded(data[0], used), folded, inits[0] if begins else neutral)
        return _results(scope, scope.again(op, [filled, *inits], _static(op.shape)), sizes)
    graph = scope.graph
    flags = graph.full(PRED, data[0].sizes, True)
    flags = masked(Bounded(flags, used), folded, False)
    shape = op.shape
    shapes = shape.elements if isinstance(shape, TupleShape) else (shape,)
    wanted = [s for s in map(_static, shapes) if isinstance(s, ArrayShape)]
    made = scope.again(
        op,
        [*data, flags, *inits, graph.scalar(PRED, True)],
        TupleShape((*wanted, plain(PRED, wanted[0].dimensions))),
        to_apply=_flagged(op, function, count),
    )
    found = _results(scope, made, sizes, count)
    return found if isinstance(shape, TupleShape) else found[0]  # type: ignore[index]


def _inlined(graph: Graph, function: ComputationOp, parameters: Sequence[Value]) -> SSAValue:
    """A copy of a function's instructions; its result."""
    values: dict[SSAValue, SSAValue] = {}
    for inner in function.instructions:
        if isinstance(inner, ParameterOp):
            values[inner.output] = parameters[inner.parameter_number].op.output
            continue
        copy = clone_instruction(inner, values)
        graph.write.emit(copy)
        values[inner.output] = copy.output
    return values[function.root.output]


def _flagged(op: Instruction, function: ComputationOp, count: int) -> SymbolRefAttr:
    """The function of flagged elements: where one of two is out of use, the other is the result."""
    graph, block = Graph.of(op)
    types = [p.shape for p in sorted(function.parameters, key=lambda p: p.parameter_number)]
    pairs: list[list[Value]] = []
    for side in (types[:count], types[count:]):
        pairs.append([graph.parameter(shape) for shape in (*side, ArrayShape(PRED, ()))])
    (*left, left_used), (*right, right_used) = pairs
    found = _inlined(graph, function, [*left, *right])
    owner = found.owner
    assert isinstance(owner, Instruction)
    both = Value(graph, owner)
    if count > 1 or isinstance(owner.shape, TupleShape):
        parts = [graph.element(both, k) for k in range(count)]
    else:
        parts = [both]
    chosen = [
        right_used.select(left_used.select(part, b), a)
        for part, a, b in zip(parts, left, right, strict=True)
    ]
    root = graph.tuple(*chosen, left_used | right_used)
    return add_computation(op, f"{function.computation_name}.of_used", block, root.op)


# ---------------------------------------------------------------- windows


def windowed(size: Value, part: WindowDimension) -> Value:
    """At how many places a window fits: `(padded - reach) / stride + 1`, or none."""
    reach = (part.size - 1) * part.window_dilation + 1
    dilated = size
    if part.base_dilation > 1:
        dilated = (size - 1).maximum(0) * part.base_dilation + size.minimum(1)
    padded = dilated + (part.padding_low + part.padding_high)
    return ((padded - reach + part.stride) / part.stride).maximum(0)


@handles("reduce-window")
def reduce_window(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Elements out of use become initial values, as padding is."""
    assert isinstance(op, ReduceWindowOp)
    count = len(operands) // 2
    arrays = [scope.array(tree) for tree in operands[:count]]
    inits = [scope.array(tree).data for tree in operands[count:]]
    used, parts = merged(*arrays), op.window.dimensions
    wide = [d for d, part in enumerate(parts) if part != WindowDimension()]
    data = [
        masked(Bounded(a.data, used), wide, init) for a, init in zip(arrays, inits, strict=True)
    ]
    sizes = tuple(
        size if size is None or d not in wide else windowed(size, parts[d])
        for d, size in enumerate(used)
    )
    return _results(scope, scope.again(op, [*data, *inits], _static(op.shape)), sizes)


@handles("convolution")
def convolution(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Elements out of use become zero, as padding is. Kernels of dynamic size stay."""
    assert isinstance(op, ConvolutionOp)
    labels = op.dim_labels
    if labels is None or len(operands) != 2 or not isinstance(op.shape, ArrayShape):
        return None
    x, w = (scope.array(tree) for tree in operands)
    fixed = (labels.kernel_output_feature_dimension, *labels.kernel_spatial_dimensions)
    if any(w.sizes[d] is not None for d in fixed):
        return None
    grouped = op.feature_group_count > 1 or op.batch_group_count > 1
    batch, feature = labels.input_batch_dimension, labels.input_feature_dimension
    if grouped and not (x.sizes[batch] is x.sizes[feature] is None):
        return None
    parts = () if op.window is None else op.window.dimensions
    shared = _of_both(x.sizes[feature], w.sizes[labels.kernel_input_feature_dimension])
    sizes: list[Value | None] = [None] * op.shape.rank
    sizes[labels.output_batch_dimension] = x.sizes[batch]
    spatial = labels.input_spatial_dimensions
    for dim, out, part in zip(spatial, labels.output_spatial_dimensions, parts, strict=True):
        size = x.sizes[dim]
        sizes[out] = None if size is None else windowed(size, part)
    inside = [shared if d == feature else size for d, size in enumerate(x.sizes)]
    left = masked(Bounded(x.data, tuple(inside)), (feature, *spatial), 0)
    deep = labels.kernel_input_feature_dimension
    of_kernel = [shared if d == deep else None for d in range(len(w.sizes))]
    right = masked(Bounded(w.data, tuple(of_kernel)), (deep,), 0)
    made = scope.again(op, [left, right], static(op.shape))
    return Bounded(scope.value(made.output), tuple(sizes))


def _of_both(first: Value | None, second: Value | None) -> Value | None:
    """How much two sides of a product have in use together."""
    if first is None or second is None:
        return first or second
    return first if same_number(first, second) else first.minimum(second)


@handles("dot")
def dot(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """What is summed over becomes zero where it is not in use, on both sides."""
    assert isinstance(op, DotOp)
    if len(operands) != 2 or not isinstance(op.shape, ArrayShape):
        return None
    sides = [scope.array(tree) for tree in operands]
    batch = (op.lhs_batch_dims, op.rhs_batch_dims)
    summed = (op.lhs_contracting_dims, op.rhs_contracting_dims)
    known = [list(side.sizes) for side in sides]
    for left, right in (*zip(*batch, strict=True), *zip(*summed, strict=True)):
        known[0][left] = known[1][right] = _of_both(known[0][left], known[1][right])
    data = [
        masked(Bounded(side.data, tuple(sizes)), dims, 0)
        for side, sizes, dims in zip(sides, known, summed, strict=True)
    ]
    sizes = [known[0][d] for d in batch[0]]
    for own, first, second in zip(known, batch, summed, strict=True):
        sizes += [size for d, size in enumerate(own) if d not in first and d not in second]
    made = scope.again(op, data, static(op.shape))
    return Bounded(scope.value(made.output), tuple(sizes))


# ---------------------------------------------------------------- sort


@handles("sort")
def sort(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Elements out of use come last: whether they are in use is one more key, before all others."""
    assert isinstance(op, SortOp)
    arrays, dim = [scope.array(tree) for tree in operands], op.dimensions[0]
    used = merged(*arrays)
    size = used[dim]
    data = [a.data for a in arrays]
    if size is None:
        return _results(scope, scope.again(op, data, _static(op.shape)), used)
    within = scope.graph.iota(S32, data[0].sizes, dim).compare("LT", size)
    shape = _static(op.shape)
    shapes = shape.elements if isinstance(shape, TupleShape) else (shape,)
    made = scope.again(
        op,
        [*data, within],
        TupleShape((*shapes, plain(PRED, data[0].sizes))),
        to_apply=_used_first(op, called(op, op.to_apply)),
    )
    found = _results(scope, made, used, len(shapes))
    return found if isinstance(op.shape, TupleShape) else found[0]  # type: ignore[index]


def _used_first(op: Instruction, function: ComputationOp) -> SymbolRefAttr:
    """The comparison where both are in use or neither is; else whether the left one is."""
    graph, block = Graph.of(op)
    ordered = sorted(function.parameters, key=lambda p: p.parameter_number)
    given = [graph.parameter(p.shape) for p in ordered]
    left, right = (graph.parameter(ArrayShape(PRED, ())) for _ in range(2))
    owner = _inlined(graph, function, given).owner
    assert isinstance(owner, Instruction)
    root = (left ^ right).select(left, Value(graph, owner))
    return add_computation(op, f"{function.computation_name}.used_first", block, root.op)
