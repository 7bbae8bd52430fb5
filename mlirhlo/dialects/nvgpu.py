"""Ops of MLIR's nvgpu dialect for matrix units and asynchronous copies, under their names.

Fragments are vectors of one dimension: of 32-bit registers for factors (of numbers, where these have 64 bits), of
numbers for sums. Groups of copies have no tokens; they are waited for in the order in which they were created.
Source: MLIR's nvgpu dialect, PTX `ldmatrix`, `mma`, `cp.async`, `mbarrier` and `wgmma`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    DenseArrayBase,
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
    var_result_def,
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


@irdl_op_definition
class MBarrierInitOp(IRDLOperation):
    """Makes a barrier in shared memory, whose phase ends when `count` have arrived and all awaited bytes too."""

    name = "nvgpu.mbarrier.init"
    barriers = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    count = prop_def(IntegerAttr)


@irdl_op_definition
class MBarrierFenceOp(IRDLOperation):
    """Copies see the barriers that the thread has made."""

    name = "nvgpu.mbarrier.fence_init"


@irdl_op_definition
class MBarrierArriveOp(IRDLOperation):
    """The thread arrives at a barrier."""

    name = "nvgpu.mbarrier.arrive"
    barriers = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    tx_count = opt_prop_def(IntegerAttr)
    """Bytes of copies that the phase waits for too."""


@irdl_op_definition
class MBarrierTryWaitParityOp(IRDLOperation):
    """Waits until the phase of a barrier that has this parity has ended."""

    name = "nvgpu.mbarrier.try_wait.parity"
    barriers = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    parity = operand_def(IndexType)


@irdl_op_definition
class TmaAsyncLoadOp(IRDLOperation):
    """Copies the box of a tensor map at some coordinates to shared memory; a barrier gets its bytes."""

    name = "nvgpu.tma.async.load"
    dst = operand_def(base(MemRefType))
    dst_indices = var_operand_def(IndexType)
    barriers = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    tensor_map = operand_def(base(MemRefType))
    coordinates = var_operand_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class TmaCreateDescriptorOp(IRDLOperation):
    """A tensor map of a buffer; dimensions are counted from the fastest on."""

    name = "nvgpu.tma.create.descriptor"
    tensor = operand_def(base(MemRefType))
    result = result_def(base(MemRefType))
    element_bytes = prop_def(IntegerAttr)
    sizes = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    box = prop_def(DenseArrayBase)
    swizzle = prop_def(IntegerAttr)


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """Adds products of 64 rows by `columns` to the sums of a warp group, and waits for them.

    The factors are swizzled tiles in shared memory; of each, `strides` says how many elements there are from one
    product to the next along the terms, and from panel to panel.
    """

    name = "nvgpu.warpgroup.mma"
    a = operand_def(base(MemRefType))
    a_indices = var_operand_def(IndexType)
    b = operand_def(base(MemRefType))
    b_indices = var_operand_def(IndexType)
    sums = var_operand_def()
    totals = var_result_def()
    kind = prop_def(StringAttr)
    count = prop_def(IntegerAttr)
    """How many products, one after the other along the terms."""
    columns = prop_def(IntegerAttr)
    a_strides = prop_def(DenseArrayBase)
    b_strides = prop_def(DenseArrayBase)
    transpose_a = opt_prop_def(UnitAttr)
    transpose_b = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


NVGPU = Dialect(
    "nvgpu",
    [
        LdMatrixOp,
        MmaSyncOp,
        DeviceAsyncCopyOp,
        DeviceAsyncCreateGroupOp,
        DeviceAsyncWaitOp,
        MBarrierInitOp,
        MBarrierFenceOp,
        MBarrierArriveOp,
        MBarrierTryWaitParityOp,
        TmaAsyncLoadOp,
        TmaCreateDescriptorOp,
        WarpgroupMmaOp,
    ],
    [],
)
