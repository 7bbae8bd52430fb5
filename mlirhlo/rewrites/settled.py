"""Which instructions a pass of rules need not look at again: nothing near them changed since it did.

A rule reads its instruction and what stands at most `REACH` steps above it: classes, properties, types, operands,
and whether a value has no, one or several uses. Steps through `THROUGH` count as none, so that chains of them may
be of any length; computations that an instruction calls count as part of it. Rules that look elsewhere say so
(`Rule.looks_far`) and are tried every time. So whoever did not match does not match now, unless one of these
changed. What changed between two runs of a pass is found by comparing every instruction with what was written
down of it, whoever changed it; what a run changes it is told by its rewriter.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.hlo.module import HloModule, Listing, holder
from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    ComputationOp,
    FusionOp,
    Instruction,
    MaximumOp,
    MinimumOp,
    PowerOp,
    RsqrtOp,
    SelectOp,
    SqrtOp,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.dialects.quick import readers_of

REACH = 3
"""Steps from a user to an operand that rules take at most."""
THROUGH = classes_of(
    lambda row: (
        row.is_index_map
        and row.movement in (Movement.BROADCAST, Movement.PERMUTE, Movement.RESHAPE)
        and row.name != "reverse"
    )
) | {AbsOp, MaximumOp, MinimumOp, PowerOp, RsqrtOp, SelectOp, SqrtOp}
"""Rules look through chains of these: for what moves, and for what cannot be negative."""

_Record: TypeAlias = "tuple[tuple[SSAValue, ...], Attribute | None, int, dict[str, Attribute]]"
"""What rules may ask about an instruction: operands, type, uses, properties."""


class Settled:
    """Of one pass with its options and one module: instructions that no rule matches as they stand."""

    def __init__(self) -> None:
        self.ops: set[Operation] = set()
        """The settled ones."""
        self.blocks: set[Block | None] = set()
        """Of computations all of whose instructions are settled and never looked at again."""
        self._records: dict[ComputationOp, dict[Operation, _Record]] = {}
        self._header: dict[str, Any] = {}
        self._callers: dict[str, list[Instruction]] = {}
        self.calling_changed: set[ComputationOp] = set()
        """Computations whose callers do not know yet that something they call changed."""
        self.touched: set[Operation] = set()
        """Changed since somebody was woken."""
        self._stale: set[Operation] = set()
        """Changed since they were written down."""
        self._readers: set[Operation] = set()
        """Of what is being replaced."""

    @staticmethod
    def of(module: HloModule, key: object) -> Settled:
        """For the pass `key`, up to date with the module, where passes keep anything."""
        kept = {} if module.kept is None else module.kept
        found: Settled = kept.setdefault((Settled, key), Settled())
        found._catch_up(module)
        return found

    def _catch_up(self, module: HloModule) -> None:
        """Unsettles what may match because of changes since the last time."""
        header = dict(module.op.attributes)
        if header != self._header:
            self.ops.clear()
            self.blocks.clear()
        self._header = header
        self._callers, fused = _callers(module)
        changed: list[Operation] = []
        others: list[ComputationOp] = []
        for computation, ops in module.known(Listing.of).by_computation():
            if computation.computation_name in fused:
                self._records.pop(computation, None)
                continue
            records = self._records.setdefault(computation, {})
            found, is_less = _bring_up_to_date(computation, ops, records)
            if found or is_less:
                changed += found
                others.append(computation)
        if self.ops:
            self._wake(changed)
            self.wake_callers([*others, *self.calling_changed])

    def wake_callers(self, computations: Iterable[ComputationOp]) -> None:
        """Unsettles who may match because of what these computations hold now, directly or not."""
        work = list(computations)
        seen = set(work)
        for computation in work:  # grows while it is walked
            for place in self._wake_callers_of(computation):
                if place not in seen:
                    seen.add(place)
                    work.append(place)
        self.calling_changed.clear()

    def changed(self, computation: ComputationOp) -> None:
        """Unsettles its callers: they may match now. Theirs follow when they have had their turn."""
        self.calling_changed.update(self._wake_callers_of(computation))

    def _wake_callers_of(self, computation: ComputationOp) -> Iterator[ComputationOp]:
        for caller in self._callers.get(computation.computation_name, ()):
            if caller.parent is not None:
                self.touched.add(caller)
                yield holder(caller)

    def _wake(self, ops: Iterable[Operation]) -> None:
        """Unsettles these, which are no longer as they were, and whoever may look at them."""
        settled, blocks = self.ops, self.blocks
        furthest = dict.fromkeys(ops, REACH)
        settled.difference_update(furthest)
        work = list(furthest)
        blocks.difference_update([op.parent for op in work])
        first = len(work)
        for place, here in enumerate(work):  # grows while it is walked
            left = furthest[here]
            if place >= first and type(here) not in THROUGH:
                left -= 1
            if not left:
                continue
            for result in here.results:
                use = result.first_use
                while use is not None:
                    user = use._operation
                    if furthest.get(user, 0) < left:
                        furthest[user] = left
                        settled.discard(user)
                        blocks.discard(user.parent)
                        work.append(user)
                    use = use._next_use

    def wake_touched(self) -> None:
        """Unsettles who may match because of what a rewriter told of since the last time."""
        self._wake(self.touched)
        self._stale |= self.touched
        self.touched.clear()

    # What a rewriter tells.

    def modified(self, op: Operation) -> None:
        """`op` is new, or is no longer as it was."""
        self._touch(op)
        if op not in self._readers:  # whose operands `replaced` was told of, however many they are
            self._uses_change(op)

    def replaced(self, op: Operation, values: Iterable[SSAValue | None]) -> None:
        """The users of `op` are about to read these values; they are told of one by one."""
        self._readers = {reader for result in op.results for reader in readers_of(result)}
        for value in values:
            # What stands for another may take its sharding.
            if value is not None and (not _is_read_more_than(value, 2) or _has_sharding(value)):
                self._touch(value.owner)

    def removed(self, op: Operation) -> None:
        """`op` is about to go."""
        self.ops.discard(op)
        self._readers.clear()
        self._uses_change(op)

    def _uses_change(self, op: Operation) -> None:
        """Unsettles who may ask how often an operand of `op` is read, if that is another answer now."""
        operands = op._operands
        times: Mapping[int, int] = {}
        if len(operands) > 1 and len(set(map(id, operands))) < len(operands):
            times = Counter(map(id, operands))
        for value in operands:
            # If two readings are left when this is gone, there are several with it and without it.
            if not _is_read_more_than(value, 1 + times.get(id(value), 1)):
                self._touch(value.owner)

    def _touch(self, op: Operation | Block) -> None:
        if isinstance(op, Instruction):
            self.touched.add(op)

    def write_down(self) -> None:
        """What was touched is known as it is now."""
        self.wake_touched()
        for op in self._stale:
            if isinstance(op, Instruction) and op.parent is not None:
                self._records.setdefault(holder(op), {})[op] = _record(op)
        self._stale.clear()


def _is_read_more_than(value: SSAValue, count: int) -> bool:
    """Whether there are more uses than `count`."""
    use = value.first_use
    while use is not None and count:
        use, count = use._next_use, count - 1
    return use is not None


def _has_sharding(value: SSAValue) -> bool:
    return isinstance(owner := value.owner, Operation) and "sharding" in owner.properties


def _record(op: Operation) -> _Record:
    operands = op._operands
    if not op.results:
        return (operands, None, 0, {})
    (result,) = op.results
    return (operands, result._type, _uses(result), dict(op.properties))


def _uses(value: SSAValue) -> int:
    """How many there are, as rules may ask: none, one or several."""
    use = value.first_use
    return 0 if use is None else 1 if use._next_use is None else 2


def _bring_up_to_date(
    computation: ComputationOp, ops: list[Instruction], records: dict[Operation, _Record]
) -> tuple[list[Operation], bool]:
    """Writes down what there is now; what was not so before, and whether anything is gone."""
    changed: list[Operation] = []
    for op in ops:
        (result,) = op.results
        use = result.first_use
        uses = 0 if use is None else 1 if use._next_use is None else 2  # `_uses`, without a call
        known = records.get(op)
        if (
            known is None
            or known[0] is not op._operands
            or known[1] is not result._type
            or known[2] != uses
            or known[3] != op.properties
        ):
            records[op] = (op._operands, result._type, uses, dict(op.properties))
            changed.append(op)
    end = computation.terminator
    if end not in records or records[end][0] is not end._operands:
        records[end] = _record(end)
        changed.append(end)
    is_less = len(records) > len(ops) + 1
    if is_less:
        there = {*ops, end}
        for gone in [each for each in records if each not in there]:
            del records[gone]
    return changed, is_less


def _callers(module: HloModule) -> tuple[dict[str, list[Instruction]], set[str]]:
    """Who calls each computation but fusions, and what only these run: no rule looks into that."""
    found: dict[str, list[Instruction]] = {}
    fused: set[str] = set()
    for op in module.calling():
        if type(op) is FusionOp:
            fused.update(op.called_computations)
            continue
        for name in op.called_computations:
            found.setdefault(name, []).append(op)
    return found, fused - found.keys()
