"""Layouts of vectors: `in_layout` and `out_layout` of every operation, and what stands between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, OpResult, SSAValue

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.dialects.tpu.registers import register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import integers_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    build,
    functions_of,
    insert,
    is_vector,
    tiled_layout_of,
)
from mlirhlo.mosaic.target.check import refuse
from mlirhlo.mosaic.target.divisible import constant_of
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
            rule = _RULES.get(name_of(op), _elementwise if _is_elementwise(op) else _plain)
            inputs, outputs = rule(op)
            # As the compiler has it: a vector's constant says nothing of operands.
            if name_of(op) != "arith.constant" or not is_vector(op.results[0].type):
                op.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(item) for item in inputs])
            if op.results:
                op.attributes["out_layout"] = ArrayAttr(
                    [VectorLayoutAttr(item) for item in outputs]
                )


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


def _is_elementwise(op: Operation) -> bool:
    name = name_of(op)
    return name.startswith(("arith.", "math.")) or name in (
        "tpu.reciprocal",
        "tpu.logistic",
        "tpu.weird",
    )


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
    widths = {width_in_bits(element_name(v.type)) for v in vectors if element_name(v.type) != "i1"}
    result = element_name(op.results[0].type)
    if result != "i1":
        widths.add(width_in_bits(result))
    found = [layout for v in vectors if (layout := layout_of(v)) is not None]
    if len(widths) > 1 or len({layout.bits for layout in found}) > 1:
        return _plain(op)
    concrete = [layout for layout in found if layout.offsets != (None, None)]
    first = (concrete or found)[0]
    offsets = tuple(
        next((layout.offsets[at] for layout in found if layout.offsets[at] is not None), None)
        for at in (0, 1)
    )
    chosen = _with(first, offsets=cast("tuple[int | None, int | None]", offsets))
    if register_grid(chosen, shape_in(op.results[0].type)) is None:
        return _plain(op)
    return (
        [chosen if is_vector(v.type) else None for v in op.operands],
        [chosen if is_vector(v.type) else None for v in op.results],
    )


def memory_layout(reference: Attribute, vector: Attribute, indices: Sequence[SSAValue]) -> Layout:
    """The layout that registers have as they lie in a tiled reference."""
    layout = tiled_layout_of(reference)
    plain = native(vector)
    shape = shape_in(vector)
    if layout is None or not layout.tiles or not shape:
        return plain
    packing = 32 // plain.bits
    rank_one = len(layout.tiles[0]) == 1
    if rank_one and (packing > 1 or len(shape) != 1):
        return plain
    rows = 1 if rank_one else layout.tiles[0][0]
    if not rank_one and rows == 1 and packing == 1 and shape_in(reference)[-1] <= LANES:
        # Rows one register wide lie one after another, as in whole tiles.
        rows = SUBLANES
    starts = [constant_of(index) or 0 for index in indices]
    found = _with(
        plain,
        tiling=(rows, LANES),
        offsets=(0 if rank_one else starts[-2] % rows, starts[-1] % LANES),
    )
    if found.offsets != (0, 0) or register_grid(found, shape) is None:
        return plain
    return found


def _load(op: Operation) -> tuple[list[Layout], list[Layout]]:
    result = op.results[0].type
    base, *indices = op.operands[: 1 + len(shape_in(op.operands[0].type))]
    return [None] * len(op.operands), [memory_layout(base.type, result, indices)]


def _store(op: Operation) -> tuple[list[Layout], list[Layout]]:
    value, base = op.operands[:2]
    indices = op.operands[2 : 2 + len(shape_in(base.type))]
    inputs: list[Layout] = [memory_layout(base.type, value.type, indices)]
    rest = op.operands[1:]
    return inputs + [native(v.type) if is_vector(v.type) else None for v in rest], []


def _convert(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """Both sides have tiles of the same rows."""
    before, after = op.operands[0].type, op.results[0].type
    if not is_vector(before):
        return _plain(op)
    have, wanted = layout_of(op.operands[0]), native(after)
    assert have is not None
    narrow = min(have.bits, wanted.bits)
    rows = min(have.tiling[0], SUBLANES)
    if narrow == 32 or rows * narrow < 32 or have.offsets not in ((0, 0), (None, None)):
        return _plain(op) if narrow != 32 else ([have], [have])
    source = _with(have, tiling=(rows, LANES))
    return [source], [_with(source, bits=wanted.bits)]


def _reduce(op: Operation) -> tuple[list[Layout], list[Layout]]:
    """A reduced dimension is the same in all sublanes, or all lanes."""
    source = op.operands[0].type
    dims, rank = integers_of(op, "reduction_dims") or (), len(shape_in(source))
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
    elif have.implicit == () and len(before) == 2 and before[0] == 1 and after == before[1:]:
        implicit = (-2,)
    if implicit is None:
        return _plain(op)
    wanted = _with(have, implicit=implicit)
    if register_grid(wanted, after) is None:
        return _plain(op)
    return [have], [wanted]


_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "tpu.vector_load": _load,
    "tpu.vector_store": _store,
    "tpu.extf": _convert,
    "tpu.truncf": _convert,
    "tpu.sitofp": _convert,
    "tpu.fptosi": _convert,
    "tpu.reduce": _reduce,
    "vector.broadcast": _broadcast,
    "tpu.reshape": _reshape,
}
