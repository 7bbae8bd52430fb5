"""What values of the interpreter are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Token:
    """The value of `token[]`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "token"


TOKEN = Token()


@dataclass(frozen=True, slots=True, eq=False)
class DynamicArray:
    """An array with bounded dynamic dimensions: room for the bounds, and the sizes in use.

    Elements outside `sizes` have no defined value; no meaning may let them into a result.
    """

    data: Array
    """Shape is the bounds."""
    sizes: tuple[int, ...]
    """Sizes in use, one per dimension."""

    @property
    def valid(self) -> Array:
        """View of the elements in use."""
        return self.data[tuple(slice(0, size) for size in self.sizes)]


Value: TypeAlias = "Array | DynamicArray | Token | tuple[Value, ...] | object"
"""`object` stands for opaque values that only custom calls understand."""
