"""What layouts each operation wants of its operands, and leaves its results in.

Source of the rules: the TPU compiler's `infer-vector-layout`, by its open parts and by what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.registers import register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, lists_of, name_of
from mlirhlo.mosaic.pipeline.building import is_vector, tiled_layout_of
from mlirhlo.mosaic.pipeline.layouts import (
    CASTS,
    Layout,
    joined,
    layout_of,
    layouts_of,
    native,
    native_tiling,
    unreplicated,
)
from mlirhlo.mosaic.pipeline.memory_layout import is_repeated_row, memory_layout, stored_layout
from mlirhlo.mosaic.pipeline.reshapes import reshape
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from mlirhlo.mosaic.target.generations import Generation

Layouts = tuple[Sequence[Layout], Sequence[Layout]]
Rule = Callable[["Operation", "Generation"], Layouts]
"""The layouts of an operation's operands and results, for a generation."""

_BY_ELEMENT = frozenset(
    {
        "tpu.reciprocal",
        "tpu.logistic",
        "tpu.weird",
        "tpu.pack_elementwise",
        "tpu.unpack_elementwise",
        "tpu.stochastic_convert_elementwise",
    }
)


def is_elementwise(op: Operation) -> bool:
    """Whether each element of the result comes from those at its place."""
    name = name_of(op)
    return name.startswith(("arith.", "math.")) or name in _BY_ELEMENT


def rule_of(op: Operation) -> Rule:
    """The rule of an operation without regions."""
    return _RULES.get(name_of(op), _elementwise if is_elementwise(op) else _plain)


def _plain(op: Operation, generation: Generation) -> Layouts:
    """Everything native."""
    return (
        [native(v.type) if is_vector(v.type) else None for v in op.operands],
        [native(v.type) if is_vector(v.type) else None for v in op.results],
    )


def _found(value: SSAValue) -> VectorLayout:
    """The layout of an operand, begun in the first tile: only slices and broadcasts look further."""
    have = layout_of(value) or native(value.type)
    if (have.offsets[1] or 0) >= have.tiling[1]:
        return replace(have, offsets=(have.offsets[0], 0))
    return have


def _end(op: Operation, generation: Generation) -> Layouts:
    """What goes out of a region lies as it does."""
    return [layout_of(value) for value in op.operands], []


def _constant(op: Operation, generation: Generation) -> Layouts:
    """One register of one value."""
    type_ = op.results[0].type
    if not is_vector(type_) or "[" in str(op.properties.get("value")):
        return _plain(op, generation)
    return [], [replace(native(type_), offsets=(None, None))]


def _elementwise(op: Operation, generation: Generation) -> Layouts:
    """All operands and results alike: as the operands can be together, else as the first one is with
    nothing replicated."""
    vectors = [v for v in op.operands if is_vector(v.type)]
    if not vectors or not op.results or not is_vector(op.results[0].type):
        return _plain(op, generation)
    # Masks lie as the elements they are of.
    numbers = [v for v in vectors if element_name(v.type) != "i1"] or vectors
    bits, result = _found(numbers[0]).bits, op.results[0].type
    widths = {_found(v).bits for v in numbers}
    if len(widths) > 1 or (element_name(result) != "i1" and native(result).bits != bits):
        return _plain(op, generation)
    layouts = [_found(v) for v in vectors if _found(v).bits == bits]
    concrete = [layout for layout in layouts if layout.offsets != (None, None)]
    shape = shape_in(result)
    chosen = (concrete or layouts)[0]
    for layout in concrete[1:]:
        chosen = joined(layout, chosen, shape) or unreplicated(chosen)
    if register_grid(chosen, shape) is None:
        return _plain(op, generation)
    return (
        [chosen if is_vector(v.type) else None for v in op.operands],
        [chosen if is_vector(v.type) else None for v in op.results],
    )


def _load(op: Operation, generation: Generation) -> Layouts:
    result = op.results[0].type
    base, *indices = op.operands[: 1 + len(shape_in(op.operands[0].type))]
    found = memory_layout(base.type, result, indices) or native(result)
    if is_repeated_row(base.type, found, result):
        found = replace(found, offsets=(None, found.offsets[1]))
    return [None] * len(op.operands), [found]


def _store(op: Operation, generation: Generation) -> Layouts:
    value, base = op.operands[:2]
    indices = op.operands[2 : 2 + len(shape_in(base.type))]
    found = stored_layout(base.type, value.type, indices, _found(value)) or native(value.type)
    rest = op.operands[1:]
    return [found, *(found if is_vector(v.type) else None for v in rest)], []


def _cast(op: Operation, generation: Generation) -> Layouts:
    """Elements of another width, or the same one."""
    before, after = op.operands[0].type, op.results[0].type
    if not is_vector(before):
        return _plain(op, generation)
    have = _found(op.operands[0])
    bits = native(after).bits
    if element_name(before) == "i1" or have.bits == bits:
        return _elementwise(op, generation)
    return _widened(have, bits) if have.bits < bits else _narrowed(op, have, bits, generation)


def _widened(have: VectorLayout, bits: int) -> Layouts:
    """Whole registers stay so; tiles that are part of a register of words keep their rows."""
    if have.tiling == native_tiling(have.bits):
        return _both(have, bits, native_tiling(have.bits), native_tiling(bits))
    if bits == 32 and SUBLANES % have.tiling[0] == 0 and have.tiling[1] == LANES:
        return [have], [replace(have, bits=bits)]
    if 32 // have.bits > SUBLANES:
        return _both(have, bits, native_tiling(have.bits), native_tiling(bits))
    return _both(have, bits, (SUBLANES, LANES), (SUBLANES, LANES))


def _both(
    have: VectorLayout, bits: int, before: tuple[int, int], after: tuple[int, int]
) -> Layouts:
    """Operand and result begin at the same place, in the first tile of each."""
    rows, lanes = (None if at is None else at for at in have.offsets)
    offsets = (None if rows is None else rows % after[0], None if lanes is None else lanes % LANES)
    source = replace(have, offsets=offsets, tiling=before)
    return [source], [replace(source, bits=bits, tiling=after)]


def _narrowed(op: Operation, have: VectorLayout, bits: int, generation: Generation) -> Layouts:
    """To tiles of as many rows, of whole registers if a vector is in those as well; or to whole registers
    where these are wanted, from generation 6 on also where they are no more of them."""
    source = replace(have, tiling=native_tiling(have.bits))
    shape = shape_in(op.operands[0].type)
    if bits == 16 and have.tiling[1] == LANES and not have.generalizes(source, shape):
        source = have
    tiled = replace(source, bits=bits)
    whole = replace(tiled, tiling=native_tiling(bits))
    is_whole = bits != 16 or _all_want_whole(op.results[0])
    if not is_whole and generation.number >= 6:
        counts = [grid.count for one in (whole, tiled) if (grid := register_grid(one, shape))]
        is_whole = counts == sorted(counts)
    return [source], [whole if is_whole else tiled]


def _all_want_whole(value: SSAValue) -> bool:
    """Whether all that use a value want whole registers of it."""
    return all(_wants_whole(use.operation, use.index) for use in value.uses)


def _wants_whole(op: Operation, at: int) -> bool:
    name = name_of(op)
    if name == "tpu.matmul":
        return True
    if name in ("tpu.reduce", "tpu.transpose"):
        rank = len(shape_in(op.operands[0].type))
        if name == "tpu.reduce":
            return any(dim >= rank - 2 for dim in integers_of(op, "dimensions") or ())
        return (integers_of(op, "permutation") or ())[-2:] == (rank - 1, rank - 2)
    if name == "tpu.vector_store" and at == 0:
        layout = tiled_layout_of(op.operands[1].type)
        bits = width_in_bits(element_name(op.operands[1].type))
        return layout is not None and layout.tiles[:1] == (native_tiling(bits),)
    is_same = is_elementwise(op) and op.results and is_vector(op.results[0].type)
    if is_same and layout_width(op.operands[at]) == layout_width(op.results[0]):
        return _all_want_whole(op.results[0])
    return False


def layout_width(value: SSAValue) -> int:
    """The width of a vector's elements in bits; 0 for scalars."""
    return width_in_bits(element_name(value.type)) if is_vector(value.type) else 0


def _bitcast(op: Operation, generation: Generation) -> Layouts:
    """The same words: tiles have more rows of narrower elements, or fewer of wider ones."""
    have = _found(op.operands[0])
    bits = native(op.results[0].type).bits
    if have.bits == bits:
        return [have], [have]
    rows, top = have.tiling[0] * have.bits, have.offsets[0]
    if (top is not None and top * have.bits % bits) or (top is None and have.bits > bits):
        top = 0
    if rows % bits or have.tiling[1] != LANES or have.implicit:
        have = replace(have, tiling=native_tiling(have.bits), implicit=())
        rows = have.tiling[0] * have.bits
    source = replace(have, offsets=(top, have.offsets[1]))
    moved = None if top is None else top * have.bits // bits
    result = replace(
        source, bits=bits, offsets=(moved, have.offsets[1]), tiling=(rows // bits, LANES)
    )
    return [source], [result]


def _reduce(op: Operation, generation: Generation) -> Layouts:
    """A reduced dimension is the same in all sublanes, or all lanes."""
    dims, rank = integers_of(op, "dimensions") or (), len(shape_in(op.operands[0].type))
    have = _found(op.operands[0])
    if rank < 2 or have.implicit:
        return _plain(op, generation)
    reduces = [rank - 2 in dims, rank - 1 in dims]
    if any(reduces):
        have = replace(have, tiling=native_tiling(have.bits))
    first, second = (
        None if reduced else at for reduced, at in zip(reduces, have.offsets, strict=True)
    )
    return [have], [replace(have, offsets=(first, second))]


def _broadcast(op: Operation, generation: Generation) -> Layouts:
    """What is repeated along sublanes or lanes is the same in all of them afterwards."""
    source, result = op.operands[0].type, op.results[0].type
    if not is_vector(source):
        return [None], [replace(native(result), offsets=(None, None))]
    have = layout_of(op.operands[0]) or native(source)
    if have.implicit and len(shape_in(source)) > 1:
        plain, shape = replace(have, implicit=()), shape_in(source)
        if plain.generalizes(have, shape) and have.generalizes(plain, shape):
            have = plain
    pairs = list(
        zip(
            have.tiled_dimensions(shape_in(source)),
            have.tiled_dimensions(shape_in(result)),
            strict=True,
        )
    )
    spreads = [before != after for before, after in pairs]
    if spreads[0] and have.offsets[0] is not None:
        # A row of words in small tiles is taken to all sublanes on the way to whole registers.
        is_row = have.tiling != native_tiling(32) and have.bits == 32
        top = None if is_row else have.offsets[0]
        have = replace(have, offsets=(top, have.offsets[1]), tiling=native_tiling(have.bits))
    first, second = (
        None if spread else at for spread, at in zip(spreads, have.offsets, strict=True)
    )
    wanted = replace(have, offsets=(first, second))
    if (
        register_grid(have, shape_in(source)) is None
        or register_grid(wanted, shape_in(result)) is None
    ):
        return _plain(op, generation)
    return [have], [wanted]


def _reshape(op: Operation, generation: Generation) -> Layouts:
    """Dimensions come and go, and rows and lanes fold, as tiles allow it."""
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    found = reshape(_found(op.operands[0]), before, after)
    if found is None or None in (
        register_grid(found[0], before),
        register_grid(found[1], after),
    ):
        return _plain(op, generation)
    return [found[0]], [found[1]]


def _iota(op: Operation, generation: Generation) -> Layouts:
    """The same in all sublanes, or all lanes, of which nothing is counted."""
    type_ = op.results[0].type
    rank, dims = len(shape_in(type_)), integers_of(op, "dimensions") or ()
    if rank < 2:
        return _plain(op, generation)
    offsets = (0 if rank - 2 in dims else None, 0 if rank - 1 in dims else None)
    return [], [replace(native(type_), offsets=offsets)]


def _extract(op: Operation, generation: Generation) -> Layouts:
    """A part of the leading dimensions lies as the whole; a row begins at its own."""
    have, result = _found(op.operands[0]), op.results[0].type
    if not is_vector(result):
        return [have], [None]
    if len(shape_in(result)) > 1:
        return [have], [have]
    row = (integers_of(op, "static_position") or ())[-1:]
    if have.implicit or not row:
        return _plain(op, generation)
    top = None if have.offsets[0] is None else (have.offsets[0] + row[0]) % have.tiling[0]
    return [have], [replace(have, offsets=(top, have.offsets[1]), implicit=(-2,))]


def _slice(op: Operation, generation: Generation) -> Layouts:
    """A part begins where it began: in the middle of a tile, if need be."""
    have = layout_of(op.operands[0]) or native(op.operands[0].type)
    if any(step != 1 for step in lists_of_numbers(op, "strides")):
        return _plain(op, generation)
    starts = lists_of_numbers(op, "offsets")
    if have.implicit == (-2,):
        starts = (*starts[:-1], 0, *starts[-1:])
    starts = (*starts, *(0 for dim in have.implicit if dim == -1))[-2:]
    sizes = (have.tiling[0], have.lanes_a_register)
    first, second = (
        None if at is None else (at + start) % size
        for at, start, size in zip(have.offsets, starts, sizes, strict=True)
    )
    found = replace(have, offsets=(first, second))
    if register_grid(found, shape_in(op.results[0].type)) is None:
        return _plain(op, generation)
    return [have], [found]


def lists_of_numbers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of an attribute."""
    found = attribute_of(op, name)
    return () if found is None else integers_of(op, name) or lists_of(found)[0]


def _concatenate(op: Operation, generation: Generation) -> Layouts:
    """Each begins where the one before it ended, in whole registers."""
    result = op.results[0].type
    rank, dim = len(shape_in(result)), integer_of(op, "dimension")
    first = unreplicated(_found(op.operands[0]))
    if rank < 2:
        return _plain(op, generation)
    axis = dim - (rank - 2)
    if axis < 0:
        found = [first] * (len(op.operands) + 1)
        return found[1:], found[:1]
    tiling = native_tiling(first.bits)
    begin, layouts = 0, list[VectorLayout]()
    for value in op.operands:
        offsets = list(unreplicated(_found(value)).offsets)
        offsets[axis] = begin % tiling[axis]
        begin += shape_in(value.type)[dim]
        layouts.append(VectorLayout(first.bits, (offsets[0], offsets[1]), tiling))
    offsets = list(first.offsets)
    offsets[axis] = 0
    return layouts, [VectorLayout(first.bits, (offsets[0], offsets[1]), tiling)]


def _rotate(op: Operation, generation: Generation) -> Layouts:
    """Turned by a constant, a ragged dimension begins where its first element comes to lie."""
    value, amount = op.operands[:2]
    shape, dim = shape_in(value.type), integer_of(op, "dimension")
    have = native(value.type)
    axis, known = dim - (len(shape) - 2), constant_of(amount)
    offsets = [0, 0]
    if known is not None and axis >= 0 and shape[dim] % have.tiling[axis]:
        offsets[axis] = (shape[dim] - known % shape[dim]) % have.tiling[axis]
    return [have, None], [replace(have, offsets=(offsets[0], offsets[1]))]


def _assumed(op: Operation, generation: Generation) -> Layouts:
    """As was said where it was made."""
    return layouts_of(op, "in_layout"), layouts_of(op, "out_layout")


def _index(op: Operation, generation: Generation) -> Layouts:
    """The place along lanes is the same in all of them."""
    source = op.operands[0].type
    rank, axis = len(shape_in(source)), integer_of(op, "axis")
    have = native(source)
    if rank != 2:
        return _plain(op, generation)
    plain = native(op.results[0].type)
    is_kept = len(shape_in(op.results[0].type)) == rank
    if axis == rank - 1:
        implicit = plain.implicit if is_kept else (-1,)
        return [have], [replace(plain, offsets=(0, None), implicit=implicit)]
    if is_kept:
        return [have], [plain]
    return [have], [replace(plain, offsets=(None, 0), implicit=(-2,))]


def _transpose(op: Operation, generation: Generation) -> Layouts:
    """Leading dimensions change places with each other as they lie; others in whole registers."""
    order = list(integers_of(op, "permutation") or ())
    rank = len(order)
    have = _found(op.operands[0])
    if rank > 2 and order[-2:] == [rank - 2, rank - 1]:
        return [have], [have]
    if rank > 2 and order[-1] == rank - 1 and have.tiling == (SUBLANES, LANES):
        have = replace(have, offsets=(0, 0))
        return [have], [have]
    return _plain(op, generation)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("scf.yield", "scf.condition", "tpu.yield"), _end),
    "arith.constant": _constant,
    **dict.fromkeys(CASTS, _cast),
    "tpu.assume_layout": _assumed,
    "tpu.bitcast": _bitcast,
    "tpu.vector_load": _load,
    "tpu.vector_store": _store,
    "tpu.reduce": _reduce,
    "tpu.reduce_index": _index,
    "tpu.iota": _iota,
    "tpu.concatenate": _concatenate,
    "tpu.dynamic_rotate": _rotate,
    "tpu.transpose": _transpose,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.extract_strided_slice": _slice,
    "tpu.reshape": _reshape,
}
