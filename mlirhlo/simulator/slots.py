"""Numbered registers: how the array of each is made for a cohort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.simulator.lanes import Array


@dataclass(frozen=True, slots=True)
class Slot:
    """How the array of a slot is made for a cohort."""

    kind: str
    """`register`, `view`, `constant`, `frame` or `special`."""
    value: Any = None
    """The dtype of a register; the name of a special register; the element of a constant or of a frame at first."""
    base: int = 0
    """The slot that a view looks at."""
    part: int = 0
    """Which element of the base's own width a narrower view shows."""


def build_slots(
    specifications: list[Slot], lanes: int, special: Callable[[str], Array]
) -> list[Array]:
    """The arrays of a cohort of `lanes` lanes."""
    arrays: list[Array] = []
    for slot in specifications:
        match slot.kind:
            case "register":
                wide = isinstance(slot.value, str)
                arrays.append(
                    np.zeros((lanes, 2), np.uint64) if wide else np.zeros(lanes, slot.value)
                )
            case "view":
                arrays.append(_view_of(arrays[slot.base], slot.value, slot.part))
            case "constant":
                # As np.broadcast_to, which takes longer than most instructions.
                arrays.append(np.ndarray((lanes,), slot.value.dtype, slot.value, strides=(0,)))
            case "frame":
                arrays.append(np.repeat(slot.value, lanes))
            case _:
                arrays.append(special(slot.value))
    return arrays


def _view_of(base: Array, dtype: Any, part: int) -> Array:
    if dtype.itemsize == base.dtype.itemsize and base.ndim == 1:
        return base.view(dtype)
    result: Array = base.view(dtype).reshape(len(base), -1)[:, part]
    return result
