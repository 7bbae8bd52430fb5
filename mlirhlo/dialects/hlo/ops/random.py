"""Random numbers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction, instruction, int_property, str_property


@instruction("rng")
class RngOp(Instruction):
    """Random numbers between or around its operands."""

    distribution = str_property()


@instruction("rng-bit-generator")
class RngBitGeneratorOp(Instruction):
    """New state and random bits."""

    algorithm = str_property()

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("rng-get-and-update-state")
class RngGetAndUpdateStateOp(Instruction):
    """The module's random state, moved on by delta."""

    delta = int_property()
