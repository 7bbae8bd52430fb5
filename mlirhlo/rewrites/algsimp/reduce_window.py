"""Rules of reduce-window, and of the slice that reads only the last of a running sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowAttr, WindowDimension
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    ConvertOp,
    CopyOp,
    Instruction,
    IotaOp,
    MultiplyOp,
    PadOp,
    ReduceOp,
    ReduceWindowOp,
    SliceOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_all,
    is_array,
    is_scalar_broadcast,
    literal_of,
    made_by,
    paddings,
    sized,
    splat_bytes,
    splat_of,
    starts_neutral,
)
from mlirhlo.rewrites.algsimp.mapping import reducer
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.slicing import parts_of
from mlirhlo.rewrites.computations import add_rerooted
from mlirhlo.rewrites.rules import Rewriter, rule


def _single(op: ReduceWindowOp) -> bool:
    return is_array(op) and len(op.inputs) == 2 and not array(op).is_dynamic


def _window(op: ReduceWindowOp) -> tuple[WindowDimension, ...]:
    return op.window.dimensions


def _is_trivial(dim: WindowDimension) -> bool:
    """Whether each element is its own window."""
    return replace(dim, window_dilation=1, window_reversal=False) == WindowDimension()


def _moves_by_one(dim: WindowDimension) -> bool:
    """Whether windows start at every element, and neither skip nor insert any."""
    return dim.stride == dim.window_dilation == dim.base_dilation == 1


@rule(ReduceWindowOp)
def reduce_window_of_one_in_tuple(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) of a tuple of one => tuple(reduce-window(x, init))"""
    if is_array(op) or len(op.inputs) != 2:
        return
    computation = rewriter.computation(op.to_apply)
    root = None if computation is None else computation.root
    if computation is None or not isinstance(root, TupleOp) or len(root.inputs) != 1:
        return
    shape = op.shape
    assert isinstance(shape, TupleShape)
    properties = dict(op.properties) | {"to_apply": add_rerooted(op, computation, root.inputs[0])}
    kept = {key: properties[key] for key in ("window", "to_apply") if key in properties}
    b = Builder(op, rewriter)
    b.like(TupleOp, b(ReduceWindowOp, *op.inputs, shape=shape.elements[0], **kept))
    b.done()


@rule(ReduceWindowOp)
def reduce_window_of_empty(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) => bc(init), x or the result empty"""
    if not _single(op) or (array(op).element_count and array(op.inputs[0]).element_count):
        return
    if array(op).dimensions:
        b = Builder(op, rewriter)
        b.broadcast(op.inputs[1], (), op.shape)
        b.done()


@rule(ReduceWindowOp, contract="zeros")
def reduce_window_of_scalar(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) => x, x a scalar; init is neutral"""
    if (
        _single(op)
        and not array(op.inputs[0]).dimensions
        and starts_neutral(op, rewriter.computation(op.to_apply))
    ):
        forward(op, rewriter, op.inputs[0])


_SEEN_THROUGH = classes_of(
    lambda row: row.is_index_map and row.arity == 1 and row.movement is not Movement.BROADCAST
) | {CopyOp}


def _scalar_everywhere(b: Builder, value: SSAValue) -> Instruction | None:
    """The scalar constant that all elements of `value` equal; converts are done to it."""
    owner = value.owner
    assert isinstance(owner, Instruction)
    if type(owner) in _SEEN_THROUGH and element(owner) is element(owner.inputs[0]):
        return _scalar_everywhere(b, owner.inputs[0])
    if isinstance(owner, ConvertOp):
        inner = _scalar_everywhere(b, owner.operand)
        return None if inner is None else b(ConvertOp, inner, shape=sized(array(owner), ()))
    spread = is_scalar_broadcast(value)
    if spread is None or literal_of(spread.operand) is None:
        return None
    source = spread.operand.owner
    return source if isinstance(source, Instruction) else None


@rule(ReduceWindowOp, needs=LI, contract="rounding", looks_far=True)
def running_sum_of_constant(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window_add(bc(C), 0) => C * (iota + 1), windows of all elements up to each one"""
    if not _single(op) or not is_all(op.inputs[1], 0) or element(op).name == "pred":
        return
    if reducer(op.to_apply, rewriter) is not AddOp:
        return
    dim = _running(op)
    if dim is None:
        return
    b = Builder(op, rewriter)
    scalar = _scalar_everywhere(b, op.inputs[0])
    if scalar is None:
        for unused in reversed(b.made):
            unused.erase()
        return
    count = b.like(AddOp, b.like(IotaOp, iota_dimension=integer(dim)), b.splat(array(op), 1))
    b.like(MultiplyOp, b.spread(scalar, array(op)), count)
    b.done()


def _running(op: ReduceWindowOp) -> int | None:
    """The dimension along which each result folds all elements up to its place, and no other."""
    dims = [d for d, part in enumerate(_window(op)) if not _is_trivial(part)]
    if len(dims) != 1:
        return None
    part, size = _window(op)[dims[0]], array(op.inputs[0]).dimensions[dims[0]]
    whole = part.size == size and (part.padding_low, part.padding_high) == (size - 1, 0)
    return dims[0] if whole and _moves_by_one(part) else None


@rule(ReduceWindowOp, needs=LI, contract="zeros")
def reduce_window_of_ones(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) => pad(f(x, bc(init)), init), windows of one; f has an identity"""
    dims = _window(op)
    if not _single(op) or not dims or not all(d.size == 1 and _moves_by_one(d) for d in dims):
        return
    cls = reducer(op.to_apply, rewriter)
    if cls is None or cls.opcode.identity is None or array(op.inputs[0]).is_dynamic:
        return
    b = Builder(op, rewriter)
    source = array(op.inputs[0])
    init = b.spread(op.inputs[1], sized(source, source.dimensions))
    folded = b(cls, op.inputs[0], init, shape=source)
    edges = [(d.padding_low, d.padding_high, 0) for d in dims]
    if any(map(any, edges)):
        b.like(PadOp, folded, op.inputs[1], padding=paddings(edges))
        b.done()
    else:
        b.done(folded)


@rule(
    ReduceWindowOp,
    needs=("enable_window_reduce_to_reduce_replacement", *LI),
    contract="rounding",
)
def reduce_window_of_all(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) => reshape(reduce(x, init)), windows whole or of one in each dimension"""
    if not _single(op) or array(op.inputs[0]).is_dynamic:
        return
    source = array(op.inputs[0])
    whole: list[int] = []
    for dim, (part, size) in enumerate(zip(_window(op), source.dimensions, strict=True)):
        if part.padding_low or part.padding_high or part.base_dilation != 1:
            return
        if part.window_dilation != 1 or part.window_reversal or part.stride != 1:
            return
        if part.size == size:
            whole.append(dim)
        elif part.size != 1:
            return
    if not whole:
        return
    b = Builder(op, rewriter)
    shape = sized(source, [n for d, n in enumerate(source.dimensions) if d not in whole])
    properties = {"dimensions": integers(tuple(whole)), "to_apply": op.properties["to_apply"]}
    b.reshape(b(ReduceOp, *op.inputs, shape=shape, **properties), op.shape)
    b.done()


def _with_padding(
    dims: Sequence[WindowDimension], pad: PadOp
) -> tuple[WindowDimension, ...] | None:
    """Windows over what is padded that see what those of `dims` see of the padded; None = none do."""
    assert pad.padding is not None
    found: list[WindowDimension] = []
    for part, edge in zip(dims, pad.padding.dimensions, strict=True):
        if edge.low < 0 or edge.high < 0:
            return None
        if part.base_dilation != 1 and (edge.low, edge.high, edge.interior) != (0, 0, 0):
            return None
        low, high = part.padding_low + edge.low, part.padding_high + edge.high
        dilation = part.base_dilation if part.base_dilation != 1 else edge.interior + 1
        found.append(replace(part, padding_low=low, padding_high=high, base_dilation=dilation))
    return tuple(found)


def _same_number(a: SSAValue, b: SSAValue) -> bool:
    x, y = splat_of(a), splat_of(b)
    return x is not None and x == y


@rule(ReduceWindowOp, contract="zeros", reads=(PadOp,))
def reduce_window_of_pad(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(pad(x, init), init) => reduce-window(x, init), the edges the window's padding"""
    _into_window(op, rewriter, dilates=False)


@rule(ReduceWindowOp, contract="zeros", reads=(PadOp,))
def reduce_window_of_dilating_pad(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(pad(x, init), init) => reduce-window(x, init), what is between elements the base's dilation"""
    _into_window(op, rewriter, dilates=True)


def _into_window(op: ReduceWindowOp, rewriter: Rewriter, *, dilates: bool) -> None:
    pad = made_by(op.inputs[0], PadOp)
    if not _single(op) or pad is None or array(pad).is_dynamic or pad.padding is None:
        return
    if any(edge.interior for edge in pad.padding.dimensions) != dilates:
        return
    start = op.inputs[1]
    same = splat_bytes(start) is not None and splat_bytes(pad.padding_value) == splat_bytes(start)
    if not same and pad.padding_value is not start:
        return
    dims = _with_padding(_window(op), pad)
    if dims is not None:
        b = Builder(op, rewriter)
        _folded(b, op, pad.operand, dims)
        b.done()


def _folded(
    b: Builder, op: ReduceWindowOp, value: SSAValue | Instruction, dims: tuple[WindowDimension, ...]
) -> None:
    properties = {"window": WindowAttr(Window(dims)), "to_apply": op.properties["to_apply"]}
    b.like(ReduceWindowOp, value, op.inputs[1], **properties)


@rule(ReduceWindowOp, contract="zeros", reads=(ConvertOp,))
def reduce_window_of_converted_pad(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(convert(pad(x, v)), init) => reduce-window(convert(x), init), v equal to init"""
    convert = made_by(op.inputs[0], ConvertOp)
    pad = made_by(convert.operand, PadOp) if convert is not None else None
    if not _single(op) or convert is None or pad is None or array(pad).is_dynamic:
        return
    if not (element(pad).is_float and element(op).is_float):
        return
    if not _same_number(pad.padding_value, op.inputs[1]) or not has_one_user(convert.operand):
        return
    wide = [d for d, part in enumerate(_window(op)) if not _is_trivial(part)]
    if len(wide) == 1:  # little padding is not worth other windows
        padded, bare = (array(v).dimensions[wide[0]] for v in (pad, pad.operand))
        if (padded - bare) * 10 < padded:
            return
    dims = _with_padding(_window(op), pad)
    if dims is None:
        return
    b = Builder(op, rewriter)
    source = array(pad.operand)
    shape = sized(array(convert), source.dimensions)
    _folded(b, op, b(ConvertOp, pad.operand, shape=shape), dims)
    b.done()


@rule(ReduceWindowOp, needs=LI, contract="zeros")
def reduce_window_that_broadcasts(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x, init) => bc(reshape(x)), every window seeing one element; init is neutral"""
    if not _single(op) or array(op.inputs[0]).is_dynamic or not array(op).element_count:
        return
    if not starts_neutral(op, rewriter.computation(op.to_apply)):
        return
    source, wide = array(op.inputs[0]), list[int]()
    for dim, (part, size) in enumerate(zip(_window(op), source.dimensions, strict=True)):
        if _is_trivial(part):
            continue
        last = (array(op).dimensions[dim] - 1) * part.stride
        if size != 1 or part.window_dilation != 1:
            return
        if not (part.padding_low < part.size and last <= part.padding_low):
            return
        wide.append(dim)
    if not wide:
        return
    kept = [d for d in range(source.rank) if d not in wide]
    b = Builder(op, rewriter)
    squeezed = b.reshape(op.inputs[0], sized(source, [source.dimensions[d] for d in kept]))
    b.broadcast(squeezed, kept, op.shape)
    b.done()


@rule(SliceOp, needs=LI, contract="rounding", reads=(ReduceWindowOp,))
def last_of_running_reduce(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(reduce-window(x, init)) => reshape(reduce(x, init)), the last of windows up to each one"""
    inner = made_by(op.operand, ReduceWindowOp)
    if inner is None or not _single(inner) or not has_one_user(op.operand):
        return
    dim = _running(inner)
    if dim is None:
        return
    size = array(inner).dimensions[dim]
    for d, (part, n) in enumerate(zip(parts_of(op), array(inner).dimensions, strict=True)):
        if (part.start, part.limit) != ((size - 1, size) if d == dim else (0, n)):
            return
    b = Builder(op, rewriter)
    shape = sized(array(op), [n for d, n in enumerate(array(inner).dimensions) if d != dim])
    properties = {"dimensions": integers((dim,)), "to_apply": inner.properties["to_apply"]}
    b.reshape(b(ReduceOp, *inner.inputs, shape=shape, **properties), op.shape)
    b.done()


RULES = (
    reduce_window_of_one_in_tuple,
    reduce_window_of_empty,
    reduce_window_of_scalar,
    running_sum_of_constant,
    reduce_window_of_ones,
    reduce_window_of_pad,
    reduce_window_of_dilating_pad,
    reduce_window_of_converted_pad,
    reduce_window_of_all,
    reduce_window_that_broadcasts,
    last_of_running_reduce,
)
