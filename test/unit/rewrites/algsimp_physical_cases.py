"""Left sides for rules of `algsimp` about bitcasts and copies, most where layouts are assigned."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_shape_cases import NUMERIC, lines
from unit.rewrites.rule_proofs import Case

CASES: Mapping[str, tuple[Case, ...]] = {
    "bitcast_of_bitcast": (
        lines("x: T[2,3]{1,0}", "a = T[6]{0} bitcast(x)", "T[3,2]{1,0} bitcast(a)"),
        lines("x: T[2,3]{1,0}", "a = T[3,2]{0,1} bitcast(x)", "T[2,3]{0,1} bitcast(a)"),
        lines("x: T[2,3]{1,0}", "T[6]{0} bitcast(x)", fires=False),
    ),
    "bitcast_to_same_shape": (
        lines("x: T[2,3]{1,0}", "T[2,3]{1,0} bitcast(x)"),
        lines("x: T[2,3]{1,0}", "T[3,2]{0,1} bitcast(x)", fires=False),
        lines("x: T[2,3]{1,0}", "T[2,3]{0,1} bitcast(x)", fires=False),
    ),
    "bitcast_of_elementwise_of_bitcast": (
        lines(
            "x: T[2,3]{1,0}",
            "a = T[6]{0} bitcast(x)",
            "n = T[6]{0} negate(a)",
            "T[3,2]{0,1} bitcast(n)",
            types=NUMERIC,
        ),
        lines(
            "x: T[2,3]{1,0}",
            "a = T[6]{0} bitcast(x)",
            "n = T[6]{0} negate(a)",
            "y = T[3,2]{0,1} bitcast(n)",
            "(T[3,2]{0,1}, T[6]) tuple(y, n)",
            types=NUMERIC,
            fires=False,
        ),
    ),
    "bitcast_of_broadcast": (
        lines(
            "x: T[2]{0}",
            "a = T[2,3]{1,0} broadcast(x), dimensions={0}",
            "T[3,2]{0,1} bitcast(a)",
        ),
        lines(
            "x: T[2,4]{1,0}",
            "a = T[2,3,4]{0,2,1} broadcast(x), dimensions={0,2}",
            "T[3,4,2]{2,1,0} bitcast(a)",
        ),
        lines(
            "x: T[2]{0}",
            "a = T[2,3]{1,0} broadcast(x), dimensions={0}",
            "T[6]{0} bitcast(a)",
            fires=False,
        ),
    ),
    "bitcast_convert_in_place": (
        lines("x: T[2,3]{0,1}", "u32[2,3]{0,1} bitcast-convert(x)", types=("f32", "s32")),
        lines("x: T[2,3]{0,1}", "u8[2,3,4]{2,0,1} bitcast-convert(x)", types=("f32", "s32")),
        lines("x: T[2,3,4]{2,0,1}", "s32[2,3]{0,1} bitcast-convert(x)", types=("u8",)),
        lines(
            "x: T[2,3]{0,1}", "u32[2,3]{1,0} bitcast-convert(x)", types=("f32", "s32"), fires=False
        ),
        lines(
            "x: T[2,3]{0,1}",
            "u8[2,3,4]{0,2,1} bitcast-convert(x)",
            types=("f32", "s32"),
            fires=False,
        ),
    ),
    "reshape_in_place": (
        lines("x: T[2,6]{1,0}", "T[2,3,2]{2,1,0} reshape(x)"),
        lines("x: T[2,6]{0,1}", "T[2,3,2]{0,2,1} reshape(x)"),
        lines("x: T[4,6]{1,0}", "T[3,8]{1,0} reshape(x)"),
        lines("x: T[1,6]{0,1}", "T[6,1,1]{1,0,2} reshape(x)"),
        lines("x: T[8,1,2]{2,1,0:T(1,128)}", "T[8,2]{1,0:T(8,128)} reshape(x)"),
        lines("x: T[10,200]{1,0:T(8,128)}", "T[1,10,200]{2,1,0:T(8,128)} reshape(x)"),
        lines("x: T[8,2]{1,0:T(8,128)}", "T[1,16]{1,0:T(1,128)} reshape(x)", fires=False),
        lines("x: T[2,6]{0,1}", "T[12]{0} reshape(x)", fires=False),
        lines("x: T[2,6]{1,0}", "T[2,3,2]{0,2,1} reshape(x)", fires=False),
    ),
    "transpose_in_place": (
        lines("x: T[2,3]{1,0}", "T[3,2]{0,1} transpose(x), dimensions={1,0}"),
        lines("x: T[2,1,3]{2,1,0}", "T[3,1,2]{0,1,2} transpose(x), dimensions={2,1,0}"),
        lines("x: T[2,3]{1,0:T(2,128)}", "T[3,2]{0,1:T(2,128)} transpose(x), dimensions={1,0}"),
        lines("x: T[2,3]{1,0}", "T[3,2]{1,0} transpose(x), dimensions={1,0}", fires=False),
    ),
    "reshape_of_bitcast": (
        lines("x: T[8,2]{0,1}", "a = T[2,4,2]{1,0,2} bitcast(x)", "T[16]{0} reshape(a)"),
        lines("x: T[2,6]{0,1}", "a = T[2,3,2]{0,2,1} bitcast(x)", "T[12]{0} reshape(a)"),
        lines("x: T[2,6]{0,1}", "a = T[1,2,6]{1,2,0} bitcast(x)", "T[12]{0} reshape(a)"),
        lines("x: T[2,3]{1,0}", "a = T[3,2]{0,1} bitcast(x)", "T[6]{0} reshape(a)", fires=False),
    ),
    "copy_of_reshape_in_place": (
        lines("x: T[2,6]{0,1}", "a = T[2,3,2]{2,1,0} reshape(x)", "T[2,3,2]{0,2,1} copy(a)"),
        lines("x: T[6,1]{1,0}", "a = T[6]{0} bitcast(x)", "T[6]{0} copy(a)"),
        lines(
            "x: T[2,6]{0,1}",
            "a = T[2,3,2]{2,1,0} reshape(x)",
            "T[2,3,2]{1,2,0} copy(a)",
            fires=False,
        ),
    ),
    "copy_of_bitcast_of_copy": (
        lines(
            "x: T[2,6]{0,1}",
            "c = T[2,6]{1,0} copy(x)",
            "a = T[2,3,2]{2,1,0} bitcast(c)",
            "T[2,3,2]{1,2,0} copy(a)",
        ),
        lines(
            "x: T[2,6]{0,1}",
            "a = T[3,4]{1,0} bitcast(x)",
            "T[3,4]{0,1} copy(a)",
            fires=False,
        ),
        lines(
            "x: T[2,6]{0,1}",
            "c = T[2,6]{1,0} copy(x)",
            "a = T[3,4]{1,0} bitcast(c)",
            "T[3,4]{0,1} copy(a)",
            fires=False,
        ),
    ),
    "copy_before_reshape": (
        lines("x: T[2,6]{0,1}", "a = T[12]{0} reshape(x)", "T[12]{0} copy(a)"),
        lines("x: T[2,6]{0,1}", "a = T[2,3,2]{2,1,0} reshape(x)", "T[2,3,2]{2,1,0} copy(a)"),
        lines(
            "x: T[2,6]{1,0}",
            "a = T[2,3,2]{2,1,0} reshape(x)",
            "T[2,3,2]{0,1,2} copy(a)",
            fires=False,
        ),
    ),
    "reshape_of_copy": (
        lines("x: T[2,6]{0,1}", "a = T[2,6]{1,0} copy(x)", "T[2,3,2]{0,2,1} reshape(a)"),
        lines("x: T[2,6]{0,1}", "a = T[2,6]{1,0} copy(x)", "T[2,3,2]{1,2,0} reshape(a)"),
        lines(
            "x: T[2,6]{0,1}", "a = T[2,6]{1,0} copy(x)", "T[2,3,2]{2,1,0} reshape(a)", fires=False
        ),
        lines("x: T[2,6]{0,1}", "T[2,3,2]{2,1,0} reshape(x)", fires=False),
    ),
}
