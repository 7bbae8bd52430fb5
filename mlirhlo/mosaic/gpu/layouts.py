"""Layouts of values in registers, under Pallas' names."""

from __future__ import annotations

import enum
from typing import Any, cast

from mlirhlo.dialects.mosaic_gpu import values
from mlirhlo.dialects.mosaic_gpu.attributes import (
    SplatLayoutAttr,
    StridedLayoutAttr,
    TiledLayoutAttr,
)
from mlirhlo.mosaic.gpu.faults import unfit
from mlirhlo.mosaic.language.trace import emit_one
from mlirhlo.mosaic.language.value import Value

Replicated = values.Replicated
Tiling = tuple[int, ...]


class Layout(enum.Enum):
    """How a warp group holds a value."""

    WGMMA = values.WGMMA
    WGMMA_ROW = values.WGMMA_ROW
    WGMMA_COL = values.WGMMA_COL
    WGMMA_8BIT = values.WGMMA_8BIT
    TCGEN05 = values.TCGEN05
    WG_SPLAT = "splat"
    WG_STRIDED = "strided"

    def __call__(self, shape: Any = None, vec_size: int = 1) -> values.Layout:
        """The layout for a shape, of those that need one."""
        if self is Layout.WG_SPLAT:
            return values.SplatLayout(tuple(shape))
        if self is Layout.WG_STRIDED:
            return values.StridedLayout(tuple(shape), vec_size)
        return cast("values.Layout", self.value)

    def reduce(self, axes: Any) -> Layout:
        """The layout of what a reduction over axes leaves."""
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
        if self is Layout.WGMMA and axes in ((1,), (0,)):
            return Layout.WGMMA_ROW if axes == (1,) else Layout.WGMMA_COL
        raise unfit(f"{self.name} reduced over {axes}", "reduce WGMMA over one dimension")


def layout_cast(x: Value, new_layout: Any) -> Value:
    """The value, held in a layout."""
    layout = new_layout(x.shape) if isinstance(new_layout, Layout) else new_layout
    match layout:
        case values.TiledLayout():
            attribute: Any = TiledLayoutAttr(layout)
        case values.StridedLayout():
            attribute = StridedLayoutAttr(layout)
        case _:
            attribute = SplatLayoutAttr(layout)
    ssa = emit_one("mosaic_gpu.layout_cast", [x.ssa], x.type, {"new_layout": attribute})
    return Value(ssa, x.shape, x.dtype)
