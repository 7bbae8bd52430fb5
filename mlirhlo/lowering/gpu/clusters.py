"""Clusters of blocks, which see each other's shared memory."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.nvvm import ClusterArriveOp, ClusterLoadOp, ClusterWaitOp
from mlirhlo.lowering.gpu.builder import KernelBuilder


def cluster_barrier(b: KernelBuilder) -> None:
    """All threads of the cluster come here before any goes on, and see what the others wrote."""
    b.effect(ClusterArriveOp, ())
    b.effect(ClusterWaitOp, ())


def cluster_load(b: KernelBuilder, buffer: SSAValue, block: SSAValue) -> SSAValue:
    """What the block of a number in the cluster has at that index of a buffer in shared memory."""
    type_ = cast("MemRefType[Any]", buffer.type).element_type
    return b.emit(ClusterLoadOp, (buffer, block, b.cast_index(block, i32)), type_)
