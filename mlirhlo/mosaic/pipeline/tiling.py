"""Tiled layouts go through views of references, so that nothing works on erased ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.rewriter import Rewriter

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import (
    build,
    functions_of,
    insert,
    retype,
    tiled_layout_of,
    with_layout,
)
from mlirhlo.mosaic.target.tiling import is_memref
from mlirhlo.mosaic.target.views import layout_through

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

_TAKE_ANY = frozenset(
    {
        "tpu.vector_load",
        "tpu.vector_store",
        "tpu.strided_load",
        "tpu.strided_store",
        "vector.load",
        "vector.store",
        "vector.maskedload",
        "vector.maskedstore",
        "memref.load",
        "memref.store",
        "memref.dim",
        "tpu.enqueue_dma",
        "tpu.wait_dma",
        "tpu.wait_dma2",
        "tpu.sem_signal",
        "tpu.sem_wait",
        "tpu.sem_read",
        "tpu.log_buffer",
    }
)
"""Operations that take references of any layout."""


def tiling_propagation(module: ModuleOp) -> None:
    """Takes `tpu.erase_memref_layout` away where its users can have the tiled reference."""
    for function in functions_of(module):
        for op in list(function.walk()):
            if name_of(op) == "tpu.erase_memref_layout":
                _propagate(op)


def _propagate(erase: Operation) -> None:
    tiled = erase.operands[0]
    for use in list(erase.results[0].uses):
        user = use.operation
        if name_of(user) in _TAKE_ANY:
            user.operands[use.index] = tiled
        elif use.index == 0 and user.results and is_memref(user.results[0].type):
            layout = tiled_layout_of(tiled.type)
            assert layout is not None
            layout = layout_through(user, layout)
            if layout is None:
                continue
            plain = user.results[0].type
            user.operands[0] = tiled
            result = retype(user.results[0], with_layout(plain, layout))
            users = list(result.uses)
            after = user.next_op
            assert after is not None
            again = insert(build("tpu.erase_memref_layout", (result,), (plain,)), after)
            for inner in users:
                inner.operation.operands[inner.index] = again.results[0]
            _propagate(again)
    if erase.results[0].first_use is None:
        Rewriter.erase_op(erase)
