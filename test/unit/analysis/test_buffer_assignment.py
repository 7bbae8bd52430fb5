"""Values that are alive together have memory of their own; the report is XLA's."""

import re
from pathlib import Path

import pytest
from program_shapes import SHAPES
from support import CORPUS, DATA, needs_shared

from mlirhlo.analysis.alias import aliases
from mlirhlo.analysis.buffer_assignment import assign_buffers, writes_over
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import parse_module

PROGRAMS = sorted(DATA.glob("programs/*/*after_opt.hlo"))
SAMPLES = CORPUS.parent / "reference" / "dump_samples" / "cpu_default"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_nothing_is_overwritten_that_is_read(path: Path) -> None:
    module = HloModule(parse_module(path.read_text()))
    computations = aliases(module).sources.computations
    found = assign_buffers(module)
    for allocation in found.allocations:
        for k, one in enumerate(allocation.buffers):
            assert one.offset + one.bytes <= allocation.bytes
            for other in allocation.buffers[:k]:
                meets = one.first <= other.last and other.first <= one.last
                overlaps = (
                    one.offset < other.offset + other.bytes
                    and other.offset < one.offset + one.bytes
                )
                assert not (meets and overlaps) or writes_over(one, other, computations)


@needs_shared
def test_the_report_is_that_of_xla() -> None:
    (dump,) = SAMPLES.glob("*cpu_after_optimizations.txt")
    (report,) = SAMPLES.glob("*optimizations-buffer-assignment.txt")

    def allocations(text: str) -> list[str]:
        """Each with its values; XLA's numbers of values come from another walk."""
        text = re.sub(r"<\d+ ", "<", text).split("\n\n")[0]
        return sorted(re.split(r"^allocation \d+", text, flags=re.MULTILINE)[1:])

    ours = str(assign_buffers(HloModule(parse_module(dump.read_text()))))
    assert [a.strip() for a in allocations(ours)] == [
        a.strip() for a in allocations(report.read_text())
    ]


def test_the_text_of_a_wide_result_goes_with_its_width() -> None:
    def text(width: int) -> str:
        module = parse_module(SHAPES["wide_parameter"](width))
        return str(assign_buffers(HloModule(module)))

    assert len(text(8000)) < 2.1 * len(text(4000))
