"""The array: concrete outside of `jit`, traced inside of it, one class for both.

A concrete array holds numpy data that nobody changes; a traced one stands for the result of an
instruction. `x[key] = v` gives the Python object another value in both cases: no other array sees
the change, as no two arrays share memory as far as a program can tell.
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.numpy.dtypes import DType, available, kind_of, primitive
from mlirhlo.numpy.errors import HloIndexError, HloTypeError, HloValueError, problem

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

Data = np.ndarray[Any, np.dtype[Any]]

DEVICE = "cpu"
"""The one device."""

_CONTROL = (
    "use where(…) for a choice by element, cond, while_loop or fori_loop for a choice of what runs"
)
_STATIC = "pass it as a static argument (static_argnums, static_argnames) if it is a plain number"


class Array:
    """An array of the Python array API standard, on HLO."""

    __slots__ = ("_data", "_dtype", "_shape", "_trace", "_value", "_weak")
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    _data: Data | None
    _dtype: DType
    _shape: tuple[int, ...]
    _trace: object | None
    _value: SSAValue | None
    _weak: type | None

    @staticmethod
    def concrete(data: Data) -> Array:
        """An array of numpy data, which nobody may change from now on."""
        data = available(data)
        array = object.__new__(Array)
        array._data, array._dtype, array._shape = data, data.dtype, data.shape
        array._trace = array._value = array._weak = None
        return array

    @staticmethod
    def traced(
        trace: object,
        value: SSAValue,
        dtype: DType,
        shape: tuple[int, ...],
        weak: type | None = None,
    ) -> Array:
        """An array that stands for a value of a computation under construction.

        `weak`: the type of a Python scalar that it stands for; then it promotes as that does.
        """
        array = object.__new__(Array)
        array._data, array._dtype, array._shape = None, dtype, shape
        array._trace, array._value, array._weak = trace, value, weak
        return array

    def __init__(self) -> None:
        raise problem(
            HloTypeError,
            "HLO0626",
            "Array cannot be called",
            help="mlirhlo.numpy.asarray(…) makes an array",
        )

    # -------------------------------------------------------------- for this room

    @property
    def data(self) -> Data | None:
        """The elements of a concrete array; None for a traced one."""
        return self._data

    @property
    def value(self) -> SSAValue:
        """What a traced array stands for."""
        assert self._value is not None
        return self._value

    @property
    def trace(self) -> object | None:
        """The trace of a traced array."""
        return self._trace

    @property
    def weak(self) -> type | None:
        """`int`, `float`, `complex` or `bool` for what was a Python scalar and promotes as one."""
        return self._weak

    def snapshot(self) -> Array:
        """Another array with this one's value of now."""
        copy = object.__new__(Array)
        for name in Array.__slots__:
            setattr(copy, name, getattr(self, name))
        return copy

    def rebind(self, other: Array) -> None:
        """Takes the value of another array of the same shape and type."""
        self._data, self._trace, self._value = other._data, other._trace, other._value

    def describe(self) -> str:
        """`f32[2,3]`, for messages."""
        return f"{primitive(self._dtype)}[{','.join(map(str, self._shape))}]"

    def known(self, purpose: str, help: str) -> Data:
        """The elements. Raises HLO0620 for a traced array, naming the `purpose`."""
        if self._data is None:
            raise _unknown(self, purpose, help)
        return self._data

    # -------------------------------------------------------------- attributes

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def device(self) -> str:
        """Where it lies."""
        return DEVICE

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def T(self) -> Array:  # noqa: N802  (the standard's name)
        """The transpose of a matrix. Raises HLO0626 when it is no matrix."""
        if self.ndim != 2:
            raise problem(
                HloValueError,
                "HLO0626",
                f".T is for matrices, this array has {self.ndim} dimensions",
                help="use .mT for stacks of matrices, permute_dims for any order",
            )
        return self.mT

    # -------------------------------------------------------------- the standard's methods

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array itself: there is one device. Raises HLO0626 for another."""
        check_device(device)
        if stream is not None:
            raise problem(HloValueError, "HLO0626", "the CPU has no streams")
        return self

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule."""
        data = self.known("its memory", "exchange arrays outside of jit")
        if not data.flags.writeable and (max_version is None or max_version < (1, 0)):
            # A consumer of that age cannot be told read-only; a copy keeps our data ours.
            data = data.copy()
        options: dict[str, Any] = {"dl_device": dl_device, "copy": copy}
        return data.__dlpack__(stream=stream, max_version=max_version, **options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Kind and number of the device."""
        return np.empty(0).__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Data:
        """The elements as a numpy array, for numpy's own functions."""
        data = self.known("its elements", "use the functions of mlirhlo.numpy inside of jit")
        if dtype is not None and np.dtype(dtype) != data.dtype:
            if copy is False:
                raise ValueError("a change of type needs a copy")
            return data.astype(dtype)
        if copy is not True and not data.flags.writeable:
            return data
        if copy is False:
            view = data.view()
            view.flags.writeable = False
            return view
        return data.copy()

    # -------------------------------------------------------------- Python's scalars

    def _scalar(self, type_: type) -> Any:
        data = self.known(f"a Python {type_.__name__}", _CONTROL if type_ is bool else _STATIC)
        if data.size != 1 or data.ndim:
            raise problem(
                HloTypeError,
                "HLO0626",
                f"{type_.__name__}() takes an array of rank 0, not {self.describe()}",
                help="use any(x) or all(x) to fold a condition" if type_ is bool else None,
            )
        return data[()]

    def __bool__(self) -> bool:
        return bool(self._scalar(bool))

    def __int__(self) -> int:
        value = self._scalar(int)
        if kind_of(self._dtype) == "c":
            raise problem(HloTypeError, "HLO0626", "int() of a complex array")
        return int(value)

    def __float__(self) -> float:
        value = self._scalar(float)
        if kind_of(self._dtype) == "c":
            raise problem(HloTypeError, "HLO0626", "float() of a complex array")
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar(complex))

    def __index__(self) -> int:
        if kind_of(self._dtype) not in "iu":
            raise problem(HloTypeError, "HLO0626", f"{self.describe()} is no index")
        return int(self._scalar(int))

    def item(self) -> Any:
        """The only element as a Python scalar."""
        return self.known("a Python scalar", _STATIC).item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self.known("a list of Python scalars", _STATIC).tolist()

    def __len__(self) -> int:
        if not self._shape:
            raise problem(HloTypeError, "HLO0626", "an array of rank 0 has no length")
        return self._shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self._shape:
            raise problem(
                HloTypeError, "HLO0626", "an array of rank 0 has no elements to go through"
            )
        return (self[i] for i in range(self._shape[0]))

    def __repr__(self) -> str:
        if self._data is None:
            return f"<traced {self.describe()}>"
        return np.array_repr(self._data).replace("array(", "Array(", 1)

    def __str__(self) -> str:
        return repr(self) if self._data is None else str(self._data)

    # -------------------------------------------------------------- what `operators` installs

    if TYPE_CHECKING:

        @property
        def mT(self) -> Array:  # noqa: N802  (the standard's name)
            """The transposes of a stack of matrices."""
            ...

        def __getitem__(self, key: Any, /) -> Array: ...
        def __setitem__(self, key: Any, value: Any, /) -> None: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any: ...
        def __add__(self, other: Any, /) -> Array: ...
        def __radd__(self, other: Any, /) -> Array: ...
        def __sub__(self, other: Any, /) -> Array: ...
        def __rsub__(self, other: Any, /) -> Array: ...
        def __mul__(self, other: Any, /) -> Array: ...
        def __rmul__(self, other: Any, /) -> Array: ...
        def __truediv__(self, other: Any, /) -> Array: ...
        def __rtruediv__(self, other: Any, /) -> Array: ...
        def __floordiv__(self, other: Any, /) -> Array: ...
        def __rfloordiv__(self, other: Any, /) -> Array: ...
        def __mod__(self, other: Any, /) -> Array: ...
        def __rmod__(self, other: Any, /) -> Array: ...
        def __pow__(self, other: Any, /) -> Array: ...
        def __rpow__(self, other: Any, /) -> Array: ...
        def __matmul__(self, other: Any, /) -> Array: ...
        def __rmatmul__(self, other: Any, /) -> Array: ...
        def __and__(self, other: Any, /) -> Array: ...
        def __rand__(self, other: Any, /) -> Array: ...
        def __or__(self, other: Any, /) -> Array: ...
        def __ror__(self, other: Any, /) -> Array: ...
        def __xor__(self, other: Any, /) -> Array: ...
        def __rxor__(self, other: Any, /) -> Array: ...
        def __lshift__(self, other: Any, /) -> Array: ...
        def __rlshift__(self, other: Any, /) -> Array: ...
        def __rshift__(self, other: Any, /) -> Array: ...
        def __rrshift__(self, other: Any, /) -> Array: ...
        def __lt__(self, other: Any, /) -> Array: ...
        def __le__(self, other: Any, /) -> Array: ...
        def __gt__(self, other: Any, /) -> Array: ...
        def __ge__(self, other: Any, /) -> Array: ...
        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...


def _unknown(array: Array, purpose: str, help: str) -> HloError:
    return problem(
        HloTypeError,
        "HLO0620",
        f"{array.describe()} is traced: {purpose} cannot be had before the program runs",
        help=help,
    )


def check_device(device: Any) -> None:
    """Raises HLO0626 for a device that is not the one there is."""
    if device not in (None, DEVICE):
        raise problem(
            HloValueError,
            "HLO0626",
            f"there is no device {device!r}",
            help=f"the one device is {DEVICE!r}",
        )


def axis_of(axis: Any, rank: int, what: str) -> int:
    """A dimension as a number from 0 on. Raises HLO0626 when it is out of range."""
    try:
        number = axis.__index__()
    except AttributeError:
        raise problem(HloTypeError, "HLO0626", f"{what}: {axis!r} is no axis") from None
    if not -rank <= number < rank:
        raise problem(
            HloIndexError,
            "HLO0626",
            f"{what}: axis {number} is out of range for an array of {rank} dimensions",
        )
    return int(number % rank)


def axes_of(axis: Any, rank: int, what: str) -> tuple[int, ...]:
    """Dimensions as sorted numbers from 0 on; all for None. Raises HLO0626."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(axis_of(one, rank, what) for one in cast("tuple[Any, ...]", given)))
    if len(set(axes)) != len(axes):
        raise problem(HloValueError, "HLO0626", f"{what}: an axis stands twice in {axis}")
    return axes
