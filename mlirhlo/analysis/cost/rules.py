"""What opcodes cost beyond the defaults, one function a family."""

from __future__ import annotations

from math import gcd, inf, nan, prod
from typing import cast

from mlirhlo.analysis.cost.counts import (
    BYTES,
    FLOPS,
    SECONDS,
    TRANSCENDENTALS,
    Counts,
    operand_bytes,
    operand_utilization,
    result_bytes,
)
from mlirhlo.analysis.cost.visitor import (
    Visitor,
    elements_of,
    half,
    log2_ceiling,
    per_application,
    rule,
    size_bytes,
)
from mlirhlo.dialects.hlo.attributes.dimensions import WindowDimension
from mlirhlo.dialects.hlo.ops import (
    ConditionalOp,
    ConvolutionOp,
    CustomCallOp,
    DotOp,
    FftOp,
    RaggedDotOp,
    ReduceWindowOp,
    ScaledDotOp,
    SelectAndScatterOp,
    TransposeOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout, leaves

_FMA = 2
"""Operations of a fused multiply-add."""


def _elements(shape: Shape) -> int:
    """Elements of an array, or of the first array of a tuple."""
    if isinstance(shape, TupleShape):
        return _elements(shape.elements[0]) if shape.elements else 0
    return elements_of(shape) if isinstance(shape, ArrayShape) else 0


def _ratio(part: int, whole: int) -> float:
    """As floats divide: by 0 too."""
    return part / whole if whole else (inf if part else nan)


def _all_elements(shape: Shape) -> int:
    return sum(_elements(leaf) for _, leaf in leaves(shape))


@rule(
    "parameter", "constant", "get-tuple-element", "after-all", "add-dependency", "domain", "bitcast"
)
def _free(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """Nothing is computed or moved."""
    del visitor
    counts.set(BYTES, 0)
    counts.set(result_bytes(), 0)
    for number in range(len(op.inputs)):
        counts.set(operand_bytes(number), 0)


@rule("transpose")
def _transpose(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """Nothing where the layouts make it a bitcast."""
    before, after = (cast(ArrayShape, s) for s in (op.input_shapes[0], op.shape))
    orders = [(s.layout or default_layout(s.rank)).minor_to_major for s in (before, after)]
    dimensions = cast(TransposeOp, op).dimensions
    if tuple(dimensions[d] for d in orders[1]) == tuple(orders[0]):
        _free(visitor, op, counts)


@rule("tuple")
def _tuple(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    counts.set(BYTES, size_bytes(op.shape))
    counts.set(result_bytes(), size_bytes(op.shape))
    for number in range(len(op.inputs)):
        counts.set(operand_bytes(number), 0)


@rule("slice", "dynamic-slice", "gather")
def _part(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """A part of the operand is read and written; indices are read."""
    del visitor
    size = size_bytes(op.shape)
    indices = size_bytes(op.input_shapes[1]) if len(op.inputs) > 1 else 0
    counts.set(BYTES, 2 * size + indices)
    counts.set(result_bytes(), size)
    counts.set(operand_bytes(0), size)
    if indices:
        counts.set(operand_bytes(1), indices)
    counts.set(operand_utilization(0), _ratio(_elements(op.shape), _elements(op.input_shapes[0])))


@rule("dynamic-update-slice")
def _update(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """The update is read and written; the rest is there already."""
    del visitor
    update = size_bytes(op.input_shapes[1])
    index = size_bytes(op.input_shapes[2]) if len(op.inputs) > 2 else 0
    counts.set(BYTES, 2 * update + index)
    counts.set(result_bytes(), update)
    counts.set(operand_bytes(0), 0)
    whole = _elements(op.shape)
    counts.set(operand_utilization(0), _ratio(whole - _elements(op.input_shapes[1]), whole))


@rule("scatter")
def _scatter(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """Updates are read, and what they meet is read and written."""
    arrays = (len(op.inputs) - 1) // 2
    updates = op.input_shapes[arrays + 1 :]
    total = 0
    for number, shape in enumerate(updates):
        size = size_bytes(shape)
        counts.set(operand_bytes(number), size)
        counts.set(operand_bytes(arrays + 1 + number), size)
        total += size
    indices = size_bytes(op.input_shapes[arrays])
    counts.set(operand_bytes(arrays), indices)
    counts.set(BYTES, 3 * total + indices)
    counts.set(result_bytes(), total)
    (callee,) = op.called_computations
    per_application(visitor.called(callee), _elements(updates[0]), counts)


@rule("broadcast")
def _broadcast(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    if visitor.options.count_multiple_input_accesses:
        elements = _elements(op.shape)
        counts.set(operand_bytes(0), elements)
        counts.set(operand_utilization(0), elements / max(_elements(op.input_shapes[0]), 1))


@rule("dot", "scaled-dot")
def _dot(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    lhs = cast(ArrayShape, op.input_shapes[0])
    width = prod(lhs.dimensions[d] for d in cast("DotOp | ScaledDotOp", op).lhs_contracting_dims)
    counts.set(FLOPS, _FMA * _elements(op.shape) * width)


@rule("ragged-dot")
def _ragged_dot(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """A dot without the dimensions of groups."""
    del visitor
    dot = cast(RaggedDotOp, op)
    lhs, result = cast(ArrayShape, op.input_shapes[0]), cast(ArrayShape, op.shape)
    width = prod(lhs.dimensions[d] for d in dot.lhs_contracting_dims)
    left = prod(result.dimensions[len(dot.rhs_group_dims) :])
    counts.set(FLOPS, _FMA * left * width)


@rule("convolution")
def _convolution(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    lhs, rhs = (cast(ArrayShape, s) for s in op.input_shapes[:2])
    flops = convolution_flops(lhs, rhs, cast(ArrayShape, op.shape), cast(ConvolutionOp, op))
    counts.set(FLOPS, flops)


def convolution_flops(
    lhs: ArrayShape, rhs: ArrayShape, result: ArrayShape, convolution: ConvolutionOp | CustomCallOp
) -> int:
    """Products with elements of the input that are there; padding and dilation give none.

    `convolution` says labels, window and groups: the instruction, or the call of a library for it.
    """
    labels, window = convolution.dim_labels, convolution.window
    assert labels is not None
    positions = 1
    for at, dim in enumerate(window.dimensions if window is not None else ()):
        positions *= _positions(
            dim,
            rhs.dimensions[labels.kernel_spatial_dimensions[at]],
            result.dimensions[labels.output_spatial_dimensions[at]],
            lhs.dimensions[labels.input_spatial_dimensions[at]],
        )
    features = lhs.dimensions[labels.input_feature_dimension] // convolution.feature_group_count
    batch = lhs.dimensions[labels.input_batch_dimension] // convolution.batch_group_count
    outputs = result.dimensions[labels.output_feature_dimension]
    return _FMA * features * outputs * batch * positions


def _positions(dim: WindowDimension, kernel: int, output: int, size: int) -> int:
    """Pairs of a place in the kernel and one in the output that meet an element of the input."""
    if output <= 0 or size <= 0:
        return 0
    step = gcd(dim.stride, dim.base_dilation)
    period = dim.base_dilation // step
    total = 0
    for k in range(kernel):
        start = k * dim.window_dilation - dim.padding_low
        if start % step:
            continue
        # Output o meets the dilated input at o * stride + start.
        first = max(0, -(start // dim.stride))
        last = min(output - 1, (size * dim.base_dilation - 1 - start) // dim.stride)
        for o in range(first, min(first + period, last + 1)):
            if (o * dim.stride + start) % dim.base_dilation == 0:
                total += (last - o) // period + 1
                break
    return total


@rule("map")
def _map(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    (callee,) = op.called_computations
    per_application(visitor.called(callee), _elements(op.shape), counts)


@rule("reduce")
def _reduce(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    (callee,) = op.called_computations
    times = _elements(op.input_shapes[0]) - _elements(op.shape)
    per_application(visitor.called(callee), times, counts)


@rule("reduce-window")
def _reduce_window(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """A window that sees all of one dimension from everywhere is a reduce, then a broadcast."""
    dims = cast(ReduceWindowOp, op).window.dimensions
    size = prod(d.size for d in dims)
    outputs = _elements(op.shape)
    times = (size - 1) * outputs
    wide = [d for d in dims if d.size != 1]
    padded = [d for d in dims if d.padding_low or d.padding_high]
    if len(wide) == 1 and len(padded) == 1 and isinstance(op.shape, ArrayShape):
        at = next(i for i, d in enumerate(dims) if d.size != 1)
        d = dims[at]
        low = d.padding_low
        if low and low == d.padding_high and d.size == 2 * low + 1:
            span = op.shape.dimensions[at]
            if low == span - 1:
                size = span
                times = outputs // span + span - 1
    if visitor.options.count_multiple_input_accesses:
        first = cast(ArrayShape, op.input_shapes[0])
        counts.set(operand_utilization(0), outputs * size / max(_elements(first), 1))
        counts.set(operand_bytes(0), outputs * size * first.element_type.byte_size)
    (callee,) = op.called_computations
    per_application(visitor.called(callee), times, counts)


@rule("select-and-scatter")
def _select_and_scatter(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    sas = cast(SelectAndScatterOp, op)
    sources = _elements(op.input_shapes[1])
    size = prod(d.size for d in sas.window.dimensions)
    per_application(visitor.called(sas.select), sources * (size - 1), counts)
    per_application(visitor.called(sas.scatter), sources, counts)


@rule("sort")
def _sort(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    elements = _elements(op.input_shapes[0])
    counts.set(FLOPS, elements * log2_ceiling(elements))


@rule("fft")
def _fft(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    factors = prod(max(n, 1).bit_length() - 1 for n in cast(FftOp, op).fft_length)
    counts.set(FLOPS, _FMA * 4 * factors * _elements(op.input_shapes[0]))


@rule("cholesky")
def _cholesky(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    a = cast(ArrayShape, op.input_shapes[0])
    size = half(size_bytes(a))
    counts.set(result_bytes(), size)
    counts.set(operand_bytes(0), size)
    counts.set(BYTES, size + size)
    counts.set(FLOPS, a.dimensions[-1] * a.element_count // 3)


@rule("triangular-solve")
def _triangular_solve(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """XLA writes the bytes of `b` where those of `a` belong."""
    del visitor
    a, b = (cast(ArrayShape, s) for s in op.input_shapes[:2])
    counts.set(BYTES, size_bytes(op.shape) + half(size_bytes(a)) + size_bytes(b))
    counts.set(operand_bytes(0), size_bytes(b))
    counts.set(FLOPS, _FMA * a.dimensions[-1] * b.element_count)


@rule("all-reduce", "all-reduce-start")
def _all_reduce(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """As if there were two replicas."""
    del visitor
    size = sum(size_bytes(leaf) for _, leaf in leaves(op.shape))
    counts.set(FLOPS, _all_elements(op.shape))
    counts.set(result_bytes(), size)
    counts.set(BYTES, size + sum(map(size_bytes, op.input_shapes)))


@rule("rng", "rng-bit-generator")
def _rng(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """A random number counts as an elementary function."""
    del visitor
    counts.set(TRANSCENDENTALS, _all_elements(op.shape))


@rule("infeed")
def _infeed(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    total = 0
    for index, leaf in leaves(op.shape):
        total += size_bytes(leaf)
        counts.set(result_bytes(index), size_bytes(leaf))
    counts.set(result_bytes(), total)
    counts.set(BYTES, total)


@rule("outfeed")
def _outfeed(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    del visitor
    counts.set(BYTES, 0)
    for number, shape in enumerate(op.input_shapes):
        total = 0
        for index, leaf in leaves(shape):
            total += size_bytes(leaf)
            counts.set(operand_bytes(number, index), size_bytes(leaf))
        counts.set(operand_bytes(number), total)
        counts.add(BYTES, total)


@rule("custom-call")
def _custom_call(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """Nobody knows, which XLA writes as -1."""
    if visitor.options.custom_call is not None and visitor.options.custom_call(op, counts):
        return
    for key in (SECONDS, BYTES, FLOPS, result_bytes()):
        counts.set(key, -1)
    for number in range(len(op.inputs)):
        counts.set(operand_bytes(number), -1)


@rule("call", "async-start")
def _call(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    counts.values = visitor.called(op.called_computations[0]).copy().values


@rule("while")
def _while(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """One round, or all that are known."""
    loop = cast(WhileOp, op)
    rounds = visitor.rounds(op)
    counts.values = {}
    for callee, times in ((loop.body, rounds), (loop.condition, rounds + 1 if rounds > 1 else 1)):
        for key, value in visitor.called(callee).values.items():
            counts.add(key, value * times)


@rule("conditional")
def _conditional(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    """The most of every number among the branches."""
    counts.values = {}
    for callee in cast(ConditionalOp, op).called_computations:
        counts.maximum(visitor.called(callee))
