"""References: shared memory, views, registers, and loads and stores of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, i32, i64
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.mosaic_gpu.attributes import BarrierType, SwizzleAttr
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.mosaic_gpu.fragments import (
    COLUMN,
    FLAT,
    ROW,
    SPLAT,
    TILE,
    Fragment,
    offsets,
    squeezed,
)
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION, parts_of
from mlirhlo.lowering.mosaic_gpu.writer import Writer, bytes_of
from mlirhlo.mosaic.attributes import integer_of, integers_of

_ATOMICS: tuple[tuple[str, str], ...] = (
    ("addf", "addi"),
    ("minimumf", "mins"),
    ("maximumf", "maxs"),
    *(("", name) for name in ("andi", "ori", "xori")),
)
"""Kinds of updates of floats and of integers, by `atomic_type`."""


def _slice_smem(w: Writer, op: Operation) -> Sequence[Any]:
    type_: Any = op.results[0].type
    shape, offset = tuple(type_.get_shape()), integer_of(op, "offset")
    is_barrier = isinstance(type_.element_type, BarrierType)
    element: Any = i64 if is_barrier else type_.element_type
    dims = tuple(range(len(shape)))
    stated: Any = op.attributes.get("out_transforms")
    return [
        Place(
            "smem",
            shape,
            element,
            bytes_of(element),
            (0,) * len(shape),
            dims,
            shape,
            w.shared_view(offset, element),
            offset,
            _swizzle(stated.data[0]) if stated is not None else 0,
        )
    ]


def _swizzle(transforms: Any) -> int:
    """Bytes of swizzled rows; 0 for rows that are not."""
    found = next((one.data for one in transforms.data if isinstance(one, SwizzleAttr)), 0)
    return 0 if found == 16 else found


def _with_transforms(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    return [replace(place, swizzle=_swizzle(op.properties["transforms"]))]


def _subview(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    dynamic = iter(w.values[v] for v in op.operands[1:])
    offsets_, sizes = (integers_of(op, f"static_{n}") or () for n in ("offsets", "sizes"))
    starts: list[Index] = [
        w.to_index(next(dynamic)) if offset == DYNAMIC_INDEX else offset for offset in offsets_
    ]
    rest = list(cast(Any, op.results[0].type).get_shape())
    kept: list[int] = []
    drops = len(sizes) - len(rest)
    for dim, size in enumerate(sizes):
        if drops > 0 and size == 1 and (not rest or rest[0] != 1 or drops == len(sizes) - dim):
            drops -= 1
        else:
            kept.append(dim)
            rest.pop(0)
    return [place.part(starts, kept, [sizes[d] for d in kept], w.b)]


def _transpose(w: Writer, op: Operation) -> Sequence[Any]:
    return [replace(w.values[op.operands[0]], is_transposed=True)]


def _cluster_ref(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    parts = parts_of(w, op)
    (place,) = parts["source"]
    launch = w.kernel.launch
    rank: Index = 0
    for dim, stride in enumerate(launch.cluster_strides):
        given = parts["xyz"[dim]]
        at: Index = w.to_index(given[0]) if given else w.cluster_place(dim)
        rank = b.add(rank, b.mul(at, stride))
    return [replace(place, space="cluster", rank=b.cast_index(b.index(rank), i32))]


def _alloca(w: Writer, op: Operation) -> Sequence[Any]:
    type_: Any = op.results[0].type
    shape = tuple(type_.get_shape())
    if not shape:
        return [Place("stack", (), i32, 4, (), (), (), w.b.scratch([1], i32))]
    layout = TILE if len(shape) == 2 else FLAT
    count = len(offsets(layout, shape))
    buffer = w.b.scratch([count], type_.element_type)
    element: Any = type_.element_type
    return [
        Place(
            "regs",
            shape,
            element,
            bytes_of(element),
            (0,) * len(shape),
            tuple(range(len(shape))),
            shape,
            buffer,
        )
    ]


def _scalar_load(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    if place.space == "stack":
        return [w.b.load(cast(SSAValue, place.buffer), [0])]
    return [w.b.load(cast(SSAValue, place.buffer), [place.linear((), w.b)])]


def _scalar_store(w: Writer, op: Operation) -> Sequence[Any]:
    value, place = (w.values[v] for v in op.operands)
    value = value.registers[0] if isinstance(value, Fragment) else value
    if place.space == "stack":
        w.b.store(value, place.buffer, [0])
    else:
        with w.only(w.is_leader):
            w.b.store(value, place.buffer, [place.linear((), w.b)])
    return ()


def _vector_load(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    place: Place = w.values[op.operands[0]]
    element: Any = cast(Any, result.type).element_type
    layout = TILE if place.space == "regs" and len(place.sizes) == 2 else w.layout(result)
    return [w.held(w.load(place, squeezed(result.type), layout, element), w.layout(result))]


def _vector_store(w: Writer, op: Operation) -> Sequence[Any]:
    value, place = op.operands
    target: Place = w.values[place]
    found: Fragment = w.values[value]
    if found.layout == SPLAT:
        found = w.fragment(value)
    if target.space == "regs":
        w.store(w.held(found, TILE if len(target.sizes) == 2 else FLAT), target)
        return ()
    name: str | None = None
    if "atomic_type" in op.properties:
        is_integer = isinstance(found.element, IntegerType)
        name = _ATOMICS[integer_of(op, "atomic_type")][is_integer]
    if found.layout in (ROW, COLUMN):
        with w.only(w.owns(found.layout)):
            w.store(found, target, name)
    else:
        w.store(found, target, name)
    return ()


OPERATIONS: Mapping[str, OPERATION] = {
    "memref.alloca": _alloca,
    "memref.load": _scalar_load,
    "memref.store": _scalar_store,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "mosaic_gpu.get_cluster_ref": _cluster_ref,
    "mosaic_gpu.slice_smem": _slice_smem,
    "mosaic_gpu.vector_load": _vector_load,
    "mosaic_gpu.vector_store": _vector_store,
    "mosaic_gpu.with_transforms": _with_transforms,
}
"""What writes each operation."""
