"""Instructions of x86 that MLIR has no op for, in this project's own namespace, `mlirhlo`.

Printed in the generic form, which readers without the dialect take too.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, UnitAttr, VectorType, i32
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirhlo.dialects.amx import TileType


@irdl_op_definition
class ClassFOp(IRDLOperation):
    """Which lanes are of the kinds whose bits are set in `imm`: 1 quiet NaN, 32 subnormal, 128 signalling NaN."""

    name = "mlirhlo.fpclass"
    a = operand_def(VectorType)
    imm = operand_def(i32)
    dst = result_def(VectorType)
    traits = traits_def(Pure())


@irdl_op_definition
class DotI16Op(IRDLOperation):
    """`a[2l] * b[2l] + a[2l + 1] * b[2l + 1]` of signed 16-bit numbers in 32 bits, wrapping."""

    name = "mlirhlo.dot_i16"
    A: ClassVar = VarConstraint("A", base(VectorType))
    a = operand_def(A)
    b = operand_def(A)
    dst = result_def(VectorType)
    traits = traits_def(Pure())


@irdl_op_definition
class DotI8Op(IRDLOperation):
    """To each lane of `w`, the sum of four products of neighbouring bytes of `a` and `b`, wrapping.

    Bytes are signed, or unsigned where that is said, which MLIR's op cannot say: not `b` alone."""

    name = "mlirhlo.dot_i8"
    A: ClassVar = VarConstraint("A", base(VectorType))
    T: ClassVar = VarConstraint("T", base(VectorType))
    w = operand_def(T)
    a = operand_def(A)
    b = operand_def(A)
    dst = result_def(T)
    is_zext_a = opt_prop_def(UnitAttr, prop_name="isZextA")
    is_zext_b = opt_prop_def(UnitAttr, prop_name="isZextB")
    traits = traits_def(Pure())


@irdl_op_definition
class MaskRangeOp(IRDLOperation):
    """The lesser (`which` 4) or greater (5) of `a` and `b`, or the greater of their magnitudes (11), where the mask
    `k` is set, else `src`: of zeros by their signs, of a number and a NaN the number; `imm` is how (4: as all else)."""

    name = "mlirhlo.range"
    T: ClassVar = VarConstraint("T", base(VectorType))
    src = operand_def(T)
    a = operand_def(T)
    b = operand_def(T)
    k = operand_def(IntegerType)
    which = operand_def(i32)
    imm = operand_def(i32)
    dst = result_def(T)
    traits = traits_def(Pure())


@irdl_op_definition
class PermuteOp(IRDLOperation):
    """Of `a`, or of `a` and then `b`, the lanes whose numbers are the low bits of `places`."""

    name = "mlirhlo.permute"
    T: ClassVar = VarConstraint("T", base(VectorType))
    places = operand_def(VectorType)
    a = operand_def(T)
    b = opt_operand_def(T)
    dst = result_def(T)
    traits = traits_def(Pure())


@irdl_op_definition
class ReciprocalRootOp(IRDLOperation):
    """`1 / sqrt(a)` of a whole vector, within 2**-14 of it."""

    name = "mlirhlo.rsqrt14"
    T: ClassVar = VarConstraint("T", base(VectorType))
    a = operand_def(T)
    dst = result_def(T)
    traits = traits_def(Pure())


@irdl_op_definition
class TileLoadOp(IRDLOperation):
    """Rows from memory, `stride` bytes apart."""

    name = "mlirhlo.tile_load"
    base = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    stride = operand_def(IndexType)
    res = result_def(TileType)


@irdl_op_definition
class TileStoreOp(IRDLOperation):
    """Rows to memory, `stride` bytes apart."""

    name = "mlirhlo.tile_store"
    base = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    stride = operand_def(IndexType)
    val = operand_def(TileType)


X86 = Dialect(
    "mlirhlo",
    [
        ClassFOp,
        DotI8Op,
        DotI16Op,
        MaskRangeOp,
        PermuteOp,
        ReciprocalRootOp,
        TileLoadOp,
        TileStoreOp,
    ],
    [],
)
