"""What canonicalisation knows of single operations: constants, units, things done and undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
)
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.tpu.attributes import RoundingModeAttr
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    constant,
    element_of,
    insert,
    is_vector,
    replace,
    vector_type,
    with_shape,
)
from mlirhlo.mosaic.pipeline.constants import one_value, splat
from mlirhlo.mosaic.pipeline.vector_rules import lists_of_numbers
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.memory import mask_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits
from mlirhlo.mosaic.target.views import squeezed_dimensions

RESHAPES = ("vector.shape_cast", "tpu.reshape")


def _fold_condition(op: Operation) -> SSAValue | None:
    """`cmpi ne (extui x), 0 => x`"""
    source = op.operands[0].owner
    if integer_of(op, "predicate") != 1 or _number(op.operands[1]) != 0:
        return None
    if not isinstance(source, Operation) or name_of(source) != "arith.extui":
        return None
    bit = source.operands[0]
    return bit if bit.type == op.results[0].type else None


def _spread(op: Operation, source: Operation) -> SSAValue | None:
    """The constant of one value that `op` makes of the constant `source`; None for others."""
    if name_of(source) != "arith.constant":
        return None
    type_ = op.results[0].type
    value = splat(attribute_of(source, "value"), type_)
    if value is None:
        return None
    return insert(build("arith.constant", (), (type_,), {"value": value}, op), op).results[0]


def _fold_broadcast(op: Operation) -> SSAValue | None:
    """The broadcast of a constant is a splat; one of leading ones added is one of less."""
    source, type_ = op.operands[0].owner, op.results[0].type
    if op.operands[0].type == type_:
        return op.operands[0]
    if not isinstance(source, Operation):
        return None
    constant = _spread(op, source)
    if constant is not None:
        return constant
    if name_of(source) == "vector.shape_cast":
        before, after = shape_in(source.operands[0].type), shape_in(source.results[0].type)
        if before and after == (1,) * (len(after) - len(before)) + before:
            new = build("vector.broadcast", source.operands, (type_,), None, op)
            return insert(new, op).results[0]
    return None


def _fold_reshape(op: Operation) -> SSAValue | None:
    """Reshapes of reshapes are one; to the same type, none."""
    source, type_ = op.operands[0].owner, op.results[0].type
    if op.operands[0].type == type_:
        return op.operands[0]
    if not isinstance(source, Operation):
        return None
    constant = _spread(op, source)
    if constant is not None:
        return constant
    if name_of(source) == name_of(op):
        if source.operands[0].type == type_:
            return source.operands[0]
        new = build(name_of(op), (source.operands[0],), (type_,), None, op)
        return insert(new, op).results[0]
    return None


def unroll_rolled(op: Operation) -> bool:
    """`unroll_vectors (roll_vectors x, y) => x, y`; whether it was so.

    Without `in_layout` the registers are those of the vector's own layout.
    """
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "tpu.roll_vectors":
        return False
    wanted = op.attributes.get("in_layout")
    if wanted not in (None, source.attributes.get("out_layout")):
        return False
    if [value.type for value in source.operands] != [value.type for value in op.results]:
        return False
    replace(op, source.operands)
    return True


def _fold_bits(op: Operation) -> SSAValue | None:
    """Bits seen otherwise, and otherwise again, are seen so once; as they are, not at all.

    The last of several goes first, so that it is what there was before.
    """
    source, type_ = op.operands[0], op.results[0].type
    owner = source.owner
    if all(name_of(use.operation) == name_of(op) for use in op.results[0].uses):
        return None
    if source.type == type_:
        return source
    if not isinstance(owner, Operation) or name_of(owner) != name_of(op):
        return None
    if owner.operands[0].type == type_:
        return owner.operands[0]
    return insert(build(name_of(op), owner.operands, (type_,), None, op), op).results[0]


def _fold_extension(op: Operation) -> SSAValue | None:
    """What is only packed again in as few bits needs none above them."""
    bits = width_in_bits(element_name(op.operands[0].type))
    users = [use.operation for use in op.results[0].uses]
    is_integer = element_name(op.results[0].type).startswith("i")
    is_packed = bool(users) and all(
        name_of(user) == "tpu.pack_subelements"
        and width_in_bits(element_name(user.results[0].type)) <= bits
        for user in users
    )
    if is_integer and is_packed:
        op.properties["integer_extended"] = attribute("false")
    return None


def _fold_index(op: Operation) -> SSAValue | None:
    """`index_cast (index_cast x) => x`"""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != name_of(op):
        return None
    return source.operands[0] if source.operands[0].type == op.results[0].type else None


def _fold_slice(op: Operation) -> SSAValue | None:
    """A slice at the beginning that has the type of its source is the source; known sizes are stated."""
    source, *rest = op.operands
    if source.type == op.results[0].type and all(constant_of(at) == 0 for at in rest):
        return source
    type_ = op.results[0].type
    shape = shape_in(type_)
    rank = len(shape)
    known = iter([_number(size) for size in rest[rank:]])
    sizes = [next(known) if size == DYNAMIC_INDEX else size for size in shape]
    if len(rest) == rank or None in sizes:
        return None
    whole = with_shape(type_, [size for size in sizes if size is not None])
    segments = attribute(f"array<i32: 1, {rank}, 0>")
    stated = {"operandSegmentSizes": segments}
    new = insert(build(name_of(op), op.operands[: 1 + rank], (whole,), stated, op), op)
    return insert(build("memref.cast", new.results, (type_,)), op).results[0]


def _fold_squeeze(op: Operation) -> SSAValue | None:
    """`squeeze (cast x) => cast (squeeze x)`"""
    source, type_ = op.operands[0].owner, op.results[0].type
    if not isinstance(source, Operation) or name_of(source) != "memref.cast":
        return None
    gone = squeezed_dimensions(shape_in(source.results[0].type), shape_in(type_))
    if gone is None:
        return None
    shape = shape_in(source.operands[0].type)
    whole = with_shape(type_, [size for dim, size in enumerate(shape) if dim not in gone])
    new = insert(build(name_of(op), source.operands, (whole,), None, op), op)
    return insert(build("memref.cast", new.results, (type_,)), op).results[0]


def _fold_multiple(op: Operation) -> SSAValue | None:
    """What is said of a number that is known is known."""
    return op.operands[0] if _is_constant(op.operands[0]) else None


def _fold_unsigned(op: Operation) -> SSAValue | None:
    """`sitofp (extui x) => uitofp x`"""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "arith.extui":
        return None
    new = build("arith.uitofp", source.operands, (op.results[0].type,), None, op)
    return insert(new, op).results[0]


def _fold_swapped(op: Operation) -> SSAValue | None:
    """`c + x => x + c`, which the other folds look for."""
    left, right = op.operands
    if _is_constant(left) and not _is_constant(right):
        op.operands = (right, left)
    return None


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and name_of(value.owner) == "arith.constant"


def _number(value: SSAValue) -> int | None:
    """The integer that a constant is, or has everywhere."""
    owner = value.owner
    if not isinstance(owner, Operation) or name_of(owner) != "arith.constant":
        return None
    if not is_vector(value.type):
        return constant_of(value)
    stated = str(attribute_of(owner, "value"))
    text = stated[stated.index("<") + 1 : stated.index(">")] if "<" in stated else ""
    if text in ("true", "false"):
        return int(text == "true")
    return int(text) if text.lstrip("-").isdigit() else None


_UNITS: Mapping[str, float] = {
    **dict.fromkeys(("arith.addi", "arith.subi", "arith.ori", "arith.xori"), 0),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), 0),
    **dict.fromkeys(("arith.muli", "arith.divsi", "arith.divui"), 1),
    **dict.fromkeys(("arith.mulf", "arith.divf"), 1.0),
    "arith.andi": -1,
    "arith.subf": 0.0,
}
"""What changes nothing on the right. A float's zero is the positive one: others change signs of zero."""
_SINKS = {"arith.muli": 0, "arith.andi": 0}
"""What leaves nothing else on the right."""
_EXTREMA = ("maximumf", "minimumf", "maxsi", "minsi", "maxui", "minui")
_SAME = frozenset(f"arith.{name}" for name in (*_EXTREMA, "andi", "ori"))
"""Operations that give a value of itself and itself."""


def _fold_unit(op: Operation) -> SSAValue | None:
    """`x + 0 => x`, `x * 1 => x`, `x * 0 => 0`, `max(x, x) => x`."""
    left, right = op.operands
    if left is right and name_of(op) in _SAME:
        return left
    if name_of(op) not in _UNITS:
        return None
    number, unit = one_value(right), _UNITS[name_of(op)]
    if number is None:
        return None
    if element_name(right.type) == "i1":
        unit = abs(unit)
    is_negative_zero = number == 0 and bool(np.signbit(np.float64(number)))
    if number == unit and not is_negative_zero:
        return left
    return right if number == _SINKS.get(name_of(op)) else None


_SIGN = {"arith.addi": 1, "arith.subi": -1}


def _fold_sums(op: Operation) -> SSAValue | None:
    """`(x + c) + d => x + (c + d)`, and so for differences."""
    source, outer = op.operands[0].owner, _number(op.operands[1])
    if not isinstance(source, Operation) or name_of(source) not in _SIGN or outer is None:
        return None
    inner, type_ = _number(source.operands[1]), op.results[0].type
    if inner is None or is_vector(type_):
        return None
    total = _SIGN[name_of(source)] * inner + _SIGN[name_of(op)] * outer
    if not -(1 << 31) <= total < 1 << 31:
        return None
    number = insert(constant(total, type_, op), op).results[0]
    new = build("arith.addi", (source.operands[0], number), (type_,), dict(op.properties), op)
    return insert(new, op).results[0]


CHOSEN: Mapping[int, str] = {
    2: "arith.minsi",
    3: "arith.minsi",
    4: "arith.maxsi",
    5: "arith.maxsi",
    6: "arith.minui",
    8: "arith.maxui",
}
"""What a choice by a comparison of what is chosen from is, by the predicate's number."""


def _fold_choice(op: Operation) -> SSAValue | None:
    """`select m, x, x => x`, `select (x > y), x, y => max(x, y)`; of integers."""
    mask, first, second = op.operands
    if first is second:
        return first
    compared = mask.owner
    if not isinstance(compared, Operation) or name_of(compared) != "arith.cmpi":
        return None
    name = CHOSEN.get(integer_of(compared, "predicate"))
    pair = tuple(compared.operands)
    if name is None or (first, second) != pair:
        return None
    return insert(build(name, pair, (first.type,), None, op), op).results[0]


def _fold_twice(op: Operation) -> SSAValue | None:
    """`(x ^ c) ^ c => x`"""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "arith.xori":
        return None
    same = _number(op.operands[1]) is not None and source.operands[1] is op.operands[1]
    return source.operands[0] if same else None


def _fold_extract(op: Operation) -> SSAValue | None:
    """A part of a splat is one; one element of a reshaped single element is that element."""
    source = op.operands[0].owner
    if isinstance(source, Operation) and is_vector(op.results[0].type):
        return _spread(op, source)
    if not isinstance(source, Operation) or name_of(source) not in RESHAPES:
        return None
    inner = source.operands[0]
    shape = shape_in(inner.type)
    if is_vector(op.results[0].type) or len(op.operands) > 1 or any(n != 1 for n in shape):
        return None
    places = {"static_position": attribute(f"array<i64: {', '.join('0' for _ in shape)}>")}
    new = build("vector.extract", (inner,), (op.results[0].type,), places, op)
    return insert(new, op).results[0]


def _fold_part(op: Operation) -> SSAValue | None:
    """A part that lies in one piece is extracted: `x[3:4, :] => shape_cast (extract x[3])`."""
    source = op.operands[0].owner
    if isinstance(source, Operation):
        found = _spread(op, source)
        if found is not None:
            return found
    shape, result = shape_in(op.operands[0].type), op.results[0].type
    offsets, sizes, strides = (
        lists_of_numbers(op, name) for name in ("offsets", "sizes", "strides")
    )
    if len(sizes) != len(shape) or any(step != 1 for step in strides):
        return None
    count = len(sizes)
    while count and sizes[count - 1] == shape[count - 1]:
        count -= 1
    if count in (0, len(shape)) or any(size != 1 for size in sizes[:count]):
        return None
    while count < len(sizes) - 1 and sizes[count] == 1:
        count += 1
    places = {"static_position": attribute(f"array<i64: {', '.join(map(str, offsets[:count]))}>")}
    inner = vector_type(shape[count:], element_of(result))
    one = insert(build("vector.extract", op.operands, (inner,), places, op), op)
    return insert(build("vector.shape_cast", one.results, (result,), None, op), op).results[0]


def _fold_product(op: Operation) -> SSAValue | None:
    """`matmul(a, b, 0) + x => matmul(a, b, x)`"""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "tpu.matmul":
        return None
    if one_value(source.operands[2]) != 0 or len(list(source.results[0].uses)) > 1:
        return None
    stated = {**source.properties, **source.attributes}
    operands = (*source.operands[:2], op.operands[1])
    return insert(build("tpu.matmul", operands, (op.results[0].type,), stated, op), op).results[0]


def _fold_stride(op: Operation) -> SSAValue | None:
    """A load of rows one after another has no stride."""
    if set(integers_of(op, "strides") or (0,)) != {1}:
        return None
    segments = attribute(f"array<i32: 1, {len(op.operands) - 1}, 0>")
    stated = {"strides": attribute("array<i32>"), "operandSegmentSizes": segments}
    new = build("tpu.vector_load", op.operands, (op.results[0].type,), stated, op)
    return insert(new, op).results[0]


def _fold_masked_load(op: Operation) -> SSAValue | None:
    """A load whose mask is one constant is one of all elements, or what stands in their place."""
    mask = mask_of(op)
    if not mask:
        return None if mask is None else op.operands[-1]
    new = build("vector.load", op.operands[:-2], (op.results[0].type,), None, op)
    return insert(new, op).results[0]


def unmask_store(op: Operation) -> bool:
    """A store whose mask is one constant stores all elements, or none; whether it was so."""
    mask = mask_of(op)
    if mask is None:
        return False
    if mask:
        base, *indices = op.operands[:-2]
        insert(build("vector.store", (op.operands[-1], base, *indices), (), None, op), op)
    replace(op, [])
    return True


def _fold_rounding(op: Operation) -> SSAValue | None:
    """`fptosi (roundeven x)` rounds to nearest even itself."""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "math.roundeven":
        return None
    stated = {"rounding_mode": RoundingModeAttr("to_nearest_even")}
    new = build(name_of(op), source.operands, (op.results[0].type,), stated, op)
    return insert(new, op).results[0]


def _each(*folds: Callable[[Operation], SSAValue | None]) -> Callable[[Operation], SSAValue | None]:
    """The first fold that finds something."""

    def fold(op: Operation) -> SSAValue | None:
        return next((found for one in folds if (found := one(op)) is not None), None)

    return fold


_COMMUTES = ("arith.mulf", *(f"arith.{name}" for name in (*_EXTREMA, "andi", "ori", "muli")))
FOLDS: Mapping[str, Callable[[Operation], SSAValue | None]] = {
    **dict.fromkeys({*_UNITS, *_SAME}, _fold_unit),
    **dict.fromkeys(_COMMUTES, _each(_fold_swapped, _fold_unit)),
    "arith.addf": _each(_fold_swapped, _fold_product),
    "arith.cmpi": _fold_condition,
    "arith.addi": _each(_fold_swapped, _fold_unit, _fold_sums, _fold_product),
    "arith.subi": _each(_fold_unit, _fold_sums),
    "arith.select": _fold_choice,
    "arith.xori": _each(_fold_swapped, _fold_unit, _fold_twice),
    "tpu.fptosi": _fold_rounding,
    "tpu.strided_load": _fold_stride,
    "vector.maskedload": _fold_masked_load,
    "vector.extract_strided_slice": _fold_part,
    "vector.extract": _fold_extract,
    "arith.index_cast": _fold_index,
    "tpu.assume_multiple": _fold_multiple,
    "tpu.memref_slice": _fold_slice,
    "tpu.memref_squeeze": _fold_squeeze,
    "arith.sitofp": _fold_unsigned,
    "arith.uitofp": _fold_unsigned,
    "vector.broadcast": _fold_broadcast,
    "vector.shape_cast": _fold_reshape,
    "tpu.reshape": _fold_reshape,
    "tpu.bitcast_vreg": _fold_bits,
    "tpu.unpack_subelements": _fold_extension,
}
"""By operation, what it is the same as; None where it is itself."""
