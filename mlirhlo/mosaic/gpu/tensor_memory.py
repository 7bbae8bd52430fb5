"""Tensor memory of sm_100a: products that are added up there, loads and stores of warp groups."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

from mlirhlo.importing import LATE
from mlirhlo.mosaic.gpu.primitives import factor_of, in_space, one_barrier
from mlirhlo.mosaic.gpu.refs import GpuRef, view
from mlirhlo.mosaic.language.elements import BOOL
from mlirhlo.mosaic.language.faults import bad_shape, bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import broadcast_to
from mlirhlo.mosaic.language.trace import SEGMENTS, attribute, emit, emit_one, ints, vector_type
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value

with LATE:
    from mlirhlo.mosaic.gpu import layouts


def tcgen05_mma(
    acc: GpuRef,
    a: GpuRef,
    b: GpuRef,
    barrier: GpuRef | None = None,
    *,
    a_scale: Any = None,
    b_scale: Any = None,
    a_sparse_metadata: Any = None,
    accumulate: Any = True,
    collective_axis: Any = None,
) -> None:
    """Begins `acc += a @ b`, or `acc = a @ b` where `accumulate` is false; it arrives at the barrier when it has ended.

    acc: [128, n] in TMEM, a: [128, k], b: [k, n] in SMEM, both of f16 or bf16.
    """
    if any(one is not None for one in (a_scale, b_scale, a_sparse_metadata, collective_axis)):
        raise bad_spec(
            "a product with scales, of sparse factors or of two blocks", "leave them out"
        )
    in_space(acc, "tmem", "the accumulator")
    in_space(a, "smem", "a")
    in_space(b, "smem", "b")
    (m, n), k = acc.shape, a.shape[-1]
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != m or b.shape != (k, n):
        raise bad_shape(f"{list(a.shape)} times {list(b.shape)} added to {list(acc.shape)}")
    if a.dtype != b.dtype:
        raise bad_shape(f"{a.dtype.name} times {b.dtype.name}")
    if m != 128 or n % 16 or n > 256 or k % 16:
        raise bad_shape(
            f"tcgen05_mma of {m} rows, {n} columns and {k} terms",
            "128 rows, columns in a multiple of 16, at most 256, terms in a multiple of 16",
        )
    adds = as_value(accumulate, BOOL)
    factors = [factor_of(a), factor_of(b)]
    segments = {SEGMENTS: ints([1, 1, 1, 1, 0, 0, 0], 32)}
    emit("mosaic_gpu.tcgen05_mma", [acc.operand(), *factors, adds.ssa], (), segments)
    if barrier is not None:
        tcgen05_commit_arrive(barrier)


def tcgen05_commit_arrive(barrier: GpuRef, collective_axis: Any = None) -> None:
    """Lets all products begun so far arrive at a barrier when they have ended."""
    if collective_axis is not None:
        raise bad_spec("a product of two blocks", "leave collective_axis out")
    emit("mosaic_gpu.tcgen05_commit_arrive", [one_barrier(barrier)])


def async_load_tmem(src: GpuRef, *, layout: Any = None) -> Value:
    """What tensor memory holds; `wait_load_tmem` comes before it is used."""
    in_space(src, "tmem", "what is loaded")
    found = Value(
        emit_one("mosaic_gpu.async_load_tmem", [src.operand()], vector_type(src.shape, src.dtype)),
        src.shape,
        src.dtype,
    )
    if layout is not None:
        found = layouts.layout_cast(found, layout)
    return found


def wait_load_tmem() -> None:
    """Waits until all loads of the warp group from tensor memory have ended."""
    _wait("load")


def async_store_tmem(ref: GpuRef, value: ArrayLike) -> None:
    """Stores to tensor memory; `commit_tmem` comes before products read it."""
    in_space(ref, "tmem", "what is stored to")
    part = view(ref, ...)
    held = broadcast_to(as_value(value, ref.dtype), part.shape)
    if held.dtype != ref.dtype:
        raise bad_shape(f"{held.dtype.name} is stored to {ref.dtype.name} of TMEM")
    emit("mosaic_gpu.async_store_tmem", [held.ssa, part.operand()])


def commit_tmem() -> None:
    """Waits until all stores of the warp group to tensor memory have ended."""
    _wait("store")


def _wait(kind: str) -> None:
    emit("nvvm.tcgen05.wait", (), (), {"kind": attribute(f"#nvvm.tcgen05_wait<{kind}>")})
