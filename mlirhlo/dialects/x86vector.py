"""Vector instructions of x86 that no other dialect has: MLIR's x86vector dialect, in part."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, UnitAttr, VectorType, i32
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


@irdl_op_definition
class DotBF16Op(IRDLOperation):
    """`src[l] + a[2l] * b[2l] + a[2l + 1] * b[2l + 1]` of bf16 in f32; subnormal numbers are zero."""

    name = "x86vector.avx512.dot"
    A: ClassVar = VarConstraint("A", base(VectorType))
    T: ClassVar = VarConstraint("T", base(VectorType))
    src = operand_def(T)
    a = operand_def(A)
    b = operand_def(A)
    dst = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"


@irdl_op_definition
class DotI8Op(IRDLOperation):
    """To each lane of `w`, the sum of four products of neighbouring bytes of `a` and `b`, wrapping.

    Bytes are signed, or unsigned where that is said, which MLIR's op cannot say: not `b` alone.
    """

    name = "x86vector.avx.dot.i8"
    A: ClassVar = VarConstraint("A", base(VectorType))
    T: ClassVar = VarConstraint("T", base(VectorType))
    w = operand_def(T)
    a = operand_def(A)
    b = operand_def(A)
    dst = result_def(T)
    is_zext_a = opt_prop_def(UnitAttr, prop_name="isZextA")
    is_zext_b = opt_prop_def(UnitAttr, prop_name="isZextB")
    traits = traits_def(Pure())
    assembly_format = (
        "$w `,` $a (`zext` $isZextA^)? `,` $b (`zext` $isZextB^)? attr-dict `:` "
        "type($a) `->` type($w)"
    )


@irdl_op_definition
class DotI16Op(IRDLOperation):
    """`a[2l] * b[2l] + a[2l + 1] * b[2l + 1]` of signed 16-bit numbers in 32 bits, wrapping.
    An instruction that MLIR's dialect does not have."""

    name = "x86vector.dot.i16"
    A: ClassVar = VarConstraint("A", base(VectorType))
    a = operand_def(A)
    b = operand_def(A)
    dst = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($a) `->` type($dst)"


@irdl_op_definition
class CvtPackedF32ToBF16Op(IRDLOperation):
    """f32 rounded to nearest even in bf16; subnormal numbers become zero, NaN stays NaN, quiet."""

    name = "x86vector.avx512.cvt.packed.f32_to_bf16"
    a = operand_def(VectorType)
    dst = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$a attr-dict `:` type($a) `->` type($dst)"


@irdl_op_definition
class ClassFOp(IRDLOperation):
    """Which lanes are of the kinds whose bits are set in `imm`: 1 quiet NaN, 32 subnormal, 128 signalling NaN.
    An instruction that MLIR's dialect does not have."""

    name = "x86vector.avx512.fpclass"
    a = operand_def(VectorType)
    imm = operand_def(i32)
    dst = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $imm attr-dict `:` type($a) `->` type($dst)"


@irdl_op_definition
class MaskScaleFOp(IRDLOperation):
    """`a * 2**floor(b)` where the mask `k` is set, rounded once, else `src`; `imm` is how (4: as all else)."""

    name = "x86vector.avx512.mask.scalef"
    T: ClassVar = VarConstraint("T", base(VectorType))
    src = operand_def(T)
    a = operand_def(T)
    b = operand_def(T)
    k = operand_def(IntegerType)
    imm = operand_def(i32)
    dst = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$src `,` $a `,` $b `,` $k `,` $imm attr-dict `:` type($k) `,` type($src)"


@irdl_op_definition
class MaskRangeOp(IRDLOperation):
    """The lesser (`which` 4) or greater (5) of `a` and `b` where the mask `k` is set, else `src`: of zeros by
    their signs, of a number and a NaN the number; `imm` is how (4: as all else)."""

    name = "x86vector.avx512.mask.range"
    T: ClassVar = VarConstraint("T", base(VectorType))
    src = operand_def(T)
    a = operand_def(T)
    b = operand_def(T)
    k = operand_def(IntegerType)
    which = operand_def(i32)
    imm = operand_def(i32)
    dst = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$src `,` $a `,` $b `,` $k `,` $which `,` $imm attr-dict `:` type($k) `,` type($src)"
    )


@irdl_op_definition
class PermuteOp(IRDLOperation):
    """Of `a`, or of `a` and then `b`, the lanes whose numbers are the low bits of `places`.
    An instruction that MLIR's dialect does not have."""

    name = "x86vector.avx512.permute"
    T: ClassVar = VarConstraint("T", base(VectorType))
    places = operand_def(VectorType)
    a = operand_def(T)
    b = opt_operand_def(T)
    dst = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$places `,` $a (`,` $b^)? attr-dict `:` type($places) `,` type($a)"


X86Vector = Dialect(
    "x86vector",
    [
        *(ClassFOp, CvtPackedF32ToBF16Op, DotBF16Op, DotI8Op, DotI16Op),
        *(MaskRangeOp, MaskScaleFOp, PermuteOp),
    ],
    [],
)
