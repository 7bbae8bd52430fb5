"""When `async-start(…), calls=%f` may be written `add-start(…)`.

XLA writes the short form for every computation of parameters and one root. Where the root does not
take the parameters in order and once each, that loses meaning; there the long form is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats.hlo_text.printer_order import Lists


class AsyncSugar:
    """Which async instructions have a short form, and which computations it hides."""

    def __init__(self, computations: Mapping[str, ComputationOp], lists: Lists) -> None:
        self._wrapped: dict[int, Instruction] = {}
        self.hidden: set[str] = set()
        for instructions in lists.values():
            for op in instructions:
                opcode = op.opcode.name
                if opcode == "async-start":
                    self._start(op, computations)
                elif opcode in ("async-update", "async-done"):
                    before = op.inputs[0].owner if op.inputs else None
                    wrapped = self._wrapped.get(id(before))
                    if wrapped is not None:
                        self._wrapped[id(op)] = wrapped

    def _start(self, op: Instruction, computations: Mapping[str, ComputationOp]) -> None:
        names = op.called_computations
        callee = computations.get(names[0]) if names else None
        if callee is None:
            return
        root = callee.root
        others = [other for other in callee.instructions if other is not root]
        in_order = [value.owner for value in root.inputs]
        if (
            isinstance(root, ParameterOp)
            or "control_predecessors" in root.properties
            or not all(isinstance(other, ParameterOp) for other in others)
            or in_order != list(callee.parameters)
            or root.opcode.name + "-start" in OPCODES
        ):
            return
        self._wrapped[id(op)] = root
        self.hidden.add(callee.computation_name)

    def wrapped(self, op: Instruction) -> Instruction | None:
        """The instruction that runs aside, when `op` has a short form."""
        return self._wrapped.get(id(op))
