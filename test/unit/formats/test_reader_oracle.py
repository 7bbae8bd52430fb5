"""The reader against XLA's own: what is accepted, and what was understood.

Where the two disagree on purpose, `reason` says why; everything else is a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import oracle
import pytest
from hypothesis import given
from strategies.drawn import examples, strategy_of
from strategies.running import build
from strategies.text import Generator, print_options
from support import needs_shared
from unit.corpus import corpus_texts, repository_texts

import mlirhlo.debug.fuzz.generators.every  # noqa: F401  # registers every opcode
from mlirhlo.debug.fuzz import texts as fuzz_text
from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import OPCODES
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.formats.hlo_text.options import ComputationOrder, PrintOptions

pytestmark = pytest.mark.oracle

OPTIONS = PrintOptions(async_sugar=True, computation_order=ComputationOrder.WALKED)
"""What XLA's `to_string` does by default."""

MERGED = "canonical"
"""Texts with inline bodies, which are one with the same computation above; not so in XLA."""

# Accepted by XLA through accidents of its implementation, refused here.
LOOSE_COMMAS = re.compile(r"[({]\s*,|,\s*,")
# Accepted here, refused by XLA's lexer, which wants `=` right after the key in every value.
BLANK_BEFORE_EQUALS = re.compile(r"[A-Za-z0-9_](?:\s|/\*.*?\*/)+=", re.DOTALL)
NEWER = (
    "is_stable=",
    "order=TOTAL",
    "has_dynamic_root",
    "block_scaling_config",
    "debug_attributes",
)


def theirs(text: str) -> str:
    return str(oracle.xla().hlo_module_from_text(text).to_string())


def ours(text: str) -> str:
    try:
        return print_module(parse_module(text), OPTIONS)
    except HloError as error:
        return f"ERROR {error}"


def instructions(text: str) -> list[str]:
    """Name, shape, opcode, operands and attributes of every instruction, sorted.

    Without frame numbers: XLA's reader thins the tables out and renumbers them.
    """
    lines = re.findall(r"^ +(?:ROOT )?%.* = .*$", text, re.MULTILINE)
    return sorted(re.sub(r" ?stack_frame_id=\d+", "", line) for line in lines)


def as_xla_keeps(lines: list[str]) -> list[str]:
    """What XLA's reader loses and this one keeps, taken away: metadata beside a frame number
    without a row; the element size of constants; the sign of a printed `-0`."""
    return [
        re.sub(r"\{:E\(\d+\)\}|:?E\(\d+\)(?=\})|(?<![\w.])-(?=0[,)}\s])", "", line)
        if " constant(" in line
        else line
        for line in (re.sub(r", metadata=\{[^\"}]*\}", "", line) for line in lines)
    ]


def reason(text: str, their_answer: str, our_answer: str) -> str | None:
    """Why a disagreement is wanted; None when it is not."""
    if their_answer.startswith("CRASH"):
        return "XLA aborts"
    if our_answer.startswith("ERROR"):
        if LOOSE_COMMAS.search(text):
            return "XLA skips repeated commas"
        if "HLO0020" in our_answer and "expects a quoted string" in our_answer:
            return "XLA takes a missing name of a stack-frame table for an empty one"
        if "HLO0009" in our_answer and "dot" in our_answer:
            return "XLA drops a dot's third operand"
        if "expects one dimension" in our_answer:
            return "XLA takes the first of several dimensions"
        return None
    if "INVALID_ARGUMENT" in their_answer and their_answer.rstrip().endswith("HloModule:"):
        return "XLA refuses without a message; the verifier does here"
    if any(word in text for word in NEWER):
        return "newer than this XLA"
    if BLANK_BEFORE_EQUALS.search(text):
        return "a blank before '=' within a value"
    if re.match(r"\s*HloModule\s*,", text):
        return "a fingerprint has no module name"
    if re.search(r"[sS]yntax error.*\n.*(FileNames|FunctionNames|StackFrames|file_)", their_answer):
        return "stack-frame tables"
    return None


def disagreements(texts: list[str]) -> tuple[list[str], Counter[str]]:
    """Texts that the two read differently for no known reason, and how often the reasons held."""
    wrong: list[str] = []
    known: Counter[str] = Counter()
    for text, their_answer in zip(texts, oracle.ask(texts, theirs), strict=True):
        our_answer = ours(text)
        refused = their_answer.startswith(("ERROR", "CRASH")), our_answer.startswith("ERROR")
        if refused == (True, True):
            known["both refuse"] += 1
        elif refused[0] != refused[1]:
            why = reason(text, their_answer, our_answer)
            if why is None:
                wrong.append(f"XLA: {their_answer[:600]}\nours: {our_answer[:600]}\n{text}")
            else:
                known[why] += 1
        else:
            a = as_xla_keeps(instructions(their_answer))
            b = as_xla_keeps(instructions(our_answer))
            different = [pair for pair in zip(a, b, strict=False) if pair[0] != pair[1]]
            if different or len(a) != len(b):
                wrong.append(f"XLA, ours: {different[:1]}\n{text}")
            else:
                known["same"] += 1
    return wrong, known


def test_repository_texts() -> None:
    texts = [t for name, t in repository_texts() if len(t) < 100_000 and MERGED not in name]
    wrong, known = disagreements(texts)
    assert not wrong, wrong[0]
    assert known["same"] > 40


@needs_shared
@pytest.mark.slow
def test_corpus() -> None:
    wrong, known = disagreements([t for name, t in corpus_texts(40_000) if MERGED not in name])
    assert not wrong, wrong[0]
    assert known["same"] > 1000


HEAD = "HloModule m\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\nENTRY e {\n"

TYPED = """ x = {t}[2,2]{layout} parameter(0)
 y = {t}[2,2]{{1,0}} parameter(1)
 s = {t}[] parameter(2)
 p = pred[2,2] parameter(3)
 q = pred[] parameter(4)
 pp = pred[2,2]{{0,1:T(2,2)E(1)S(2)}} parameter(5)
 k = token[] after-all()
 ROOT r = {op}
}}
"""
LAYOUTS = (
    ("s4", "{0,1:E(4)}"), ("s4", "{0,1:T(8,128)(8,1)E(4)S(1)}"), ("u2", "{1,0:T(2)E(2)}"),
    ("pred", "{0,1:E(1)}"), ("f8e4m3fn", "{0,1:E(8)}"), ("f4e2m1fn", "{0,1:E(4)}"),
    ("f32", "{0,1:T(8,128)L(2)}"), ("f32", "{0,1:S(1)}"),
)  # fmt: skip
INFERRED = (
    "select(p, x, x)", "select(q, x, x)", "select(pp, x, x)", "select(pp, y, y)", "select(p, y, x)",
    "clamp(x, x, y)", "clamp(s, x, s)", "compare(x, x), direction=EQ", "compare(x, y), direction=EQ",
    "add(x, y)", "add(y, x)", "maximum(x, x)", "and(x, x)", "xor(x, y)", "remainder(x, x)", "atan2(x, x)",
    "negate(x)", "not(x)", "abs(x)", "sign(x)", "popcnt(x)", "is-finite(x)", "copy(x)", "tuple(x, y)",
    "reverse(x), dimensions={0}", "transpose(x), dimensions={1,0}", "concatenate(x, x), dimensions={0}",
    "pad(x, s), padding=1_1x0_0", "add-dependency(x, k)", "cholesky(x)",
    "reduce-precision(x), exponent_bits=3, mantissa_bits=2", "get-dimension-size(x), dimensions={0}",
)  # fmt: skip


def test_inferred_layouts() -> None:
    """A shape that is left out has the layout that XLA infers: order, tiles, element size, space."""
    wrong, known = disagreements(
        [HEAD + TYPED.format(t=t, layout=layout, op=op) for t, layout in LAYOUTS for op in INFERRED]
    )
    assert not wrong, wrong[0]
    assert known["same"] > 150


DECLARED = (
    "token[] ", "f32[] ", "f32[3]{0} ", "f32[3]{0:T(8)} ", "() ", "(f32[4]) ", "(f32[3], f32[2]) ",
    "(f32[4]{0:T(4)}, token[]) ", "(f32[4], u32[], token[]) ", "(f32[5], u32[], token[]) ",
    "(f32[4], u32[3], f32[]) ", "",
)  # fmt: skip
REDECLARED = (
    "after-all()", "add-dependency(x, k)", "infeed(k)", "outfeed(x, k)", "send(x, k), channel_id=1",
    "recv(k), channel_id=1", "send-done(sent), channel_id=1", "recv-done(received), channel_id=2",
)  # fmt: skip


def test_declared_shapes_that_do_not_count() -> None:
    """XLA infers some results whatever shape is declared."""
    before = (
        " x = f32[4]{0} parameter(0)\n k = token[] after-all()\n"
        " sent = (f32[4], u32[], token[]) send(x, k), channel_id=1\n"
        " received = (f32[4]{0:T(4)}, u32[], token[]) recv(k), channel_id=2\n ROOT r = "
    )
    wrong, known = disagreements(
        [f"{HEAD}{before}{shape}{op}\n}}\n" for shape in DECLARED for op in REDECLARED]
    )
    assert not wrong, wrong[0]
    assert known["same"] > 60


def test_spellings_that_only_the_parser_of_xla_shows() -> None:
    """One number for an array, operands named like opcodes, comments that end at `\\r`, empty windows."""
    entry = " x = f32[2] parameter(0)\n"
    constants = [
        f" ROOT c = {shape} constant({value})\n"
        for shape in ("s8[3]", "f32[2,2]", "pred[2]", "s4[3]{0:E(4)}", "f32[<=3]", "f32[0]", "c64[2]", "s8[]")
        for value in ("1", "true", "nan", "-0.0", "(1, 2)", "1000", "{1}", "{1, 2, 3}")
    ]  # fmt: skip
    constants += [" ROOT c = (f32[2], s32[]) constant((3, 4))\n"]
    nested = [
        f"{entry} {name} = f32[2] add(x, x)\n ROOT r = f32[2] multiply({name}, {inner}({name}, x))\n"
        for name in ("add", "y", "%add", "maximum")
        for inner in ("add", "%add", "maximum", "f32[2] maximum", "y")
    ]
    windows = [
        f'{entry} ROOT r = f32[2] custom-call(x), {window}custom_call_target="t"\n'
        for window in ("", "window={}, ", "window={size=2}, ")
    ]
    texts = [f"{HEAD}{body}}}\n" for body in (*constants, *nested, *windows)]
    texts += [
        f"HloModule m {before}{end}ENTRY e {{{end} ROOT c = f32[] constant(1) // x{end}}}"
        for before in ("", "// comment", "/* comment */", "/* a // b */")
        for end in ("\r", "\n", "\r\n", "\n\r")
    ]
    wrong, known = disagreements(texts)
    assert not wrong, wrong[0]
    assert known["same"] > 40


def damaged(choose: Choices) -> list[str]:
    """Texts of the repository with something wrong in them."""
    texts = small_texts()
    found: list[str] = []
    for _ in range(choose.integer(1, 40)):
        found.append(fuzz_text.mutate(choose.random(), choose.pick(texts)))
    # XLA's Python entry point takes UTF-8 only.
    return [text for text in found if "\0" not in text and text.isascii()]


@cache
def small_texts() -> list[str]:
    return [t for name, t in repository_texts() if len(t) < 5000 and MERGED not in name]


def test_damaged_texts() -> None:
    @examples(10)
    @given(strategy_of(damaged))
    def agree(texts: list[str]) -> None:
        wrong, _ = disagreements(texts)
        assert not wrong, wrong[0]

    agree()


def judged(texts: list[str]) -> int:
    """How many texts both take or both refuse; fails on what XLA takes and this reader does not."""
    same = 0
    for text, their_answer in zip(texts, oracle.ask(texts, theirs), strict=True):
        our_answer = ours(text)
        refused = their_answer.startswith(("ERROR", "CRASH")), our_answer.startswith("ERROR")
        if refused == (False, True):
            assert reason(text, their_answer, our_answer), f"{text}\n{our_answer}"
        same += refused[0] == refused[1]
    return same


@pytest.mark.slow
@pytest.mark.parametrize("loose", [False, True])
def test_generated_instructions(loose: bool) -> None:
    """One opcode a module, so that XLA's further checks refuse only that one."""
    known = [row for row in OPCODES.values() if not row.newer]
    counts = [0, 0]

    def batch(choose: Choices) -> list[str]:
        chosen = choose.some(known, 60)
        return [Generator(choose, loose=loose).module([row]) for row in chosen]

    @examples(3)
    @given(strategy_of(batch))
    def agree(texts: list[str]) -> None:
        counts[0] += judged(texts)
        counts[1] += len(texts)

    agree()
    assert counts[0] > counts[1] // 4


def test_printed_instructions() -> None:
    """What is printed of valid instructions, whatever the options: XLA reads the same in it."""

    def batch(choose: Choices) -> list[str]:
        found: list[str] = []
        for _ in range(choose.integer(1, 40)):
            opcode = choose.pick(sorted(GENERATORS))
            module = parse_module(build([GENERATORS[opcode](choose, opcode)])[0])
            found.append(print_module(module, print_options(choose)))
        return found

    @examples(8)
    @given(strategy_of(batch))
    def agree(texts: list[str]) -> None:
        wrong, known = disagreements(texts)
        assert not wrong, wrong[0]
        assert known["same"] == len(texts), known

    agree()
