"""Rules of constant, iota, get-tuple-element and sort."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    ConstantOp,
    GetTupleElementOp,
    IotaOp,
    MultiplyOp,
    SortOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    forward,
    is_array,
    literal_of,
    made_by,
    sized,
    splat_bytes,
)
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ConstantOp)
def constant_of_equals(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({c, c, …}) => bc(c)"""
    literal = literal_of(op.output)
    if literal is None or array(op).element_count <= 1:
        return
    if (one := splat_bytes(op.output)) is None:
        return
    b = Builder(op, rewriter)
    scalar = b.constant(
        Literal(ArrayShape(literal.element_type, (), (), sized(array(op), ()).layout), one)
    )
    b.spread(scalar, array(op))
    b.done()


_LONGEST_IOTA = 1 << 16
"""Longer constants are not looked at: numbers that long are weights, not iotas."""


@rule(ConstantOp)
def constant_of_iota(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({0, 1, 2, …}) => iota"""
    literal = literal_of(op.output)
    if literal is None or not literal.element_type.is_integer or array(op).rank != 1:
        return
    if not 1 < array(op).element_count <= _LONGEST_IOTA or literal.element_type.bits < 8:
        return
    import numpy as np

    values = literal.array
    if values[0] == 0 and bool((values == np.arange(len(values))).all()):
        b = Builder(op, rewriter)
        b.like(IotaOp, iota_dimension=integer(0))
        b.done()


@rule(IotaOp)
def iota_of_one(op: IotaOp, rewriter: Rewriter) -> None:
    """iota => 0, its dimension of size at most 1"""
    if array(op).dimensions[op.iota_dimension] <= 1 and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        if array(op).element_count == 1:
            import numpy as np

            shape = array(op)
            b.constant(
                Literal.from_array(shape, np.zeros(shape.dimensions, shape.element_type.dtype))
            )
        else:
            b.splat(array(op), 0)
        b.done()


@rule(GetTupleElementOp, reads=(TupleOp,))
def get_tuple_element_of_tuple(op: GetTupleElementOp, rewriter: Rewriter) -> None:
    """get-tuple-element(tuple(…, x_i, …), i) => x_i"""
    if (built := made_by(op.operand, TupleOp)) is not None:
        forward(op, rewriter, built.inputs[op.index])


@rule(SortOp)
def sort_of_one(op: SortOp, rewriter: Rewriter) -> None:
    """sort(x, …) => x, the dimension of size at most 1"""
    dim, first = op.dimensions[0], array(op.inputs[0])
    if first.is_dynamic or (first.dimensions[dim] > 1 and first.element_count):
        return
    if is_array(op):
        forward(op, rewriter, op.inputs[0])
        return
    b = Builder(op, rewriter)
    b.like(TupleOp, *op.inputs)
    b.done()


@rule(ConstantOp)
def constant_of_scaled_iota(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({0, s, 2 s, …}) => iota * bc(s), s more than 1"""
    literal = literal_of(op.output)
    if literal is None or not literal.element_type.is_integer or array(op).rank != 1:
        return
    if not 1 < array(op).element_count <= _LONGEST_IOTA or literal.element_type.bits < 8:
        return
    import numpy as np

    values = literal.array
    step, count = int(values[1]), len(values)
    most = (1 << (literal.element_type.bits - literal.element_type.is_signed)) - 1
    if values[0] != 0 or step <= 1 or step * (count - 1) > most:
        return
    if bool((values == np.arange(count, dtype=values.dtype) * values[1]).all()):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, b.like(IotaOp, iota_dimension=integer(0)), b.splat(array(op), step))
        b.done()


RULES = (
    constant_of_equals,
    constant_of_iota,
    constant_of_scaled_iota,
    iota_of_one,
    get_tuple_element_of_tuple,
    sort_of_one,
)
