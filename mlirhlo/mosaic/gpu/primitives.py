"""What kernels for GPUs do beside arithmetic: copies, barriers, products of matrices."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i32, i64

from mlirhlo.importing import LATE
from mlirhlo.mosaic.gpu.memory import ClusterBarrier
from mlirhlo.mosaic.gpu.refs import GpuRef, as_i32, load, memref_of, store
from mlirhlo.mosaic.language.elements import BOOL, I32, as_dtype, bits_of
from mlirhlo.mosaic.language.faults import bad_memory, bad_shape, bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import cast
from mlirhlo.mosaic.language.indexing import Part
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    UNIT,
    attribute,
    current,
    emit,
    emit_one,
    flag,
    int_attr,
    ints,
    text,
    vector_type,
)
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value, constant

with LATE:
    from mlirhlo.mosaic.gpu import layouts


WARP_GROUP_BARRIER = "bar.sync $0, 128;"
"""What the threads of a warp group meet at."""
ATOMICS = {"add": 0, "min": 1, "max": 2, "and": 3, "or": 4, "xor": 5}


def in_space(ref: GpuRef, space: str, what: str) -> None:
    """Raises `HloError` HLO0725 for a reference to another memory."""
    if ref.space != space:
        raise bad_memory(f"{what} is in {ref.space.upper()}, not in {space.upper()}")


def warp_group_barrier() -> None:
    """All threads of the warp group come here before any goes on."""
    mine = current().cache["thread"]
    number = emit_one("arith.addi", [mine.ssa, constant(1, I32).ssa], i32)
    emit(
        "llvm.inline_asm",
        [number],
        [attribute_type("!llvm.void")],
        {
            "asm_string": text(WARP_GROUP_BARRIER),
            "constraints": text("r"),
            "has_side_effects": UNIT,
        },
    )


def attribute_type(spelled: str) -> Any:
    """A type by its text."""
    return attribute(spelled)


def _pieces(ref: GpuRef) -> tuple[list[Any], list[int]]:
    """Indices and lengths of a part of global memory; -1 for dimensions that are gone."""
    indices = [as_i32(part.start).ssa for part in ref.parts]
    return indices, [-1 if part.is_dropped else part.size for part in ref.parts]


def _same(src: GpuRef, dst: GpuRef) -> None:
    if src.shape != dst.shape or src.dtype != dst.dtype:
        raise bad_shape(
            f"{src.dtype.name}{list(src.shape)} is copied to {dst.dtype.name}{list(dst.shape)}"
        )


def copy_gmem_to_smem(
    src: GpuRef,
    dst: GpuRef,
    barrier: GpuRef,
    *,
    collective_axes: Any = None,
    leader_tracked: Any = None,
    oob_mode: Any = None,
) -> None:
    """Begins a copy to shared memory; its bytes arrive at the barrier."""
    del oob_mode
    in_space(src, "gmem", "the source")
    in_space(dst, "smem", "the target")
    _same(src, dst)
    if leader_tracked is not None:
        raise bad_spec("a copy tracked by the leader of a cluster", "copy in each block")
    axes = (collective_axes,) if isinstance(collective_axes, str) else tuple(collective_axes or ())
    at = one_barrier(barrier)
    indices, lengths = _pieces(src)
    size = dst.size * bits_of(dst.dtype) // 8
    emit("mosaic_gpu.arrive_expect_tx", [at], (), {"expect_tx": int_attr(size)})
    emit(
        "mosaic_gpu.async_load",
        [src.root, dst.operand(), at, *indices],
        (),
        {
            "slice_lengths": ints(lengths),
            "collective": ArrayAttr([int_attr(current().cache["cluster"].index(a)) for a in axes]),
            SEGMENTS: ints([1, 1, 1, len(indices), 0], 32),
        },
    )


def async_prefetch(ref: GpuRef, *, collective_axes: Any = None, **_: Any) -> None:
    """Begins to bring a part of global memory into the cache of the device."""
    del collective_axes
    in_space(ref, "gmem", "what is prefetched")
    indices, lengths = _pieces(ref)
    attributes = {"slice_lengths": ints(lengths), "collective": ArrayAttr([])}
    attributes[SEGMENTS] = ints([1, len(indices), 0], 32)
    emit("mosaic_gpu.async_prefetch", [ref.root, *indices], (), attributes)


def copy_smem_to_gmem(
    src: GpuRef,
    dst: GpuRef,
    predicate: Any = None,
    *,
    commit_group: bool = True,
    reduction_op: str | None = None,
) -> None:
    """Begins a copy to global memory, where `predicate` holds; `commit_smem` comes before it, `wait_smem_to_gmem`
    after.
    """
    in_space(src, "smem", "the source")
    in_space(dst, "gmem", "the target")
    _same(src, dst)
    if reduction_op is not None:
        raise bad_spec("a copy with a reduction", "load the tile and use atomic_add")
    chosen = [] if predicate is None else [as_value(predicate, BOOL).ssa]
    indices, lengths = _pieces(dst)
    emit(
        "mosaic_gpu.async_store",
        [src.operand(), dst.root, *indices, *chosen],
        (),
        {
            "slice_lengths": ints(lengths),
            "commit_group": flag(commit_group),
            SEGMENTS: ints([1, 1, len(indices), len(chosen), 0], 32),
        },
    )


def commit_smem_to_gmem_group() -> None:
    """Makes a group of the copies begun since the last one."""
    emit("nvvm.cp.async.bulk.commit.group")


def wait_smem_to_gmem(n: int, wait_read_only: bool = False) -> None:
    """Waits until all groups of copies but the last n have ended, or have read shared memory."""
    attributes = {"group": int_attr(n)}
    if wait_read_only:
        attributes["read"] = UNIT
    emit("nvvm.cp.async.bulk.wait_group", (), (), attributes)
    warp_group_barrier()


def commit_smem() -> None:
    """Lets copies see what the warp group has stored to shared memory."""
    kind = "#nvvm.proxy_kind<async.shared>"
    attributes = {"kind": attribute(kind), "space": attribute("#nvvm.shared_space<cta>")}
    emit("nvvm.fence.proxy", (), (), attributes)
    warp_group_barrier()


# ---------------------------------------------------------------- barriers


def one_barrier(barrier: GpuRef) -> Any:
    """The operand of one barrier."""
    return _one(barrier).operand()


def _one(barrier: GpuRef) -> GpuRef:
    if not barrier.barrier:
        raise bad_memory(f"{barrier!r} is no barrier", "scratch_types has Barrier() for one")
    if not barrier.shape:
        return barrier
    if barrier.shape != (1,):
        raise bad_memory(f"{barrier.shape[0]} barriers", "index one of them: barrier.at[i]")
    return barrier.at[0]


def barrier_arrive(barrier: GpuRef) -> None:
    """The warp group arrives at a barrier, once; at that of every block for those of a cluster."""
    one = _one(barrier)
    wanted = one.barrier
    if not isinstance(wanted, ClusterBarrier):
        emit("mosaic_gpu.arrive", [one.operand()], (), {"orders_tensor_core": flag(False)})
        return
    names: list[str] = current().cache["cluster"]
    sizes: list[int] = current().cache["cluster_sizes"]
    places: list[dict[str, int]] = [{}]
    for axis in wanted.axes:
        places = [{**p, axis: i} for p in places for i in range(sizes[names.index(axis)])]
    for place in places:
        peer = cluster_ref(one, place)
        emit("mosaic_gpu.arrive", [peer.operand()], (), {"orders_tensor_core": flag(False)})


def barrier_wait(barrier: GpuRef) -> None:
    """Waits until the next phase of a barrier ends."""
    one = _one(barrier)
    assert one.phases is not None
    bit = next((p.start for p in one.parts if p.is_dropped), 0)
    phases = Value(emit_one("memref.load", [one.phases], i32), (), I32)
    mask = as_i32(1) << as_i32(bit)
    is_odd = (phases & mask) != 0
    emit("memref.store", [(phases ^ mask).ssa, one.phases])
    assert is_odd.dtype == BOOL
    emit("mosaic_gpu.wait", [one.operand(), is_odd.ssa])


def barrier_test(barrier: GpuRef) -> Any:
    """Refused: whether a phase has ended depends on time."""
    del barrier
    raise bad_memory("barrier_test depends on time", "wait with barrier_wait")


# ---------------------------------------------------------------- products


def wgmma(acc: GpuRef, a: GpuRef | Value, b: GpuRef) -> None:
    """Begins `acc += a @ b`; `wgmma_wait` ends it. a: [m, k] in SMEM or registers, b: [k, n] in SMEM."""
    in_space(acc, "regs", "the accumulator")
    in_space(b, "smem", "b")
    (m, n), k = acc.shape, a.shape[-1]
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != m or b.shape != (k, n):
        raise bad_shape(f"{list(a.shape)} times {list(b.shape)} added to {list(acc.shape)}")
    if a.dtype != b.dtype:
        raise bad_shape(f"{a.dtype.name} times {b.dtype.name}")
    if m % 64 or n % 8 or n > 256:
        raise bad_shape(
            f"wgmma of {m} rows and {n} columns", "m is a multiple of 64, n of 8, ≤ 256"
        )
    total = acc.operand()
    type_ = vector_type(acc.shape, acc.dtype)
    emit("nvvm.wgmma.fence.aligned")
    sums = emit_one("mosaic_gpu.vector_load", [total], type_)
    factors = [a.ssa if isinstance(a, Value) else factor_of(a), factor_of(b)]
    made = emit_one("mosaic_gpu.wgmma", [sums, *factors], type_)
    emit("mosaic_gpu.vector_store", [made, total])
    emit("nvvm.wgmma.commit.group.sync.aligned")


def factor_of(ref: GpuRef) -> Any:
    """A factor of a product as a memref."""
    if not ref.is_transposed:
        return ref.operand()
    from xdsl.dialects.builtin import AffineMapAttr
    from xdsl.ir.affine import AffineExpr, AffineMap

    plain = replace(ref, is_transposed=False)
    strides = [1, plain.whole[-1]]
    swap = AffineMapAttr(AffineMap(2, 0, (AffineExpr.dimension(1), AffineExpr.dimension(0))))
    type_ = memref_of(ref.shape, ref.element(), ref.space, strides)
    return emit_one("memref.transpose", [plain.operand()], type_, {"permutation": swap})


def wgmma_wait(n: int) -> None:
    """Waits until all products but the last n have ended."""
    emit("nvvm.wgmma.wait.group.sync.aligned", (), (), {"group": IntegerAttr(n, i64)})


def wgmma_accumulator_load(acc: GpuRef, *, wait_n: int | None = 0) -> Value:
    """What an accumulator holds when all products but the last `wait_n` have ended; None waits for none."""
    if wait_n is not None:
        wgmma_wait(wait_n)
    return load(acc)


# ---------------------------------------------------------------- others


def griddepcontrol_wait() -> None:
    """Does nothing: the launches that this one depends on have ended before it begins."""


def griddepcontrol_launch_dependents() -> None:
    """Does nothing: launches that depend on this one begin when it has ended."""


def set_max_registers(n: int, *, action: str) -> None:
    """The registers that each thread of the warp group may have from here on."""
    if action not in ("increase", "decrease") or n % 8 or not 24 <= n <= 256:
        raise bad_spec(f"{action} to {n} registers", "a multiple of 8 from 24 to 256")
    attributes = {"action": attribute(f"#nvvm<action {action}>"), "regCount": int_attr(n)}
    emit("nvvm.setmaxregister", (), (), attributes)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, layout: Any = None
) -> Value:
    """Numbers from 0 along a dimension."""
    type_ = vector_type(tuple(shape), I32)
    attributes = {"dimension": int_attr(dimension % len(shape))}
    ssa = emit_one("mosaic_gpu.broadcasted_iota", [], type_, attributes)
    found = cast(Value(ssa, tuple(shape), I32), as_dtype(dtype))
    if layout is not None:
        found = layouts.layout_cast(found, layout)
    return found


def cluster_ref(ref: GpuRef, block_id: Any) -> GpuRef:
    """The same shared memory of another block of the cluster: `cluster_ref(ref, {"x": 1})`.

    Along axes that `block_id` does not name it is the block's own. Raises `HloError` HLO0726 for other axes.
    """
    in_space(ref, "smem", "what another block of a cluster has")
    names: list[str] = current().cache["cluster"]
    unknown = [axis for axis in block_id if axis not in names]
    if unknown:
        raise bad_spec(f"the cluster has no axis {unknown[0]!r}")
    ranks = [as_i32(block_id[name]).ssa if name in block_id else None for name in [*names, *"___"]][
        :3
    ]
    sizes = [1, *(int(one is not None) for one in ranks)]
    type_ = memref_of(ref.whole, ref.element(), "cluster")
    operands = [ref.root, *(one for one in ranks if one is not None)]
    root = emit_one("mosaic_gpu.get_cluster_ref", operands, type_, {SEGMENTS: ints(sizes, 32)})
    return replace(ref, root=root, space="cluster")


def transform_ref(ref: GpuRef, transform: Any) -> GpuRef:
    """Refused: transforms are given where a buffer is asked for."""
    raise bad_spec(f"{transform!r} of {ref!r}", "give SMEM(…, transforms=…) the transforms")


def transpose_ref(ref: GpuRef, permutation: Sequence[int]) -> GpuRef:
    """The transpose of a reference, as a factor of wgmma."""
    if tuple(permutation) != (1, 0):
        raise bad_shape(f"a reference transposed by {tuple(permutation)}", "(1, 0)")
    return ref.T


def _atomic(name: str) -> Any:
    def update(ref: GpuRef, val: ArrayLike) -> None:
        if ref.space == "regs":
            raise bad_memory("registers are updated atomically", "use ref[...] = …")
        store(ref, ..., val, atomic=ATOMICS[name])

    update.__doc__ = f"Combines memory with values by `{name}`, element by element, at once."
    update.__name__ = f"atomic_{name}"
    return update


atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor = map(_atomic, ATOMICS)

__all__ = ["Part"]
