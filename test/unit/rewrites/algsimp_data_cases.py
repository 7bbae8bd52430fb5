"""Left sides for rules of `algsimp` about dynamic slices, constants, gathers, reduces and dots."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_shape_cases import NUMERIC, lines
from unit.rewrites.rule_proofs import FLOATS, INTEGERS, REAL, WIDE, Case

ADD = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT r = T[] add(a, b)\n}\n"
BOTH = (
    "both {\n  a = T[] parameter(0)\n  b = s32[] parameter(1)\n  c = T[] parameter(2)\n"
    "  d = s32[] parameter(3)\n  s = T[] add(a, c)\n  t = s32[] add(b, d)\n"
    "  ROOT r = (T[], s32[]) tuple(s, t)\n}\n"
)
LESS = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n"
    "  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
)
LESS_OF_TWO = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = s32[] parameter(2)\n"
    "  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
)
ZERO = "z = T[] constant(0)"

CASES: Mapping[str, tuple[Case, ...]] = {
    "dynamic_slice_of_all": (
        lines("x: T[3]", "i: s32[]", "T[3] dynamic-slice(x, i), dynamic_slice_sizes={3}"),
        lines(
            "x: T[3]", "i: s32[]", "T[2] dynamic-slice(x, i), dynamic_slice_sizes={2}", fires=False
        ),
    ),
    "full_dimension_starts_at_zero": (
        lines(
            "x: T[3,4]", "i j: s32[]", "T[3,2] dynamic-slice(x, i, j), dynamic_slice_sizes={3,2}"
        ),
        lines("x: T[3,4]", "u: T[3,2]", "i j: u8[]", "T[3,4] dynamic-update-slice(x, u, i, j)"),
        lines(
            "x: T[3,4]",
            "i j: s32[]",
            "T[2,2] dynamic-slice(x, i, j), dynamic_slice_sizes={2,2}",
            fires=False,
        ),
    ),
    "dynamic_slice_at_constants": (
        *(
            lines(
                "x: T[5]",
                f"i = s32[] constant({c})",
                "T[2] dynamic-slice(x, i), dynamic_slice_sizes={2}",
            )
            for c in (0, 2, 100)
        ),
        lines(
            "x: T[5]",
            "i = s32[] constant(-1)",
            "T[2] dynamic-slice(x, i), dynamic_slice_sizes={2}",
            fires=False,
        ),
    ),
    "dynamic_slice_of_broadcast": (
        lines(
            "x: T[4]",
            "i j: s32[]",
            "a = T[3,4] broadcast(x), dimensions={1}",
            "T[2,2] dynamic-slice(a, i, j), dynamic_slice_sizes={2,2}",
        ),
    ),
    "dynamic_slice_of_transpose": (
        lines(
            "x: T[2,3,4]",
            "i j k: s32[]",
            "a = T[3,4,2] transpose(x), dimensions={1,2,0}",
            "T[2,1,1] dynamic-slice(a, i, j, k), dynamic_slice_sizes={2,1,1}",
        ),
    ),
    "dynamic_slice_of_dynamic_slice": (
        lines(
            "x: T[9,4]",
            "i j: s32[]",
            "n = s32[] constant(7)",
            "a = T[5,4] dynamic-slice(x, n, i), dynamic_slice_sizes={5,4}",
            "T[5,1] dynamic-slice(a, i, j), dynamic_slice_sizes={5,1}",
        ),
        lines(
            "x: T[9]",
            "i j: s32[]",
            "a = T[5] dynamic-slice(x, i), dynamic_slice_sizes={5}",
            "T[2] dynamic-slice(a, j), dynamic_slice_sizes={2}",
        ),
        lines(
            "x: T[9]",
            "i j: u32[]",
            "a = T[5] dynamic-slice(x, i), dynamic_slice_sizes={5}",
            "T[2] dynamic-slice(a, j), dynamic_slice_sizes={2}",
        ),
    ),
    "update_of_all": (
        lines("x u: T[3]", "i: s32[]", "T[3] dynamic-update-slice(x, u, i)"),
        lines("x: T[3]", "u: T[2]", "i: s32[]", "T[3] dynamic-update-slice(x, u, i)", fires=False),
    ),
    "update_by_empty": (
        lines("x: T[3]", "u: T[0]", "i: s32[]", "T[3] dynamic-update-slice(x, u, i)"),
    ),
    "constant_of_equals": (
        lines("T[3] constant({2, 2, 2})", types=NUMERIC),
        lines("T[2] constant({nan, nan})", types=FLOATS),
        lines("T[2] constant({0, -0})", types=FLOATS, fires=False),
    ),
    "constant_of_iota": (
        lines("T[4] constant({0, 1, 2, 3})", types=INTEGERS),
        lines("T[4] constant({0, 1, 2, 4})", types=INTEGERS, fires=False),
    ),
    "constant_of_scaled_iota": (
        lines("T[4] constant({0, 3, 6, 9})", types=INTEGERS),
        lines("T[4] constant({0, 3, 6, 8})", types=INTEGERS, fires=False),
    ),
    "reduce_of_added_dimensions": (
        lines(
            "x: T[3]",
            "v: T[]",
            "a = T[2,3,4] broadcast(x), dimensions={1}",
            "T[2,3] reduce(a, v), dimensions={2}, to_apply=f",
            types=("f32", "s8", "u64", "c64"),
            computations=ADD,
        ),
        lines(
            "x v: T[]",
            "a = T[7] broadcast(x), dimensions={}",
            "T[] reduce(a, v), dimensions={0}, to_apply=f",
            types=("f32", "s8", "u64"),
            computations=ADD,
        ),
        lines(
            "x: T[3]",
            "v: T[]",
            "a = T[2,3] broadcast(x), dimensions={1}",
            "T[3] reduce(a, v), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD.replace("add", "maximum"),
            fires=False,
        ),
    ),
    "iota_of_one": (
        lines("T[3,1] iota(), iota_dimension=1", types=REAL),
        lines("T[3,1] iota(), iota_dimension=0", types=REAL, fires=False),
    ),
    "get_tuple_element_of_tuple": (
        lines(
            "x: T[3]",
            "y: T[2]",
            "t = (T[3], T[2]) tuple(x, y)",
            "T[2] get-tuple-element(t), index=1",
        ),
        lines("x: T[2]", "T[2] copy(x)", fires=False),
    ),
    "sort_of_one": (
        lines(
            "x: T[1,3]", "T[1,3] sort(x), dimensions={0}, to_apply=f", types=REAL, computations=LESS
        ),
        lines(
            "x: T[3]",
            "T[3] sort(x), dimensions={0}, to_apply=f",
            types=REAL,
            computations=LESS,
            fires=False,
        ),
        lines(
            "x: T[1]",
            "y: s32[1]",
            "(T[1], s32[1]) sort(x, y), dimensions={0}, to_apply=f",
            types=REAL,
            computations=LESS_OF_TWO,
        ),
    ),
    "gather_of_empty": (
        lines(
            "x: T[0,3]",
            "i: s32[2,1]",
            "T[2,0] gather(x, i), "
            "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={0,1}",
        ),
    ),
    "gather_of_one_element": (
        lines(
            "x: T[1]",
            "i: s32[4,1]",
            "T[4] gather(x, i), "
            "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        ),
        lines(
            "x: T[2]",
            "i: s32[4,1]",
            "T[4] gather(x, i), "
            "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
            fires=False,
        ),
    ),
    "reduce_of_empty": (
        lines(
            "x: T[0,3]",
            "v: T[]",
            "T[3] reduce(x, v), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[0]",
            "v: T[]",
            "T[] reduce(x, v), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[2,3]",
            "v: T[]",
            "T[3] reduce(x, v), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_same_count": (
        *(
            lines(
                "x: T[1,3]",
                start,
                "T[3] reduce(x, z), dimensions={0}, to_apply=f",
                types=NUMERIC,
                computations=ADD,
            )
            for start in ("z = T[] constant(2)", "z: T[]")
        ),
        lines(
            "x: T[1,3]",
            "y: s32[1,3]",
            ZERO,
            "n = s32[] constant(1)",
            "(T[3], s32[3]) reduce(x, y, z, n), dimensions={0}, to_apply=both",
            types=NUMERIC,
            computations=BOTH,
            fires=False,
        ),
        lines(
            "x: T[1,3]",
            "y: s32[1,3]",
            ZERO,
            "n = s32[] constant(0)",
            "(T[3], s32[3]) reduce(x, y, z, n), dimensions={0}, to_apply=both",
            types=NUMERIC,
            computations=BOTH,
        ),
        lines(
            "x: T[1,3]",
            ZERO,
            "T[3] reduce(x, z), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[2,3]",
            ZERO,
            "T[3] reduce(x, z), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_transpose": (
        lines(
            "x: T[2,3,4]",
            ZERO,
            "a = T[4,2,3] transpose(x), dimensions={2,0,1}",
            "T[4,2] reduce(a, z), dimensions={2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[2,3]",
            ZERO,
            "a = T[3,2] transpose(x), dimensions={1,0}",
            "T[] reduce(a, z), dimensions={0,1}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
    ),
    "reduce_of_reshape": (
        lines(
            "x: T[2,6]",
            ZERO,
            "a = T[2,2,3] reshape(x)",
            "T[2] reduce(a, z), dimensions={1,2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[2,6]",
            ZERO,
            "a = T[2,2,3] reshape(x)",
            "T[2,2] reduce(a, z), dimensions={2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "reduce_of_broadcast": (
        lines(
            "x: T[3,4]",
            "v: T[]",
            "a = T[2,3,4] broadcast(x), dimensions={1,2}",
            "T[2,3] reduce(a, v), dimensions={2}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[3]",
            "v: T[]",
            "a = T[2,3] broadcast(x), dimensions={1}",
            "T[3] reduce(a, v), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "map_of_parameter": (
        lines(
            "x y: T[2,3]",
            "T[2,3] map(x, y), dimensions={0,1}, to_apply=f",
            types=NUMERIC,
            computations="f {\n  a = T[] parameter(0)\n  ROOT r = T[] parameter(1)\n}\n",
        ),
        lines(
            "x y: T[2,3]",
            "T[2,3] map(x, y), dimensions={0,1}, to_apply=f",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "map_of_constant": (
        lines(
            "x: T[2,3]",
            "T[2,3] map(x), dimensions={0,1}, to_apply=f",
            types=NUMERIC,
            computations="f {\n  a = T[] parameter(0)\n  ROOT r = T[] constant(3)\n}\n",
        ),
    ),
    "map_of_elementwise": (
        lines(
            "x y: T[2,3]",
            "T[2,3] map(x, y), dimensions={0,1}, to_apply=f",
            types=NUMERIC,
            computations=ADD.replace("add(a, b)", "subtract(b, a)"),
        ),
        lines(
            "x y: T[5]",
            "pred[5] map(x, y), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations=LESS,
        ),
        lines(
            "x: T[5]",
            "T[5] map(x), dimensions={0}, to_apply=f",
            types=NUMERIC,
            computations="f {\n  a = T[] parameter(0)\n  b = T[] add(a, a)\n"
            "  ROOT r = T[] multiply(b, a)\n}\n",
            fires=False,
        ),
    ),
    "dot_of_empty": (
        lines(
            "x: T[2,0]",
            "y: T[0,3]",
            "T[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            types=NUMERIC,
        ),
        lines(
            "x: T[2,1]",
            "y: T[1,3]",
            "T[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            types=NUMERIC,
            fires=False,
        ),
    ),
    "dot_with_dimensions_of_one": (
        lines(
            "x: T[2,1]",
            "y: T[1,3]",
            "T[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            types=("f32", "s32"),
        ),
        lines(
            "x: T[1,2,4]",
            "y: T[1,4,3]",
            "T[1,2,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            types=("f32", "s32"),
        ),
        lines(
            "x: T[2,2]",
            "y: T[2,3]",
            "T[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            types=WIDE,
            fires=False,
        ),
    ),
    "dot_without_contraction": (
        lines("x: T[2]", "y: T[3,4]", "T[2,3,4] dot(x, y)", types=("f32", "s32")),
        lines(
            "x: T[2,5]",
            "y: T[3,5]",
            "T[5,2,3] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1}",
            types=("f32", "s32"),
        ),
    ),
}
