"""`scf`, calls and returns: structured control flow becomes blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import func, scf
from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.quick import append, create_op, operands_of
from mlirhlo.lowering.builder.types import NONEMPTY
from mlirhlo.lowering.loops_to_llvm.convert import LESS, NOT_LESS, Handler, Lowering, llvm_call
from mlirhlo.lowering.loops_to_llvm.parallel import lower_apart, lower_parallel


def _types(to: Lowering, values: Sequence[SSAValue]) -> list[Attribute]:
    return [to.convert(v.type) for v in values]


def _for(to: Lowering, op: scf.ForOp) -> None:
    """The test stands at the loop's end, behind one in front for loops that may be empty; a single round is
    no loop."""
    if op in to.apart:
        lower_apart(to, op)
        return
    lower, upper, step, *initial = (to.values[v] for v in operands_of(op))
    body = op.regions[0].block
    if _is_single(*(to.known.get(v) for v in (lower, upper, step))):
        to.values.update(zip(body.args, (lower, *initial), strict=True))
        to.ops(body)
        to.values.update(zip(op.results, _yielded(to, op), strict=True))
        return
    types = [to.convert(a.type) for a in body.args[1:]]
    head = to.add_block([to.index, *types])
    known = to.known.get(lower), to.known.get(upper)
    is_run = known[0] is not None and known[1] is not None and known[0] < known[1]
    is_run = is_run or NONEMPTY in op.attributes
    read = [at for at, result in enumerate(op.results) if result.first_use is not None]
    after = to.add_block(() if is_run else [types[at] for at in read])
    if is_run:
        to.jump(head, [lower, *initial])
    else:
        # The loop's block follows: LLVM would turn a jump to it around.
        none = to.emit(xllvm.ICmpOp, (lower, upper), i1, {"predicate": NOT_LESS})
        to.branch(none, after, head, [initial[at] for at in read], [lower, *initial])
    to.enter(head)
    for old, new in zip(body.args, head.args, strict=True):
        to.values[old] = new
    to.ops(body)
    yielded = _yielded(to, op)
    following = to.add(head.args[0], step)
    again = to.emit(xllvm.ICmpOp, (following, upper), i1, {"predicate": LESS})
    last = [yielded[at] for at in read]
    to.branch(again, head, after, [following, *yielded], () if is_run else last)
    to.leave(after)
    for at, value in zip(read, last if is_run else after.args, strict=True):
        to.values[op.results[at]] = value


def _is_single(lower: int | None, upper: int | None, step: int | None) -> bool:
    """Whether bounds that are known, if they are, make one round."""
    if lower is None or upper is None or step is None:
        return False
    return lower < upper <= lower + step


def _yielded(to: Lowering, op: Operation, region: int = 0) -> list[SSAValue]:
    last = op.regions[region].block.last_op
    assert last is not None
    return [to.values[v] for v in operands_of(last)]


def _if(to: Lowering, op: scf.IfOp) -> None:
    condition = to.values[op.cond]
    then, after = to.add_block(), to.add_block([to.convert(r.type) for r in op.results])
    has_else = bool(op.false_region.blocks)
    other = to.add_block() if has_else else after
    to.branch(condition, then, other)
    start = to.block
    for region, block in ((0, then), (1, other)):
        if region == 1 and not has_else:
            break
        to.enter(block)
        to.ops(op.regions[region].block)
        to.jump(after, _yielded(to, op, region))
        to.leave(start)
    to.go_on(after)
    for result, argument in zip(op.results, after.args, strict=True):
        to.values[result] = argument


def _while(to: Lowering, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    head = to.add_block(_types(to, before.args))
    body = to.add_block(_types(to, after.args))
    exit_ = to.add_block(_types(to, after.args))
    to.jump(head, [to.values[v] for v in op.arguments])
    to.enter(head)
    for old, new in zip(before.args, head.args, strict=True):
        to.values[old] = new
    to.ops(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    passed = [to.values[v] for v in condition.operands[1:]]
    to.branch(to.values[condition.condition], body, exit_, passed, passed)
    to.enter(body)
    for old, new in zip(after.args, body.args, strict=True):
        to.values[old] = new
    to.ops(after)
    to.jump(head, _yielded(to, op, 1))
    to.leave(head)
    to.leave(exit_)
    for result, argument in zip(op.results, exit_.args, strict=True):
        to.values[result] = argument


def _end(to: Lowering, op: Operation) -> None:
    """Terminators of regions are read by the op around them."""
    del to, op


def _call(to: Lowering, op: func.CallOp) -> None:
    operands = [to.values[v] for v in operands_of(op)]
    name = op.callee.root_reference.data
    if to.call(name, operands):
        return
    types = [to.convert(r.type) for r in op.results]
    results = llvm_call(to, name, operands, types)
    for result, new in zip(op.results, results, strict=True):
        to.values[result] = new


def _return(to: Lowering, op: Operation) -> None:
    append(to.block, create_op(xllvm.ReturnOp, [to.values[v] for v in operands_of(op)]))


HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "scf.for": _for,
        "scf.if": _if,
        "scf.while": _while,
        "scf.parallel": lower_parallel,
        "scf.yield": _end,
        "scf.condition": _end,
        "scf.reduce": _end,
        "func.call": _call,
        "func.return": _return,
    },
)
