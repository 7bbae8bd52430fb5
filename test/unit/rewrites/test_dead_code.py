"""What dies together is removed together: in nested fusions, and both halves of asynchronous pairs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AddOp, IotaOp, MultiplyOp, ParameterOp, WhileOp
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.rewrites.legalize.real_imag_expander import RealImagExpanderPass
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass

WIDTH = 3
"""Parameters and results of each computation."""


@pytest.mark.parametrize("seed", range(40))
def test_nested_fusions_have_nothing_unread_after_one_run(seed: int) -> None:
    module = parse_module(_nested_fusions(random.Random(seed)), "nested.hlo")
    assert not verify_module(module)
    run_pipeline(module, parse_pipeline("dce"))
    assert not verify_module(module)
    view = HloModule(module)
    for computation in view.computations:
        for op in computation.instructions:
            is_entry_parameter = isinstance(op, ParameterOp) and computation.is_entry is not None
            assert op.output.first_use is not None or is_entry_parameter, op.instruction_name
    text = print_module(module)
    run_pipeline(module, (DcePass(),))
    assert print_module(module) == text


def test_a_chain_of_fusions_is_cleaned_once_for_each_loss() -> None:
    """Each fusion's first output reads only the first output of the one before; the last of them is not read."""
    length = 300
    bodies = [
        f"body.{n} {{\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  c = f32[2] sine(a)\n"
        f"  d = f32[2] cosine(b)\n  ROOT r = (f32[2], f32[2]) tuple(c, d)\n}}\n"
        for n in range(length)
    ]
    lines = ["ENTRY e {", "  a.0 = f32[2] parameter(0)", "  b.0 = f32[2] parameter(1)"]
    for n in range(length):
        lines += [
            f"  f.{n} = (f32[2], f32[2]) fusion(a.{n}, b.{n}), kind=kLoop, calls=body.{n}",
            f"  a.{n + 1} = f32[2] get-tuple-element(f.{n}), index=0",
            f"  b.{n + 1} = f32[2] get-tuple-element(f.{n}), index=1",
        ]
    lines += [f"  ROOT r = f32[2] negate(b.{length})", "}"]
    module = parse_module("\n".join(["HloModule chain\n", *bodies, *lines]), "chain.hlo")
    run_pipeline(module, parse_pipeline("dce"))
    assert not verify_module(module)
    assert "sine" not in print_module(module).replace("cosine", "")


@rule(MultiplyOp)
def _product_with_itself(op: MultiplyOp, rewriter: Rewriter) -> None:
    """x * x => iota"""
    rewriter.replace(op, rewriter.build(IotaOp, shape=op.shape, iota_dimension=0))


@dataclass(frozen=True)
class _Forgetful(RulePass):
    """Forgets what it reads."""

    name = "forgetful"
    rules: ClassVar[tuple[Rule, ...]] = (_product_with_itself,)


@pytest.mark.parametrize(
    ("chosen", "unread"),
    [
        (RealImagExpanderPass(), "z = f32[2] imag(a)"),
        (
            TupleSimplifierPass(),
            "t = (f32[2], f32[2]) tuple(b, a) z = f32[2] get-tuple-element(t), index=0",
        ),
        (_Forgetful(), "z = f32[2] multiply(a, a)"),
    ],
)
@pytest.mark.parametrize("depth", [1, 3])
def test_fusions_lose_the_inputs_that_rules_leave_unread(
    chosen: RulePass, unread: str, depth: int
) -> None:
    parameters = "a = f32[2] parameter(0) b = f32[2] parameter(1)"
    bodies = [f"body.0 {{ {parameters} {unread} ROOT r = f32[2] add(z, b) }}"]
    for n in range(1, depth):
        bodies.append(f"body.{n} {{ {parameters} ROOT r = f32[2] {_fusion('a', n - 1)} }}")
    entry = (
        f"ENTRY e {{ {parameters} s = f32[2] sine(a) ROOT r = f32[2] {_fusion('s', depth - 1)} }}"
    )
    module = parse_module("\n".join(["HloModule m", *bodies, entry]), "fused.hlo")
    assert not verify_module(module)
    run_pipeline(module, (chosen,))
    assert not verify_module(module)
    assert "sine" not in print_module(module)


def _fusion(unread: str, body: int) -> str:
    return f"fusion({unread}, b), kind=kLoop, calls=body.{body}"


def _nested_fusions(choose: random.Random) -> str:
    """A module of fusions with several outputs in fusions with several outputs, most of them unread in the entry."""
    bodies: list[str] = []
    entry = _computation(choose, bodies, 3, "ENTRY e", read_all=False)
    return "\n".join(["HloModule nested\n", *bodies, entry])


def _computation(
    choose: random.Random, bodies: list[str], depth: int, head: str, *, read_all: bool = True
) -> str:
    """The text of a computation; the fusions it calls are added to `bodies`."""
    values = [f"p.{n}" for n in range(WIDTH)]
    lines = [f"{value} = f32[2] parameter({n})" for n, value in enumerate(values)]
    shape = ", ".join(["f32[2]"] * WIDTH)
    read: set[str] = set()
    for n in range(2 if depth else 0):
        body = _computation(choose, bodies, depth - 1, f"f.{len(bodies)}.{depth}", read_all=True)
        bodies.append(body)
        operands = choose.choices(values, k=WIDTH)
        read.update(operands)
        name = body.split()[0]
        lines.append(f"x.{n} = ({shape}) fusion({', '.join(operands)}), kind=kLoop, calls={name}")
        outputs = [f"g.{n}.{k}" for k in range(WIDTH)]
        lines += [
            f"{g} = f32[2] get-tuple-element(x.{n}), index={k}" for k, g in enumerate(outputs)
        ]
        values += outputs
    roots = choose.choices(values, k=WIDTH)
    read.update(roots)
    for n, value in enumerate(v for v in values if v not in read and read_all):
        side = choose.randrange(WIDTH)
        lines.append(f"s.{n} = f32[2] add({roots[side]}, {value})")
        roots[side] = f"s.{n}"
    lines.append(f"ROOT r = ({shape}) tuple({', '.join(roots)})")
    return "\n  ".join([f"{head} {{", *lines]) + "\n}\n"


BODY = {
    "pure": "ROOT n = f32[3,0] negate(p)",
    "effect": "t = token[] after-all()\n  o = token[] outfeed(p, t)\n  ROOT n = f32[3,0] negate(p)",
}
READER = {"read": "ROOT q = f32[3,0] negate(d)", "unread": "ROOT q = f32[3,0] negate(p)"}


@pytest.mark.parametrize("body", BODY)
@pytest.mark.parametrize("reader", READER)
@pytest.mark.parametrize("update", ["", "u"])
@pytest.mark.parametrize("wait", ["", "start", "after start"])
@pytest.mark.parametrize(
    "passes", ["dce", "zero_sized_hlo_elimination", "zero_sized_hlo_elimination,dce", "algsimp"]
)
def test_both_halves_of_a_pair_go_or_stay(
    body: str, reader: str, update: str, wait: str, passes: str
) -> None:
    shape = "((f32[3,0]), f32[3,0], s32[])"
    before = ", control-predecessors={z}" if wait == "start" else ""
    after = ", control-predecessors={s, cs}" if wait == "after start" else ""
    text = f"""HloModule pair

f {{
  p = f32[3,0] parameter(0)
  {BODY[body]}
}}

ENTRY e {{
  p = f32[3,0] parameter(0)
  z = f32[3,0] sine(p)
  s = {shape} async-start(p), calls=f{before}
  u = {shape} async-update(s)
  d = f32[3,0] async-done(u)
  cs = (f32[3,0], f32[3,0], u32[]) copy-start(p){before}
  cd = f32[3,0] copy-done(cs)
  {READER[reader]}{after}
}}
"""
    if not update:
        text = text.replace(f"  u = {shape} async-update(s)\n", "").replace("done(u)", "done(s)")
    module = parse_module(text, "pair.hlo")
    assert not verify_module(module)
    run_pipeline(module, parse_pipeline(passes))
    assert not verify_module(module)
    starts = "async-start" in print_module(module)
    if body == "effect" or wait:
        assert starts
    elif passes == "zero_sized_hlo_elimination,dce":
        assert not starts


KEEPERS = {
    "call": "ROOT r = f32[2] call(x, v), to_apply=reads_first",
    "loop": """t = (s32[], f32[2], f32[2]) tuple(zero, x, v)
  u = (s32[], f32[2], f32[2]) while(t), condition=cond2, body=body2
  ROOT r = f32[2] get-tuple-element(u), index=1""",
    "branch": "ROOT r = f32[2] conditional(zero, v, x), branch_computations={reads_none, reads_x}",
    "barrier": """t = (f32[2], f32[2]) tuple(x, v)
  u = (f32[2], f32[2]) opt-barrier(t)
  ROOT r = f32[2] get-tuple-element(u), index=0""",
}
"""Readers of a loop's value `v` of which nothing depends on `v`."""


@pytest.mark.parametrize("keeper", KEEPERS)
def test_loops_that_stay_still_end(keeper: str) -> None:
    """A loop may be dead and yet have a reader; what its condition reads must go on counting."""
    module = parse_module(
        f"""HloModule loops

reads_first {{
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT n = f32[2] negate(a)
}}

reads_x {{
  ROOT a = f32[2] parameter(0)
}}

reads_none {{
  a = f32[2] parameter(0)
  ROOT c = f32[2] constant({{1, 2}})
}}

body {{
  s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  w = f32[2] sine(v)
  ROOT r = (s32[], f32[2]) tuple(n, w)
}}

cond {{
  s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  ROOT r = pred[] compare(i, two), direction=LT
}}

body2 {{
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[2] get-tuple-element(s), index=1
  w = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (s32[], f32[2], f32[2]) tuple(n, v, w)
}}

cond2 {{
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  ROOT r = pred[] compare(i, two), direction=LT
}}

ENTRY e {{
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(start), condition=cond, body=body
  v = f32[2] get-tuple-element(loop), index=1
  {KEEPERS[keeper]}
}}
""",
        "loops.hlo",
    )
    assert not verify_module(module)
    run_pipeline(module, parse_pipeline("hlo-module-dce"))
    assert not verify_module(module)
    for loop in HloModule(module).candidates(WhileOp):
        assert isinstance(loop, WhileOp)
        body = HloModule(module).by_name()[loop.body]
        assert any(isinstance(op, AddOp) for op in body.instructions)
