"""Operations on constants are constants: what the interpreter says of them, for one element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of
from mlirhlo.mosaic.attributes import attribute_of, name_of
from mlirhlo.mosaic.interpreter.ops import arith, math, tpu_misc
from mlirhlo.mosaic.interpreter.registry import MEANINGS
from mlirhlo.mosaic.pipeline.building import attribute, build, element_of, insert, is_vector

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

assert arith
assert math
assert tpu_misc

_DIVIDES = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")


def fold_constants(op: Operation) -> SSAValue | None:
    """The constant that an elementwise operation makes of constants of one value each."""
    if not op.operands or len(op.results) != 1:
        return None
    given = [one_value(operand) for operand in op.operands]
    if any(value is None for value in given):
        return None
    values = [np.asarray(value).reshape(1) for value in given]
    if name_of(op) in _DIVIDES and not values[1].astype(bool).all():
        return None
    with np.errstate(all="ignore"):
        run = MEANINGS[name_of(op)](op, cast("Any", None))
        found = np.asarray(run(cast("Any", None), *values)).reshape(-1)[0]
    return constant_like(op, found)


def one_value(value: SSAValue) -> Any:
    """The number that a constant is, or has everywhere; None for others."""
    owner = value.owner
    if not isinstance(owner, Operation) or name_of(owner) != "arith.constant":
        return None
    stated = attribute_of(owner, "value")
    if stated is None:
        return None
    if isinstance(stated, DenseAttr) or is_vector(value.type):
        numbers = array_of(stated).reshape(-1)
        # NaN is no splat here.
        return numbers[0] if numbers.size and (numbers == numbers[0]).all() else None

    made = arith.constant(owner, cast("Any", None))
    return made(cast("Any", None))


def constant_like(op: Operation, number: Any) -> SSAValue | None:
    """A constant of an operation's result type, before it."""
    type_ = op.results[0].type
    element = element_of(type_)
    plain: Attribute
    if str(element).startswith(("i", "index")):
        plain = IntegerAttr(int(number), cast("Any", element))
    elif np.isfinite(np.float64(number)):
        plain = FloatAttr(float(number), cast("Any", element))
    else:
        return None
    value = splat(plain, type_) if is_vector(type_) else plain
    if value is None:
        return None
    return insert(build("arith.constant", (), (type_,), {"value": value}, op), op).results[0]


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
