"""Ops of MLIR's nvgpu dialect for matrix units and asynchronous copies, under their names.

Fragments are vectors of one dimension: of 32-bit registers for factors (of numbers, where these have 64 bits), of
numbers for sums. Groups of copies have no tokens; they are waited for in the order in which they were created.
Source: MLIR's nvgpu dialect, PTX `ldmatrix`, `mma` and `cp.async`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Dialect
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
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
    """`a * b + c` of fragments: 16 x `k` by `k` x 8 (8 x 4 by 4 x 8 of f64), of numbers of the type `kind`."""

    name = "nvgpu.mma.sync"
    a = operand_def(base(VectorType))
    b = operand_def(base(VectorType))
    c = operand_def(base(VectorType))
    kind = prop_def(StringAttr)
    result = result_def(base(VectorType))


@irdl_op_definition
class DeviceAsyncCopyOp(IRDLOperation):
    """Copies neighbours from global to shared memory while the thread goes on.

    Only the first `src_elements` of them are read, if that is said; zeros follow.
    """

    name = "nvgpu.device_async_copy"
    dst = operand_def(base(MemRefType))
    dst_indices = var_operand_def(IndexType)
    src = operand_def(base(MemRefType))
    src_indices = var_operand_def(IndexType)
    src_elements = opt_operand_def(IndexType)
    dst_elements = prop_def(IntegerAttr)
    """How many; they have 4, 8 or 16 bytes."""
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class DeviceAsyncCreateGroupOp(IRDLOperation):
    """The copies of the thread that are in no group yet become one."""

    name = "nvgpu.device_async_create_group"


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Waits for the groups of the thread, all but the last `num_groups`."""

    name = "nvgpu.device_async_wait"
    num_groups = prop_def(IntegerAttr)


NVGPU = Dialect(
    "nvgpu",
    [LdMatrixOp, MmaSyncOp, DeviceAsyncCopyOp, DeviceAsyncCreateGroupOp, DeviceAsyncWaitOp],
    [],
)
