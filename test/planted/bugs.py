"""The 20 planted bugs that `tools/measure_reduce.py` reduces: a program of over 1,000 instructions each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlirhlo.debug.trials.conditions import Condition
from planted.programs import program

WRONG_PASSES = str(Path(__file__).with_name("wrong_passes.py"))

F = "f32[8,16]"
CORES: Mapping[str, str] = {
    "subtract_is_reversed": f"c0 = {F} abs(@A@)  core = {F} subtract(@B@, c0)",
    "divide_is_first": f"c0 = {F} cosine(@A@)  core = {F} divide(@B@, c0)",
    "abs_of_negate": f"c0 = {F} negate(@A@)  core = {F} abs(c0)",
    "reverse_is_lost": f"core = {F} reverse(@A@), dimensions={{0}}",
    "transpose_of_transpose": f"c0 = f32[16,8] transpose(@A@), dimensions={{1,0}}"
    f"  core = {F} transpose(c0), dimensions={{1,0}}",
    "power_is_square": f"c0 = {F} exponential(@A@)  core = {F} power(c0, @B@)",
    "select_is_negated": f"c0 = {F} abs(@A@)  c1 = pred[8,16] compare(@A@, @B@), direction=GT"
    f"  core = {F} select(c1, c0, @B@)",
    "clamp_is_lost": f"c0 = f32[] constant(0.1)"
    f"  c1 = f32[] constant(0.2)  core = {F} clamp(c0, @A@, c1)",
    "concatenate_is_swapped": f"c0 = {F} exponential(@A@)  c1 = f32[16,16] concatenate(@A@, c0), dimensions={{0}}"
    f"  core = {F} slice(c1), slice={{[4:12], [0:16]}}",
    "floor_is_lost": f"core = {F} floor(@A@)",
    "sign_is_abs": f"core = {F} sign(@A@)",
    "broadcast_of_abs": f"c0 = f32[8,1] slice(@A@), slice={{[0:8], [0:1]}}  c1 = f32[8] reshape(c0)"
    f"  c2 = f32[8] abs(c1)"
    f"  c3 = f32[8] negate(c2)  c4 = f32[8] abs(c3)  core = {F} broadcast(c4), dimensions={{0}}",
    "slice_of_pad": f"c0 = f32[] constant(0.5)  c1 = f32[10,16] pad(@A@, c0), padding=1_1x0_0"
    f"  core = {F} slice(c1), slice={{[0:8], [0:16]}}",
    "maximum_of_floor": f"c0 = {F} floor(@A@)  core = {F} maximum(c0, @B@)",
    "crash_on_log_of_abs": f"c0 = {F} abs(@A@)  core = {F} log(c0)",
}


@dataclass(frozen=True, slots=True)
class Bug:
    """A program and the condition that it meets."""

    name: str
    text: str
    condition: Condition


def bugs(seed: int = 0) -> list[Bug]:
    """All 20; what is around them differs by seed."""
    start = 100 * seed
    found = [_bug(name, start + number) for number, name in enumerate(CORES)]
    for number, name in enumerate(("floor_is_lost", "abs_of_negate")):
        found.append(_bug(name, start + 40 + number, loop=True))
    for number, name in enumerate(("sign_is_abs", "floor_is_lost")):
        found.append(_bug(name, start + 50 + number, fusion=True))
    text = program(f'core = {F} custom-call(@A@), custom_call_target="unknown"', start + 60)
    found.append(Bug("unknown_custom_call", text, Condition("diagnostic", code="HLO0350")))
    return found


def _bug(name: str, seed: int, *, loop: bool = False, fusion: bool = False) -> Bug:
    text = program(CORES[name], seed, loop=loop, fusion=fusion)
    tested = f"Interpreter:wrong{{only={name}}}"
    where = "_in_loop" if loop else "_in_fusion" if fusion else ""
    if name.startswith("crash"):
        return Bug(name, text, Condition("crashes", (tested,), load_passes=(WRONG_PASSES,)))
    condition = Condition("differs", (tested, "Interpreter"), load_passes=(WRONG_PASSES,))
    return Bug(name + where, text, condition)
