"""Kind `tiles`: products of matrices.

A block computes 64 x 64 elements. 16 terms at a time, its threads bring a tile of each factor to shared memory, then
each adds the products for its 4 x 4 elements. Rows of the tiles are 66 elements apart and a thread has pairs of
neighbours, so that no two threads of a warp ask one bank for different numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, factor_inputs
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folds import product_sum, zero_element
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.contractions import (
    Problem,
    contraction_below,
    inputs_of_factor,
    problem_of,
)

TILE = 64


@launches("tiles")
def tiles(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        _launch(plan, op, schedule, ScalarBlock)


@launches("mma")
def mma(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op, on the matrix units."""
    from mlirhlo.lowering.gpu.kinds.matrix_units import MatrixBlock

    for op in ops:
        _launch(plan, op, schedule, MatrixBlock)


def _launch(plan: Plan, op: Operation, schedule: Schedule, kind: type[Block]) -> None:
    contraction = contraction_below(op)
    assert contraction is not None
    b = plan.begin(inputs_of(plan, [op], [op]), op.results)
    block = kind(b, problem_of(contraction))
    element = array(contraction.output).element_type
    for dims, value in block.results():
        with block.inside(dims), b.e.scope():
            at = block.indices(dims)
            b.e.know(contraction, at, [convert(b, value, block.element, element)])
            for result in op.results:
                b.write(result, at, b.e.at(result, at))
    b.launch(block.blocks, schedule.threads)


class Block:
    """The tile of a block of threads."""

    depth = 16
    """Terms at a time."""
    threads = 256

    def __init__(self, b: LaunchBuilder, problem: Problem) -> None:
        self.b, self.problem, self.op = b, problem, problem.op
        self.element: PrimitiveType = BY_MLIR[self.op.accumulator]
        """Of the sums."""
        self.limits = (problem.size(problem.rows), problem.size(problem.columns))
        self.terms = problem.size(problem.terms)
        down, across = (-(-n // TILE) for n in self.limits)
        self.blocks = down * across * problem.size(problem.batch)
        number: Index = b.block_id()
        self.first_column = b.mul(b.rem(number, across), TILE)
        number = b.div(number, across)
        self.first_row = b.mul(b.rem(number, down), TILE)
        self.batch = b.e.unlinear(b.index(b.div(number, down)), self._sizes(problem.batch))
        self.thread = b.thread_id()

    def results(self) -> list[tuple[tuple[Index, Index], Value]]:
        """Rows and columns of the thread's elements, and the elements."""
        raise NotImplementedError

    def _sizes(self, dims: Sequence[int]) -> list[int]:
        return [self.op.space[d] for d in dims]

    def indices(self, at: tuple[Index, Index], term: Index | None = None) -> tuple[Index, ...]:
        """Indices of the space, without those of terms unless a term is given."""
        b, problem = self.b, self.problem
        found: dict[int, Index] = dict(zip(problem.batch, self.batch, strict=True))
        groups = [(problem.rows, at[0]), (problem.columns, at[1])]
        if term is not None:
            groups.append((problem.terms, term))
        for dims, index in groups:
            found |= zip(dims, b.e.unlinear(b.index(index), self._sizes(dims)), strict=True)
        return tuple(found[d] for d in sorted(found))

    def inside(self, at: tuple[Index, Index]) -> AbstractContextManager[None]:
        """A branch for elements of the result, where tiles may reach beyond it."""
        test = self._is_inside([(i, n, TILE) for i, n in zip(at, self.limits, strict=True)])
        return nullcontext() if test is None else self.b.if_(test)

    def _is_inside(self, bounds: Sequence[tuple[Index, int, int]]) -> SSAValue | None:
        """Whether indices are below their limits; None where steps of so many never lead beyond."""
        b = self.b
        test: SSAValue | None = None
        for index, limit, step in bounds:
            if limit % step:
                here = b.cmpi("ult", b.index(index), b.index(limit))
                test = here if test is None else b.andi(test, here)
        return test

    # Tiles of the factors

    def load(self, side: int, first_term: SSAValue, width: int, element: PrimitiveType) -> None:
        """Brings a tile of a factor to shared memory; a thread takes `width` neighbours at once, or one where they
        do not lie at multiples of that."""
        b = self.b
        is_across = self.problem.is_minor(side, self.problem.terms)
        if (self.terms if is_across else self.limits[side]) % width:
            width = 1
        first = (self.first_row, self.first_column)[side]
        for part in range(TILE * self.depth // width // self.threads):
            number = b.index(b.add(self.thread, part * self.threads))
            along = (self.depth if is_across else TILE) // width
            low, high = self.share(number, along)
            low = b.mul(low, width)
            places: list[tuple[Index, Index]] = [
                (b.add(low, lane), high) if is_across else (high, b.add(low, lane))
                for lane in range(width)
            ]
            at = [(b.add(first, line), b.add(first_term, term)) for term, line in places]
            for place, value in zip(places, self._factors(side, at, element), strict=True):
                self.keep(side, place, value, element)

    def share(self, number: Index, along: int) -> tuple[Index, Index]:
        """Which of the `along` parts of which row of a tile a thread brings."""
        return self.b.rem(number, along), self.b.div(number, along)

    def keep(
        self, side: int, place: tuple[Index, Index], value: Value, element: PrimitiveType
    ) -> None:
        """Stores an element of a tile, given its term and its line."""
        raise NotImplementedError

    def _factors(
        self, side: int, places: Sequence[tuple[Index, Index]], element: PrimitiveType
    ) -> list[Value]:
        """Elements of a factor at lines and terms, zeros outside of it; they are all outside or none is."""
        b, e = self.b, self.b.e
        result = yielded(self.op.body)[side]

        def made() -> list[Value]:
            values: list[Value] = []
            for line, term in places:
                # The other factor's line says nothing here.
                dims = self.indices((line, 0) if side == 0 else (0, line), term)
                inputs = factor_inputs(e, self.op, dims, inputs_of_factor(self.op, side))
                (value,) = e.values(self.op.body, inputs, dims, [result])
                values.append(convert(b, value, array(result).element_type, element))
            return values

        (line, term) = places[0]
        test = self._is_inside([(line, self.limits[side], TILE), (term, self.terms, self.depth)])
        if test is None:
            return made()
        return e.choose(test, made, lambda: [zero_element(e.elements(), element) for _ in places])


class ScalarBlock(Block):
    """Each of 256 threads has 4 x 4 elements: two pairs of rows, by two pairs of columns."""

    pitch = 66
    """Elements between rows of a tile in shared memory."""

    def __init__(self, b: LaunchBuilder, problem: Problem) -> None:
        super().__init__(b, problem)
        type_ = memory_type(self.element)
        self.tiles = [b.shared([self.depth, self.pitch], type_) for _ in range(2)]

    def keep(
        self, side: int, place: tuple[Index, Index], value: Value, element: PrimitiveType
    ) -> None:
        """As `Block.keep`: terms by lines."""
        self.b.store(to_memory(self.b, value[0], element), self.tiles[side], place)

    def results(self) -> list[tuple[tuple[Index, Index], Value]]:
        """As `Block.results`."""
        b, e = self.b, self.b.e
        x, y = b.rem(self.thread, 16), b.div(self.thread, 16)
        own = [
            [
                b.index(b.add(b.mul(at, 2), group * TILE // 2 + pair))
                for group in (0, 1)
                for pair in (0, 1)
            ]
            for at in (y, x)
        ]
        zero = zero_element(e.elements(), self.element)
        with b.loop(0, self.terms, self.depth, list(zero) * 16, nonempty=True) as loop, e.scope():
            for side in (0, 1):
                width = 4 if self.problem.is_minor(side, self.problem.terms) else 2
                self.load(side, loop.index, width, self.element)
            b.barrier()
            sums: list[Value] = [(v,) for v in loop.carried]
            for term in range(self.depth):
                lines = [
                    [
                        (to_register(b, b.load(self.tiles[side], [term, at]), self.element),)
                        for at in own[side]
                    ]
                    for side in (0, 1)
                ]
                sums = [
                    product_sum(
                        e.elements(),
                        sums[4 * row + column],
                        lines[0][row],
                        lines[1][column],
                        self.element,
                    )
                    for row in range(4)
                    for column in range(4)
                ]
            b.barrier()
            loop.carry(*(v for (v,) in sums))
        places = [
            (b.add(self.first_row, r), b.add(self.first_column, c)) for r in own[0] for c in own[1]
        ]
        return list(zip(places, ((v,) for v in loop.results), strict=True))
