"""What comes after the sums: conversion to the result's type, fused instructions, the store.

Tiles of sums are read back from L1, where they have just been written, and go through the instructions
after the contraction in the lanes of their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i1
from xdsl.ir import SSAValue

from mlirhlo.dialects import vector
from mlirhlo.dialects.hlo.ops import TransposeOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import Index, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.choice import choice_of
from mlirhlo.lowering.hlo_to_loops.contractions.function import KernelFunction
from mlirhlo.lowering.hlo_to_loops.contractions.operands import Memory, Reader, places_of
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, physical_order, to_memory
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

LINE_BYTES = 64
"""What is asked for at once."""


class Finisher:
    """Stores the results of one contraction."""

    def __init__(self, function: KernelFunction, c: Contraction, lanes: int) -> None:
        self.b, self.c, self.lanes = function.b, c, lanes
        self.outputs, self.memories = function.outputs, function.results
        self.buffers = function.buffers
        self.base, strides = c.result.strides()
        self.strides = {
            axis: strides.get(c.origins.get(axis, (axis,))[-1], 0) for axis in range(len(c.sizes))
        }
        self.column = c.columns[0] if c.columns else None
        self.is_contiguous = self.column is None or self.strides[self.column] == 1

        first = self.outputs[0].shape
        alike = [
            m
            for value, m in function.memory.items()
            if value not in (c.lhs.value, c.rhs.value)
            and m.shape.dimensions == first.dimensions
            and physical_order(m.shape) == physical_order(first)
        ]
        self.results_and_like = (*self.memories, *alike)
        outputs = [output.value for output in self.outputs]
        self.choice = choice_of(c.result.value, outputs, list(function.memory), c.count(c.depth))
        """Which sums count, where not all do."""

    @property
    def reads_beside(self) -> bool:
        """Whether arrays like the results are read for them."""
        return len(self.results_and_like) > len(self.memories)

    @property
    def is_plain(self) -> bool:
        """Whether the sums are the results, and tiles of them are where results are."""
        c, (output, *others) = self.c, self.outputs
        total, element = c.arithmetic.total, output.shape.element_type
        same = element is total or (
            element.is_integer and total.is_integer and element.bits == total.bits
        )
        return (
            not others
            and _moved_only(output.value) is c.result.value
            and same
            and not element.is_complex
            and self.is_contiguous
            and len(c.rows) <= 1
        )

    def _offset(self, places: Mapping[int, Index]) -> Index:
        b, offset = self.b, cast(Index, self.base)
        for axis, place in places.items():
            offset = b.add(offset, b.mul(place, self.strides[axis]))
        return offset

    def place(
        self, batch: Mapping[int, Index], row: Index, column: Index
    ) -> tuple[SSAValue, Index, int]:
        """Where plain results go: memory, the place of a tile's first one, the distance of rows."""
        b = self.b
        stride = self.strides[self.c.rows[0]] if self.c.rows else 0
        start = b.add(b.add(self._offset(batch), b.mul(row, stride)), column)
        flat = self.memories[0].flat
        type_ = MemRefType(cast(Any, flat.type).element_type, [DYNAMIC_INDEX])
        return b.emit(memref.CastOp, [flat], type_), start, stride

    def _ask_for(self, offset: Index, columns: int) -> None:
        """Of a row of a tile, the places of results and what is read at the same places, into the second
        cache: what goes by until it is the tile's turn is more than the first holds."""
        b = self.b
        for memory in self.results_and_like:
            step = max(1, LINE_BYTES // memory.shape.element_type.byte_size)
            for at in range(0, columns, step):
                b.prefetch(memory.flat, [b.add(offset, at)], locality=2)

    def finish(
        self,
        batch: Mapping[int, Index],
        first_row: Index,
        rows: Index,
        first_column: Index,
        columns: Index,
        totals: SSAValue,
        start: Index,
        width: int,
        below: tuple[int, int] | None = None,
    ) -> None:
        """A block of sums: `totals[start + row * width * parts + column]`.

        Of complex ones, vectors of real and of imaginary parts take turns. `below`: so many rows below each,
        so many columns are asked for, a row at a time: a core can wait for few lines at once.
        """
        b, lanes, c = self.b, self.lanes, self.c
        parts = c.arithmetic.parts
        factor = replace(c.result, is_buffer=False)
        reader = Reader.of(b, c, factor, c.arithmetic.total, {}, {}).at(batch)
        before = self._offset(batch)
        whole = c.count(c.columns) % lanes == 0
        with b.loop(0, rows) as row:
            places = places_of(b, c, c.rows, b.add(first_row, row))
            of_row = reader.at(places)
            offset = b.add(before, self._offset_of(places))
            at = b.add(start, b.mul(row, width * parts))
            if below is not None and self.is_contiguous and parts == 1:
                further = places_of(b, c, c.rows, b.add(b.add(first_row, row), below[0]))
                further_at = b.add(before, self._offset_of(further))
                self._ask_for(b.add(further_at, first_column), below[1])
            with b.loop(0, columns, lanes) as j:
                mask = None if whole else b.mask(b.index(b.sub(columns, j)), lanes)
                sums = tuple(
                    b.vector_load(totals, [b.add(at, b.add(b.mul(j, parts), part * lanes))], lanes)
                    for part in range(parts)
                )
                self._finish(of_row, offset, b.add(first_column, j), sums, mask)

    def takes_any(
        self,
        batch: Mapping[int, Index],
        first_row: Index,
        rows: int,
        first_column: Index,
        vectors: int,
    ) -> SSAValue:
        """Whether one of a tile's sums counts; there is a `choice`."""
        b, lanes, c, choice = self.b, self.lanes, self.c, self.choice
        assert choice is not None
        factor = replace(c.result, is_buffer=False)
        reader = Reader.of(b, c, factor, c.arithmetic.total, {}, {}).at(batch)
        count, column = c.count(c.columns), -1 if self.column is None else self.column
        rank = array(choice.predicate).rank
        with b.loop(0, rows, 1, [b.constant(0, vector_of(i1, lanes))], nonempty=True) as loop:
            of_row = reader.at(places_of(b, c, c.rows, b.add(first_row, loop.index)))
            (found,) = loop.carried
            for v in range(vectors):
                at, mask = b.add(first_column, v * lanes), None
                if count % (vectors * lanes):
                    mask = b.mask(b.index(b.sub(count, at)), lanes)
                place = self._own(of_row.place(column, at, lanes)[0])[:rank]
                elements = Elements(Places(b, lanes, mask), self.buffers)
                (is_taken,) = elements.at(choice.predicate, place)
                if not choice.takes:
                    is_taken = b.xori(is_taken, b.constant(1, is_taken.type))
                found = b.ori(found, is_taken if mask is None else b.andi(mask, is_taken))
            loop.carry(found)
        return b.reduce("or", loop.results[0])

    def finish_sums(self, batch: Mapping[int, Index], row: int, column: int, sums: Value) -> None:
        """Neighbouring sums in registers, `lanes` of them, or with no lanes one."""
        b, c = self.b, self.c
        places = {**batch, **places_of(b, c, c.rows, row)}
        if not self.lanes:
            places |= dict.fromkeys(c.columns, column)
            column = 0
        factor = replace(c.result, is_buffer=False)
        reader = Reader.of(b, c, factor, c.arithmetic.total, {}, {}).at(places)
        self._finish(reader, self._offset(places), column, sums, None)

    def _finish(
        self, of_row: Reader, offset: Index, column: Index, sums: Value, mask: SSAValue | None
    ) -> None:
        """Sums of a row from a column on; `offset`: where the row's results are."""
        b, lanes, c = self.b, self.lanes, self.c
        place, _ = of_row.place(-1 if self.column is None else self.column, column, lanes)
        value = convert(b, sums, c.arithmetic.total, _element(c.result.value))
        elements = Elements(Places(b, lanes, mask), self.buffers)
        elements.know(c.result.value, self._own(place), value)
        stride = 1 if self.column is None else self.strides[self.column]
        target = b.add(offset, b.mul(column, stride))
        # Results may lie over operands: all is read before the first is stored.
        results = [elements.at(output.value, place) for output in self.outputs]
        for result, memory in zip(results, self.memories, strict=True):
            self._store(memory, target, stride, result, mask)

    def _own(self, place: Sequence[Coordinate]) -> Sequence[Coordinate]:
        """A place of the results as one of the instruction's."""
        own = dict(zip(self.c.order, place, strict=False))
        return [own[d] for d in range(len(place))] if own else place

    def _offset_of(self, places: Mapping[int, Index]) -> Index:
        return self.b.sub(self._offset(places), self.base)

    def _store(
        self, memory: Memory, target: Index, stride: int, value: Value, mask: SSAValue | None
    ) -> None:
        b, lanes = self.b, self.lanes
        element = memory.shape.element_type
        flat = memory.flat
        if not lanes:
            for part, x in enumerate(value):
                stored = x if element.is_complex else to_memory(b, x, element)
                b.store(stored, flat, [b.add(b.mul(target, len(value)), part)])
            return
        if stride != 1:
            steps = b.steps(lanes)
            offsets = b.muli(steps, b.constant(stride * len(value), steps.type))
            full = mask or b.constant(1, vector_of(i1, lanes))
            for part, x in enumerate(value):
                stored = x if element.is_complex else to_memory(b, x, element)
                at = b.index(b.add(b.mul(target, len(value)), part))
                b.effect(vector.ScatterOp, [flat, at, offsets, full, stored])
            return
        if not element.is_complex:
            b.vector_store(to_memory(b, value[0], element), flat, [target], mask)
            return
        pairs = [x for lane in range(lanes) for x in (lane, lanes + lane)]
        for half in (0, 1):
            picked = pairs[half * lanes : (half + 1) * lanes]
            pair = b.shuffle(value[0], value[1], picked)
            own = None
            if mask is not None:
                own = b.shuffle(mask, mask, [lane for x in picked[::2] for lane in (x, x)])
            b.vector_store(pair, flat, [b.add(b.mul(target, 2), half * lanes)], own)


def _element(value: SSAValue) -> Any:
    return cast(ArrayShape, shape_of(value.type)).element_type


def _moved_only(value: SSAValue) -> SSAValue:
    """What a value is, transposed."""
    while isinstance(op := value.owner, TransposeOp):
        value = op.operand
    return value
