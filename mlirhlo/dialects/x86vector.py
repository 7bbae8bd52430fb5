"""Vector instructions of x86 that no other dialect has: MLIR's x86vector dialect, in part.

Printed in the generic form, which readers without the dialect take too.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, VectorType, i32
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
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


@irdl_op_definition
class CvtPackedF32ToBF16Op(IRDLOperation):
    """f32 rounded to nearest even in bf16; subnormal numbers become zero, NaN stays NaN, quiet."""

    name = "x86vector.avx512.cvt.packed.f32_to_bf16"
    a = operand_def(VectorType)
    dst = result_def(VectorType)
    traits = traits_def(Pure())


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


X86Vector = Dialect("x86vector", [CvtPackedF32ToBF16Op, DotBF16Op, MaskScaleFOp], [])
