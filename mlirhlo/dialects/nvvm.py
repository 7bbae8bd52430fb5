"""Ops of MLIR's nvvm dialect that kernels of the gpu dialect use, under their names, and one that it lacks.

Source: MLIR's nvvm dialect.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
)
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
    var_result_def,
)


@irdl_op_definition
class NanosleepOp(IRDLOperation):
    """Lets other threads run for about so many nanoseconds."""

    name = "nvvm.nanosleep"
    duration = prop_def(IntegerAttr)


@irdl_op_definition
class SyncWarpOp(IRDLOperation):
    """All threads of the warp that `mask` has come here before any goes on, and see what the others wrote."""

    name = "nvvm.bar.warp.sync"
    mask = operand_def(i32)


@irdl_op_definition
class MatchSyncOp(IRDLOperation):
    """The threads of the warp, a bit each, that have the same value (`kind` is `any`)."""

    name = "nvvm.match.sync"
    kind = prop_def(IntegerAttr)
    thread_mask = operand_def(i32)
    val = operand_def(i32)
    res = result_def(i32)


@irdl_op_definition
class AddPairOp(IRDLOperation):
    """Adds two neighbours of 16 bits to those in global memory, each at once. MLIR has no op for it."""

    name = "nvvm.red.add.pair"
    value = operand_def(base(VectorType))
    target = operand_def(base(MemRefType))
    indices = var_operand_def(IndexType)


@irdl_op_definition
class InlinePtxOp(IRDLOperation):
    """Instructions as text: `$0`, `$1` … are results, then operands; the first `ties` of these are results before."""

    name = "nvvm.inline_ptx"
    inputs = var_operand_def()
    outputs = var_result_def()
    ptx_code = prop_def(StringAttr)
    ties = prop_def(IntegerAttr)


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """So many threads of the block come to the barrier of a number before any goes on."""

    name = "nvvm.barrier"
    barrier_id = operand_def(i32)
    number_of_threads = operand_def(i32)


@irdl_op_definition
class ClusterArriveOp(IRDLOperation):
    """Arrives at the barrier of the cluster: what the thread wrote before is seen by those that wait."""

    name = "nvvm.cluster.arrive"
    aligned = opt_prop_def(UnitAttr)


@irdl_op_definition
class ClusterWaitOp(IRDLOperation):
    """Waits until all threads of the cluster have arrived at its barrier."""

    name = "nvvm.cluster.wait"
    aligned = opt_prop_def(UnitAttr)


@irdl_op_definition
class ClusterLoadOp(IRDLOperation):
    """An element of a buffer in shared memory, as a block of the cluster has it. MLIR has no op for it."""

    name = "nvvm.ld.cluster"
    source = operand_def(base(MemRefType))
    index = operand_def(IndexType)
    block = operand_def(i32)
    result = result_def()


NVVM = Dialect(
    "nvvm",
    [
        AddPairOp,
        BarrierOp,
        ClusterArriveOp,
        ClusterLoadOp,
        ClusterWaitOp,
        InlinePtxOp,
        MatchSyncOp,
        NanosleepOp,
        SyncWarpOp,
    ],
    [],
)
"""The dialect, of these ops."""
