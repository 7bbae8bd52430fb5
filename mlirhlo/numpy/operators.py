"""Gives the array its operators: each is an elementwise function."""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from mlirhlo.numpy import elementwise, elementwise_binary, linear_algebra
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.indexing import get_item, set_item
from mlirhlo.numpy.operands import is_operand
from mlirhlo.numpy.tracing.trace import current

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


def _set_item(self: Array, key: Any, value: Any, /) -> None:
    if current() is not self.trace:
        raise problem(
            HloTypeError,
            "HLO0622",
            f"{self.describe()} was made outside of the function that is traced now, which"
            " cannot change it",
            help="copy it first: x = mlirhlo.numpy.asarray(x, copy=True), and return the copy",
        )
    self.rebind(set_item(self, key, value))


def _ufunc(self: Array, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """numpy's own functions and operators with such an array among their operands: this package's
    function of that name. Raises HLO0628 for those that have none."""
    function = function_of(ufunc.__name__) if method == "__call__" and not options else None
    if function is None:
        call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise problem(
            HloTypeError,
            "HLO0628",
            f"numpy.{call} does not compile",
            help="use the functions of mlirhlo.numpy, or numpy.asarray(x) outside of jit",
        )
    return function(*inputs)


def _namespace_of(namespace: ModuleType) -> Callable[..., ModuleType]:
    def method(self: Array, *, api_version: str | None = None) -> ModuleType:
        if api_version not in (None, *namespace.SUPPORTED_VERSIONS):
            raise problem(
                HloValueError,
                "HLO0626",
                f"version {api_version!r} of the array API is not offered",
                help=f"versions: {', '.join(namespace.SUPPORTED_VERSIONS)}",
            )
        return namespace

    method.__name__ = "__array_namespace__"
    return method


def install(namespace: ModuleType) -> None:
    """Sets the operators of `Array`, and the methods that are functions of the standard; `namespace` has those."""
    methods: dict[str, object] = {
        "__getitem__": get_item,
        "__setitem__": _set_item,
        "__array_ufunc__": _ufunc,
        "__array_namespace__": _namespace_of(namespace),
        "mT": property(
            linear_algebra.matrix_transpose, doc="The transposes of a stack of matrices."
        ),
    }
    for name, method in methods.items():
        setattr(Array, name, method)
    for name, function in {**_BINARY, **_COMPARISONS}.items():
        setattr(Array, f"__{name}__", _forward(f"__{name}__", function))
    for name, function in _BINARY.items():
        setattr(Array, f"__r{name}__", _reflected(f"__r{name}__", function))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", _plain(f"__{name}__", function))
