"""Left sides for rules of `algsimp` about gathers, scatters, collectives and control."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ADD
from unit.rewrites.algsimp_reduce_cases import NOT_BINARY, scalar_function
from unit.rewrites.algsimp_shape_cases import NUMERIC, SOME, lines
from unit.rewrites.rule_proofs import FLOATS, INTEGERS, SIGNED, WIDE, Case

DEVICES = ", replica_count=2, num_partitions=2"
ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=f"
)
GATHER = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,6}"
)
FEW = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, slice_sizes={1}"
SUM = "to_apply=f"


def two_scatters(rows: tuple[int, int], size: int, **more: object) -> Case:
    """The sum of two scatters into an array of so many rows of three."""
    i, j = rows
    return lines(
        f"x y: T[{size},3]",
        f"i: s32[{i},1]",
        f"j: s32[{j},1]",
        f"u: T[{i},3]",
        f"v: T[{j},3]",
        f"a = T[{size},3] scatter(x, i, u), {ROWS}",
        f"b = T[{size},3] scatter(y, j, v), {ROWS}",
        f"T[{size},3] add(a, b)",
        types=("s32", "u8", "f32", "f64"),
        computations=ADD,
        **more,  # type: ignore[arg-type]
    )


BRANCHES = (
    "f {\n  a = T[3] parameter(0)\n  ROOT r = T[3] negate(a)\n}\n"
    "g {\n  a = T[3] parameter(0)\n  ROOT r = T[3] copy(a)\n}\n"
)

CASES: Mapping[str, tuple[Case, ...]] = {
    "scatter_of_nothing": (
        lines(
            "x: T[4,3]",
            "i: s32[0,1]",
            "u: T[0,3]",
            f"T[4,3] scatter(x, i, u), {ROWS}",
            types=NUMERIC,
            computations=ADD,
        ),
        lines(
            "x: T[4,3]",
            "i: s32[2,1]",
            "u: T[2,3]",
            f"T[4,3] scatter(x, i, u), {ROWS}",
            types=NUMERIC,
            computations=ADD,
            fires=False,
        ),
    ),
    "scatter_of_whole": tuple(
        lines(
            f"x: T[{size},3]",
            "i: s32[0]",
            "u: T[4,3]",
            f"T[{size},3] scatter(x, i, u), update_window_dims={{0,1}}, inserted_window_dims={{}}, "
            "scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=f",
            types=SIGNED,
            computations=NOT_BINARY,
            fires=fires,
        )
        for size, fires in ((4, True), (5, False))
    ),
    "add_of_scatters": (
        two_scatters((2, 1), 9),
        two_scatters((2, 2), 9),
        two_scatters((2, 2), 3, fires=False),
    ),
    "add_of_scatters_apart": (two_scatters((2, 2), 3), two_scatters((2, 1), 9, fires=False)),
    "add_of_scatter": (
        *(
            lines(
                "x y: T[9,3]",
                "i: s32[2,1]",
                "u: T[2,3]",
                f"a = T[9,3] scatter(x, i, u), {ROWS}",
                f"T[9,3] add({sides})",
                types=("s32", "u8", "f32", "f64"),
                computations=ADD,
            )
            for sides in ("a, y", "y, a")
        ),
        lines(
            "x y: T[9,3]",
            "i: s32[2,1]",
            "u: T[2,3]",
            f"a = T[9,3] scatter(x, i, u), {ROWS}",
            "T[9,3] add(a, y)",
            types=INTEGERS,
            computations=scalar_function("multiply"),
            fires=False,
        ),
    ),
    "gather_from_few": (
        *(
            lines(
                f"x: T[{size}]",
                f"i: {index}[2,5]",
                f"T[2,5] gather(x, i), {FEW}, index_vector_dim=2",
                types=SOME,
            )
            for size, index in ((2, "s32"), (3, "u8"), (4, "s64"))
        ),
        lines("x: T[5]", "i: s32[4]", f"T[4] gather(x, i), {FEW}, index_vector_dim=1", fires=False),
    ),
    "gather_of_pad": (
        lines(
            "x: T[5,3]",
            "v: T[]",
            "i: s32[4,1]",
            "p = T[5,6] pad(x, v), padding=0_0x1_2",
            f"T[4,6] gather(p, i), {GATHER}",
        ),
        lines(
            "x: T[2,5]",
            "v: T[]",
            "i: s32[2,4]",
            "w: s32[]",
            "p = T[5,5] pad(x, v), padding=1_1_1x0_0",
            "j = s32[5,4] pad(i, w), padding=1_1_1x0_0",
            "T[5,4] gather(p, j), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
            "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
            "slice_sizes={1,1}",
        ),
        lines(
            "x: T[5,6]",
            "v: T[]",
            "i: s32[4,1]",
            "p = T[6,6] pad(x, v), padding=0_1x0_0",
            f"T[4,6] gather(p, i), {GATHER}",
            fires=False,
        ),
    ),
    "gather_of_reshaped_pad": (
        lines(
            "x: T[5,3]",
            "v: T[]",
            "i: s32[4,1]",
            "p = T[5,6] pad(x, v), padding=0_0x1_2",
            "q = T[5,1,6] reshape(p)",
            "T[4,1,6] gather(q, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, "
            "index_vector_dim=1, slice_sizes={1,1,6}",
        ),
        lines(
            "x: T[4,3]",
            "v: T[]",
            "i: s32[4,2]",
            "p = T[4,9] pad(x, v), padding=0_0x1_1_2",
            "q = T[2,2,9] reshape(p)",
            "T[9,4] gather(q, i), offset_dims={0}, collapsed_slice_dims={0,1}, start_index_map={0,1}, "
            "index_vector_dim=1, slice_sizes={1,1,9}",
        ),
        # The padding is cut apart by the reshape.
        lines(
            "x: T[5,3]",
            "v: T[]",
            "i: s32[4,1]",
            "p = T[5,6] pad(x, v), padding=0_0x1_2",
            "q = T[5,2,3] reshape(p)",
            "T[4,2,3] gather(q, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, "
            "index_vector_dim=1, slice_sizes={1,2,3}",
            fires=False,
        ),
        lines(
            "x: T[5,6]",
            "v: T[]",
            "i: s32[4,1]",
            "p = T[6,6] pad(x, v), padding=0_1x0_0",
            "q = T[6,1,6] reshape(p)",
            "T[4,1,6] gather(q, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, "
            "index_vector_dim=1, slice_sizes={1,1,6}",
            fires=False,
        ),
    ),
    "transpose_of_scatter": (
        *(
            lines(
                f"x: T[5,4,{size}]",
                "i: s32[3,1]",
                f"u: T[3,4,{size}]",
                f"s = T[5,4,{size}] scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{0}}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f",
                f"T[{shape}] transpose(s), dimensions={{{order}}}",
                types=SIGNED,
                computations=NOT_BINARY,
                fires=fires,
            )
            for size, shape, order, fires in (
                (3, "5,3,4", "0,2,1", True),
                (1, "4,1,5", "1,2,0", False),  # rows of 4 would be written one by one
            )
        ),
        lines(
            "x: T[5,4]",
            "i: s32[3,2]",
            "u: T[1,3,2]",
            "s = T[5,4] scatter(x, i, u), update_window_dims={0,2}, inserted_window_dims={}, "
            "scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=f",
            "T[4,5] transpose(s), dimensions={1,0}",
            types=SIGNED,
            computations=NOT_BINARY,
            fires=False,
        ),
        lines(
            "x: T[5,4]",
            "i: s32[3,2]",
            "u: T[2,3,1]",
            "s = T[5,4] scatter(x, i, u), update_window_dims={0,2}, inserted_window_dims={}, "
            "scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=f",
            "T[4,5] transpose(s), dimensions={1,0}",
            types=SIGNED,
            computations=NOT_BINARY,
        ),
        # Both the scatter and its transpose are wanted.
        lines(
            "x: T[4,4]",
            "i: s32[3,2]",
            "u: T[3]",
            "s = T[4,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, "
            "scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=f",
            "t = T[4,4] transpose(s), dimensions={1,0}",
            "T[4,4] subtract(s, t)",
            types=SIGNED,
            computations=NOT_BINARY,
            fires=False,
        ),
    ),
    "all_gather_of_constant": (
        lines(
            "c = T[] constant(3)",
            "x = T[2,3] broadcast(c), dimensions={}",
            "T[4,3] all-gather(x), replica_groups={{0,1}}, dimensions={0}",
            types=NUMERIC,
            header=DEVICES,
        ),
        lines(
            "x: T[2,3]",
            "T[4,3] all-gather(x), replica_groups={{0,1}}, dimensions={0}",
            types=NUMERIC,
            header=DEVICES,
            fires=False,
        ),
    ),
    "all_to_all_of_constant": (
        lines(
            "c = T[] constant(3)",
            "x = T[2,3] broadcast(c), dimensions={}",
            "T[2,3] all-to-all(x), replica_groups={{0,1}}, dimensions={0}",
            types=NUMERIC,
            header=DEVICES,
        ),
        lines(
            "x: T[2,3]",
            "T[2,3] all-to-all(x), replica_groups={{0,1}}, dimensions={0}",
            types=NUMERIC,
            header=DEVICES,
            fires=False,
        ),
    ),
    "extreme_over_devices_of_constant": (
        *(
            lines(
                "c = T[] constant(3)",
                "x = T[4] broadcast(c), dimensions={}",
                body,
                types=(*INTEGERS, *FLOATS),
                header=DEVICES,
                computations=scalar_function(opcode),
            )
            for opcode in ("maximum", "minimum")
            for body in (
                f"T[4] all-reduce(x), replica_groups={{}}, {SUM}",
                f"T[2] reduce-scatter(x), replica_groups={{{{0,1}}}}, dimensions={{0}}, {SUM}",
            )
        ),
        lines(
            "c = T[] constant(3)",
            "x = T[4] broadcast(c), dimensions={}",
            f"T[4] all-reduce(x), replica_groups={{}}, {SUM}",
            types=NUMERIC,
            header=DEVICES,
            computations=ADD,
            fires=False,
        ),
    ),
    "sum_over_devices_of_constant": (
        *(
            lines(
                "c = T[] constant(3)",
                "x = T[4] broadcast(c), dimensions={}",
                body,
                types=(*INTEGERS, *WIDE),
                header=DEVICES,
                computations=ADD,
            )
            for body in (
                f"T[4] all-reduce(x), replica_groups={{}}, {SUM}",
                f"T[4] all-reduce(x), replica_groups={{{{0}},{{1}}}}, {SUM}",
                f"T[4] all-reduce(x), channel_id=1, replica_groups={{{{0,1}}}}, {SUM}",
                (
                    "T[4] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, "
                    f"use_global_device_ids=true, {SUM}"
                ),
                f"T[2] reduce-scatter(x), replica_groups={{{{0,1}}}}, dimensions={{0}}, {SUM}",
            )
        ),
        lines(
            "x: T[4]",
            f"T[4] all-reduce(x), replica_groups={{}}, {SUM}",
            types=NUMERIC,
            header=DEVICES,
            computations=ADD,
            fires=False,
        ),
    ),
    "conditional_on_converted_pred": (
        lines(
            "p: pred[]",
            "x y: T[3]",
            "i = s32[] convert(p)",
            "T[3] conditional(i, x, y), branch_computations={f, g}",
            types=SIGNED,
            computations=BRANCHES,
        ),
        lines(
            "i: s32[]",
            "x y: T[3]",
            "T[3] conditional(i, x, y), branch_computations={f, g}",
            types=SIGNED,
            computations=BRANCHES,
            fires=False,
        ),
    ),
    "barrier_of_unread": (
        lines(
            "x y: T[3]",
            "n = T[3] negate(x)",
            "m = T[3] abs(y)",
            "t = (T[3], T[3]) tuple(n, m)",
            "b = (T[3], T[3]) opt-barrier(t)",
            "T[3] get-tuple-element(b), index=1",
            types=SIGNED,
        ),
        lines(
            "x y: T[3]",
            "n = T[3] negate(x)",
            "t = (T[3], T[3]) tuple(n, y)",
            "b = (T[3], T[3]) opt-barrier(t)",
            "g = T[3] get-tuple-element(b), index=1",
            "(T[3], T[3]) tuple(g, n)",
            types=SIGNED,
            fires=False,
        ),
    ),
    "dynamic_of_static_of_dynamic": tuple(
        lines(
            "x: f32[6]",
            "n = s32[] constant(4)",
            "d = f32[<=6] set-dimension-size(x, n), dimensions={0}",
            's = (f32[6], s32[]) custom-call(d), custom_call_target="PadToStatic"',
            "a = f32[6] get-tuple-element(s), index=0",
            "b = s32[] get-tuple-element(s), index=1",
            f'f32[<=6] custom-call({sizes}), custom_call_target="SliceToDynamic"',
            types=("f32",),
            fires=fires,
            positive=True,
        )
        for sizes, fires in (("a, b", True), ("a, n", False))
    ),
    "layout_constraint": (
        lines(
            "x: T[2,3]{1,0}",
            'T[2,3]{1,0} custom-call(x), custom_call_target="LayoutConstraint"',
            types=NUMERIC,
        ),
        lines(
            "x: T[2,3]{1,0}",
            'T[2,3]{0,1} custom-call(x), custom_call_target="LayoutConstraint"',
            types=NUMERIC,
        ),
        lines(
            "x: T[2,3]{1,0}",
            'T[2,3]{1,0} custom-call(x), custom_call_target="Sharding"',
            types=NUMERIC,
            fires=False,
        ),
    ),
    "constant_of_tuple": (
        lines("(s32[], T[2]) constant((7, {1, 2}))", types=NUMERIC),
        lines("((s32[], T[2]), pred[]) constant(((7, {1, 2}), true))", types=NUMERIC),
        lines("T[2] constant({1, 2})", types=NUMERIC, fires=False),
    ),
    "dynamic_slice_of_degenerate_reshape": (
        lines(
            "x: T[1,4,5]",
            "i j k: s32[]",
            "y = T[4,1,5] reshape(x)",
            "T[2,1,3] dynamic-slice(y, i, j, k), dynamic_slice_sizes={2,1,3}",
        ),
        lines(
            "x: T[4,1]",
            "i: u32[]",
            "y = T[4] reshape(x)",
            "T[2] dynamic-slice(y, i), dynamic_slice_sizes={2}",
        ),
        lines(
            "x: T[4,2]",
            "i: s32[]",
            "y = T[8] reshape(x)",
            "T[2] dynamic-slice(y, i), dynamic_slice_sizes={2}",
            fires=False,
        ),
    ),
    "dynamic_slice_of_iota": (
        lines(
            "i: T[]",
            "a = T[7] iota(), iota_dimension=0",
            "c = T[] constant(3)",
            "s = T[7] broadcast(c), dimensions={}",
            "m = T[7] multiply(a, s)",
            "T[1] dynamic-slice(m, i), dynamic_slice_sizes={1}",
            types=("s32", "u32"),
        ),
        lines(
            "i: T[]",
            "a = T[7] iota(), iota_dimension=0",
            "c = T[] constant(3)",
            "s = T[7] broadcast(c), dimensions={}",
            "m = T[7] multiply(a, s)",
            "T[2] dynamic-slice(m, i), dynamic_slice_sizes={2}",
            types=("s32", "u32"),
            fires=False,
        ),
    ),
    "update_of_scalar_broadcast": (
        *(
            lines(
                "v: T[]",
                "u: T[2,3]",
                "x = T[5,4] broadcast(v), dimensions={}",
                f"i = s32[] constant({i})",
                "j = s32[] constant(1)",
                "T[5,4] dynamic-update-slice(x, u, i, j)",
            )
            for i in (2, 9, -1)
        ),
        lines(
            "x: T[5]",
            "u: T[2]",
            "i = s32[] constant(1)",
            "T[5] dynamic-update-slice(x, u, i)",
            fires=False,
        ),
    ),
    "update_of_updated_slice": (
        lines(
            "a: T[9]",
            "c: T[2]",
            "i j: s32[]",
            "s = T[5] dynamic-slice(a, i), dynamic_slice_sizes={5}",
            "u = T[5] dynamic-update-slice(s, c, j)",
            "T[9] dynamic-update-slice(a, u, i)",
        ),
        lines(
            "a: T[9]",
            "c: T[2]",
            "i j: s32[]",
            "s = T[5] dynamic-slice(a, i), dynamic_slice_sizes={5}",
            "u = T[5] dynamic-update-slice(s, c, j)",
            "T[9] dynamic-update-slice(a, u, j)",
            fires=False,
        ),
    ),
}
