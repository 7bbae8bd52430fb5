"""Kind `elements`: each thread computes one element of every result, or neighbours along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import AssembleOp, GatherOp, MapOp, sizes_of
from mlirhlo.lowering.gpu.elements import ElementBuilder, Indices
from mlirhlo.lowering.gpu.launches import THREADS, Plan, inputs_of, launches
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.reads import read_where_written


@launches("elements")
def elements(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch over the elements of the ops' results, which are of one shape."""
    sizes = sizes_of(ops[0].results[0])
    count = prod(sizes)
    if not count:
        return
    vector = schedule.vector or 1
    outputs = [value for op in ops for value in op.results]
    b = plan.begin(inputs_of(plan, ops, ops), outputs)
    b.read_in_place(read_where_written(ops))

    has_pieces = any(isinstance(op, AssembleOp) for op in ops)

    def body(index: SSAValue) -> None:
        lanes = b.e.neighbours(index, vector, sizes)
        if vector > 1:
            _read_first(b.e, ops, lanes)
        found = [(value, at, b.e.at(value, at)) for at in lanes for value in outputs]
        if has_pieces:
            b.sync_warp()  # else each piece's elements are written where they are read, by a request of their own
        for value, at, element in found:
            b.write(value, at, element)

    whole = count // vector
    threads = schedule.threads or min(THREADS, -(-whole // 32) * 32)
    b.launch(b.each_thread(whole, threads, body), threads)


def _read_first(e: ElementBuilder, ops: Sequence[Operation], lanes: Sequence[Indices]) -> None:
    """Reads what maps read of memory for all lanes before anything is computed: branches of the element math, of sines
    for example, would otherwise stand between the reads, and LLVM makes vectors of neighbours in one block only."""
    for op in ops:
        if isinstance(op, GatherOp):
            for at in lanes:
                e.at(op.output, at)
        if isinstance(op, MapOp):
            for value, map_ in zip(op.inputs, op.index_maps, strict=True):
                if value in e.buffers:
                    for at in lanes:
                        e.at(value, e.mapped(map_, at, op.space))
