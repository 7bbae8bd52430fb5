"""Inferred shapes against XLA's: instructions without their shapes, read by both.

Each opcode gets random operands and attributes, most of them nearly right. Both sides must infer
the same shape, layout included, or both refuse. `MLIRHLO_SEED` and `MLIRHLO_DIFFERENTIAL` (a factor)
make other and longer runs.
"""

from __future__ import annotations

import oracle
import pytest
from hypothesis import given
from strategies.drawn import examples, strategy_of
from unit.analysis import shape_cases, shape_cases_more
from unit.analysis.shape_source import GENERATORS, Case, Source

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats.hlo_text import parse_module

FAMILIES = (shape_cases, shape_cases_more)
"""Modules with generators; importing them registers the generators."""

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

# ---------------------------------------------------------------- both sides


def root_shape(text: str) -> str:
    """XLA's answer: the shape of the root."""
    printed = oracle.xla().hlo_module_from_text(text).to_string()
    root = next(line for line in printed.splitlines()[::-1] if line.startswith("  ROOT %r"))
    return shape_text(root.split(" = ", 1)[1])


def shape_text(text: str) -> str:
    """The shape at the start of an instruction's right side."""
    if not text.startswith("("):
        return text.split(" ", 1)[0]
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[: at + 1]
    return text


def ours(case: Case) -> str:
    try:
        return str(HloModule(parse_module(str(case))).entry.root.shape)
    except HloError as error:
        return f"ERROR {error}"


def differs(case: Case, theirs: str) -> str | None:
    mine = ours(case)
    if theirs == "CRASH" or theirs.startswith(("ERROR", "CRASH")):
        # Where XLA aborts, any answer but a traceback is fine; where it refuses, so must we.
        agree = mine.startswith("ERROR") or theirs == "CRASH" or "Bad StatusOr access" in theirs
    else:
        agree = mine == theirs
    return None if agree else f"{case}\nXLA:  {theirs}\nours: {mine}"


NOT_INFERRED = {"opt-barrier", "fusion", "reduce-precision", "outfeed", "shuffle", "atan"}
"""Opcodes whose shapes XLA does not infer, or does not know."""


@pytest.mark.parametrize("opcode", sorted(GENERATORS))
def test_infers_as_xla(opcode: str) -> None:
    def some(source: Source) -> list[Case]:
        return [GENERATORS[opcode](source, opcode) for _ in range(source.integer(1, 40))]

    @examples(3)
    @given(strategy_of(some, Source))
    def compare(found: list[Case]) -> None:
        answers = oracle.ask([str(case) for case in found], root_shape)
        wrong = [w for w in map(differs, found, answers) if w is not None]
        assert not wrong, wrong[0]

    compare()


def test_every_inferring_opcode_is_compared() -> None:
    inferring = {name for name, row in OPCODES.items() if row.infers}
    assert inferring - set(GENERATORS) - NOT_INFERRED == set()
