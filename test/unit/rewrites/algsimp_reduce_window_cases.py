"""Left sides for rules of `algsimp` about reduce-windows."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ADD, ZERO
from unit.rewrites.algsimp_reduce_cases import IN_TUPLE, scalar_function
from unit.rewrites.algsimp_shape_cases import NUMERIC, lines
from unit.rewrites.rule_proofs import FLOATS, INTEGERS, WIDE, Case

MAXIMUM = scalar_function("maximum")
LOWEST = "z = T[] constant(-inf)"
SUMS = "window={size=1x4 pad=0_0x3_0}, to_apply=f"

CASES: Mapping[str, tuple[Case, ...]] = {
    "reduce_window_of_one_in_tuple": (
        lines(
            "x: T[5]",
            ZERO,
            "(T[4]) reduce-window(x, z), window={size=2}, to_apply=f",
            types=INTEGERS,
            computations=IN_TUPLE,
        ),
        lines(
            "x: T[5]",
            ZERO,
            "T[4] reduce-window(x, z), window={size=2}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_empty": (
        lines(
            "x: T[0,3]",
            ZERO,
            "T[2,3] reduce-window(x, z), window={size=2x1 pad=1_2x0_0}, to_apply=f",
            types=(*INTEGERS, *FLOATS),
            computations=ADD,
        ),
        lines(
            "x: T[2,3]",
            ZERO,
            "T[1,3] reduce-window(x, z), window={size=2x1}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_scalar": (
        lines(
            "x: T[]",
            "z = T[] constant(1)",
            "T[] reduce-window(x, z), window={}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[]",
            ZERO,
            "T[] reduce-window(x, z), window={}, to_apply=f",
            types=(*INTEGERS, *FLOATS),
            computations=ADD,
        ),
        lines(
            "x: T[1]",
            ZERO,
            "T[1] reduce-window(x, z), window={size=1}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
    ),
    "running_sum_of_constant": (
        lines(
            "c = T[] constant(3)",
            "x = T[2,4] broadcast(c), dimensions={}",
            ZERO,
            f"T[2,4] reduce-window(x, z), {SUMS}",
            types=(*INTEGERS, *FLOATS),
            computations=ADD,
        ),
        lines(
            "c = s32[] constant(1)",
            "x = s32[8] broadcast(c), dimensions={}",
            "y = s32[2,4] reshape(x)",
            "w = T[2,4] convert(y)",
            ZERO,
            f"T[2,4] reduce-window(w, z), {SUMS}",
            types=WIDE,
            computations=ADD,
        ),
        lines(
            "x: T[2,4]",
            ZERO,
            f"T[2,4] reduce-window(x, z), {SUMS}",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
        lines(
            "c = T[] constant(3)",
            "x = T[2,4] broadcast(c), dimensions={}",
            ZERO,
            "T[2,4] reduce-window(x, z), window={size=1x3 pad=0_0x2_0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_ones": (
        lines(
            "x: T[2,4]",
            ZERO,
            "T[3,4] reduce-window(x, z), window={size=1x1 pad=0_1x0_0}, to_apply=f",
            types=(*INTEGERS, *FLOATS),
            computations=ADD,
        ),
        lines(
            "x: T[2,4]",
            LOWEST,
            "T[2,4] reduce-window(x, z), window={size=1x1}, to_apply=f",
            types=FLOATS,
            computations=MAXIMUM,
        ),
        lines(
            "x: T[2,4]",
            ZERO,
            "T[2,2] reduce-window(x, z), window={size=1x1 stride=1x2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_dilating_pad": (
        lines(
            "x: T[3,4]",
            ZERO,
            "p = T[6,7] pad(x, z), padding=1_2x0_0_1",
            "T[5,7] reduce-window(p, z), window={size=2x1}, to_apply=f",
            types=(*INTEGERS, *WIDE),
            computations=ADD,
        ),
        lines(
            "x: T[3]",
            ZERO,
            "p = T[6] pad(x, z), padding=1_2",
            "T[5] reduce-window(p, z), window={size=2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_pad": (
        lines(
            "x: T[3,4]",
            ZERO,
            "p = T[6,4] pad(x, z), padding=1_2x0_0",
            "T[5,4] reduce-window(p, z), window={size=2x1}, to_apply=f",
            types=(*INTEGERS, *WIDE),
            computations=ADD,
        ),
        lines(
            "x: T[3,4]",
            ZERO,
            "p = T[6,7] pad(x, z), padding=1_2x0_0_1",
            "T[5,7] reduce-window(p, z), window={size=2x1}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[3]",
            LOWEST,
            "p = T[6] pad(x, z), padding=1_2",
            "T[6] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=f",
            types=FLOATS,
            computations=MAXIMUM,
        ),
        lines(
            "x: T[3]",
            ZERO,
            "v = T[] constant(1)",
            "p = T[6] pad(x, v), padding=1_2",
            "T[5] reduce-window(p, z), window={size=2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[3]",
            ZERO,
            "p = T[2] pad(x, z), padding=-1_0",
            "T[1] reduce-window(p, z), window={size=2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_window_of_converted_pad": tuple(
        lines(
            "x: bf16[20]",
            "v = bf16[] constant(0)",
            ZERO,
            f"p = bf16[{20 + high}] pad(x, v), padding=0_{high}",
            f"c = T[{20 + high}] convert(p)",
            f"T[{19 + high}] reduce-window(c, z), window={{size=2}}, to_apply=f",
            types=WIDE,
            computations=ADD,
            fires=fires,
        )
        for high, fires in ((4, True), (1, False))
    ),
    "reduce_window_of_all": (
        lines(
            "x: T[2,4,3]",
            ZERO,
            "T[2,1,3] reduce-window(x, z), window={size=1x4x1}, to_apply=f",
            types=(*INTEGERS, *WIDE),
            computations=ADD,
        ),
        lines(
            "x: T[2,4]",
            LOWEST,
            "T[1,1] reduce-window(x, z), window={size=2x4}, to_apply=f",
            types=FLOATS,
            computations=MAXIMUM,
        ),
        lines(
            "x: T[2,4]",
            ZERO,
            "T[2,2] reduce-window(x, z), window={size=1x3}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[2,4]",
            ZERO,
            "T[2,1] reduce-window(x, z), window={size=1x4}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            options={"enable_window_reduce_to_reduce_replacement": False},
            fires=False,
        ),
    ),
    "reduce_window_that_broadcasts": (
        lines(
            "x: T[1,3]",
            "z = T[] constant(1)",
            "T[4,3] reduce-window(x, z), window={size=4x1 pad=3_3x0_0}, to_apply=f",
            types=INTEGERS,
            computations=ADD,
            fires=False,
        ),
        lines(
            "x: T[1,3]",
            ZERO,
            "T[4,3] reduce-window(x, z), window={size=4x1 pad=3_3x0_0}, to_apply=f",
            types=(*INTEGERS, *FLOATS),
            computations=ADD,
        ),
        lines(
            "x: T[1,3]",
            ZERO,
            "T[5,3] reduce-window(x, z), window={size=4x1 pad=4_3x0_0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "last_of_running_reduce": (
        lines(
            "x: T[2,4]",
            ZERO,
            f"w = T[2,4] reduce-window(x, z), {SUMS}",
            "T[2,1] slice(w), slice={[0:2], [3:4]}",
            types=(*INTEGERS, *WIDE),
            computations=ADD,
        ),
        lines(
            "x: T[2,4]",
            ZERO,
            f"w = T[2,4] reduce-window(x, z), {SUMS}",
            "T[2,1] slice(w), slice={[0:2], [2:3]}",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
}
