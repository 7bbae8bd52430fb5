"""Kernels that move: gathered pages, copies with two buffers, an all-gather around a ring."""

# Index maps are lambdas whose parameters have no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlirhlo.mosaic.kernels.library import kernel, unfit
from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.control import fori_loop, when
from mlirhlo.mosaic.language.dma import (
    axis_index,
    get_barrier_semaphore,
    make_async_copy,
    make_async_remote_copy,
    semaphore_signal,
    semaphore_wait,
)
from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.grid import program_id
from mlirhlo.mosaic.language.indexing import ds
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace, SemaphoreType
from mlirhlo.mosaic.language.specs import (
    BlockSpec,
    CompilerParams,
    PrefetchScalarGridSpec,
    ShapeDtypeStruct,
)
from mlirhlo.mosaic.language.value import Value

_ANY = BlockSpec(memory_space=MemorySpace.ANY)


@kernel
def ragged_gather(
    indices: ShapeDtypeStruct, lengths: ShapeDtypeStruct, pages: ShapeDtypeStruct
) -> KernelCall:
    """Pages [p, r, c] in the order of indices [b, l], of which row i uses the first lengths[i].

    The result is [b, l, r, c], zero beyond the lengths. Indices are scalars known before the kernel
    begins, so that pages come by the pipeline's own copies.
    """
    if len(pages.shape) != 3 or len(indices.shape) != 2 or lengths.shape != indices.shape[:1]:
        raise unfit(
            "ragged_gather",
            f"indices {list(indices.shape)}, lengths {list(lengths.shape)}, "
            f"pages {list(pages.shape)}",
        )
    if indices.dtype != I32 or lengths.dtype != I32:
        raise unfit("ragged_gather", "indices and lengths are i32")
    count, longest = indices.shape
    _, rows, columns = pages.shape

    def ragged_gather_kernel(indices_ref: Ref, lengths_ref: Ref, page_ref: Ref, o_ref: Ref) -> None:
        row, at = program_id(0), program_id(1)

        @when(at < lengths_ref[row])
        def _() -> None:
            o_ref[...] = page_ref[...]

        @when(at >= lengths_ref[row])
        def _() -> None:
            o_ref[...] = np.zeros((), pages.dtype)[()]

    return kernel_call(
        ragged_gather_kernel,
        ShapeDtypeStruct((count, longest, rows, columns), pages.dtype),
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(count, longest),
            in_specs=[BlockSpec((None, rows, columns), lambda i, j, index, _: (index[i, j], 0, 0))],
            out_specs=BlockSpec((None, None, rows, columns), lambda i, j, *_: (i, j, 0, 0)),
        ),
        name="ragged_gather",
    )


@kernel
def double_buffered_copy(x: ShapeDtypeStruct, *, rows: int = 128) -> KernelCall:
    """x [m, n], from HBM to HBM through two buffers in VMEM: a block comes in while another goes out."""
    if len(x.shape) != 2 or x.shape[0] % rows:
        raise unfit("double_buffered_copy", f"{list(x.shape)} in blocks of {rows} rows")
    steps = x.shape[0] // rows

    def double_buffered_copy_kernel(
        x_ref: Ref, o_ref: Ref, buffers: Ref, in_sems: Ref, out_sems: Ref
    ) -> None:
        def coming(step: Any) -> Any:
            slot = step % 2
            source = x_ref.at[ds(step * rows, rows)]
            return make_async_copy(source, buffers.at[slot], in_sems.at[slot])

        def going(step: Any) -> Any:
            slot = step % 2
            target = o_ref.at[ds(step * rows, rows)]
            return make_async_copy(buffers.at[slot], target, out_sems.at[slot])

        coming(0).start()

        def body(step: Value, nothing: None) -> None:
            del nothing

            @when(step >= 1)
            def _() -> None:
                # The other buffer has to be empty before the next block comes into it.
                going(step - 1).wait()

            @when(step + 1 < steps)
            def _() -> None:
                coming(step + 1).start()

            coming(step).wait()
            going(step).start()

        fori_loop(0, steps, body)
        going(steps - 1).wait()

    return kernel_call(
        double_buffered_copy_kernel,
        x,
        in_specs=[_ANY],
        out_specs=_ANY,
        scratch_shapes=[
            MemorySpace.VMEM((2, rows, x.shape[1]), x.dtype),
            SemaphoreType.DMA((2,)),
            SemaphoreType.DMA((2,)),
        ],
        name="double_buffered_copy",
    )


@kernel
def ring_all_gather(
    x: ShapeDtypeStruct, *, mesh: Mapping[str, int], collective_id: int = 0
) -> KernelCall:
    """The shards x [m, n] of all devices of a mesh of one axis, as [devices, m, n] on each of them.

    Each device sends on to its right neighbour what came from its left one.
    """
    if len(mesh) != 1:
        raise unfit("ring_all_gather", f"a mesh of axes {', '.join(mesh)}", "one axis is a ring")
    ((axis, devices),) = mesh.items()

    def ring_all_gather_kernel(
        x_ref: Ref, o_ref: Ref, own_sem: Ref, send_sems: Ref, recv_sems: Ref
    ) -> None:
        me = axis_index(axis)
        right, left = (me + 1) % devices, (me + (devices - 1)) % devices
        # Nobody is sent to before it is here.
        barrier = get_barrier_semaphore()
        semaphore_signal(barrier, 1, device_id=(left,))
        semaphore_signal(barrier, 1, device_id=(right,))
        semaphore_wait(barrier, 2)
        own = make_async_copy(x_ref, o_ref.at[me], own_sem)
        own.start()
        own.wait()

        def step(number: Value, _: None) -> None:
            shard = (me + (devices - number)) % devices
            copy = make_async_remote_copy(
                o_ref.at[shard],
                o_ref.at[shard],
                send_sems.at[number],
                recv_sems.at[number],
                device_id=(right,),
            )
            copy.start()
            copy.wait()

        fori_loop(0, devices - 1, step)

    steps = max(1, devices - 1)
    return kernel_call(
        ring_all_gather_kernel,
        ShapeDtypeStruct((devices, *x.shape), x.dtype),
        in_specs=[_ANY],
        out_specs=_ANY,
        scratch_shapes=[
            SemaphoreType.DMA,
            SemaphoreType.DMA((steps,)),
            SemaphoreType.DMA((steps,)),
        ],
        name="ring_all_gather",
        mesh=mesh,
        compiler_params=CompilerParams(collective_id=collective_id, has_side_effects=True),
    )
