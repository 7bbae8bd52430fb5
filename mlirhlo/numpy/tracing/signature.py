"""What decides which module a call of a jitted function runs: shapes and types of its arguments."""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy.array import Array, Data
from mlirhlo.numpy.creation import asarray
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.errors import HloTypeError, problem
from mlirhlo.numpy.operands import default_of, is_scalar, scalar_data
from mlirhlo.numpy.tracing.trace import leaked
from mlirhlo.numpy.tracing.tree import Structure


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of an argument when a function is traced."""

    dtype: DType
    shape: tuple[int, ...]
    weak: type | None = None
    """The type of a Python scalar, which promotes as such."""

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"{dt.primitive(self.dtype)}[{sizes}]" + (" (Python scalar)" if self.weak else "")


@dataclass(frozen=True, slots=True)
class Signature:
    """What decides which module a call runs."""

    structure: Structure
    specs: tuple[Spec, ...]
    statics: tuple[tuple[str, Any], ...]


@dataclass(slots=True)
class Call:
    """The arguments of one call, sorted into traced and static ones."""

    signature: Signature
    names: list[str]
    """A name for each leaf: `x`, `params['w']`."""
    leaves: list[Any]
    donated: list[bool]


Sorter = Callable[[tuple[Any, ...], dict[str, Any]], Call]
"""Sorts the arguments of a call."""


def listed(specs: Iterable[Spec]) -> str:
    """`[f32[2,3], s32[]]`."""
    return "[" + ", ".join(map(str, specs)) + "]"


def spec_of(leaf: Any, what: str) -> Spec:
    """What is known of an argument. Raises HLO0623 for what is no array."""
    if isinstance(leaf, Array):
        return Spec(leaf.dtype, leaf.shape, leaf.weak)
    if is_scalar(leaf):
        return Spec(default_of(leaf), (), None if isinstance(leaf, bool) else type(leaf))
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        return Spec(dt.as_dtype(leaf.dtype), tuple(leaf.shape))
    raise problem(
        HloTypeError,
        "HLO0623",
        f"{what} is {type(leaf).__name__}, which is no array",
        help="make it static (static_argnums, static_argnames), or an array by asarray",
    )


def data_of(leaf: Any, spec: Spec) -> Data:
    """The elements of an argument, which nobody else writes. Raises HLO0622 for a traced value."""
    if isinstance(leaf, Array):
        data = leaf.data
        if data is None:
            raise leaked(leaf)
        return data
    if is_scalar(leaf):
        return scalar_data(leaf, spec.dtype, "an argument")
    if isinstance(leaf, (np.ndarray, np.generic)):
        # Results may share memory with arguments, so those of the caller are copied.
        found: Data = np.array(leaf, dtype=spec.dtype)
        return found

    return asarray(leaf).known("the memory of an array", "pass arrays with elements")


def likeness(known: Signature, wanted: Signature) -> int:
    """The greater, the more two signatures have in common."""
    pairs = list(zip(known.specs, wanted.specs, strict=False))
    same = sum((a.shape == b.shape) + (a.dtype == b.dtype) + (a == b) for a, b in pairs)
    return same + 1000 * (known.structure == wanted.structure) + (known.statics == wanted.statics)


def difference(known: Signature, call: Call) -> str:
    """In words, why a call does not run the module of a known signature."""
    wanted = call.signature
    if known.structure != wanted.structure:
        return f"new structure of the arguments, {wanted.structure!r}"
    changes: list[str] = []
    for name, old, new in zip(call.names, known.specs, wanted.specs, strict=True):
        if old != new:
            what = "shape" if old.dtype == new.dtype else "type"
            changes.append(f"new {what} of {name}, {new} instead of {old}")
    before = dict(known.statics)
    for name, value in wanted.statics:
        if before.get(name) != value:
            changes.append(f"new static {name}={value!r} instead of {before.get(name)!r}")
    return ", ".join(changes) or "new arguments"
