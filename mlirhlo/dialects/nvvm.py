"""Ops of MLIR's nvvm dialect that kernels of the gpu dialect use, under their names.

Source: MLIR's nvvm dialect.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def


@irdl_op_definition
class NanosleepOp(IRDLOperation):
    """Lets other threads run for about so many nanoseconds."""

    name = "nvvm.nanosleep"
    duration = prop_def(IntegerAttr)


NVVM = Dialect("nvvm", [NanosleepOp], [])
"""The dialect, of these ops."""
