"""Opcodes that apply a computation to elements."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.table.attributes import (
    DIMENSIONS,
    TO_APPLY,
    TO_APPLY_OR_CALLS,
    WINDOW,
    spec,
)
from mlirhlo.dialects.hlo.table.columns import ALL, Arity, Calls, Layouts, Opcode

REDUCTION_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "map",
        Arity.ANY,
        (spec("dimensions", k.INTEGERS), TO_APPLY),
        infers=True,
        calls=Calls.ELEMENTS,
        own_type=True,
        layouts=Layouts.ALIKE,
        work="map",
        summary="a computation on each element",
    ),
    Opcode(
        "reduce",
        Arity.EVEN,
        (DIMENSIONS, TO_APPLY),
        infers=True,
        data=ALL,
        calls=Calls.ELEMENTS,
        summary="dimensions folded by a computation from initial values",
    ),
    Opcode(
        "reduce-window",
        Arity.EVEN,
        (WINDOW, TO_APPLY),
        infers=True,
        data=ALL,
        calls=Calls.ELEMENTS,
        layouts=Layouts.ALIKE,
        work="window",
        summary="each window folded by a computation",
    ),
    Opcode(
        "scan",
        Arity.ANY,
        (
            DIMENSIONS,
            spec("num_carries", k.INTEGER, required=True),
            spec("is_reverse", k.BOOLEAN, "false"),
            spec("is_associative", k.BOOLEAN, "false", always=True),
            TO_APPLY_OR_CALLS,
        ),
        infers=True,
        calls=Calls.SCAN,
        own_type=True,
        layouts=Layouts.ALIKE,
        work="scan",
        summary="a computation carried along a dimension, outputs stacked",
    ),
    Opcode(
        "select-and-scatter",
        3,
        (
            WINDOW,
            spec("select", k.COMPUTATION, required=True),
            spec("scatter", k.COMPUTATION, required=True),
        ),
        infers=True,
        data=ALL,
        calls=Calls.ELEMENTS,
        layouts=Layouts.ALIKE,
        work="window",
        summary="source values added where the selected element of each window lies",
    ),
    Opcode(
        "sort",
        Arity.ANY,
        (DIMENSIONS, spec("is_stable", k.BOOLEAN, "false"), TO_APPLY),
        infers=True,
        calls=Calls.ELEMENTS,
        own_type=True,
        layouts=Layouts.ALIKE,
        summary="operands sorted together along a dimension by a comparator",
    ),
    Opcode(
        "topk",
        1,
        (
            spec("k", k.INTEGER, required=True),
            spec("largest", k.BOOLEAN, "true", always=True),
            spec("is_stable", k.BOOLEAN, "false", newer=True),
        ),
        infers=True,
        own_type=True,
        library=True,
        work="topk",
        summary="the k largest or smallest of the last dimension and their indices",
    ),
)
