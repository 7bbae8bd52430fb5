"""Tensor memory of sm_100a: a lane of 32 bits columns for each of 128 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.mosaic_gpu.fragments import NATIVE, Fragment, squeezed
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.pointers import place_of
from mlirhlo.lowering.mosaic_gpu.products import descriptor
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION, parts_of
from mlirhlo.lowering.mosaic_gpu.writer import WARP, Writer, unfit
from mlirhlo.mosaic.attributes import integer_of

_TERMS = 16
"""Of a row that one product takes."""
_TYPES = {"f16": 0, "bf16": 1}
_VERSION = 1 << 46
"""What descriptors have that those of wgmma have not."""
_MOST = 32
"""Columns that one load or store moves."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A part of tensor memory, by its address."""

    address: SSAValue
    columns: int
    element: Any


def _is_first_warp(w: Writer) -> SSAValue:
    b = w.b
    return b.cmpi("ult", b.index(b.thread_id()), b.index(WARP))


def _allocate(w: Writer, op: Operation) -> Sequence[Any]:
    """The first warp asks for columns; all read where they are."""
    b = w.b
    slot: Place = w.values[op.operands[0]]
    type_: Any = op.results[0].type
    columns = type_.get_shape()[-1]
    where = w.address(slot.offset)
    with w.only(_is_first_warp(w)):
        text = f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], {columns};"
        w.ptx(text, [where])
    b.barrier()
    address = b.load(cast(SSAValue, slot.buffer), [0])
    return [TensorPlace(address, columns, type_.element_type)]


def _relinquish(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    with w.only(_is_first_warp(w)):
        w.ptx("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;")
    return ()


def _release(w: Writer, op: Operation) -> Sequence[Any]:
    place: TensorPlace = w.values[op.operands[0]]
    w.ptx("tcgen05.fence::before_thread_sync;")
    w.b.barrier()
    with w.only(_is_first_warp(w)):
        w.ptx("tcgen05.fence::after_thread_sync;")
        text = f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, {place.columns};"
        w.ptx(text, [place.address])
    return ()


def _slice(w: Writer, op: Operation) -> Sequence[Any]:
    place: TensorPlace = w.values[op.operands[0]]
    type_: Any = op.results[0].type
    moved = w.b.addi(place.address, w.b.constant(integer_of(op, "offset"), i32))
    return [replace(place, address=moved, columns=type_.get_shape()[-1])]


def _product(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    parts = parts_of(w, op)
    (sums,), (a,), (factor,), (adds,) = (
        parts[name] for name in ("accumulator", "a", "b", "accumulate")
    )
    number = _TYPES.get(str(a.element)) if isinstance(a, Place) else None
    if number is None or a.is_transposed or not isinstance(factor, Place):
        raise unfit("tcgen05_mma of other factors than f16 or bf16 in SMEM")
    rows, terms = a.sizes
    across = not factor.is_transposed
    form = (
        1 << 4
        | number << 7
        | number << 10
        | int(across) << 16
        | sums.columns // 8 << 17
        | rows // 16 << 24
    )
    w.meet()
    with w.only(w.is_leader):
        w.ptx("tcgen05.fence::after_thread_sync;")
        first = b.cast(arith.ExtUIOp, adds, i32)
        for step in range(terms // _TERMS):
            at = step * _TERMS
            place: tuple[Index, Index] = (at, 0) if across else (0, at)
            operands = [
                sums.address,
                _described(w, a, 0, at),
                _described(w, factor, *place),
                b.constant(form, i32),
                b.constant(1, i32) if step else first,
            ]
            text = (
                "{ .reg .pred p; setp.ne.u32 p, $4, 0; "
                "tcgen05.mma.cta_group::1.kind::f16 [$0], $1, $2, $3, p; }"
            )
            w.ptx(text, operands)
    return ()


def _described(w: Writer, place: Place, row: Index, column: Index) -> SSAValue:
    return w.b.addi(descriptor(w, place, row, column), w.b.constant(_VERSION, i64))


def _commit(w: Writer, op: Operation) -> Sequence[Any]:
    place, b = place_of(w, op.operands[0]), w.b
    where = w.address(b.add(b.mul(place.linear((), b), 8), place.offset))
    with w.only(w.is_leader):
        w.ptx(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];", [where]
        )
    return ()


def _pieces(w: Writer, place: TensorPlace) -> list[tuple[SSAValue, int]]:
    """Addresses of columns that go at once, for the lanes of the warp, with their number."""
    b = w.b
    lanes = b.cast_index(b.index(b.mul(w.warp, WARP << 16)), i32)
    base = b.addi(place.address, lanes)
    width = next(n for n in (_MOST, 16, 8, 4, 2, 1) if place.columns % n == 0)
    starts = range(0, place.columns, width)
    return [(b.addi(base, b.constant(start, i32)), width) for start in starts]


def _load(w: Writer, op: Operation) -> Sequence[Any]:
    place: TensorPlace = w.values[op.operands[0]]
    registers: list[SSAValue] = []
    for address, width in _pieces(w, place):
        listed = ", ".join(f"${n}" for n in range(width))
        text = (
            f"tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {{{listed}}}, [${width}]; "
            "tcgen05.wait::ld.sync.aligned;"
        )
        registers += w.ptx(text, [address], [i32] * width)
    if place.element != i32:
        registers = [w.b.bitcast(register, place.element) for register in registers]
    return [Fragment(squeezed(op.results[0].type), NATIVE, registers, place.element)]


def _store(w: Writer, op: Operation) -> Sequence[Any]:
    place: TensorPlace = w.values[op.operands[1]]
    registers = w.fragment(op.operands[0], NATIVE).registers
    if place.element != i32:
        registers = [w.b.bitcast(register, i32) for register in registers]
    for number, (address, width) in enumerate(_pieces(w, place)):
        listed = ", ".join(f"${n + 1}" for n in range(width))
        text = (
            f"tcgen05.st.sync.aligned.32x32b.x{width}.b32 [$0], {{{listed}}}; "
            "tcgen05.wait::st.sync.aligned;"
        )
        w.ptx(text, [address, *registers[number * width : (number + 1) * width]])
    w.ptx("tcgen05.fence::before_thread_sync;")
    return ()


def _wait(w: Writer, op: Operation) -> Sequence[Any]:
    """Loads and stores have waited themselves: nothing may read their registers before."""
    del w, op
    return ()


OPERATIONS: Mapping[str, OPERATION] = {
    "mosaic_gpu.async_load_tmem": _load,
    "mosaic_gpu.async_store_tmem": _store,
    "mosaic_gpu.slice_tmem": _slice,
    "mosaic_gpu.tcgen05_commit_arrive": _commit,
    "mosaic_gpu.tcgen05_mma": _product,
    "mosaic_gpu.tmem_alloc": _allocate,
    "mosaic_gpu.tmem_dealloc": _release,
    "mosaic_gpu.tmem_relinquish_alloc_permit": _relinquish,
    "nvvm.tcgen05.wait": _wait,
}
"""What writes each operation."""
