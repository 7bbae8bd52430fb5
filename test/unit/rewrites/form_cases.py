"""Left sides for rules that bring instructions into one form: gathers, scatters, dots, convolutions, reductions."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ADD
from unit.rewrites.algsimp_shape_cases import SOME, lines
from unit.rewrites.rule_proofs import FLOATS, INTEGERS, REAL, Case

ONE_TYPE = ("f32",)


def _gather(
    result: str, numbers: str, fires: bool = True, sizes: str = "5,4", at: str = "3,1"
) -> Case:
    body = f"T[{result}] gather(x, i), {numbers}"
    return lines(f"x: T[{sizes}]", f"i: s32[{at}]", body, fires=fires)


def _scatter(updates: str, numbers: str, fires: bool = True, at: str = "s32[3,1]") -> Case:
    body = f"T[5,4] scatter(x, i, u), {numbers}, to_apply=f"
    return lines(
        "x: T[5,4]", f"i: {at}", f"u: T[{updates}]", body, types=REAL, computations=ADD, fires=fires
    )


def _dot(left: str, right: str, result: str, numbers: str, fires: bool = True) -> Case:
    body = f"T[{result}] dot(x, y), {numbers}"
    return lines(f"x: T[{left}]", f"y: T[{right}]", body, types=("f32", "s32", "c64"), fires=fires)


def _mixed(a: str, b: str, result: str, fires: bool = True) -> Case:
    body = f"{result}[2,4] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    return lines(f"x: {a}[2,3]", f"y: {b}[3,4]", body, types=ONE_TYPE, fires=fires)


def _convolution(x: str, w: str, result: str, window: str, fires: bool = True) -> Case:
    body = f"T[{result}] convolution(x, w), window={{{window}}}, dim_labels=b0123f_0123io->b0123f"
    return lines(f"x: T[{x}]", f"w: T[{w}]", body, types=("f32", "s32"), fires=fires)


_UPCAST = (
    ("s8", "s8", "s32"),
    ("s8", "s16", "s16"),
    ("u8", "u16", "u32"),
    ("bf16", "bf16", "f32"),
    ("f16", "f32", "f32"),
)
_NOT_UPCAST = (("f32", "f32", "f32"), ("u8", "u8", "s32"), ("f32", "f32", "bf16"))
_TWO = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = T[] parameter(2)\n"
    "  d = T[] parameter(3)\n  s = T[] add(a, c)\n  t = T[] add(b, d)\n"
    "  ROOT r = (T[], T[]) tuple(s, t)\n}\n"
)

DEVICES = ", replica_count=1, num_partitions=4"
OWN = (
    "i = u32[] partition-id()",
    "k = f32[] convert(i)",
)
"""A number that is each device's own."""
GROUPS = "channel_id=1, replica_groups={{0,2},{3,1}}, use_global_device_ids=true"


def _collective(*body: str, fires: bool = True) -> Case:
    return lines(*OWN, *body, types=ONE_TYPE, header=DEVICES, fires=fires)


BOTH_FIRST = "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}"
INNER = "lhs_contracting_dims={3}, rhs_contracting_dims={2}"

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "gather_simplifier": {
        "gather_of_nothing": (
            _gather(
                "3,0",
                "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
                "slice_sizes={1,0}",
            ),
        ),
        "gather_of_scalar": (
            lines(
                "x: T[]",
                "i: s32[3,0]",
                "T[3] gather(x, i), offset_dims={}, collapsed_slice_dims={}, start_index_map={}, "
                "index_vector_dim=1, slice_sizes={}",
            ),
        ),
        "gather_in_other_form": (
            _gather(
                "4,3",
                "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
                "index_vector_dim=1, slice_sizes={1,4}",
            ),
            _gather(
                "2,3,2,2",
                "offset_dims={1,3}, collapsed_slice_dims={}, start_index_map={1,0}, "
                "index_vector_dim=1, slice_sizes={3,2}",
                at="2,2,2",
            ),
            _gather(
                "2,3",
                "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1}, "
                "index_vector_dim=2, slice_sizes={1,1}",
                at="2,3",
            ),
            _gather(
                "2,2",
                "offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0,1}, "
                "index_vector_dim=0, slice_sizes={2,2}",
                at="2",
            ),
            _gather(
                "3,2,4",
                "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
                "index_vector_dim=1, slice_sizes={2,4}",
                fires=False,
            ),
            _gather(
                "5,2",
                "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
                "index_vector_dim=2, slice_sizes={1,1}, operand_batching_dims={0}, "
                "start_indices_batching_dims={0}",
                at="5,2,1",
                fires=False,
            ),
        ),
    },
    "scatter_simplifier": {
        "scatter_in_other_form": (
            _scatter(
                "3,4",
                "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                "index_vector_dim=1",
            ),
            _scatter(
                "2,3,2",
                "update_window_dims={0,2}, inserted_window_dims={}, "
                "scatter_dims_to_operand_dims={1,0}, index_vector_dim=0",
                at="u8[2,3]",
            ),
            _scatter(
                "2,2",
                "update_window_dims={}, inserted_window_dims={0,1}, "
                "scatter_dims_to_operand_dims={1}, index_vector_dim=2, unique_indices=false",
                at="s64[2,2]",
            ),
            _scatter(
                "2",
                "update_window_dims={0}, inserted_window_dims={1}, "
                "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0",
                at="s32[2]",
            ),
            _scatter(
                "3,2,4",
                "update_window_dims={1,2}, inserted_window_dims={}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
                fires=False,
            ),
        ),
    },
    "batched_gather_scatter_normalizer": {
        "gather_in_batches": (
            lines(
                "x: T[2,3,4]",
                "i: s32[2,5,1]",
                "T[2,5,2] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, "
                "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
                "index_vector_dim=2, slice_sizes={1,1,2}",
            ),
            lines(
                "x: T[3,4,2]",
                "i: u8[2,3]",
                "T[2,3] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, "
                "start_index_map={1}, operand_batching_dims={2,0}, "
                "start_indices_batching_dims={0,1}, index_vector_dim=2, slice_sizes={1,1,1}",
            ),
            lines(  # more places than the type of the indices counts
                "x: T[130,2]",
                "i: s8[130,1]",
                "T[130] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, "
                "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
                "index_vector_dim=1, slice_sizes={1,1}",
                types=ONE_TYPE,
            ),
            _gather(
                "3,2,4",
                "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
                "index_vector_dim=1, slice_sizes={2,4}",
                fires=False,
            ),
        ),
        "scatter_in_batches": (
            lines(
                "x: T[3,5,4]",
                "i: s32[2,3,1]",
                "u: T[2,3,4]",
                "T[3,5,4] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1}, "
                "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
                "scatter_indices_batching_dims={1}, index_vector_dim=2, to_apply=f",
                types=REAL,
                computations=ADD,
            ),
            lines(
                "x: T[130,4]",
                "i: s8[130]",
                "u: T[130]",
                "T[130,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, "
                "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
                "scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=f",
                types=ONE_TYPE,
                computations=ADD,
            ),
            _scatter(
                "3,2,4",
                "update_window_dims={1,2}, inserted_window_dims={}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
                fires=False,
            ),
        ),
    },
    "dot_dimension_merger": {
        "dot_of_several_batches": (
            _dot("2,3,4,5", "2,3,5,6", "2,3,4,6", f"{BOTH_FIRST}, {INNER}"),
            _dot(
                "5,2,3,4",
                "2,3,6,5",
                "2,3,4,6",
                "lhs_batch_dims={1,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={0}, "
                "rhs_contracting_dims={3}",
            ),
            _dot(
                "3,2,4,5",
                "2,3,5,6",
                "2,3,4,6",
                "lhs_batch_dims={1,0}, rhs_batch_dims={0,1}, " + INNER,
                fires=False,
            ),
            lines(  # apart in memory
                "x: T[2,3,4,5]{3,2,0,1}",
                "y: T[2,3,5,6]",
                f"T[2,3,4,6] dot(x, y), {BOTH_FIRST}, {INNER}",
                fires=False,
            ),
            _dot(
                "2,4,5",
                "2,5,6",
                "2,4,6",
                "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_contracting_dims={1}",
                fires=False,
            ),
        )
    },
    "batch-dot-simplification": {
        "dot_of_batches_of_one": (
            _dot("1,3,4,5", "1,3,5,6", "1,3,4,6", f"{BOTH_FIRST}, {INNER}"),
            _dot(
                "1,4,5",
                "1,5",
                "1,4",
                "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_contracting_dims={1}",
            ),
            _dot("2,3,4,5", "2,3,5,6", "2,3,4,6", f"{BOTH_FIRST}, {INNER}", fires=False),
            _dot(
                "1,4,5,2",
                "1,5,2",
                "1,4",
                "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2,3}, "
                "rhs_contracting_dims={1,2}",
                fires=False,
            ),
        )
    },
    "dynamic-index-splitter": {
        "dynamic_slice_at_vector": (
            lines(
                "x: T[4,5]",
                "v: s32[2]",
                "T[2,3] dynamic-slice(x, v), dynamic_slice_sizes={2,3}",
            ),
            lines("x: T[4,5]", "u: T[2,3]", "v: u8[2]", "T[4,5] dynamic-update-slice(x, u, v)"),
            lines(
                "x: T[4,5]",
                "i j: s32[]",
                "T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}",
                fires=False,
            ),
        )
    },
    "operand_upcaster": {
        "product_of_narrow": (
            *(_mixed(a, b, r) for a, b, r in _UPCAST),
            *(_mixed(a, b, r, fires=False) for a, b, r in _NOT_UPCAST),
            lines(
                "x: s8[2,5,3]",
                "w: s8[2,3,4]",
                "s32[2,4,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f",
                types=ONE_TYPE,
            ),
        )
    },
    "result_caster": {
        "product_into_narrow": (
            _mixed("f32", "f32", "bf16"),
            _mixed("bf16", "f32", "bf16"),
            _mixed("s32", "s16", "s8"),
            _mixed("f32", "bf16", "f32", fires=False),
            _mixed("s32", "s32", "u16", fires=False),
        )
    },
    "convert_operand_folding": {
        "product_of_widened": (
            *(
                lines(
                    f"x: {narrow}[2,3]",
                    f"y: {wide}[3,4]",
                    f"a = {wide}[2,3] convert(x)",
                    f"{wide}[2,4] dot(a, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                    types=ONE_TYPE,
                )
                for narrow, wide in (("s8", "s32"), ("bf16", "f32"), ("u8", "s16"))
            ),
            lines(
                "x: s8[3,2]",
                "y: s8[24]",
                "i: s32[]",
                "a = s32[3,2] convert(x)",
                "b = s32[24] convert(y)",
                "t = s32[2,3] transpose(a), dimensions={1,0}",
                "d = s32[12] dynamic-slice(b, i), dynamic_slice_sizes={12}",
                "m = s32[3,4] reshape(d)",
                "s32[2,4] dot(t, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                types=ONE_TYPE,
            ),
            lines(
                "x: f32[2,3]",
                "y: bf16[3,4]",
                "a = bf16[2,3] convert(x)",
                "bf16[2,4] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                types=ONE_TYPE,
                fires=False,
            ),
        )
    },
    "convolution_4d_expander": {
        "convolution_of_four_dimensions": (
            _convolution("2,1,6,1,5,3", "1,2,1,4,3,5", "2,1,5,1,2,5", "size=1x2x1x4"),
            _convolution(
                "2,1,6,1,5,3", "1,2,1,4,3,5", "2,1,5,2,2,5", "size=1x2x1x4 pad=0_0x0_0x1_0x0_0"
            ),
            _convolution("2,1,1,1,1,3", "1,1,1,1,3,5", "2,1,1,1,1,5", "size=1x1x1x1"),
            _convolution("2,2,3,2,3,3", "2,2,2,2,3,5", "2,1,2,1,2,5", "size=2x2x2x2", fires=False),
            lines(
                "x: T[2,1,1,4,3]",
                "w: T[1,1,2,3,5]",
                "T[2,1,1,3,5] convolution(x, w), window={size=1x1x2}, dim_labels=b012f_012io->b012f",
                types=ONE_TYPE,
                fires=False,
            ),
        )
    },
    "convolution-pred-expander": {
        "convolution_of_pred": (
            lines(
                "x: pred[2,5,3]",
                "w: pred[2,3,4]",
                "pred[2,4,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f",
                types=ONE_TYPE,
            ),
            lines(
                "x: s8[2,5,3]",
                "w: s8[2,3,4]",
                "s8[2,4,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f",
                types=ONE_TYPE,
                fires=False,
            ),
        )
    },
    "all-gather-bcast-reorder": {
        "gather_of_broadcast": (
            _collective(
                "x: f32[3,2]",
                "kk = f32[3,2] broadcast(k), dimensions={}",
                "y = f32[3,2] add(x, kk)",
                "w = f32[2,5,3] broadcast(y), dimensions={2,0}",
                f"f32[4,5,3] all-gather(w), dimensions={{0}}, {GROUPS}",
            ),
            _collective(
                "x: f32[3]",
                "kk = f32[3] broadcast(k), dimensions={}",
                "y = f32[3] add(x, kk)",
                "w = f32[5,2,3] broadcast(y), dimensions={2}",
                f"f32[5,4,3] all-gather(w), dimensions={{1}}, {GROUPS}",
            ),
            _collective(
                "w = f32[2,3] broadcast(k), dimensions={}",
                f"f32[4,3] all-gather(w), dimensions={{0}}, {GROUPS}",
            ),
            _collective(  # nothing is sent twice
                "x: f32[3]",
                "w = f32[2,3] broadcast(x), dimensions={1}",
                f"f32[4,3] all-gather(w), dimensions={{0}}, {GROUPS}",
                fires=False,
            ),
            _collective(
                "x: f32[3]",
                "w = f32[5,2,3] broadcast(x), dimensions={2}",
                f"f32[5,4,3] all-gather(w), dimensions={{1}}, {GROUPS}, constrain_layout=true",
                fires=False,
            ),
        )
    },
    "all-gather-remove-degenerate-dims": {
        "gather_of_dimensions_of_one": (
            _collective(
                "x: f32[1,2,1,3]",
                "kk = f32[1,2,1,3] broadcast(k), dimensions={}",
                "y = f32[1,2,1,3] add(x, kk)",
                f"f32[1,2,1,6] all-gather(y), dimensions={{3}}, {GROUPS}",
            ),
            _collective(
                "x: f32[1,1]",
                "kk = f32[1,1] broadcast(k), dimensions={}",
                "y = f32[1,1] add(x, kk)",
                f"f32[1,2] all-gather(y), dimensions={{1}}, {GROUPS}",
            ),
            _collective(
                "x: f32[2,3]", f"f32[4,3] all-gather(x), dimensions={{0}}, {GROUPS}", fires=False
            ),
            _collective(
                "x: f32[1,3]",
                f"f32[2,3] all-gather(x), dimensions={{0}}, {GROUPS}",
                fires=False,
            ),
        )
    },
    "tree_reduction_rewriter": {
        "long_reduction": (
            lines(
                "x: T[61,3]",
                "z = T[] constant(0)",
                "T[3] reduce(x, z), dimensions={0}, to_apply=f",
                types=(*FLOATS, *INTEGERS),
                computations=ADD,
            ),
            lines(
                "x: T[70,3,40]",
                "z = T[] constant(-inf)",
                "T[3] reduce(x, z), dimensions={0,2}, to_apply=f",
                types=FLOATS,
                computations=ADD.replace("add", "maximum"),
            ),
            lines(
                "x: T[9]",
                "z = T[] constant(0)",
                "T[] reduce(x, z), dimensions={0}, to_apply=f",
                types=("s32",),
                computations=ADD,
                options={"window_size": 4},
            ),
            lines(
                "x: T[32,40]",
                "z = T[] constant(0)",
                "T[40] reduce(x, z), dimensions={0}, to_apply=f",
                computations=ADD,
                fires=False,
            ),
            lines(  # taken twice, it would count twice
                "x: T[61]",
                "z = T[] constant(1)",
                "T[] reduce(x, z), dimensions={0}, to_apply=f",
                types=("f32", "s32"),
                computations=ADD,
                fires=False,
            ),
        )
    },
    "reduce-decomposer": {
        "reduce_in_other_layout": (
            lines(
                "x: T[2,3,4]",
                "z = T[] constant(0)",
                "T[2,3]{0,1} reduce(x, z), dimensions={2}, to_apply=f",
                types=("f32", "s32"),
                computations=ADD,
            ),
            lines(
                "x: T[2,3,4]{2,1,0}",
                "y: T[2,3,4]{0,1,2}",
                "z = T[] constant(0)",
                "(T[3,4]{0,1}, T[3,4]{0,1}) reduce(x, y, z, z), dimensions={0}, to_apply=f",
                types=("f32", "s32"),
                computations=_TWO,
            ),
            lines(
                "x: T[2,3,4]{1,2,0}",
                "z = T[] constant(0)",
                "T[3,4]{0,1} reduce(x, z), dimensions={0}, to_apply=f",
                types=SOME[:1],
                computations=ADD,
                fires=False,
            ),
        )
    },
}
