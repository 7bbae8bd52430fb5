"""`mlirhlo.numpy` with each call of a function inside of a `jit` of its own.

A namespace for the public test suite (`run_array_api_tests.py --jit`): arrays among the arguments
are traced, everything else is part of the program. Operators and indexing, methods of the arrays,
stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import mlirhlo
import mlirhlo.numpy
from mlirhlo.numpy.array import Array

NO_PROGRAMS = {
    "__array_namespace_info__", "asarray", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype",
    "result_type",
}  # fmt: skip
"""What answers about types, or takes objects of other libraries."""

CONTROL_FLOW = {"cond", "fori_loop", "scan", "while_loop"}


def _without_arrays(value: Any, arrays: list[Array]) -> Callable[[tuple[Any, ...]], Any]:
    """Moves the arrays of a value to `arrays`; the result puts others in their places."""
    if isinstance(value, Array):
        number = len(arrays)
        arrays.append(value)
        return lambda traced: traced[number]
    if isinstance(value, (list, tuple)):
        parts = [_without_arrays(part, arrays) for part in cast("list[Any]", value)]
        kind = cast("type[Any]", type(value))
        return lambda traced: kind(part(traced) for part in parts)
    return lambda traced: value


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, traced and run as a whole for each call."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays: list[Array] = []
        positional = [_without_arrays(arg, arrays) for arg in args]
        named = {name: _without_arrays(value, arrays) for name, value in kwargs.items()}

        def program(*traced: Any) -> Any:
            return function(
                *(place(traced) for place in positional),
                **{name: place(traced) for name, place in named.items()},
            )

        return mlirhlo.jit(program, platform="interpreter")(*arrays)

    return call


def _namespace(module: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (*module.__all__, "__array_api_version__", "__array_namespace_info__"):
        if hasattr(module, name) and name not in CONTROL_FLOW:
            value = getattr(module, name)
            is_program = callable(value) and not isinstance(value, type) and name not in NO_PROGRAMS
            found[name] = jitted(value) if is_program else value
    return found


globals().update(_namespace(mlirhlo.numpy))
linalg = SimpleNamespace(**_namespace(mlirhlo.numpy.linalg))
fft = SimpleNamespace(**_namespace(mlirhlo.numpy.fft))
