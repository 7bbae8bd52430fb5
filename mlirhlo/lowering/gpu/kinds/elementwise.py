"""Kind `elements`: each thread computes one element of every result, or neighbours along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import sizes_of
from mlirhlo.lowering.gpu.launches import THREADS, Plan, inputs_of, launches
from mlirhlo.lowering.schedule.attributes import Schedule


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

    def body(index: SSAValue) -> None:
        first = b.e.unlinear(b.index(b.mul(index, vector)), sizes)
        for lane in range(vector):
            indices = b.e.beside(first, lane, sizes)
            for value in outputs:
                b.write(value, indices, b.e.at(value, indices))

    whole = count // vector
    threads = schedule.threads or min(THREADS, -(-whole // 32) * 32)
    b.launch(b.each_thread(whole, threads, body), threads)
