"""Instructions that the CPU compiler compiles from their structured form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.ops import (
    FusionOp,
    ReduceWindowOp,
    RngBitGeneratorOp,
    ScanOp,
    ScatterOp,
    SelectAndScatterOp,
    SortOp,
    TopkOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.hlo_to_loops.kernels import NO_FORM
from mlirhlo.lowering.hlo_to_loops.words import in_words
from mlirhlo.lowering.loops import optimized_loops
from mlirhlo.lowering.structured import to_structured

if TYPE_CHECKING:
    from mlirhlo.lowering.structured.conversion import Computations

FROM_STRUCTURED = (RngBitGeneratorOp, ScanOp, ScatterOp, SelectAndScatterOp, SortOp, TopkOp)
"""Instructions, besides `reduce-window` where it is a scan; those of elements are, as they come to `computed`."""


def kernel_from_structured(name: str, op: Instruction, computations: Computations) -> FuncOp | None:
    """The function `name` that computes `op`, by the stages `structured` and `scheduled`.

    None for what has no structured form, or one that becomes no loops.
    """
    root = op
    if isinstance(op, FusionOp):
        root = computations[op.calls].root
        while root.opcode.name == "reshape" and isinstance(root.inputs[0].owner, Instruction):
            root = root.inputs[0].owner
    if not isinstance(root, FROM_STRUCTURED) and not _is_scan(root):
        return None
    op, computations = in_words(op, computations)
    try:
        return optimized_loops(to_structured(op, computations, name))
    except HloError as problem:
        if problem.code not in NO_FORM:
            raise
        return None


def _is_scan(op: Instruction) -> bool:
    if not isinstance(op, ReduceWindowOp):
        return False
    shape = op.input_shapes[0]
    return (
        isinstance(shape, ArrayShape) and op.window.running_dimension(shape.dimensions) is not None
    )
