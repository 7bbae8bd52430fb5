"""Reductions: registers are combined first, sublanes and lanes of what is left last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i32

from mlirhlo.dialects.tpu.attributes import ReductionKindAttr
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, case_of, integer_of, integers_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.bounds import bounds_of
from mlirhlo.mosaic.pipeline.registers.elementwise import converted
from mlirhlo.mosaic.pipeline.registers.moving import moved, relaid
from mlirhlo.mosaic.pipeline.registers.shapes import explicit, numbered, part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    indices_of,
    is_float,
    layout_out,
    mask_type,
    typed,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]

_MOST, _LEAST = 2**31 - 1, -(2**31)
_COMBINE = {
    "sum": ("arith.addf", "arith.addi"),
    "max": ("arith.maximumf", "arith.maxsi"),
    "min": ("arith.minimumf", "arith.minsi"),
}
_NEUTRAL = {
    "sum": ("0.0", "0"),
    "max": ("0xFF800000", str(_LEAST)),
    "min": ("0x7F800000", str(_MOST)),
}
"""By kind: what combines two, and what changes nothing; of floats and of integers."""


_AT_ONCE = 4
"""Registers that are combined side by side; sums of floats keep their order."""


def _plain_kind(kind: str) -> str:
    """`max` of `max`, `maxf` and `maxsi`."""
    return kind.removesuffix("f").removesuffix("si") if kind != "sum" else kind


def _prepared(op: Operation, state: Registers) -> Part:
    """The source in whole registers of f32 or i32."""
    part = part_of(op, state, 0)
    wide = f32 if is_float(part.type) else i32
    layout = VectorLayout(32, (0, 0), (SUBLANES, LANES), part.layout.implicit)
    if element_of(part.type) != wide:
        type_ = vector_type(shape_in(part.type), wide)
        return Part(converted(state, part, op, type_, layout), layout, type_)
    return Part(relaid(state, part, layout), layout, part.type)


def reduce(op: Operation, state: Registers) -> Made:
    """Dimensions become one; the result is the same in all sublanes or lanes they had."""
    kind = _plain_kind(case_of(attribute_of(op, "kind")))
    if kind not in _COMBINE:
        raise cannot(op, f"of kind {kind}", "reduce by sum, max or min")
    part = _prepared(op, state)
    floats = is_float(part.type)
    rank = len(shape_in(part.type))
    is_reduced = [int(dim in (integers_of(op, "dimensions") or ())) for dim in range(rank)]
    dims = explicit(is_reduced, part.layout.implicit)
    combine = _COMBINE[kind][not floats]
    grid = grid_of(part.layout, part.type, op).shape
    type_ = typed(element_of(part.type), 1)
    suffix = "" if kind == "sum" else "f" if floats else "si"
    made: dict[tuple[int, ...], SSAValue] = {}
    for target in indices_of([1 if flag else size for size, flag in zip(grid, dims, strict=True)]):
        sums: list[SSAValue] = []
        count = 1 if combine == "arith.addf" else _AT_ONCE
        inside = indices_of([n if flag else 1 for n, flag in zip(grid, dims, strict=True)])
        for number, inner in enumerate(inside):
            at = tuple(a + b for a, b in zip(target, inner, strict=True))
            # Padding is not reduced.
            value = part.registers[flat(at, grid)]
            if any(dims[-2:]):
                other = state.splat(_NEUTRAL[kind][not floats], type_)
                bounds = bounds_of(part.layout, part.type, at, op)
                if not bounds.is_whole:
                    value = state.emit("arith.select", (bounds.mask(state), value, other), type_)
            if number < count:
                sums.append(value)
            else:
                # In turns, so that one need not wait for the other.
                at_once = (sums[number % count], value)
                sums[number % count] = state.emit(combine, at_once, type_)
        while len(sums) > 1:
            pairs = [sums[at : at + 2] for at in range(0, len(sums), 2)]
            sums = [
                state.emit(combine, pair, type_) if len(pair) > 1 else pair[0] for pair in pairs
            ]
        total = sums[0]
        for dim in (1, 0):
            if dims[len(dims) - 2 + dim]:
                total = _all(state, total, kind + suffix, dim)
        made[target] = total
    return [_finished(op, state, part, dims, made)]


def _finished(
    op: Operation,
    state: Registers,
    part: Part,
    dims: Sequence[int],
    made: dict[tuple[int, ...], SSAValue],
) -> list[SSAValue]:
    """The result of what registers were reduced to, in the layout and of the elements asked for."""
    result, after = op.results[0].type, layout_out(op)
    kept = [1 if flag else size for size, flag in zip(_shape(part), dims, strict=True)]
    element = element_of(part.type)
    offsets = tuple(None if dims[at] else 0 for at in (-2, -1))
    layout = VectorLayout(32, (offsets[0], offsets[1]), (SUBLANES, LANES))
    type_ = vector_type(kept, element)
    grid = grid_of(layout, type_, op).shape
    registers = [made[index] for index in indices_of(grid)]
    whole = Part(registers, layout, type_)
    if element == element_of(result):
        return moved(state, [whole], numbered(type_), result, after)
    return converted(state, whole, op, result, after)


def _shape(part: Part) -> list[int]:
    return [size or 1 for size in explicit(shape_in(part.type), part.layout.implicit)]


def reduce_index(op: Operation, state: Registers) -> Made:
    """The first place of the greatest or least element along a dimension; NaN comes before all."""
    kind = "max" if case_of(attribute_of(op, "kind")) == "arg_max" else "min"
    part = _prepared(op, state)
    axis = integer_of(op, "axis") + len(part.layout.implicit)
    full, floats = _shape(part), is_float(part.type)
    grid = grid_of(part.layout, part.type, op).shape
    dims = [int(at == axis) for at in range(len(full))]
    type_ = typed(element_of(part.type), 1)
    combine, neutral = _COMBINE[kind][not floats], _NEUTRAL[kind][not floats]
    suffix = "f" if floats else "si"
    unit = {len(full) - 2: SUBLANES, len(full) - 1: LANES}.get(axis, 1)
    dim = axis - len(full) + 2
    made: dict[tuple[int, ...], SSAValue] = {}
    for line in indices_of([1 if at == axis else size for at, size in enumerate(grid)]):
        values: list[SSAValue] = []
        masks: list[SSAValue | None] = []
        for number in range(grid[axis]):
            index = (*line[:axis], number, *line[axis + 1 :])
            rest = full[axis] - number * unit
            mask = None if unit == 1 else state.inside(*((rest, LANES), (SUBLANES, rest))[dim])
            register = part.registers[flat(index, grid)]
            masks.append(mask)
            values.append(state.kept(register, mask, neutral))
        best = values[0]
        for value in values[1:]:
            best = state.emit(combine, (best, value), type_)
        if unit > 1:
            best = _all(state, best, kind + suffix, dim)
        first: SSAValue | None = None
        for number, (value, mask) in enumerate(zip(values, masks, strict=True)):
            place = _place(state, number, unit, dim)
            found = state.both(_is(state, value, best, floats), mask)
            assert found is not None
            nowhere = state.splat(str(_MOST), word_type())
            place = state.emit("arith.select", (found, place, nowhere), word_type())
            first = (
                place if first is None else state.emit("arith.minsi", (first, place), word_type())
            )
        assert first is not None
        made[line] = _all(state, first, "minsi", dim) if unit > 1 else first
    words = Part(part.registers, part.layout, vector_type(shape_in(part.type), i32))
    return [_finished(op, state, words, dims, made)]


def _all(state: Registers, value: SSAValue, kind: str, dim: int) -> SSAValue:
    attributes = {"dim": attribute(f"{dim} : i64"), "kind": ReductionKindAttr(kind)}
    return state.emit("tpu.all_reduce", (value,), value.type, attributes)


def _place(state: Registers, number: int, unit: int, dim: int) -> SSAValue:
    """The places along a dimension of the elements of a register."""
    begin = state.splat(str(number * unit), word_type())
    if unit == 1:
        return begin
    count = state.emit("tpu.iota", (), word_type(), {"dimensions": attribute(f"array<i32: {dim}>")})
    return state.emit("arith.addi", (count, begin), word_type()) if number else count


def _is(state: Registers, value: SSAValue, best: SSAValue, floats: bool) -> SSAValue:
    """Where a value is the best one, or NaN."""
    equal = {"predicate": attribute("1 : i64" if floats else "0 : i64")}
    found = state.emit("arith.cmpf" if floats else "arith.cmpi", (value, best), mask_type(), equal)
    if not floats:
        return found
    unordered = {"predicate": attribute("14 : i64")}
    nan = state.emit("arith.cmpf", (value, value), mask_type(), unordered)
    return state.emit("arith.ori", (found, nan), mask_type())
