"""One instruction of every opcode on a GPU, by the tool: what the interpreter gives, or an error with a code."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from strategies.running import build

from mlirhlo.debug.fuzz.generators import every
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS
from mlirhlo.debug.fuzz.generators.modules import Seeded
from mlirhlo.debug.fuzz.generators.unexecuted import OTHERS
from mlirhlo.dialects.hlo.table import OPCODES

from .conftest import Ran

pytest.importorskip("llvmlite")
assert every

LINES = {
    "all-gather": "f32[3] all-gather(x), dimensions={0}",
    "all-reduce": "f32[3] all-reduce(x), to_apply=sum",
    "all-to-all": "f32[3] all-to-all(x), dimensions={0}",
    "atan": "f32[3] atan(x)",
    "collective-broadcast": "f32[3] collective-broadcast(x), replica_groups={{0}}",
    "collective-permute": "f32[3] collective-permute(x), source_target_pairs={{0,0}}",
    "collective-reduce": "f32[3] collective-reduce(x), to_apply=sum",
    "infeed": "(f32[3], token[]) infeed(t)",
    "outfeed": "token[] outfeed(x, t), outfeed_shape=f32[3]",
    "partition-id": "u32[] partition-id()",
    "ragged-all-to-all": "f32[3] ragged-all-to-all(x, x, zero, one, zero, one)",
    "reduce-scatter": "f32[3] reduce-scatter(x), dimensions={0}, to_apply=sum",
    "replica-id": "u32[] replica-id()",
    "rng": "f32[3] rng(low, high), distribution=rng_uniform",
    "rng-get-and-update-state": "u64[2] rng-get-and-update-state(), delta=2",
    "shuffle": "f32[3] shuffle(x), dimensions={0}",
}
"""What no generator makes."""
PAIRS = {
    "all-gather-start": (
        "(f32[3], f32[3]) all-gather-start(x), dimensions={0}",
        "f32[3] all-gather-done(s)",
    ),
    "all-reduce-start": (
        "f32[3] all-reduce-start(x), to_apply=sum",
        "f32[3] all-reduce-done(s)",
    ),
    "collective-permute-start": (
        "(f32[3], f32[3], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}",
        "f32[3] collective-permute-done(s)",
    ),
    "recv": (
        "(f32[3], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true",
        "(f32[3], token[]) recv-done(s), channel_id=1, is_host_transfer=true",
    ),
    "send": (
        "(f32[3], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true",
        "token[] send-done(s), channel_id=1, is_host_transfer=true",
    ),
}
"""Both halves, by the first: the second reads `s`."""
REFUSED = frozenset({"infeed", "outfeed", "recv", "send", "shuffle"})
"""What has an error with a code: it waits for a host, or no tool computes it."""
QUICK = ("batch-norm-training", "cholesky", "custom-call", "infeed", "rng", "while")
CASES = [name for name in OPCODES if not name.endswith("-done") or name in OTHERS]


def text_of(opcode: str, seed: int) -> str:
    """A module with an instruction of an opcode."""
    generator = GENERATORS.get(opcode) or OTHERS.get(opcode)
    if generator is not None:
        return build([generator(Seeded(f"{seed}.{opcode}"), opcode)])[0]
    first, last = PAIRS.get(opcode, ("f32[3] copy(x)", LINES.get(opcode)))
    return f"""sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }}
ENTRY e {{
  x = f32[3] parameter(0)
  t = token[] after-all()
  low = f32[] constant(0)
  high = f32[] constant(1)
  zero = s32[1] constant({{0}})
  one = s32[1] constant({{1}})
  s = {first}
  ROOT r = {last}
}}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "opcode", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_opcode(opcode: str, tool: Callable[..., Ran]) -> None:
    for seed in range(9):
        text = text_of(opcode, seed)
        ran = tool("run_hlo_module", "--platform=CUDA", "-", stdin=text)
        if opcode in REFUSED:
            assert ran.code == 1, text
            assert re.search(rf"error\[HLO0802\]: `{opcode}` .* has no GPU code", ran.err), ran.err
            return
        if ran.code == 0:
            return
        # Of made-up types and numbers some have no meaning: others are taken instead.
        alone = ("--platform=Interpreter", "--reference_platform=")
        assert tool("run_hlo_module", *alone, "-", stdin=text).code, f"{text}{ran.out}{ran.err}"
    pytest.fail(f"the interpreter runs no `{opcode}`")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "target", ["Sharding", "LayoutConstraint", "SPMDFullToShardShape", "xla.sdy.FuncResultSharding"]
)
def test_calls_that_compute_nothing(target: str, tool: Callable[..., Ran]) -> None:
    text = f'f32[4] custom-call(f32[4] x), custom_call_target="{target}"'
    assert tool("run_hlo_module", "--platform=CUDA", "-", stdin=text).code == 0


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("target", ["TopK", "__gpu$TopK"])
def test_calls_for_the_best(target: str, tool: Callable[..., Ran]) -> None:
    text = f'(f32[2,3], s32[2,3]) custom-call(f32[2,9] x), custom_call_target="{target}"'
    assert tool("run_hlo_module", "--platform=CUDA", "-", stdin=text).code == 0
