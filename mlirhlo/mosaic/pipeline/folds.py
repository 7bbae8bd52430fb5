"""What canonicalisation knows of single operations: constants, units, things done and undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.mosaic.attributes import attribute_of, integer_of, name_of
from mlirhlo.mosaic.pipeline.building import attribute, build, constant, insert, is_vector, replace
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

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


def splat(value: Attribute | None, type_: Attribute) -> Attribute | None:
    """The dense attribute with one value everywhere; None where `value` is none."""
    if isinstance(value, IntegerAttr | FloatAttr):
        number: Any = cast("Any", value).value.data
        element = cast("Any", type_).element_type
        if str(element) == "index":
            return None
        if isinstance(value, IntegerAttr):
            text = str(number)
            if str(element) == "i1":
                text = "true" if number else "false"
            return attribute(f"dense<{text}> : {type_}")
        return attribute(f"dense<{_float(cast('Any', value))}> : {type_}")
    if isinstance(value, DenseAttr | DenseIntOrFPElementsAttr):
        inner = str(cast("Attribute", value))
        text = inner[inner.index("<") + 1 : inner.rindex(">", 0, inner.rindex(" : "))]
        return attribute(f"dense<{text}> : {type_}") if not set('["') & set(text) else None
    return None


def _float(value: Any) -> str:
    return str(value).rpartition(" : ")[0] or str(value)


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
    """A slice at the beginning that has the type of its source is the source."""
    source, *rest = op.operands
    is_whole = source.type == op.results[0].type and all(constant_of(at) == 0 for at in rest)
    return source if is_whole else None


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


_UNIT = {"arith.addi": 0, "arith.subi": 0, "arith.muli": 1, "arith.divsi": 1, "arith.ori": 0}
"""What changes nothing on the right."""


def _fold_unit(op: Operation) -> SSAValue | None:
    """`x + 0 => x`, `x * 1 => x`, `x / 1 => x`."""
    if _number(op.operands[1]) == _UNIT[name_of(op)]:
        return op.operands[0]
    return None


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


def _fold_choice(op: Operation) -> SSAValue | None:
    """`select m, x, x => x`"""
    return op.operands[1] if op.operands[1] is op.operands[2] else None


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


def _each(*folds: Callable[[Operation], SSAValue | None]) -> Callable[[Operation], SSAValue | None]:
    """The first fold that finds something."""

    def fold(op: Operation) -> SSAValue | None:
        return next((found for one in folds if (found := one(op)) is not None), None)

    return fold


_COMMUTES = (
    "arith.addf",
    "arith.mulf",
    "arith.andi",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxsi",
    "arith.minsi",
)
FOLDS: Mapping[str, Callable[[Operation], SSAValue | None]] = {
    **dict.fromkeys(_COMMUTES, _fold_swapped),
    "arith.cmpi": _fold_condition,
    "arith.addi": _each(_fold_swapped, _fold_unit, _fold_sums),
    "arith.subi": _each(_fold_unit, _fold_sums),
    "arith.muli": _each(_fold_swapped, _fold_unit),
    "arith.divsi": _fold_unit,
    "arith.select": _fold_choice,
    "arith.ori": _each(_fold_swapped, _fold_unit),
    "arith.xori": _each(_fold_swapped, _fold_twice),
    "vector.extract": _fold_extract,
    "arith.index_cast": _fold_index,
    "tpu.memref_slice": _fold_slice,
    "arith.sitofp": _fold_unsigned,
    "arith.uitofp": _fold_unsigned,
    "vector.broadcast": _fold_broadcast,
    "vector.shape_cast": _fold_reshape,
    "tpu.reshape": _fold_reshape,
    "tpu.bitcast_vreg": _fold_bits,
    "tpu.unpack_subelements": _fold_extension,
}
"""By operation, what it is the same as; None where it is itself."""
