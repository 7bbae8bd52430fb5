"""Inline bodies: the same as a computation above, or a computation of their own."""

from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module

CANONICAL = """\
HloModule m, entry_computation_layout={(f32[4]{0})->f32[]}

add {
  tmp_0 = f32[] parameter(0)
  tmp_1 = f32[] parameter(1)
  ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
}

ENTRY e {
  tmp_0 = f32[4]{0} parameter(0)
  tmp_1 = f32[] constant(0)
  ROOT tmp_2 = f32[] reduce(f32[4]{0} tmp_0, f32[] tmp_1), dimensions={0}, to_apply=
  {
    tmp_0 = f32[] parameter(0)
    tmp_1 = f32[] parameter(1)
    ROOT tmp_2 = f32[] add(f32[] tmp_0, f32[] tmp_1)
  }
}

"""


def names(text: str) -> list[str]:
    return [c.computation_name for c in HloModule(parse_module(text)).computations]


def test_a_body_that_reads_like_a_computation_is_that_computation() -> None:
    assert names(CANONICAL) == ["add", "e"]
    assert print_module(parse_module(CANONICAL), PrintOptions.canonical()) == CANONICAL


def test_another_body_is_a_new_computation() -> None:
    other = CANONICAL.replace("    ROOT tmp_2 = f32[] add", "    ROOT tmp_2 = f32[] maximum")
    assert names(other) == ["add", "_", "e"]
