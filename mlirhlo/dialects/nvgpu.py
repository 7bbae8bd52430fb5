"""Ops of MLIR's nvgpu dialect for matrix units, under their names.

Fragments are vectors of one dimension: of 32-bit registers for factors, of numbers for sums. Source: MLIR's nvgpu
dialect, PTX `ldmatrix` and `mma`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, UnitAttr, VectorType
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """Four matrices of 8 x 8 numbers of 16 bits from shared memory, `transpose`d or not.

    Lane `8 m + r` of the warp has the indices of row `r` of matrix `m`.
    """

    name = "nvgpu.ldmatrix"
    source = operand_def(base(MemRefType))
    indices = var_operand_def(IndexType)
    transpose = opt_prop_def(UnitAttr)
    result = result_def(base(VectorType))


@irdl_op_definition
class MmaSyncOp(IRDLOperation):
    """`a * b + c` of fragments: 16 x `k` by `k` x 8, of numbers of the type `kind`."""

    name = "nvgpu.mma.sync"
    a = operand_def(base(VectorType))
    b = operand_def(base(VectorType))
    c = operand_def(base(VectorType))
    kind = prop_def(StringAttr)
    result = result_def(base(VectorType))


NVGPU = Dialect("nvgpu", [LdMatrixOp, MmaSyncOp], [])
