"""Kernels: functions that record instructions, and run at once outside of `jit`.

Outside of a trace a kernel becomes a module of its own, built once for each combination of shapes,
types and options, and runs on the interpreter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from mlirhlo.importing import LATE
from mlirhlo.numpy.array import Array, Data
from mlirhlo.numpy.tracing.trace import Builder, Trace, current, leaked, shape_for

with LATE:
    from mlirhlo.interp import engine


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

P = ParamSpec("P")
R = TypeVar("R")

CACHE: dict[object, Executable] = {}
"""Executables of kernels by function, shapes and types, and options."""

CACHE_SIZE = 8192
"""Most executables kept; the oldest go first."""


class Executable:
    """A module that is ready to run."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._interpreter = engine.Interpreter(module)
        self._plan = self._interpreter.plan(self._interpreter.module.entry.computation_name)
        self._frame = engine.DeviceFrame(self._interpreter)

    def __call__(self, arguments: Sequence[Data]) -> list[Data]:
        """The results in order, a tuple's elements one by one. Raises `HloError` HLO03xx."""
        # Views: then no instruction takes the memory of an argument for its own.
        values = [argument.view() for argument in arguments]
        with np.errstate(all="ignore"):
            value = self._interpreter.execute(self._plan, values, self._frame)
        return list(cast(Any, value)) if isinstance(value, tuple) else [cast(Data, value)]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator for `function(*arrays, **options)`: records inside of a trace, runs outside.

    Arrays are the positional arguments; options are hashable. The result is an array or a tuple of
    arrays. The function's name without underscores is what `op_name` says.
    """
    name = function.__name__.strip("_")

    @functools.wraps(function)
    def call(*arrays: P.args, **options: P.kwargs) -> R:
        trace = current()
        if trace is None:
            return cast(R, _run(function, name, cast("tuple[Array, ...]", arrays), options))
        before = trace.enter(name)
        try:
            return function(*arrays, **options)
        finally:
            trace.scope = before

    return call


def _run(
    function: Callable[..., Any], name: str, arrays: tuple[Array, ...], options: dict[str, Any]
) -> Any:
    data: list[Data] = []
    for array in arrays:
        if array._data is None:  # pyright: ignore[reportPrivateUsage]
            raise leaked(array)
        data.append(array._data)  # pyright: ignore[reportPrivateUsage]
    key = (function, tuple((d.dtype, d.shape) for d in data), tuple(options.items()))
    executable = CACHE.get(key)
    if executable is None:
        executable = Executable(_module(function, name, data, options))
        if len(CACHE) >= CACHE_SIZE:
            CACHE.pop(next(iter(CACHE)), None)
        CACHE[key] = executable
    results = [Array.concrete(result) for result in executable(data)]
    return results[0] if len(results) == 1 else tuple(results)


def _module(
    function: Callable[..., Any], name: str, data: Sequence[Data], options: dict[str, Any]
) -> ModuleOp:
    builder = Builder(name)
    with Trace(builder) as trace:
        parameters = [
            Array.traced(
                trace, trace.parameter(number, shape_for(d.dtype, d.shape)), d.dtype, d.shape
            )
            for number, d in enumerate(data)
        ]
        result = function(*parameters, **options)
        if isinstance(result, tuple):
            parts = cast("tuple[Array, ...]", result)
            root = trace.tuple([trace.value(part) for part in parts])
        else:
            root = trace.value(result)
        builder.add("main", trace.block, root, is_entry=True)
    return builder.finish()
