"""`bfloat16-propagation`: what XLA narrowed is narrowed, and without its option every bit stays."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import CORPUS, needs_shared

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.precision.bfloat16_propagation import Bfloat16PropagationPass

FUNCTIONS = """
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
cond { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT r = pred[] compare(i, k), direction=LT }
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] reverse(x), dimensions={0}
  z = f32[8] maximum(x, y)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[8]) tuple(j, z) }
fused { a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  p = f32[8] multiply(a, b)
  ROOT n = f32[8] negate(p) }
"""
CASES = {
    "chain": "m = f32[8] multiply(x, y)\na = f32[8] abs(m)\nROOT c = bf16[8] convert(a)",
    "choice": "p = pred[8] compare(x, y), direction=LT\nd = f32[8] divide(x, y)\n"
    "s = f32[8] select(p, d, x)\nROOT c = bf16[8] convert(s)",
    "most": "e = f32[8] exponential(x)\nz = f32[] constant(-inf)\n"
    "r = f32[] reduce(e, z), dimensions={0}, to_apply=most\nROOT c = bf16[] convert(r)",
    "constant": "k = f32[8] constant({1.001, 2.002, -0, inf, nan, 1e-42, 7, 3e38})\n"
    "m = f32[8] minimum(k, x)\nROOT c = bf16[8] convert(m)",
    "integers": "i = s8[8] convert(x)\nf = f32[8] convert(i)\nm = f32[8] multiply(f, y)\n"
    "a = f32[8] abs(f)\nb = bf16[8] convert(a)\nc = bf16[8] convert(m)\nROOT r = bf16[8] add(b, c)",
    "loop": "zero = s32[] constant(0)\nt = (s32[], f32[8]) tuple(zero, x)\n"
    "w = (s32[], f32[8]) while(t), condition=cond, body=body\n"
    "o = f32[8] get-tuple-element(w), index=1\nc = bf16[8] convert(o)\n"
    "ROOT r = (bf16[8], f32[8]) tuple(c, x)",
    "bitcast": "m = f32[8] multiply(x, y)\nb = f32[2,4] bitcast(m)\nn = f32[2,4] negate(b)\n"
    "ROOT c = bf16[2,4] convert(n)",
    "bitcast_of_another_part": "m = f32[8] multiply(x, y)\nd = f32[8] subtract(x, y)\n"
    "t = (f32[8], f32[8]) tuple(m, d)\ng = f32[8] get-tuple-element(t), index=1\n"
    "b = f32[2,4] bitcast(g)\ni = s32[8] bitcast(m)\n"
    "c = bf16[2,4] convert(b)\nROOT r = (bf16[2,4], s32[8]) tuple(c, i)",
    "tuple_constant": "k = ((f32[8], s32[]), f32[2]) constant((({1.001, 2.002, -0, inf, nan, 1e-42, 7, 3e38}, 5), "
    "{1.1, 2.2}))\nt = (f32[8], s32[]) get-tuple-element(k), index=0\n"
    "f = f32[8] get-tuple-element(t), index=0\no = f32[2] get-tuple-element(k), index=1\n"
    "c = bf16[8] convert(f)\nROOT r = (bf16[8], f32[2]) tuple(c, o)",
    "fusion": "f = f32[8] fusion(x, y), kind=kLoop, calls=fused\nROOT c = bf16[8] convert(f)",
}


def _narrowed(before: HloModule, after: HloModule) -> set[tuple[str, str]]:
    """Instructions, by computation and name, with a result that is bf16 in one module only."""

    def types(module: HloModule) -> dict[tuple[str, str], list[str]]:
        return {
            (computation.computation_name, op.instruction_name or ""): [
                part.element_type.name
                for _, part in leaves(op.shape)
                if isinstance(part, ArrayShape)
            ]
            for computation in module.computations
            for op in computation.instructions
        }

    old, new = types(before), types(after)
    return {key for key, found in new.items() if key in old and old[key] != found}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", CASES)
def test_every_bit_stays(name: str) -> None:
    text = (
        f"HloModule m\n{FUNCTIONS}\nENTRY e {{\n  x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n"
        f"{CASES[name]}\n}}\n"
    )
    before, after = parse_module(text), parse_module(text)
    assert Bfloat16PropagationPass().run(HloModule(after), Trace())
    assert verify_module(after) == []
    assert _narrowed(HloModule(before), HloModule(after))
    assert not Bfloat16PropagationPass().run(HloModule(after), Trace())
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.39e38, 1.00390625], np.float32)
    rng = np.random.default_rng(0)
    for x in (special, rng.normal(size=8).astype(np.float32)):
        arguments: list[object] = [x, x[::-1].copy()]
        with np.errstate(all="ignore"):
            pairs = zip(run_module(before, arguments), run_module(after, arguments), strict=True)
        for want, got in pairs:
            a, b = np.asarray(want), np.asarray(got)
            assert a.dtype == b.dtype
            same = a.view(np.uint16 if a.dtype == ml_dtypes.bfloat16 else np.uint32) == b.view(
                np.uint16 if a.dtype == ml_dtypes.bfloat16 else np.uint32
            )
            assert (same | (np.isnan(a.astype(float)) & np.isnan(b.astype(float)))).all()


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "made",
    [
        "i = s32[8] convert(x)\nf = f32[8] convert(i)",  # rounded to f32 first
        "z = c64[8] complex(x, y)\nf = f32[8] real(z)",
        "i = s32[8] bitcast(x)\nf = f32[8] bitcast(i)",
        "f = f32[8] add(x, y)\ni = s32[8] bitcast(f)",
        "f = f32[8] reduce-precision(x), exponent_bits=5, mantissa_bits=10",
        'f = f32[8] custom-call(x), custom_call_target="LayoutConstraint"',
    ],
)
def test_what_does_not_round_once_stays(made: str) -> None:
    body = f"  x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n{made}\n  ROOT c = bf16[8] convert(f)\n"
    module = parse_module(f"HloModule m\nENTRY e {{\n{body}}}\n")
    assert not Bfloat16PropagationPass().run(HloModule(module), Trace())


@pytest.mark.one_case_in(2)
@needs_shared
@pytest.mark.parametrize("program", ["conv2d_zoo", "mlp_forward", "reduce_arg"])
def test_what_xla_narrowed_is_narrowed(program: str) -> None:
    archive: Path = CORPUS / "programs" / program / f"{program}.tpu.passes.tar.gz"
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            handle = files.extractfile(name)
            assert handle is not None
            return handle.read().decode()

        for row in json.loads(read("INDEX.json")):
            if row["pass"] != "bfloat16-propagation":
                continue
            before, after = parse_module(read(row["before"])), parse_module(read(row["file"]))
            ours = parse_module(read(row["before"]))
            assert Bfloat16PropagationPass(dots=True).run(HloModule(ours), Trace())
            assert verify_module(ours) == []
            wanted = _narrowed(HloModule(before), HloModule(after))
            assert wanted
            assert wanted <= _narrowed(HloModule(before), HloModule(ours))
