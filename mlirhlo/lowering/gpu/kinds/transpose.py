"""Kind `transpose`: what is read across the order of memory goes through a tile of shared memory.

A block computes 32 x 32 elements of the results: along the last dimension, and along that which lies together in what
is read. It reads tiles along the one and writes along the other. Rows of a tile are padded by a bank, so that the
threads of a warp read a column from as many banks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import MapOp
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.transposes import TILE, transposed_reads

_BANK = 4
"""Bytes."""


@launches("transpose")
def transpose(plan: Plan, ops: Sequence[MapOp], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        reads = [(v, m) for v, m, dim in transposed_reads(op) if dim == schedule.dimension]
        b = plan.begin(inputs_of(plan, [op]), op.outputs)
        tile = _Tile(b, op.space, schedule)
        stored: list[SSAValue] = []
        for value, map_ in reads:
            element = array(value).element_type
            padding = max(1, _BANK // element.byte_size)
            buffer = b.shared([TILE, TILE + padding], memory_type(element))
            for row in tile.rows():
                with tile.inside(row, tile.x) as at:
                    (number,) = b.e.at(value, b.e.mapped(map_, at, op.space))
                    b.store(to_memory(b, number, element), buffer, [row, tile.x])
            stored.append(buffer)
        b.barrier()
        for row in tile.rows():
            with tile.inside(tile.x, row) as at:
                for (value, map_), buffer in zip(reads, stored, strict=True):
                    number = to_register(
                        b, b.load(buffer, [tile.x, row]), array(value).element_type
                    )
                    b.e.know_read(value, b.e.mapped(map_, at, op.space), (number,))
                for value in op.outputs:
                    b.write(value, at, b.e.at(value, at))
        b.launch(tile.blocks, schedule.threads)


class _Tile:
    """The tile of a block."""

    def __init__(self, b: LaunchBuilder, space: Sequence[int], schedule: Schedule) -> None:
        self.b, self.space, self.dim = b, space, schedule.dimension
        self.last = len(space) - 1
        self.height = schedule.threads // TILE
        across, along = -(-space[self.last] // TILE), -(-space[self.dim] // TILE)
        self.outer = [n for d, n in enumerate(space) if d not in (self.dim, self.last)]
        self.blocks = across * along * prod(self.outer)
        block: Index = b.block_id()
        self.first_last = b.mul(b.rem(block, across), TILE)
        block = b.div(block, across)
        self.first_along = b.mul(b.rem(block, along), TILE)
        self.rest = b.e.unlinear(b.index(b.div(block, along)), self.outer)
        thread = b.thread_id()
        self.x, self.y = b.index(b.rem(thread, TILE)), b.index(b.div(thread, TILE))

    def rows(self) -> list[SSAValue]:
        """The rows of a tile that a thread moves an element of."""
        return [self.b.index(self.b.add(self.y, at)) for at in range(0, TILE, self.height)]

    @contextmanager
    def inside(self, across: SSAValue, along: SSAValue) -> Generator[tuple[Index, ...]]:
        """The indices at an element of the tile, in a branch for those that are in the results."""
        b = self.b
        last = b.add(self.first_last, across)
        other = b.add(self.first_along, along)
        rest = iter(self.rest)
        at = tuple(
            last if d == self.last else other if d == self.dim else next(rest)
            for d in range(len(self.space))
        )
        test: SSAValue | None = None
        for dim, index in ((self.last, last), (self.dim, other)):
            if self.space[dim] % TILE:
                here = b.cmpi("ult", b.index(index), b.index(self.space[dim]))
                test = here if test is None else b.andi(test, here)
        with nullcontext() if test is None else b.if_(test), b.e.scope():
            yield at
