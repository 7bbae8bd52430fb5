"""Values: broadcasts, reductions, layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.mosaic_gpu.fragments import (
    COLUMN,
    FLAT,
    NATIVE,
    ROW,
    SPLAT,
    TILE,
    Fragment,
    offsets,
    reduced_dims,
    spread_of,
    squeezed,
)
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import Writer, unfit
from mlirhlo.mosaic.attributes import integer_of, integers_of


def _broadcast(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    shape, element = squeezed(result.type), cast(Any, result.type).element_type
    source = w.values[op.operands[0]]
    if not isinstance(source, Fragment):
        return [Fragment(shape, SPLAT, [source], element)]
    if source.layout == SPLAT or not source.shape:
        return [replace(source, shape=shape, layout=SPLAT)]
    if source.shape == shape:
        return [source]
    layout = w.layout(result)
    (dim,) = spread_of(op)
    if layout != TILE:
        raise unfit(f"{list(source.shape)} is broadcast to {list(shape)}")
    source = w.held(source, ROW if dim == 0 else COLUMN)
    by_index = dict(
        zip([o[0] for o in offsets(source.layout, source.shape)], source.registers, strict=True)
    )
    registers = [by_index[o[dim]] for o in offsets(TILE, shape)]
    return [Fragment(shape, TILE, registers, element)]


def _shape_cast(w: Writer, op: Operation) -> Sequence[Any]:
    source, shape = w.values[op.operands[0]], squeezed(op.results[0].type)
    if isinstance(source, Fragment) and source.layout == SPLAT:
        return [replace(source, shape=shape)]
    if squeezed(op.operands[0].type) != shape:
        raise unfit(f"{list(squeezed(op.operands[0].type))} is reshaped to {list(shape)}")
    return [source]


def _extract(w: Writer, op: Operation) -> Sequence[Any]:
    source: Fragment = w.values[op.operands[0]]
    if source.layout != SPLAT:
        raise unfit("one element of a value is taken", "load it from memory, or reduce")
    return [source.registers[0]]


def _iota(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    shape, layout = squeezed(result.type), w.layout(result)
    full = cast(Any, result.type).get_shape()
    dims = integers_of(op, "dimensions") or (integer_of(op, "dimension"),)
    if full[dims[0]] == 1:
        return [Fragment(shape, SPLAT, [w.b.constant(0, i32)], i32)]
    dim = sum(size != 1 for size in full[: dims[0]])
    registers = [w.b.cast_index(w.b.index(index[dim]), i32) for index in w.indices(layout, shape)]
    return [Fragment(shape, layout, registers, i32)]


def _combine(w: Writer, kind: str, x: SSAValue, y: SSAValue) -> SSAValue:
    from xdsl.dialects import arith

    b = w.b
    is_integer = isinstance(x.type, IntegerType)
    match kind:
        case "add":
            return b.addi(x, y) if is_integer else b.addf(x, y)
        case "maximumf" | "maxnumf":
            return b.maximumf(x, y)
        case "minimumf" | "minnumf":
            return b.minimumf(x, y)
        case "maxsi" | "minsi" | "maxui" | "minui":
            cls = {
                "maxsi": arith.MaxSIOp,
                "minsi": arith.MinSIOp,
                "maxui": arith.MaxUIOp,
                "minui": arith.MinUIOp,
            }
            return b.emit(cls[kind], (x, y), x.type)
        case "and" | "or" | "xor":
            return {"and": b.andi, "or": b.ori, "xor": b.xori}[kind](x, y)
        case _:
            raise unfit(f"a reduction by {kind}")


def _reduce(w: Writer, op: Operation) -> Sequence[Any]:
    attribute: Any = op.properties["kind"]
    kind = str(getattr(attribute, "data", attribute))
    kind = kind.partition("<")[2].rstrip(">") or kind
    source: Fragment = w.values[op.operands[0]]
    start: Fragment = w.fragment(op.operands[1])
    dims = reduced_dims(op)
    shape = squeezed(op.results[0].type)
    if source.layout == SPLAT:
        source = w.fragment(op.operands[0])
    if source.layout == NATIVE:
        source = w.held(source, TILE)
    if source.element not in (f32, i32):
        raise unfit(f"a reduction of {source.element}", "cast to f32 first")
    if not shape:
        made = _all(w, kind, source)
    elif source.layout == TILE and len(dims) == 1:
        made = _along(w, kind, source, dims[0])
    else:
        raise unfit(
            f"{list(source.shape)} is reduced over {list(dims)}",
            "give it 64 rows and 8 columns, or multiples",
        )
    start = w.held(start, made.layout)
    registers = [
        _combine(w, kind, x, y) for x, y in zip(made.registers, start.registers, strict=True)
    ]
    result = replace(made, registers=registers)
    if not shape:
        return [result]
    return [w.held(result, w.layout(op.results[0]))]


def _shuffled(w: Writer, kind: str, x: SSAValue, distances: Sequence[int]) -> SSAValue:
    for distance in distances:
        x = _combine(w, kind, x, w.b.warp_shuffle("xor", x, distance))
    return x


def _along(w: Writer, kind: str, source: Fragment, dim: int) -> Fragment:
    kept = 1 - dim
    sums: dict[int, SSAValue] = {}
    for index, register in zip(offsets(TILE, source.shape), source.registers, strict=True):
        at = index[kept]
        sums[at] = register if at not in sums else _combine(w, kind, sums[at], register)
    layout = ROW if dim == 1 else COLUMN
    shape = (source.shape[kept],)
    order = [o[0] for o in offsets(layout, shape)]
    if dim == 1:
        registers = [_shuffled(w, kind, sums[at], (1, 2)) for at in order]
        return Fragment(shape, ROW, registers, source.element)
    registers = [_shuffled(w, kind, sums[at], (4, 8, 16)) for at in order]
    return _between_warps(w, kind, Fragment(shape, COLUMN, registers, source.element))


def _between_warps(w: Writer, kind: str, found: Fragment) -> Fragment:
    """Combines what the four warps have, which lanes below four hold."""
    b = w.b
    place = w.scratch((4, *found.shape), found.element)
    indices = w.indices(found.layout, found.shape)
    lanes = 4 if found.layout == COLUMN else 1
    with w.only(b.cmpi("ult", w.lane, b.index(lanes))):
        for register, index in zip(found.registers, indices, strict=True):
            b.store(register, cast(Any, place).buffer, [place.linear((w.warp, *index), b)])
    w.meet()
    registers: list[SSAValue] = []
    for index in indices:
        parts = [b.load(cast(Any, place).buffer, [place.linear((n, *index), b)]) for n in range(4)]
        total = parts[0]
        for part in parts[1:]:
            total = _combine(w, kind, total, part)
        registers.append(total)
    w.meet()
    return replace(found, registers=registers)


def _all(w: Writer, kind: str, source: Fragment) -> Fragment:
    total = source.registers[0]
    for register in source.registers[1:]:
        total = _combine(w, kind, total, register)
    distances = {TILE: (1, 2, 4, 8, 16), FLAT: (1, 2, 4, 8, 16), ROW: (4, 8, 16), COLUMN: (1, 2)}
    total = _shuffled(w, kind, total, distances[source.layout])
    found = Fragment((), SPLAT, [total], source.element)
    return found if source.layout == COLUMN else _between_warps(w, kind, found)


def _reduce_all(w: Writer, op: Operation) -> Sequence[Any]:
    """All elements of a vector to a scalar."""
    kind = str(op.properties["kind"]).partition("<")[2].rstrip(">").rpartition(" ")[2]
    source = w.fragment(op.operands[0])
    if source.element not in (f32, i32):
        raise unfit(f"a reduction of {source.element}", "cast to f32 first")
    (total,) = _all(w, kind, source).registers
    for start in op.operands[1:]:
        total = _combine(w, kind, total, w.values[start])
    return [total]


def _same_values(w: Writer, op: Operation) -> Sequence[Any]:
    return [w.values[v] for v in op.operands]


def _cast_layout(w: Writer, op: Operation) -> Sequence[Any]:
    return [w.held(w.values[op.operands[0]], w.layout(op.results[0]))]


OPERATIONS: Mapping[str, OPERATION] = {
    "vector.broadcast": _broadcast,
    "vector.reduction": _reduce_all,
    "mosaic_gpu.broadcast_in_dim": _broadcast,
    "mosaic_gpu.optimization_barrier": _same_values,
    "vector.shape_cast": _shape_cast,
    "vector.extract": _extract,
    "vector.multi_reduction": _reduce,
    "tpu.iota": _iota,
    "mosaic_gpu.broadcasted_iota": _iota,
    "mosaic_gpu.layout_cast": _cast_layout,
}
"""What writes each operation."""
