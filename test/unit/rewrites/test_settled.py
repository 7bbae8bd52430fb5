"""A pass that passes over what is settled gives what it gives when it looks at everything."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support import CORPUS
from unit.rewrites.test_algsimp_rules import CASES, RULES
from unit.rewrites.test_passes_keep_meaning import LONG
from unit.rewrites.test_passes_on_random_programs import random_program
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.ops import Instruction
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of
from mlirhlo.rewrites.rules import Rewriter, Rule, Rules
from mlirhlo.rewrites.settled import REACH, THROUGH

PROGRAMS = ("scan_rnn", "linalg_lapack", "rng_bit_gen", "batchnorm_conv_train", "remat_scan_grad")
"""Of the corpus, with many rounds of simplification, or many computations."""


class Texts:
    """The module after each pass that changed it."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None: ...

    def before(self, pass_: ModulePass, module: ModuleOp) -> None: ...

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        self.found.append((pass_.name, print_module(module, LONG) if changed else ""))


def same_either_way(text: str, passes: Sequence[ModulePass], patch: pytest.MonkeyPatch) -> None:
    """Runs with and without passing over, and compares after each pass."""
    run = AlgebraicSimplifierPass.run

    def run_on_all(pass_: AlgebraicSimplifierPass, module: HloModule, trace: Trace) -> bool:
        return run(pass_, HloModule(module.op, module.facts), trace)

    over, everything = Texts(), Texts()
    run_pipeline(parse_module(text), passes, [over])
    with patch.context() as patched:
        patched.setattr(AlgebraicSimplifierPass, "run", run_on_all)
        run_pipeline(parse_module(text), passes, [everything])
    assert over.found == everything.found


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_on_programs(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROGRAMS:
        path = CORPUS / "programs" / name / f"{name}.hlo"
        if path.is_file():
            same_either_way(path.read_text(), pipelines_of(platform), monkeypatch)


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(6))
def test_on_random_programs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = random_program(number)
    passes = parse_pipeline(
        "algsimp,reshape-mover,cse,constant_folding,algsimp,dce,algsimp,algsimp"
    )
    same_either_way(text, passes, monkeypatch)


CALLS = """\
HloModule calls

f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  n = f32[] negate(b)
  m = f32[] negate(n)
  ROOT r = f32[] add(a, m)
}

ENTRY e {
  x = f32[4] parameter(0)
  s = f32[2,4] broadcast(x), dimensions={1}
  z = f32[] constant(0)
  ROOT t = f32[4] reduce(s, z), dimensions={0}, to_apply=f
}
"""


def test_callers_look_again_when_what_they_call_has_changed() -> None:
    module = parse_module(CALLS)
    assert run_pipeline(module, parse_pipeline("algsimp{only=negate_of_negate},dce")).changed
    module = parse_module(CALLS)
    only = "algsimp{only=reduce_of_added_dimensions,add_zero}"
    passes = parse_pipeline(f"{only},algsimp{{only=negate_of_negate}},dce,{only}")
    run_pipeline(module, passes)
    assert "reduce(" not in print_module(module)


# ---------------------------------------------------------------- how far rules look

_READS = {"type", "_type", "first_use", "uses", "has_one_use"}
"""Of a value: what its instruction is asked for; who makes it can be told from the operand."""


class Spy:
    """Which instructions a rule asks before it rewrites."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: dict[int, Operation] | None = None
        of_op, of_value = Instruction.__getattribute__, OpResult.__getattribute__

        def ask_op(op: Instruction, name: str) -> Any:
            if self.asked is not None:
                self.asked[id(op)] = op
            return of_op(op, name)

        def ask_value(value: OpResult, name: str) -> Any:
            if self.asked is not None and name in _READS:
                owner = of_value(value, "op")
                self.asked[id(owner)] = owner
            return of_value(value, name)

        def stop(rewriter: Rewriter, *given: Any, **named: Any) -> None:
            self.found, self.asked = self.asked, None
            replace(rewriter, *given, **named)

        replace = Rewriter.replace
        self.found: dict[int, Operation] | None = None
        patch.setattr(Instruction, "__getattribute__", ask_op)
        patch.setattr(OpResult, "__getattribute__", ask_value)
        patch.setattr(Rewriter, "replace", stop)

    def watch(self, rule: Rule) -> Rule:
        """The rule, which fails where it looks at what no change of would be noticed."""

        def function(op: Instruction, rewriter: Rewriter) -> None:
            block, near = op.parent, reached(op)
            self.found, self.asked = None, {}
            rule.function(op, rewriter)
            asked = self.asked if self.found is None else self.found
            self.asked = None
            for one, other in asked.items():
                if one not in near and other.parent is block and not rewriter.has_done_action:
                    raise AssertionError(f"{rule.name} on {op} asks {other}")
                if near.get(one, 0) > REACH:
                    raise AssertionError(f"{rule.name} on {op} looks {near[one]} steps up")

        return dataclasses.replace(rule, function=function)


def reached(op: Operation) -> dict[int, int]:
    """Steps to all that stand above `op`, as `settled` counts them."""
    steps, work = {id(op): 0}, deque([op])
    while work:
        here = work.popleft()
        more = steps[id(here)] + (here is op or type(here) not in THROUGH)
        for value in here.operands:
            owner = value.owner
            if isinstance(owner, Operation) and steps.get(id(owner), more + 1) > more:
                steps[id(owner)] = more
                work.append(owner)
    return steps


def instances(name: str, most: int) -> Iterator[tuple[AlgebraicSimplifierPass, str]]:
    rule = RULES[name]
    for case in CASES[name]:
        options: dict[str, Any] = {n.removeprefix("!"): not n.startswith("!") for n in rule.needs}
        pass_ = AlgebraicSimplifierPass(only=(name,), **(options | dict(case.options or {})))
        for number, text in enumerate(case.instances()):
            if number < most:
                yield pass_, text


@pytest.mark.slow
def test_rules_look_no_further_than_changes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the left sides of every rule; those that say that they look far may."""
    spy = Spy(monkeypatch)
    tried_on = Rules.tried_on
    watched: dict[str, Rule] = {}

    def watched_rules(rules: Rules, op: Operation) -> tuple[Rule, ...]:
        return tuple(watched.setdefault(each.name, spy.watch(each)) for each in tried_on(rules, op))

    monkeypatch.setattr(Rules, "tried_on", watched_rules)
    for name, rule in RULES.items():
        if rule.looks_far:
            continue
        for pass_, text in instances(name, 4):
            pass_.run(HloModule(parse_module(text)), Trace())
    assert len(watched) > len(RULES) // 2
