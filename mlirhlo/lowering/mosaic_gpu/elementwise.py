"""Operations on each element of a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of
from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.hlo_to_loops.element_math import FUNCTIONS
from mlirhlo.lowering.mosaic_gpu.fragments import SPLAT, Fragment, squeezed
from mlirhlo.lowering.mosaic_gpu.writer import Writer, unfit

MATH: Mapping[str, str] = {
    "math.exp": "exponential",
    "math.expm1": "exponential-minus-one",
    "math.log": "log",
    "math.log1p": "log-plus-one",
    "math.tanh": "tanh",
    "math.erf": "erf",
    "math.sin": "sine",
    "math.cos": "cosine",
    "math.tan": "tan",
    "math.atan2": "atan2",
    "math.powf": "power",
    "math.cbrt": "cbrt",
}
"""Functions of floats, by the names that `element_math` has for them."""


def elementwise(w: Writer, op: Operation) -> Any:
    """An operation on each element."""
    result = op.results[0]
    if op.name == "arith.constant":
        return _constant(w, op)
    if not isinstance(result.type, VectorType):
        return scalar(w, op, [w.values[v] for v in op.operands], result.type)
    layout = w.layout(result)
    operands = [
        w.fragment(v, layout) if isinstance(v.type, VectorType) else w.values[v]
        for v in op.operands
    ]
    given = [w.values[v] for v in op.operands]
    if all(v.layout == SPLAT for v in given if isinstance(v, Fragment)):
        layout, operands = SPLAT, given
    type_ = cast(Any, op).results[0].type
    element = type_.element_type
    count = len(next(v for v in operands if isinstance(v, Fragment)).registers)
    registers = [
        scalar(w, op, [v.registers[n] if isinstance(v, Fragment) else v for v in operands], element)
        for n in range(count)
    ]
    return Fragment(squeezed(type_), layout, registers, element)


def _constant(w: Writer, op: Operation) -> Any:
    value: Any = op.properties["value"]
    type_: Any = op.results[0].type
    if not isinstance(type_, VectorType):
        return w.b.constant(_number(value), INDEX if type_ == INDEX else type_)
    element: Any = cast(Any, type_).element_type
    register = w.b.constant(_number(value), element)
    return Fragment(squeezed(type_), SPLAT, [register], element)


def scalar(w: Writer, op: Operation, operands: Sequence[SSAValue], type_: Attribute) -> SSAValue:
    """One element of an operation."""
    b = w.b
    name = MATH.get(op.name)
    if name is not None:
        if isinstance(type_, Float32Type):
            return FUNCTIONS[name](b, *operands)
        raise unfit(f"{op.name} of {type_}", "compute in f32 and cast")
    match op.name:
        case "math.rsqrt":
            from xdsl.dialects.math import SqrtOp

            return b.divf(b.constant(1.0, type_), b.emit(SqrtOp, operands, type_))
        case "arith.floordivsi":
            return _floor_divided(w, operands)
        case _:
            return b.emit(type(op), operands, type_, dict(op.properties))


def _floor_divided(w: Writer, operands: Sequence[SSAValue]) -> SSAValue:
    from xdsl.dialects import arith

    b = w.b
    x, y = operands
    quotient, rest = (
        b.emit(arith.DivSIOp, (x, y), x.type),
        b.emit(arith.RemSIOp, (x, y), x.type),
    )
    zero = b.constant(0, x.type)
    differs = b.xori(b.cmpi("slt", rest, zero), b.cmpi("slt", y, zero))
    is_less = b.andi(b.cmpi("ne", rest, zero), differs)
    return b.select(is_less, b.subi(quotient, b.constant(1, x.type)), quotient)


def _number(value: Any) -> Any:
    if isinstance(value, DenseAttr):
        return array_of(value).reshape(-1)[0].item()
    if isinstance(value, DenseIntOrFPElementsAttr):
        return next(iter(cast(Any, value).iter_values()))
    number = value.value.data
    if isinstance(value, IntegerAttr) and cast(Any, value).type == IntegerType(1):
        return bool(number)
    return number
