"""Kind `select_and_scatter`: a thread an element of the result, which looks at each window that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import SelectAndScatterOp, sizes_of
from mlirhlo.dialects.structured.base import ints_of
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.attributes import Schedule


@launches("select_and_scatter")
def select_and_scatter(plan: Plan, ops: Sequence[SelectAndScatterOp], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        sizes = sizes_of(op.output)
        count = prod(sizes)
        if not count:
            continue
        b = plan.begin(inputs_of(plan, [op]), [op.output])
        windows = _Windows(b, op)

        def body(
            index: SSAValue,
            b: LaunchBuilder = b,
            op: SelectAndScatterOp = op,
            windows: _Windows = windows,
        ) -> None:
            at = b.e.unlinear(index, sizes_of(op.output))
            b.write(op.output, at, windows.combined(at))

        threads = schedule.threads or min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)


class _Windows:
    def __init__(self, b: LaunchBuilder, op: SelectAndScatterOp) -> None:
        self.b, self.op = b, op
        self.sizes = ints_of(op.window_sizes)
        self.strides = ints_of(op.window_strides)
        self.dilations = ints_of(op.window_dilations)
        self.bases = ints_of(op.base_dilations)
        self.low = ints_of(op.padding_low)
        self.windows = sizes_of(op.source)
        self.operand = sizes_of(op.operand)

    def combined(self, at: Sequence[Index]) -> Value:
        """The result's element: sources of the windows that select it, in the windows' order."""
        b, e, op = self.b, self.b.e, self.op
        # The last index within the window belongs to the first window.
        count = self.sizes

        def step(dims: Sequence[Index], state: Sequence[Value]) -> Sequence[Value]:
            inside: SSAValue | None = None
            window: list[Index] = []
            for dim, k in enumerate(dims):
                back = b.sub(count[dim] - 1, k)
                start = b.sub(
                    b.add(b.mul(at[dim], self.bases[dim]), self.low[dim]),
                    b.mul(back, self.dilations[dim]),
                )
                number = b.div(start, self.strides[dim])
                test = b.cmpi(
                    "ult", b.index(start), b.index((self.windows[dim] - 1) * self.strides[dim] + 1)
                )
                if self.strides[dim] > 1:
                    rest = b.index(b.rem(start, self.strides[dim]))
                    test = b.andi(test, b.cmpi("eq", rest, b.index(0)))
                inside = test if inside is None else b.andi(inside, test)
                window.append(number)

            def taken() -> Sequence[Value]:
                selected = self._selected(window)
                hit: SSAValue | None = None
                for index, mine in zip(selected, at, strict=True):
                    same = b.cmpi("eq", index, b.index(mine))
                    hit = same if hit is None else b.andi(hit, same)
                if hit is None:
                    return e.body(op.combiner, [state[0], e.at(op.source, window)])
                return e.choose(
                    hit,
                    lambda: e.body(op.combiner, [state[0], e.at(op.source, window)]),
                    lambda: state,
                )

            return taken() if inside is None else e.choose(inside, taken, lambda: state)

        return e.folded(self.sizes, [e.at(op.init, ())], step)[0]

    def _selected(self, window: Sequence[Index]) -> Sequence[SSAValue]:
        """Indices of the operand's element that a window selects."""
        b, e, op = self.b, self.b.e, self.op
        rank = len(window)
        zero = [(b.constant(0, INDEX),)] * rank
        none = (b.constant(False, i1),)
        blank = zero_element(e.elements(), array(op.operand).element_type)

        def step(dims: Sequence[Index], state: Sequence[Value]) -> Sequence[Value]:
            inside: SSAValue = b.constant(True, i1)
            indices: list[Index] = []
            for dim, k in enumerate(dims):
                position = b.sub(
                    b.add(b.mul(window[dim], self.strides[dim]), b.mul(k, self.dilations[dim])),
                    self.low[dim],
                )
                base = self.bases[dim]
                reach = (self.operand[dim] - 1) * base + 1
                inside = b.andi(inside, b.cmpi("ult", b.index(position), b.index(reach)))
                if base > 1:
                    rest = b.index(b.rem(position, base))
                    inside = b.andi(inside, b.cmpi("eq", rest, b.index(0)))
                indices.append(b.div(position, base))

            def look() -> Sequence[Value]:
                element = e.at(op.operand, indices)
                *best, (found,), value = state
                ((keeps,),) = e.body(op.select, [value, element])
                stays = b.andi(found, keeps)
                new = [
                    (b.select(stays, old, b.index(index)),)
                    for (old,), index in zip(best, indices, strict=True)
                ]
                kept = tuple(b.select(stays, v, w) for v, w in zip(value, element, strict=True))
                return [*new, (b.constant(True, i1),), kept]

            return e.choose(inside, look, lambda: state)

        state = e.folded(self.sizes, [*zero, none, blank], step)
        return [index for (index,) in state[:rank]]
