"""`float-normalization-*` of the rarer narrow types: each is computed in the next type that targets have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.rewrites.float_normalization import FloatNormalizationPass

_OF_BITS = frozenset({"count-leading-zeros", "popcnt", "shift-right-logical"})
"""Opcodes that see the bits that widening adds."""


@dataclass(frozen=True)
class _NarrowIntegers(FloatNormalizationPass):
    """Integers of four bits: sums and products of eight bits end in the same four."""

    def _is_wanted(self, op: Instruction) -> bool:
        return op.opcode.name not in _OF_BITS and super()._is_wanted(op)


@dataclass(frozen=True)
class F8e3m4NormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f8e3m4.

    Before and after:

        %s = f8e3m4[4] add(%x, %y)      =>   %s = f8e3m4[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e3m4"
    low: ClassVar[str] = "f8e3m4"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class F8e4m3NormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f8e4m3.

    Before and after:

        %s = f8e4m3[4] add(%x, %y)      =>   %s = f8e4m3[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e4m3"
    low: ClassVar[str] = "f8e4m3"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class F8e4m3b11fnuzNormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f8e4m3b11fnuz.

    Before and after:

        %s = f8e4m3b11fnuz[4] add(%x, %y)      =>   %s = f8e4m3b11fnuz[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e4m3b11fnuz"
    low: ClassVar[str] = "f8e4m3b11fnuz"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class F8e4m3fnuzNormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f8e4m3fnuz.

    Before and after:

        %s = f8e4m3fnuz[4] add(%x, %y)      =>   %s = f8e4m3fnuz[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e4m3fnuz"
    low: ClassVar[str] = "f8e4m3fnuz"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class F8e5m2fnuzNormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f8e5m2fnuz.

    Before and after:

        %s = f8e5m2fnuz[4] add(%x, %y)      =>   %s = f8e5m2fnuz[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e5m2fnuz"
    low: ClassVar[str] = "f8e5m2fnuz"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class F8e8m0fnuNormalizationPass(FloatNormalizationPass):
    """Computes in f32 what the target cannot compute in f8e8m0fnu.

    Before and after:

        %s = f8e8m0fnu[4] add(%x, %y)      =>   %s = f8e8m0fnu[4] convert(f32[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f8e8m0fnu"
    low: ClassVar[str] = "f8e8m0fnu"
    high: ClassVar[str] = "f32"


@dataclass(frozen=True)
class F4e2m1fnNormalizationPass(FloatNormalizationPass):
    """Computes in f16 what the target cannot compute in f4e2m1fn.

    Before and after:

        %s = f4e2m1fn[4] add(%x, %y)      =>   %s = f4e2m1fn[4] convert(f16[4] add(…))

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-f4e2m1fn"
    low: ClassVar[str] = "f4e2m1fn"
    high: ClassVar[str] = "f16"


@dataclass(frozen=True)
class S4NormalizationPass(_NarrowIntegers):
    """Computes in s8 what the target cannot compute in s4.

    Before and after:

        %s = s4[4] add(%x, %y)      =>   %s = s4[4] convert(s8[4] add(…))

    Counting bits and shifting zeros in from above stay, which would see the bits that widening adds.

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-s4"
    low: ClassVar[str] = "s4"
    high: ClassVar[str] = "s8"


@dataclass(frozen=True)
class U4NormalizationPass(_NarrowIntegers):
    """Computes in u8 what the target cannot compute in u4.

    Before and after:

        %s = u4[4] add(%x, %y)      =>   %s = u4[4] convert(u8[4] add(…))

    Counting bits and shifting zeros in from above stay, which would see the bits that widening adds.

    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-u4"
    low: ClassVar[str] = "u4"
    high: ClassVar[str] = "u8"
