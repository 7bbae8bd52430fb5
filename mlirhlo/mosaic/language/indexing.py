"""Indices of references: numbers, slices, `ds`, `...`."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import I32, kind_of
from mlirhlo.mosaic.language.faults import bad_index
from mlirhlo.mosaic.language.functions.arithmetic import cast
from mlirhlo.mosaic.language.trace import emit_one, int_attr
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value, constant


@dataclass(frozen=True, slots=True)
class Slice:
    """`size` elements from `start`, every `stride`-th one; both may be known when the kernel runs."""

    start: Any
    size: Any
    stride: int = 1


def ds(start: ArrayLike, size: Any = None, stride: int | None = None) -> Any:
    """A slice for an index: `ref[pl.ds(i * 8, 8), :]`. `ds(n)` starts at 0, `ds(None)` is all of a dimension.

    A size that is known when the kernel runs is for parts that are copied: `ref.at[pl.ds(0, n)]`.
    """
    stride = 1 if stride is None else stride
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    if isinstance(size, Value):
        if stride != 1:
            raise bad_index("a slice of a size known when the kernel runs has no steps")
        return Slice(start, scalar(size, "the size of a slice"))
    if as_index(size) < 1 or stride < 0:
        raise bad_index(f"a slice of {size} elements by {stride}")
    return Slice(start, as_index(size), stride)


dslice = ds


def multiple_of(x: ArrayLike, values: int) -> ArrayLike:
    """x, with the promise that it is a multiple: what a load at tiles asks for."""
    if not isinstance(x, Value):
        if as_index(x) % values:
            raise bad_index(f"{x} is no multiple of {values}")
        return x
    found = emit_one("tpu.assume_multiple", [x.ssa], x.type, {"multiple": int_attr(values)})
    return Value(found, x.shape, x.dtype)


@dataclass(frozen=True, slots=True)
class Part:
    """What an index takes of one dimension of the memory."""

    start: Any
    """A number, or a `Value`."""
    size: int
    """-1 where it is `count`."""
    stride: int = 1
    is_dropped: bool = False
    """Whether the dimension is indexed by a number, and gone from the result."""
    count: Value | None = None
    """A size that is known when the kernel runs."""


def scalar(value: ArrayLike, what: str = "an index") -> Value:
    """A value as one i32. Raises `HloError` HLO0724."""
    found = as_value(value, I32)
    if found.shape or kind_of(found.dtype) not in "iu":
        mend = "gather along a dimension with take_along_axis, or loop over the rows"
        raise bad_index(
            f"{what} is one integer, not {found!r}", mend if found.shape else "divide with //"
        )
    return cast(found, I32)


def parts_of(
    index: Any,
    sizes: Sequence[int],
    hidden: Sequence[bool],
    *,
    is_view: bool = False,
    name: str | None = None,
) -> list[Part]:
    """One part for each dimension of the memory. Hidden ones have size one and are not indexed.

    `is_view`: sizes may be known when the kernel runs. Raises `HloError` HLO0724 for indices that the
    shape has not, with the name of the memory.
    """
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]
    rank = sum(not is_hidden for is_hidden in hidden)
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise bad_index("... stands twice in an index")
    given = len(items) - len(dots)
    if given > rank:
        shape = [n for n, h in zip(sizes, hidden, strict=True) if not h]
        raise bad_index(f"{given} indices for {name or 'a reference'} of shape {shape}")
    at = dots[0] if dots else len(items)
    items[at : at + len(dots)] = [slice(None)] * (rank - given)
    rest, of = iter(items), f" of {name}" if name else ""
    parts = [
        Part(0, 1, is_dropped=True)
        if is_hidden
        else _part(next(rest), size, f"dimension {dim}{of}")
        for dim, (size, is_hidden) in enumerate(zip(sizes, hidden, strict=True))
    ]
    if not is_view and any(part.count is not None for part in parts):
        raise bad_index(
            "the size of a slice is known when the kernel runs",
            "load a slice of fixed size, and use where with a mask; ref.at[…] is for copies",
        )
    return parts


def _part(item: Any, size: int, where: str) -> Part:
    if size < 0:
        raise bad_index(
            f"{where} has a size known when the kernel runs", "index what this is a part of"
        )
    if isinstance(item, slice):
        if any(isinstance(end, Value) for end in (item.start, item.stop, item.step)):
            raise bad_index(
                "the ends of a slice are known when the kernel runs",
                "write pl.ds(start, size) with a size that Python knows",
            )
        start, stop, step = item.indices(size)
        count = max(0, -(-(stop - start) // step)) if step > 0 else 0
        if not count:
            raise bad_index(f"{item} of {where}, of size {size}, has no elements")
        if item.stop is not None and item.stop > size:
            raise bad_index(f"{item} leaves {where}, which has {size} elements")
        return Part(start, count, step)
    if isinstance(item, Slice):
        return _dynamic(item, size, where)
    if isinstance(item, Value):
        return Part(scalar(item), 1, is_dropped=True)
    if item is None:
        raise bad_index("a reference cannot be given new dimensions", "load it, then reshape")
    if isinstance(item, np.ndarray) and item.ndim:
        raise bad_index("a reference cannot be indexed by an array", "loop over its elements")
    number = as_index(item)
    if not -size <= number < size:
        raise bad_index(f"index {number} of {where}, which has {size} elements")
    return Part(number % size, 1, is_dropped=True)


def _dynamic(item: Slice, size: int, where: str) -> Part:
    if isinstance(item.size, Value):
        start = scalar(item.start) if isinstance(item.start, Value) else as_index(item.start)
        return Part(start, -1, count=item.size)
    last = (item.size - 1) * item.stride
    if isinstance(item.start, Value):
        if last >= size:
            raise bad_index(f"{last + 1} elements of {where}, which has {size}")
        return Part(scalar(item.start), item.size, item.stride)
    start = as_index(item.start)
    if start < 0 or start + last >= size:
        raise bad_index(
            f"elements {start} to {start + last} of {where}, which has {size} elements",
            "bound the index, or make the block larger",
        )
    return Part(start, item.size, item.stride)


def index_operand(start: Any) -> Any:
    """The start of a part as a value of MLIR's `index`."""
    from xdsl.dialects.builtin import IndexType, IntegerAttr

    kind = IndexType()
    if isinstance(start, Value):
        return emit_one("arith.index_cast", [start.ssa], kind)
    return emit_one("arith.constant", [], kind, {"value": IntegerAttr(start, kind)})


def i32_operand(start: Any) -> Any:
    """The start of a part as i32."""
    return start.ssa if isinstance(start, Value) else constant(start, I32).ssa
