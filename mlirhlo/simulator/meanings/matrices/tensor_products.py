"""Products in tensor memory: `tcgen05.mma` of one block, dense, with all lanes of 16, 8 or 32 bits.

The instruction descriptor says types, sizes and which operands are transposed; operands in shared memory have
descriptors as those of `wgmma`. Row r of the result is in lane r, or where it has 64 rows in lane r + r / 16 * 16.
Source: PTX ISA, "Instruction descriptor", "Data path layout organization".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Address, Immediate, Vector
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import Locate, addresses
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.halves import to_f16
from mlirhlo.simulator.meanings.matrices.matrix import elements
from mlirhlo.simulator.meanings.matrices.tensor_memory import TensorMemory, tensor_memory_of
from mlirhlo.simulator.meanings.matrices.tensor_order import Access, Cells
from mlirhlo.simulator.meanings.matrices.wgmma import Begun, noted_in, operand

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

_TYPES: dict[str, dict[int, str]] = {
    "kind::f16": {0: "f16", 1: "bf16"},
    "kind::tf32": {2: "tf32"},
    "kind::f8f6f4": {0: "e4m3", 1: "e5m2"},
    "kind::i8": {0: "u8", 1: "s8"},
}
"""Of factors, by their number in the descriptor."""
_WIDTHS = {"kind::f16": 16, "kind::tf32": 32, "kind::f8f6f4": 8, "kind::i8": 8}
_SUMS = {0: "f16", 1: "f32", 2: "s32"}
_BYTES = 32
"""Of the terms of a row of a factor."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What an instruction descriptor says."""

    rows: int
    columns: int
    depth: int
    width: int
    """Bits of a number of the factors."""
    types: tuple[str, str]
    sums: str
    transposed: tuple[bool, bool]
    signs: tuple[int, int]
    saturates: bool


def _form(memory: TensorMemory, lane: int, kind: str, bits: int) -> _Form:
    rows, columns = (bits >> 24 & 31) * 16, (bits >> 17 & 63) * 8
    types = [_TYPES[kind].get(bits >> shift & 7) for shift in (7, 10)]
    sums = _SUMS.get(bits >> 4 & 3, "")
    is_integer = kind == "kind::i8"
    unit = 16 if rows == 128 else 8
    if rows not in (64, 128) or not columns or columns % unit or columns > 256 or bits & 7:
        message = (
            f"has an instruction descriptor ({bits:#010x}) of {rows} rows and {columns} columns"
        )
        raise memory.wrong(lane, f"{message}, which no dense product has")
    if None in types or not sums or is_integer != (sums == "s32"):
        message = f"has an instruction descriptor ({bits:#010x}) of types that are not executed"
        raise memory.wrong(lane, message)
    width = _WIDTHS[kind]
    return _Form(
        rows,
        columns,
        8 * _BYTES // width,
        width,
        (str(types[0]), str(types[1])),
        sums,
        (bool(bits >> 15 & 1), bool(bits >> 16 & 1)),
        (-1 if bits >> 13 & 1 else 1, -1 if bits >> 14 & 1 else 1),
        bool(bits >> 3 & 1),
    )


@dataclass(frozen=True, slots=True)
class _Product:
    """An instruction's operands."""

    kind: str
    to: Locate
    a: Locate | int
    """An address in tensor memory, or the slot of a descriptor."""
    b: int
    descriptor: int
    masked: tuple[int, ...]
    """Slots of the lanes that are not written, a bit each."""
    adds: tuple[int, bool]
    scale: int

    def begin(self, cohort: Cohort, lane: int) -> None:
        """Begins the product of a thread."""
        memory = tensor_memory_of(cohort)
        form = _form(memory, lane, self.kind, int(cohort.slots[self.descriptor][lane]))
        adds = bool(cohort.slots[self.adds[0]][lane]) != self.adds[1]
        row = np.arange(form.rows)
        rows = row if form.rows == 128 else row + row // 16 * 16
        written = rows[~self._is_masked(cohort, lane)[rows]][:, None]
        address = int(self.to(cohort, np.array([lane]))[0])
        columns = (address & 0xFFFF) + np.arange(form.columns)
        base = address >> 16
        cells = memory.checked(lane, base + rows[:, None], columns)
        accesses = list[Access]()
        kept = np.isin(rows[:, None], written)[:, 0]
        right = _in_shared(cohort, lane, form, self.b, 1)
        reads = list[tuple[Array, Array]]()
        begun = noted_in(reads)
        if isinstance(self.a, int):
            left = _in_shared(cohort, lane, form, self.a, 0)
            left(begun)
        else:
            left = self._in_tensor_memory(memory, lane, form, self.a, rows, accesses)
        right(begun)
        what = "tcgen05.mma writes"
        accesses.append(memory.access(lane, cells, what, writes=True, commits=True))

        def run() -> None:
            factors = left(None), right(None)
            total = np.matmul(factors[0] * form.signs[0], factors[1].T * form.signs[1])
            if adds:
                old = _numbers(memory.value_of(cells, "tcgen05.mma adds to"), form.sums)
                total = total + (np.ldexp(old, -self.scale) if self.scale else old)
            block = cells[0]
            values = _bits(total, form)
            memory.write((block, base + rows[kept][:, None], columns), values[kept])

        memory.begin(lane, cells, run, reads, accesses)

    def _is_masked(self, cohort: Cohort, lane: int) -> Array:
        if not self.masked:
            return np.zeros(128, np.bool_)
        words = np.array([cohort.slots[slot][lane] for slot in self.masked], np.uint32)
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)

    def _in_tensor_memory(
        self,
        memory: TensorMemory,
        lane: int,
        form: _Form,
        locate: Locate,
        rows: Array,
        accesses: list[Access],
    ) -> Callable[[Begun | None], Array]:
        address = int(locate(memory.cohort, np.array([lane]))[0])
        columns = (address & 0xFFFF) + np.arange(_BYTES // 4)
        cells: Cells = memory.checked(lane, (address >> 16) + rows[:, None], columns)
        what = "tcgen05.mma reads"
        accesses.append(memory.access(lane, cells, what, writes=False, commits=True))

        def read(_: Begun | None) -> Array:
            words = memory.value_of(cells, "tcgen05.mma reads")
            return elements(np.ascontiguousarray(words), form.types[0])

        return read


def _in_shared(
    cohort: Cohort, lane: int, form: _Form, slot: int, number: int
) -> Callable[[Begun | None], Array]:
    """Reads a factor in shared memory, where its descriptor says now."""
    one = np.array([lane])
    descriptor = cohort.slots[slot][one].copy()
    sizes = (form.columns if number else form.rows, form.depth)

    def read(begun: Begun | None) -> Array:
        factor: Array = operand(
            cohort,
            one,
            descriptor,
            sizes,
            form.width,
            form.types[number],
            transposed=form.transposed[number],
            begun=begun,
        )[0]
        return factor

    return read


def _numbers(bits: Array, type_name: str) -> Array:
    """Sums as they stand in tensor memory, a column each."""
    match type_name:
        case "f16":
            return bits.astype(np.uint16).view(np.float16).astype(np.float64)
        case "f32":
            return bits.view(np.float32).astype(np.float64)
        case _:
            return bits.view(np.int32).astype(np.int64)


def _bits(total: Array, form: _Form) -> Array:
    match form.sums:
        case "f16":
            return np.ascontiguousarray(to_f16(total)).view(np.uint16).astype(np.uint32)
        case "f32":
            return total.astype(np.float32).view(np.uint32)
        case _:
            whole = np.clip(total, -(2**31), 2**31 - 1) if form.saturates else total
            return whole.astype(np.uint64).astype(np.uint32)


def product(assembler: Assembler) -> Run:
    """`tcgen05.mma`: a product that is under way until its commit has been waited for."""
    kind = assembler.one_of(*_TYPES)
    if not kind or assembler.has("sp", "ws", "ashift"):
        raise assembler.no_meaning()
    operands = assembler.operands
    to, a = operands[0], operands[1]
    rest = list(range(4, assembler.count))
    masked: tuple[int, ...] = ()
    if isinstance(operands[4], Vector):
        rest.pop(0)
        masked = tuple(assembler.value(one, "b32") for one in assembler.parts(4))
    last = operands[-1]
    one = _Product(
        kind,
        addresses(assembler, to),
        addresses(assembler, a) if isinstance(a, Address) else assembler.source(1, "u64"),
        assembler.source(2, "u64"),
        assembler.source(3, "u32"),
        masked,
        assembler.condition(rest[0]),
        last.value if isinstance(last, Immediate) and len(rest) > 1 else 0,
    )

    def run(cohort: Cohort, lanes: Lanes) -> None:
        for lane in sets.indices(lanes).tolist():
            one.begin(cohort, lane)

    return run
