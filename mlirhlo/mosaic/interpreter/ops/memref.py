"""`memref`: scalars of references, allocations, and views."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.interpreter.memory import (
    MemRef,
    box,
    read_at,
    reshaped,
    shape_of,
    write_at,
)
from mlirhlo.mosaic.interpreter.ops.vector_shape import DYNAMIC
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType
    from xdsl.ir import Operation


@means("memref.load")
def load(op: Operation, scope: Scope) -> Run:
    """One element."""

    def run(frame: Activation, ref: MemRef, *at: Any) -> Any:
        return read_at(frame, op, ref, box(ref, at, (1,) * len(at))).reshape(())[()]

    return run


@means("memref.store")
def store(op: Operation, scope: Scope) -> Run:
    """Writes one element."""

    def run(frame: Activation, value: Any, ref: MemRef, *at: Any) -> Any:
        write_at(frame, op, ref, box(ref, at, (1,) * len(at)), value)
        return ()

    return run


@means("memref.alloca", "memref.alloc", "tpu.sem_alloc")
def alloca(op: Operation, scope: Scope) -> Run:
    """New memory, unwritten; semaphores at zero."""
    type_ = op.results[0].type
    return lambda frame, *sizes: frame.core.allocated(
        type_, op, sizes=[int(size) for size in sizes]
    )


@means("memref.dealloc")
def dealloc(op: Operation, scope: Scope) -> Run:
    """Nothing: memory goes with its last reference."""
    return lambda frame, ref: ()


@means("memref.dim")
def dim(op: Operation, scope: Scope) -> Run:
    """The size of a dimension."""

    def run(frame: Activation, ref: MemRef, which: Any) -> Any:
        if not 0 <= int(which) < len(ref.shape):
            raise fault(f"dimension {int(which)} of a reference of rank {len(ref.shape)}")
        return np.int64(ref.shape[int(which)])

    return run


@means("memref.cast", "memref.memory_space_cast", "tpu.erase_memref_layout")
def same(op: Operation, scope: Scope) -> Run:
    """The same elements under another type."""
    return lambda frame, ref: ref


@means("memref.copy")
def copy(op: Operation, scope: Scope) -> Run:
    """Copies all elements."""

    def run(frame: Activation, source: MemRef, target: MemRef) -> Any:
        write_at(frame, op, target, ..., read_at(frame, op, source, ...))
        return ()

    return run


@means("memref.collapse_shape", "memref.expand_shape", "memref.reshape")
def reshape(op: Operation, scope: Scope) -> Run:
    """The same elements, row-major, in the result's shape."""
    shape = shape_of(op.results[0].type)
    if any(size < 0 for size in shape):
        raise unfit(op, "to a shape that is not static")
    return lambda frame, ref, *rest: reshaped(ref, shape)


@means("memref.subview")
def subview(op: Operation, scope: Scope) -> Run:
    """A box with strides; dimensions of size one that the result lacks are dropped."""
    offsets, sizes, strides = (
        integers_of(op, f"static_{name}") or () for name in ("offsets", "sizes", "strides")
    )
    rank = len(cast("MemRefType[Any]", op.results[0].type).get_shape())

    def run(frame: Activation, ref: MemRef, *dynamic: Any) -> Any:
        rest = iter(dynamic)
        starts, counts, steps = (
            [int(next(rest)) if item == DYNAMIC else item for item in items]
            for items in (offsets, sizes, strides)
        )
        box(ref, starts, [(n - 1) * s + 1 for n, s in zip(counts, steps, strict=True)])
        index = tuple(
            slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(starts, counts, steps, strict=True)
        )
        part = ref.part(lambda a: a[index])
        surplus = len(counts) - rank
        drop = [d for d, n in enumerate(counts) if n == 1][:surplus] if surplus else []
        return part.part(lambda a: np.squeeze(a, tuple(drop))) if drop else part

    return run
