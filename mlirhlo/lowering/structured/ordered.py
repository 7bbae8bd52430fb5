"""Instructions whose elements depend on their order along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PRED, S32
from mlirhlo.dialects.hlo.ops import (
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.reduction import ScanOp, SortOp, TopkOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import region_of
from mlirhlo.dialects.structured import ScanOp as StructuredScanOp
from mlirhlo.dialects.structured import SortOp as StructuredSortOp
from mlirhlo.dialects.structured import TopKOp, sizes_of
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import Body, applied, elementwise
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    logical,
    no_form,
    parts_of,
    static_shape,
    tensor,
)


@converts("sort")
def convert_sort(kernel: Kernel, op: SortOp) -> Sequence[SSAValue]:
    """A sort in the memory order of the first operand."""
    shapes = [static_shape(shape) for shape in op.input_shapes]
    first = shapes[0]
    elements = [shape.element_type for shape in shapes]
    pairs = [element for element in elements for _ in range(2)]
    comparator = applied(kernel.computations[op.to_apply], pairs, kernel.computations, [PRED])
    arrays = [kernel.as_laid_out(value, first) for value in op.inputs]
    dim = physical_order(first).index(op.dimensions[0])
    results = kernel.add(StructuredSortOp(arrays, dim, region_of(comparator), stable=op.is_stable))
    return [
        kernel.read(value, first, logical(part), physical_dimensions(part))
        for value, part in zip(results, parts_of(op.shape), strict=True)
    ]


@converts("topk")
def convert_topk(kernel: Kernel, op: TopkOp) -> Sequence[SSAValue]:
    """Rows are those of the last logical dimension."""
    array = kernel.row_major(op.operand)
    k = min(op.k, sizes_of(array)[-1])
    results = kernel.add(TopKOp(array, k, largest=op.largest))
    return [
        kernel.laid_out(value, ArrayShape(element, part.dimensions, (), part.layout))
        for value, element, part in zip(
            results, (element_of(array), S32), parts_of(op.shape), strict=True
        )
    ]


@converts("scan")
def convert_scan(kernel: Kernel, op: ScanOp) -> Sequence[SSAValue]:
    """A scan, where the computation works element by element on slices and carries."""
    count = len(op.inputs) - op.num_carries
    shapes = [static_shape(shape) for shape in op.input_shapes]
    if not count:
        raise no_form(op, "it has no inputs")
    parts = parts_of(op.shape)
    arrays = [kernel.row_major(value) for value in op.inputs[:count]]
    dim = op.dimensions[0]
    rest = tuple(size for d, size in enumerate(shapes[0].dimensions) if d != dim)
    states = [kernel.row_major(value) for value in op.inputs[count:]]
    if any(sizes_of(state) != rest for state in states):
        raise no_form(op, "a carry is not of the shape of a slice")
    body = Body([shape.element_type for shape in shapes])
    results = _elements(kernel, op, op.to_apply, body.arguments, body, rest)
    scalars = [
        body.convert(value, part.element_type) for value, part in zip(results, parts, strict=True)
    ]
    types = [tensor(part.element_type, part.dimensions) for part in parts]
    # An output that is the next carry: then parts of a line may be folded apart.
    is_fold = op.is_associative and scalars[:count] == scalars[count:]
    scan = StructuredScanOp(
        arrays,
        states,
        dim,
        types,
        region_of(body.finish(scalars)),
        reverse=op.is_reverse,
        associative=is_fold,
    )
    return [
        kernel.laid_out(value, part) for value, part in zip(kernel.add(scan), parts, strict=True)
    ]


def _elements(
    kernel: Kernel,
    op: ScanOp,
    name: str,
    arguments: Sequence[SSAValue],
    body: Body,
    sizes: tuple[int, ...],
) -> Sequence[SSAValue]:
    """The elements of a computation's results on arrays of `sizes`, of one element of each argument."""
    computation = kernel.computations[name]
    values: dict[SSAValue, Sequence[SSAValue]] = {}
    for inner in computation.instructions:
        operands: Sequence[SSAValue] = [values[value][0] for value in inner.inputs]
        if isinstance(inner, ParameterOp):
            operands = [arguments[inner.parameter_number]]
        elif isinstance(inner, GetTupleElementOp):
            operands = [values[inner.operand][inner.index]]
        elif isinstance(inner, FusionOp):
            operands = _elements(kernel, op, inner.calls, operands, body, sizes)
        elif not isinstance(inner, TupleOp):
            operands = [_element(op, inner, body, operands, sizes)]
        values[inner.output] = operands
    return values[computation.root.output]


def _element(
    op: ScanOp,
    inner: Instruction,
    body: Body,
    operands: Sequence[SSAValue],
    sizes: tuple[int, ...],
) -> SSAValue:
    shape = inner.shape
    if isinstance(shape, TupleShape) or cast(ArrayShape, shape).dimensions not in ((), sizes):
        raise no_form(op, f"`{inner.opcode.name}` in it does not work element by element")
    if isinstance(inner, ConstantOp):
        literal = inner.literal
        if literal is not None and not cast(ArrayShape, literal.shape).dimensions:
            return body.literal(literal)
    elif inner.opcode.elementwise:
        return elementwise(body, inner, operands)
    elif inner.opcode.name == "broadcast":
        if not cast(ArrayShape, shape_of(inner.inputs[0].type)).dimensions:
            return operands[0]
    raise no_form(op, f"`{inner.opcode.name}` in it does not work element by element")
