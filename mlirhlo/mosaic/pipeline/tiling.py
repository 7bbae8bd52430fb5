"""Tiled layouts go through views of references, so that nothing works on erased ones."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.rewriter import Rewriter

from mlirhlo.dialects.tpu.values import TiledLayout
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import (
    build,
    functions_of,
    insert,
    retype,
    tiled_layout_of,
    with_layout,
)
from mlirhlo.mosaic.target.tiling import (
    dense_strides,
    element_name,
    is_memref,
    shape_in,
    width_in_bits,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

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
            layout = _through(user, tiled)
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


def _through(view: Operation, source: SSAValue) -> TiledLayout | None:
    """The layout of a view of a tiled reference; None for views that do not keep tiles."""
    layout = tiled_layout_of(source.type)
    assert layout is not None
    name = name_of(view)
    before, after = shape_in(source.type), shape_in(view.results[0].type)
    if name == "tpu.memref_slice":
        return layout
    if name == "tpu.memref_squeeze":
        return _squeezed(layout, before, after)
    if name == "tpu.memref_reshape":
        tiles = layout.tiles
        if not tiles or len(after) < len(tiles[0]) or any(size < 0 for size in after):
            return None
        # Only arrays without gaps are reshaped in place.
        if layout.strides != dense_strides(before, tiles) or prod(before) != prod(after):
            return None
        return TiledLayout(tiles, dense_strides(after, tiles))
    if name == "tpu.memref_bitcast":
        return _recast(layout, source.type, view.results[0].type)
    return None


def _recast(layout: TiledLayout, before: Attribute, after: Attribute) -> TiledLayout | None:
    """Tiles of the same words: `(4,128)(2,1)` of bf16 is `(2,128)` of i32."""
    old, new = (width_in_bits(element_name(type_)) for type_ in (before, after))
    packing = 32 // old
    inner = ((packing, 1),) if packing > 1 else ()
    first = layout.tiles[0] if layout.tiles else ()
    if len(first) != 2 or layout.tiles[1:] != inner or first[0] * old % new:
        return None
    packing = 32 // new
    rows = (first[0] * old // new, first[1])
    return TiledLayout((rows, (packing, 1)) if packing > 1 else (rows,), layout.strides)


def _squeezed(
    layout: TiledLayout, before: tuple[int, ...], after: tuple[int, ...]
) -> TiledLayout | None:
    """Drops the strides of dimensions of size one, matched from the minor end."""
    gone: list[int] = []
    at = len(after) - 1
    for dim in range(len(before) - 1, -1, -1):
        if at >= 0 and before[dim] == after[at]:
            at -= 1
        elif before[dim] == 1:
            gone.append(dim)
        else:
            return None
    first = layout.tiles[0] if layout.tiles else ()
    plain = len(before) - len(first)
    if any(dim >= plain and first[dim - plain] != 1 for dim in gone):
        return None
    strides = tuple(s for dim, s in enumerate(layout.strides) if dim not in gone)
    kept = tuple(t for at_, t in enumerate(first) if at_ + plain not in gone)
    if len(kept) != len(first) and len(layout.tiles) > 1:
        return None
    tiles = (kept, *layout.tiles[1:]) if kept else ()
    return TiledLayout(tiles, strides)
