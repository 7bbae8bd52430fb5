"""The kernel of a contraction: packing, loops over blocks and tiles, and what comes after the sums."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.lowering.builder import Index, memref_of
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import one_by_one
from mlirhlo.lowering.hlo_to_loops.contractions.block import Block
from mlirhlo.lowering.hlo_to_loops.contractions.blocking import (
    Blocking,
    choose_blocking,
    reads_windows,
)
from mlirhlo.lowering.hlo_to_loops.contractions.finish import Finisher
from mlirhlo.lowering.hlo_to_loops.contractions.function import KernelFunction
from mlirhlo.lowering.hlo_to_loops.contractions.inner import FEW_ROWS, inner_kernel, inner_of
from mlirhlo.lowering.hlo_to_loops.contractions.operands import Reader, places_of
from mlirhlo.lowering.hlo_to_loops.contractions.packing import Packer, Span, runs_along_depth
from mlirhlo.lowering.hlo_to_loops.contractions.problem import (
    Contraction,
    Factor,
    merged,
    oriented,
    separated,
    uses,
    window_step,
    windowed,
    with_packed_columns,
)
from mlirhlo.lowering.hlo_to_loops.contractions.shallow import is_shallow
from mlirhlo.lowering.hlo_to_loops.contractions.small import is_small, small_kernel
from mlirhlo.lowering.hlo_to_loops.contractions.tiles import unit_type
from mlirhlo.lowering.hlo_to_loops.elements import physical_order, register_type
from mlirhlo.lowering.hlo_to_loops.helpers import call_helpers
from mlirhlo.lowering.hlo_to_loops.kernels import computed
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, loop_kernel
from mlirhlo.lowering.hlo_to_loops.symbols import reads_of
from mlirhlo.lowering.target import current

_LINE = 64
_CHUNK = 16
_SHARED_NS = 25_000
"""Packing that takes as long is worth two threads."""


def blocked_kernel(
    name: str,
    contractions: Sequence[Contraction],
    operands: Sequence[SSAValue],
    outputs: Sequence[Output],
) -> FuncOp:
    """A function of the operands' buffers, then the outputs', that fills the outputs.

    `outputs` have the elements of the contractions' results and are computed from them, one from
    one; all share one layout. Several contractions fill a part of the result each.
    """
    if 0 in outputs[0].shape.dimensions or any(c.count(c.depth) == 0 for c in contractions):
        return loop_kernel(name, outputs, operands)
    target = current()
    function = KernelFunction.of(name, operands, outputs)
    kernels: list[BlockedKernel] = []
    for contraction in contractions:
        c = oriented(contraction)
        if c.arithmetic.group > 1 and c.count(c.rows) <= FEW_ROWS:
            c = replace(c, arithmetic=one_by_one(c.arithmetic))
        lanes = target.vector_bytes * 8 // c.arithmetic.total.real.bits
        window = windowed(c)
        if window is not None and reads_windows(window, target):
            c = merged(window, lanes, depth=False)
        else:
            c = separated(merged(with_packed_columns(c), lanes), runs_along_depth)
        if len(contractions) == 1:
            if is_small(plain := replace(c, arithmetic=one_by_one(c.arithmetic)), function, lanes):
                return small_kernel(function, plain, lanes)
            if is_shallow(c, lanes):
                return computed(name, outputs, operands)
            if (inner := inner_of(c, lanes)) is not None:
                return inner_kernel(function, inner, lanes)
        finisher = Finisher(function, c, lanes)
        blocking = choose_blocking(c, target, reads_beside=finisher.reads_beside)
        kernels.append(BlockedKernel(function, c, blocking, finisher))
    _share(function, operands)
    size = max(kernel.room_bytes for kernel in kernels)
    room = function.b.workspace(size) if size else None
    tiles: dict[str, Callable[[], FuncOp]] = {}
    for kernel in kernels:
        kernel.emit(room)
        tiles |= kernel.tiles
    built = function.b.finish()
    call_helpers(built, tiles)
    return built


def _share(function: KernelFunction, operands: Sequence[SSAValue]) -> None:
    """A result may be written over an operand that is read after the sums alone, at its own places."""
    shape = function.outputs[0].shape
    whole = tuple(range(shape.rank))
    outputs = [output.value for output in function.outputs]
    elsewhere = {value for value, place in reads_of(outputs, operands) if place != whole}
    for at, operand in enumerate(operands):
        own = function.memory[operand].shape
        alike = own.dimensions == shape.dimensions and physical_order(own) == physical_order(shape)
        for number, output in enumerate(function.outputs, len(operands)):
            same = own.element_type.byte_size == output.shape.element_type.byte_size
            if alike and same and operand not in elsewhere:
                function.b.may_share(at, number)


@dataclass(frozen=True)
class _Room:
    """A part of the workspace."""

    start: int
    size: int


class BlockedKernel:
    """Sizes of a kernel's parts, and its parts that tasks share."""

    def __init__(
        self,
        function: KernelFunction,
        c: Contraction,
        blocking: Blocking,
        finisher: Finisher,
    ) -> None:
        self.c, self.blocking, self.finisher = c, blocking, finisher
        self.b, self.memory, self.buffers = function.b, function.memory, function.buffers
        self.room: SSAValue | None = None
        self.tiles: dict[str, Callable[[], FuncOp]] = {}
        self.unit = unit_type(c.arithmetic)
        self.total = register_type(c.arithmetic.total)
        self.parts = c.arithmetic.parts
        self.rows, self.columns, self.batch = (c.count(x) for x in (c.rows, c.columns, c.batch))
        self.direct = finisher.is_plain and self.columns % blocking.columns == 0
        if c.arithmetic.tiles:
            self.direct = self.direct and self.rows % 16 == 0
        self._shape()

    # Sizes

    def _shape(self) -> None:
        """The tasks, and what they need of the workspace."""
        q, c = self.blocking, self.c
        self.panels = -(-self.columns // q.columns)
        self.row_blocks = -(-self.rows // q.block_rows)
        self.column_blocks = -(-self.panels // q.block_panels)
        self.tasks = self.batch * self.row_blocks * self.column_blocks
        self.rounds = min(self.tasks, 64) if q.ns > 30_000 else 1
        # Vectors may reach beyond the last unit.
        self.padded_units = q.depth.units + q.lanes + (16 if c.arithmetic.tiles else 0)
        if c.arithmetic.tiles:
            self.padded_units = -(-q.depth.units // 16) * 16 + 16
        self.panel_size = self.padded_units * q.columns * self.parts
        self.rhs_axes = tuple(a for a in c.batch if _moves(c, c.rhs, a))
        rhs_batch = c.count(self.rhs_axes)
        self.shares_rhs = q.rhs_packed and (self.row_blocks > 1 or rhs_batch < self.batch)
        unit_bytes = cast(Any, self.unit).size
        total_bytes = cast(Any, self.total).size
        shared = rhs_batch * self.panels * self.panel_size * unit_bytes if self.shares_rhs else 0
        self.rhs_room = _Room(0, _up(shared))
        units = q.block_units
        if q.lhs_packed == "window":
            line = (q.block_rows - 1) * window_step(c) + q.depth.inner_units
            self.lhs_stride = -(-line // 16) * 16 + 16
            lhs_size = q.depth.outer_count * self.lhs_stride
        elif q.lhs_packed == "rows":
            self.lhs_stride = -(-units // 16) * 16 + 16
            lhs_size = -(-q.block_rows // 32) * 32 * self.lhs_stride * self.parts
        else:
            self.lhs_stride = -(-q.block_rows // q.lanes) * q.lanes + q.lanes
            lhs_size = (units + q.lanes) * self.lhs_stride * self.parts
        lhs_bytes = _up(lhs_size * unit_bytes) if q.lhs_packed else 0
        self.keeps_block = not self.direct and q.depth_blocks > 1
        self.block_width = (q.block_panels if self.keeps_block else 1) * q.columns
        kept_rows = q.block_rows if self.keeps_block else q.tile_rows
        if c.arithmetic.tiles:
            kept_rows = -(-q.block_rows // 32) * 32
        totals = 0 if self.direct else kept_rows * self.block_width * self.parts * total_bytes
        own = 0
        if q.rhs_packed and not self.shares_rhs:
            own = q.block_panels * self.panel_size * unit_bytes
        self.lhs_at, self.totals_at = 0, lhs_bytes
        turned = 0
        if c.arithmetic.tiles and q.lhs_packed and not runs_along_depth(c.lhs, c):
            turned = (units + q.lanes) * q.lanes * unit_bytes
        self.turned_at = lhs_bytes + _up(totals)
        self.own_at = self.turned_at + _up(turned)
        self.round_bytes = self.own_at + _up(own)

    # Building

    @property
    def room_bytes(self) -> int:
        """What it needs of the workspace."""
        return self.rhs_room.size + self.rounds * self.round_bytes

    def emit(self, room: SSAValue | None) -> None:
        """All of it, in a workspace."""
        b, q = self.b, self.blocking
        self.room = room
        if self.shares_rhs:
            self._pack_shared()
        if self.rounds == self.tasks:
            with self._rounds(self.tasks, q.ns) as task:
                self._task(task, task)
        else:
            with self._rounds(self.rounds, q.ns) as part:
                low = b.div(b.mul(part, self.tasks), self.rounds)
                high = b.div(b.mul(b.add(part, 1), self.tasks), self.rounds)
                with b.loop(low, high) as task:
                    self._task(part, task)

    def _rounds(self, count: int, ns: float) -> Any:
        return self.b.loop(0, 1) if count == 1 else self.b.parallel(count, work=ns)

    def view(self, start: Index, element: Attribute) -> SSAValue:
        """The workspace from a byte on."""
        b = self.b
        assert self.room is not None
        type_ = memref_of(element, DYNAMIC_INDEX)
        return b.emit(memref.ViewOp, [self.room, b.index(start), b.index(0)], type_)

    def reader(self, factor: Factor) -> Reader:
        """An operand, nothing fixed."""
        a = self.c.arithmetic
        element = a.lhs if factor is self.c.lhs else a.rhs
        return Reader.of(self.b, self.c, factor, element, self.memory, self.buffers)

    def _pack_shared(self) -> None:
        """All panels of the right factors, once for all tasks."""
        b, c = self.b, self.c
        batches = c.count(self.rhs_axes)
        target = self.view(0, self.unit)
        pieces = self.panels if self.rhs_along() else self.chunks
        ns = batches * self.panels * self.panel_size * (1.0 if self.rhs_along() else 0.4)
        with self._pieces(batches * pieces, ns) as at:
            batch, piece = self.split(at, batches, pieces)
            reader = self.reader(c.rhs).at(places_of(b, c, self.rhs_axes, batch))
            start = b.mul(batch, self.panels * self.panel_size)
            if self.rhs_along():
                self.panel(reader, target, start, 0, piece, Span.whole(self.blocking.depth), 0)
            else:
                self.chunk(reader, target, start, 0, self.panels, piece)

    @contextmanager
    def _pieces(self, count: int, ns: float) -> Generator[Index]:
        """Rounds of small pieces, some of them at a time."""
        b = self.b
        rounds = min(count, 64)
        if ns < _SHARED_NS or rounds == 1:
            with b.loop(0, count) as at:
                yield at
            return
        if rounds == count:
            with b.parallel(rounds, work=ns) as at:
                yield at
            return
        with b.parallel(rounds, work=ns) as part:
            low = b.div(b.mul(part, count), rounds)
            with b.loop(low, b.div(b.mul(b.add(part, 1), count), rounds)) as at:
                yield at

    @property
    def chunks(self) -> int:
        """Pieces of the depth that are packed in one go, of all panels: rows of memory are read through."""
        depth = self.blocking.depth
        return depth.outer_count * -(-depth.inner_units // _CHUNK)

    def chunk(
        self,
        reader: Reader,
        target: SSAValue,
        start: Index,
        first_panel: Index,
        panels: Index,
        piece: Index,
    ) -> None:
        """One of `chunks`, of some panels."""
        b, depth = self.b, self.blocking.depth
        inner = -(-depth.inner_units // _CHUNK)
        outer, part = self.split(piece, depth.outer_count, inner)
        unit = b.mul(part, _CHUNK)
        left = b.sub(depth.inner_units, unit)
        span = Span(outer, 1, unit, self.least(_CHUNK, left, depth.inner_units % _CHUNK == 0))
        before = b.add(b.mul(outer, depth.inner_units), unit)
        with b.loop(0, panels) as panel:
            self.panel(reader, target, start, first_panel, panel, span, before)

    def rhs_along(self) -> bool:
        """Whether the right operand's memory runs along the depth."""
        return runs_along_depth(self.c.rhs, self.c)

    def panel(
        self,
        reader: Reader,
        target: SSAValue,
        start: Index,
        first_panel: Index,
        number: Index,
        span: Span,
        before: Index,
    ) -> None:
        """The span of panel `first_panel + number`; panels stand one after the other from `start`."""
        b, q = self.b, self.blocking
        packer = Packer(b, reader, q.depth, q.lanes, along_depth=self.rhs_along())
        axis = self.c.columns[0] if self.c.columns else None
        first = b.mul(b.add(first_panel, number), q.columns)
        stride = q.columns * self.parts
        start = b.add(start, b.mul(number, self.panel_size))
        packer.by_depth(
            target,
            b.add(start, b.mul(before, stride)),
            axis,
            first,
            b.sub(self.columns, first),
            q.vectors,
            stride,
            span,
            edge=self.columns % q.columns != 0,
        )
        if self.c.arithmetic.tiles:
            self._clear(target, start, q.depth.units, -(-q.depth.units // 16) * 16, q.columns)

    def _clear(self, target: SSAValue, start: Index, low: int, high: int, width: int) -> None:
        """Units that fill up the depth of tile registers."""
        b, lanes = self.b, self.blocking.lanes
        with b.loop(low, high) as u:
            for at in range(0, width, lanes):
                zero = b.broadcast(b.constant(0, self.unit), lanes)
                b.vector_store(zero, target, [b.add(start, b.add(b.mul(u, width), at))])

    def _task(self, part: Index, task: Index) -> None:
        """One block of the result; those of the same columns follow each other, which neighbours share."""
        b, q, c = self.b, self.blocking, self.c
        rest, row_block = self.split(task, self.batch * self.column_blocks, self.row_blocks)
        batch, column_block = self.split(rest, self.batch, self.column_blocks)
        places = places_of(b, c, c.batch, batch)
        room = b.add(self.rhs_room.size, b.mul(part, self.round_bytes))
        first_row = b.mul(row_block, q.block_rows)
        rows = self.least(q.block_rows, b.sub(self.rows, first_row), self.rows % q.block_rows == 0)
        first_panel = b.mul(column_block, q.block_panels)
        panels = self.least(
            q.block_panels, b.sub(self.panels, first_panel), self.panels % q.block_panels == 0
        )
        block = Block(self, places, room, first_row, rows, first_panel, panels)
        block.emit()

    def split(self, number: Index, outer: int, inner: int) -> tuple[Index, Index]:
        """A number below `outer * inner` as the two numbers that it is made of."""
        if outer == 1:
            return 0, number
        return self.b.div(number, inner), self.b.rem(number, inner)

    def least(self, most: int, left: Index, is_whole: bool) -> Index:
        """The lesser; `is_whole`: that is `most`."""
        if is_whole or (isinstance(left, int) and left >= most):
            return most
        return self.b.integer(xarith.MinSIOp, self.b.index(left), self.b.index(most))


def _moves(c: Contraction, factor: Factor, axis: int) -> bool:
    return any(uses(factor, a) for a in c.origins.get(axis, (axis,)))


def _up(size: int) -> int:
    return -(-size // _LINE) * _LINE
