"""The printer's text under XLA's presets, byte for byte against XLA's own `to_string`."""

from __future__ import annotations

import dataclasses
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest
from support import CORPUS, DATA, needs_shared

from mlirhlo.formats.hlo_text.options import ComputationOrder, PrintOptions
from mlirhlo.formats.hlo_text.printer import print_module
from mlirhlo.formats.hlo_text.reader import parse_module

pytestmark = pytest.mark.oracle

LIBRARY: dict[str, Any] = {"async_sugar": True, "computation_order": ComputationOrder.WALKED}
"""What XLA's library does, and its dumps do not."""

PRESETS: dict[str, Callable[[], PrintOptions]] = {
    "default": PrintOptions,
    "short_parsable": PrintOptions.short_parsable,
    "canonical": PrintOptions.canonical,
    "fingerprint": PrintOptions.fingerprint,
}
SMALL = sorted((Path(__file__).parent / "printer_inputs").glob("*.hlo"))
"""Modules that show one rule of printing each."""

DUMPS = sorted((DATA / "dumps").glob("**/*optimizations.txt"))
"""Real dumps that travel with the repository."""

PROGRAMS = [p for p in sorted(CORPUS.glob("programs/*/*.hlo*")) if ".pb" not in p.suffixes]


def text_of(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def theirs(text: str) -> str:
    """XLA's texts of all presets, joined; one reading serves them all."""
    module = oracle.xla().hlo_module_from_text(text)
    printers = oracle.xla().HloPrintOptions
    return "\0".join(
        module.to_string(printers() if preset == "default" else getattr(printers, preset)())
        for preset in PRESETS
    )


def without_tables(text: str) -> str:
    """Without the stack-frame tables, which XLA's reader renumbers and thins out."""
    text = re.sub(
        r"FileNames\n.*?StackFrames\n[^\n%A-Za-z]*(\d+ \{[^\n]*\n)*\n\n", "", text, flags=re.DOTALL
    )
    return re.sub(r" ?stack_frame_id=\d+", "", text)


def signed_zeros(text: str) -> str:
    """Constants `-0` so that XLA reads what it printed: it takes the integer for +0."""
    return re.sub(r"(constant\([({ ]*|, )-0(?=[,)}])", r"\1-0.0", text)


def elided(text: str) -> bool:
    """Whether constants are missing, which XLA's reader fills with garbage."""
    return "constant({...})" in text


def agree(path: Path) -> None:
    text = signed_zeros(text_of(path))
    if "E(4)} constant(" in text:
        pytest.skip("XLA's reader loses the element size of constants")
    if ".canonical." in path.name:
        pytest.skip("bodies stand twice in the text; XLA's reader makes two computations of each")
    [answer] = oracle.ask([text], theirs)
    if answer.startswith("ERROR") or answer == "CRASH":
        pytest.skip("XLA cannot read it")
    module = parse_module(text, str(path))
    for (preset, make), want in zip(PRESETS.items(), answer.split("\0"), strict=True):
        options = make()
        if options.computation_order is ComputationOrder.KEPT:
            options = dataclasses.replace(options, **LIBRARY)
        if elided(text) and (options.large_constants or options.essential_constants):
            continue  # XLA's reader makes values up
        got, want = without_tables(print_module(module, options)), without_tables(want)
        for number, (ours, line) in enumerate(zip(got.split("\n"), want.split("\n"), strict=False)):
            assert ours == line, f"{path.name}, {preset}, line {number + 1}"
        assert got == want


@pytest.mark.parametrize("path", SMALL + DUMPS, ids=lambda p: p.name)
def test_presets_on_small_modules(path: Path) -> None:
    agree(path)


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in PROGRAMS if "big_" not in p.name], ids=lambda p: p.name
)
def test_presets_on_the_corpus(path: Path) -> None:
    agree(path)


SWITCHES: dict[str, dict[str, Any]] = {
    "print_extra_attributes": {"extra_attributes": False},
    "print_operand_shape": {"operand_shapes": True},
    "print_result_shape": {"result_shapes": False},
    "print_operand_names": {"operand_names": False},
    "print_ids": {"ids": False},
    "print_percent": {"percent": False},
    "print_program_shape": {"program_shape": False},
    "print_metadata": {"metadata": False},
    "print_backend_config": {"backend_config": False},
    "print_control_dependencies": {"control_predecessors": False},
    "print_large_constants": {"large_constants": True},
    "include_layout_in_shapes": {"layouts": False},
    "compact_operands": {"compact_operands": True},
    "canonicalize_instruction_names": {"canonical_names": True},
    "canonicalize_computations": {"computation_order": ComputationOrder.STORED},
}


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.name)
def test_switches(path: Path, switch: str) -> None:
    text = text_of(path)
    options = oracle.xla().HloPrintOptions()
    setattr(options, switch, not getattr(options, switch))
    want = oracle.xla().hlo_module_from_text(text).to_string(options)
    ours = PrintOptions(**{**LIBRARY, **SWITCHES[switch]})
    assert print_module(parse_module(text, str(path)), ours) == want
