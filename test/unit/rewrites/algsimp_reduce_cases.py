"""Left sides for the newer rules of `algsimp` about reduces and reduce-windows."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ADD, ZERO
from unit.rewrites.algsimp_shape_cases import NUMERIC, lines
from unit.rewrites.rule_proofs import FLOATS, INTEGERS, SIGNED, WIDE, Case


def scalar_function(opcode: str, name: str = "f", type_: str = "T") -> str:
    """A computation of two scalars."""
    return (
        f"{name} {{\n  a = {type_}[] parameter(0)\n  b = {type_}[] parameter(1)\n"
        f"  ROOT r = {type_}[] {opcode}(a, b)\n}}\n"
    )


NOT_BINARY = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = T[] negate(b)\n"
    "  ROOT r = T[] subtract(a, c)\n}\n"
)
IN_TUPLE = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = T[] add(a, b)\n"
    "  ROOT r = (T[]) tuple(c)\n}\n"
)


def arg_extreme(direction: str, *, nan: bool, tie: str = "LT") -> str:
    """The computation that front ends make of arg-max and arg-min."""
    better = f"  g = pred[] compare(a, b), direction={direction}\n"
    if nan:
        better += "  n = pred[] compare(a, a), direction=NE\n  p = pred[] or(g, n)\n"
    else:
        better += "  p = pred[] copy(g)\n" if tie != "LT" else ""
    p = "p" if nan else "g"
    return (
        "f {\n  a = T[] parameter(0)\n  i = s32[] parameter(1)\n  b = T[] parameter(2)\n"
        "  j = s32[] parameter(3)\n"
        + better
        + f"  e = pred[] compare(a, b), direction=EQ\n  l = pred[] compare(i, j), direction={tie}\n"
        f"  t = pred[] and(e, l)\n  q = pred[] or({p}, t)\n  v = T[] select({p}, a, b)\n"
        "  k = s32[] select(q, i, j)\n  ROOT r = (T[], s32[]) tuple(v, k)\n}\n"
    )


ARG = "m = (T[], s32[]) reduce(x, i, s, z), dimensions={0}, to_apply=f"
OVER_TUPLE = "m = (T[2], s32[2]) reduce(x, i, s, z), dimensions={0}, to_apply=f"

CASES: Mapping[str, tuple[Case, ...]] = {
    "reduce_of_one_in_tuple": (
        lines(
            "x: T[3,2]",
            ZERO,
            "(T[2]) reduce(x, z), dimensions={0}, to_apply=f",
            types=INTEGERS,
            computations=IN_TUPLE,
        ),
        lines(
            "x: T[3,2]",
            ZERO,
            "T[2] reduce(x, z), dimensions={0}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_negate": (
        lines(
            "x: T[3,2]",
            ZERO,
            "n = T[3,2] negate(x)",
            "T[2] reduce(n, z), dimensions={0}, to_apply=f",
            types=FLOATS,
            computations=ADD,
        ),
        lines(
            "x: T[3,2]",
            "z = T[] constant(1)",
            "n = T[3,2] negate(x)",
            "T[2] reduce(n, z), dimensions={0}, to_apply=f",
            types=WIDE,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[3,2]",
            ZERO,
            "n = T[3,2] negate(x)",
            "T[2] reduce(n, z), dimensions={0}, to_apply=f",
            types=SIGNED,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_reduce": (
        lines(
            "x: T[3,2]",
            "z = T[] constant(1)",
            "a = T[2] reduce(x, z), dimensions={0}, to_apply=f",
            "T[] reduce(a, z), dimensions={0}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
        *(
            lines(
                "x: T[3,2,4,5]",
                f"z = T[] constant({start})",
                "a = T[2,5] reduce(x, z), dimensions={0,2}, to_apply=f",
                "T[2] reduce(a, z), dimensions={1}, to_apply=f",
                types=types,
                computations=scalar_function(opcode),
            )
            for opcode, start, types in (
                ("add", 0, (*INTEGERS, *WIDE)),
                ("multiply", 1, INTEGERS),
                ("maximum", 0, ("u8", "u32")),
                ("and", -1, SIGNED),
            )
        ),
        lines(
            "x: T[3,2]",
            ZERO,
            "y = T[] constant(0)",
            "a = T[2] reduce(x, z), dimensions={0}, to_apply=f",
            "T[] reduce(a, y), dimensions={0}, to_apply=g",
            types=NUMERIC,
            computations=ADD + scalar_function("add", "g"),
        ),
        lines(
            "x: T[3,2]",
            ZERO,
            "a = T[2] reduce(x, z), dimensions={0}, to_apply=f",
            "T[] reduce(a, z), dimensions={0}, to_apply=g",
            types=NUMERIC,
            computations=ADD + scalar_function("maximum", "g"),
            fires=False,
        ),
        lines(
            "x: T[3,2]",
            ZERO,
            "y = T[] constant(1)",
            "a = T[2] reduce(x, z), dimensions={0}, to_apply=f",
            "T[] reduce(a, y), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_beside_reshape": (
        lines(
            "x: T[6,5]",
            ZERO,
            "a = T[2,3,5] reshape(x)",
            "T[2,3] reduce(a, z), dimensions={2}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
        ),
        lines(
            "x: T[2,5,2,3]",
            ZERO,
            "a = T[2,5,6] reshape(x)",
            "T[2,6] reduce(a, z), dimensions={1}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
        ),
        lines(
            "x: T[6,5]",
            ZERO,
            "a = T[2,3,5] reshape(x)",
            "T[2,5] reduce(a, z), dimensions={1}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_concatenate": (
        lines(
            "x y: T[2,3]",
            "z = T[] constant(1)",
            "c = T[4,3] concatenate(x, y), dimensions={0}",
            "T[3] reduce(c, z), dimensions={0}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[2,3]",
            "y: T[4,3]",
            ZERO,
            "c = T[6,3] concatenate(x, y), dimensions={0}",
            "T[3] reduce(c, z), dimensions={0}, to_apply=f",
            types=(*INTEGERS, *WIDE),
            computations=ADD,
        ),
        lines(
            "x y: T[2]",
            ZERO,
            "c = T[4] concatenate(x, y), dimensions={0}",
            "T[] reduce(c, z), dimensions={0}, to_apply=f",
            types=SIGNED,
            computations=ADD,
            options={"enable_unconditional_reduce_of_concat_replacement": False},
        ),
        lines(
            "x y: T[2]",
            ZERO,
            "c = T[4] concatenate(x, y), dimensions={0}",
            "T[] reduce(c, z), dimensions={0}, to_apply=f",
            types=SIGNED,
            computations=NOT_BINARY,
            fires=False,
        ),
        lines(
            "x: T[2,3]",
            "y: T[4,3]",
            ZERO,
            "c = T[6,3] concatenate(x, y), dimensions={0}",
            "T[3] reduce(c, z), dimensions={0}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            options={"enable_unconditional_reduce_of_concat_replacement": False},
            fires=False,
        ),
        lines(
            "x y: T[2,3]",
            ZERO,
            "c = T[4,3] concatenate(x, y), dimensions={0}",
            "T[4] reduce(c, z), dimensions={1}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_batched_dot": (
        lines(
            "x: T[2,5,3,4]",
            "y: T[5,2,4,6]",
            ZERO,
            "d = T[2,5,3,6] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, "
            "lhs_contracting_dims={3}, rhs_contracting_dims={2}",
            "T[5,3,6] reduce(d, z), dimensions={0}, to_apply=f",
            types=("s32", "f32", "f64"),
            computations=ADD,
        ),
        lines(
            "x: T[2,3,4]",
            "y: T[2,4,6]",
            ZERO,
            "d = T[2,3,6] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            "T[2,6] reduce(d, z), dimensions={1}, to_apply=f",
            types=("f32",),
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_scalar_broadcast": (
        *(
            lines(
                "x s: T[]",
                "a = T[2,3] broadcast(x), dimensions={}",
                "T[] reduce(a, s), dimensions={0,1}, to_apply=f",
                types=types,
                computations=scalar_function(opcode),
            )
            for opcode, types in (
                ("maximum", (*INTEGERS, *FLOATS)),
                ("minimum", (*INTEGERS, *FLOATS)),
                ("and", INTEGERS),
                ("or", INTEGERS),
            )
        ),
        lines(
            "x s: T[]",
            "a = T[2,3] broadcast(x), dimensions={}",
            "T[] reduce(a, s), dimensions={0,1}, to_apply=f",
            types=INTEGERS,
            computations=scalar_function("xor"),
            fires=False,
        ),
    ),
    "reduce_to_place_in_constant": tuple(
        lines(
            f"c = T[] constant({value})",
            "x = T[3,2] broadcast(c), dimensions={}",
            "i = s32[3,2] iota(), iota_dimension=0",
            f"s = T[] constant({start})",
            "z = s32[] constant(0)",
            OVER_TUPLE.removeprefix("m = "),
            types=types,
            computations=arg_extreme(direction, nan=types is WIDE),
            fires=fires,
        )
        for value, start, direction, types, fires in (
            (2, "-inf", "GT", WIDE, True),
            ("-inf", "-inf", "GT", WIDE, True),
            (2, "inf", "LT", WIDE, True),
            (2, 0, "GT", ("u8", "s32"), True),
            (2, 3, "GT", ("s32",), False),
            ("nan", "-inf", "GT", WIDE, False),
        )
    ),
    "reduce_to_extreme_with_place": tuple(
        lines(
            "x: T[5]",
            "i = s32[5] iota(), iota_dimension=0",
            f"s = T[] constant({start})",
            "z = s32[] constant(0)",
            ARG,
            f"e = T[] reduce(x, {other}), dimensions={{0}}, to_apply=g",
            "(T[], (T[], s32[])) tuple(e, m)",
            types=types,
            computations=arg_extreme(direction, nan=types is WIDE) + scalar_function(opcode, "g"),
            fires=fires,
        )
        for start, other, direction, opcode, types, fires in (
            ("-inf", "s", "GT", "maximum", WIDE, True),
            ("inf", "s", "LT", "minimum", WIDE, True),
            (0, "s", "GT", "maximum", ("u8", "u32"), True),
            ("inf", "s", "LT", "maximum", WIDE, False),
        )
    ),
}
