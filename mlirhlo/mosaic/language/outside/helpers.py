"""Small things of Pallas around a kernel: shapes without contents, programs as text, what Pallas switches."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from math import prod
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.call import KernelCall
from mlirhlo.mosaic.language.elements import F32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.shapes import full
from mlirhlo.mosaic.language.outside.evaluate import narrow
from mlirhlo.mosaic.language.outside.parallel import Device, Mesh
from mlirhlo.mosaic.language.trace import is_tracing
from mlirhlo.mosaic.language.tree import flatten


def empty(shape: Sequence[int], dtype: DTypeLike = F32) -> Any:
    """What is to be overwritten: a vector in a kernel, an array outside of one; of zeros here."""
    sizes = tuple(shape)
    return full(sizes, 0, dtype) if is_tracing() else np.zeros(sizes, as_dtype(dtype))


def empty_like(x: Any) -> Any:
    """`empty` for each array, or type of one, in a tree."""
    leaves, rebuild = flatten(x)
    return rebuild([empty(leaf.shape, leaf.dtype) for leaf in leaves])


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How far elements lie apart along each dimension, row-major."""
    sizes = tuple(shape)
    return tuple(prod(sizes[dim + 1 :]) for dim in range(len(sizes)))


def lower_as_mlir(f: Any, *args: Any) -> str:
    """The StableHLO program that calls a kernel on arrays of these shapes and types.

    Raises `HloError` HLO0726 for what is no `kernel_call`.
    """
    if not isinstance(f, KernelCall):
        raise bad_spec(
            f"{getattr(f, '__name__', f)!r} is no call of a kernel",
            "give what pl.pallas_call(…) returned",
        )
    return f.lower(*args).to_stablehlo()


@contextmanager
def enable_debug_checks(value: bool = True) -> Generator[None]:
    """Nothing: `debug_check` always holds a kernel to what it says."""
    del value
    yield


@contextmanager
def enable_poison_buffers(value: bool = True) -> Generator[None]:
    """Nothing: memory that nobody wrote is always poisoned."""
    del value
    yield


def jit(fun: Any = None, **_: Any) -> Any:
    """The function itself: Python runs once for each kernel, and a call keeps what it compiled."""
    return jit if fun is None else fun


class CustomDerivative:
    """A function whose derivatives are stated: here they are not asked for."""

    def __init__(self, fun: Callable[..., Any], **_: Any) -> None:
        self._fun = fun
        update_wrapper(self, fun)

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self._fun(*given, **options)

    def defvjp(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    def defjvp(self, rule: Any, **_: Any) -> Any:
        """The rule."""
        return rule


def custom_vjp(fun: Any = None, nondiff_argnums: Sequence[int] = (), **_: Any) -> Any:
    """The function; `defvjp` of it does nothing."""
    del nondiff_argnums
    return custom_vjp if fun is None else CustomDerivative(fun)


custom_jvp = custom_vjp


@contextmanager
def default_matmul_precision(precision: Any) -> Generator[None]:
    """Nothing: products of arrays around a kernel are exact to f32, and those in one say their precision."""
    del precision
    yield


def devices(backend: str | None = None) -> list[Device]:
    """The one that simulates."""
    del backend
    return [Device(0)]


def device_count(backend: str | None = None) -> int:
    """How many `devices` there are."""
    return len(devices(backend))


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], **_: Any) -> Mesh:
    """A mesh of as many simulated devices as its shape has."""
    return Mesh(np.arange(prod(axis_shapes)).reshape(axis_shapes), axis_names)


def device_put(x: Any, *_: Any, **__: Any) -> Any:
    """x, its leaves as arrays: there is one memory."""
    leaves, rebuild = flatten(x)
    return rebuild([narrow(np.asarray(leaf)) for leaf in leaves])


device_get = device_put


def block_until_ready(x: Any) -> Any:
    """x: calls are done when they return."""
    return x


__all__ = [
    "block_until_ready",
    "custom_jvp",
    "custom_vjp",
    "default_matmul_precision",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "empty",
    "empty_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "jit",
    "lower_as_mlir",
    "make_mesh",
    "strides_from_shape",
]
