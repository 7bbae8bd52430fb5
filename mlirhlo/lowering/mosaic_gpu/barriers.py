"""Barriers of blocks and clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.mosaic_gpu.pointers import place_of
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import Writer
from mlirhlo.mosaic.attributes import integer_of


def _initialize(w: Writer, op: Operation) -> Sequence[Any]:
    place = place_of(w, op.operands[0])
    b = w.b
    start = place.linear((0,) * len(place.kept), b)
    is_first = b.cmpi("eq", b.index(b.thread_id()), b.index(0))
    with w.only(is_first):
        for n in range(integer_of(op, "num_barriers")):
            b.barrier_init(
                cast(SSAValue, place.buffer), b.add(start, n), integer_of(op, "arrival_count")
            )
    return ()


def _arrive(w: Writer, op: Operation) -> Sequence[Any]:
    place = place_of(w, op.operands[0])
    b = w.b
    if w.has_tensor_memory:
        w.ptx("tcgen05.fence::before_thread_sync;")
    w.meet()
    at = place.linear((), b)
    with w.only(w.is_leader):
        if place.space == "cluster":
            assert place.rank is not None
            where = w.address(b.add(b.mul(at, 8), place.offset))
            w.ptx(
                "{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; "
                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }",
                [where, place.rank],
            )
        else:
            b.barrier_arrive(cast(SSAValue, place.buffer), at)
    return ()


def _expect(w: Writer, op: Operation) -> Sequence[Any]:
    place = place_of(w, op.operands[0])
    b = w.b
    w.meet()
    with w.only(w.is_leader):
        b.barrier_arrive(
            cast(SSAValue, place.buffer), place.linear((), b), integer_of(op, "expect_tx")
        )
    return ()


def _wait(w: Writer, op: Operation) -> Sequence[Any]:
    place, parity = place_of(w, op.operands[0]), w.values[op.operands[1]]
    b = w.b
    from xdsl.dialects import arith

    number = parity if parity.type == i32 else b.cast(arith.ExtUIOp, parity, i32)
    if w.kernel.launch.cluster_size > 1:
        where = w.address(b.add(b.mul(place.linear((), b), 8), place.offset))
        w.ptx(
            "{ .reg .pred p; $$again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], $1; "
            "@!p bra $$again; }".replace("$$again", "again_${:uid}"),
            [where, number],
        )
    else:
        b.barrier_wait(
            cast(SSAValue, place.buffer), place.linear((), b), b.cast_index(number, INDEX)
        )
    if w.has_tensor_memory:
        w.ptx("tcgen05.fence::after_thread_sync;")
    return ()


OPERATIONS: Mapping[str, OPERATION] = {
    "mosaic_gpu.arrive": _arrive,
    "mosaic_gpu.arrive_expect_tx": _expect,
    "mosaic_gpu.initialize_barrier": _initialize,
    "mosaic_gpu.wait": _wait,
    "nvvm.mbarrier.try_wait.parity": _wait,
}
"""What writes each operation."""
