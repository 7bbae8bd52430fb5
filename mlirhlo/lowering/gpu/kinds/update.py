"""Kind `update`: a slice is written into the result, which holds a copy of the operand before the kernel begins."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import AssembleOp, sizes_of
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.element_ops import clamped_index
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.schedule.attributes import Schedule


@launches("update")
def update(plan: Plan, ops: Sequence[AssembleOp], schedule: Schedule) -> None:
    """A thread an element of the slice."""
    for op in ops:
        piece = op.pieces[1]
        sizes, count = sizes_of(piece), prod(sizes_of(piece))
        if not count:
            continue
        b = plan.begin(inputs_of(plan, [op]), [op.output])
        rows = zip(op.piece_offsets[1], sizes_of(op.output), sizes, strict=True)
        indices = iter(op.indices)
        starts: list[Index] = [
            clamped_index(b.e, next(indices), (), whole - size) if start == DYNAMIC else start
            for start, whole, size in rows
        ]

        def body(
            number: SSAValue,
            b: LaunchBuilder = b,
            op: AssembleOp = op,
            starts: Sequence[Index] = starts,
        ) -> None:
            at = b.e.unlinear(number, sizes_of(op.pieces[1]))
            element = b.e.at(op.pieces[1], at)
            steps = zip(starts, at, op.piece_strides[1], strict=True)
            there = [b.add(start, b.mul(index, stride)) for start, index, stride in steps]
            b.write(op.output, there, element)

        threads = schedule.threads or min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)
