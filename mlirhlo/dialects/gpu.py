"""xDSL's gpu dialect with the ops it lacks, under their MLIR names.

Source: MLIR's gpu dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import gpu as xgpu
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    MemRefType,
    SignlessIntegerConstraint,
    StringAttr,
    i1,
    i32,
)
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)

GLOBAL, SHARED = 1, 3
"""Memory spaces of memrefs: NVIDIA's numbers. A memref without one is the thread's own."""

SHUFFLES = ("xor", "up", "down", "idx")


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """A value of another thread of the warp, and whether there is one."""

    name = "gpu.shuffle"
    T: ClassVar = VarConstraint("T", AnyFloatConstr | SignlessIntegerConstraint)
    value = operand_def(T)
    offset = operand_def(i32)
    width = operand_def(i32)
    shuffle_result = result_def(T)
    valid = result_def(i1)
    mode = prop_def(StringAttr)
    """One of `SHUFFLES`."""


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The shared memory of a block whose size the launch says."""

    name = "gpu.dynamic_shared_memory"
    result = result_def(base(MemRefType))


GPU = Dialect(
    "gpu",
    [*xgpu.GPU.operations, ShuffleOp, DynamicSharedMemoryOp],
    list(xgpu.GPU.attributes),
)
"""The dialect to register in place of xDSL's."""
