"""Layouts of vectors: `in_layout` and `out_layout` of every operation, and what stands between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, OpResult, SSAValue

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.dialects.tpu.registers import register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, lists_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    build,
    functions_of,
    insert,
    is_vector,
)
from mlirhlo.mosaic.pipeline.memory_layout import is_repeated_row, memory_layout
from mlirhlo.mosaic.target.check import refuse
from mlirhlo.mosaic.target.memory import indices_are_aligned, vectors_are_in_vmem
from mlirhlo.mosaic.target.structure import nowhere
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

Layout = VectorLayout | None
_NONE = VectorLayoutAttr(None)


def layouts_of(op: Operation, name: str) -> list[Layout]:
    """The layouts an operation states under `in_layout` or `out_layout`; none without any."""
    stated: Any = op.attributes.get(name)
    return [item.data for item in stated.data] if stated is not None else []


def layout_of(value: SSAValue) -> Layout:
    """The layout a value has where it is made; block arguments have the native one."""
    if not is_vector(value.type):
        return None
    if isinstance(value, OpResult):
        stated = layouts_of(value.op, "out_layout")
        if value.index < len(stated):
            return stated[value.index]
    return native(value.type)


def native(type_: Attribute, bits: int | None = None) -> VectorLayout:
    """The plain layout: whole registers, no offsets, rank one as a row."""
    width = width_in_bits(element_name(type_)) if bits is None else bits
    rank = len(shape_in(type_))
    implicit = {0: (-2, -1), 1: (-2,)}.get(rank, ())
    return VectorLayout(width, (0, 0), (SUBLANES * (32 // width), LANES), implicit)


def infer_vector_layout(module: ModuleOp) -> None:
    """Writes on every operation how its vectors lie in registers.

    Raises `HloError` HLO0740, HLO0742 and HLO0743 for operations that no TensorCore has, vectors in
    other memories, and indices that are not provably aligned.
    """
    for function in functions_of(module):
        for op in list(function.walk()):
            if op is function:
                continue
            refuse(op, nowhere, indices_are_aligned, vectors_are_in_vmem)
            rule = _RULES.get(name_of(op), _elementwise if is_elementwise(op) else _plain)
            inputs, outputs = rule(op)
            _state(op, inputs, outputs)
        _assume_carried(function)


def _state(op: Operation, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> None:
    """Writes layouts where the compiler does: nothing of operands that there never are, but of the
    results of loops and regions also where there are none."""
    name = name_of(op)
    makes_vectors = not op.operands and any(is_vector(result.type) for result in op.results)
    if not makes_vectors and name != "tpu.region":
        op.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(item) for item in inputs])
    if op.results or name in ("scf.for", "tpu.region"):
        op.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(item) for item in outputs])


def _assume_carried(function: Operation) -> None:
    """What a loop carries is said to lie as it is carried."""
    for op in list(function.walk()):
        if name_of(op) != "scf.for":
            continue
        block = op.regions[0].blocks[0]
        first = block.first_op
        assert first is not None
        for argument in block.args:
            if not is_vector(argument.type):
                continue
            users = list(argument.uses)
            new = build("tpu.assume_layout", (argument,), (argument.type,))
            new.results[0].name_hint = argument.name_hint
            _state(new, [native(argument.type)], [native(argument.type)])
            insert(new, first)
            for use in users:
                use.operation.operands[use.index] = new.results[0]


def relayout_insertion(module: ModuleOp) -> None:
    """Puts `mosaic_tc.relayout` where a value is wanted in another layout than it has."""
    for function in functions_of(module):
        for op in list(function.walk()):
            if op is function:
                continue
            wanted = layouts_of(op, "in_layout")
            for at, operand in enumerate(op.operands):
                have = layout_of(operand)
                want = wanted[at] if at < len(wanted) else have
                if have is None or want is None or have == want:
                    continue
                new = build("mosaic_tc.relayout", (operand,), (operand.type,), None, op)
                new.results[0].name_hint = operand.name_hint
                new.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(have)])
                new.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(want)])
                insert(new, op)
                op.operands[at] = new.results[0]


Rule = Callable[[Operation], "tuple[list[Layout], list[Layout]]"]


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


def _plain(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """Everything native."""
    return (
        [native(v.type) if is_vector(v.type) else None for v in op.operands],
        [native(v.type) if is_vector(v.type) else None for v in op.results],
    )


def _constant(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """One register of one value."""
    type_ = op.results[0].type
    if not is_vector(type_) or "[" in str(op.properties.get("value")):
        return _plain(op)
    return [], [_with(native(type_), offsets=(None, None))]


def _with(
    layout: VectorLayout,
    *,
    offsets: tuple[int | None, int | None] | None = None,
    bits: int | None = None,
    tiling: tuple[int, int] | None = None,
    implicit: tuple[int, ...] | None = None,
) -> VectorLayout:
    return VectorLayout(
        layout.bits if bits is None else bits,
        layout.offsets if offsets is None else offsets,
        layout.tiling if tiling is None else tiling,
        layout.implicit if implicit is None else implicit,
    )


def _elementwise(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """All operands and results alike: as the operands are, replicated only where all are."""
    vectors = [v for v in op.operands if is_vector(v.type)]
    if not vectors or not op.results or not is_vector(op.results[0].type):
        return _plain(op)
    # Masks lie as the elements they are of.
    numbers = [v for v in vectors if element_name(v.type) != "i1"] or vectors
    found = [layout for v in numbers if (layout := layout_of(v)) is not None]
    if len({layout.bits for layout in found}) > 1:
        return _plain(op)
    concrete = [layout for layout in found if layout.offsets != (None, None)]
    first = (concrete or found)[0]
    layouts = [layout for v in vectors if (layout := layout_of(v)) is not None]
    offsets = tuple(
        next((layout.offsets[at] for layout in layouts if layout.offsets[at] is not None), None)
        for at in (0, 1)
    )
    chosen = _with(first, offsets=cast("tuple[int | None, int | None]", offsets))
    if register_grid(chosen, shape_in(op.results[0].type)) is None:
        return _plain(op)
    return (
        [chosen if is_vector(v.type) else None for v in op.operands],
        [chosen if is_vector(v.type) else None for v in op.results],
    )


def _load(op: Operation) -> tuple[list[Layout], list[Layout]]:
    result = op.results[0].type
    base, *indices = op.operands[: 1 + len(shape_in(op.operands[0].type))]
    found = memory_layout(base.type, result, indices) or native(result)
    if is_repeated_row(base.type, found, result):
        found = _with(found, offsets=(None, found.offsets[1]))
    return [None] * len(op.operands), [found]


def _store(op: Operation) -> tuple[list[Layout], list[Layout]]:
    value, base = op.operands[:2]
    indices = op.operands[2 : 2 + len(shape_in(base.type))]
    found = memory_layout(base.type, value.type, indices) or native(value.type)
    rest = op.operands[1:]
    return [found, *(found if is_vector(v.type) else None for v in rest)], []


def _convert(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """Both sides have tiles of the same rows, where a word holds two elements; else whole registers."""
    before, after = op.operands[0].type, op.results[0].type
    if not is_vector(before):
        return _plain(op)
    have, wanted = layout_of(op.operands[0]), native(after)
    assert have is not None
    if have.bits == wanted.bits:
        return [have], [have]
    if have.offsets == (None, None):
        return [have], [_with(wanted, offsets=(None, None), implicit=have.implicit)]
    rows = min(have.tiling[0], SUBLANES)
    if min(have.bits, wanted.bits) < 16 or rows < 2 or have.offsets != (0, 0):
        source = native(before, have.bits)
        return [_with(source, implicit=have.implicit)], [_with(wanted, implicit=have.implicit)]
    source = _with(have, tiling=(rows, LANES))
    return [source], [_with(source, bits=wanted.bits)]


def _reduce(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """A reduced dimension is the same in all sublanes, or all lanes."""
    source = op.operands[0].type
    dims, rank = integers_of(op, "dimensions") or (), len(shape_in(source))
    have = native(source)
    if rank < 2:
        return _plain(op)
    offsets = (None if rank - 2 in dims else 0, None if rank - 1 in dims else 0)
    return [have], [_with(have, offsets=offsets)]


def _broadcast(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """What is repeated is the same in all sublanes, or all lanes, already."""
    source, result = op.operands[0].type, op.results[0].type
    if not is_vector(source):
        return [None], [_with(native(result), offsets=(None, None))]
    before, after = shape_in(source), shape_in(result)
    if len(before) != len(after) or len(before) < 2:
        return _plain(op)
    offsets = tuple(None if before[at] == 1 != after[at] else 0 for at in (-2, -1))
    have = _with(native(source), offsets=cast("tuple[int | None, int | None]", offsets))
    if offsets == (0, None) and layout_of(op.operands[0]) == native(source):
        return [native(source)], [have]  # one lane is read, whatever the others hold
    return [have], [have]


def _reshape(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """Dimensions of size one come and go without moving anything."""
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    have = layout_of(op.operands[0])
    if have is None:
        return _plain(op)
    implicit: tuple[int, ...] | None = None
    if (have.implicit, after) == ((), before[:-1]) and before[-1:] == (1,):
        implicit = (-1,)
    elif (have.implicit, after) in (
        ((-1,), (*before, 1)),
        ((-2,), (*before[:-1], 1, *before[-1:])),
    ):
        implicit = ()
    elif have.implicit == () and after == before[-1:] and set(before[:-1]) == {1}:
        implicit = (-2,)
    if implicit is None:
        return _plain(op)
    wanted = _with(have, implicit=implicit)
    if register_grid(wanted, after) is None:
        return _plain(op)
    return [have], [wanted]


def _iota(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """The same in all sublanes, or all lanes, of which nothing is counted."""
    type_ = op.results[0].type
    rank, dims = len(shape_in(type_)), integers_of(op, "dimensions") or ()
    have = native(type_)
    if rank < 2:
        return _plain(op)
    offsets = (0 if rank - 2 in dims else None, 0 if rank - 1 in dims else None)
    return [], [_with(have, offsets=offsets)]


def _part(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """A part begins where it began: in the middle of a tile, if need be."""
    source, result = op.operands[0].type, op.results[0].type
    have = layout_of(op.operands[0])
    if have is not None and not is_vector(result) and not any(have.offsets):
        return [have], [None]  # An element is there however often.
    if have is None or not is_vector(result) or have.implicit:
        return _plain(op)
    starts = attribute_of(op, "offsets")
    if starts is None:
        # Of leading dimensions.
        return ([have], [have]) if len(shape_in(result)) > 1 else _plain(op)
    strides = lists_of_numbers(op, "strides")
    if any(step != 1 for step in strides) or None in have.offsets:
        return _plain(op)
    row, lane = lists_of_numbers(op, "offsets")[-2:]
    offsets = (
        ((have.offsets[0] or 0) + row) % have.tiling[0],
        ((have.offsets[1] or 0) + lane) % have.lanes_a_register,
    )
    found = _with(have, offsets=offsets)
    if len(shape_in(source)) < 2 or register_grid(found, shape_in(result)) is None:
        return _plain(op)
    return [have], [found]


def lists_of_numbers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of an attribute."""
    found = attribute_of(op, name)
    return () if found is None else integers_of(op, name) or lists_of(found)[0]


def _index(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """The place along lanes is the same in all of them, that along sublanes in all of those."""
    source = op.operands[0].type
    rank, axis = len(shape_in(source)), integer_of(op, "axis")
    have = native(source)
    if rank != 2:
        return _plain(op)
    plain = native(op.results[0].type)
    if len(shape_in(op.results[0].type)) == rank:
        return [have], [_with(plain, offsets=(0, None) if axis == rank - 1 else (None, 0))]
    if axis == rank - 1:
        return [have], [_with(plain, offsets=(0, None), implicit=(-1,))]
    return [have], [_with(plain, offsets=(None, 0), implicit=(-2,))]


def _same(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """As the operand is."""
    have = layout_of(op.operands[0])
    return [have], [have]


_CASTS = (
    "tpu.extf",
    "tpu.truncf",
    "tpu.sitofp",
    "tpu.uitofp",
    "tpu.fptosi",
    "tpu.fptoui",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
)
_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    **dict.fromkeys(_CASTS, _convert),
    "tpu.vector_load": _load,
    "tpu.vector_store": _store,
    "tpu.reduce": _reduce,
    "tpu.reduce_index": _index,
    "tpu.iota": _iota,
    "tpu.assume_layout": _same,
    "vector.broadcast": _broadcast,
    "vector.extract": _part,
    "vector.extract_strided_slice": _part,
    "tpu.reshape": _reshape,
}
