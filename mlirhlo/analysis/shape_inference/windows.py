"""Sizes of windowed dimensions, shared by reduce-window, select-and-scatter and convolution."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.shape_inference.base import Dimension, Given
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.shapes import UNBOUNDED

WINDOW = "sizes, strides and dilations of the window are positive"
PADDING = "padding does not crop more than there is"


def dilated(size: int, dilation: int) -> int:
    """Size with `dilation - 1` gaps between elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def check_window(given: Given, window: Window, number: int) -> None:
    """Sizes, strides and dilations are positive. Raises constraint `number`."""
    for dim in window.dimensions:
        for value, what in (
            (dim.size, "dimension"),
            (dim.stride, "stride"),
            (dim.base_dilation, "base area dilation factor"),
            (dim.window_dilation, "window dilation factor"),
        ):
            if value <= 0:
                raise given.error(
                    number, f"Window {window} has a non-positive {what}.", attribute="window"
                )


def window_sizes(
    given: Given, base: Sequence[Dimension], window: Window, number: int
) -> list[Dimension]:
    """How often the window fits each dimension of `base`; dynamic where the base is. Raises
    constraint `number` when padding leaves a negative size."""
    return [
        _windowed(given, size, dynamic, dim, number)
        for (size, dynamic), dim in zip(base, window.dimensions, strict=True)
    ]


def _windowed(
    given: Given, size: int, dynamic: bool, dim: WindowDimension, number: int
) -> Dimension:
    if size == UNBOUNDED:
        return UNBOUNDED, True
    padded = dim.padding_low + dilated(size, dim.base_dilation) + dim.padding_high
    if padded < 0:
        raise given.error(
            number,
            f"padding {dim.padding_low}_{dim.padding_high} crops more than the"
            f" {dilated(size, dim.base_dilation)} elements there are",
            attribute="window",
        )
    reach = dilated(dim.size, dim.window_dilation)
    return (0 if padded == 0 or reach > padded else (padded - reach) // dim.stride + 1), dynamic
