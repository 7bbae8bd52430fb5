"""Left sides for the rules that hand layer norms and their gradients to cuDNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unit.rewrites.gpu_cases import lines
from unit.rewrites.rule_proofs import Case

SUM = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT s = T[] add(a, b)\n}\n"
NORM = (
    "z = T[] constant(0)",
    "n = T[] constant({inverse})",
    "nn = T[{rows}] broadcast(n), dimensions={{}}",
    "s = T[{rows}] reduce(x, z), dimensions={{{over}}}, to_apply=f",
    "m = T[{rows}] {average}(s, nn)",
    "mm = T[{sizes}] broadcast(m), dimensions={{{kept}}}",
    "d = T[{sizes}] subtract(x, mm)",
    "dd = T[{sizes}] multiply(d, d)",
    "ss = T[{rows}] reduce(dd, z), dimensions={{{over}}}, to_apply=f",
    "v = T[{rows}] {average}(ss, nn)",
    "e = T[] constant(0.25)",
    "ee = T[{rows}] broadcast(e), dimensions={{}}",
    "ve = T[{rows}] add(v, ee)",
    "rs = T[{rows}] rsqrt(ve)",
    "rr = T[{sizes}] broadcast(rs), dimensions={{{kept}}}",
    "gg = T[{sizes}] broadcast(g), dimensions={{{over}}}",
    "bb = T[{sizes}] broadcast(b), dimensions={{{over}}}",
)
"""Averages over the dimensions `over` of x: T[sizes]."""


def norm(
    *last: str,
    sizes: str = "6,5",
    rows: str = "6",
    inner: str = "5",
    over: str = "1",
    kept: str = "0",
    average: str = "multiply",
    inverse: str = "0.2",
    **more: Any,
) -> Case:
    """A layer norm whose last lines are given."""
    names = {"sizes": sizes, "rows": rows, "over": over, "kept": kept}
    names |= {"average": average, "inverse": inverse}
    body = tuple(line.format(**names) for line in (*NORM, *last))
    return lines(
        f"x: T[{sizes}]", f"g b: T[{inner}]", *body, computations=SUM, types=("f32", "f16"), **more
    )


PLAIN = (
    "p = T[{sizes}] multiply(d, rr)",
    "q = T[{sizes}] multiply(p, gg)",
    "T[{sizes}] add(q, bb)",
)
TRAINING = (
    *PLAIN[:2],
    "y = T[{sizes}] add(q, bb)",
    "c = T[{rows}] divide(rs, ve)",
    "cm = T[{rows}] multiply(c, m)",
    "cc = T[{sizes}] broadcast(cm), dimensions={{{kept}}}",
    "T[{sizes}] multiply(y, cc)",
)
DEEP = {"sizes": "2,3,4,5", "rows": "2,4", "inner": "3,5", "over": "1,3", "kept": "0,2"}

FORWARD = (
    "z = T[] constant(0)",
    "turned = T[{turned}] transpose(x), dimensions={{{kept},{over}}}",
    "flat = T[{flat}] reshape({source})",
    "gr = T[1,{inner},1,1] reshape(g)",
    "br = T[1,{inner},1,1] reshape(b)",
    (
        "call = (T[{flat}], T[{count},1,1,1], T[{count},1,1,1], u8[64]) custom-call(flat, gr, br), "
        'custom_call_target="__cudnn$norm", backend_config={{"cudnn_norm_backend_config":'
        '{{"epsilon":0.25,"kind":"{kind}"}}}}'
    ),
    "mean = T[{count},1,1,1] get-tuple-element(call), index=1",
    "m = T[{rows}] reshape(mean)",
    "factor = T[{count},1,1,1] get-tuple-element(call), index=2",
    "rf = T[{rows}] reshape(factor)",
    "mm = T[{sizes}] broadcast(m), dimensions={{{kept}}}",
    "rr = T[{sizes}] broadcast(rf), dimensions={{{kept}}}",
    "gg = T[{sizes}] broadcast(g), dimensions={{{over}}}",
    "d = T[{sizes}] subtract(x, mm)",
    "h = T[{sizes}] multiply(d, rr)",
    "hy = T[{sizes}] multiply(h, dy)",
    "dscale = T[{inner}] reduce(hy, z), dimensions={{{kept}}}, to_apply=f",
    "dbias = T[{inner}] reduce(dy, z), dimensions={{{kept}}}, to_apply=f",
    "gy = T[{sizes}] multiply(gg, dy)",
    "n = T[] constant({inverse})",
    "nn = T[{rows}] broadcast(n), dimensions={{}}",
)
STEPS = (
    "dg = T[{sizes}] multiply(d, gy)",
    "s0 = T[{rows}] reduce(dg, z), dimensions={{{over}}}, to_apply=f",
    "rq = T[{rows}] multiply(rf, rf)",
    "rc = T[{rows}] multiply(rq, rf)",
    "k = T[] constant(-0.5)",
    "kk = T[{rows}] broadcast(k), dimensions={{}}",
    "rk = T[{rows}] multiply(rc, kk)",
    "sr = T[{rows}] multiply(s0, rk)",
    "tw = T[] constant({twice})",
    "tn = T[{rows}] broadcast(tw), dimensions={{}}",
    "sn = T[{rows}] multiply(sr, tn)",
    "sb = T[{sizes}] broadcast(sn), dimensions={{{kept}}}",
    "f1 = T[{sizes}] multiply(d, sb)",
    "f2 = T[{sizes}] multiply(rr, gy)",
    "n1 = T[{sizes}] negate(f1)",
    "t1 = T[{rows}] reduce(n1, z), dimensions={{{over}}}, to_apply=f",
    "t2 = T[{rows}] reduce(f2, z), dimensions={{{over}}}, to_apply=f",
    "n2 = T[{rows}] negate(t2)",
    "t = T[{rows}] add(t1, n2)",
    "tm = T[{rows}] multiply(t, nn)",
    "tb = T[{sizes}] broadcast(tm), dimensions={{{kept}}}",
    "f = T[{sizes}] add(f1, f2)",
    "dx = T[{sizes}] add(f, tb)",
)
"""The gradient as it comes step by step."""
CLOSED = (
    "hg = T[{sizes}] multiply(h, gy)",
    "a = T[{rows}] reduce(gy, z), dimensions={{{over}}}, to_apply=f",
    "c = T[{rows}] reduce(hg, z), dimensions={{{over}}}, to_apply=f",
    "an = T[{rows}] multiply(a, nn)",
    "cn = T[{rows}] multiply(nn, c)",
    "ab = T[{sizes}] broadcast(an), dimensions={{{kept}}}",
    "cb = T[{sizes}] broadcast(cn), dimensions={{{kept}}}",
    "hc = T[{sizes}] multiply(h, cb)",
    "e = T[{sizes}] subtract(gy, ab)",
    "ee = T[{sizes}] subtract(e, hc)",
    "dx = T[{sizes}] multiply(rr, ee)",
)
"""The gradient as it is written by hand."""
ALL_THREE = "(T[{sizes}], T[{inner}], T[{inner}]) tuple(dx, dscale, dbias)"


def gradient(
    *last: str,
    sizes: str = "6,5",
    rows: str = "6",
    count: str = "6",
    inner: str = "5",
    over: str = "1",
    kept: str = "0",
    flat: str = "6,5,1,1",
    turned: str = "6,5",
    source: str = "x",
    inverse: str = "0.2",
    twice: str = "0.4",
    kind: str = "LAYER_FWD_TRAIN",
    **more: Any,
) -> Case:
    """A call of a layer norm of training and what a gradient's last lines make of it."""
    names = {"sizes": sizes, "rows": rows, "count": count, "inner": inner, "over": over}
    names |= {"kept": kept, "flat": flat, "turned": turned, "source": source}
    names |= {"inverse": inverse, "twice": twice, "kind": kind}
    body = tuple(line.format(**names) for line in (*FORWARD, *last))
    given = (f"x dy: T[{sizes}]", f"g b: T[{inner}]")
    return lines(*given, *body, computations=SUM, **({"types": ("f32",)} | more))


MIDDLE: Mapping[str, str] = {
    "sizes": "2,3,4",
    "rows": "2,4",
    "count": "8",
    "inner": "3",
    "over": "1",
    "kept": "0,2",
    "flat": "8,3,1,1",
    "turned": "2,4,3",
    "source": "turned",
    "inverse": "0.33333334",
    "twice": "0.6666667",
}
"""Averages over the dimension in the middle."""

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "cudnn-norm-rewriter": {
        "layer_norm_gradient": (
            gradient(*STEPS, ALL_THREE),
            gradient(*CLOSED, ALL_THREE, types=("f32", "f16")),
            gradient(*STEPS, ALL_THREE, **MIDDLE),
            gradient(*CLOSED, ALL_THREE, **MIDDLE),
            # A call that keeps no mean and factor, other numbers and signs, and another factor.
            gradient(*CLOSED, ALL_THREE, kind="LAYER_FWD_INFER", fires=False),
            gradient(*CLOSED, ALL_THREE, inverse="0.25", fires=False),
            gradient(*STEPS, ALL_THREE, twice="0.5", fires=False),
            gradient(*STEPS[:-1], "dx = T[{sizes}] subtract(f, tb)", ALL_THREE, fires=False),
            gradient(*CLOSED[:-1], "dx = T[{sizes}] multiply(h, ee)", ALL_THREE, fires=False),
        ),
        "layer_norm_of_training": (
            norm(*TRAINING),
            norm(*TRAINING, average="divide", inverse="15", **DEEP),
            norm(*PLAIN, fires=False),
        ),
        "layer_norm": (
            norm(*PLAIN),
            norm(*PLAIN, average="divide", inverse="15", **DEEP),
            norm(
                "p = T[{sizes}] multiply(gg, rr)",
                "q = T[{sizes}] multiply(p, d)",
                "T[{sizes}] add(bb, q)",
            ),
            # The difference multiplied out.
            norm(
                "w = T[{sizes}] multiply(gg, rr)",
                "p = T[{sizes}] multiply(x, w)",
                "q = T[{sizes}] multiply(mm, w)",
                "c = T[{sizes}] subtract(bb, q)",
                "T[{sizes}] add(c, p)",
            ),
            norm(
                "w = T[{sizes}] multiply(gg, rr)",
                "p = T[{sizes}] multiply(x, w)",
                "q = T[{sizes}] multiply(mm, w)",
                "c = T[{sizes}] add(p, bb)",
                "T[{sizes}] subtract(c, q)",
            ),
            # The variance as the mean of squares less the square of the mean.
            norm(
                "xx = T[{sizes}] multiply(x, x)",
                "sx = T[{rows}] reduce(xx, z), dimensions={{{over}}}, to_apply=f",
                "mx = T[{rows}] multiply(sx, nn)",
                "sm = T[{rows}] multiply(m, m)",
                "vx = T[{rows}] subtract(mx, sm)",
                "vy = T[{rows}] add(ee, vx)",
                "rx = T[{rows}] rsqrt(vy)",
                "ry = T[{sizes}] broadcast(rx), dimensions={{{kept}}}",
                "p = T[{sizes}] multiply(d, ry)",
                "q = T[{sizes}] multiply(p, gg)",
                "T[{sizes}] add(q, bb)",
            ),
            # No average: multiplied by another number.
            norm(*PLAIN, inverse="0.25", fires=False),
            norm(*PLAIN[:2], "T[{sizes}] add(q, x)", fires=False),
            norm(*PLAIN[:1], "q = T[{sizes}] multiply(p, mm)", PLAIN[2], fires=False),
        ),
    },
}
