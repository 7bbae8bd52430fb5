"""Values, identities, and what has no effect on whole arrays."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.attributes import integer_of, integers_of, string_of
from mlirhlo.mosaic.gpu.interpreter.control import cluster_arrive
from mlirhlo.mosaic.gpu.interpreter.groups import Meaning, View, WarpGroup
from mlirhlo.mosaic.target.places import source_place


def _identity(of: Callable[[WarpGroup, int], Any]) -> Meaning:
    """Along the dimension that the operation says."""

    def compute(group: WarpGroup, op: Operation, operands: Any) -> Any:
        del operands
        dim = str(op.properties["dimension"]).rpartition(" ")[2].rstrip(">")
        return (np.int64(of(group, "xyz".index(dim))),)

    return compute


def _block_id(group: WarpGroup, dim: int) -> Any:
    sizes = group.run.kernel.launch.block_dims
    return np.unravel_index(group.block.number, sizes[::-1])[::-1][dim]


def _cluster_place(group: WarpGroup, dim: int) -> Any:
    launch = group.run.kernel.launch
    return group.block.rank // launch.cluster_strides[dim] % launch.cluster[dim]


def _block_size(group: WarpGroup, dim: int) -> Any:
    return 1 if dim else group.run.kernel.launch.num_threads * 128


def _wgmma(group: WarpGroup, op: Operation, operands: Any) -> Any:
    total, a, b = (v.array if isinstance(v, View) else v for v in operands)
    kind = np.int32 if np.dtype(total.dtype).kind in "iu" else np.float32
    return (total + np.matmul(np.asarray(a, kind), np.asarray(b, kind)).astype(total.dtype),)


def _iota(group: WarpGroup, op: Operation, operands: Any) -> Any:
    type_: Any = op.results[0].type
    shape = tuple(type_.get_shape())
    dims = integers_of(op, "dimensions") or (integer_of(op, "dimension"),)
    line = np.arange(shape[dims[0]], dtype=np.int32)
    return (
        np.broadcast_to(
            line.reshape([-1 if d == dims[0] else 1 for d in range(len(shape))]), shape
        ),
    )


def _index_cast(group: WarpGroup, op: Operation, operands: Any) -> Any:
    to_index = isinstance(op.results[0].type, IndexType)
    return ((np.int64 if to_index else np.int32)(operands[0]),)


def _broadcast_in_dim(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    type_: Any = op.results[0].type
    shape, dims = tuple(type_.get_shape()), integers_of(op, "broadcast_dimensions") or ()
    sizes = [1] * len(shape)
    for dim, size in zip(dims, operands[0].shape, strict=True):
        sizes[dim] = size
    return (np.broadcast_to(operands[0].reshape(sizes), shape),)


def _nothing(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    if op.name == "llvm.inline_asm" and not (string_of(op, "asm_string") or "").startswith(
        "bar.sync"
    ):
        raise error("HLO0757", "inline assembly has no meaning here", source_place(op))
    return (None,) * len(op.results)


def _all(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group, op
    return tuple(operands)


OPERATIONS: Mapping[str, Meaning] = {
    "gpu.block_id": _identity(_block_id),
    "gpu.block_dim": _identity(_block_size),
    "gpu.cluster_block_id": _identity(_cluster_place),
    "gpu.cluster_dim_blocks": _identity(lambda group, dim: group.run.kernel.launch.cluster[dim]),
    "gpu.thread_id": _identity(lambda group, dim: 0 if dim else group.number * 128),
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast,
    "mosaic_gpu.async_prefetch": lambda group, op, operands: (),
    "mosaic_gpu.broadcast_in_dim": _broadcast_in_dim,
    "mosaic_gpu.broadcasted_iota": _iota,
    "mosaic_gpu.layout_cast": _all,
    "mosaic_gpu.optimization_barrier": _all,
    "mosaic_gpu.wgmma": _wgmma,
    "nvvm.elect.sync": lambda group, op, operands: (np.True_,),
    "nvvm.shfl.sync": lambda group, op, operands: (operands[1],),
    "tpu.iota": _iota,
    "tpu.assume_multiple": _all,
    "nvvm.cluster.arrive": cluster_arrive,
    "nvvm.cluster.arrive.relaxed": cluster_arrive,
    **dict.fromkeys(
        (
            "llvm.inline_asm",
            "mosaic_gpu.tmem_dealloc",
            "mosaic_gpu.tmem_relinquish_alloc_permit",
            "nvvm.tcgen05.wait",
            "nvvm.cp.async.bulk.commit.group",
            "nvvm.cp.async.bulk.wait_group",
            "nvvm.fence.mbarrier.init",
            "nvvm.fence.proxy",
            "nvvm.setmaxregister",
            "nvvm.wgmma.commit.group.sync.aligned",
            "nvvm.wgmma.fence.aligned",
            "nvvm.wgmma.wait.group.sync.aligned",
        ),
        _nothing,
    ),
}
"""What each operation does."""
