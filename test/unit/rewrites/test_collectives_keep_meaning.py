"""Passes over collectives that are no lists of rules leave programs of several devices computing the same."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_spmd
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

PROGRAM = """HloModule m, replica_count=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[8] parameter(0)
  i = u32[] replica-id()
  k = f32[] convert(i)
  b = f32[8] broadcast(k), dimensions={}
  y = f32[8] multiply(x, b)
  r = f32[8] all-reduce(y), replica_groups={{0,1},{2,3}}, to_apply=add
  g = f32[16] all-gather(r), replica_groups={{0,2},{1,3}}, dimensions={0}
  p = f32[16] collective-permute(g), source_target_pairs={{0,1},{1,2},{2,3}}
  s = f32[4] reduce-scatter(p), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add
  t = f32[4] all-to-all(s), replica_groups={{3,2,1,0}}, dimensions={0}
  u = (f32[4], f32[8]) all-reduce(t, y), replica_groups={{0,1,2,3}}, to_apply=add
  o = f32[8] opt-barrier(x)
  v = f32[32] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={0}
  w = f32[32] all-gather(o), replica_groups={{0,1,2,3}}, dimensions={0}
  n = f32[32] negate(w)
  ROOT z = ((f32[4], f32[8]), f32[32], f32[32]) tuple(u, v, n)
}
"""


@pytest.mark.parametrize(
    "pipeline",
    [
        "all-gather-cse",
        "async-collective-creator",
        "async-collective-creator,hlo-trivial-scheduler,convert-async-collectives-to-sync",
        "async-collective-creator{opcodes=all-to-all,all-gather},hlo-trivial-scheduler",
        "all-reduce-contiguous,async-collective-creator",
    ],
)
def test_devices_get_the_same(pipeline: str) -> None:
    arguments = [[np.arange(8, dtype=np.float32) + 10 * n] for n in range(4)]
    before, after = parse_module(PROGRAM), parse_module(PROGRAM)
    assert run_pipeline(after, parse_pipeline(pipeline)).changed
    assert verify_module(after) == []
    want, got = run_spmd(before, arguments), run_spmd(after, arguments, check=True)
    for a, b in zip(want, got, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("decomposed", [False, True])
def test_shardy_says_whether_it_changes_modules_without_shardings(decomposed: bool) -> None:
    module = parse_module("""HloModule m, num_partitions=2

ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT a = f32[4,4] all-to-all(p), channel_id=4, replica_groups={{0},{1}}, dimensions={1}
}
""")
    if decomposed:
        run_pipeline(module, parse_pipeline("all_to_all_decomposer"))
    before = print_module(module)
    assert not run_pipeline(module, parse_pipeline("shardy-xla")).changed
    assert print_module(module) == before


PAIRS = """HloModule m, replica_count=2

add { a = T[] parameter(0)  b = T[] parameter(1)  ROOT n = T[] add(a, b) }
scatter { c = T[4] parameter(0)  ROOT rs = T[2] reduce-scatter(c), dimensions={0}, to_apply=add }
work { e = T[4] parameter(0)  f = T[4] parameter(1)  ROOT h = T[4] multiply(e, f) }
ENTRY e { x = T[4] parameter(0)
  y = f32[4] parameter(1)
  s = T[4] all-reduce-start(x), to_apply=add
  d = T[4] all-reduce-done(s)
  two.s = (T[4], T[4]) all-reduce-start(x, d), to_apply=add
  two.d = (T[4], T[4]) all-reduce-done(two.s)
  first = T[4] get-tuple-element(two.d), index=0
  scattered.s = ((T[4]), T[2], s32[]) async-start(d), calls=scatter
  scattered = T[2] async-done(scattered.s)
  gathered.s = (T[2], T[4]) all-gather-start(scattered), dimensions={0}
  gathered = T[4] all-gather-done(gathered.s)
  sent.s = (T[4], T[4]) collective-permute-start(gathered), source_target_pairs={{0,1},{1,0}}
  sent = T[4] collective-permute-done(sent.s)
  work.s = ((T[4], T[4]), T[4], s32[]) async-start(sent, first), calls=work
  work.u = ((T[4], T[4]), T[4], s32[]) async-update(work.s)
  done = T[4] async-done(work.u)
  copy.s = (T[4], T[4], u32[]) copy-start(done)
  copied = T[4] copy-done(copy.s)
  z = T[4] convert(y)
  sum = T[4] add(copied, z)
  ROOT out = (T[4], T[4]) tuple(sum, first) }
"""


@pytest.mark.parametrize("type_", ["f32", "bf16", "f16", "f8e4m3fn", "s4"])
def test_asynchronous_pairs_through_every_pass(type_: str) -> None:
    from mlirhlo.debug.fuzz.passes import PLATFORMS, pass_names, passes_of
    from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

    text = PAIRS.replace("T[", f"{type_}[")
    x = np.array([1, -1, 2, 0]).astype(PRIMITIVE_TYPES[type_].dtype)
    inputs = [[x, np.ones(4, np.float32)]] * 2
    want = [np.asarray(a).tolist() for one in run_spmd(parse_module(text), inputs) for a in one]
    original = print_module(parse_module(text))
    for pipeline in (*pass_names(), *PLATFORMS):
        module = parse_module(text)
        run_pipeline(module, passes_of(pipeline))
        if print_module(module) == original:
            continue
        assert verify_module(module) == [], pipeline
        got = [np.asarray(a).tolist() for one in run_spmd(module, inputs) for a in one]
        assert got == want, pipeline
