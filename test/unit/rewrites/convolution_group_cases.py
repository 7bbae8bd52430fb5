"""Left sides for the rules that write convolutions in groups by ordinary ones."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import COMPLEX, Case

TYPES = ("f32", "bf16", "s32", *COMPLEX)
BATCH = {"convert_batch_groups_only": True}
FEATURES = "T[2,5,7,6] convolution(x, w), window={{size=3x2}}, dim_labels={}, feature_group_count=2"
CHANNELS = "T[2,4,6] convolution(x, w), window={size=3 stride=2 pad=2_1}, dim_labels=b0f_0io->b0f, "
SEVERAL = {"filter_expansion": False, "is_cost_viable": True}

_BATCH_GROUPS = (
    "x: T[4,9,3]",
    "w: T[2,3,6]",
    "T[2,8,6] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2",
)
_ONE_EACH = (
    "x: T[3,7,2]",
    "w: T[4,2,3]",
    "T[1,5,3] convolution(x, w), window={size=4 pad=1_0}, dim_labels=b0f_0io->b0f, batch_group_count=3",
)
_OTHER_ORDER = (
    "x: T[5,3,4]",
    "w: T[6,3,2]",
    "T[6,2,4] convolution(x, w), window={size=2}, dim_labels=0fb_oi0->fb0, batch_group_count=2",
)
_ONE_CHANNEL = ("x: T[2,7,3]", "w: T[3,1,6]", CHANNELS + "feature_group_count=3")
_DEPTHWISE = ("x: T[2,7,6]", "w: T[3,1,6]", CHANNELS + "feature_group_count=6")
_GROUPS = ("x: T[2,7,8,4]", "w: T[3,2,2,6]", FEATURES.format("b01f_01io->b01f"))

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "convolution-group-converter": {
        "convolution_of_batch_groups": (
            lines(*_BATCH_GROUPS, types=TYPES),
            lines(*_OTHER_ORDER),
            lines(*_BATCH_GROUPS, options={"convert_batch_groups_only": False}, fires=False),
            lines(*_ONE_EACH, fires=False),
        ),
        "convolution_of_examples_apart": (
            lines(*_ONE_EACH, types=TYPES),
            lines(*_ONE_EACH, options={"filter_expansion": False}),
            lines(*_ONE_EACH, options=SEVERAL, fires=False),
            lines(*_BATCH_GROUPS, fires=False),
        ),
        "convolution_of_feature_groups": (
            lines(*_GROUPS, types=TYPES),
            lines("x: T[2,4,7,8]", *_GROUPS[1:2], FEATURES.format("bf01_01io->b01f")),
            lines(
                "x: T[7,4,2]",
                "w: T[6,3,2]",
                "T[6,2,3] convolution(x, w), window={size=3 stride=2 rhs_reversal=1}, "
                "dim_labels=0fb_o0i->fb0, feature_group_count=2",
            ),
            lines(*_GROUPS, options=BATCH, fires=False),
            lines(*_ONE_CHANNEL, fires=False),
        ),
        "convolution_of_channels_apart": (
            lines(*_ONE_CHANNEL, types=TYPES),
            lines(*_DEPTHWISE),
            lines(*_ONE_CHANNEL, options={"filter_expansion": False}),
            lines(*_DEPTHWISE, options={"filter_expansion": False}, fires=False),
            lines(*_ONE_CHANNEL, options=SEVERAL, fires=False),
            lines(*_GROUPS, fires=False),
        ),
        "convolution_of_channels_to_several": (
            lines(*_ONE_CHANNEL, types=TYPES),
            lines(
                "x: T[3,7,2]",
                "w: T[6,1,3]",
                "T[6,2,5] convolution(x, w), window={size=3}, dim_labels=f0b_oi0->fb0, "
                "feature_group_count=3",
            ),
            lines(*_DEPTHWISE, fires=False),
            lines(*_ONE_CHANNEL, options={"is_cost_viable": False}, fires=False),
        ),
    }
}
