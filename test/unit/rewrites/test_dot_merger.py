"""`dot-merger` on random programs: what depends on what it would merge stays where it has to."""

from __future__ import annotations

import random

import numpy as np
from support import SEED

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.simplify.dot_merger import DotMergerPass

PROGRAMS = 60
DOT = "dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}"


def random_dots(number: int) -> str:
    """Text of a program of dots of 3 × 3 integers, and instructions between them."""
    choose = random.Random(SEED * PROGRAMS + number)
    values = [f"p{k}" for k in range(3)]
    lines = [f"  {v} = s32[3,3] parameter({k})" for k, v in enumerate(values)]
    for k in range(choose.randrange(4, 16)):
        a, b = choose.choice(values[:4]), choose.choice(values)
        if choose.random() < 0.7:
            pair = (a, b) if choose.random() < 0.5 else (b, a)
            body = DOT.format(*pair, *choose.choice([(1, 0), (1, 0), (0, 0)]))
        else:
            body = choose.choice([f"add({a}, {b})", f"negate({b})"])
        values.append(f"v{k}")
        lines.append(f"  v{k} = s32[3,3] {body}")
    types = ", ".join(["s32[3,3]"] * len(values))
    root = f"  ROOT r = ({types}) tuple({', '.join(values)})"
    return "HloModule m\n\nENTRY e {\n" + "\n".join([*lines, root]) + "\n}\n"


def test_random_programs_compute_the_same() -> None:
    rng = np.random.default_rng(SEED)
    merged = 0
    for number in range(PROGRAMS):
        text = random_dots(number)
        module = parse_module(text)
        inputs = [rng.integers(-99, 99, (3, 3), np.int32) for _ in range(3)]
        trace = Trace()
        changed = DotMergerPass().run(HloModule(module), trace)
        assert changed == bool(trace.rule_counts)
        merged += sum(trace.rule_counts.values())
        assert verify_module(module) == []
        read = parse_module(print_module(module))
        for want, *got in zip(
            run_module(parse_module(text), inputs),
            run_module(module, inputs),
            run_module(read, inputs),
            strict=True,
        ):
            assert all(np.array_equal(np.asarray(want), np.asarray(each)) for each in got), text
    assert merged > PROGRAMS


def test_dots_of_one_chain_stay() -> None:
    """Dots of one matrix, each of which needs the one before."""
    lines = ["  w = f32[4,4] parameter(0)", "  v0 = f32[4,4] parameter(1)"]
    lines += [f"  v{k + 1} = f32[4,4] " + DOT.format("w", f"v{k}", 1, 0) for k in range(20)]
    lines[-1] = lines[-1].replace("  v", "  ROOT v")
    module = parse_module("HloModule m\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n")
    assert not DotMergerPass().run(HloModule(module), Trace())
