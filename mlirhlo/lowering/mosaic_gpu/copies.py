"""Copies by tensor maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.kernel import MapParameter
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.pointers import as_place
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION, parts_of
from mlirhlo.lowering.mosaic_gpu.writer import Writer, unfit
from mlirhlo.mosaic.attributes import integer_of, integers_of

_MOST_BOX = 256
"""Elements of a box in each dimension."""


def _boxes(place: Place) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The box of a copy, in the dimensions of shared memory, and for each copy its start there."""
    sizes = place.sizes
    limits = [_MOST_BOX] * len(sizes)
    if place.swizzle:
        limits[-1] = place.swizzle // place.bytes
    box = tuple(_largest(size, limit) for size, limit in zip(sizes, limits, strict=True))
    starts: list[tuple[int, ...]] = [()]
    for size, part in zip(sizes, box, strict=True):
        starts = [(*s, at) for s in starts for at in range(0, size, part)]
    return box, starts


def _largest(size: int, limit: int) -> int:
    return next(n for n in range(min(size, limit), 0, -1) if size % n == 0)


def _copy(w: Writer, op: Operation, *, is_load: bool) -> None:
    b = w.b
    parts = parts_of(w, op)
    gmem, smem = (
        parts[n][0] for n in (("source", "destination") if is_load else ("destination", "source"))
    )
    lengths = integers_of(op, "slice_lengths") or ()
    collective: Any = op.properties.get("collective")
    axes = [one.value.data for one in collective.data] if collective is not None else []
    shared = _share(w, smem, axes) if axes else None
    if shared is not None:
        smem = shared.part
    box, starts = _boxes(smem)
    width, rank = gmem.bytes, len(gmem.whole)
    kept = [dim for dim, length in enumerate(lengths) if length != -1]
    full_box = [1] * rank
    for dim, size in zip(kept, box, strict=True):
        full_box[dim] = size
    strides = [prod(gmem.whole[dim + 1 :]) * width for dim in range(rank)]
    if full_box[-1] * width % 16 or any(s % 16 for s in strides[:-1]):
        raise unfit(
            f"rows of {full_box[-1] * width} bytes are copied from {list(gmem.whole)}",
            "rows of the array and of the part have a multiple of 16 bytes",
        )
    described = MapParameter(
        gmem.argument,
        width,
        tuple(reversed(gmem.whole)),
        tuple(reversed(strides[:-1])),
        tuple(reversed(full_box)),
        smem.swizzle,
    )
    tensor_map = next((v for m, v in w.__dict__.setdefault("maps", []) if m == described), None)
    if tensor_map is None:
        tensor_map = b.tensor_map(described)
        w.__dict__["maps"].append((described, tensor_map))
    first: list[Index] = [w.to_index(v) for v in parts["indices"]]
    if shared is not None:
        at = kept[shared.axis]
        first[at] = b.add(first[at], shared.start)
    if not is_load:
        w.meet()
    predicate = parts["predicate"]
    chosen = w.b.andi(w.is_leader, predicate[0]) if predicate else w.is_leader
    with w.only(chosen):
        for start in starts:
            coordinates: list[Index] = list(first)
            for dim, at in zip(kept, start, strict=True):
                coordinates[dim] = b.add(coordinates[dim], at)
            where = w.address(smem.part(start, range(len(start)), box, b).start_bytes(b))
            numbers = [b.cast_index(b.index(c), i32) for c in reversed(coordinates)]
            if is_load:
                barrier = as_place(w, parts["barrier"][0])
                at_bytes = b.add(b.mul(barrier.linear((), b), 8), barrier.offset)
                mask = None if shared is None else shared.mask
                _bring(w, where, tensor_map, numbers, w.address(at_bytes), mask)
            else:
                listed = ", ".join(f"${n + 2}" for n in range(rank))
                w.ptx(
                    f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$1, {{{listed}}}], [$0];",
                    [where, tensor_map, *numbers],
                )


def _bring(
    w: Writer,
    where: SSAValue,
    tensor_map: SSAValue,
    numbers: Sequence[SSAValue],
    barrier: SSAValue,
    mask: SSAValue | None,
) -> None:
    listed = ", ".join(f"${n + 3}" for n in range(len(numbers)))
    cast_, last = (
        (".multicast::cluster", f", ${len(numbers) + 3}") if mask is not None else ("", "")
    )
    w.ptx(
        f"cp.async.bulk.tensor.{len(numbers)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{cast_} "
        f"[$0], [$1, {{{listed}}}], [$2]{last};",
        [where, tensor_map, barrier, *numbers, *([] if mask is None else [mask])],
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """What one block of a cluster copies for all along some axes."""

    part: Place
    """In shared memory."""
    axis: int
    """The dimension that is cut."""
    start: Index
    mask: SSAValue
    """The blocks that get it, a bit each."""


def _share(w: Writer, smem: Place, axes: Sequence[int]) -> _Share:
    b, launch = w.b, w.kernel.launch
    count = prod(launch.cluster[dim] for dim in axes)
    axis = next((dim for dim in range(len(smem.sizes)) if _is_cut(smem, dim, count)), None)
    if axis is None:
        raise unfit(
            f"a copy of {list(smem.sizes)} that {count} blocks of a cluster share",
            "give it rows in a multiple of 8 for each block, or 128 bytes",
        )
    each = smem.sizes[axis] // count
    mine: Index = 0
    for dim in axes:
        mine = b.add(b.mul(mine, launch.cluster[dim]), w.cluster_place(dim))
    bits = sum(
        1 << sum(at * launch.cluster_strides[dim] for dim, at in zip(axes, places, strict=True))
        for places in product(*(range(launch.cluster[dim]) for dim in axes))
    )
    base: Index = 0
    for dim, stride in enumerate(launch.cluster_strides):
        if dim not in axes and launch.cluster[dim] > 1:
            base = b.add(base, b.mul(w.cluster_place(dim), stride))
    shift = b.cast_index(b.index(base), i32)
    mask = b.cast(arith.TruncIOp, b.shli(b.constant(bits, i32), shift), i16)
    start = b.mul(mine, each)
    starts = [start if dim == axis else 0 for dim in range(len(smem.sizes))]
    sizes = [each if dim == axis else size for dim, size in enumerate(smem.sizes)]
    part = smem.part(starts, range(len(sizes)), sizes, b)
    return _Share(part, axis, start, mask)


def _is_cut(smem: Place, axis: int, count: int) -> bool:
    """Whether a dimension can be cut: each part begins at 128 bytes, swizzled ones at a pattern's first row."""
    size = smem.sizes[axis]
    if size % count:
        return False
    each, rank = size // count, len(smem.sizes)
    if smem.swizzle and axis == rank - 2:
        return each % 8 == 0
    if smem.swizzle and axis == rank - 1:
        return each * smem.bytes % smem.swizzle == 0
    return bool(smem.swizzle) or each * prod(smem.sizes[axis + 1 :]) * smem.bytes % 128 == 0


def _async_load(w: Writer, op: Operation) -> Sequence[Any]:
    _copy(w, op, is_load=True)
    return ()


def _async_store(w: Writer, op: Operation) -> Sequence[Any]:
    _copy(w, op, is_load=False)
    commit: Any = op.properties.get("commit_group")
    if commit is None or commit.value.data:
        _commit(w, op)
    return ()


def _commit(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    with w.only(w.is_leader):
        w.ptx("cp.async.bulk.commit_group;")
    return ()


def _wait_group(w: Writer, op: Operation) -> Sequence[Any]:
    read = ".read" if "read" in op.properties else ""
    with w.only(w.is_leader):
        w.ptx(f"cp.async.bulk.wait_group{read} {integer_of(op, 'group')};")
    return ()


OPERATIONS: Mapping[str, OPERATION] = {
    "mosaic_gpu.async_load": _async_load,
    "mosaic_gpu.async_store": _async_store,
    "nvvm.cp.async.bulk.commit.group": _commit,
    "nvvm.cp.async.bulk.wait_group": _wait_group,
}
"""What writes each operation."""
