"""What the authors of rules and passes do wrong is told as theirs: rule, file and line, never a defect of ours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlirhlo.cli import hlo_opt
from mlirhlo.rewrites import authors, registry

MODULE = """\
HloModule m

sub {
  q = f32[4] parameter(0)
  ROOT t = f32[4] negate(q)
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = s32[] constant(3)
  n = f32[4] negate(x)
  k = f32[4] call(n), to_apply=sub
  s = f32[4] add(n, y)
  ROOT u = f32[4] multiply(s, k)
}
"""
HEAD = """\
from dataclasses import dataclass, replace
from typing import ClassVar
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import *
from mlirhlo.rewrites.passes import HloPass
from mlirhlo.rewrites.rules import RulePass, rule
"""
PASS = """
@dataclass(frozen=True)
class P(RulePass):
    '''Rules of an author.'''
    name = "p"
    rules: ClassVar = ({rules},)
"""
RULE = """
@rule({op})
def {name}(op, rewriter):
    '''left => right'''
"""


@pytest.fixture(autouse=True)
def _unregistered() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    before = dict(registry._loaded)
    yield
    registry._loaded.clear()
    registry._loaded.update(before)


class Run:
    """`hlo-opt` with a file of passes: exit code, what it says, and the lines of the file."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys = path, capsys

    def __call__(self, text: str, *more: str) -> tuple[int, str]:
        self.path.write_text(text)
        module = self.path.with_suffix(".hlo")
        module.write_text(MODULE)
        argv = [f"--load-pass={self.path}", "--passes=p,dce", *more, str(module)]
        code = hlo_opt.main(argv)
        said = self.capsys.readouterr().err
        for leftover in re.findall(r"\S+\.reproducer\.txt", said):
            Path(leftover).unlink()
        assert "HLO0901" not in said
        assert "Traceback" not in said
        return code, said

    def rules(self, **bodies: str) -> tuple[int, str]:
        """Rules by name; `add__name` matches adds, and so on."""
        text = HEAD
        for key, body in bodies.items():
            op, _, name = key.partition("__")
            text += RULE.format(op=f"{op.title()}Op", name=name)
            text += textwrap.indent(textwrap.dedent(body), "    ") + "\n"
        return self(text + PASS.format(rules=", ".join(k.partition("__")[2] for k in bodies)))


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path / "theirs.py", capsys)


F64 = "shape=replace(op.shape, element_type=PRIMITIVE_TYPES['f64'])"
WRONG = {
    "ill-typed": f"rewriter.replace(op, rewriter.build(ConvertOp, op.lhs, {F64}))",
    "ill-typed value": "rewriter.replace_by_value(op, op.parent.first_op.next_op.next_op.output)",
    "nothing": "rewriter.replace(op, [])",
    "None": "rewriter.replace(op, None)",
    "a string": "rewriter.replace(op, 'x')",
    "itself": "rewriter.replace_by_value(op, op.output)",
    "in the module": "rewriter.replace(op, op.lhs.owner)",
    "not passed": "rewriter.replace(op, rewriter.build(NegateOp, rewriter.build(NegateOp, op.lhs)))",
    "other computation": "rewriter.replace_by_value(op, rewriter.computation('sub').root.output)",
    "erased": "rewriter.erase(op)",
    "too few operands": "rewriter.replace(op, rewriter.build(DotOp, op.lhs))",
    "operand None": "rewriter.replace(op, rewriter.build(AddOp, op.lhs, None))",
    "operand of Python": "rewriter.replace(op, rewriter.build(AddOp, op.lhs, 5))",
    "no class": "rewriter.replace(op, rewriter.build('add', op.lhs, op.rhs))",
    "misfit": "rewriter.build(AddOp, op.lhs, op.parent.first_op.next_op.next_op)",
    "property": "rewriter.replace(op, rewriter.build(BroadcastOp, op.lhs, shape=op.shape, dimensions='x'))",
    "constraint": "rewriter.replace(op, rewriter.build(TransposeOp, op.lhs, shape=op.shape, dimensions=(7,)))",
    "no inference": "rewriter.build(ReshapeOp, op.lhs)",
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_names_rule_file_and_line(run: Run, body: str) -> None:
    code, said = run.rules(add__mine=body)
    line = 1 + run.path.read_text().split("\n").index(f"    {body}")
    assert code == 1
    assert said.startswith(f"{run.path}:{line}: error[HLO0416]: rule 'mine' of pass 'p': ")
    assert "help: left => right" in said


ENDLESS = {
    "swaps": {
        "add__swapped": "rewriter.replace(op, rewriter.build(AddOp, op.rhs, op.lhs))",
    },
    "undo each other": {
        "add__there": "rewriter.replace(op, rewriter.build(SubtractOp, op.lhs, op.rhs))",
        "subtract__back": "rewriter.replace(op, rewriter.build(AddOp, op.lhs, op.rhs))",
    },
    "grows": {
        "negate__grown": "n = [rewriter.build(NegateOp, op.operand)]\nn += [rewriter.build(NegateOp, n[0])]\n"
        "rewriter.replace(op, n)",
    },
    "in place": {
        "add__in_place": "op.operands[0] = op.operands[0]; rewriter.has_done_action = True"
    },
    "among users": {
        "add__here": "rewriter.handle_operation_modification(next(iter(op.output.uses)).operation)\n"
        "rewriter.has_done_action = True",
    },
}


NEW = "n = rewriter.build(SubtractOp, op.lhs, op.rhs); "
ATTRIBUTES = {
    "of Python": "op.dimensions = (0,)",
    "of Python, changed too": "op.dimensions = (0,); rewriter.replace_by_value(op, op.lhs)",
    "name": "op.name = 'hlo.subtract'",
    "property": "op.properties['dimensions'] = op.parent.first_op.properties['parameter_number']",
    "kind": "op.properties['metadata'] = op.parent.first_op.properties['parameter_number']",
    "new, of Python": f"{NEW}n.dimensions = (0,); rewriter.replace(op, n)",
    "new, property": f"{NEW}n.properties['dimensions'] = op.attributes; rewriter.replace(op, n)",
    "built": "rewriter.replace(op, rewriter.build(SubtractOp, op.lhs, op.rhs, dimensions=(0,)))",
    "of a user": "next(iter(op.output.uses)).operation.properties['dimensions'] = None\n"
    "rewriter.handle_operation_modification(next(iter(op.output.uses)).operation)",
}


@pytest.mark.parametrize("body", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_attributes_that_an_opcode_does_not_have_are_told(run: Run, body: str) -> None:
    code, said = run.rules(add__mine=body)
    assert code == 1
    assert re.match(rf"{run.path}:\d+: error\[HLO0416\]: rule 'mine' of pass 'p': ", said)
    assert re.search("has no attribute '(dimensions|name)'|'?metadata'?", said)


@pytest.mark.parametrize("bodies", ENDLESS.values(), ids=ENDLESS)
def test_rules_that_never_end_are_stopped_and_named(run: Run, bodies: dict[str, str]) -> None:
    code, said = run.rules(**bodies)
    assert code == 1
    assert re.match(
        rf"{run.path}:\d+: error\[HLO0417\]: pass 'p': stopped after 1000 rewrites", said
    )
    for name in (key.partition("__")[2] for key in bodies):
        assert f"'{name}'" in said
        assert f"note: {name}: left => right at {run.path}:" in said


def test_long_chains_of_rewrites_are_no_circle(run: Run) -> None:
    """Each of 2,000 instructions is rewritten once, after the one that it reads."""
    text = HEAD + RULE.format(op="AddOp", name="mine")
    text += "    rewriter.replace(op, rewriter.build(SubtractOp, op.lhs, op.rhs))\n"
    run.path.write_text(text + PASS.format(rules="mine"))
    lines = ["ENTRY e {", "  v0 = f32[] parameter(0)"]
    lines += [f"  v{n + 1} = f32[] add(v{n}, v0)" for n in range(2000)]
    module = run.path.with_suffix(".hlo")
    module.write_text("\n".join([*lines, "}"]))
    assert hlo_opt.main([f"--load-pass={run.path}", "-p", "p", "-o", "/dev/null", str(module)]) == 0


@pytest.mark.parametrize(
    "body, says",
    [
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("mine.function(op, rewriter)", "raised RecursionError"),
        ("op.left", "raised AttributeError: 'AddOp' object has no attribute 'left'"),
    ],
)
def test_a_rule_that_raises_is_named(run: Run, body: str, says: str) -> None:
    code, said = run.rules(add__mine=body)
    assert code == 1
    assert re.match(rf"error\[HLO0415\]: {run.path}:\d+: rule 'mine' of pass 'p' {says}", said)


@pytest.mark.parametrize("body", ["exit(0)", "raise SystemExit('bye')", "raise GeneratorExit"])
def test_a_rule_that_exits_is_told(run: Run, body: str) -> None:
    code, said = run.rules(add__mine=body)
    assert code == 1
    assert f"error[HLO0415]: {run.path}:" in said


def test_an_instruction_that_the_verifier_refuses_leads_to_its_rule(run: Run) -> None:
    code, said = run.rules(
        add__mine="rewriter.replace_by_value(op, next(iter(op.output.uses)).operation.output)"
    )
    assert code == 1
    assert said.startswith(f"{run.path}:")
    assert "error[HLO0512]: the module is not valid any more after p\n" in said
    assert f"note: rule 'mine' wrote the instruction at {run.path}:" in said


def test_a_change_that_the_rewriter_was_not_told_of_leads_to_the_pass(run: Run) -> None:
    code, said = run.rules(add__mine="op.detach()")
    assert code == 1
    assert "error[HLO0512]: the module is not valid any more after p\n" in said


PLAIN = """
@dataclass(frozen=True)
class P(HloPass):
    name = "p"
    def run(self, {arguments}):
        {body}
"""


@pytest.mark.parametrize(
    "arguments, body, code",
    [
        ("module, trace", "pass", "HLO0415"),
        ("module, trace", "return 'yes'", "HLO0415"),
        ("module", "return False", "HLO0415"),
        ("module, trace", "exit(0)", "HLO0415"),
        (
            "module, trace",
            "[c.detach() for c in list(module.op.body.block.ops)]; return True",
            "HLO0512",
        ),
        (
            "module, trace",
            "[setattr(op, 'dimensions', 1) for op in module.entry.instructions]; return True",
            "HLO0415",
        ),
        (
            "module, trace",
            "[op.properties.update(x=None) for op in module.entry.instructions]; return True",
            "HLO0415",
        ),
    ],
)
def test_passes_that_go_wrong(run: Run, arguments: str, body: str, code: str) -> None:
    exit_code, said = run(HEAD + PLAIN.format(arguments=arguments, body=body))
    assert exit_code == 1
    assert f"error[{code}]: " in said
    assert str(run.path) in said


@pytest.mark.parametrize(
    "text, code",
    [
        ("exit(0)", 1),
        ("import sys; sys.exit('bye')", 1),
        ("raise SystemExit", 1),
        ("raise GeneratorExit", 1),
        ("class B(BaseException): pass\nraise B('hm')", 1),
        ("class S(Exception):\n  def __str__(self): raise ValueError\nraise S", 1),
        ("raise KeyboardInterrupt", 130),
        ("def (", 1),
        ("\0", 1),
        ("", 1),
    ],
)
def test_files_that_end_while_they_are_imported(run: Run, text: str, code: int) -> None:
    exit_code, said = run(text)
    assert exit_code == code
    assert re.search(r"error\[HLO04[01]5\]: ", said)
    assert run.path.name in said


WITH_RULES = """
@dataclass(frozen=True)
class P(RulePass):
    name = "p"
    rules: ClassVar = {rules}
"""


@pytest.mark.parametrize(
    "decorator, rules",
    [
        ("@rule", "(mine,)"),
        ("@rule()", "(mine,)"),
        ('@rule("add")', "(mine,)"),
        ("@rule(int)", "(mine,)"),
        ('@rule(AddOp, contract="mostly")', "(mine,)"),
        ("", "(mine,)"),
        ("@rule(AddOp)", "mine"),
        ("@rule(AddOp)", "(mine, 'other')"),
        ("@rule(AddOp)", "None"),
        ("@rule(AddOp)", "()"),
        ('@rule(AddOp, needs=("fast",))', "(mine,)"),
        ('@rule(AddOp, needs=("!rules",))', "(mine,)"),
    ],
)
def test_what_is_no_rule_is_told_when_the_file_is_loaded(
    run: Run, decorator: str, rules: str
) -> None:
    mine = f'{decorator}\ndef mine(op, rewriter):\n  """x + y => y + x"""\n'
    code, said = run(HEAD + mine + WITH_RULES.format(rules=rules))
    assert code == 1
    assert re.search(rf"error\[HLO0405\]: {run.path}:\d+: the pass file raised ", said)


@pytest.mark.parametrize("is_slow", [False, True])
def test_rules_that_need_options_of_their_pass_are_taken(run: Run, is_slow: bool) -> None:
    mine = HEAD + RULE.format(op="AddOp", name="mine").replace("AddOp", "AddOp, needs=('!slow',)")
    mine += "    raise ValueError\n" + PASS.format(rules="mine") + f"    slow: bool = {is_slow}\n"
    code, said = run(mine)
    assert code == (0 if is_slow else 1)
    assert ("rule 'mine' of pass 'p' raised ValueError" in said) is not is_slow


def test_endless_code_of_an_author_is_stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authors, "LIMIT_S", 0.1)
    code, said = run("while True: pass")
    assert code == 1
    assert re.match(rf"error\[HLO0405\]: {run.path}:1: the pass file raised TimeoutError", said)
    code, said = run.rules(add__mine="while True: pass")
    assert code == 1
    assert re.search(r"error\[HLO0416\]: rule 'mine' of pass 'p': does not end: 0.1 s", said)
