"""Vectors become registers: each operation works on values of 8x128 words.

`apply_vector_layout` goes through a function in order. An operation with a rule below gives registers
for registers; any other one keeps working on the vector, put together by `tpu.roll_vectors`, and what
it gives is taken apart by `tpu.unroll_vectors` where registers are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.tpu.attributes import PackFormatAttr, ReductionKindAttr, VectorLayoutAttr
from mlirhlo.dialects.tpu.registers import RegisterGrid, register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, case_of, flag_of, integers_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    constant,
    element_of,
    functions_of,
    insert,
    is_vector,
    replace,
    tiled_layout_of,
    vector_type,
)
from mlirhlo.mosaic.pipeline.simplify import splat
from mlirhlo.mosaic.pipeline.vector_layout import layout_of, layouts_of
from mlirhlo.mosaic.target.check import refuse
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.memory import strides_are_of_rows
from mlirhlo.mosaic.target.tiling import shape_in
from mlirhlo.mosaic.target.vectors import gathers_stay_in_registers

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

_MOST = 4096
"""Registers of a vector above which it stays whole."""


def apply_vector_layout(module: ModuleOp) -> None:
    """Unrolls vectors to registers; the layouts stated on operations go.

    Raises `HloError` HLO0741 and HLO0748 for strides and gathers that registers cannot do.
    """
    for function in functions_of(module):
        state = _Unrolling()
        for op in list(function.walk()):
            if op is not function:
                refuse(op, strides_are_of_rows, gathers_stay_in_registers)
                state.apply(op)
        for op in function.walk():
            if name_of(op) not in ("tpu.roll_vectors", "tpu.unroll_vectors", "mosaic_tc.relayout"):
                op.attributes.pop("in_layout", None)
                op.attributes.pop("out_layout", None)


class _Unrolling:
    """The registers of the vectors of one function."""

    def __init__(self) -> None:
        self.registers: dict[SSAValue, list[SSAValue]] = {}

    def apply(self, op: Operation) -> None:
        """Replaces one operation by operations on registers, where there is a rule."""
        rule = _RULES.get(name_of(op))
        if rule is None and _is_elementwise(op):
            rule = _elementwise
        if rule is None:
            return
        found = rule(op, self)
        if found is None:
            return
        if not op.results:
            Rewriter.erase_op(op)
            return
        layout = layout_of(op.results[0])
        assert layout is not None
        rolled = build("tpu.roll_vectors", found, (op.results[0].type,), None, op)
        rolled.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        insert(rolled, op)
        self.registers[rolled.results[0]] = found
        replace(op, rolled.results)

    def of(self, value: SSAValue, layout: VectorLayout, before: Operation) -> list[SSAValue]:
        """The registers of a vector."""
        known = self.registers.get(value)
        if known is not None:
            return known
        grid = register_grid(layout, shape_in(value.type))
        assert grid is not None
        types = [register_type(layout, value.type)] * prod(grid.shape)
        new = build("tpu.unroll_vectors", (value,), types)
        new.results[0].name_hint = value.name_hint
        new.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        insert(new, before)
        return list(new.results)


Rule = Callable[[Operation, _Unrolling], "list[SSAValue] | None"]


def register_type(layout: VectorLayout, vector: Attribute) -> Attribute:
    """`vector<8x128xf32>`, `vector<8x128x2xbf16>`."""
    packing = 32 // layout.bits
    shape = (SUBLANES, LANES) if packing == 1 else (SUBLANES, LANES, packing)
    return vector_type(shape, element_of(vector))


def _grid(layout: VectorLayout | None, type_: Attribute) -> RegisterGrid | None:
    if layout is None:
        return None
    grid = register_grid(layout, shape_in(type_))
    return grid if grid is not None and prod(grid.shape) <= _MOST else None


def _is_elementwise(op: Operation) -> bool:
    return name_of(op).startswith(("arith.", "math.")) or name_of(op) in (
        "tpu.reciprocal",
        "tpu.logistic",
        "tpu.weird",
    )


def _constant(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    type_, layout = op.results[0].type, layout_of(op.results[0])
    if layout is None or layout.offsets != (None, None) or _grid(layout, type_) is None:
        return None
    register = register_type(layout, type_)
    value = splat(attribute_of(op, "value"), register)
    if value is None:
        return None
    new = insert(build("arith.constant", (), (register,), {"value": value}, op), op)
    grid = _grid(layout, type_)
    assert grid is not None
    made: list[SSAValue] = [new.results[0]]
    return made * prod(grid.shape)


def _elementwise(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    if len(op.results) != 1 or not is_vector(op.results[0].type):
        return None
    result = op.results[0].type
    layout = layout_of(op.results[0])
    grid = _grid(layout, result)
    wanted = layouts_of(op, "in_layout")
    if layout is None or grid is None:
        return None
    if any(w != layout for w, v in zip(wanted, op.operands, strict=False) if is_vector(v.type)):
        return None
    operands = [
        state.of(v, layout, op) if is_vector(v.type) else [v] * prod(grid.shape)
        for v in op.operands
    ]
    kept = {k: v for k, v in op.attributes.items() if k not in ("in_layout", "out_layout")}
    made: list[SSAValue] = []
    for parts in zip(*operands, strict=True):
        attributes = {**op.properties, **kept}
        new = build(name_of(op), parts, (register_type(layout, result),), attributes, op)
        made.append(insert(new, op).results[0])
    return made


def _relayout(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    """Registers that are the same in all sublanes or lanes stand for several."""
    before, after = layouts_of(op, "in_layout")[0], layouts_of(op, "out_layout")[0]
    type_ = op.results[0].type
    old, new = _grid(before, type_), _grid(after, type_)
    if before is None or after is None or old is None or new is None:
        return None
    same_rows = before.tiling == after.tiling or before.offsets == (None, None)
    if before.bits != after.bits or not same_rows:
        return None
    for at in (0, 1):
        if before.offsets[at] is not None and before.offsets[at] != after.offsets[at]:
            return None
    registers = state.of(op.operands[0], before, op)
    if before.implicit != after.implicit and before.offsets != (None, None):
        return None
    if before.offsets == (None, None) and prod(old.shape) == 1:
        return registers * prod(new.shape)
    if len(old.shape) != len(new.shape):
        return None
    return [registers[_flat(index, old.shape)] for index in _indices(new.shape)]


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(product(*(range(size) for size in shape)))


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    number = 0
    for at, size in zip(index, shape, strict=True):
        number = number * size + (at if size > 1 else 0)
    return number


def _broadcast(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    layout = layout_of(op.results[0])
    grid = _grid(layout, op.results[0].type)
    if layout is None or grid is None:
        return None
    source = op.operands[0]
    if not is_vector(source.type):
        type_ = register_type(layout, op.results[0].type)
        new = insert(build("vector.broadcast", (source,), (type_,), None, op), op)
        made: list[SSAValue] = [new.results[0]]
        return made * prod(grid.shape)
    old = _grid(layout, source.type)
    if old is None or len(old.shape) != len(grid.shape):
        return None
    registers = state.of(source, layout, op)
    return [registers[_flat(index, old.shape)] for index in _indices(grid.shape)]


def _reshape(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    """Only the implicit dimension changes."""
    before, after = layouts_of(op, "in_layout")[0], layout_of(op.results[0])
    if before is None or after is None or before.implicit == after.implicit:
        return None
    old, new = _grid(before, op.operands[0].type), _grid(after, op.results[0].type)
    if old is None or new is None or prod(old.shape) != prod(new.shape):
        return None
    if before.offsets != after.offsets or before.tiling != after.tiling:
        return None
    return state.of(op.operands[0], before, op)


def _convert(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    """Floats of 16 bits to 32, and back: rows of a tile are half a register of pairs."""
    before, after = layouts_of(op, "in_layout")[0], layout_of(op.results[0])
    source, result = op.operands[0].type, op.results[0].type
    old, new = _grid(before, source), _grid(after, result)
    if before is None or after is None or old is None or new is None:
        return None
    if {before.bits, after.bits} != {16, 32} or before.tiling != (SUBLANES, LANES):
        return None
    if after.tiling != before.tiling or before.offsets != (0, 0) or before.implicit:
        return None
    registers = state.of(op.operands[0], before, op)
    compressed = PackFormatAttr("compressed")
    type_ = register_type(after, result)
    made: list[SSAValue] = []
    for index in _indices(new.shape):
        if after.bits == 32:
            attributes: dict[str, Attribute] = {
                "index": attribute(f"{index[-1] % 2} : i32"),
                "pack_format": compressed,
            }
            packed = registers[_flat((*index[:-1], index[-1] // 2), old.shape)]
            part = build("tpu.unpack_subelements", (packed,), (type_,), attributes, op)
        else:
            columns = [c for c in (2 * index[-1], 2 * index[-1] + 1) if c < old.shape[-1]]
            parts = [registers[_flat((*index[:-1], c), old.shape)] for c in columns]
            places = ", ".join(str(at) for at in range(len(parts)))
            attributes = {
                "pack_format": compressed,
                "positions": attribute(f"array<i32: {places}>"),
            }
            part = build("tpu.pack_subelements", parts, (type_,), attributes, op)
        made.append(insert(part, op).results[0])
    return made


_COMBINE = {
    "sum": ("arith.addf", "arith.addi"),
    "max": ("arith.maximumf", "arith.maxsi"),
    "min": ("arith.minimumf", "arith.minsi"),
}


def _reduce(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    """Registers are combined first, sublanes and lanes of what is left last."""
    before, after = layouts_of(op, "in_layout")[0], layout_of(op.results[0])
    source, result = op.operands[0].type, op.results[0].type
    old, new = _grid(before, source), _grid(after, result)
    kind, dims = case_of(attribute_of(op, "kind")), integers_of(op, "reduction_dims") or ()
    shape = shape_in(source)
    if before is None or after is None or old is None or new is None or kind not in _COMBINE:
        return None
    if before.bits != 32 or before.offsets != (0, 0) or before.implicit or len(shape) < 2:
        return None
    rank = len(shape)
    # Padding would be reduced too.
    if (rank - 1 in dims and shape[-1] % LANES) or (rank - 2 in dims and shape[-2] % SUBLANES):
        return None
    registers = state.of(op.operands[0], before, op)
    combine = _COMBINE[kind][str(element_of(source)).startswith("i")]
    made: dict[tuple[int, ...], SSAValue] = {}
    type_ = register_type(before, source)
    for index in _indices(old.shape):
        target = tuple(0 if at in dims else i for at, i in enumerate(index))
        value = registers[_flat(index, old.shape)]
        if target in made:
            new_op = build(combine, (made[target], value), (type_,), None, op)
            value = insert(new_op, op).results[0]
        made[target] = value
    for target in made:
        for at in (0, 1):
            if rank - 2 + at in dims:
                new_op = build(
                    "tpu.all_reduce",
                    (made[target],),
                    (type_,),
                    {"dim": attribute(f"{at} : i64"), "kind": ReductionKindAttr(kind)},
                    op,
                )
                made[target] = insert(new_op, op).results[0]
    return [made[index] for index in _indices(new.shape)]


def _load(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    base, *indices = op.operands
    type_, layout = op.results[0].type, layout_of(op.results[0])
    sizes = integers_of(op, "operandSegmentSizes") or ()
    if layout is None or (len(sizes) > 2 and sizes[2]):
        return None
    places = _places(base, indices, type_, layout, op, is_store=False)
    if places is None:
        return None
    made: list[SSAValue] = []
    for at, mask in places:
        new = build(
            "tpu.load",
            (base, *at),
            (register_type(layout, type_),),
            {"sublane_mask": attribute(f"array<i1: {mask}>")},
            op,
        )
        made.append(insert(new, op).results[0])
    return made


def _store(op: Operation, state: _Unrolling) -> list[SSAValue] | None:
    value, base = op.operands[:2]
    sizes = integers_of(op, "operandSegmentSizes") or ()
    layout = next(iter(layouts_of(op, "in_layout")), None)
    if layout is None or (len(sizes) > 3 and sizes[3]) or flag_of(op, "add"):
        return None
    places = _places(base, op.operands[2:], value.type, layout, op, is_store=True)
    if places is None:
        return None
    registers = state.of(value, layout, op)
    for register, (at, mask) in zip(registers, places, strict=True):
        new = build(
            "tpu.store",
            (register, base, *at),
            (),
            {
                "sublane_mask": attribute(f"array<i1: {mask}>"),
                "operandSegmentSizes": attribute(f"array<i32: 1, 1, {len(at)}, 0>"),
            },
            op,
        )
        insert(new, op)
    return []


def _places(
    base: SSAValue,
    indices: Sequence[SSAValue],
    type_: Attribute,
    layout: VectorLayout,
    op: Operation,
    *,
    is_store: bool,
) -> list[tuple[list[SSAValue], str]] | None:
    """Indices and sublane mask of each register of a vector in memory; None where registers do not
    lie in memory as they are."""
    tiles, grid = tiled_layout_of(base.type), _grid(layout, type_)
    shape, memory = shape_in(type_), shape_in(base.type)
    packing = 32 // layout.bits
    if tiles is None or not tiles.tiles or grid is None or len(shape) != len(memory) or not shape:
        return None
    rank_one = len(shape) == 1
    first = tiles.tiles[0]
    if layout.offsets != (0, 0) or len(first) != (1 if rank_one else 2):
        return None
    if rank_one:
        if packing > 1 or layout.tiling[0] != 1 or layout.implicit != (-2,):
            return None
    elif layout.implicit or not (
        first[0] == layout.tiling[0]
        or (first[0] == 1 and layout.tiling[0] == SUBLANES and memory[-1] <= LANES and packing == 1)
    ):
        return None
    if packing > 1 and tiles.tiles[1:] != ((packing, 1),):
        return None
    steps = (
        (1,) * (len(shape) - 1) + (LANES,)
        if rank_one
        else (
            *(1,) * (len(shape) - 2),
            layout.tiling[0],
            LANES,
        )
    )
    for index, step in zip(indices, steps, strict=True):
        known = constant_of(index)
        if known is None and step > 1 and not is_divisible(index, step):
            return None
        if known is not None and known % step:
            return None
    rows = 1 if rank_one else shape[-2]
    if is_store and shape[-1] % LANES and memory[-1] != shape[-1]:
        return None
    if is_store and rows % packing and memory[-2] != rows:
        return None
    found: list[tuple[list[SSAValue], str]] = []
    side, height = layout.tiles_a_register, layout.tiling[0]
    for at in _indices(grid.shape):
        *lead, high, wide = at
        moved = (
            [*lead, wide * LANES * side]
            if rank_one
            else [
                *lead,
                high * height,
                wide * LANES * side,
            ]
        )
        mask: list[str] = []
        for sublane in range(SUBLANES):
            row = sublane * packing
            tile, inside = row // height, row % height
            column = (wide * side + tile) * LANES
            is_there = high * height + inside < rows and column < shape[-1]
            mask.append("true" if is_there else "false")
        places = [
            _moved(index, by, op) for index, by in zip(indices, moved[-len(shape) :], strict=True)
        ]
        found.append((places, ", ".join(mask)))
    return found


def _moved(index: SSAValue, by: int, op: Operation) -> SSAValue:
    """`index + by`, as a constant where the index is one."""
    if by == 0:
        return index
    known = constant_of(index)
    if known is not None:
        return insert(constant(known + by, IndexType()), op).results[0]
    step = insert(constant(by, index.type), op).results[0]
    total = build("arith.addi", (index, step), (index.type,))
    return insert(total, op).results[0]


_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "mosaic_tc.relayout": _relayout,
    "vector.broadcast": _broadcast,
    "tpu.reshape": _reshape,
    "tpu.extf": _convert,
    "tpu.truncf": _convert,
    "tpu.reduce": _reduce,
    "tpu.vector_load": _load,
    "tpu.vector_store": _store,
}
