"""Random numbers."""

from __future__ import annotations

from mlirhlo.dialects.hlo.ops.base import (
    Instruction,
    Unary,
    instruction,
    int_property,
    str_property,
)


@instruction("rng")
class RngOp(Instruction):
    """Random numbers between or around its operands."""

    distribution = str_property()


@instruction("rng-bit-generator")
class RngBitGeneratorOp(Unary):
    """New state and random bits."""

    algorithm = str_property()


@instruction("rng-get-and-update-state")
class RngGetAndUpdateStateOp(Instruction):
    """The module's random state, moved on by delta."""

    delta = int_property()
