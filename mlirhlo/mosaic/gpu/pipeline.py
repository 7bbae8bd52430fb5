"""Loops that copy blocks of arrays in GMEM to SMEM and back beside the work on them."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlirhlo.mosaic.gpu import primitives as gpu
from mlirhlo.mosaic.gpu.memory import Barrier, Scratch
from mlirhlo.mosaic.gpu.refs import GpuRef
from mlirhlo.mosaic.language.control import fori_loop, run_scoped, when
from mlirhlo.mosaic.language.dma import axis_index
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import div, rem, where
from mlirhlo.mosaic.language.indexing import ds
from mlirhlo.mosaic.language.trace import current
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import is_number


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """Which block of an array a step takes; sizes that are None are gone in the block."""

    block_shape: Sequence[int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = None
    transforms: Sequence[Any] = ()
    delay_release: int = 0
    collective_axes: Any = ()

    def buffer(self, ref: GpuRef, slots: int) -> Scratch:
        """Shared memory for blocks."""
        shape = tuple(size for size in self.sizes(ref) if size is not None)
        return Scratch((slots, *shape), ref.dtype, "smem", tuple(self.transforms))

    def sizes(self, ref: GpuRef) -> Sequence[int | None]:
        """Of a block."""
        return ref.shape if self.block_shape is None else self.block_shape

    def part(self, ref: GpuRef, indices: Sequence[Any]) -> GpuRef:
        """The block of a step."""
        sizes = self.sizes(ref)
        at = (0,) * len(sizes) if self.index_map is None else self.index_map(*indices)
        at = at if isinstance(at, tuple) else (at,)
        if len(at) != len(sizes):
            raise bad_spec(f"an index map gives {len(at)} indices for {len(sizes)} dimensions")
        return ref.at[
            tuple(
                i if size is None else ds(i * size, size) for i, size in zip(at, sizes, strict=True)
            )
        ]


def _unravelled(step: Any, grid: Sequence[int]) -> tuple[Any, ...]:
    found: list[Any] = []
    after = prod(grid)
    for dim, size in enumerate(grid):
        after //= size
        at = step if after == 1 else step // after if is_number(step) else div(step, after)
        found.append((at % size if is_number(at) else rem(at, size)) if dim else at)
    return tuple(found)


def _specs(specs: Any) -> list[Any]:
    return list(specs) if isinstance(specs, tuple | list) else [specs]


def _count(grid: Sequence[Any]) -> int:
    if not all(is_number(size) for size in grid) or not grid:
        raise bad_spec(f"a pipeline of grid {tuple(grid)!r}", "its sizes are known to Python")
    return prod(int(size) for size in grid)


def emit_pipeline(
    body: Callable[..., Any],
    *,
    grid: Sequence[int],
    in_specs: Any = (),
    out_specs: Any = (),
    max_concurrent_steps: int = 1,
    init_carry: Any = None,
    delay_release: int = 0,
) -> Callable[..., Any]:
    """A pipeline: called on references in GMEM it runs `body(indices, *blocks)` for each step of the grid, and copies
    blocks of the next `max_concurrent_steps` beside it. With `init_carry` the body is given a carry and returns it.
    """
    del delay_release
    sources, targets = _specs(in_specs), _specs(out_specs)
    count = _count(grid)
    slots = min(max_concurrent_steps, count)

    def run(*refs: GpuRef) -> Any:
        ins, outs = refs[: len(sources)], refs[len(sources) :]
        shapes = [s.buffer(r, slots) for s, r in zip([*sources, *targets], refs, strict=True)]
        barrier = Barrier(max(len(ins), 1), slots)
        return run_scoped(lambda *given: work(ins, outs, given[:-1], given[-1]), *shapes, barrier)

    def work(ins: Any, outs: Any, buffers: Any, full: GpuRef) -> Any:
        read, written = buffers[: len(ins)], buffers[len(ins) :]

        def fetch(step: Any, slot: Any) -> None:
            for spec, ref, buffer in zip(sources, ins, read, strict=True):
                part = spec.part(ref, _unravelled(step, grid))
                gpu.copy_gmem_to_smem(part, buffer.at[slot], full.at[slot])

        for step in range(slots if ins else 0):
            fetch(step, step)

        def one(step: Any, carry: Any) -> Any:
            slot = rem(step, slots)
            indices = _unravelled(step, grid)
            if ins:
                gpu.barrier_wait(full.at[slot])
            if outs:
                gpu.wait_smem_to_gmem(slots - 1, wait_read_only=True)
            blocks = [buffer.at[slot] for buffer in buffers]
            carry = body(indices, *blocks) if init_carry is None else body(indices, *blocks, carry)
            if outs:
                gpu.commit_smem()
            for spec, ref, buffer in zip(targets, outs, written, strict=True):
                gpu.copy_smem_to_gmem(buffer.at[slot], spec.part(ref, indices), commit_group=False)
            if outs:
                gpu.commit_smem_to_gmem_group()
            if ins and count > slots:
                when(step + slots < count)(lambda: fetch(step + slots, slot))
            return None if init_carry is None else carry

        result = fori_loop(0, count, one, init_carry)
        if outs:
            gpu.wait_smem_to_gmem(0)
        return result

    return run


def _drain(empty: GpuRef, count: int, slots: int) -> None:
    """Waits until the last steps of a pipeline are consumed: its next run in a loop begins without waiting."""
    for step in range(count - slots, count):
        gpu.barrier_wait(empty.at[step % slots])


def emit_pipeline_warp_specialized(
    body: Callable[..., Any],
    *,
    grid: Sequence[int],
    memory_registers: int,
    in_specs: Any = (),
    out_specs: Any = (),
    max_concurrent_steps: int = 2,
    wg_axis: str,
    num_compute_wgs: int,
    pipeline_state: Any = None,
    manual_consumed_barriers: bool = False,
    compute_context: Callable[..., Any] | None = None,
    memory_thread_idx: int | None = None,
) -> Callable[..., Any]:
    """A pipeline whose copies are a warp group's of its own; `num_compute_wgs` others run the body.

    `compute_context(pipeline)` runs in these, calls `pipeline(carry)` once, and uses what that gives.
    """
    if pipeline_state is not None or out_specs:
        raise bad_spec(
            "a warp-specialised pipeline with a state or results",
            "write results in compute_context, by copy_smem_to_gmem",
        )
    sources = _specs(in_specs)
    count = _count(grid)
    slots = min(max_concurrent_steps, count)
    memory = num_compute_wgs if memory_thread_idx is None else memory_thread_idx

    def run(*refs: GpuRef) -> None:
        shapes = [spec.buffer(ref, slots) for spec, ref in zip(sources, refs, strict=True)]
        full, empty = Barrier(len(refs), slots), Barrier(num_compute_wgs, slots)
        run_scoped(
            lambda *given: work(refs, given[:-2], given[-2], given[-1]), *shapes, full, empty
        )

    def work(refs: Any, buffers: Any, full: GpuRef, empty: GpuRef) -> None:
        group = axis_index(wg_axis)
        is_repeated = bool(current().cache["depth"])

        def copies() -> None:
            gpu.set_max_registers(memory_registers, action="decrease")

            def one(step: Any, _: Any) -> None:
                slot = rem(step, slots)
                when(step >= slots)(lambda: gpu.barrier_wait(empty.at[slot]))
                for spec, ref, buffer in zip(sources, refs, buffers, strict=True):
                    part = spec.part(ref, _unravelled(step, grid))
                    gpu.copy_gmem_to_smem(part, buffer.at[slot], full.at[slot])

            fori_loop(0, count, one, None)
            _drain(empty, count, slots if is_repeated else 0)

        def pipeline(carry: Any) -> Any:
            has_carry = bool(flatten(carry)[0])

            def one(step: Any, carry: Any) -> Any:
                slot = rem(step, slots)
                gpu.barrier_wait(full.at[slot])
                blocks = [buffer.at[slot] for buffer in buffers]
                consumed = [empty.at[slot]] * len(buffers) if manual_consumed_barriers else []
                more = {"carry": carry} if has_carry else {}
                carry = body(_unravelled(step, grid), *blocks, *consumed, **more)
                if not manual_consumed_barriers:
                    gpu.barrier_arrive(empty.at[slot])
                return carry if has_carry else None

            return fori_loop(0, count, one, carry if has_carry else None)

        when(group == memory)(copies)
        others = group != memory

        @when(others)
        def _() -> None:
            if compute_context is None:
                pipeline(None)
            else:
                compute_context(pipeline)

    return run


PipelinePipeline = None
"""A state handed from one pipeline to the next has no meaning here."""


@dataclass(frozen=True, slots=True)
class NDLoopInfo:
    """Where a loop of `nd_loop` is."""

    index: tuple[Any, ...]
    local_index: Any
    num_local_steps: Any


def nd_loop(
    grid: Sequence[int],
    *,
    collective_axes: Any,
    tiling: Any = None,
    init_carry: Any = None,
) -> Callable[..., Any]:
    """Decorator: the function runs for the indices of a grid that are this block's, of those along the axes."""
    if tiling is not None:
        raise bad_spec("nd_loop with tiling", "order the grid with planar_snake")
    axes = (collective_axes,) if isinstance(collective_axes, str) else tuple(collective_axes)
    count = _count(grid)

    def run(body: Callable[..., Any]) -> Any:
        trace = current("nd_loop")
        workers = 1
        mine: Any = 0
        for axis in axes:
            if axis not in trace.names:
                raise bad_spec(f"the grid has no axis {axis!r}")
            size = trace.grid[trace.names[axis]]
            assert size is not None
            workers, mine = workers * size, mine * size + axis_index(axis)
        rounds, rest = divmod(count, workers)
        steps = rounds if not rest else where(mine < rest, rounds + 1, rounds)

        def one(local: Any, carry: Any) -> Any:
            info = NDLoopInfo(_unravelled(mine + local * workers, grid), local, steps)
            return body(info) if init_carry is None else body(info, carry=carry)

        return fori_loop(0, steps, one, init_carry)

    return run


def dynamic_scheduling_loop(
    grid_names: Sequence[str],
    thread_axis: str | None = None,
    cluster_axes: Sequence[str] = (),
    init_carry: Any = None,
) -> Callable[..., Any]:
    """Decorator: the function runs for this block's indices along the axes of the grid.

    A device may let a block take over the indices of blocks that have not begun; here every block is launched, and
    runs the function once. `thread_axis` and `cluster_axes` are of no effect.
    """
    del thread_axis, cluster_axes

    def run(body: Callable[..., Any]) -> Any:
        names = current("dynamic_scheduling_loop").names
        if unknown := [name for name in grid_names if name not in names]:
            raise bad_spec(f"the grid has no axis {unknown[0]!r}")
        info = NDLoopInfo(tuple(map(axis_index, grid_names)), 0, None)
        return body(info) if init_carry is None else body(info, carry=init_carry)

    return run


def planar_snake(lin_idx: Any, shape: tuple[int, int], minor_dim: int, tile_width: int) -> Any:
    """The index of a step in a plane: tiles of a width along `minor_dim`, every other one from its end on."""
    width = min(tile_width, shape[minor_dim])
    major_size, minor_size = shape[1 - minor_dim], shape[minor_dim]
    tile = lin_idx // (width * major_size)
    full = minor_size // width
    rest = minor_size - full * width
    within = lin_idx - tile * (width * major_size)
    # The last tile may be narrower.
    breadth = where(tile < full, width, max(rest, 1))
    minor = tile * width + within % breadth
    down = within // breadth
    major = where(tile % 2 == 0, down, major_size - 1 - down)
    return (minor, major) if minor_dim == 0 else (major, minor)


def find_swizzle(minor_dim_bits: int, what: str = "") -> int:
    """The widest swizzle that divides rows of so many bits."""
    for swizzle in (128, 64, 32, 16):
        if minor_dim_bits % (swizzle * 8) == 0:
            return swizzle
    raise bad_spec(f"{what or 'rows'} of {minor_dim_bits} bits are no multiple of 16 bytes")
