"""Left sides for rules of `algsimp` about convolutions."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ZERO
from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import Case

TYPES = ("f32", "f64", "s32")
LABELS = "dim_labels=b0f_0io->b0f"


def convolutions(*texts: str, fires: bool = True, **more: object) -> Case:
    """One left side over some element types."""
    return lines(*texts, types=TYPES, fires=fires, **more)


CASES: Mapping[str, tuple[Case, ...]] = {
    "convolution_of_empty": (
        convolutions(
            "x: T[1,0,2]",
            "w: T[3,2,4]",
            f"T[1,2,4] convolution(x, w), window={{size=3 pad=2_2}}, {LABELS}",
        ),
        convolutions(
            "x: T[1,5,2]",
            "w: T[3,2,4]",
            f"T[1,3,4] convolution(x, w), window={{size=3}}, {LABELS}",
            fires=False,
        ),
    ),
    "convolution_that_onednn_lacks": (
        lines(
            "x: T[4,9,3]",
            "w: T[2,3,6]",
            f"T[2,8,6] convolution(x, w), window={{size=2}}, {LABELS}, batch_group_count=2",
            types=("bf16",),
        ),
        lines(
            "x: T[1,5,2]",
            "w: T[3,2,4]",
            f"T[1,1,4] convolution(x, w), window={{size=3 pad=-1_-1}}, {LABELS}",
            types=("bf16",),
        ),
        lines(
            "x: T[1,5,2]",
            "w: T[3,2,4]",
            f"T[1,3,4] convolution(x, w), window={{size=3}}, {LABELS}",
            types=("bf16",),
            fires=False,
        ),
        lines(
            "x: T[4,9,3]",
            "w: T[2,3,6]",
            f"T[2,8,6] convolution(x, w), window={{size=2}}, {LABELS}, batch_group_count=2",
            types=("f32",),
            fires=False,
        ),
    ),
    "convolution_of_pad": (
        convolutions(
            "x: T[1,5,2]",
            "w: T[3,2,4]",
            ZERO,
            "p = T[1,8,2] pad(x, z), padding=0_0x1_2x0_0",
            f"T[1,8,4] convolution(p, w), window={{size=3 pad=1_1}}, {LABELS}",
        ),
        convolutions(
            "x: T[1,3,2]",
            "w: T[2,2,4]",
            ZERO,
            "p = T[1,8,2] pad(x, z), padding=0_0x1_2_1x0_0",
            f"T[1,4,4] convolution(p, w), window={{size=2 stride=2}}, {LABELS}",
        ),
        convolutions(
            "x: T[1,3,2]",
            "w: T[2,2,4]",
            "z = T[] constant(1)",
            "p = T[1,5,2] pad(x, z), padding=0_0x1_1x0_0",
            f"T[1,4,4] convolution(p, w), window={{size=2}}, {LABELS}",
            fires=False,
        ),
        convolutions(
            "x: T[1,3,1]",
            "w: T[2,2,4]",
            ZERO,
            "p = T[1,3,2] pad(x, z), padding=0_0x0_0x1_0",
            f"T[1,2,4] convolution(p, w), window={{size=2}}, {LABELS}",
            fires=False,
        ),
    ),
    "convolution_with_padded_kernel": (
        convolutions(
            "x: T[1,7,2]",
            "w: T[2,2,4]",
            ZERO,
            "p = T[4,2,4] pad(w, z), padding=0_0_2x0_0_0x0_0_0",
            f"T[1,4,4] convolution(x, p), window={{size=4}}, {LABELS}",
        ),
        convolutions(
            "x: T[1,7,2]",
            "w: T[2,2,4]",
            ZERO,
            "p = T[4,2,4] pad(w, z), padding=1_1x0_0x0_0",
            f"T[1,4,4] convolution(x, p), window={{size=4}}, {LABELS}",
            fires=False,
        ),
    ),
    "convolution_with_larger_kernel": (
        convolutions(
            "x: T[2,3,2]",
            "w: T[5,2,4]",
            f"T[2,5,4] convolution(x, w), window={{size=5 pad=4_2}}, {LABELS}",
        ),
        convolutions(
            "x: T[2,3,2,3]",
            "w: T[5,2,3,4]",
            "T[2,3,5,4] convolution(x, w), window={size=5x2 pad=4_3x1_3 stride=2x1 lhs_dilate=1x1 "
            "rhs_dilate=1x1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, "
            "operand_precision={high,default}",
        ),
        convolutions(
            "x: T[2,3,2]",
            "w: T[4,2,4]",
            f"T[2,5,4] convolution(x, w), window={{size=4 pad=4_3 lhs_dilate=2 rhs_dilate=2 "
            f"rhs_reversal=0 stride=2}}, {LABELS}".replace("T[2,5,4]", "T[2,3,4]"),
        ),
        convolutions(
            "x: T[2,5,2]",
            "w: T[3,2,4]",
            f"T[2,3,4] convolution(x, w), window={{size=3}}, {LABELS}",
            fires=False,
        ),
    ),
    "convolution_of_points": (
        convolutions(
            "x: T[2,5,3]{2,1,0}",
            "w: T[1,3,4]{2,1,0}",
            f"T[2,5,4]{{2,1,0}} convolution(x, w), window={{size=1}}, {LABELS}",
        ),
        convolutions(
            "x: T[2,3,5]{1,2,0}",
            "w: T[3,1,4]{0,2,1}",
            "T[5,2,4]{2,0,1} convolution(x, w), window={size=1}, dim_labels=bf0_i0o->0bf",
        ),
        convolutions(
            "x: T[2,5,3]{1,2,0}",
            "w: T[1,3,4]{2,1,0}",
            f"T[2,5,4]{{2,1,0}} convolution(x, w), window={{size=1}}, {LABELS}",
            fires=False,
        ),
        convolutions(
            "x: T[2,5,3]{2,1,0}",
            "w: T[2,3,4]{2,1,0}",
            f"T[2,4,4]{{2,1,0}} convolution(x, w), window={{size=2}}, {LABELS}",
            fires=False,
        ),
    ),
    "convolution_of_channels_apart": (
        convolutions(
            "x: T[2,5,3]",
            "w: T[5,1,3]",
            f"T[2,1,3] convolution(x, w), window={{size=5}}, {LABELS}, feature_group_count=3",
        ),
        convolutions(
            "x: T[2,5,4,3]",
            "w: T[3,1,1,5]",
            "T[3,4,2,1] convolution(x, w), window={size=5x1}, dim_labels=b01f_oi10->f1b0, "
            "feature_group_count=3",
        ),
        lines(
            "x: T[2,5,3]",
            "w: T[5,1,3]",
            f"T[2,1,3] convolution(x, w), window={{size=5}}, {LABELS}, feature_group_count=3",
            types=("bf16", "f16"),
        ),
        convolutions(
            "x: T[2,5,3]",
            "w: T[2,1,3]",
            f"T[2,4,3] convolution(x, w), window={{size=2}}, {LABELS}, feature_group_count=3",
            fires=False,
        ),
    ),
    "convolution_of_scaled": tuple(
        lines(
            *shapes,
            "k = T[] constant(3)",
            scaled,
            f"{result} convolution({operands}), window={{size=3}}, {LABELS}",
            types=("f32", "bf16"),
            fires=fires,
        )
        for shapes, scaled, operands, result, fires in (
            (
                ("x: T[2,9,2]", "w: T[3,2,1]"),
                "s = T[2,9,2] broadcast(k), dimensions={}\nm = T[2,9,2] multiply(x, s)",
                "m, w",
                "T[2,7,1]",
                True,
            ),
            (
                ("x: T[1,4,2]", "w: T[3,2,3]"),
                "s = T[3,2,3] broadcast(k), dimensions={}\nm = T[3,2,3] multiply(w, s)",
                "x, m",
                "T[1,2,3]",
                True,
            ),
            (
                ("x: T[2,9,2]", "w: T[3,2,1]"),
                "s = T[3,2,1] broadcast(k), dimensions={}\nm = T[3,2,1] multiply(w, s)",
                "x, m",
                "T[2,7,1]",
                False,
            ),
        )
    ),
    "scaled_convolution": tuple(
        lines(
            f"x: T[2,{n},2]",
            "w: T[3,2,1]",
            "k = T[] constant(3)",
            f"s = T[2,{n - 2},1] broadcast(k), dimensions={{}}",
            f"c = T[2,{n - 2},1] convolution(x, w), window={{size=3}}, {LABELS}",
            f"T[2,{n - 2},1] multiply(s, c)",
            types=("f32", "bf16"),
            fires=fires,
        )
        for n, fires in ((9, True), (3, False))
    ),
    "scaled_sum_of_convolution": tuple(
        convolutions(
            "x: T[1,4,1]",
            "y: T[1,3,2]",
            "w = T[2,1,2] constant({{{1,2}},{{3,4}}})",
            f"k = T[{size}] constant({{2, 5{', 4' if size > 2 else ''}}})",
            f"s = T[1,3,2] broadcast(k), dimensions={{{dim}}}",
            f"c = T[1,3,2] convolution(x, w), window={{size=2}}, {LABELS}",
            "a = T[1,3,2] add(c, y)",
            "T[1,3,2] multiply(a, s)",
            fires=fires,
        )
        for size, dim, fires in ((2, 2, True), (3, 1, False))
    ),
}
