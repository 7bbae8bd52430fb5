"""Scalars and vectors of a kernel, with Python's operators."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    element_type,
    kind_of,
)
from mlirhlo.mosaic.language.faults import captured, not_known
from mlirhlo.mosaic.language.literals import literal
from mlirhlo.mosaic.language.trace import Traced, emit_one, vector_type

if TYPE_CHECKING:
    from xdsl.ir import Attribute

ArrayLike: TypeAlias = Any
"""A `Value`, a Python number, or what numpy has of them."""

ON_NUMPY: dict[Any, Callable[..., Any]] = {}
"""What stands for a function of numpy when it is given values of a kernel."""


METHODS: dict[str, Callable[..., Value]] = {}
"""The functions that operators and methods of values are, by name; `functions.methods` fills it."""


class Reference(ABC):  # noqa: B024  (it only has others derived from it)
    """A part of some memory."""

    __slots__ = ()


class Value(Traced):
    """A scalar (shape `()`) or vector that the kernel computes."""

    __slots__ = ()
    __array_priority__ = 100

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def type(self) -> Attribute:
        """Its MLIR type."""
        return vector_type(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} of a kernel>"

    def __hash__(self) -> int:
        return id(self)

    # What only a known number can do.

    def __bool__(self) -> bool:
        raise not_known(
            "Python's if, while, and, or, not ask for a value that is known when the kernel runs",
            "use mosaic.when or cond for a branch, while_loop for a loop, where, & and | for values",
        )

    def __index__(self) -> int:
        raise not_known(
            "Python asks for the number behind a value that is known when the kernel runs",
            "use fori_loop for a loop over it, ref[pl.ds(start, size)] for a slice at it",
        )

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        return self.__index__()

    def __len__(self) -> int:
        if not self.shape:
            raise not_known("a scalar has no length")
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise not_known(
            "numpy asks for the elements of a value that is known when the kernel runs",
            "use the function of the same name from mlirhlo.mosaic.numpy",
        )

    # numpy's functions on values: np.exp(x), np.where(m, x, y).

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        found = ON_NUMPY.get(function)
        if found is None or method != "__call__" or options:
            raise not_known(
                f"np.{function.__name__} cannot be computed within a kernel",
                "docs/kernel-language.md says what can; mlirhlo.mosaic.numpy has most names",
            )
        return found(*inputs)

    def __array_function__(
        self, function: Any, types: Any, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        del types
        found = ON_NUMPY.get(function)
        if found is None:
            raise not_known(
                f"np.{function.__name__} cannot be computed within a kernel",
                "docs/kernel-language.md says what can; mlirhlo.mosaic.numpy has most names",
            )
        return found(*inputs, **options)

    # Elementwise.

    def __add__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("add", self, other)

    def __radd__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("add", other, self)

    def __sub__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("subtract", self, other)

    def __rsub__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("subtract", other, self)

    def __mul__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("multiply", self, other)

    def __rmul__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("multiply", other, self)

    def __truediv__(self, other: ArrayLike) -> Value:
        return METHODS["true_divide"](self, other)

    def __rtruediv__(self, other: ArrayLike) -> Value:
        return METHODS["true_divide"](other, self)

    def __floordiv__(self, other: ArrayLike) -> Value:
        return METHODS["floor_divide"](self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Value:
        return METHODS["floor_divide"](other, self)

    def __mod__(self, other: ArrayLike) -> Value:
        return METHODS["remainder"](self, other)

    def __rmod__(self, other: ArrayLike) -> Value:
        return METHODS["remainder"](other, self)

    def __divmod__(self, other: ArrayLike) -> tuple[Value, Value]:
        return self // other, self % other

    def __rdivmod__(self, other: ArrayLike) -> tuple[Value, Value]:
        return other // self, other % self

    def __pow__(self, other: ArrayLike) -> Value:
        return METHODS["power"](self, other)

    def __rpow__(self, other: ArrayLike) -> Value:
        return METHODS["power"](other, self)

    def __and__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_and", self, other)

    def __rand__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_and", other, self)

    def __or__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_or", self, other)

    def __ror__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_or", other, self)

    def __xor__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_xor", self, other)

    def __rxor__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("bitwise_xor", other, self)

    def __lshift__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("left_shift", self, other)

    def __rlshift__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("left_shift", other, self)

    def __rshift__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("right_shift", self, other)

    def __rrshift__(self, other: ArrayLike) -> Value:
        return METHODS["binary"]("right_shift", other, self)

    def __neg__(self) -> Value:
        return METHODS["negative"](self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return METHODS["abs_"](self)

    def __round__(self, decimals: int = 0) -> Value:
        return self.round(decimals)

    def __invert__(self) -> Value:
        return METHODS["invert"](self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return METHODS["equal"](self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return METHODS["not_equal"](self, other)

    def __lt__(self, other: ArrayLike) -> Value:
        return METHODS["less"](self, other)

    def __le__(self, other: ArrayLike) -> Value:
        return METHODS["less_equal"](self, other)

    def __gt__(self, other: ArrayLike) -> Value:
        return METHODS["greater"](self, other)

    def __ge__(self, other: ArrayLike) -> Value:
        return METHODS["greater_equal"](self, other)

    # Shapes, reductions, products.

    def __matmul__(self, other: ArrayLike) -> Value:
        return METHODS["dot"](self, other)

    def __rmatmul__(self, other: ArrayLike) -> Value:
        return METHODS["dot"](other, self)

    def __getitem__(self, index: Any) -> Value:
        return METHODS["sliced"](self, index)

    @property
    def at(self) -> Any:
        """Not here: values do not change. Raises `HloError` HLO0723."""
        raise not_known(
            "x.at[…] changes a value, and values of a kernel do not change",
            "store to a part of a reference, or choose by where(mask, new, x)",
        )

    def astype(self, dtype: DTypeLike) -> Value:
        """The elements as another type; floats to integers towards zero."""
        return METHODS["cast"](self, as_dtype(dtype))

    def reshape(self, *shape: Any) -> Value:
        """The elements, row-major, in another shape; one size may be -1."""
        return METHODS["reshape"](self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Value:
        """The dimensions in another order, reversed if none is said."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return METHODS["transpose"](self, order or None)

    @property
    def T(self) -> Value:  # noqa: N802  (numpy's name)
        """The dimensions reversed."""
        return self.transpose()

    @property
    def mT(self) -> Value:  # noqa: N802  (numpy's name)
        """The last two dimensions exchanged."""
        return self.swapaxes(-1, -2)

    def swapaxes(self, axis1: int, axis2: int) -> Value:
        """Two dimensions exchanged."""
        return METHODS["swapaxes"](self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Value:
        """Without dimensions of size one, all if none is said."""
        return METHODS["squeeze"](self, axis)

    def ravel(self) -> Value:
        """All elements in one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def sum(
        self,
        axis: Any = None,
        dtype: DTypeLike = None,
        *,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """The sum over dimensions, over all if none is said."""
        return METHODS["sum_"](self, axis, dtype, keepdims=keepdims, initial=initial, where=where)

    def max(
        self,
        axis: Any = None,
        *,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """The greatest element over dimensions."""
        return METHODS["max_"](self, axis, keepdims=keepdims, initial=initial, where=where)

    def min(
        self,
        axis: Any = None,
        *,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """The least element over dimensions."""
        return METHODS["min_"](self, axis, keepdims=keepdims, initial=initial, where=where)

    def mean(
        self,
        axis: Any = None,
        dtype: DTypeLike = None,
        *,
        keepdims: bool = False,
        where: ArrayLike | None = None,
    ) -> Value:
        """The mean over dimensions."""
        return METHODS["mean"](self, axis, dtype, keepdims=keepdims, where=where)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Value:
        """The first place of the greatest element along a dimension."""
        return METHODS["argmax"](self, axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Value:
        """The first place of the least element along a dimension."""
        return METHODS["argmin"](self, axis, keepdims=keepdims)

    def var(self, axis: Any = None, **options: Any) -> Value:
        """The mean of squared distances from the mean; options as of `jnp.var`."""
        return METHODS["var"](self, axis, **options)

    def std(self, axis: Any = None, **options: Any) -> Value:
        """The square root of `var`."""
        return METHODS["std"](self, axis, **options)

    def cumsum(self, axis: int | None = None, dtype: DTypeLike = None) -> Value:
        """The sum up to each element along a dimension."""
        return METHODS["cumsum"](self, axis, dtype)

    def clip(self, min: ArrayLike = None, max: ArrayLike = None) -> Value:
        """The elements, but not below `min` nor above `max`."""
        return METHODS["clip"](self, min, max)

    def round(self, decimals: int = 0) -> Value:
        """The nearest numbers of so many decimals, halves to even ones."""
        return METHODS["around"](self, decimals)

    def dot(self, other: ArrayLike, **options: Any) -> Value:
        """The product of matrices or vectors; options as of `jnp.dot`."""
        return METHODS["dot"](self, other, **options)

    def repeat(self, repeats: int, axis: int | None = None) -> Value:
        """Each part along a dimension so often, one after the other."""
        return METHODS["repeat"](self, repeats, axis)

    def view(self, dtype: DTypeLike) -> Value:
        """The same bits as elements of a type of the same width."""
        return METHODS["bitcast_convert_type"](self, dtype)

    def copy(self) -> Value:
        """The value: none changes."""
        return self

    def any(
        self, axis: Any = None, *, keepdims: bool = False, where: ArrayLike | None = None
    ) -> Value:
        """Whether any element over dimensions is true."""
        return METHODS["any_"](self, axis, keepdims=keepdims, where=where)

    def all(
        self, axis: Any = None, *, keepdims: bool = False, where: ArrayLike | None = None
    ) -> Value:
        """Whether all elements over dimensions are true."""
        return METHODS["all_"](self, axis, keepdims=keepdims, where=where)


class Array(ABC):  # noqa: B024  (it only has others registered)
    """What `jax.Array` is for annotations and `isinstance`: values of a kernel, and arrays around one."""


for _class in (Value, np.ndarray, np.generic):
    Array.register(_class)


def constant(number: Any, dtype: DType, shape: Sequence[int] = ()) -> Value:
    """One number, as a scalar or as all elements of a vector."""
    type_ = vector_type(shape, dtype)
    ssa = emit_one("arith.constant", (), type_, {"value": literal(number, dtype, shape, type_)})
    return Value(ssa, shape, dtype)


def is_number(value: Any) -> bool:
    """Whether Python knows the value: an int, a float, a bool, or numpy's scalars."""
    return isinstance(value, bool | int | float | np.generic)


def as_value(value: ArrayLike, dtype: DType | None = None) -> Value:
    """`value` as one of the kernel; numbers take `dtype`, else i32, f32 or i1.

    Raises `HloError` HLO0727 for arrays.
    """
    if isinstance(value, Value):
        return value
    if isinstance(value, Reference):
        raise not_known(
            "a reference is used as a value", "load it first: ref[...] is what it refers to"
        )
    if isinstance(value, np.ndarray):
        return _constant_array(value, dtype)
    if isinstance(value, np.generic) and not isinstance(value, float | bool):
        kind = value.dtype
        if dtype is None and kind.itemsize < 8:
            dtype = as_dtype(kind)
    if not is_number(value):
        raise not_known(f"{type(value).__name__} is no value of a kernel")
    if dtype is None:
        is_truth = isinstance(value, bool | np.bool_)
        dtype = BOOL if is_truth else I32 if isinstance(value, int | np.integer) else F32
    return constant(value, dtype)


def _constant_array(array: Any, dtype: DType | None) -> Value:
    first = array.reshape(-1)[0] if array.size else 0
    if array.ndim and not (array == first).all():
        raise captured(
            f"a kernel cannot capture an array of shape {list(array.shape)}",
            "pass it to the call and give it a BlockSpec, or compute it with broadcasted_iota",
        )
    if dtype is None:
        dtype = as_dtype(array.dtype.name.replace("64", "32"))
    return constant(first, dtype, array.shape)


def dtype_of(value: ArrayLike) -> DType | None:
    """The element type of a value; None for a Python number, which takes that of its neighbour."""
    if isinstance(value, Value):
        return value.dtype
    if isinstance(value, np.ndarray) or (
        isinstance(value, np.generic) and not isinstance(value, float | int)
    ):
        dtype: DType = value.dtype
        return None if dtype.itemsize == 8 and dtype.kind in "iuf" else as_dtype(dtype)
    return None


def is_float(value: Value) -> bool:
    """Whether the elements are floats."""
    return kind_of(value.dtype) == "f"


__all__ = [
    "ON_NUMPY",
    "Array",
    "ArrayLike",
    "Value",
    "as_value",
    "constant",
    "dtype_of",
    "element_type",
    "is_float",
    "is_number",
]
