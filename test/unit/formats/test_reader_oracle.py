"""The reader against XLA's own: what is accepted, and what was understood.

Where the two disagree on purpose, `reason` says why; everything else is a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import fuzz_text
import oracle
import pytest
import strategies.every  # noqa: F401  # registers every opcode
from hypothesis import given
from strategies.choices import Choices, examples, strategy_of
from strategies.instructions import GENERATORS
from strategies.running import build
from strategies.text import Generator, print_options
from support import needs_shared
from unit.corpus import corpus_texts, repository_texts

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
    without a row; the element size of constants; the sign of a printed `-0`; a wrong shape of an
    `add-dependency` (which the verifier then refuses here, and XLA replaces by the operand's)."""
    return [
        re.sub(r"\{:E\(\d+\)\}|:?E\(\d+\)(?=\})|(?<![\w.])-(?=0[,)}\s])", "", line)
        if " constant(" in line
        else line
        for line in (
            re.sub(r", metadata=\{[^\"}]*\}|(?<= = )\S+(?= add-dependency\()", "", line)
            for line in lines
        )
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
