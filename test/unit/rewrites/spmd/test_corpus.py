"""The sharded programs of the corpus: from their annotated form to their recorded results, in no more bytes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import ROOT, needs_shared

sys.path.insert(0, str(ROOT / "tools"))

import compare_partitioning as tool

pytestmark = needs_shared


@pytest.mark.parametrize("program", list(tool.of_the_corpus()), ids=lambda p: p.name)
def test_program(program: tool.Program) -> None:
    text = tool.ours(program)
    assert tool.agree(program, text)
    assert tool.collective_bytes(text) <= 1.0001 * tool.collective_bytes(program.theirs)


def test_bytes_are_counted() -> None:
    """A collective in a loop counts for each of its rounds, and groups of one for nothing."""
    text = """HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  ROOT r = (s32[], f32[8]) tuple(j, y)
}
cond {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[2] parameter(0)
  g = f32[8] all-gather(x), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, g)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  z = f32[8] get-tuple-element(w), index=1
  ROOT a = f32[8] all-reduce(z), channel_id=3, replica_groups={{0},{1},{2},{3}}, use_global_device_ids=true, to_apply=add
}
"""
    assert tool.collective_bytes(text) == 3 * 8 + 3 * (2 * 3 / 4 * 32)


@pytest.mark.slow
@pytest.mark.oracle
def test_fresh_programs_send_no_more_than_jaxlib() -> None:
    """One process of its own: the eight devices must be asked for before JAX starts."""
    chosen = "^(dot_to_scatter|swap_axes|conv_spatial|shard_map_half)$"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "compare_partitioning.py"), "--only", chosen],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last == "4 of 4 send no more bytes than XLA's (100 %); 0 differ"
