"""Gives the array its operators: each is an elementwise function."""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirhlo.numpy import elementwise, elementwise_binary, linear_algebra
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.operands import is_operand

_BINARY: dict[str, Callable[..., Array]] = {
    "add": elementwise_binary.add,
    "sub": elementwise_binary.subtract,
    "mul": elementwise_binary.multiply,
    "truediv": elementwise_binary.divide,
    "floordiv": elementwise_binary.floor_divide,
    "mod": elementwise_binary.remainder,
    "pow": elementwise_binary.pow,
    "matmul": linear_algebra.matmul,
    "and": elementwise_binary.bitwise_and,
    "or": elementwise_binary.bitwise_or,
    "xor": elementwise_binary.bitwise_xor,
    "lshift": elementwise_binary.bitwise_left_shift,
    "rshift": elementwise_binary.bitwise_right_shift,
}
_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": elementwise_binary.equal,
    "ne": elementwise_binary.not_equal,
    "lt": elementwise_binary.less,
    "le": elementwise_binary.less_equal,
    "gt": elementwise_binary.greater,
    "ge": elementwise_binary.greater_equal,
}
_UNARY: dict[str, Callable[..., Array]] = {
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.abs,
    "invert": elementwise.bitwise_invert,
}


_NUMPY_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "mod": "remainder",
    "power": "pow", "right_shift": "bitwise_right_shift", "rint": "round", "true_divide": "divide",
}  # fmt: skip
"""Names of numpy that the standard spells otherwise."""


def function_of(name: str) -> Callable[..., Array] | None:
    """The function that numpy calls `name`; None when there is none."""
    name = _NUMPY_NAMES.get(name, name)
    if name in ("matmul", "vecdot"):
        return linear_algebra.matmul if name == "matmul" else linear_algebra.vecdot
    found = getattr(elementwise, name, None) or getattr(elementwise_binary, name, None)
    # Other names of those modules are helpers and imports.
    is_public = getattr(found, "__qualname__", "") == name and getattr(found, "__closure__", None)
    return found if is_public else None


def _forward(name: str, function: Callable[..., Array]) -> Callable[..., Any]:
    def operator(self: Array, other: Any, /) -> Any:
        return function(self, other) if is_operand(other) else NotImplemented

    operator.__name__ = name
    return operator


def _reflected(name: str, function: Callable[..., Array]) -> Callable[..., Any]:
    def operator(self: Array, other: Any, /) -> Any:
        return function(other, self) if is_operand(other) else NotImplemented

    operator.__name__ = name
    return operator


def _plain(name: str, function: Callable[..., Array]) -> Callable[..., Any]:
    def operator(self: Array, /) -> Array:
        return function(self)

    operator.__name__ = name
    return operator


def install() -> None:
    """Sets the operators of `Array`."""
    for name, function in {**_BINARY, **_COMPARISONS}.items():
        setattr(Array, f"__{name}__", _forward(f"__{name}__", function))
    for name, function in _BINARY.items():
        setattr(Array, f"__r{name}__", _reflected(f"__r{name}__", function))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", _plain(f"__{name}__", function))
