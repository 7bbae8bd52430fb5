"""Products of warp groups: `wgmma`, with operands in shared memory under matrix descriptors.

A descriptor has the start address, two strides and a swizzle. Along k (or, transposed, along m or n) an operand
is made of pieces that the swizzle spans; the strides lead from one group of eight rows, or one piece, to the
next. Source: PTX ISA, "Asynchronous warpgroup level matrix instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.ptx import Immediate, Vector
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import Index, check_states, place_at
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.clocks import BLOCK
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.bulk import swizzled
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.matrices.matrix import (
    ACCUMULATORS,
    BITS,
    ELEMENT,
    SHAPE,
    elements,
    gather_a,
    scatter_d,
    unpacked,
    words_of,
    write_elements,
)
from mlirhlo.simulator.meanings.matrices.wgmma_registers import Products, of_product, products_of
from mlirhlo.simulator.meanings.proxies import check_async_read
from mlirhlo.simulator.meanings.registry import meaning

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

Begun: TypeAlias = "Callable[[int, tuple[Array, Array]], None]"
WARPS = 4
"""Warps of a warp group."""
SWIZZLES = (0, 128, 64, 32)


@meaning("wgmma")
def wgmma(assembler: Assembler) -> Run:
    """`wgmma.fence`, `mma_async`, `commit_group`, `wait_group`."""
    if assembler.has("mma_async"):
        return _product(assembler)
    fences, commits = assembler.has("fence"), assembler.has("commit_group")
    registers, left = assembler.product_registers, None
    if assembler.has("wait_group") and isinstance(assembler.operands[0], Immediate):
        left = assembler.operands[0].value

    def body(cohort: Cohort, lanes: Lanes) -> None:
        products = products_of(cohort, registers)
        if fences:
            products.fenced[lanes] = True
            products.accessed[lanes] = 0
        elif commits:
            products.committed[lanes] += 1
        elif left is not None:
            done = products.committed[lanes] - left
            products.done[lanes] = np.maximum(products.done[lanes], done)
            _end_reads(cohort, products, lanes)

    return collective(assembler, None, body)


def _end_reads(cohort: Cohort, products: Products, lanes: Lanes) -> None:
    """Threads have waited for products, which no longer read their operands."""
    races = cohort.races
    if races is None or not products.reads:
        return
    waiting = set(sets.indices(lanes).tolist())
    pending = products.reads
    products.reads = []
    for one in pending:
        first, number, pc, places = one
        if first not in waiting or number > products.done[first]:
            products.reads.append(one)
            continue
        races.read_ends(places, pc)
        group = np.arange(first, first + WARP * WARPS)
        # All four warps wait for a product that they execute together.
        races.wait(group, races.arrive(group[:WARP], BLOCK))


def noted_in(reads: list[tuple[Array, Array]]) -> Begun:
    """Adds what ends each read to a list."""

    def begun(_: int, places: tuple[Array, Array]) -> None:
        reads.append(places)

    return begun


def _wrong(cohort: Cohort, message: str) -> HloError:
    return HloError(Diagnostic("HLO0786", f"wgmma: {message}", place_at(cohort)))


def _product(assembler: Assembler) -> Run:
    shape = next((match for one in assembler.modifiers if (match := SHAPE.fullmatch(one))), None)
    if shape is None or assembler.has("sp"):
        raise assembler.no_meaning()
    _, columns, depth = (int(one) for one in shape.groups())
    to, type_a, type_b = [one for one in assembler.modifiers if ELEMENT.fullmatch(one)][-3:]
    d = [assembler.value(one, ACCUMULATORS[to]) for one in assembler.parts(0)]
    from_registers = isinstance(assembler.operands[1], Vector)
    a = (
        [assembler.value(one, "b32") for one in assembler.parts(1)]
        if from_registers
        else [assembler.source(1, "u64")]
    )
    b = assembler.source(2, "u64")
    scale_d, negated = assembler.condition(3) if assembler.count > 3 else (None, False)
    numbers = [one.value for one in assembler.operands[4:] if isinstance(one, Immediate)]
    signs = (numbers[0], numbers[1]) if len(numbers) >= 2 else (1, 1)
    flags = numbers[2:]
    trans_b = bool(flags[-1]) if flags else False
    trans_a = bool(flags[0]) if len(flags) > 1 else False
    finite = assembler.has("satfinite")
    width = BITS.get(type_a, 8)
    registers, used = assembler.product_registers, of_product(assembler, shape.group())

    def body(cohort: Cohort, lanes: Lanes) -> None:
        products = products_of(cohort, registers)
        _check(cohort, products, lanes)
        used.begin(cohort, products, lanes)
        if (trans_a or trans_b) and width != 16:
            raise _wrong(cohort, f"operands of {width} bits cannot be transposed")
        numbers = sets.indices(lanes)
        first = numbers[:: WARP * WARPS]

        def begun(lane: int, places: tuple[Array, Array]) -> None:
            products.reads.append((lane, int(products.committed[lane]) + 1, cohort.pc, places))

        if from_registers:
            words = words_of(cohort, lanes, a)
            left = gather_a(words, 16, type_a).reshape(len(first), 64, depth)
        else:
            at = cohort.slots[a[0]][first]
            sizes = 64, depth
            left = operand(cohort, first, at, sizes, width, type_a, transposed=trans_a, begun=begun)
        at = cohort.slots[b][first]
        sizes = columns, depth
        right = operand(cohort, first, at, sizes, width, type_b, transposed=trans_b, begun=begun)
        total = np.matmul(left * signs[0], right.transpose(0, 2, 1) * signs[1])
        fragments = _fragments(total, columns)
        if scale_d is not None:
            keep = cohort.slots[scale_d][lanes] ^ negated
            old = unpacked(words_of(cohort, lanes, d), to)
            fragments = fragments + np.where(keep.reshape(-1, WARP, 1), old, 0)
        write_elements(cohort, lanes, d, fragments, to, saturates=finite)

    return collective(assembler, None, body)


def _fragments(total: Array, columns: int) -> Array:
    """64 rows as the accumulators of four warps: warps × lanes × elements."""
    strips = total.reshape(-1, 16, columns // 8, 8).transpose(0, 2, 1, 3)
    parts = scatter_d(strips.reshape(-1, 16, 8))
    return (
        parts.reshape(-1, columns // 8, WARP, 4)
        .transpose(0, 2, 1, 3)
        .reshape(-1, WARP, columns // 2)
    )


def _check(cohort: Cohort, products: Products, lanes: Lanes) -> None:
    numbers = sets.indices(lanes)
    size = WARP * WARPS
    if len(numbers) % size or (cohort.thread_of[numbers[::size]] % size).any():
        raise _wrong(cohort, "the four warps of a group do not execute it together")
    if not products.fenced[lanes].all():
        cohort.launch.finding(
            ("wgmma", cohort.pc),
            Diagnostic(
                "HLO0786",
                "wgmma.mma_async: no wgmma.fence orders the registers before it",
                place_at(cohort),
                help="execute wgmma.fence before the first product",
            ),
        )


def operand(
    cohort: Cohort,
    lanes: Array,
    descriptors: Array,
    sizes: tuple[int, int],
    width: int,
    name: str,
    *,
    transposed: bool = False,
    begun: Begun | None,
) -> Array:
    """An operand in shared memory, one for each of some threads, as threads × rows × k.

    `begun` is told the thread of each read that begins, and what ends it; None for reads that are judged already.
    """
    rows, depth = sizes
    offsets = np.stack(
        [_addresses(int(one), rows, depth, width // 8, transposed) for one in descriptors]
    )
    limit = cohort.launch.shared_bytes
    size = width // 8
    if int(offsets.max()) > limit - size:
        op = cohort.code.instructions[cohort.pc]
        message = f"its descriptor reaches byte {int(offsets.max())} of shared memory, which has {limit} bytes"
        raise HloError(Diagnostic("HLO0786", f"{op.opcode}: {message}", place_at(cohort)))
    index: Index = cohort.shared_base[lanes][:, None] + offsets
    flat = index.reshape(-1)
    if begun is not None:
        readers = np.repeat(lanes, offsets.shape[1])
        check_states(cohort, readers, flat, size, write=False)
        op = cohort.code.instructions[cohort.pc]
        check_async_read(cohort, flat, size, f"{op.opcode}.{op.modifiers[0]}")
        if cohort.races is not None:
            for lane, row in zip(lanes.tolist(), index, strict=True):
                begun(lane, cohort.races.read_begins(row, size, np.full(len(row), lane)))
    values = cohort.arena.view(np.dtype(f"u{size}"))[flat // size].reshape(len(lanes), -1)
    return elements(np.ascontiguousarray(values), name).reshape(len(lanes), rows, depth)


@lru_cache(256)
def _addresses(descriptor: int, rows: int, depth: int, size: int, transposed: bool) -> Index:
    """Offsets in shared memory of the elements of an operand, row by row."""
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    span = SWIZZLES[descriptor >> 62 & 3]
    row, k = (one.reshape(-1) for one in np.indices((rows, depth)))
    unit = 16 // size
    if not transposed:
        if span:
            offset = row // 8 * stride + row % 8 * span + k * size
        else:
            offset = row // 8 * stride + row % 8 * 16 + k // unit * leading + k % unit * size
    elif span:
        piece = span // size
        offset = row // piece * leading + row % piece * size + k // 8 * stride + k % 8 * span
    else:
        offset = row // unit * stride + row % unit * size + k // 8 * leading + k % 8 * 16
    return swizzled(start + offset, span)
