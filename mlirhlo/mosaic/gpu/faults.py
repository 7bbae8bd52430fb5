"""Names of Pallas' language for GPUs that have no meaning here, and what to write instead."""

from __future__ import annotations

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.language.faults import user_place

_ROWS: tuple[tuple[str, str], ...] = (
    (
        (
            "TMEMLayout async_copy_scales_to_tmem async_copy_smem_to_tmem "
            "async_copy_sparse_metadata_to_tmem format_tcgen05_sparse_metadata"
        ),
        "tensor memory has the sums of tcgen05_mma, of dense factors without scales, in one layout",
    ),
    (
        "multimem_load_reduce multimem_store multicast_ref",
        "multicast objects join several GPUs; reduce on each, and send by a program's collectives",
    ),
    (
        (
            "semaphore_signal semaphore_signal_multicast semaphore_signal_parallel semaphore_wait "
            "SemaphoreSignal SemaphoreType remote_ref PeerMemRef"
        ),
        (
            "semaphores in GMEM join several GPUs; within a block use Barrier, within a cluster "
            "ClusterBarrier"
        ),
    ),
    (
        "try_cluster_cancel query_cluster_cancel TryClusterCancelResult dynamic_scheduling_loop",
        (
            "launches are not cancelled, which sm_100 does; share the work among the blocks with "
            "nd_loop"
        ),
    ),
    (
        "inline_mgpu",
        (
            "Mosaic's own Python has no meaning here; write the function with loads, stores and the "
            "functions of mlirhlo.mosaic.numpy"
        ),
    ),
    (
        "as_torch_kernel",
        "call the kernel with numpy arrays, or use mlirhlo.integrations",
    ),
    (
        "griddepcontrol_wait griddepcontrol_launch_dependents",
        "each launch begins when the one before has ended; leave them out",
    ),
    (
        "warp_map WarpMesh",
        (
            "a thread of the language is a warp group; give work to a warp group of its own with "
            "num_threads"
        ),
    ),
    (
        "async_store_smem",
        "store to cluster_ref(ref, axis) of the other block, and arrive at a ClusterBarrier",
    ),
    (
        "print_layout",
        "layouts are chosen when the kernel is lowered; kernel.ptx() shows the result",
    ),
    (
        "RefUnion",
        "buffers share no memory; use one buffer, and bitcast nothing",
    ),
)
_INSTEAD = {name: mend for names, mend in _ROWS for name in names.split()}
LACKING = tuple(_INSTEAD)
"""Names that exist and are refused."""


def not_here(name: str) -> HloError:
    """HLO0757: a name that has no meaning here."""
    return error(
        "HLO0757",
        f"{name} of Pallas' language for GPUs has no meaning here",
        user_place(),
        help=_INSTEAD.get(name),
    )


def unfit(message: str, help: str | None = None) -> HloError:
    """HLO0758: what the lowering to PTX does not do."""
    return error("HLO0758", message, user_place(), help=help)
