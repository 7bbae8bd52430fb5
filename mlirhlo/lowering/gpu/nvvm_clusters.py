"""Barriers of clusters, and loads from the shared memory of their blocks, in the llvm dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import llvm as xllvm
from xdsl.ir import Operation

from mlirhlo.dialects.nvvm import ClusterLoadOp
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering
from mlirhlo.lowering.loops_to_llvm.indices import pointer_in
from mlirhlo.lowering.loops_to_llvm.memory import access

CLUSTER_SHARED = 7
"""Address space of the shared memory of all blocks of a cluster."""


def _barrier(what: str) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        del op
        intrinsic(to, f"llvm.nvvm.barrier.cluster.{what}.aligned", [], None)

    return lower


def _load(to: Lowering, op: ClusterLoadOp) -> None:
    operands = [to.address(op.source, [op.index]), to.values[op.block]]
    pointer = pointer_in(CLUSTER_SHARED)
    address = intrinsic(to, "llvm.nvvm.mapa.shared.cluster", operands, pointer)
    type_ = op.result.type
    to.values[op.result] = to.emit(
        xllvm.LoadOp, [address], to.convert(type_), access(to, op, type_)
    )


HANDLERS: Mapping[str, Handler] = {
    "nvvm.cluster.arrive": _barrier("arrive"),
    "nvvm.cluster.wait": _barrier("wait"),
    "nvvm.ld.cluster": cast(Handler, _load),
}
"""What lowers them."""
