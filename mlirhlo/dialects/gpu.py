"""xDSL's gpu dialect with the ops it lacks, under their MLIR names.

Source: MLIR's gpu dialect.
"""

from __future__ import annotations

from enum import auto
from typing import Any, ClassVar, cast

from xdsl.dialects import gpu as xgpu
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    MemRefType,
    SignlessIntegerConstraint,
    i1,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

GLOBAL, SHARED = 1, 3
"""Memory spaces of memrefs: NVIDIA's numbers. A memref without one is the thread's own."""

CONTAINER = "gpu.container_module"
"""Attribute of a module with kernels and the functions that launch them."""

LAUNCHED = "gpu.kernel"
"""Attribute of functions of other dialects that are launched."""


class Shuffle(StrEnum):
    """Which thread of the warp a value comes from."""

    Xor = auto()
    Up = auto()
    Down = auto()
    Idx = auto()


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[Shuffle], SpacedOpaqueSyntaxAttribute):
    """A `Shuffle`."""

    name = "gpu.shuffle_mode"


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
    mode = prop_def(ShuffleModeAttr)


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The shared memory of a block whose size the launch says."""

    name = "gpu.dynamic_shared_memory"
    result = result_def(base(MemRefType))


@irdl_op_definition
class MemcpyOp(IRDLOperation):
    """Copies an array; unlike xDSL's, between memory spaces too."""

    name = "gpu.memcpy"
    dependencies = var_operand_def(xgpu.AsyncTokenType)
    target = operand_def(base(MemRefType))
    source = operand_def(base(MemRefType))
    token = opt_result_def(xgpu.AsyncTokenType)

    def __init__(self, target: SSAValue, source: SSAValue) -> None:
        super().__init__(operands=[[], target, source], result_types=[[]])

    def verify_(self) -> None:
        types = [cast("MemRefType[Any]", v.type) for v in (self.target, self.source)]
        if len({(t.element_type, t.shape) for t in types}) > 1:
            raise VerifyException("gpu.memcpy copies between arrays of one shape and element type")


_OWN = (DynamicSharedMemoryOp, MemcpyOp, ShuffleOp)
_NAMES = {cls.name for cls in _OWN}

GPU = Dialect(
    "gpu",
    [*(op for op in xgpu.GPU.operations if op.name not in _NAMES), *_OWN],
    [*xgpu.GPU.attributes, ShuffleModeAttr],
)
"""The dialect to register in place of xDSL's."""
