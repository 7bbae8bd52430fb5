"""References: what a kernel's arguments are, their loads, stores and views."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mlirhlo.mosaic.language.elements import (
    BOOL,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    bits_of,
    element_type,
)
from mlirhlo.mosaic.language.faults import bad_index, bad_memory, bad_shape, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import broadcast_to, cast, where
from mlirhlo.mosaic.language.functions.shapes import reshape
from mlirhlo.mosaic.language.indexing import Part, i32_operand, index_operand, parts_of
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    attribute,
    current,
    emit,
    emit_one,
    flag,
    ints,
    memref_type,
    vector_type,
)
from mlirhlo.mosaic.language.value import ArrayLike, Reference, Value, as_value, is_number

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

_UNREACHABLE = ("any", "hbm", "host")
"""Memories that a core reaches by copies alone."""


class Ref(Reference):
    """A part of some memory. `ref[...]` loads, `ref[...] = x` stores, `ref.at[...]` is a view."""

    __slots__ = ("dtype", "hidden", "semaphore", "sizes", "space", "ssa")

    def __init__(
        self,
        ssa: SSAValue,
        sizes: Sequence[int],
        dtype: DType,
        space: str,
        *,
        hidden: Sequence[bool] | None = None,
        semaphore: str = "",
    ) -> None:
        self.ssa = ssa
        self.sizes = tuple(sizes)
        """Of the memory, with dimensions that the kernel does not see."""
        self.dtype = dtype
        self.space = space
        self.hidden = tuple(hidden) if hidden is not None else (False,) * len(self.sizes)
        self.semaphore = semaphore
        """`tpu.semaphore` or `tpu.dma_semaphore`; empty for data."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions that the kernel sees; -1 where it is known when it runs."""
        return tuple(n for n, h in zip(self.sizes, self.hidden, strict=True) if not h)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def at(self) -> _At:
        """Views: `ref.at[0]`, `ref.at[pl.ds(8, 8)]`."""
        return _At(self)

    @property
    def stored(self) -> Attribute:
        """The MLIR type of the memory's elements; booleans are kept as i32."""
        if self.semaphore:
            return attribute(f"!{self.semaphore}")
        return element_type(I32 if self.dtype == BOOL else self.dtype)

    def __repr__(self) -> str:
        what = self.semaphore or self.dtype.name
        return f"<reference to {what}{list(self.shape)} in {self.space}>"

    def __getitem__(self, index: Any) -> Value:
        return load(self, index)

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        store(self, index, value)

    def get(self, idx: Any = ()) -> Value:
        """As `ref[idx]`; all of it without an index."""
        return self[idx]

    def set(self, value: ArrayLike, idx: Any = ()) -> None:
        """As `ref[idx] = value`."""
        self[idx] = value

    def swap(self, value: ArrayLike, idx: Any = ()) -> Value:
        """What `ref[idx]` was before it became `value`."""
        found = self[idx]
        self[idx] = value
        return found

    def addupdate(self, value: ArrayLike, idx: Any = ()) -> None:
        """As `ref[idx] += value`."""
        self[idx] += value

    def __len__(self) -> int:
        if not self.shape:
            raise bad_shape("a reference to one element has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise bad_index(
            "Python's for goes over a reference",
            "write for i in range(ref.shape[0]): ref[i], or fori_loop, or pl.loop",
        )

    def __bool__(self) -> bool:
        return True

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise bad_memory("numpy is given a reference", "load it first: ref[...]")

    def _is_no_value(self, *_: Any) -> Any:
        raise bad_memory(
            "a reference is computed with, not what it holds", "read it first: ref[...]"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _is_no_value
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _is_no_value
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __and__ = __rand__ = _is_no_value
    __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _is_no_value
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __invert__ = _is_no_value

    def reshape(self, *shape: Any) -> Ref:
        """The same memory in another shape; one size may be -1. Where the last dimension does not stay,
        it holds 32-bit elements in rows of registers."""
        sizes = tuple(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if sizes.count(-1) == 1:
            rest = -prod(sizes)
            sizes = tuple(self.size // rest if size == -1 and rest else size for size in sizes)
        if prod(sizes) != self.size:
            raise bad_shape(f"a reference of shape {list(self.shape)} seen as {list(sizes)}")
        whole = squeezed(self)
        type_ = memref_type(sizes, self.stored, self.space)
        return Ref(emit_one("tpu.memref_reshape", [whole], type_), sizes, self.dtype, self.space)

    def bitcast(self, dtype: DTypeLike) -> Ref:
        """The same bytes as elements of another width: rows are packed."""
        new = as_dtype(dtype)
        if self.ndim < 2:
            raise bad_shape("bitcast packs rows: it needs two dimensions")
        rows = self.shape[-2] * bits_of(self.dtype)
        if rows % bits_of(new):
            raise bad_shape(f"{self.shape[-2]} rows of {self.dtype.name} as rows of {new.name}")
        sizes = (*self.shape[:-2], rows // bits_of(new), self.shape[-1])
        type_ = memref_type(sizes, element_type(new), self.space)
        cast = emit_one("tpu.memref_bitcast", [squeezed(self)], type_)
        return Ref(cast, sizes, new, self.space)


class _At:
    """`ref.at`."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Ref) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> Ref:
        ref = self._ref
        parts = parts_of(index, ref.sizes, ref.hidden, is_view=True, name=ref.ssa.name_hint)
        if any(part.stride != 1 for part in parts):
            raise bad_index("a view has no steps", "load with pl.ds(start, size, stride)")
        sizes = tuple(part.size for part in parts)
        hidden = tuple(part.is_dropped for part in parts)
        ssa = ref.ssa
        if sizes != ref.sizes:
            counts = [part.count.ssa for part in parts if part.count is not None]
            operands = [ssa, *(i32_operand(part.start) for part in parts), *counts]
            type_ = memref_type(sizes, ref.stored, ref.space)
            segments = {SEGMENTS: ints([1, len(parts), len(counts)], 32)}
            ssa = emit_one("tpu.memref_slice", operands, type_, segments)
        return Ref(ssa, sizes, ref.dtype, ref.space, hidden=hidden, semaphore=ref.semaphore)


def squeezed(ref: Ref) -> SSAValue:
    """The memory without dimensions that the kernel does not see."""
    if not any(ref.hidden):
        return ref.ssa
    type_ = memref_type(ref.shape, ref.stored, ref.space)
    return emit_one("tpu.memref_squeeze", [ref.ssa], type_)


def _data(ref: Ref, what: str) -> None:
    if ref.semaphore:
        raise bad_memory(f"a semaphore cannot be {what}", "semaphore_read gives its value")
    if ref.space in _UNREACHABLE:
        raise bad_memory(
            f"memory in {ref.space} cannot be {what} by the core",
            "copy it to VMEM with pltpu.sync_copy or make_async_copy, or give it a block in VMEM",
        )
    trace = current("a load or store")
    if trace.is_index_map and ref.space != "smem":
        raise bad_memory("an index map reads scalar-prefetch references alone")


def load(ref: Ref, index: Any) -> Value:
    """The elements at an index; all numbers give a scalar."""
    _data(ref, "read")
    parts = parts_of(index, ref.sizes, ref.hidden, name=ref.ssa.name_hint)
    shape = tuple(part.size for part in parts if not part.is_dropped)
    if ref.space == "smem":
        return _load_scalar(ref, parts, shape)

    stored = I32 if ref.dtype == BOOL else ref.dtype
    sizes = tuple(part.size for part in parts)
    operands = [ref.ssa, *(index_operand(part.start) for part in parts)]
    type_ = vector_type(sizes, stored)
    if any(part.stride != 1 for part in parts):
        strides = {"strides": ints([part.stride for part in parts], 32)}
        ssa = emit_one("tpu.strided_load", operands, type_, strides)
    else:
        ssa = emit_one("vector.load", operands, type_)
    return cast(reshape(Value(ssa, sizes, stored), shape), ref.dtype)


def _load_scalar(ref: Ref, parts: list[Part], shape: tuple[int, ...]) -> Value:
    if shape:
        raise bad_memory(
            f"a slice of shape {list(shape)} is loaded from SMEM, which has scalars alone",
            "index every dimension by a number, or keep the array in VMEM",
        )
    stored = I32 if ref.dtype == BOOL else ref.dtype
    operands = [ref.ssa, *(index_operand(part.start) for part in parts)]
    ssa = emit_one("memref.load", operands, element_type(stored))
    return cast(Value(ssa, (), stored), ref.dtype)


def store(
    ref: Ref, index: Any, value: ArrayLike, mask: ArrayLike = None, add: bool = False
) -> None:
    """Writes elements at an index, where the mask holds; `add` adds to those there."""
    _data(ref, "written")
    parts = parts_of(index, ref.sizes, ref.hidden, name=ref.ssa.name_hint)
    shape = tuple(part.size for part in parts if not part.is_dropped)
    x = as_value(value, ref.dtype if is_number(value) else None)
    if x.dtype != ref.dtype:
        raise bad_type(
            f"elements of {x.dtype.name} are stored to a reference of {ref.dtype.name}",
            f"write .astype(ref.dtype), or mosaic.{ref.dtype.name}",
        )
    try:
        x = broadcast_to(x, shape)
    except Exception as problem:
        raise bad_shape(
            f"a value of shape {list(x.shape)} is stored to a slice of shape {list(shape)}"
        ) from problem
    stored = I32 if ref.dtype == BOOL else ref.dtype
    x = cast(x, stored)
    starts = [index_operand(part.start) for part in parts]
    if ref.space == "smem":
        if shape or mask is not None:
            raise bad_memory(
                f"a slice of shape {list(shape)} is stored to SMEM, which has scalars alone",
                "index every dimension by a number, or keep the array in VMEM",
            )
        emit("memref.store", [x.ssa, ref.ssa, *starts])
        return
    sizes = tuple(part.size for part in parts)
    x = reshape(x, sizes)
    if any(part.stride != 1 for part in parts):
        if mask is not None or add:
            raise bad_index("a store with steps has no mask")
        strides = {"strides": ints([part.stride for part in parts], 32)}
        emit("tpu.strided_store", [x.ssa, ref.ssa, *starts], (), strides)
        return
    masks: list[SSAValue] = []
    if mask is not None:
        masks = [reshape(broadcast_to(as_value(mask), shape), sizes).ssa]
    attributes = {
        "strides": ints([], 32),
        SEGMENTS: ints([1, 1, len(starts), len(masks)], 32),
        "add": flag(add),
    }
    emit("tpu.vector_store", [x.ssa, ref.ssa, *starts, *masks], (), attributes)


def masked_load(
    ref: Ref, index: Any = ..., *, mask: ArrayLike = None, other: ArrayLike = None
) -> Value:
    """As `ref[index]`; where the mask does not hold, `other` (0)."""
    found = load(ref, index)
    return found if mask is None else where(mask, found, 0 if other is None else other)


def masked_store(ref: Ref, index: Any, value: ArrayLike, *, mask: ArrayLike = None) -> None:
    """As `ref[index] = value`, where the mask holds."""
    store(ref, index, value, mask)


def tpu_load(ref: Ref, *, mask: ArrayLike = None) -> Value:
    """As `ref[...]`; where the mask does not hold, 0."""
    return masked_load(ref, mask=mask)


def tpu_store(ref: Ref, val: ArrayLike, *, mask: ArrayLike = None) -> None:
    """As `ref[...] = val`, where the mask holds."""
    store(ref, ..., val, mask)
