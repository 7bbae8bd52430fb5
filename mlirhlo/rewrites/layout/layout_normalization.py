"""`layout_normalization`: layouts become orders of dimensions; what is transposed in memory says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbersAttr,
    Padding,
    PaddingAttr,
    Slice,
    SliceAttr,
    Window,
    WindowAttr,
)
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    OP_CLASSES,
    BitcastOp,
    BroadcastOp,
    ConcatenateOp,
    ConstantOp,
    CopyOp,
    CustomCallOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    Instruction,
    IotaOp,
    PadOp,
    ReduceWindowOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    is_array,
    literal_of,
    own_properties,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import ELEMENTWISE
from mlirhlo.rewrites.algsimp.movement.physical import (
    is_plain,
    order_of,
    reshape_is_bitcast,
    same_memory,
    transpose_is_bitcast,
    with_order,
)
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


def is_descending(shape: ArrayShape) -> bool:
    """Whether the first dimension is the most major one, and so on."""
    order = order_of(shape)
    return order == tuple(range(len(order)))


def normal(shape: ArrayShape) -> ArrayShape:
    """The same bytes as an array whose dimensions are in the order of the memory."""
    order = order_of(shape)
    return with_order(shape, [shape.dimensions[d] for d in order], range(shape.rank))


def normalised(b: Builder, value: SSAValue) -> SSAValue:
    """A value in the order of its memory: what it is a bitcast of, or a bitcast of it."""
    shape = array(value)
    if is_descending(shape):
        return value
    owner, wanted = value.owner, normal(shape)
    if isinstance(owner, BitcastOp) and array(owner.operand) == wanted:
        return owner.operand
    return b(BitcastOp, value, shape=wanted).output


def _kept(op: Instruction) -> dict[str, Attribute]:
    """Properties of an instruction for the one that does its work."""
    found = own_properties(op)
    if "frontend_attributes" in op.properties:
        found["frontend_attributes"] = op.properties["frontend_attributes"]
    return found


def finish(b: Builder, made: Instruction | SSAValue) -> None:
    """Replaces by a bitcast of what was made to the shape there was; by itself where it has that."""
    value = made.output if isinstance(made, Instruction) else made
    if array(value) != b.op.shape:
        b.like(BitcastOp, value)
        b.done()
    elif isinstance(owner := value.owner, Instruction):
        b.done(owner)


def _is_alike(op: Instruction) -> bool:
    """Whether an instruction is not in descending order, but all its arrays are in one."""
    if not is_array(op) or is_descending(array(op)) or not is_plain(array(op)):
        return False
    order = order_of(array(op))
    shapes = [array(v) for v in op.inputs if is_array(v) and array(v).rank]
    return all(is_plain(s) and order_of(s) == order for s in shapes)


def _permuted(op: Instruction, rewriter: Rewriter, count: int, **properties: Attribute) -> None:
    """The same instruction in the order of memory; of its operands the first `count` are arrays."""
    b = Builder(op, rewriter)
    operands = [normalised(b, v) if k < count else v for k, v in enumerate(op.inputs)]
    own = {**_kept(op), **properties}
    finish(b, b(type(op), *operands, shape=normal(array(op)), **own))


@rule(*(OP_CLASSES[name] for name in sorted(ELEMENTWISE | {"bitcast-convert"})))
def elementwise_in_order(op: Instruction, rewriter: Rewriter) -> None:
    """f(bitcast(x)) => bitcast(f(x)), f element-wise"""
    if _is_alike(op) and all(array(v).rank in (0, array(op).rank) for v in op.inputs):
        _permuted(op, rewriter, len(op.inputs))


@rule(ConstantOp)
def constant_in_order(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant => bitcast(constant), the same bytes"""
    literal = literal_of(op.output)
    if literal is None or not _is_alike(op):
        return
    values = literal.array.transpose(order_of(array(op)))
    b = Builder(op, rewriter)
    finish(b, b.constant(Literal.from_array(normal(array(op)), values)))


@rule(IotaOp)
def iota_in_order(op: IotaOp, rewriter: Rewriter) -> None:
    """iota => bitcast(iota)"""
    if _is_alike(op):
        dim = order_of(array(op)).index(op.iota_dimension)
        _permuted(op, rewriter, 0, iota_dimension=integer(dim))


@rule(BroadcastOp)
def broadcast_in_order(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(bitcast(x)) => bitcast(broadcast(x))"""
    source, result = array(op.operand), array(op)
    if is_descending(source) and is_descending(result):
        return
    if not (is_plain(source) and is_plain(result)):
        return
    order = order_of(result)
    dims = [order.index(op.dimensions[d]) for d in order_of(source)]
    _permuted(op, rewriter, 1, dimensions=integers(tuple(dims)))


@rule(ReshapeOp)
def reshape_in_order(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(bitcast(x)) => bitcast(reshape(x)), no byte moved"""
    source, result = array(op.operand), array(op)
    if is_descending(source) and is_descending(result):
        return
    if is_plain(source) and is_plain(result) and reshape_is_bitcast(source, result):
        _permuted(op, rewriter, 1)


@rule(TransposeOp)
def transpose_in_order(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(bitcast(x)) => bitcast(transpose(x)), or bitcast(x) where no byte is moved"""
    _moved(op, op.operand, op.dimensions, rewriter)


@rule(CopyOp)
def copy_in_order(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(bitcast(x)) => bitcast(transpose(x)), the layouts not the same"""
    if not is_array(op) or not is_plain(array(op)) or not is_plain(array(op.operand)):
        return
    if order_of(array(op)) != order_of(array(op.operand)):
        _moved(op, op.operand, range(array(op).rank), rewriter)
    elif _is_alike(op):
        _permuted(op, rewriter, 1)


def _moved(op: Instruction, value: SSAValue, dims: Sequence[int], rewriter: Rewriter) -> None:
    """A transpose, or a copy, as a transpose in the order of the memory."""
    source, result = array(value), array(op)
    if not (is_plain(source) and is_plain(result) and same_memory(source, result)):
        return
    b = Builder(op, rewriter)
    if isinstance(op, TransposeOp) and transpose_is_bitcast(source, result, dims):
        finish(b, normalised(b, value))
        return
    if is_descending(source) and is_descending(result):
        return
    before = order_of(source)
    order = [before.index(dims[d]) for d in order_of(result)]
    own = {**_kept(op), "dimensions": integers(tuple(order))}
    finish(b, b(TransposeOp, normalised(b, value), shape=normal(result), **own))


@rule(SliceOp)
def slice_in_order(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(bitcast(x)) => bitcast(slice(x))"""
    if _is_alike(op) and (found := op.slices) is not None:
        parts = tuple(found.dimensions[d] for d in order_of(array(op)))
        _permuted(op, rewriter, 1, slice=SliceAttr(Slice(parts)))


@rule(PadOp)
def pad_in_order(op: PadOp, rewriter: Rewriter) -> None:
    """pad(bitcast(x), c) => bitcast(pad(x, c))"""
    if _is_alike(op) and (found := op.padding) is not None:
        parts = tuple(found.dimensions[d] for d in order_of(array(op)))
        _permuted(op, rewriter, 1, padding=PaddingAttr(Padding(parts)))


@rule(ReverseOp)
def reverse_in_order(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(bitcast(x)) => bitcast(reverse(x))"""
    if _is_alike(op):
        order = order_of(array(op))
        dims = sorted(order.index(d) for d in op.dimensions)
        _permuted(op, rewriter, 1, dimensions=integers(tuple(dims)))


@rule(ConcatenateOp)
def concatenate_in_order(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concatenate(bitcast(x), …) => bitcast(concatenate(x, …))"""
    if _is_alike(op):
        (dim,) = op.dimensions
        dims = (order_of(array(op)).index(dim),)
        _permuted(op, rewriter, len(op.inputs), dimensions=integers(tuple(dims)))


@rule(ReduceWindowOp)
def reduce_window_in_order(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(bitcast(x), c) => bitcast(reduce-window(x, c))"""
    if len(op.inputs) == 2 and _is_alike(op):
        parts = tuple(op.window.dimensions[d] for d in order_of(array(op)))
        _permuted(op, rewriter, 1, window=WindowAttr(Window(parts)))


@rule(DynamicSliceOp, DynamicUpdateSliceOp)
def dynamic_slice_in_order(op: DynamicSliceOp | DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(bitcast(x), i, j) => bitcast(dynamic-slice(x, j, i)), updates alike"""
    count = 1 if isinstance(op, DynamicSliceOp) else 2
    starts = op.inputs[count:]
    if not _is_alike(op) or len(starts) != array(op).rank:
        return
    order = order_of(array(op))
    b = Builder(op, rewriter)
    operands = [*(normalised(b, v) for v in op.inputs[:count]), *(starts[d] for d in order)]
    own = _kept(op)
    if isinstance(op, DynamicSliceOp):
        own["dynamic_slice_sizes"] = integers(tuple(array(op).dimensions[d] for d in order))
    finish(b, b(type(op), *operands, shape=normal(array(op)), **own))


_ROLES: Mapping[str, tuple[str, str]] = {
    "__cudnn$convForward": ("input", "kernel"),
    "__cudnn$convBiasActivationForward": ("input", "kernel"),
    "__cudnn$convBackwardInput": ("output", "kernel"),
    "__cudnn$convBackwardFilter": ("input", "output"),
}
"""What `dim_labels` call the first two operands of a call."""


@rule(CustomCallOp, contract="rounding")
def convolution_call_in_order(op: CustomCallOp, rewriter: Rewriter) -> None:
    """__cudnn$conv…(bitcast(x), bitcast(w)) => __cudnn$conv…(x, w), with other dim_labels"""
    labels, roles = op.dim_labels, _ROLES.get(op.custom_call_target)
    if labels is None or roles is None or "operand_layout_constraints" in op.properties:
        return
    b = Builder(op, rewriter)
    operands = list(op.inputs)
    changed: dict[str, Any] = {}
    for k, role in enumerate(roles):
        shape = array(operands[k])
        if is_descending(shape) or not is_plain(shape):
            continue
        order = order_of(shape)
        if shape.rank != len(labels.input_spatial_dimensions) + 2:
            return
        operands[k] = normalised(b, operands[k])
        for field in fields(labels):
            if field.name.startswith(f"{role}_"):
                old: int | tuple[int, ...] = getattr(labels, field.name)
                changed[field.name] = (
                    order.index(old) if isinstance(old, int) else tuple(map(order.index, old))
                )
    if changed:
        own = own_properties(op)
        own["dim_labels"] = ConvolutionDimensionNumbersAttr(replace(labels, **changed))
        b.like(CustomCallOp, *operands, **own)
        b.done()


@dataclass(frozen=True)
class LayoutNormalizationPass(ExpanderPass):
    """Puts the dimensions of arrays in the order of their memory, so that layouts are row-major.

    Before and after:

        %t = f32[3,2]{0,1} transpose(%x), dimensions={1,0}        %n = f32[2,3]{1,0} negate(%x)
        %n = f32[3,2]{0,1} negate(%t)                        =>   %t = f32[2,3]{1,0} transpose(%y), dimensions={1,0}
        %c = f32[3,2]{0,1} copy(%y)                               %a = f32[2,3]{1,0} add(%n, %t)
        ROOT %a = f32[3,2]{0,1} add(%n, %c)                       ROOT %b = f32[3,2]{0,1} bitcast(%a)

    Element-wise instructions and what moves elements (broadcasts, slices, pads, concatenations, windows, iotas,
    constants) are written on arrays of the same bytes, with bitcasts before and behind that meet and go. Copies to
    another layout become transposes; transposes that move no byte become bitcasts; operands of cuDNN's convolutions
    get other labels. What has an order of its own stays, with bitcasts around it: parameters, dots, reduces
    (`reduction-layout-normalizer`), sorts, calls, loops, what is fused. Needs: layouts are assigned, and
    `reshape-decomposer` before, as reshapes that move bytes stay. Arrays with tiles and of dynamic sizes stay.
    Source: the pass of XLA:GPU and its dumps.
    """

    name = "layout_normalization"
    rules: ClassVar[tuple[Rule, ...]] = (
        broadcast_in_order,
        concatenate_in_order,
        constant_in_order,
        convolution_call_in_order,
        copy_in_order,
        dynamic_slice_in_order,
        elementwise_in_order,
        iota_in_order,
        pad_in_order,
        reduce_window_in_order,
        reshape_in_order,
        reverse_in_order,
        slice_in_order,
        transpose_in_order,
    )
