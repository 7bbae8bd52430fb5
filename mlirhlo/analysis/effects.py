"""Which instructions must stay though nobody reads them.

Source: behaviour of XLA's `HasSideEffect`: an instruction's own opcode, its flags, and everything
in the computations it calls. Here the end of an asynchronous pair also stays where its start does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlirhlo.dialects.hlo.attributes.base import bool_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.table import STARTED, opcodes

_ENDS = opcodes(
    lambda row: row.is_asynchronous and not (row.is_async_start or row.collective or row.transfers)
)
_MAX_CHAIN = 16
"""Updates between an end and its start from which on the end stays: each of them looks for the start."""
_HAVE_ENDS = frozenset(start for start in STARTED if STARTED[start] in _ENDS) | {"async-update"}


@dataclass(slots=True)
class SideEffects:
    """Side effects of the instructions of one module; computations are looked into once."""

    is_spmd: bool
    """Whether the module is partitioned: collectives with a channel then have no effect of their own."""
    computations: Mapping[str, ComputationOp]
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    @staticmethod
    def of(module: HloModule) -> SideEffects:
        """For `module` as it is now."""
        return SideEffects(module.num_partitions != 1, module.by_name())

    def of_instruction(self, op: Instruction) -> bool:
        """Whether `op`, or anything it calls, has a side effect."""
        if op.opcode.name in _ENDS and (start := self._start(op)) is not None:
            op = start
        return self._own(op) or any(map(self.of_computation, op.called_computations))

    def of_computation(self, name: str) -> bool:
        """Whether any instruction reachable from the computation has a side effect."""
        called: dict[str, list[str]] = {}
        stack = [name]
        while stack:
            current = stack[-1]
            if current in self._known or current not in self.computations:
                stack.pop()
            elif current not in called:
                called[current] = self._called(current)
                stack += called[current]
            else:
                stack.pop()
                self._known[current] = any(self._known.get(c, False) for c in called[current])
        return self._known.get(name, False)

    def _called(self, name: str) -> list[str]:
        """What a computation calls, as far as it is not known yet; nothing where it has an effect itself."""
        found: dict[str, None] = {}
        for op in self.computations[name].instructions:
            if self._own(op):
                self._known[name] = True
                return []
            found.update(dict.fromkeys(op.called_computations))
        return list(found)

    def _own(self, op: Instruction) -> bool:
        row = op.opcode
        if row.side_effect:
            return True
        if row.name in _ENDS:
            # What its start calls is found there: in the same computation.
            return (start := self._start(op)) is None or self._own(start)
        if row.name == "custom-call":
            return bool_of(op.properties.get("custom_call_has_side_effect"))
        if row.collective:
            if row.name.endswith(("-start", "-done")):
                return True
            if bool_of(op.properties.get("constrain_layout")):
                return True
            return "channel_id" in op.properties and not self.is_spmd
        return False

    def _start(self, end: Instruction) -> Instruction | None:
        """The start of an asynchronous pair that goes with its end; None where it stays, or there is none."""
        for _ in range(_MAX_CHAIN):
            if end.opcode.name not in _ENDS:
                return end
            start = end.operands[0].owner
            if not isinstance(start, Instruction) or start.opcode.name not in _HAVE_ENDS:
                return None
            if start.control_predecessors or not start.output.has_one_use():
                return None
            end = start
        return None
