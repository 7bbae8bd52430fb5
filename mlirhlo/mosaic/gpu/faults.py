"""Names of Pallas' language for GPUs that have no meaning here, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.mosaic.language.faults import user_place
from mlirhlo.mosaic.target.places import source_place

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
        "try_cluster_cancel query_cluster_cancel TryClusterCancelResult",
        (
            "launches are not cancelled, which sm_100 does; use dynamic_scheduling_loop, or share the "
            "work among the blocks with nd_loop"
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
)
_INSTEAD = {name: mend for names, mend in _ROWS for name in names.split()}
LACKING = tuple(_INSTEAD)
"""Names that exist and are refused."""


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "mosaic_gpu.async_load": ("leader_tracked",),
    "mosaic_gpu.async_store": ("reduction_op", "is_global_broadcast", "gmem_peer_id"),
    "mosaic_gpu.tcgen05_commit_arrive": ("collective",),
    "mosaic_gpu.tcgen05_mma": ("a_scale", "b_scale", "a_sparse_metadata", "collective"),
    "mosaic_gpu.tmem_alloc": ("collective",),
}
"""Operands and properties of operations that neither the interpreter nor the lowering follows."""


_FALSE = IntegerAttr(0, i1)


def check_options(ops: Iterable[Operation]) -> None:
    """Raises `HloError` HLO0758 for an operation with an option that is not followed."""
    for op in ops:
        names = _OPTIONS.get(op.name)
        if names is None:
            continue
        row = ROWS[op.name]
        operands = groups(op, row, row.operands, tuple(op.operands))
        for name in names:
            if operands.get(name) or op.properties.get(name) not in (None, _FALSE):
                raise error(
                    "HLO0758",
                    f"{op.name} with {name} has no code for GPUs",
                    source_place(op),
                    help="use the operation without it",
                )


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
