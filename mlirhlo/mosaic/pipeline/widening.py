"""Arithmetic and casts of narrow elements that a generation has not, by way of 32-bit ones.

Before (v5e): `%r = arith.addf %a, %b : vector<16x128xbf16>`. After: `tpu.extf` of both, the sum in f32, and
`tpu.truncf`. Source: what the TPU compiler's `canonicalize-mosaic` writes for every operation, element
type and generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import IntegerType, bf16, f32, i32

from mlirhlo.dialects.tpu.attributes import RoundingModeAttr
from mlirhlo.mosaic.attributes import integer_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    element_of,
    insert,
    is_vector,
    replace,
    vector_type,
)
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from mlirhlo.mosaic.target.generations import Generation

_FLOATS = frozenset(
    {
        *(f"arith.{name}" for name in ("addf", "subf", "mulf", "maximumf", "minimumf")),
        *(f"math.{name}" for name in ("exp", "exp2", "log", "log2", "tanh", "erf", "powf")),
        "tpu.logistic",
        "tpu.reduce",
    }
)
"""What is computed in f32 before generation 6; other operations lower bf16 themselves."""
_INTEGERS = frozenset({"arith.addi", "arith.subi", "arith.muli"})
_EQUALITY = (0, 1)
"""`eq` and `ne` of `arith.cmpi`."""


def widen(op: Operation, generation: Generation) -> bool:
    """Rewrites an operation on vectors that the generation has not; False where it has it."""
    name, values = name_of(op), (*op.operands, *op.results)
    if not any(is_vector(value.type) for value in values):
        return False
    is_narrow = generation.number < 6
    first = element_name(values[0].type) if values else ""
    if is_narrow and first == "bf16" and name in _FLOATS:
        _computed(op, f32, "tpu.extf", "tpu.truncf")
    elif is_narrow and first == "i16" and name in _INTEGERS:
        _computed(op, i32, "arith.extsi", "arith.trunci")
    elif name == "arith.cmpf" and is_narrow and first == "bf16":
        op.operands = [_cast(op, value, "tpu.extf", f32) for value in op.operands]
    elif name == "arith.cmpi":
        return _compared(op, generation)
    elif name == "arith.select" and generation.number < 5:
        return _selected(op)
    elif name == "arith.extui" and first == "i1" and generation.number < 5:
        return _words_of_mask(op)
    elif name in ("tpu.fptosi", "tpu.fptoui"):
        return _to_integers(op, generation)
    elif name in ("tpu.sitofp", "tpu.uitofp"):
        return _to_floats(op, generation)
    elif name in ("tpu.truncf", "tpu.extf"):
        return _between_floats(op, generation)
    else:
        return False
    return True


def _cast(op: Operation, value: SSAValue, name: str, element: Attribute) -> SSAValue:
    """A cast of a value to vectors of `element`, before `op`."""
    extra: dict[str, Attribute] = {}
    if name.startswith("tpu.") and name != "tpu.extf":
        toward = "towards_zero" if name.startswith("tpu.fpto") else "to_nearest_even"
        extra["rounding_mode"] = RoundingModeAttr(toward)
    type_ = vector_type(shape_in(value.type), element)
    return insert(build(name, (value,), (type_,), extra, op), op).results[0]


def _computed(op: Operation, element: Attribute, extend: str, truncate: str) -> None:
    """The same operation on wide elements, and its result made narrow again."""
    wide = [_cast(op, value, extend, element) for value in op.operands]
    result = op.results[0].type
    type_ = vector_type(shape_in(result), element)
    stated = {**op.properties, **op.attributes}
    new = insert(build(name_of(op), wide, (type_,), stated, op), op)
    replace(op, [_cast(op, new.results[0], truncate, element_of(result))])


def _compared(op: Operation, generation: Generation) -> bool:
    """Equality of bytes is there from generation 5 on, order of 16 bits from 6 on."""
    bits = width_in_bits(element_name(op.operands[0].type))
    if element_name(op.operands[0].type) == "i1":
        return False
    least = 16 if generation.number >= 6 else 32
    if integer_of(op, "predicate") in _EQUALITY and generation.number >= 5:
        least = 8
    if bits >= least:
        return False
    element = IntegerType(least)
    op.operands = [_cast(op, value, "arith.extsi", element) for value in op.operands]
    return True


def _selected(op: Operation) -> bool:
    """Generation 4 selects among words; narrow elements other than bf16 are read as integers."""
    element = element_of(op.results[0].type)
    bits = width_in_bits(str(element))
    if bits == 32 or not is_vector(op.operands[0].type):
        return False
    mask, *sides = op.operands
    if element == bf16:
        wide = [_cast(op, value, "tpu.extf", f32) for value in sides]
    else:
        sides = [_cast(op, value, "arith.bitcast", IntegerType(bits)) for value in sides]
        wide = [_cast(op, value, "arith.extsi", i32) for value in sides]
    chosen = insert(build("arith.select", (mask, *wide), (wide[0].type,), None, op), op).results[0]
    if element == bf16:
        found = _cast(op, chosen, "tpu.truncf", element)
    else:
        found = _cast(op, chosen, "arith.trunci", IntegerType(bits))
        found = _cast(op, found, "arith.bitcast", element)
    replace(op, [found])
    return True


def _words_of_mask(op: Operation) -> bool:
    """Generation 4 makes words of masks, and narrow elements of those."""
    element = element_of(op.results[0].type)
    if width_in_bits(str(element)) == 32:
        return False
    words = _cast(op, op.operands[0], "arith.extui", i32)
    same = insert(build("tpu.bitcast", (words,), (words.type,), None, op), op).results[0]
    replace(op, [_cast(op, same, "arith.trunci", element)])
    return True


def _to_integers(op: Operation, generation: Generation) -> bool:
    """Narrow integers are i32 within their bounds, truncated."""
    value, element = op.operands[0], element_of(op.results[0].type)
    before, bits = element_name(value.type), width_in_bits(str(element))
    is_signed = name_of(op) == "tpu.fptosi"
    is_own = {
        32: before == "f32",
        8: (before == "bf16" and generation.number >= 6)
        or (before == "f32" and generation.number >= 7),
    }
    if is_own.get(max(bits, 8), False):
        return False
    rounding = op.properties.get("rounding_mode") or op.attributes.get("rounding_mode")
    extra = {"rounding_mode": rounding} if rounding is not None else {}
    if before != "f32":
        value = _cast(op, value, "tpu.extf", f32)
    words = vector_type(shape_in(value.type), i32)
    found: SSAValue
    if bits == 32:
        found = insert(build(name_of(op), (value,), (words,), extra, op), op).results[0]
    else:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
        bounds = [_everywhere(op, number, value.type) for number in (low, high)]
        for name, bound in zip(("arith.maximumf", "arith.minimumf"), bounds, strict=True):
            value = insert(build(name, (value, bound), (value.type,), None, op), op).results[0]
        number = insert(build("tpu.fptosi", (value,), (words,), extra, op), op).results[0]
        found = _cast(op, number, "arith.trunci", element)
    replace(op, [found])
    return True


def _everywhere(op: Operation, number: int, type_: Attribute) -> SSAValue:
    stated = {"value": attribute(f"dense<{float(number)}> : {type_}")}
    return insert(build("arith.constant", (), (type_,), stated, op), op).results[0]


def _to_floats(op: Operation, generation: Generation) -> bool:
    """Integers are f32 by way of i32."""
    value, element = op.operands[0], element_of(op.results[0].type)
    before, after = element_name(value.type), element_name(element)
    is_f8 = after.startswith("f8")
    if (before, after) == ("i32", "f32"):
        return False
    if before in ("i8", "i4") and after == "bf16" and generation.number >= 6:
        return False
    is_signed = name_of(op) == "tpu.sitofp" and before != "i1"
    extend = "arith.extsi" if is_signed else "arith.extui"
    if is_f8 and before in ("i8", "i4") and generation.number >= 7:
        if before == "i8":
            return False
        cast_ = _cast(op, _cast(op, value, extend, IntegerType(8)), name_of(op), element)
        replace(op, [cast_])
        return True
    name = name_of(op)
    if before != "i32":
        value, name = _cast(op, value, extend, i32), "tpu.sitofp"
    found = _cast(op, value, name, f32)
    if after != "f32":
        found = _cast(op, found, "tpu.truncf", element)
    replace(op, [found])
    return True


def _between_floats(op: Operation, generation: Generation) -> bool:
    """f8 and bf16 meet in f32 before generation 7."""
    before, after = element_name(op.operands[0].type), element_name(op.results[0].type)
    if generation.number >= 7 or not {before, after} & {"bf16"} or "f32" in (before, after):
        return False
    element = cast("Any", element_of(op.results[0].type))
    replace(op, [_cast(op, _cast(op, op.operands[0], "tpu.extf", f32), "tpu.truncf", element)])
    return True
