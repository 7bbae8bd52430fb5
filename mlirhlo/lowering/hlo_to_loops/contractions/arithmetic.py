"""What a contraction multiplies and adds in, by the types of its operands and result.

Floats of at most 32 bits are summed in f32, as XLA:CPU does; f64 in f64; integers of at most 32 bits in
32 bits, wrapping, which leaves the low bits right; pred as counts. Operands whose numbers bf16, eight
or sixteen bits hold exactly are multiplied as those where the processor has instructions for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.element_types import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    PRED,
    S8,
    S16,
    S32,
    S64,
    U8,
    PrimitiveType,
)
from mlirhlo.lowering.target import Target

_EXACT_IN_BF16 = frozenset(
    {"bf16", "f8e4m3fn", "f8e4m3", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2", "f8e3m4", "f4e2m1fn"}
)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How products are made and summed."""

    lhs: PrimitiveType
    """Type of the left factors as they are multiplied."""
    rhs: PrimitiveType
    total: PrimitiveType
    """Type of the sums."""
    group: int = 1
    """Neighbours along the depth that are multiplied at once: they lie side by side in a unit."""
    tiles: bool = False
    """Whether tile registers do it."""
    moved: bool = False
    """Whether bytes on the left have their highest bit turned, which moves them by half of their range:
    the instruction multiplies unsigned by signed ones. The micro-kernel takes away what that adds."""

    @property
    def name(self) -> str:
        """Part of the names of micro-kernels."""
        types = (self.lhs,) if self.lhs is self.rhs else (self.lhs, self.rhs)
        how = ["tiles"] * self.tiles + ["moved"] * self.moved
        return "_".join([*(t.name for t in types), *how])

    @property
    def parts(self) -> int:
        """Numbers to an element: two for complex ones."""
        return 2 if self.total.is_complex else 1


def choose(
    lhs: PrimitiveType, rhs: PrimitiveType, result: PrimitiveType, algorithm: str, target: Target
) -> Arithmetic:
    """The arithmetic for a contraction. `algorithm`: of a dot, in lower case; `unset` elsewhere."""
    types = (lhs, rhs, result)
    if result.is_complex:
        total = C128 if any(t.real.bits == 64 for t in types) else C64
        return Arithmetic(total, total, total)
    if any(t.is_float for t in types):
        if F64 in types:
            return Arithmetic(F64, F64, F64)
        rounds = "bf16" in algorithm and "_x" not in algorithm
        small = all(t.name in _EXACT_IN_BF16 or (rounds and t is F32) for t in (lhs, rhs))
        if small and target.has("amx-bf16", "amx-tile"):
            return Arithmetic(BF16, BF16, F32, 2, tiles=True)
        if small and target.has("avx512bf16"):
            return Arithmetic(BF16, BF16, F32, 2)
        return Arithmetic(F32, F32, F32)
    if result.bits <= 32 and all(t is PRED or t.bits <= 8 for t in (lhs, rhs)):
        left, right = (S8 if t.is_signed else U8 for t in (lhs, rhs))
        if target.has("amx-int8", "amx-tile"):
            return Arithmetic(left, right, S32, 4, tiles=True)
        if target.multiplies_bytes:
            left, right = _of_two_signs(lhs, rhs)
            alike = left is right and not target.multiplies_bytes_of_one_sign
            return Arithmetic(left, right, S32, 4, moved=alike)
    if result.bits <= 32 and all(_fits_s16(t) for t in (lhs, rhs)) and target.multiplies_words:
        return Arithmetic(S16, S16, S32, 2)
    wide = S64 if result.bits > 32 else S32
    return Arithmetic(wide, wide, wide)


def _of_two_signs(lhs: PrimitiveType, rhs: PrimitiveType) -> tuple[PrimitiveType, PrimitiveType]:
    """Bytes that hold the operands, one unsigned and one signed where that can be."""
    left, right = (S8 if t.is_signed else U8 for t in (lhs, rhs))
    if left is right is U8 and (lhs is PRED or lhs.bits < 8):
        return S8, right
    if left is right is U8 and (rhs is PRED or rhs.bits < 8):
        return left, S8
    return left, right


def _fits_s16(t: PrimitiveType) -> bool:
    return t is PRED or t.bits <= (16 if t.is_signed else 8)


def one_by_one(a: Arithmetic) -> Arithmetic:
    """The same sums without groups: where memory is the limit, packing is what costs."""
    return Arithmetic(a.total, a.total, a.total)


def rounding(element: PrimitiveType, algorithm: str) -> PrimitiveType | str | None:
    """What `algorithm` rounds an operand to before it is multiplied; None for what stays."""
    if element not in (F32, F64) or "_x" in algorithm:
        return None
    if "bf16" in algorithm:
        return BF16
    if "tf32" in algorithm:
        return "tf32"
    return F16 if "f16" in algorithm else None
