"""Kinds `tiles`, `mma` and `wgmma`: products of matrices.

A block computes a tile of the result, some terms at a time. Its threads bring tiles of both factors to shared memory
(`factor_tiles`), several stages ahead of the one that is multiplied; `ScalarBlock`, `MatrixBlock` and `WarpGroupBlock`
multiply.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.structured import ContractOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index, memref_of
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kinds.factor_tiles import FactorTile, Order
from mlirhlo.lowering.gpu.kinds.group_terms import (
    TILE_BYTES,
    GroupTile,
    most_tiles,
    terms_of_groups,
    tile_of_group,
    within,
)
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.contractions import contraction_below
from mlirhlo.lowering.schedule.map_to_grid import memory_inputs
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct, matrix_product_of

_MAX_HELD = 32
"""Elements of factors that a thread keeps in registers while it multiplies."""
Neighbours: TypeAlias = "tuple[tuple[Index, Index], Sequence[Value]]"
"""Row and column of an element, and elements of that row from there on, as many as divide the column."""
Writer: TypeAlias = "Callable[[tuple[Index, Index], Sequence[Value]], None]"


@launches("tiles")
def tiles(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op."""
    from mlirhlo.lowering.gpu.kinds.scalar_product import ScalarBlock

    for op in ops:
        _launch(plan, op, schedule, ScalarBlock)


@launches("mma")
def mma(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op, on the matrix units."""
    from mlirhlo.lowering.gpu.kinds.matrix_units import MatrixBlock

    for op in ops:
        _launch(plan, op, schedule, MatrixBlock)


@launches("wgmma")
def wgmma(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch for each op, by warp groups."""
    from mlirhlo.lowering.gpu.kinds.warp_groups import WarpGroupBlock

    for op in ops:
        _launch(plan, op, schedule, WarpGroupBlock)


def _launch(plan: Plan, op: Operation, schedule: Schedule, kind: type[Block]) -> None:
    contraction = contraction_below(op)
    assert contraction is not None
    if schedule.parts > 1:
        _launch_parts(plan, op, contraction, schedule, kind)
        return
    b = plan.begin(inputs_of(plan, [op], [op]), op.results)
    block = kind(b, matrix_product_of(contraction), schedule)
    element = array(contraction.output).element_type

    def write(at: tuple[Index, ...], value: Value) -> None:
        b.e.know(contraction, at, [convert(b, value, block.element, element)])
        for result in op.results:
            b.write(result, at, b.e.at(result, at))

    block.run(write)


def _launch_parts(
    plan: Plan, op: Operation, contraction: ContractOp, schedule: Schedule, kind: type[Block]
) -> None:
    """Sums of parts of the terms come to memory; a second launch adds them up, always in the same order."""
    element, sizes = BY_MLIR[contraction.accumulator], sizes_of(contraction.output)
    number = plan.workspace(memref_of(memory_type(element), schedule.parts, *sizes))
    b = plan.begin(inputs_of(plan, [contraction], [contraction]), (), [number])
    block = kind(b, matrix_product_of(contraction), schedule)
    sums = b.memory[number]
    block.run(lambda at, v: b.store(to_memory(b, v[0], element), sums, [block.part, *at]))

    own = set(op.results)

    def is_read(value: SSAValue) -> bool:
        return value is contraction.output or (value in plan.numbers and value not in own)

    reads = memory_inputs(op, is_read) if op is not contraction else []
    b = plan.begin([v for v in reads if v is not contraction.output], op.results, (), [number])

    def add_up(index: SSAValue) -> None:
        at = b.e.unlinear(index, sizes)
        parts = [b.load(b.memory[number], [part, *at]) for part in range(schedule.parts)]
        add = b.addf if element.is_float else b.addi
        total = to_register(b, functools.reduce(add, parts), element)
        value = convert(b, (total,), element, array(contraction.output).element_type)
        b.e.know(contraction, at, [value])
        for result in op.results:
            b.write(result, at, b.e.at(result, at))

    b.launch(b.each_thread(prod(sizes), THREADS, add_up), THREADS)


class Block:
    """The tile of a block of threads."""

    barrier_bytes = 0
    """Of a stage, in shared memory beside its tiles."""

    def __init__(self, b: LaunchBuilder, product: MatrixProduct, schedule: Schedule) -> None:
        self.b, self.product, self.op, self.schedule = b, product, product.op, schedule
        self.element: PrimitiveType = BY_MLIR[self.op.accumulator]
        """Of the sums."""
        self.sides = (schedule.rows, schedule.columns)
        self.depth, self.threads = schedule.terms, schedule.threads
        self.limits = (product.size(product.rows), product.size(product.columns))
        self.terms = product.size(product.terms)
        self._check()
        parts = max(schedule.parts, 1)
        all_rounds = -(-self.terms // self.depth)
        self.rounds = -(-all_rounds // parts)
        """Stages of terms that a block multiplies."""
        self.stages = min(schedule.stages, self.rounds)
        self.shared_bytes = 0
        """Of the launch."""
        self.has_partial_terms = self.terms != self.rounds * parts * self.depth
        down, across = (-(-n // side) for n, side in zip(self.limits, self.sides, strict=True))
        if product.groups is not None:
            down = most_tiles(self, product.groups)
        self.blocks = down * across * product.size(product.batch) * parts
        number: Index = b.block_id()
        self.part = b.rem(number, parts)
        self.first_term: Index = b.mul(self.part, self.rounds * self.depth)
        number = b.div(number, parts)
        column = b.mul(b.rem(number, across), self.sides[1])
        number = b.div(number, across)
        row = b.mul(b.rem(number, down), self.sides[0])
        self.number = b.div(number, down)
        """Of the matrices."""
        self.batch = b.e.unlinear(b.index(self.number), self._sizes(product.batch))
        self.thread = b.thread_id()
        self.count: Index = self.rounds * self.depth
        """Terms from the first one on that the block multiplies."""
        self.group: Index = 0
        """Of rows."""
        self.tile: GroupTile | None = None
        if product.groups is not None:
            self.tile = tile_of_group(self, product.groups, b.div(row, self.sides[0]))
            self.group, row = self.tile.group, self.tile.first
            self.count = b.select(self.tile.has_terms, b.index(self.count), b.index(0))
        self.first = (row, column)
        """Row and column."""
        terms = terms_of_groups(self)
        self.is_ragged = self.tile is not None or terms is not None
        """Whether there may be no terms."""
        if terms is not None:
            self.first_term, self.count = within(self, terms, self.first_term, self.count)
            self.has_partial_terms = True

    def _check(self) -> None:
        """Raises `HloError` HLO0806 for tiles that the threads of the schedule do not share evenly."""
        s = self.schedule
        numbers = (s.rows, s.columns, s.terms)
        if min(*numbers, s.stages, s.threads) < 1 or any(n & (n - 1) for n in numbers):
            raise self.refused("rows, columns and terms are powers of two")
        self._check_warps()

    def _check_warps(self) -> None:
        s = self.schedule
        if (
            s.threads & (s.threads - 1)
            or s.threads % 32
            or not s.warps_down
            or s.threads // 32 % s.warps_down
        ):
            raise self.refused("warps do not stand in so many rows")

    def refused(self, why: str) -> Exception:
        """An error that says why a schedule has no code."""
        return error("HLO0806", f"no product is computed by `{self.schedule.attribute()}`: {why}")

    def run(self, write: Callable[[tuple[Index, ...], Value], None]) -> None:
        """The launch: computes the tile and writes its elements, at their indices."""
        b, limit = self.b, self.limits[1]

        def write_neighbours(first: tuple[Index, Index], values: Sequence[Value]) -> None:
            (row, column), count = first, len(values)
            if count > 1 and limit % count:
                for lane, value in enumerate(values):
                    write_neighbours((row, b.add(column, lane)), [value])
                return
            with self.inside(first), b.e.scope():
                for lane, value in enumerate(values):
                    write(self.indices((row, b.add(column, lane))), value)

        self.compute(write_neighbours)
        b.launch(self.blocks, self.threads, self.shared_bytes)

    def compute(self, write: Writer) -> None:
        """Computes the tile and writes its elements."""
        for first, values in self.results():
            write(first, values)

    def results(self) -> list[Neighbours]:
        """The thread's elements."""
        raise NotImplementedError

    def multiply(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Sums with the products of a stage added."""
        raise NotImplementedError

    def shared(self, sizes: Sequence[int], element: PrimitiveType) -> SSAValue:
        """A buffer in shared memory; its size is the launch's where the device allows no more in a function."""
        b = self.b
        start, bytes_ = self.shared_bytes, prod(sizes) * element.byte_size
        self.shared_bytes += bytes_
        stage = sum(self.sides) * self.depth * element.byte_size + self.barrier_bytes
        beside = 0 if self.product.groups is None else TILE_BYTES
        if self.stages * stage + beside <= b.plan.device.shared_memory_per_block:
            self.shared_bytes = 0
            return b.shared(sizes, memory_type(element))
        return b.view(b.dynamic_shared(), start, sizes, memory_type(element))

    def _sizes(self, dims: Sequence[int]) -> list[int]:
        return [self.op.space[d] for d in dims]

    def indices(self, at: tuple[Index, Index], term: Index | None = None) -> tuple[Index, ...]:
        """Indices of the space, without those of terms unless a term is given."""
        b, product = self.b, self.product
        found: dict[int, Index] = dict(zip(product.batch, self.batch, strict=True))
        groups = [(product.rows, at[0]), (product.columns, at[1])]
        if term is not None:
            groups.append((product.terms, term))
            if product.groups is not None:
                found[product.groups.group] = self.group
        for dims, index in groups:
            found |= zip(dims, b.e.unlinear(b.index(index), self._sizes(dims)), strict=True)
        indices = tuple(found[d] for d in sorted(found))
        if term is None and (*product.batch, *product.rows, *product.columns) == tuple(
            sorted(found)
        ):
            row = b.add(b.mul(self.number, self.limits[0]), at[0])
            linear = b.add(b.mul(row, self.limits[1]), at[1])
            b.e.know_linear(indices, self._sizes(range(len(indices))), linear)
        return indices

    def inside(self, at: tuple[Index, Index]) -> AbstractContextManager[None]:
        """A branch for elements of the result, where tiles may reach beyond it."""
        b, bounds = self.b, list(zip(at, self.limits, self.sides, strict=True))
        test = self.is_inside(bounds[self.tile is not None :])
        if self.tile is not None:
            low, end = (b.index(bound) for bound in (self.tile.low, self.tile.end))
            row = b.index(at[0])
            here = b.andi(b.cmpi("uge", row, low), b.cmpi("ult", row, end))
            test = here if test is None else b.andi(here, test)
        return nullcontext() if test is None else self.b.if_(test)

    def is_inside(self, bounds: Sequence[tuple[Index, int, int]]) -> SSAValue | None:
        """Whether indices are below their limits; None where steps of so many never lead beyond."""
        b = self.b
        test: SSAValue | None = None
        for index, limit, step in bounds:
            if limit % step:
                here = b.cmpi("ult", b.index(index), b.index(limit))
                test = here if test is None else b.andi(test, here)
        return test

    # The pipeline

    def tiled(self, element: PrimitiveType, orders: Sequence[Order]) -> list[FactorTile]:
        """The tiles of both factors. What threads compute themselves is one stage ahead at most, if their registers
        hold it meanwhile."""
        computed = [n for n, o in zip(self.sides, orders, strict=True) if o.read is None]
        if computed:
            held = sum(computed) * self.depth // self.threads
            self.stages = min(self.stages, 2 if held <= _MAX_HELD else 1)
        return [FactorTile(self, side, element, order) for side, order in enumerate(orders)]

    def summed(self, factors: Sequence[FactorTile], zeros: Sequence[SSAValue]) -> list[SSAValue]:
        """The sums over all terms: while a stage is multiplied, those after it are on their way."""
        b = self.b
        if self.stages == 1:
            return self._one_by_one(factors, zeros)
        ahead = self.stages - 1
        for stage in range(ahead):
            self._bring(factors, b.add(self.first_term, stage * self.depth), stage)
        end, count, nonempty = self.count, len(zeros), not self.is_ragged
        initial = [*zeros, b.constant(0, INDEX), b.constant(ahead, INDEX)]
        with b.loop(0, end, self.depth, initial, nonempty=nonempty) as loop, b.e.scope():
            *sums, stage, target = loop.carried
            b.wait_for_copies(ahead - 1)
            b.barrier()
            following = b.add(loop.index, ahead * self.depth)
            is_left = b.cmpi("ult", b.index(following), b.index(end))
            term = b.add(self.first_term, following)
            fetched = self._fetch_if(is_left, factors, term, target)
            sums = self.multiply(stage, sums)
            if fetched:
                with b.if_(is_left):
                    for factor, values in fetched:
                        factor.store(values, target)
            loop.carry(*sums, self._next(stage), stage)
        return list(loop.results[:count])

    def _one_by_one(
        self, factors: Sequence[FactorTile], zeros: Sequence[SSAValue]
    ) -> list[SSAValue]:
        b = self.b
        nonempty = not self.is_ragged
        with b.loop(0, self.count, self.depth, zeros, nonempty=nonempty) as loop, b.e.scope():
            self._bring(factors, b.add(self.first_term, loop.index), 0)
            b.wait_for_copies(0)
            b.barrier()
            sums = self.multiply(0, loop.carried)
            if self.rounds > 1:
                b.barrier()
            loop.carry(*sums)
        return list(loop.results)

    def _next(self, stage: SSAValue) -> SSAValue:
        b = self.b
        if self.stages & (self.stages - 1) == 0:
            return b.index(b.rem(b.add(stage, 1), self.stages))
        following = b.index(b.add(stage, 1))
        is_last = b.cmpi("eq", following, b.index(self.stages))
        return b.select(is_last, b.index(0), following)

    def _bring(self, factors: Sequence[FactorTile], term: Index, stage: Index) -> None:
        """Begins copies to a stage and ends their group; what threads compute is there."""
        for factor in factors:
            if factor.read is not None:
                factor.copy(term, stage)
            else:
                with self.b.e.scope():
                    factor.store(factor.fetch(term), stage)
        self.b.end_copy_group()

    def _fetch_if(
        self, is_left: SSAValue, factors: Sequence[FactorTile], term: Index, stage: Index
    ) -> list[tuple[FactorTile, list[Value]]]:
        """Begins copies to a stage where terms are left, and ends their group; what threads compute instead."""
        b = self.b
        copied = [f for f in factors if f.read is not None]
        with b.if_(is_left) if copied else nullcontext():
            for factor in copied:
                factor.copy(term, stage)
        b.end_copy_group()
        return [
            (f, b.e.choose(is_left, functools.partial(f.fetch, term), f.zeros))
            for f in factors
            if f.read is None
        ]
