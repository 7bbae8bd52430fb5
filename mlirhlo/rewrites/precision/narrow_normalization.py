"""`float-normalization-*` of the narrower types: each is computed in the next type that targets have."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.rewrites.precision.float_normalization import FloatNormalizationPass

_OF_BITS = opcodes(lambda row: row.sees_width)
"""Opcodes that see the bits that widening adds."""

_OF_SIGNS = frozenset({"shift-right-arithmetic"})
"""Opcodes that see the sign, which unsigned numbers lose when they are widened."""

_DOC = """Computes in {high} what the target cannot compute in {low}.

Before and after:

    %s = {low}[4] add(%x, %y)      =>   %s = {low}[4] convert({high}[4] add(…))

{more}Source: reference of the passes, "FloatNormalization".
"""


@dataclass(frozen=True)
class _NarrowIntegers(FloatNormalizationPass):
    """Integers of four bits: sums and products of eight bits end in the same four."""

    def _is_wanted(self, op: Instruction) -> bool:
        is_unsigned = PRIMITIVE_TYPES[self.low].kind is Kind.UNSIGNED
        seen = _OF_BITS | _OF_SIGNS if is_unsigned else _OF_BITS
        return op.opcode.name not in seen and super()._is_wanted(op)


def _pass(
    low: str, high: str, base: type[FloatNormalizationPass], more: str = ""
) -> type[FloatNormalizationPass]:
    """The pass that computes `low` in `high`, a class as if it were written out."""
    facts = {
        "__doc__": _DOC.format(low=low, high=high, more=more),
        "__module__": __name__,
        "name": f"float-normalization-{low}",
        "low": low,
        "high": high,
    }
    return type(f"{low.capitalize()}NormalizationPass", (base,), facts)


F8e5m2NormalizationPass = _pass("f8e5m2", "f16", FloatNormalizationPass)
F8e4m3fnNormalizationPass = _pass("f8e4m3fn", "f16", FloatNormalizationPass)
F8e3m4NormalizationPass = _pass("f8e3m4", "f16", FloatNormalizationPass)
F8e4m3NormalizationPass = _pass("f8e4m3", "f16", FloatNormalizationPass)
F8e4m3b11fnuzNormalizationPass = _pass("f8e4m3b11fnuz", "f16", FloatNormalizationPass)
F8e4m3fnuzNormalizationPass = _pass("f8e4m3fnuz", "f16", FloatNormalizationPass)
F8e5m2fnuzNormalizationPass = _pass("f8e5m2fnuz", "f16", FloatNormalizationPass)
F8e8m0fnuNormalizationPass = _pass("f8e8m0fnu", "f32", FloatNormalizationPass)
F4e2m1fnNormalizationPass = _pass("f4e2m1fn", "f16", FloatNormalizationPass)

_S4 = "Counting bits and shifting zeros in from above stay, which would see the bits that widening adds.\n\n"
_U4 = (
    "Counting bits and shifting to the right stay, which would see the bits that widening adds.\n\n"
)
S4NormalizationPass = _pass("s4", "s8", _NarrowIntegers, _S4)
U4NormalizationPass = _pass("u4", "u8", _NarrowIntegers, _U4)
