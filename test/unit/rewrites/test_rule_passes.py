"""Every rule of every pass that is a list of rules fires on its left sides and gives what they give.

`algsimp` has a file of its own. A new rule without a case here fails.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from unit.rewrites import (
    convolution_group_cases,
    expander_cases,
    form_cases,
    gpu_cases,
    layout_cases,
    library_cases,
    listed_cases,
    norm_cases,
)
from unit.rewrites.algsimp_data_cases import ADD, LESS, LESS_OF_TWO
from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import ALL, FLOATS, INTEGERS, PRED, REAL, SIGNED, WIDE, Case, prove

from mlirhlo.rewrites.registry import list_passes
from mlirhlo.rewrites.rules import RulePass

PASSES: Mapping[str, type[RulePass]] = {
    name: cls
    for name, info in list_passes(loaded=False).items()
    if name != "algsimp" and issubclass(cls := info.factory(), RulePass) and cls.rules
}

SCALED = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  two = T[] constant(2)\n"
    "  s = T[] add(a, b)\n  ROOT r = T[] multiply(s, two)\n}\n"
)
RANDOM = "f {\n  a = T[] parameter(0)\n  ROOT r = T[] rng(a, a), distribution=rng_uniform\n}\n"
TWO_SUMS = (
    "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  c = T[] parameter(2)\n"
    "  d = T[] parameter(3)\n  s = T[] add(a, c)\n  t = T[] subtract(b, d)\n"
    "  ROOT r = (T[], T[]) tuple(s, t)\n}\n"
)
ORDERS = ("EQ", "NE", "LT", "LE", "GT", "GE")
BATCH = "f32[4,3] batch-norm-inference(x, s, o, m, v), epsilon=0.1, feature_index=1"

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    **expander_cases.CASES,
    **form_cases.CASES,
    **gpu_cases.CASES,
    **norm_cases.CASES,
    **convolution_group_cases.CASES,
    **layout_cases.CASES,
    **library_cases.CASES,
    **listed_cases.CASES,
    "batchnorm_expander": {
        "batch_norm_inference": (
            lines(
                "x: T[4,3]",
                "s o m v: T[3]",
                BATCH.replace("f32", "T"),
                types=WIDE,
            ),
            lines(
                "x: T[3,2,2]",
                "s o m v: T[3]",
                "T[3,2,2] batch-norm-inference(x, s, o, m, v), epsilon=0.5, feature_index=0",
                types=WIDE,
            ),
        ),
        "batch_norm_training": (
            lines(
                "x: T[4,3]",
                "s o: T[3]",
                "(T[4,3], T[3], T[3]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1",
                types=WIDE,
                positive=True,
            ),
        ),
        "batch_norm_grad": (
            lines(
                "x: T[4,3]",
                "s m v: T[3]",
                "g: T[4,3]",
                "(T[4,3], T[3], T[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.5, feature_index=1",
                types=WIDE,
            ),
        ),
    },
    "broadcast_canonicalizer": {
        "broadcast_of_unsorted_dimensions": (
            lines("x: T[2,3]", "T[3,2] broadcast(x), dimensions={1,0}", types=ALL),
            lines("x: T[2,3,4]", "T[4,5,2,3] broadcast(x), dimensions={2,3,0}", types=("f32",)),
            lines("x: T[2,3]", "T[2,5,3] broadcast(x), dimensions={0,2}", fires=False),
        )
    },
    "comparison-expander": {
        "compare_in_total_order": (
            *tuple(
                Case(
                    f"x y: T[S]\npred[S] compare(x, y), direction={d}, type=TOTALORDER",
                    types=FLOATS,
                )
                for d in ORDERS
            ),
            Case("x y: T[S]\npred[S] compare(x, y), direction=LT", types=FLOATS, fires=False),
        )
    },
    "gather_expander": {
        "gather_of_all": (
            lines(
                "x: T[4,1,3]",
                "i: s32[2,1]",
                "T[4,2,3] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={1}, "
                "start_index_map={1}, index_vector_dim=1, slice_sizes={4,1,3}",
            ),
            lines(
                "x: T[4,2]",
                "i: s32[2,1]",
                "T[4,2] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, "
                "start_index_map={1}, index_vector_dim=1, slice_sizes={4,1}",
                fires=False,
            ),
        ),
        "gather_of_any": (
            lines(
                "x: T[5,4]",
                "i: s32[3,1]",
                "T[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
                types=REAL,
            ),
            lines(
                "x: T[5,4,3]",
                "i: u8[2,2,2]",
                "T[2,2,2,3] gather(x, i), offset_dims={0,3}, collapsed_slice_dims={1}, "
                "start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,1,3}",
            ),
            lines(
                "x: T[5]",
                "i: s64[3]",
                "T[3] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
            ),
        ),
        "gather_of_one_slice": (
            lines(
                "x: T[5,4]",
                "i: s32[2]",
                "T[2,2] gather(x, i), offset_dims={0,1}, collapsed_slice_dims={}, "
                "start_index_map={0,1}, index_vector_dim=0, slice_sizes={2,2}",
            ),
            lines(
                "x: T[5,4]",
                "i: s32[3,1]",
                "T[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
                fires=False,
            ),
        ),
    },
    "scatter_expander": {
        "scatter_of_any": (
            lines(
                "x: T[5,4]",
                "i: s32[3,1]",
                "u: T[3,4]",
                "T[5,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f",
                types=REAL,
                computations=ADD,
            ),
            lines(
                "x: T[5,4]",
                "i: u8[2,3]",
                "u: T[2,3,2]",
                "T[5,4] scatter(x, i, u), update_window_dims={0,2}, inserted_window_dims={}, "
                "scatter_dims_to_operand_dims={1,0}, index_vector_dim=0, to_apply=f",
                computations=ADD,
            ),
            lines(
                "x y: T[5]",
                "i: s64[3]",
                "u v: T[3]",
                "(T[5], T[5]) scatter(x, y, i, u, v), update_window_dims={}, "
                "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
                "to_apply=f",
                types=REAL,
                computations=TWO_SUMS,
            ),
        ),
        "scatter_of_one_window": (
            lines(
                "x: T[5,4]",
                "i: s32[2]",
                "u: T[2,2]",
                "T[5,4] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, "
                "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f",
                computations=ADD,
            ),
        ),
    },
    "logistic-expander": {
        "logistic_function": (Case("x: T[S]\nT[S] logistic(x)", types=FLOATS),),
    },
    "map-inline": {
        "map_of_elementwise_instructions": (
            lines(
                "x y: T[4]",
                "T[4] map(x, y), dimensions={0}, to_apply=f",
                types=REAL,
                computations=SCALED,
            ),
            lines(
                "x: T[4]",
                "T[4] map(x), dimensions={0}, to_apply=f",
                computations=RANDOM,
                fires=False,
            ),
        )
    },
    "simplify-sorts": {
        "sort_of_unread_operands": (
            lines(
                "x: T[6]",
                "i: s32[6]",
                "s = (T[6], s32[6]) sort(x, i), dimensions={0}, is_stable=true, to_apply=f",
                "T[6] get-tuple-element(s), index=0",
                types=SIGNED,
                computations=LESS_OF_TWO,
            ),
            lines(
                "x: T[6]",
                "i: s32[6]",
                "s = (T[6], s32[6]) sort(x, i), dimensions={0}, is_stable=true, to_apply=f",
                "s32[6] get-tuple-element(s), index=1",
                computations=LESS_OF_TWO,
                fires=False,
            ),
        )
    },
    "topk-decomposer": {
        "topk_values_by_sort": (
            lines(
                "x: T[3,6]",
                "t = (T[3,2], s32[3,2]) topk(x), k=2, largest=true",
                "T[3,2] get-tuple-element(t), index=0",
                types=REAL,
            ),
            lines(
                "x: T[3,6]",
                "t = (T[3,2], s32[3,2]) topk(x), k=2, largest=true",
                "s32[3,2] get-tuple-element(t), index=1",
                types=REAL,
                fires=False,
            ),
        ),
        "topk_by_sort": tuple(
            lines("x: T[3,6]", f"(T[3,2], s32[3,2]) topk(x), k=2, largest={way}", types=REAL)
            for way in ("true", "false")
        ),
    },
    "transpose-folding": {
        "dot_of_transpose": (
            lines(
                "x: T[2,3]",
                "y: T[2,4]",
                "t = T[3,2] transpose(x), dimensions={1,0}",
                "T[3,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                types=REAL,
            ),
            lines(
                "x: T[2,3,5]",
                "y: T[5,2,4]",
                "t = T[5,3,2] transpose(x), dimensions={2,1,0}",
                "T[5,3,4] dot(t, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_batch_dims={0}, rhs_contracting_dims={1}",
            ),
            lines(
                "x: T[2,3,5]",
                "y: T[2,4]",
                "t = T[2,5,3] transpose(x), dimensions={0,2,1}",
                "T[5,3,4] dot(t, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
                fires=False,
            ),
        ),
        "convolution_of_transpose": (
            lines(
                "x: T[2,3,8]",
                "k: T[4,3,3]",
                "t = T[2,8,3] transpose(x), dimensions={0,2,1}",
                "u = T[3,3,4] transpose(k), dimensions={2,1,0}",
                "T[2,6,4] convolution(t, u), window={size=3}, dim_labels=b0f_0io->b0f",
                types=WIDE,
            ),
        ),
    },
    "convert-mover": {
        "move_of_widening": (
            lines(
                "x: bf16[2,3]", "w = f32[2,3] convert(x)", "f32[3,2] transpose(w), dimensions={1,0}"
            ),
            lines("x: s8[2,3]", "w = s32[2,3] convert(x)", "s32[6] reshape(w)"),
            lines("x: f16[6]", "w = f64[6] convert(x)", "f64[2] slice(w), slice={[1:5:2]}"),
            lines("x: f32[6]", "w = c64[6] convert(x)", "c64[2] slice(w), slice={[1:5:2]}"),
            lines("x: f32[2,3]", "w = bf16[2,3] convert(x)", "bf16[6] reshape(w)", fires=False),
            lines("x: s4[6]", "w = s32[6] convert(x)", "s32[2,3] reshape(w)", fires=False),
            lines(
                "x y: u8[2]",
                "a = u16[2] convert(x)",
                "b = u16[2] convert(y)",
                "k = u16[3] constant({0, 7, 255})",
                "u16[7] concatenate(a, k, b), dimensions={0}",
            ),
            lines(  # 256 is none of the narrow type's
                "x: u8[2]",
                "a = u16[2] convert(x)",
                "k = u16[1] constant({256})",
                "u16[3] concatenate(a, k), dimensions={0}",
                fires=False,
            ),
            lines(
                "x: u8[2]",
                "y: s8[2]",
                "a = u16[2] convert(x)",
                "b = u16[2] convert(y)",
                "u16[4] concatenate(a, b), dimensions={0}",
                fires=False,
            ),
            lines(
                "x: f16[3]",
                "w = f32[3] convert(x)",
                "k = f32[] constant(-2.5)",
                "f32[6] pad(w, k), padding=1_2",
            ),
            lines(  # infinite in the narrow type
                "x: f16[3]",
                "w = f32[3] convert(x)",
                "k = f32[] constant(1e9)",
                "f32[6] pad(w, k), padding=1_2",
                fires=False,
            ),
            lines(
                "x: f16[3]",
                "k: f32[]",
                "w = f32[3] convert(x)",
                "f32[6] pad(w, k), padding=1_2",
                fires=False,
            ),
        ),
        "narrowing_of_move": (
            lines(
                "x: f32[2,3]", "t = f32[3,2] transpose(x), dimensions={1,0}", "bf16[3,2] convert(t)"
            ),
            lines(
                "x: s32[3]",
                "k = s32[] constant(1000)",
                "p = s32[6] pad(x, k), padding=1_2",
                "s8[6] convert(p)",
            ),
            lines(
                "x y: f32[3]",
                "c = f32[6] concatenate(x, y), dimensions={0}",
                "f16[6] convert(c)",
            ),
            lines("x: f32[6]", "c = f32[2] slice(x), slice={[1:5:2]}", "f16[2] convert(c)"),
            lines("x: bf16[2,3]", "t = bf16[6] reshape(x)", "f32[6] convert(t)", fires=False),
        ),
    },
    "custom-call-expander": {
        "annotation_of_a_value": (
            lines(
                "x: T[4,3]", 'T[4,3] custom-call(x), custom_call_target="MoveToHost"', types=REAL
            ),
            lines(
                "x: T[4,3]",
                'T[4,3]{0,1} custom-call(x), custom_call_target="LayoutConstraint"',
                types=REAL,
            ),
        ),
        "buffer_without_contents": (
            lines('T[4,3] custom-call(), custom_call_target="AllocateBuffer"', types=REAL),
        ),
        "best_of_a_row": (
            lines(
                "x: T[3,6]",
                '(T[3,2], s32[3,2]) custom-call(x), custom_call_target="TopK", '
                "api_version=API_VERSION_TYPED_FFI, backend_config={largest = false}",
                types=SIGNED,
            ),
        ),
        "size_that_is_known": (
            lines("x: T[3,6]", "s32[] get-dimension-size(x), dimensions={1}", types=REAL),
        ),
    },
    "dot_decomposer": {
        "dot_of_any_dimensions": (
            lines(
                "x: T[2,3,5]",
                "y: T[5,2,4]",
                "T[3,4] dot(x, y), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0}",
                types=INTEGERS,
            ),
            lines(
                "x: T[2,3,5,7]",
                "y: T[7,4,2]",
                "T[2,3,5,4] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={3}, "
                "rhs_batch_dims={2}, rhs_contracting_dims={0}",
                types=INTEGERS,
            ),
            lines("x y: T[6]", "T[6,6] dot(x, y)", types=INTEGERS),
            lines(
                "x: T[2,3]",
                "y: T[3,4]",
                "T[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                fires=False,
            ),
        )
    },
    "real_imag_expander": {
        "real_of_real": (Case("x: T[S]\nT[S] real(x)", types=FLOATS),),
        "imag_of_real": (
            Case("x: T[S]\nT[S] imag(x)", types=FLOATS),
            Case("x: c64[S]\nf32[S] imag(x)", fires=False),
        ),
    },
    "simplify-fp-conversions": {
        "convert_of_widening": (
            Case("x: T[S]\nw = f64[S] convert(x)\nT[S] convert(w)", types=("f32", "bf16", "f16")),
            Case("x: bf16[S]\nw = f32[S] convert(x)\nf16[S] convert(w)"),
            Case("x: f32[S]\nw = bf16[S] convert(x)\nf32[S] convert(w)", fires=False),
        ),
        "convert_of_narrowing": (
            Case("x: bf16[S]\nw = f32[S] convert(x)\nbf16[S] convert(w)", fires=False),
            Case("x: f64[S]\nw = f32[S] convert(x)\nbf16[S] convert(w)"),
        ),
    },
    "stable-sort-expander": {
        "stable_sort": (
            lines(
                "x: T[6]",
                "i: s32[6]",
                "(T[6], s32[6]) sort(x, i), dimensions={0}, is_stable=true, to_apply=f",
                types=REAL,
                computations=LESS_OF_TWO,
            ),
            lines(
                "x: T[3,6]",
                "T[3,6] sort(x), dimensions={1}, is_stable=true, to_apply=f",
                types=SIGNED,
                computations=LESS,
            ),
            lines(
                "x: T[6]",
                "T[6] sort(x), dimensions={0}, to_apply=f",
                computations=LESS,
                fires=False,
            ),
        )
    },
    "tuple-simplifier": {
        "get_tuple_element_of_tuple": (
            lines(
                "x: T[3]",
                "p: pred[]",
                "t = (T[3], pred[]) tuple(x, p)",
                "T[3] get-tuple-element(t), index=0",
                types=(*REAL, *PRED),
            ),
        ),
        "tuple_of_get_tuple_elements": (
            lines(
                "x: T[3]",
                "s = (T[3], T[3]) sort(x, x), dimensions={0}, to_apply=f",
                "a = T[3] get-tuple-element(s), index=0",
                "b = T[3] get-tuple-element(s), index=1",
                "(T[3], T[3]) tuple(a, b)",
                types=SIGNED,
                computations=LESS_OF_TWO.replace("s32[]", "T[]"),
            ),
        ),
    },
}

RULES = [(name, rule.name) for name, cls in PASSES.items() for rule in cls.rules]


def test_every_rule_has_cases() -> None:
    have = {(name, rule) for name, cases in CASES.items() for rule in cases}
    assert have == set(RULES)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("name", "rule"), RULES)
def test_both_sides_give_the_same(name: str, rule: str) -> None:
    found = next(r for r in PASSES[name].rules if r.name == rule)
    cases = CASES[name][rule]
    assert any(case.fires for case in cases)
    for case in cases:
        assert prove(PASSES[name], found, case)
