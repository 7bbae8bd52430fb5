"""What `jax.numpy` computes around a kernel: on arrays, by numpy, with elements of 32 bits as JAX has them."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.trace import is_tracing
from mlirhlo.mosaic.language.tree import flatten

_OF_TPUS = ("precision", "preferred_element_type")
"""Options of products that numpy has not."""
_OF_TYPES = ("issubdtype",)
"""What looks at no value; numpy does not know all element types."""


def hosted(names: Sequence[str], found: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Of functions of a kernel's values, those that numpy has too: outside of kernels they are numpy's."""
    return {
        name: _hosted(found[name], getattr(np, name))
        for name in names
        if hasattr(np, name)
        and name not in _OF_TYPES
        and callable(found[name])
        and not isinstance(found[name], type)
    }


def _hosted(within: Callable[..., Any], outside: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(within)
    def function(*given: Any, **options: Any) -> Any:
        if is_tracing():
            return within(*given, **options)
        wanted = options.get("preferred_element_type")
        if wanted is not None:
            given = tuple(_as(wanted, one) for one in given)
        kept = {name: value for name, value in options.items() if name not in _OF_TPUS}
        leaves, rebuild = flatten(outside(*given, **kept))
        return rebuild([_narrow(leaf) for leaf in leaves])

    return function


def _as(dtype: Any, value: Any) -> Any:
    return value.astype(dtype) if isinstance(value, np.ndarray) else value


def _narrow(value: Any) -> Any:
    """Without 64 bits, which TPUs have not."""
    kind = getattr(value, "dtype", None)
    if kind is None or kind.itemsize != 8 or kind.kind not in "iuf":
        return value
    return value.astype(f"{kind.kind}4")


__all__ = ["hosted"]
