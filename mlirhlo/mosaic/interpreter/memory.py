"""Memories of a kernel: references with views, and what stands in memory nobody wrote.

A reference is a numpy view of its buffer. What numpy cannot say as a view (rows of 32-bit elements
seen as twice the rows of 16-bit ones) keeps the reference it came from, and a pair of functions
between the two.
"""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, NoneAttr, UnregisteredAttr

from mlirhlo.dialects.stablehlo.elements import dtype_of
from mlirhlo.mosaic.attributes import case_of
from mlirhlo.mosaic.interpreter.problems import fault

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from mlirhlo.mosaic.interpreter.clocks import Memory
    from mlirhlo.mosaic.interpreter.registry import Activation, Array

SEMAPHORES = ("tpu.semaphore", "tpu.dma_semaphore")
COUNTER = np.dtype(np.int64)
"""What a semaphore is here; at most one bit set below is ever an element of data."""


@dataclass(frozen=True, slots=True, eq=False)
class MemRef:
    """A reference to elements of a buffer."""

    array: Array
    """The elements: a view of the buffer, or a copy of them when there is a `parent`."""
    space: str = "vmem"
    """`vmem`, `smem`, `hbm`, `any`, `semaphore_mem`, …"""
    element: str = ""
    """`tpu.semaphore` or `tpu.dma_semaphore`; empty for data."""
    parent: MemRef | None = None
    """Where the elements really are, for what is no view."""
    seen_as: Callable[[Array], Array] | None = None
    """The parent's elements as this reference shows them."""
    stored_as: Callable[[Array], Array] | None = None
    """The other way round."""
    view: Callable[[Array], Array] | None = None
    """From all of `seen_as` to the part that this reference is of."""
    memory: Memory | None = None
    """The allocation, where accesses are checked."""
    written: Array | None = None
    """Which of the elements somebody wrote, as a view of `memory.written`; None for all."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.array.dtype

    def _all(self) -> Array:
        assert self.parent is not None
        assert self.seen_as is not None
        return self.seen_as(self.parent.read())

    def read(self) -> Array:
        """The elements now; not to be written."""
        if self.parent is None:
            return self.array
        whole = self._all()
        return whole if self.view is None else self.view(whole)

    def write(self, index: Any, values: Any) -> None:
        """Stores `values` at a numpy index."""
        if self.parent is None:
            self.array[index] = values
            return
        assert self.stored_as is not None
        whole = np.array(self._all())
        part = whole if self.view is None else self.view(whole)
        part[index] = values
        self.parent.write(..., self.stored_as(whole))

    def part(self, view: Callable[[Array], Array]) -> MemRef:
        """The reference that `view` (of arrays) makes of this one."""
        old = self.view
        inner = view if old is None else (lambda whole: view(old(whole)))
        return MemRef(
            view(self.array),
            self.space,
            self.element,
            self.parent,
            self.seen_as,
            self.stored_as,
            None if self.parent is None else inner,
            self.memory,
            None if self.written is None or self.parent is not None else view(self.written),
        )

    def converted(
        self, seen_as: Callable[[Array], Array], stored_as: Callable[[Array], Array]
    ) -> MemRef:
        """A reference to the same bytes that shows them otherwise."""
        return MemRef(
            seen_as(self.read()),
            self.space,
            self.element,
            self,
            seen_as,
            stored_as,
            None,
            self.memory,
        )


def memory_space(type_: Attribute) -> str:
    """The memory space of a memref type, `vmem` if it says none."""
    space = cast("MemRefType[Any]", type_).memory_space
    return "vmem" if isinstance(space, NoneAttr) else case_of(space, "vmem")


def semaphore_kind(element_type: Attribute) -> str:
    """`tpu.semaphore`, `tpu.dma_semaphore`, or empty for data."""
    if isinstance(element_type, UnregisteredAttr) and element_type.attr_name.data in SEMAPHORES:
        return element_type.attr_name.data
    text = str(element_type).removeprefix("!")
    return text if text in SEMAPHORES else ""


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of a memref or vector type; -1 for sizes that are not static."""
    return tuple(cast("MemRefType[Any]", type_).get_shape())


def dtype_in(type_: Attribute) -> np.dtype[Any]:
    """The numpy type of a scalar, or of the elements of a vector or memref."""
    element = cast("Attribute", getattr(type_, "element_type", type_))
    return COUNTER if semaphore_kind(element) else dtype_of(element)


def poison(dtype: np.dtype[Any]) -> Any:
    """What stands in memory that nobody wrote: NaN, the least integer, false."""
    import ml_dtypes

    if dtype.kind == "b":
        return False
    if dtype.kind == "i":
        return np.iinfo(dtype).min
    if dtype.kind == "u":
        return np.iinfo(dtype).max
    try:
        whole = ml_dtypes.iinfo(dtype)
        return whole.min if int(whole.min) < 0 else whole.max
    except ValueError:
        pass
    value = np.array(np.nan, np.float32).astype(dtype)
    return value[()]


def unwritten(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Memory that nobody wrote."""
    return np.full(tuple(shape), poison(dtype), dtype)


def allocate(type_: Attribute, sizes: Sequence[int] = ()) -> MemRef:
    """New memory of a memref type: unwritten data, or semaphores at zero."""
    rest = iter(sizes)
    shape = [next(rest) if size < 0 else size for size in shape_of(type_)]
    element = cast("MemRefType[Any]", type_).element_type
    kind = semaphore_kind(element)
    if kind:
        return MemRef(np.zeros(shape, COUNTER), memory_space(type_), kind)
    return MemRef(unwritten(shape, dtype_in(type_)), memory_space(type_))


def box(ref: MemRef, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    """The numpy index of a box. Raises `HloError` HLO0702 when it leaves the reference."""
    index: list[slice] = []
    for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        at = int(start)
        if at < 0 or at + size > ref.shape[dim]:
            named = "a reference" if ref.memory is None else ref.memory.name
            raise fault(
                f"elements {at} to {at + size - 1} of dimension {dim} are asked for, which has "
                f"{ref.shape[dim]} ({named}, of shape {list(ref.shape)})",
                help="bound the index, or mask the load or store",
            )
        index.append(slice(at, at + size))
    return tuple(index)


def reshaped(ref: MemRef, shape: Sequence[int]) -> MemRef:
    """The same elements, row-major, in another shape."""
    target = tuple(shape)
    if ref.shape == target:
        return ref
    if ref.parent is None:
        view = ref.array.reshape(target)
        # A copy that numpy had to make lies elsewhere.
        if np.may_share_memory(view, ref.array):
            seen = None if ref.written is None else ref.written.reshape(target)
            if seen is None or np.may_share_memory(seen, ref.written):
                return MemRef(view, ref.space, ref.element, memory=ref.memory, written=seen)
    source = ref.shape
    return ref.converted(lambda a: a.reshape(target), lambda a: a.reshape(source))


def read_at(frame: Activation, op: Operation, ref: MemRef, index: Any) -> Array:
    """The elements at a numpy index, checked; not to be written."""
    if frame.core.checks is not None:
        frame.core.checks.read(op, ref, index)
    part: Array = ref.read()[index]
    return part


def write_at(frame: Activation, op: Operation, ref: MemRef, index: Any, values: Any) -> None:
    """Stores at a numpy index, checked."""
    if frame.core.checks is not None:
        frame.core.checks.write(op, ref, index)
    ref.write(index, values)
