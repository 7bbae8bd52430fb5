"""What kernels compute with, on arrays around a kernel: by numpy where it has the function, with elements of 32 bits
as JAX has them, else as a kernel computes it.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.outside.evaluate import evaluated, narrow
from mlirhlo.mosaic.language.trace import is_tracing
from mlirhlo.mosaic.language.tree import flatten

_OF_TPUS = ("precision", "preferred_element_type")
"""Options of products that numpy has not."""
_OF_TYPES = ("issubdtype", "result_type", "finfo", "iinfo", "dtype", "vectorize")
"""What looks at no array, or at no numpy's: these are the same around a kernel."""


def hosted(
    names: Sequence[str],
    known: Mapping[str, Any],
    outside: Callable[[str], Callable[..., Any] | None] = lambda _: None,
) -> dict[str, Callable[..., Any]]:
    """Of functions of a kernel's values, the same for both: outside of kernels they are what `outside` has of
    the name, else evaluated.
    """
    return {
        name: _hosted(known[name], outside(name))
        for name in names
        if name not in _OF_TYPES and callable(known[name]) and not isinstance(known[name], type)
    }


def of_numpy(name: str) -> Callable[..., Any] | None:
    """numpy's function of that name, as JAX has it; None without one."""
    if name in _STATED:
        return _STATED[name]
    found: Any = getattr(np, name, None)
    return by_numpy(found) if callable(found) and not isinstance(found, type) else None


def _hosted(within: Callable[..., Any], outside: Callable[..., Any] | None) -> Callable[..., Any]:
    if outside is None:
        return evaluated(within)

    @wraps(within)
    def function(*given: Any, **options: Any) -> Any:
        return (within if is_tracing() else outside)(*given, **options)

    return function


def by_numpy(outside: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy with the options and the element types of JAX's."""

    @wraps(outside)
    def function(*given: Any, **options: Any) -> Any:
        wanted = options.get("preferred_element_type")
        if wanted is not None:
            given = tuple(_as(wanted, one) for one in given)
        kept = {name: value for name, value in options.items() if name not in _OF_TPUS}
        leaves, rebuild = flatten(outside(*given, **kept))
        return rebuild([narrow(leaf) for leaf in leaves])

    return function


def _repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Any:
    """Each part `repeats` times; of several numbers, `total_repeat_length` cuts the result, or lengthens it by
    its last part.
    """
    found = np.repeat(a, repeats, axis)
    if total_repeat_length is None:
        return found
    dim = 0 if axis is None else axis
    last = found.shape[dim] - 1
    return np.take(found, np.minimum(np.arange(total_repeat_length), last), dim)


def _as(dtype: Any, value: Any) -> Any:
    return value.astype(dtype) if isinstance(value, np.ndarray) else value


_STATED: dict[str, Callable[..., Any]] = {"repeat": by_numpy(_repeat)}
"""What JAX has under other parameters than numpy."""

__all__ = ["by_numpy", "hosted", "of_numpy"]
