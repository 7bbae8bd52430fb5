"""Operations of `vector` and `arith` on vectors become those of `tpu`."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from mlirhlo.dialects.tpu.attributes import ReductionKindAttr, RoundingModeAttr
from mlirhlo.mosaic.attributes import attribute_of, case_of, integers_of, name_of
from mlirhlo.mosaic.pipeline.boxes import boxes_from_lanes, lanes_from_boxes
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    element_of,
    functions_of,
    insert,
    is_vector,
    replace,
    vector_type,
)
from mlirhlo.mosaic.pipeline.matmul import plain_product, turned_product
from mlirhlo.mosaic.pipeline.widening import widen
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

    from mlirhlo.mosaic.target.generations import Generation

_CASTS = {
    "arith.extf": ("tpu.extf", None),
    "arith.truncf": ("tpu.truncf", "to_nearest_even"),
    "arith.sitofp": ("tpu.sitofp", "to_nearest_even"),
    "arith.uitofp": ("tpu.uitofp", "to_nearest_even"),
    "arith.fptosi": ("tpu.fptosi", "towards_zero"),
    "arith.fptoui": ("tpu.fptoui", "towards_zero"),
}
_KINDS = {
    "add": ("sum", "arith.addf", "arith.addi"),
    "maximumf": ("maxf", "arith.maximumf", ""),
    "minimumf": ("minf", "arith.minimumf", ""),
    "maxsi": ("maxsi", "", "arith.maxsi"),
    "minsi": ("minsi", "", "arith.minsi"),
}
"""Reductions: the kind of `tpu.reduce`, and what adds the accumulator."""


def canonicalize_operations(module: ModuleOp) -> None:
    """`vector.load` => `tpu.vector_load`, `shape_cast` => `tpu.reshape`, casts with their rounding,
    `multi_reduction` => `tpu.reduce`, `tpu.reshape` and a sum with the accumulator."""
    for function in functions_of(module):
        for op in list(function.walk()):
            _canonicalize(op)


def _canonicalize(op: Operation) -> None:
    name = name_of(op)
    no_strides = {"strides": attribute("array<i32>")}
    if name == "vector.load":
        new = build("tpu.vector_load", op.operands, (op.results[0].type,), None, op)
        _segments(new, [1, len(op.operands) - 1, 0], no_strides)
    elif name == "vector.store":
        new = build("tpu.vector_store", op.operands, (), None, op)
        _segments(new, [1, 1, len(op.operands) - 2, 0], no_strides)
    elif name == "vector.shape_cast":
        new = build("tpu.reshape", op.operands, (op.results[0].type,), None, op)
    elif name == "vector.transpose":
        new = build("tpu.transpose", op.operands, (op.results[0].type,), dict(op.properties), op)
    elif name in _CASTS:
        target, rounding = _CASTS[name]
        extra: dict[str, Attribute] = {}
        if rounding is not None:
            extra["rounding_mode"] = RoundingModeAttr(rounding)
        new = build(target, op.operands, (op.results[0].type,), extra, op)
    elif name == "vector.multi_reduction":
        _reduce(op)
        return
    else:
        return
    insert(new, op)
    replace(op, new.results)


def _segments(op: Operation, sizes: list[int], more: dict[str, Attribute]) -> None:
    op.properties["operandSegmentSizes"] = attribute(f"array<i32: {', '.join(map(str, sizes))}>")
    op.properties.update(more)


def _reduce(op: Operation) -> None:
    kinds = _KINDS.get(case_of(attribute_of(op, "kind")))
    result = op.results[0].type
    if kinds is None:
        return
    source, acc = op.operands
    dims = integers_of(op, "reduction_dims") or ()
    element = element_of(source.type)
    kept = [1 if at in dims else size for at, size in enumerate(shape_in(source.type))]
    kind, of_floats, of_integers = kinds
    combine = of_integers if str(element).startswith("i") else of_floats
    if not combine:
        return
    reduced = build(
        "tpu.reduce",
        (source,),
        (vector_type(kept, element),),
        {
            "kind": ReductionKindAttr(kind),
            "dimensions": attribute(f"array<i64: {', '.join(map(str, dims))}>"),
        },
        op,
    )
    insert(reduced, op)
    if is_vector(result):
        flat = build("tpu.reshape", reduced.results, (result,), None, op)
    else:
        places = {"static_position": attribute(f"array<i64: {', '.join('0' for _ in kept)}>")}
        flat = build("vector.extract", reduced.results, (result,), places, op)
    insert(flat, op)
    if _is_neutral(acc, kind):
        replace(op, flat.results)
        return
    total = insert(build(combine, (flat.results[0], acc), (result,), None, op), op)
    replace(op, total.results)


_NEUTRAL = {
    "sum": ("0",),
    "maxf": ("0xFF800000", "0xFF80"),
    "minf": ("0x7F800000", "0x7F80"),
    "maxsi": (str(-(2**31)), str(-(2**15))),
    "minsi": (str(2**31 - 1), str(2**15 - 1)),
}


def _is_neutral(acc: SSAValue, kind: str) -> bool:
    """Whether an accumulator is what changes no extremum; sums keep the sign of their zero."""
    owner = acc.owner
    if not isinstance(owner, Operation) or name_of(owner) != "arith.constant":
        return False
    stated = str(attribute_of(owner, "value"))
    return stated[stated.find("<") + 1 : stated.find(">")] in _NEUTRAL.get(kind, ())


def pre_canon_optimization(module: ModuleOp) -> None:
    """Products take their right side as it lies, where it would be transposed for them."""
    for function in functions_of(module):
        for op in list(function.walk()):
            if name_of(op) == "tpu.matmul":
                turned_product(op)


def canonicalize_mosaic(module: ModuleOp, generation: Generation) -> None:
    """What a generation has not becomes what it has: narrow elements are computed wide, broadcasts
    that add dimensions are a reshape and one of equal rank, and products are of matrices."""
    for function in functions_of(module):
        for op in list(function.walk()):
            if widen(op, generation):
                continue
            if name_of(op) == "vector.broadcast" and is_vector(op.operands[0].type):
                _equal_rank(op)
            elif name_of(op) == "arith.select" and _is_mask(op.results[0]):
                _choose_masks(op)
            elif name_of(op) in ("tpu.matmul", "vector.contract"):
                plain_product(op)
            elif name_of(op) == "tpu.reshape":
                lanes_from_boxes(op)
            elif name_of(op) == "tpu.transpose" and not boxes_from_lanes(op):
                _transpose_by_steps(op)


def _transpose_by_steps(op: Operation) -> None:
    """A transposition is the fewest of those that registers have."""
    wanted = integers_of(op, "permutation") or ()
    steps = _steps(wanted)
    if len(steps) < 2:
        return
    value = op.operands[0]
    for order in steps:
        shape = shape_in(value.type)
        type_ = vector_type([shape[dim] for dim in order], element_of(value.type))
        stated = {"permutation": attribute(f"array<i64: {', '.join(map(str, order))}>")}
        value = insert(build("tpu.transpose", (value,), (type_,), stated, op), op).results[0]
    replace(op, [value])


@lru_cache(maxsize=1024)
def _steps(wanted: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The fewest orders, one after another, that make an order.

    Registers have those that keep the last two dimensions, that change their places, and that change the
    places of the second and third from the end.
    """
    rank = len(wanted)
    if rank < 3:
        return [wanted]
    ends = ((rank - 2, rank - 1), (rank - 1, rank - 2))
    moves = [
        order
        for order in permutations(range(rank))
        if order[-2:] in ends or order[-3:] == (rank - 2, rank - 3, rank - 1)
    ]
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = {tuple(range(rank)): []}
    ready = list(found)
    for now in ready:
        for move in moves:
            after = tuple(now[dim] for dim in move)
            if after not in found:
                found[after] = [*found[now], move]
                ready.append(after)
    return found[wanted]


def _is_mask(value: SSAValue) -> bool:
    return is_vector(value.type) and str(element_of(value.type)) == "i1"


def _choose_masks(op: Operation) -> None:
    """`select m, a, b => (m & a) | (~m & b)`, of masks."""
    mask, first, second = op.operands
    type_ = op.results[0].type
    if mask.type != type_:
        return

    def emit(name: str, *operands: SSAValue) -> SSAValue:
        return insert(build(name, operands, (type_,), None, op), op).results[0]

    stated = {"value": attribute(f"dense<true> : {type_}")}
    everywhere = insert(build("arith.constant", (), (type_,), stated, op), op).results[0]
    other = emit("arith.xori", mask, everywhere)
    sides = emit("arith.andi", mask, first), emit("arith.andi", other, second)
    replace(op, [emit("arith.ori", *sides)])


def _equal_rank(op: Operation) -> None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if len(before) == len(after) or not before:
        return
    full = (1,) * (len(after) - len(before)) + before
    shaped = vector_type(full, element_of(op.results[0].type))
    new = build("tpu.reshape", op.operands, (shaped,), None, op)
    insert(new, op)
    op.operands[0] = new.results[0]
