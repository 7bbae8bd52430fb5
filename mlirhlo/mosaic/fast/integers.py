"""Operations on integers without sign, and comparisons: StableHLO has signs in types, and one order of floats."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.mosaic.attributes import integer_of
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, type_of

_ORDERS = ("EQ", "NE", "LT", "LE", "GT", "GE")
"""Predicates of `arith.cmpi`; four without sign follow."""
_ORDERED = {1: "EQ", 2: "GT", 3: "GE", 4: "LT", 5: "LE", 13: "NE"}
"""Predicates of `arith.cmpf` that StableHLO has; all but the last are false of NaN."""
_OPPOSITE = {9: 5, 10: 4, 11: 3, 12: 2, 8: 6}
"""Those that are true of NaN, by what is false exactly there."""
_SAME = {
    "arith.divui": "divide",
    "arith.maxui": "maximum",
    "arith.minui": "minimum",
    "arith.remui": "remainder",
}


def unsigned(w: Writer, value: Val) -> Val:
    """The same bits as a number without sign; i1 is one anyway."""
    return value if value.element == "i1" else _bits(w, value, "u" + value.element)


def _bits(w: Writer, value: Val, element: str) -> Val:
    return w.op("bitcast_convert", [value], value.shape, element)


def _without_sign(w: Writer, op: Operation, values: list[Val]) -> Val:
    made = w.like(_SAME[op.name], *(unsigned(w, value) for value in values))
    return _bits(w, made, values[0].element)


def _widened(w: Writer, op: Operation, values: list[Val]) -> Val:
    element = type_of(op.results[0].type)[1]
    if values[0].element == "i1":
        return w.convert(values[0], element)
    return _bits(w, w.convert(unsigned(w, values[0]), "u" + element), element)


def _to_float(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.convert(unsigned(w, values[0]), type_of(op.results[0].type)[1])


def _from_float(w: Writer, op: Operation, values: list[Val]) -> Val:
    element = type_of(op.results[0].type)[1]
    return _bits(w, w.convert(values[0], "u" + element), element)


def _compare_integers(w: Writer, op: Operation, values: list[Val]) -> Val:
    number = integer_of(op, "predicate")
    if number < len(_ORDERS):
        return w.compare(_ORDERS[number], values[0], values[1])
    a, b = (unsigned(w, value) for value in values)
    return w.compare(_ORDERS[number - 4], a, b)


def _compare_floats(w: Writer, op: Operation, values: list[Val]) -> Val:
    return _compared(w, op, integer_of(op, "predicate"), *values)


def _compared(w: Writer, op: Operation, number: int, a: Val, b: Val) -> Val:
    if number in _ORDERED:
        return w.compare(_ORDERED[number], a, b)
    if number in _OPPOSITE:
        return w.like("not", _compared(w, op, _OPPOSITE[number], a, b))
    if number == 6:  # ordered and different
        return w.like("or", w.compare("LT", a, b), w.compare("GT", a, b))
    if number == 7:  # ordered
        return w.like("and", w.compare("EQ", a, a), w.compare("EQ", b, b))
    if number == 14:  # unordered
        return w.like("or", w.compare("NE", a, a), w.compare("NE", b, b))
    raise has_no_program(op, "this comparison")


def _trailing_zeros(w: Writer, op: Operation, values: list[Val]) -> Val:
    (x,) = values
    below = w.like("subtract", x, w.constant(1, x.element, x.shape))
    return w.like("popcnt", w.like("and", w.like("not", x), below))


TABLE = {
    **dict.fromkeys(_SAME, _without_sign),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.extui": _widened,
    "arith.fptoui": _from_float,
    "arith.uitofp": _to_float,
    "math.cttz": _trailing_zeros,
}
"""By operation, what writes its one result."""
