"""Kind `scan`: a thread a line, which carries the state along it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import ScanOp, sizes_of
from mlirhlo.lowering.gpu.elements import regrouped
from mlirhlo.lowering.gpu.launches import THREADS, Plan, inputs_of, launches
from mlirhlo.lowering.schedule.attributes import Schedule


@launches("scan")
def scan(plan: Plan, ops: Sequence[ScanOp], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        _scan(plan, op, schedule)


def _scan(plan: Plan, op: ScanOp, schedule: Schedule) -> None:
    sizes = sizes_of(op.inputs[0])
    rest = (*sizes[: op.dim], *sizes[op.dim + 1 :])
    count, length = prod(rest), sizes[op.dim]
    if not count:
        return
    b = plan.begin(inputs_of(plan, [op]), op.outputs)
    per_element = len(op.outputs) - len(op.inits)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, rest)
        state = [b.e.at(value, at) for value in op.inits]
        shapes = [len(v) for v in state]
        parts = [part for v in state for part in v]
        if length:
            with b.loop(0, length, 1, parts, nonempty=True) as loop, b.e.scope():
                along = b.sub(length - 1, loop.index) if op.reverse is not None else loop.index
                here = (*at[: op.dim], along, *at[op.dim :])
                inputs = [b.e.at(value, here) for value in op.inputs]
                made = b.e.body(op.body, [*inputs, *regrouped(loop.carried, shapes)])
                for value, element in zip(op.outputs[:per_element], made, strict=False):
                    b.write(value, here, element)
                loop.carry(*(part for v in made[per_element:] for part in v))
            state = regrouped(loop.results, shapes)
        for value, element in zip(op.outputs[per_element:], state, strict=True):
            b.write(value, at, element)

    threads = schedule.threads or min(THREADS, -(-count // 32) * 32)
    b.launch(b.each_thread(count, threads, body), threads)
