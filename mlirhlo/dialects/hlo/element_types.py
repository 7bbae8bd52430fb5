"""XLA's primitive types: one row each; text, proto, MLIR and numpy names are read from it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute

if TYPE_CHECKING:
    import numpy as np


class Kind(Enum):
    """Family of a primitive type."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    OTHER = "other"
    """token, opaque, tuple and buffer: no array of them exists."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """One element type of HLO. Compared by identity through the table `PRIMITIVE_TYPES`."""

    name: str
    """As in HLO text: `f32`."""
    number: int
    """Enum value in protos."""
    bits: int
    """Logical width in bits; pred counts 1."""
    kind: Kind
    mlir: Attribute | None = field(default=None, compare=False, repr=False)
    """Element type of the MLIR tensor; None for types that no array has."""
    numpy_name: str = field(default="", compare=False)
    """Name of the numpy or ml_dtypes type; see `dtype`."""
    digits: int = field(default=0, compare=False)
    """Significant digits of the `%g` XLA prints it with (first try, for f32 and f64)."""
    proto_field: str = field(default="", compare=False)
    """Field of LiteralProto that holds its values."""
    proto_name: str = field(default="", compare=False)
    """Name of the proto enum value when it is not the upper-case text name."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Real floating point."""
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        """c64 or c128."""
        return self.kind is Kind.COMPLEX

    @property
    def is_signed(self) -> bool:
        """Signed integer."""
        return self.kind is Kind.SIGNED

    @property
    def is_unsigned(self) -> bool:
        """Unsigned integer (not pred)."""
        return self.kind is Kind.UNSIGNED

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer (not pred)."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_array(self) -> bool:
        """Whether arrays may have this element type."""
        return self.kind is not Kind.OTHER

    @property
    def has_infinity(self) -> bool:
        """Whether it is a float with infinities."""
        return self.is_float and (self.bits >= 16 or self.name in ("f8e5m2", "f8e4m3", "f8e3m4"))

    @property
    def has_zero(self) -> bool:
        """Whether zero is one of its numbers, as it is not of powers of two."""
        return self.name != "f8e8m0fnu"

    @property
    def byte_size(self) -> int:
        """Bytes an element takes when it is not packed: 1 for pred and sub-byte types."""
        return max(1, (self.bits + 7) // 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype (ml_dtypes for bf16, f8, f6, f4 and sub-byte integers)."""
        return _dtype(self)

    @property
    def real(self) -> PrimitiveType:
        """Type of the real part of a complex type; the type itself otherwise."""
        return {"c64": F32, "c128": F64}.get(self.name, self)

    @property
    def complex(self) -> PrimitiveType | None:
        """Complex type with this type as its parts: c64 for f32, c128 for f64, else None."""
        return {"f32": C64, "f64": C128}.get(self.name)


@functools.lru_cache(maxsize=1024)
def _dtype(type_: PrimitiveType) -> np.dtype[Any]:
    import ml_dtypes
    import numpy as np

    if not type_.numpy_name:
        raise TypeError(f"{type_} has no numpy type")
    scalar = getattr(np, type_.numpy_name, None) or getattr(ml_dtypes, type_.numpy_name)
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


def _integer(name: str, number: int, bits: int, *, signed: bool) -> PrimitiveType:
    # pred is i1, so the one-bit integers carry their sign; wider signed ones are signless as in MHLO.
    if signed:
        mlir = builtin.IntegerType(
            bits, builtin.Signedness.SIGNED if bits == 1 else builtin.Signedness.SIGNLESS
        )
    else:
        mlir = builtin.IntegerType(bits, builtin.Signedness.UNSIGNED)
    kind = Kind.SIGNED if signed else Kind.UNSIGNED
    return PrimitiveType(
        name, number, bits, kind, mlir, ("int" if signed else "uint") + str(bits), 0, name + "s"
    )


def _float(
    name: str, number: int, bits: int, mlir: Attribute, numpy_name: str, digits: int
) -> PrimitiveType:
    return PrimitiveType(name, number, bits, Kind.FLOAT, mlir, numpy_name, digits, name + "s")


PRED = PrimitiveType("pred", 1, 1, Kind.PRED, builtin.i1, "bool_", 0, "preds")
S1 = _integer("s1", 30, 1, signed=True)
S2 = _integer("s2", 26, 2, signed=True)
S4 = _integer("s4", 21, 4, signed=True)
S8 = _integer("s8", 2, 8, signed=True)
S16 = _integer("s16", 3, 16, signed=True)
S32 = _integer("s32", 4, 32, signed=True)
S64 = _integer("s64", 5, 64, signed=True)
U1 = _integer("u1", 31, 1, signed=False)
U2 = _integer("u2", 27, 2, signed=False)
U4 = _integer("u4", 22, 4, signed=False)
U8 = _integer("u8", 6, 8, signed=False)
U16 = _integer("u16", 7, 16, signed=False)
U32 = _integer("u32", 8, 32, signed=False)
U64 = _integer("u64", 9, 64, signed=False)
F16 = _float("f16", 10, 16, builtin.f16, "float16", 5)
BF16 = _float("bf16", 16, 16, builtin.bf16, "bfloat16", 4)
F32 = _float("f32", 11, 32, builtin.f32, "float32", 6)
F64 = _float("f64", 12, 64, builtin.f64, "float64", 15)
F8E5M2 = _float("f8e5m2", 19, 8, builtin.Float8E5M2Type(), "float8_e5m2", 2)
F8E5M2FNUZ = _float("f8e5m2fnuz", 24, 8, builtin.Float8E5M2FNUZType(), "float8_e5m2fnuz", 2)
F8E4M3 = _float("f8e4m3", 28, 8, builtin.Float8E4M3Type(), "float8_e4m3", 3)
F8E4M3FN = _float("f8e4m3fn", 20, 8, builtin.Float8E4M3FNType(), "float8_e4m3fn", 3)
F8E4M3B11FNUZ = _float(
    "f8e4m3b11fnuz", 23, 8, builtin.Float8E4M3B11FNUZType(), "float8_e4m3b11fnuz", 3
)
F8E4M3FNUZ = _float("f8e4m3fnuz", 25, 8, builtin.Float8E4M3FNUZType(), "float8_e4m3fnuz", 3)
F8E3M4 = _float("f8e3m4", 29, 8, builtin.Float8E3M4Type(), "float8_e3m4", 3)
F8E8M0FNU = _float("f8e8m0fnu", 33, 8, builtin.Float8E8M0FNUType(), "float8_e8m0fnu", 2)
F4E2M1FN = _float("f4e2m1fn", 32, 4, builtin.Float4E2M1FNType(), "float4_e2m1fn", 2)
F6E3M2FN = _float("f6e3m2fn", 35, 6, builtin.Float6E3M2FNType(), "float6_e3m2fn", 2)
F6E2M3FN = _float("f6e2m3fn", 36, 6, builtin.Float6E2M3FNType(), "float6_e2m3fn", 3)
C64 = PrimitiveType(
    "c64", 15, 64, Kind.COMPLEX, builtin.ComplexType(builtin.f32), "complex64", 6, "c64s"
)
C128 = PrimitiveType(
    "c128", 18, 128, Kind.COMPLEX, builtin.ComplexType(builtin.f64), "complex128", 15, "c128s"
)
TUPLE = PrimitiveType("tuple", 13, 0, Kind.OTHER)
OPAQUE = PrimitiveType("opaque", 14, 0, Kind.OTHER, proto_name="OPAQUE_TYPE")
TOKEN = PrimitiveType("token", 17, 0, Kind.OTHER)
BUFFER = PrimitiveType("buffer", 34, 0, Kind.OTHER)

PRIMITIVE_TYPES: Mapping[str, PrimitiveType] = {
    row.name: row
    for row in (
        PRED, S1, S2, S4, S8, S16, S32, S64, U1, U2, U4, U8, U16, U32, U64,
        F16, BF16, F32, F64, F8E5M2, F8E5M2FNUZ, F8E4M3, F8E4M3FN, F8E4M3B11FNUZ, F8E4M3FNUZ,
        F8E3M4, F8E8M0FNU, F4E2M1FN, F6E3M2FN, F6E2M3FN, C64, C128, TUPLE, OPAQUE, TOKEN, BUFFER,
    )
}  # fmt: skip
"""Every primitive type by its name in HLO text."""

BY_NUMBER: Mapping[int, PrimitiveType] = {row.number: row for row in PRIMITIVE_TYPES.values()}
"""Every primitive type by its proto enum value."""

BY_MLIR: Mapping[Attribute, PrimitiveType] = {
    row.mlir: row for row in PRIMITIVE_TYPES.values() if row.mlir is not None
}
"""Every array element type by its MLIR type."""
