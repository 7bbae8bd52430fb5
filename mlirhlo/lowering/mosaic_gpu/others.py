"""Identities, fences, registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import GROUP, Writer
from mlirhlo.mosaic.attributes import integer_of


def _index_cast(w: Writer, op: Operation) -> Sequence[Any]:
    type_ = op.results[0].type
    return [w.b.cast_index(w.values[op.operands[0]], type_)]


def _identity(kind: str) -> Callable[[Writer, Operation], Sequence[Any]]:
    def write(w: Writer, op: Operation) -> Sequence[Any]:
        dim = str(op.properties["dimension"]).rpartition(" ")[2].rstrip(">")
        return [w.b.index(getattr(w.b, kind)(dim))]

    return write


def _block_size(w: Writer, op: Operation) -> Sequence[Any]:
    is_x = "dim x" in str(op.properties["dimension"])
    return [w.b.constant(w.kernel.launch.num_threads * GROUP if is_x else 1, INDEX)]


def _cluster_place(w: Writer, op: Operation) -> Sequence[Any]:
    dim = str(op.properties["dimension"]).rpartition(" ")[2].rstrip(">")
    return [w.b.index(w.cluster_place("xyz".index(dim)))]


def _cluster_extent(w: Writer, op: Operation) -> Sequence[Any]:
    dim = str(op.properties["dimension"]).rpartition(" ")[2].rstrip(">")
    return [w.b.constant(w.kernel.launch.cluster_dims["xyz".index(dim)], INDEX)]


def _elect(w: Writer, op: Operation) -> Sequence[Any]:
    """One lane of each warp."""
    del op
    text = "{ .reg .pred p; elect.sync _|p, -1; selp.b32 $0, 1, 0, p; }"
    (number,) = w.ptx(text, results=[i32])
    return [w.b.cmpi("ne", number, w.b.constant(0, i32))]


def _shuffle(w: Writer, op: Operation) -> Sequence[Any]:
    mask, value, offset, clamp = (w.values[v] for v in op.operands)
    kind = str(op.properties["kind"]).rpartition(" ")[2].rstrip(">")
    text = f"shfl.sync.{kind}.b32 $0, $1, $2, $3, $4;"
    return w.ptx(text, [value, offset, clamp, mask], [value.type])


def _text(text: str) -> Callable[[Writer, Operation], Sequence[Any]]:
    def write(w: Writer, op: Operation) -> Sequence[Any]:
        del op
        w.ptx(text)
        return ()

    return write


def _meet(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.meet()
    return [None]


def _registers(w: Writer, op: Operation) -> Sequence[Any]:
    action = "inc" if "increase" in str(op.properties["action"]) else "dec"
    w.ptx(f"setmaxnreg.{action}.sync.aligned.u32 {integer_of(op, 'regCount')};")
    return ()


def _wait_products(w: Writer, op: Operation) -> Sequence[Any]:
    w.ptx(f"wgmma.wait_group.sync.aligned {integer_of(op, 'group')};")
    return ()


def _same(w: Writer, op: Operation) -> Sequence[Any]:
    return [w.values[op.operands[0]]]


def _fence_init(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.b.barrier_fence()
    return ()


def _block_barrier(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.b.barrier()
    return ()


OPERATIONS: Mapping[str, OPERATION] = {
    "tpu.assume_multiple": _same,
    "arith.index_cast": _index_cast,
    "gpu.block_id": _identity("block_id"),
    "gpu.thread_id": _identity("thread_id"),
    "gpu.block_dim": _block_size,
    "gpu.cluster_block_id": _cluster_place,
    "gpu.cluster_dim_blocks": _cluster_extent,
    "arith.index_castui": _index_cast,
    "nvvm.elect.sync": _elect,
    "nvvm.shfl.sync": _shuffle,
    "gpu.barrier": _block_barrier,
    "llvm.inline_asm": _meet,
    "mosaic_gpu.async_prefetch": lambda w, op: (),
    "nvvm.cluster.arrive.relaxed": _text("barrier.cluster.arrive.relaxed.aligned;"),
    "nvvm.cluster.arrive": _text("barrier.cluster.arrive.release.aligned;"),
    "nvvm.cluster.wait": _text("barrier.cluster.wait.acquire.aligned;"),
    "nvvm.fence.mbarrier.init": _fence_init,
    "nvvm.fence.proxy": _text("fence.proxy.async.shared::cta;"),
    "nvvm.setmaxregister": _registers,
    "nvvm.wgmma.commit.group.sync.aligned": _text("wgmma.commit_group.sync.aligned;"),
    "nvvm.wgmma.fence.aligned": _text("wgmma.fence.sync.aligned;"),
    "nvvm.wgmma.wait.group.sync.aligned": _wait_products,
}
"""What writes each operation."""
