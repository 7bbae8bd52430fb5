"""Windows of reduce_window, select_and_scatter and convolution: their numbers, and how often they fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlirhlo.analysis.shape_inference.windows import dilated
from mlirhlo.analysis.stablehlo.base import Given, check_wide
from mlirhlo.analysis.stablehlo.tensors import DYNAMIC


@dataclass(frozen=True, slots=True)
class Windows:
    """A window in every dimension it moves along."""

    sizes: Sequence[int]
    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    base_dilations: Sequence[int]
    window_dilations: Sequence[int]

    def fit(self, base: Sequence[int]) -> list[int]:
        """How often the window fits into each dimension of `base`; `DYNAMIC` stays."""
        return [self._fit(size, dim) for dim, size in enumerate(base)]

    def _fit(self, size: int, dim: int) -> int:
        if DYNAMIC in (size, self.sizes[dim]):
            return DYNAMIC
        low, high = self.padding[dim]
        room = low + dilated(size, self.base_dilations[dim]) + high
        reach = dilated(self.sizes[dim], self.window_dilations[dim])
        return 0 if room <= 0 or reach > room else (room - reach) // self.strides[dim] + 1


@dataclass(frozen=True, slots=True)
class Keys:
    """Attributes of a window, each with the number of its length and that of its values; None
    where an op does not have it."""

    strides: tuple[str, int, int]
    padding: int
    base: tuple[str, int, int] | None = None
    window: tuple[str, int, int] | None = None
    positive: int | str = 5
    """Number, or input constraint, that window sizes themselves are positive."""


def read_windows(
    given: Given, sizes: Sequence[int], keys: Keys, padding: Sequence[int] | None = None
) -> Windows:
    """The window of `sizes` with the attributes of an op, checked. `padding` stands for the
    attribute where it is an operand."""
    count = len(sizes)
    if any(size != DYNAMIC and size <= 0 for size in sizes):
        raise given.error(keys.positive, f"a window size is not positive: {tuple(sizes)}")
    found: dict[str, Sequence[int]] = {}
    rows: Mapping[str, tuple[str, int, int] | None] = {
        "strides": keys.strides,
        "base": keys.base,
        "window": keys.window,
    }
    for field, row in rows.items():
        values: Sequence[int] = (1,) * count
        if row is not None and given.has(row[0]):
            key, length_number, number = row
            values = given.ints(key)
            if len(values) not in (0, count):
                raise given.error(
                    length_number,
                    f"{key} has {len(values)} entries for {count} window dimensions",
                    attribute=key,
                )
            values = values or (1,) * count
            if any(value <= 0 for value in values):
                raise given.error(number, f"{key} has {min(values)}", attribute=key)
        found[field] = values
    pairs = _padding(given, count, keys.padding) if padding is None else padding
    return Windows(
        sizes,
        found["strides"],
        list(zip(pairs[::2], pairs[1::2], strict=True)),
        found["base"],
        found["window"],
    )


def _padding(given: Given, count: int, number: int) -> Sequence[int]:
    check_wide(given, "padding")
    shape = given.shape_of("padding")
    if not given.has("padding"):
        return (0,) * (2 * count)
    if len(shape) != 2 or shape[1] != 2 or shape[0] not in (0, count):
        raise given.error(
            number, f"padding has shape {list(shape)}, not [{count}, 2]", attribute="padding"
        )
    return given.ints("padding") or (0,) * (2 * count)
