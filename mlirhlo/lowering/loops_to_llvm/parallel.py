"""`scf.parallel`: the rounds become a function that the thread pool calls on ranges of them.

    scf.parallel (%i) = (%c0) to (%n) step (%c1) { body }   in @kernel

is `body` as `@kernel_task_0(args, begin, end, range)`, which takes what was captured out of memory and loops over
the range, and in the kernel the call `mlirhlo_parallel_for(@kernel_task_0, args, n, most)`. Constants are not
captured but made again.

Of several dimensions the first is cut, the others are loops inside. A loop with little work, or inside
another parallel one, stays a loop where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    VectorType,
    i8,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from mlirhlo.dialects.interned import integer64, symbol_ref
from mlirhlo.dialects.quick import append, create_op, operands_of
from mlirhlo.lowering.loops_to_llvm.convert import (
    Lowering,
    counted,
    llvm_call,
    no_lowering,
)
from mlirhlo.lowering.loops_to_llvm.effort import bounds, is_cut, ops_inside, parallel_work
from mlirhlo.lowering.loops_to_llvm.indices import POINTER
from mlirhlo.lowering.runtime_symbols import PARALLEL_FOR

_THREAD_NS = 10_000
"""Work that is worth a thread of its own."""
_UNBOUNDED = 1 << 20
"""Ranges, where the work is not known."""

_NOT_ATOMIC = IntegerAttr(0, i64)
_NONE = DictionaryAttr({})


def lower_parallel(to: Lowering, op: scf.ParallelOp) -> None:
    """On the threads of the pool, or as loops."""
    if op.results:
        raise no_lowering(op, " with reductions")
    if op in to.apart:
        lower_apart(to, op)
        return
    if to.is_task or not is_cut(op):
        _nest(to, op, 0)
        return
    lower, upper, step = (to.values[v] for v in bounds(op, 0))
    stride = to.known[step]
    outside, captured = _read_outside(to, op)
    passed = [to.values[v] for v in captured]
    task = f"{to.name}_task_{to.next_number()}"
    places, size = _places(v.type for v in passed)
    to.top[task] = _task_function(to, op, task, outside, captured, places, stride)
    args = to.scratch(size)
    for value, place in zip(passed, places, strict=True):
        address = to.offset(args, to.constant(place), i8)
        to.emit(xllvm.StoreOp, [value, address], None, _access(value.type))
    entry = create_op(xllvm.AddressOfOp, (), [POINTER], {"global_name": symbol_ref(task)})
    append(to.entry, entry)
    work = parallel_work(op)
    most = _UNBOUNDED if work is None else max(2, work // _THREAD_NS)
    count = _rounds(to, lower, upper, stride)
    to.declare(PARALLEL_FOR, [POINTER, POINTER, i64, i64])
    llvm_call(to, PARALLEL_FOR, [entry.results[0], args, count, to.constant(most)])


def lower_apart(to: Lowering, op: scf.ForOp | scf.ParallelOp) -> None:
    """As a function of its own, which is called here."""
    outside, captured = _read_outside(to, op)
    name = f"{to.name}_loop_{to.next_number()}"
    types = [to.values[v].type for v in captured]
    inner = _inner(to, name)
    _know(to, inner, outside, captured, inner.begin(types))
    inner.handlers[op.name](inner, op)
    append(inner.block, create_op(xllvm.ReturnOp))
    to.top[name] = inner.end(types, _attributes(to, captured))
    llvm_call(to, name, [to.values[v] for v in captured])


def _rounds(to: Lowering, lower: SSAValue, upper: SSAValue, step: int) -> SSAValue:
    """How many there are; of a negative number the pool does none."""
    first, last = to.known.get(lower), to.known.get(upper)
    if first is not None and last is not None:
        return to.constant(-(-(last - first) // step))
    span = to.add(upper, to.times(lower, -1))
    if step == 1:
        return span
    return to.emit(xllvm.SDivOp, (to.add(span, to.constant(step - 1)), to.constant(step)), i64)


def _read_outside(to: Lowering, op: Operation) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """Values from outside that a loop reads, in the order it does, but for constants; those of them that
    are not known to be numbers."""
    found: dict[SSAValue, None] = dict.fromkeys(operands_of(op))
    inner = ops_inside(op)
    inside = {id(o.parent) for o in inner}
    for reader in inner:
        for value in operands_of(reader):
            home = value.op.parent if type(value) is OpResult else value.owner
            if id(home) not in inside:
                found[value] = None
    outside = [v for v in found if not _is_constant(v)]
    return outside, [v for v in outside if to.known.get(to.values[v]) is None]


def _is_constant(value: SSAValue) -> bool:
    return type(value) is OpResult and value.op.name == "arith.constant"


def _places(types: Iterable[Attribute]) -> tuple[list[int], int]:
    """Byte offsets of values of these types, each aligned to itself, and the bytes of all."""
    places: list[int] = []
    end = 0
    for type_ in types:
        size = max(8, _bytes(type_))
        end = -(-end // size) * size
        places.append(end)
        end += size
    return places, max(end, 1)


def _bytes(type_: Attribute) -> int:
    """A power of two that holds a value."""
    if isinstance(type_, VectorType):
        vector = cast("VectorType[Attribute]", type_)
        (lanes,) = vector.get_shape()
        bits = cast(int, cast(Any, vector.element_type).bitwidth) * lanes
    elif type_ == POINTER:
        bits = 64
    else:
        bits = cast(int, cast(Any, type_).bitwidth)
    return 1 << max(0, (bits + 7) // 8 - 1).bit_length()


def _access(type_: Attribute) -> dict[str, Attribute]:
    alignment = integer64(min(64, max(8, _bytes(type_))))
    return {"alignment": alignment, "ordering": _NOT_ATOMIC}


def _task_function(
    to: Lowering,
    op: scf.ParallelOp,
    name: str,
    outside: Sequence[SSAValue],
    captured: Sequence[SSAValue],
    places: Sequence[int],
    step: int,
) -> Operation:
    """What the pool calls: takes the captured values out of memory, and does the rounds from `begin` to `end`."""
    inner = _inner(to, name)
    inputs = [POINTER, i64, i64, i64]
    args, begin, end, _ = inner.begin(inputs)
    values: list[SSAValue] = []
    for value, place in zip(captured, places, strict=True):
        type_ = to.values[value].type
        address = inner.offset(args, inner.constant(place), i8)
        values.append(inner.emit(xllvm.LoadOp, [address], type_, _access(type_)))
    _know(to, inner, outside, captured, values)
    inner.judge(op.body.block, is_public=False)
    lower = inner.values[bounds(op, 0)[0]]

    def body(round_: SSAValue) -> None:
        inner.values[op.body.block.args[0]] = inner.add(lower, inner.times(round_, step))
        _nest(inner, op, 1)

    counted(inner, begin, end, inner.constant(1), body)
    append(inner.block, create_op(xllvm.ReturnOp))
    return inner.end(inputs)


def _attributes(to: Lowering, captured: Sequence[SSAValue]) -> list[DictionaryAttr]:
    return [to.argument_attributes.get(to.values[v], _NONE) for v in captured]


def _inner(to: Lowering, name: str) -> Lowering:
    """A function to be, in which nothing is cut again."""
    return Lowering(to.handlers, to.top, name, to.passthrough, to.heavy, is_task=True)


def _know(
    to: Lowering,
    inner: Lowering,
    outside: Sequence[SSAValue],
    captured: Sequence[SSAValue],
    values: Sequence[SSAValue],
) -> None:
    """Tells a function the values from outside: what stands for those captured, all others are numbers."""
    inner.values.update(zip(captured, values, strict=True))
    for value in outside:
        if value not in inner.values:
            inner.values[value] = inner.constant(to.known[to.values[value]])


def _nest(to: Lowering, op: scf.ParallelOp, depth: int) -> None:
    """Loops over the dimensions from `depth` on, around the body."""
    if depth == len(op.body.block.args):
        to.ops(op.body.block)
        return
    lower, upper, step = (to.values[v] for v in bounds(op, depth))

    def body(index: SSAValue) -> None:
        to.values[op.body.block.args[depth]] = index
        _nest(to, op, depth + 1)

    counted(to, lower, upper, step, body)
