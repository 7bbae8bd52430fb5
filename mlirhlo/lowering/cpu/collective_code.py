"""Collectives as code: devices read each other's memory, at addresses that they have published.

A fold takes blocks that stay in a core's first cache. An array of several blocks is shared out among the devices, each
of which writes its blocks to the results of all: all operands are read once and all results written once, past the
caches where they are large. Each device folds a smaller array for itself. Either way elements are folded in the
group's order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i8, i32, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.interned import symbol_ref
from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.cpu.collectives import (
    RAGGED,
    Chunks,
    base_of,
    block_elements,
    dimensions_of,
    group_size,
    operands_of,
    results_of,
)
from mlirhlo.lowering.cpu.step_code import BYTES, StepCode
from mlirhlo.lowering.hlo_to_loops.outside import declaration

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.lowering.plan.steps import Collective

POINTERS = MemRefType(BYTES, [DYNAMIC_INDEX])
"""An array of pointers."""

_STREAMED_BYTES = 4 << 20
"""Arrays from this size on are written past the caches."""
_LINE = 64
_WORDS = MemRefType(i64, [DYNAMIC_INDEX])


def declarations() -> list[Operation]:
    """The functions outside that collectives call."""
    return [
        declaration(words.PUBLISH, [BYTES, BYTES, POINTERS, i64]),
        declaration(words.ARRIVE, [BYTES, BYTES], [i8]),
        declaration(words.LEAVE, [BYTES, BYTES], [i8]),
    ]


class CollectiveCode:
    """Writes one step."""

    def __init__(
        self, code: StepCode, step: Collective, op: Instruction, context: SSAValue, failed: SSAValue
    ) -> None:
        """`context`: the device's; `failed`: a byte that is not zero once a run has failed."""
        self.code, self.step, self.op, self.failed = code, step, op, failed
        self.b = code.b
        self.context = context
        self.record = code.at(context, words.record_offset(step.site), BYTES)
        self.operands = [code.view(buffer, BYTES) for buffer in step.reads]
        self.results = [code.view(buffer, BYTES) for buffer in step.writes]
        self.shapes = results_of(op)

    def write(self) -> None:
        """The whole step."""
        b, name = self.b, base_of(self.op)
        if name in ("partition-id", "replica-id"):
            at = words.PARTITION if name == "partition-id" else words.REPLICA
            number = b.load(self.code.at(self.context, at * words.WORD, MemRefType(i32, [1])), [0])
            b.store(number, self.code.at(self.results[0], 0, MemRefType(i32, [1])), [0])
            return
        with b.if_(self._goes_well()):
            if self.step.starts:
                self._publish()
            if self.step.ends:
                self._call(words.ARRIVE)
                with b.if_(self._goes_well()):
                    self._move(name)
                    self._call(words.LEAVE)

    def _goes_well(self) -> SSAValue:
        b = self.b
        return b.cmpi("eq", b.load(self.failed, [0]), b.constant(0, i8))

    def _publish(self) -> None:
        b, buffers = self.b, [*self.operands, *self.results]
        pointers = b.scratch([len(buffers)], BYTES)
        for at, buffer in enumerate(buffers):
            b.store(buffer, pointers, [at])
        listed = b.emit(memref.CastOp, [pointers], POINTERS)
        b.call(words.PUBLISH, [self.context, self.record, listed, b.constant(len(buffers), i64)])

    def _call(self, name: str) -> None:
        b = self.b
        status = b.emit(CallOp, [self.context, self.record], i8, {"callee": symbol_ref(name)})
        b.store(b.ori(b.load(self.failed, [0]), status), self.failed, [0])

    # ------------------------------------------------------------ what the record says

    def _word(self, at: int) -> SSAValue:
        b = self.b
        return b.cast_index(b.load(self.code.at(self.record, 0, _WORDS), [at]), INDEX)

    def _published(self, buffer: Index, member: Index) -> SSAValue:
        """The memory that a member has published as that of a buffer."""
        b = self.b
        listed = b.load(self.code.at(self.record, 0, POINTERS), [words.TABLE])
        table = self.code.at(listed, 0, POINTERS)
        return b.load(table, [b.add(b.mul(buffer, self._word(words.COUNT)), member)])

    def _at(self, memory: SSAValue, offset: Index, type_: Attribute = BYTES) -> SSAValue:
        return self.code.at(memory, offset, type_)

    def _copy(self, source: SSAValue, at: Index, target: SSAValue, to: Index, size: int) -> None:
        """Copies so many bytes."""
        if size:
            type_ = MemRefType(i8, [size])
            self.b.effect(memref.CopyOp, [self._at(source, at, type_), self._at(target, to, type_)])

    # ------------------------------------------------------------ moving data

    def _move(self, name: str) -> None:
        moves: dict[str, Callable[[], None]] = {
            "all-reduce": self._all_reduce,
            "reduce-scatter": self._reduce_scatter,
            "all-gather": self._all_gather,
            "all-to-all": self._all_to_all,
            RAGGED: self._ragged_all_to_all,
            "collective-permute": self._from_source,
            "collective-broadcast": self._from_source,
        }
        moves[name]()

    def _from_source(self) -> None:
        """The operands of one device; zeros where there is none."""
        b, source = self.b, self._word(words.SOURCE)

        def zeros() -> None:
            for buffer, target in zip(self.step.writes, self.results, strict=True):
                with b.loop(0, buffer.size) as i:
                    b.store(b.constant(0, i8), target, [i])

        with b.if_(b.cmpi("sge", source, b.index(0)), zeros):
            for k, target in enumerate(self.results):
                self._copy(self._published(k, source), 0, target, 0, self.step.writes[k].size)

    def _all_gather(self) -> None:
        (dim,) = dimensions_of(self.op)
        for k, target in enumerate(self.results):
            self._interleave(k, target, Chunks.of(operands_of(self.op)[k], dim), None)

    def _interleave(self, k: int, target: SSAValue, chunks: Chunks, part: SSAValue | None) -> None:
        """Rows of the members one after the other; of each only its part of that number, if any."""
        b, count = self.b, self._word(words.COUNT)
        with b.loop(0, count) as member:
            source = self._published(k, member)
            with b.loop(0, chunks.outer) as row:
                start = b.mul(row, count)
                read = row if part is None else b.add(start, part)
                place = b.add(start, member)
                size = chunks.bytes
                self._copy(source, b.mul(read, size), target, b.mul(place, size), size)

    def _all_to_all(self) -> None:
        me = self._word(words.POSITION)
        dims = dimensions_of(self.op)
        if len(self.results) > 1 or not dims:
            # Member k's operand for this device.
            for k, target in enumerate(self.results):
                self._copy(self._published(me, k), 0, target, 0, self.step.writes[k].size)
            return
        chunks = Chunks.of(self.shapes[0], dims[0])
        part = chunks.bytes // cast(int, group_size(self.op))
        self._interleave(0, self.results[0], Chunks(chunks.outer, part), me)

    def _ragged_all_to_all(self) -> None:
        """Of every member the slices for this device, as many rows as it says to where it says."""
        b, me, count = self.b, self._word(words.POSITION), self._word(words.COUNT)
        shapes, size = operands_of(self.op), self.step.writes[0].size
        there, here = shapes[0].dimensions[0], shapes[1].dimensions[0]
        row = size // max(here, 1)
        self._copy(self.operands[1], 0, self.results[0], 0, size)
        slices = b.integer(arith.DivUIOp, b.index(shapes[3].dimensions[0]), count)
        with b.loop(0, count) as member, b.loop(0, slices) as n:
            k = b.add(b.mul(me, slices), n)
            start, rows, end = (self._published_number(at, member, k) for at in (2, 3, 4))
            # Numbers below 0 are large ones without a sign.
            limits = [(rows, there), (start, there), (end, here)]
            limits += [(b.addi(start, rows), there), (b.addi(end, rows), here)]
            fit = [b.cmpi("ule", number, b.constant(most, i64)) for number, most in limits]
            with (
                b.if_(functools.reduce(b.andi, fit), self._fail),
                b.loop(0, b.cast_index(rows, INDEX)) as i,
            ):
                source, target = (
                    b.mul(b.add(b.cast_index(number, INDEX), i), row) for number in (start, end)
                )
                self._copy(self._published(0, member), source, self.results[0], target, row)

    def _published_number(self, operand: int, member: Index, at: Index) -> SSAValue:
        """An element of a member's operand, which is an array of integers."""
        b, type_ = self.b, {4: i32, 8: i64}[operands_of(self.op)[operand].element_type.byte_size]
        memory = self._at(self._published(operand, member), 0, MemRefType(type_, [DYNAMIC_INDEX]))
        number = b.load(memory, [at])
        return number if type_ == i64 else b.cast(arith.ExtSIOp, number, i64)

    def _fail(self) -> None:
        """Ends the run of all devices, and says where."""
        b = self.b
        b.store(b.constant(1, i8), self.failed, [0])
        number = b.constant(self.step.site + 1, i64)
        b.store(number, self.code.at(self.context, 0, _WORDS), [words.FAULT])
        listed = b.load(self.code.at(self.context, 0, POINTERS), [words.WORLD])
        b.store(b.constant(1, i64), self.code.at(listed, 0, _WORDS), [words.ENDED])

    def _reduce_scatter(self) -> None:
        b, count, me = self.b, self._word(words.COUNT), self._word(words.POSITION)
        (dim,) = dimensions_of(self.op)
        for k, target in enumerate(self.results):
            chunks = Chunks.of(self.shapes[k], dim)
            with b.loop(0, chunks.outer) as row:
                start = b.mul(b.add(b.mul(row, count), me), chunks.bytes)
                self._folded_blocks(k, chunks.bytes, start, target, b.mul(row, chunks.bytes))

    def _folded_blocks(self, k: int, size: int, start: Index, target: SSAValue, to: Index) -> None:
        """So many bytes from `start` on, folded to `target`."""
        b, block = self.b, self._block_bytes(k)
        if not block:
            return
        with b.loop(0, -(-size // block)) as number:
            at = b.minimum(b.mul(number, block), size - block)
            self._fold(k, b.add(start, at), self._at(target, b.add(to, at)))

    def _block_bytes(self, k: int) -> int:
        shape = operands_of(self.op)[k]
        return block_elements(self.op, shape) * shape.element_type.byte_size

    def _fold(self, k: int, at: Index, target: SSAValue) -> None:
        """A block of every member's operand, the first one's first."""
        b, code = self.b, self.code
        name, block = self.step.folds[k], self._block_bytes(k)
        function: FuncOp = code.kernels[name]
        types = function.function_type.inputs.data
        self._copy(self._published(k, 0), at, target, 0, block)
        with b.loop(1, self._word(words.COUNT)) as member:
            part = self._at(self._published(k, member), at)
            b.call(
                name,
                [self._at(m, 0, t) for m, t in zip((target, part, target), types, strict=True)],
            )

    def _all_reduce(self) -> None:
        for k, target in enumerate(self.results):
            size, block = self.step.reads[k].size, self._block_bytes(k)
            if not size:
                continue
            if size == block:
                self._fold(k, 0, target)
            else:
                self._shared_out(k, size, block)

    def _shared_out(self, k: int, size: int, block: int) -> None:
        """Blocks of this device's share, to the results of all."""
        b, count, me = self.b, self._word(words.COUNT), self._word(words.POSITION)
        blocks = -(-size // block)
        folded = self.b.emit(memref.CastOp, [b.scratch([block], i8)], BYTES)
        # Shares differ by one block at most.
        first, last = (
            b.integer(arith.DivUIOp, b.index(b.mul(at, blocks)), count) for at in (me, b.add(me, 1))
        )
        with b.loop(first, last) as number:
            at = b.minimum(b.mul(number, block), size - block)
            self._fold(k, at, folded)
            with b.loop(0, self._word(words.TARGETS)) as member:
                target = self._at(self._published(len(self.operands) + k, member), at)
                self._write(folded, target, block, streams=size >= _STREAMED_BYTES)

    def _write(self, source: SSAValue, target: SSAValue, size: int, *, streams: bool) -> None:
        b = self.b
        if not streams:
            self._copy(source, 0, target, 0, size)
            return
        with (
            b.if_(b.is_aligned(target, _LINE), lambda: self._copy(source, 0, target, 0, size)),
            b.loop(0, size, _LINE) as i,
        ):
            b.vector_store(b.vector_load(source, [i], _LINE), target, [i], streaming=True)
