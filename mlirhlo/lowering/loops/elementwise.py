"""map, assemble, gather: elements of results, each computed on its own.

Kinds, in the schedule:
`vectors`  along the last dimension of the results, which pieces of assembled arrays are regions of
`narrow`   along the dimension before the last, which has a few columns: all of them together
`squares`  of an operand that is read across, transposed in registers
`columns`  the same elements of every line: each index is clamped once and read once for some lines

`chunk` elements of results of one dimension, or narrow rows, are a part of the parallel loop; else it is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import (
    AssembleOp,
    GatherOp,
    KernelOp,
    MapOp,
    StructuredOp,
    sizes_of,
)
from mlirhlo.lowering.hlo_to_loops.column_gathers import column_gather, column_gather_kernel
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame, values_between, vector_lanes
from mlirhlo.lowering.hlo_to_loops.narrow_pointwise import ROWS, is_narrow, narrow_kernel
from mlirhlo.lowering.hlo_to_loops.pointwise import piece_of, pointwise_kernel
from mlirhlo.lowering.hlo_to_loops.transposes import SIDE, transpose_kernel, turned_reads
from mlirhlo.lowering.loops.kernel import no_loops
from mlirhlo.lowering.loops.lowering import Lowering, lowers
from mlirhlo.lowering.loops.schedule import LoopSchedule


def _ends(op: StructuredOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """Results and operands of a kernel, by its last op."""
    kernel = cast(KernelOp, op.parent_op())
    return kernel.results_returned, kernel.block.args


@lowers(MapOp, AssembleOp, GatherOp)
class Elementwise(Lowering[Any]):
    """Loops over the elements of a kernel's results; what they are computed from has no memory of its own."""

    kinds = ("vectors", "narrow", "squares", "columns")

    def kind(self, op: StructuredOp) -> str:
        """By how operands are read and results are written."""
        if len(sizes_of(_ends(op)[0][0])) < 2:
            return "vectors"
        return next(k for k in ("squares", "columns", "narrow", "vectors") if self._has(op, k))

    def _has(self, op: StructuredOp, kind: str) -> bool:
        ends = _ends(op)
        if kind == "squares":
            return turned_reads(*ends) is not None
        if kind == "columns":
            return column_gather(*ends) is not None
        return kind == "vectors" or is_narrow(ends[0], self.lanes(op, kind))

    def lanes(self, op: StructuredOp, kind: str) -> int:
        """As many as a register has of the widest type."""
        lanes = vector_lanes(values_between(*_ends(op)))
        return min(lanes, SIDE) if kind == "squares" else lanes

    def chunk(self, op: StructuredOp, schedule: LoopSchedule) -> int:
        """Some pages of an operand."""
        outputs, operands = _ends(op)
        if schedule.kind == "narrow":
            return ROWS
        is_row = schedule.kind == "vectors" and all(len(sizes_of(v)) == 1 for v in outputs)
        return piece_of(outputs, operands, schedule.lanes) if is_row else 1

    def reason_against(self, op: StructuredOp, schedule: LoopSchedule) -> str:
        """The kind has to fit what is read."""
        kind, lanes, chunk = schedule.kind, schedule.lanes, schedule.chunk
        if not self._has(op, kind):
            return "what it reads and writes does not fit its kind"
        if kind != "vectors" and not 2 <= lanes <= SIDE and self.lanes(op, kind) != lanes:
            return f"it has 2 to {SIDE} lanes"
        is_cut = self.chunk(op, schedule) > 1
        if chunk < 1 or (chunk % max(lanes, 1) if is_cut else chunk > 1):
            return "a chunk is a whole number of vectors of the only dimension, or of narrow rows; else 1"
        return ""

    def function(self, kernel: KernelOp, op: StructuredOp, schedule: LoopSchedule) -> FuncOp:
        """The loops."""
        outputs, operands = _ends(op)
        if any(0 in sizes_of(v) for v in values_between(outputs, operands)):
            raise no_loops(op, "an array of it is empty")
        frame = Frame(kernel.kernel_name, outputs, operands, schedule.lanes)
        if schedule.kind == "squares":
            across = turned_reads(outputs, operands)
            assert across is not None
            return transpose_kernel(frame, *across)
        if schedule.kind == "columns":
            gather = column_gather(outputs, operands)
            assert gather is not None
            return column_gather_kernel(frame, gather)
        if schedule.kind == "narrow":
            return narrow_kernel(frame, schedule.chunk)
        return pointwise_kernel(frame, schedule.chunk if schedule.chunk > 1 else 0)
