"""Left sides for rules of `algsimp` about reshapes and transposes in a row."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_shape_cases import NUMERIC, lines
from unit.rewrites.rule_proofs import INTEGERS, WIDE, Case

HOIST = {"enable_hoist_transpose_of_reshape": True}

CASES: Mapping[str, tuple[Case, ...]] = {
    "movements_undone": (
        lines(
            "x: T[2,1,3]",
            "a = T[3,2,1] transpose(x), dimensions={2,0,1}",
            "b = T[3,1,2] reshape(a)",
            "T[2,1,3] transpose(b), dimensions={2,1,0}",
        ),
        lines("x: T[1,5]", "a = T[5,1] reshape(x)", "T[1,5] transpose(a), dimensions={1,0}"),
        lines(
            "x: T[2,1,2]",
            "a = T[2,2,1] transpose(x), dimensions={2,0,1}",
            "T[2,1,2] reshape(a)",
            fires=False,
        ),
        lines("x: T[2,3]", "a = T[6] reshape(x)", "T[2,3] reshape(a)", fires=False),
    ),
    "movement_of_random_numbers": (
        lines(
            "x: T[]",
            "a = T[6] rng(x, x), distribution=rng_uniform",
            "T[2,3] reshape(a)",
            types=WIDE,
            positive=True,
        ),
        lines(
            "x: T[]",
            "a = T[3,2] rng(x, x), distribution=rng_uniform",
            "T[2,3] transpose(a), dimensions={1,0}",
            types=WIDE,
            positive=True,
        ),
        lines(
            "x: T[]",
            "a = T[6] rng(x, x), distribution=rng_uniform",
            "b = T[2,3] reshape(a)",
            "(T[2,3], T[6]) tuple(b, a)",
            types=WIDE,
            fires=False,
        ),
    ),
    "reshape_of_transpose_of_reshape": (
        lines(
            "x: T[2,12]",
            "a = T[2,3,4] reshape(x)",
            "b = T[3,4,2] transpose(a), dimensions={1,2,0}",
            "T[12,2] reshape(b)",
            options=HOIST,
        ),
        lines(
            "x: T[6,20]",
            "a = T[2,3,4,5] reshape(x)",
            "b = T[4,5,2,3] transpose(a), dimensions={2,3,0,1}",
            "T[20,6] reshape(b)",
            options=HOIST,
        ),
        lines(
            "x: T[2,12]",
            "a = T[2,3,4] reshape(x)",
            "b = T[3,2,4] transpose(a), dimensions={1,0,2}",
            "T[3,8] reshape(b)",
            options=HOIST,
            fires=False,
        ),
    ),
    "reshape_that_splits_iota": (
        lines(
            "a = T[3,12] iota(), iota_dimension=1",
            "T[3,2,1,6] reshape(a)",
            types=INTEGERS,
        ),
        lines("a = T[600] iota(), iota_dimension=0", "T[2,300] reshape(a)", types=("s8", "u8")),
        lines(
            "a = T[3,12] iota(), iota_dimension=1", "T[36] reshape(a)", types=INTEGERS, fires=False
        ),
    ),
    "reshape_of_update": (
        lines(
            "x: T[4,1,5]",
            "u: T[2,1,3]",
            "i j k: s32[]",
            "d = T[4,1,5] dynamic-update-slice(x, u, i, j, k)",
            "T[1,4,5] reshape(d)",
        ),
        lines(
            "x: T[4]",
            "u: T[2]",
            "i: u8[]",
            "d = T[4] dynamic-update-slice(x, u, i)",
            "T[1,4,1] reshape(d)",
        ),
        lines(
            "x: T[4]",
            "u: T[2]",
            "i: u8[]",
            "d = T[4] dynamic-update-slice(x, u, i)",
            "T[2,2] reshape(d)",
            fires=False,
        ),
    ),
    "space_to_depth": (
        lines(
            "x: T[6,4]",
            "a = T[3,2,4] reshape(x)",
            "b = T[3,2,4] transpose(a), dimensions={0,1,2}",
            "T[3,8] reshape(b)",
            types=NUMERIC,
            fires=False,
        ),
        lines(
            "x: T[6,4]",
            "a = T[2,3,4] reshape(x)",
            "b = T[3,2,4] transpose(a), dimensions={1,0,2}",
            "T[3,8] reshape(b)",
            types=NUMERIC,
        ),
        lines(
            "x: T[4,6]",
            "a = T[4,2,3] reshape(x)",
            "b = T[2,4,3] transpose(a), dimensions={1,0,2}",
            "T[8,3] reshape(b)",
            types=NUMERIC,
        ),
        lines(
            "x: T[12,4]",
            "a = T[6,2,4] reshape(x)",
            "b = T[2,6,4] transpose(a), dimensions={1,0,2}",
            "T[2,24] reshape(b)",
            types=NUMERIC,
            fires=False,
        ),
    ),
}
