"""References of kernels for GPUs: parts of global memory, shared memory and registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, SSAValue

from mlirhlo.importing import LATE
from mlirhlo.mosaic.language.elements import I32, DType, element_type
from mlirhlo.mosaic.language.faults import bad_index, bad_memory, bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import broadcast_to, cast
from mlirhlo.mosaic.language.functions.shapes import reshape
from mlirhlo.mosaic.language.indexing import Part, parts_of, scalar
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    attribute,
    emit,
    emit_one,
    int_attr,
    ints,
    vector_type,
)
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value

with LATE:
    from mlirhlo.mosaic.gpu import layouts


SPACES = {
    "gmem": "",
    "smem": "#gpu.address_space<workgroup>",
    "regs": "#gpu.address_space<private>",
    "cluster": "#mosaic_gpu.smem_cluster",
    "tmem": "#mosaic_gpu.tmem",
}


def memref_of(
    shape: Sequence[int], element: Attribute, space: str, strides: Sequence[int] | None = None
) -> MemRefType[Any]:
    """The type of a memref; `strides` of a view, which begins anywhere."""
    layout = NoneAttr() if strides is None else StridedLayoutAttr(list(strides), None)
    memory = attribute(SPACES[space]) if SPACES[space] else NoneAttr()
    return MemRefType(element, list(shape), layout, memory)


@dataclass(slots=True, eq=False)
class GpuRef:
    """A part of a memory. `ref[...]` loads, `ref[...] = x` stores, `ref.at[...]` is a view."""

    root: SSAValue
    whole: tuple[int, ...]
    """Sizes of the memory."""
    dtype: DType
    space: str
    parts: tuple[Part, ...]
    """Of each dimension of the memory."""
    barrier: Any = None
    """What asked for it, of barriers."""
    phases: SSAValue | None = None
    """Of barriers: the parity that is waited for next, a bit for each."""
    is_transposed: bool = False
    cache: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions that the kernel sees."""
        found = tuple(part.size for part in self.parts if not part.is_dropped)
        return found[::-1] if self.is_transposed else found

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
    def T(self) -> GpuRef:  # noqa: N802  (numpy's name)
        """The transpose, as a factor of wgmma."""
        if self.ndim != 2:
            raise bad_shape(f"a reference of shape {list(self.shape)} is transposed")
        return replace(self, is_transposed=not self.is_transposed)

    def __repr__(self) -> str:
        return f"<reference to {self.dtype.name}{list(self.shape)} in {self.space}>"

    def __getitem__(self, index: Any) -> Value:
        return load(self, index)

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        store(self, index, value)

    def __bool__(self) -> bool:
        return True

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise bad_memory("numpy is given a reference", "load it first: ref[...]")

    def element(self) -> Attribute:
        """The MLIR type of the elements."""
        return attribute("!mosaic_gpu.barrier") if self.barrier else element_type(self.dtype)

    def operand(self) -> SSAValue:
        """The part as a memref."""
        sizes = tuple(part.size for part in self.parts)
        begins = all(isinstance(part.start, int) and part.start == 0 for part in self.parts)
        if sizes == self.whole and begins and not any(part.is_dropped for part in self.parts):
            return self.root
        strides = [prod(self.whole[dim + 1 :]) for dim in range(len(self.whole))]
        kept = [d for d, part in enumerate(self.parts) if not part.is_dropped]
        type_ = memref_of(
            [sizes[d] for d in kept], self.element(), self.space, [strides[d] for d in kept]
        )
        static, dynamic = starts_of(self.parts)
        return emit_one(
            "memref.subview",
            [self.root, *dynamic],
            type_,
            {
                "static_offsets": ints(static),
                "static_sizes": ints(sizes),
                "static_strides": ints([1] * len(sizes)),
                SEGMENTS: ints([1, len(dynamic), 0, 0], 32),
            },
        )


def starts_of(parts: Sequence[Part]) -> tuple[list[int], list[SSAValue]]:
    """Starts that are known, and the others as indices."""
    static: list[int] = []
    dynamic: list[SSAValue] = []
    for part in parts:
        if isinstance(part.start, Value):
            static.append(DYNAMIC_INDEX)
            dynamic.append(emit_one("arith.index_cast", [part.start.ssa], IndexType()))
        else:
            static.append(int(part.start))
    return static, dynamic


class _At:
    """`ref.at`."""

    __slots__ = ("_ref",)

    def __init__(self, ref: GpuRef) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> GpuRef:
        return view(self._ref, index)


def view(ref: GpuRef, index: Any) -> GpuRef:
    """The part of a reference at an index."""
    if ref.is_transposed:
        raise bad_index("a transposed reference is indexed", "index it first, then transpose it")
    kept = [part for part in ref.parts if not part.is_dropped]
    found = parts_of(index, [p.size for p in kept], [False] * len(kept), is_view=True)
    if any(part.stride != 1 for part in found):
        raise bad_index("a view has no steps")
    rest = iter(found)
    parts = tuple(part if part.is_dropped else _shifted(part, next(rest)) for part in ref.parts)
    return replace(ref, parts=parts)


def _shifted(outer: Part, inner: Part) -> Part:
    start = inner.start
    if not (isinstance(outer.start, int) and outer.start == 0):
        start = outer.start + start
    return Part(start, inner.size, 1, inner.is_dropped)


def whole(shape: Sequence[int]) -> tuple[Part, ...]:
    """The parts of all of a memory."""
    return tuple(Part(0, size) for size in shape)


def _data(ref: GpuRef, what: str) -> None:
    if ref.space == "tmem":
        raise bad_memory(f"TMEM is {what}", "use async_load_tmem and async_store_tmem")
    if ref.barrier:
        raise bad_memory(f"a barrier is {what}", "wait for it with barrier_wait")
    if ref.is_transposed:
        raise bad_memory(f"a transposed reference is {what}", "it is for wgmma alone")


def load(src: GpuRef, idx: Any = ..., *, layout: Any = None, optimized: bool = True) -> Value:
    """The elements at an index; all numbers give a scalar.

    `optimized` is of no effect: a load that has no fast form is compiled to a slower one.
    """
    del optimized
    ref = src
    _data(ref, "read")
    part = view(ref, idx)
    operand = part.operand()
    if not part.shape:
        ssa = emit_one("memref.load", [operand], element_type(ref.dtype))
        return Value(ssa, (), ref.dtype)
    ssa = emit_one("mosaic_gpu.vector_load", [operand], vector_type(part.shape, ref.dtype))
    found = Value(ssa, part.shape, ref.dtype)
    if layout is not None:
        found = layouts.layout_cast(found, layout)
    return found


def store(ref: GpuRef, index: Any, value: ArrayLike, *, atomic: int | None = None) -> None:
    """Stores a value, broadcast to the part."""
    _data(ref, "written")
    part = view(ref, index)

    held = as_value(value, ref.dtype)
    if held.dtype != ref.dtype:
        if isinstance(value, Value):
            raise bad_memory(
                f"{held.dtype.name} is stored to memory of {ref.dtype.name}", "cast with astype"
            )
        held = cast(held, ref.dtype)
    if not part.shape:
        emit("memref.store", [reshape(held, ()).ssa, part.operand()])
        return
    held = broadcast_to(held, part.shape)
    attributes = {} if atomic is None else {"atomic_type": ints_of(atomic)}
    emit("mosaic_gpu.vector_store", [held.ssa, part.operand()], (), attributes)


def ints_of(number: int) -> Attribute:
    """`number : i32`."""
    return int_attr(number)


def as_i32(value: Any) -> Value:
    """A number or value as one i32."""
    return scalar(as_value(value, I32))
