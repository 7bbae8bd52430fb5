"""Kind `staged_elements`: a block brings the ranges of memory that its box of elements reads to shared memory.

The ranges begin with whole sectors. Elements are then computed as by kind `elements`: warps
write whole sectors too, of which the first one may begin before the box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod

from xdsl.dialects.arith import MaxSIOp, MinSIOp
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import AssembleOp, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.affine import emitted
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.staged_elements import Interval, StagedRange, worth_staging
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_UNROLLED = 8


@launches("staged_elements")
def staged_elements(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        b = plan.begin(inputs_of(plan, [op], [op]), op.results)
        box = _Box(b, op, schedule)
        for range_ in worth_staging(op, schedule.tile):
            box.bring(range_)
        b.barrier()
        box.compute()
        b.launch(box.blocks, schedule.threads)


class _Box:
    """The elements of a block."""

    def __init__(self, b: LaunchBuilder, op: Operation, schedule: Schedule) -> None:
        self.b, self.op, self.threads = b, op, schedule.threads
        self.sizes, self.box = sizes_of(op.results[0]), schedule.tile
        counts = [-(-whole // n) for whole, n in zip(self.sizes, self.box, strict=True)]
        self.blocks = prod(counts)
        numbers = b.e.unlinear(b.index(b.block_id()), counts)
        self.start = tuple(b.mul(i, n) for i, n in zip(numbers, self.box, strict=True))
        """The first element."""

    def _each(self, count: int, body: Callable[[Index], None]) -> None:
        """What threads do for each of so many numbers, rounded up to one for all threads."""
        b = self.b

        def one(number: Index) -> None:
            with b.e.scope():
                body(b.add(b.mul(number, self.threads), b.thread_id()))

        rounds = -(-count // self.threads)
        if rounds <= _UNROLLED:
            for number in range(rounds):
                one(number)
            return
        with b.loop(0, rounds, nonempty=True) as number, b.e.scope():
            one(number)

    def _bound(self, interval: Interval, size: int, more: int) -> SSAValue:
        b = self.b
        index = b.index(b.add(emitted(b, interval.base, self.start), more))
        return b.integer(MaxSIOp, b.integer(MinSIOp, index, b.index(size - 1)), b.index(0))

    def bring(self, range_: StagedRange) -> None:
        """Brings the elements from the first to the last one of a range."""
        b, shape = self.b, array(range_.value)
        first: Index = 0
        last: Index = 0
        for interval, size in zip(range_.intervals, shape.dimensions, strict=True):
            first = b.add(b.mul(first, size), self._bound(interval, size, interval.low))
            last = b.add(b.mul(last, size), self._bound(interval, size, interval.high))
        kind = shape.element_type
        unit = SECTOR // kind.byte_size
        first = b.mul(b.div(first, unit), unit)
        memory, type_ = b.flat(b.e.buffers[range_.value]), memory_type(kind)
        buffer = b.shared([range_.count], type_)

        def copy(at: Index) -> None:
            source = b.add(first, at)

            def load() -> list[Value]:
                return [(b.load(memory, [source]),)]

            # LLVM reads vectors of which some elements are needed.
            is_needed = b.cmpi("ule", b.index(source), b.index(last))
            ((value,),) = b.e.choose(is_needed, load, lambda: [(b.constant(0, type_),)])
            is_inside = b.cmpi("ult", b.index(at), b.index(range_.count))
            with b.if_(is_inside) if range_.count % self.threads else nullcontext():
                b.store(value, buffer, [at])

        self._each(range_.count, copy)
        b.e.stage(range_.value, buffer, first)

    def compute(self) -> None:
        """All elements of the box."""
        b = self.b

        count = prod(self.box)
        first: Index = 0
        for index, size in zip(self.start, self.sizes, strict=True):
            first = b.add(b.mul(first, size), index)
        unit = SECTOR // min(array(v).element_type.byte_size for v in self.op.results)
        is_whole = count % unit == 0 and all(n % unit == 0 for n in self._pitches())
        before = 0 if is_whole else b.rem(b.index(first), unit)

        def write(number: Index) -> None:
            number = b.sub(number, before)
            inner = b.e.unlinear(b.index(number), self.box)
            at = tuple(b.add(start, i) for start, i in zip(self.start, inner, strict=True))
            bounds = [
                (index, whole)
                for index, n, whole in zip(at, self.box, self.sizes, strict=True)
                if whole % n
            ]
            if not is_whole or count % self.threads:
                bounds.append((number, count))
            test: SSAValue | None = None
            for index, limit in bounds:
                here = b.cmpi("ult", b.index(index), b.index(limit))
                test = here if test is None else b.andi(test, here)
            b.e.know_linear(at, self.sizes, b.add(first, number))
            values = self._values(at, test)
            with nullcontext() if test is None else b.if_(test), b.e.scope():
                for value, element in zip(self.op.results, values, strict=True):
                    b.write(value, at, element)

        self._each(count if is_whole else count + unit - 1, write)

    def _values(self, at: tuple[Index, ...], test: SSAValue | None) -> list[Value]:
        """Elements of the results where a test holds."""
        b, results = self.b, self.op.results

        def computed() -> list[Value]:
            return [b.e.at(value, at) for value in results]

        def nothing() -> list[Value]:
            return [zero_element(b.e.elements(), array(value).element_type) for value in results]

        values = computed() if test is None else b.e.choose(test, computed, nothing)
        if isinstance(self.op, AssembleOp):
            b.sync_warp()  # else LLVM writes the elements of each piece where it computes them
        return values

    def _pitches(self) -> list[int]:
        """Elements from box to box, along each dimension."""
        return [
            n * prod(self.sizes[at + 1 :])
            for at, (n, whole) in enumerate(zip(self.box, self.sizes, strict=True))
            if n < whole
        ]
