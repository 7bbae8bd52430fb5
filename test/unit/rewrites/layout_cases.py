"""Left sides for the rules about the order of dimensions in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unit.rewrites import algsimp_shape_cases
from unit.rewrites.rule_proofs import ALL, REAL, SIGNED, WIDE, Case


def lines(*texts: str, types: Sequence[str] = ("f32", "s8"), **more: Any) -> Case:
    """One left side with layouts written out."""
    return algsimp_shape_cases.lines(*texts, types=types, **more)


SUM = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT s = T[] add(a, b)\n}\n"
CONV = (
    'window={{size=3x2 pad=1_1x0_1}}, dim_labels={labels}, custom_call_target="__cudnn$conv{kind}"'
)
IMAGE = "(T[2,7,8,5]{3,2,1,0}, u8[0]{0}) custom-call(x, w), " + CONV.format(
    labels="b01f_01io->b01f", kind="Forward"
)

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "layout_normalization": {
        "broadcast_in_order": (
            lines("x: T[3]{0}", "T[2,3]{0,1} broadcast(x), dimensions={1}", types=ALL),
            lines("x: T[3,4]{0,1}", "T[3,2,4]{2,1,0} broadcast(x), dimensions={0,2}"),
            lines("x: T[3,4]{0,1}", "T[4,2,3]{1,0,2} broadcast(x), dimensions={2,0}"),
            lines("x: T[3]{0}", "T[2,3]{1,0} broadcast(x), dimensions={1}", fires=False),
        ),
        "concatenate_in_order": (
            lines(
                "x: T[2,3]{0,1}", "y: T[2,4]{0,1}", "T[2,7]{0,1} concatenate(x, y), dimensions={1}"
            ),
            lines(
                "x: T[2,3,4]{0,2,1}",
                "y: T[5,3,4]{0,2,1}",
                "T[7,3,4]{0,2,1} concatenate(x, y), dimensions={0}",
                types=REAL,
            ),
            lines(
                "x: T[2,3]{0,1}",
                "y: T[2,4]{1,0}",
                "T[2,7]{0,1} concatenate(x, y), dimensions={1}",
                fires=False,
            ),
        ),
        "constant_in_order": (
            lines("T[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})", types=REAL),
            lines("T[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})", fires=False),
        ),
        "convolution_call_in_order": (
            lines(
                "x: T[2,7,8,3]{3,2,1,0}",
                "w: T[3,2,3,5]{2,1,0,3}",
                f"c = {IMAGE}",
                "T[2,7,8,5]{3,2,1,0} get-tuple-element(c), index=0",
                types=WIDE,
                positive=True,
            ),
            lines(
                "x: T[2,7,8,5]{3,1,2,0}",
                "w: T[3,2,3,5]{2,1,0,3}",
                "c = (T[2,7,8,3]{3,2,1,0}, u8[0]{0}) custom-call(x, w), "
                + CONV.format(labels="b01f_01io->b01f", kind="BackwardInput"),
                "T[2,7,8,3]{3,2,1,0} get-tuple-element(c), index=0",
                types=WIDE,
                positive=True,
            ),
            lines(
                "x: T[2,7,8,3]{0,1,2,3}",
                "y: T[2,7,8,5]{3,1,2,0}",
                "c = (T[3,2,3,5]{3,2,1,0}, u8[0]{0}) custom-call(x, y), "
                + CONV.format(labels="b01f_01io->b01f", kind="BackwardFilter"),
                "T[3,2,3,5]{3,2,1,0} get-tuple-element(c), index=0",
                types=WIDE,
                positive=True,
            ),
            lines(
                "x: T[2,7,8,3]{3,2,1,0}",
                "w: T[3,2,3,5]{3,2,1,0}",
                f"c = {IMAGE}",
                "T[2,7,8,5]{3,2,1,0} get-tuple-element(c), index=0",
                types=WIDE,
                fires=False,
            ),
        ),
        "copy_in_order": (
            lines("x: T[2,3]{1,0}", "T[2,3]{0,1} copy(x)", types=ALL),
            lines("x: T[2,3,4]{0,2,1}", "T[2,3,4]{1,2,0} copy(x)"),
            lines("x: T[2,3,4]{0,2,1}", "T[2,3,4]{0,2,1} copy(x)"),
            lines("x: T[2,3]{1,0}", "T[2,3]{1,0} copy(x)", fires=False),
        ),
        "dynamic_slice_in_order": (
            lines(
                "x: T[5,4,3]{0,2,1}",
                "i j k: s32[]",
                "T[2,4,1]{0,2,1} dynamic-slice(x, i, j, k), dynamic_slice_sizes={2,4,1}",
            ),
            lines(
                "x: T[5,4,3]{0,2,1}",
                "u: T[2,4,1]{0,2,1}",
                "i j k: s32[]",
                "T[5,4,3]{0,2,1} dynamic-update-slice(x, u, i, j, k)",
                types=REAL,
            ),
            lines(
                "x: T[5,4]{0,1}",
                "u: T[2,4]{1,0}",
                "i j: s32[]",
                "T[5,4]{0,1} dynamic-update-slice(x, u, i, j)",
                fires=False,
            ),
        ),
        "elementwise_in_order": (
            lines("x: T[2,3]{0,1}", "T[2,3]{0,1} negate(x)", types=(*SIGNED, *WIDE)),
            lines("x y: T[2,3,4]{0,2,1}", "T[2,3,4]{0,2,1} add(x, y)", types=REAL),
            lines("x: T[2,3]{0,1}", "bf16[2,3]{0,1} convert(x)"),
            lines(
                "p: pred[]",
                "x y: T[2,3]{0,1}",
                "T[2,3]{0,1} select(p, x, y)",
                types=("f32",),
            ),
            lines("lo: T[]", "x: T[2,3]{0,1}", "hi: T[]", "T[2,3]{0,1} clamp(lo, x, hi)"),
            lines("x y: T[2,3]{0,1}", "pred[2,3]{0,1} compare(x, y), direction=LT"),
            lines("x: T[2,3]{0,1}", "s32[2,3]{0,1} bitcast-convert(x)", types=("f32",)),
            lines("x y: T[2,3]{1,0}", "T[2,3]{1,0} add(x, y)", fires=False),
            lines("x: T[2,3]{1,0}", "y: T[2,3]{0,1}", "T[2,3]{0,1} add(x, y)", fires=False),
        ),
        "iota_in_order": (
            lines("T[2,3,4]{0,2,1} iota(), iota_dimension=2", types=REAL),
            lines("T[2,3]{1,0} iota(), iota_dimension=1", fires=False),
        ),
        "pad_in_order": (
            lines(
                "x: T[2,3]{0,1}", "c: T[]", "T[6,4]{0,1} pad(x, c), padding=1_2_1x0_1", types=ALL
            ),
            lines(
                "x: T[2,3]{1,0}", "c: T[]", "T[6,4]{1,0} pad(x, c), padding=1_2_1x0_1", fires=False
            ),
        ),
        "reduce_window_in_order": (
            lines(
                "x: T[5,4]{0,1}",
                "c: T[]",
                "T[2,4]{0,1} reduce-window(x, c), window={size=3x2 stride=2x1 pad=0_0x1_0}, to_apply=f",
                types=SIGNED,
                computations=SUM,
            ),
            lines(
                "x: T[5,4]{1,0}",
                "c: T[]",
                "T[3,4]{1,0} reduce-window(x, c), window={size=3x1}, to_apply=f",
                computations=SUM,
                fires=False,
            ),
        ),
        "reshape_in_order": (
            lines("x: T[4,6]{0,1}", "T[2,2,6]{1,0,2} reshape(x)", types=ALL),
            # Bytes move.
            lines("x: T[4,6]{0,1}", "T[24]{0} reshape(x)", fires=False),
            lines("x: T[4,6]{1,0}", "T[24]{0} reshape(x)", fires=False),
        ),
        "reverse_in_order": (
            lines("x: T[2,3,4]{0,2,1}", "T[2,3,4]{0,2,1} reverse(x), dimensions={0,2}", types=ALL),
            lines("x: T[2,3]{1,0}", "T[2,3]{1,0} reverse(x), dimensions={0}", fires=False),
        ),
        "slice_in_order": (
            lines("x: T[5,4]{0,1}", "T[2,3]{0,1} slice(x), slice={[1:5:2], [0:3]}", types=ALL),
            lines("x: T[5,4]{1,0}", "T[2,3]{1,0} slice(x), slice={[1:5:2], [0:3]}", fires=False),
        ),
        "transpose_in_order": (
            lines("x: T[2,3]{1,0}", "T[3,2]{0,1} transpose(x), dimensions={1,0}", types=ALL),
            lines("x: T[2,3,4]{0,2,1}", "T[4,2,3]{1,2,0} transpose(x), dimensions={2,0,1}"),
            lines("x: T[2,3,4]{2,1,0}", "T[4,2,3]{1,2,0} transpose(x), dimensions={2,0,1}"),
            lines("x: T[2,3]{1,0}", "T[3,2]{1,0} transpose(x), dimensions={1,0}", fires=False),
        ),
    },
    "reshape-decomposer": {
        "reshape_in_place": (
            lines("x: T[2,3]{1,0}", "T[6]{0} reshape(x)", types=ALL),
            lines("x: T[4,6]{0,1}", "T[2,2,6]{1,0,2} reshape(x)"),
            lines("x: T[2,3]{0,1}", "T[6]{0} reshape(x)", fires=False),
        ),
        "reshape_that_moves": (
            lines("x: T[2,3]{0,1}", "T[6]{0} reshape(x)", types=ALL),
            lines("x: T[6]{0}", "T[2,3]{0,1} reshape(x)"),
            lines("x: T[4,3,2]{0,1,2}", "T[4,6]{0,1} reshape(x)"),
            lines("x: T[2,3,4]{0,1,2}", "T[3,8]{0,1} reshape(x)"),
            lines("x: T[6,4]{0,1}", "T[4,6]{0,1} reshape(x)"),
            lines("x: T[2,3]{1,0}", "T[6]{0} reshape(x)", fires=False),
        ),
    },
    "reduction-layout-normalizer": {
        "reduce_in_order": (
            lines(
                "x: T[2,3]{0,1}",
                "c: T[]",
                "T[3]{0} reduce(x, c), dimensions={0}, to_apply=f",
                types=SIGNED,
                computations=SUM,
            ),
            lines(
                "x: T[2,3,4,5]{0,1,2,3}",
                "c: T[]",
                "T[3,5]{0,1} reduce(x, c), dimensions={0,2}, to_apply=f",
                computations=SUM,
                types=SIGNED,
            ),
            lines(
                "x: T[2,3,4,5]{0,1,2,3}",
                "c: T[]",
                "T[3,5]{1,0} reduce(x, c), dimensions={0,2}, to_apply=f",
                computations=SUM,
                types=SIGNED,
            ),
            lines(
                "x: T[2,3]{1,0}",
                "c: T[]",
                "T[3]{0} reduce(x, c), dimensions={0}, to_apply=f",
                computations=SUM,
                fires=False,
            ),
        ),
    },
}
