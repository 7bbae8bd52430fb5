"""What the body of a loop does in its first or in its last round alone: `when(k == 0)`, `when(k == n - 1)`.

Branches at the front of the body that only the first round takes may run in front of the loop, those at its end
that only the last one takes behind it: loops then carry less, and test nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.mosaic.attributes import attribute_of, integer_of

_MOST_ROUNDS = 4096
"""Of a loop whose conditions are tried one round after the other."""
_NUMBERS: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}
_COMPARISONS: Sequence[Callable[[int, int], bool]] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)
"""By the number of a predicate; those after them take numbers as unsigned."""


@dataclass(frozen=True)
class Edges:
    """Operations of a body, in order."""

    first: Sequence[scf.IfOp]
    last: Sequence[scf.IfOp]

    @property
    def all(self) -> frozenset[Operation]:
        """What the rounds leave out."""
        return frozenset((*self.first, *self.last))


def edges_of(block: Block, argument: SSAValue, rounds: int, usable: Collection[SSAValue]) -> Edges:
    """The edges of a body that runs for 0 … `rounds` - 1 as `argument`; `usable`: arguments that
    mean the same outside of the loop."""

    def at_edge(ops: Iterable[Operation], number: int) -> list[scf.IfOp]:
        found: list[scf.IfOp] = []
        for op in ops:
            if isinstance(op, scf.IfOp):
                if not _is_of(op, argument, rounds, number) or not _stands_alone(op, block, usable):
                    break
                found.append(op)
            elif not op.name.startswith("arith.") and op is not block.last_op:
                break
        return found

    if rounds > _MOST_ROUNDS:
        return Edges((), ())
    ops = tuple(block.ops)
    first = at_edge(ops, 0)
    last = [op for op in at_edge(reversed(ops), rounds - 1) if op not in first]
    return Edges(first, last[::-1])


def needed(ops: Sequence[Operation], block: Block) -> list[Operation]:
    """What defines the values that `ops` use, in the block itself."""
    wanted: set[Operation] = set()
    stack = list(ops)
    while stack:
        for inner in stack.pop().walk():
            for operand in inner.operands:
                owner = operand.owner
                if isinstance(owner, Operation) and owner.parent is block and owner not in wanted:
                    wanted.add(owner)
                    stack.append(owner)
    return [op for op in block.ops if op in wanted]


def _stands_alone(op: scf.IfOp, block: Block, usable: Collection[SSAValue]) -> bool:
    """Whether a branch has no results, no else, and needs only constants and numbers of the body."""
    other = op.false_region.blocks
    if op.results or (other and any(inner is not other[0].last_op for inner in other[0].ops)):
        return False
    definers = needed([op], block)
    if any(not one.name.startswith("arith.") or not _is_plain(one) for one in definers):
        return False
    operands = [v for one in (op, *definers) for inner in one.walk() for v in inner.operands]
    return all(v.owner is not block or v in usable for v in operands)


def _is_plain(op: Operation) -> bool:
    return op.name == "arith.constant" or all(
        str(r.type) in ("i1", "i32", "index") for r in op.results
    )


def _is_of(op: scf.IfOp, argument: SSAValue, rounds: int, number: int) -> bool:
    """Whether a condition holds in round `number` and in no other one."""
    for at in range(rounds):
        found = _value(op.cond, argument, at)
        if found is None or bool(found) != (at == number):
            return False
    return True


def _value(value: SSAValue, argument: SSAValue, at: int) -> int | None:
    """A number in round `at`; None: not known."""
    if value is argument:
        return at
    op = value.owner
    if not isinstance(op, Operation):
        return None
    if op.name == "arith.constant":
        given: Any = attribute_of(op, "value")
        return given.value.data if isinstance(given, IntegerAttr) else None
    if op.name in ("arith.extui", "arith.index_cast"):
        found = _value(op.operands[0], argument, at)
        # A constant of one bit that is true is written -1.
        return found if found is None or str(op.operands[0].type) != "i1" else found & 1
    if op.name not in _NUMBERS and op.name != "arith.cmpi":
        return None
    a, b = (_value(operand, argument, at) for operand in op.operands)
    if a is None or b is None:
        return None
    if op.name == "arith.cmpi":
        predicate = integer_of(op, "predicate")
        return int(_COMPARISONS[predicate](a, b)) if predicate < len(_COMPARISONS) else None
    return _NUMBERS[op.name](a, b)
