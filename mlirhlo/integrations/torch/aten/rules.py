"""The table of rules, and what a rule sees of the call that it gives a meaning."""

# Narrowing by isinstance leaves the parameters of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType

Rule = Callable[..., Any]
RuleT = TypeVar("RuleT", bound=Rule)

RULES: dict[str, Rule] = {}
"""By overload, as in `add.Tensor`. Called with a `Call`, then the operation's own arguments."""

DTYPES: dict[str, DType] = {
    "bool": dt.bool,
    "uint8": dt.uint8,
    "int8": dt.int8,
    "int16": dt.int16,
    "int32": dt.int32,
    "int64": dt.int64,
    "float16": dt.float16,
    "bfloat16": dt.bfloat16,
    "float32": dt.float32,
    "float64": dt.float64,
    "complex64": dt.complex64,
    "complex128": dt.complex128,
}
"""Element types by the names that PyTorch has for them."""


def dtype_of(given: Any) -> DType:
    """The element type of a `torch.dtype`. Raises `KeyError` for one that has no counterpart."""
    return DTYPES[str(given).removeprefix("torch.")]


@dataclass(frozen=True)
class Call:
    """One operation of a graph: what PyTorch says of its results and operands."""

    dtypes: Sequence[DType]
    """Element types of the results."""
    operand_dtype: DType
    """What PyTorch promotes the operands to."""
    strides: Sequence[int] = ()
    """Distances of neighbours in the memory of the first operand, in elements, as PyTorch lays it out."""

    @property
    def dtype(self) -> DType:
        """Element type of the first result."""
        return self.dtypes[0]

    def cast(self, x: Any, dtype: DType | None = None) -> Array:
        """An operand, or a number, in the type of the result or another."""
        wanted = self.dtype if dtype is None else dtype
        return ops.convert(x, wanted) if isinstance(x, Array) else ops.constant(x, wanted)


def rule(*names: str) -> Callable[[RuleT], RuleT]:
    """Decorator: the meaning of these overloads."""

    def add(function: RuleT) -> RuleT:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


def axis(number: int, rank: int) -> int:
    """A dimension counted from the front; a scalar has one."""
    return number % max(rank, 1)


def axes(numbers: Any, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front; all for none."""
    if numbers is None or (isinstance(numbers, Sequence) and not numbers):
        return tuple(range(rank))
    listed = [numbers] if isinstance(numbers, int) else numbers
    return tuple(axis(number, rank) for number in listed)


def numbers(given: Any, count: int) -> tuple[int, ...]:
    """An integer for each of `count` dimensions; one stands for all."""
    listed = tuple(given) if isinstance(given, Sequence) else (given,)
    return listed * count if len(listed) == 1 else listed


def accumulator(dtype: DType) -> DType:
    """The type in which PyTorch sums elements of a type."""
    return dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype
