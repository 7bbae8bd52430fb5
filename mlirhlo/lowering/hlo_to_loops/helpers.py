"""Functions and tables that kernels of a module share: built once, however many use them.

A helper's name says all there is to know of it, so that equal names are equal helpers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

HELPERS = "mlirhlo.helpers"
"""Attribute of kernels: names of the helpers that they use."""

_BUILDERS: dict[str, Callable[[], Operation]] = {}


def call_helpers(function: FuncOp, builders: Mapping[str, Callable[[], Operation]]) -> None:
    """Says that a kernel uses these helpers, and how each is built."""
    if builders:
        _BUILDERS.update(builders)
        function.attributes[HELPERS] = ArrayAttr([StringAttr(name) for name in sorted(builders)])


def helpers_of(kernels: Iterable[FuncOp]) -> list[Operation]:
    """The helpers that kernels use, each once, by name."""
    names: set[str] = set()
    for kernel in kernels:
        listed = cast("ArrayAttr[StringAttr] | None", kernel.attributes.get(HELPERS))
        names |= {name.data for name in listed or ()}
    return [_BUILDERS[name]() for name in sorted(names)]
