"""What the real printers printed parses and prints back byte for byte: kernels, ops, stage dumps."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from support import SHARED, needs_shared, one_in, sampled
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.formats.mosaic import Form, parse_kernel, print_kernel
from mlirhlo.mosaic.decode import VERSION, read_kernel, write_stable

pytestmark = needs_shared

SAMPLES = SHARED / "reference" / "mosaic_samples"
AFTER = ("lower-to-llo", "eliminate-llo-extensions", "finalize-llo")
"""Stages in the dialect below Mosaic."""
_BODY = re.compile(r"\\22body\\22: \\22([A-Za-z0-9+/=]+)\\22|\"body\": ?\"([A-Za-z0-9+/=]+)\"")
FORMS: tuple[Form, ...] = ("pretty", "generic", "stable")
_CUT = "lines in the original"


def printed_files() -> list[Path]:
    found = [
        *SAMPLES.glob("kernels/*.mlir"),
        *SAMPLES.glob("ops/*.mlir"),
        *SAMPLES.glob("dumps/*/*.txt"),
    ]
    return sorted(
        path
        for path in found
        if not path.stem.endswith(AFTER)
        and ".input." not in path.name
        and _CUT not in path.read_text()
    )


def bodies(path: Path) -> list[bytes]:
    found = _BODY.findall(path.read_text())
    return [base64.b64decode(first or second) for first, second in found]


def printed_like(text: str, path: Path) -> str:
    module = parse_kernel(text, path.name)
    if path.parent.name == "kernels" and ".generic." in path.name:
        return print_kernel(module, form="stable", prefix="")
    form: Form = "generic" if '"builtin.module"' in text else "pretty"
    return print_kernel(module, form=form)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "path", printed_files(), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_text_comes_back(path: Path) -> None:
    text = path.read_text()
    assert printed_like(text, path) == text


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("form", ["pretty", "generic"])
def test_hand_written_ops_print_as_jaxlib_prints_them(form: Form) -> None:
    module = parse_kernel((SAMPLES / "ops" / "tpu_ops.input.mlir").read_text())
    wanted = (SAMPLES / "ops" / f"tpu_ops.{form}.mlir").read_text()
    assert print_kernel(module, form=form, keep_names=False) == wanted


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "path", sorted((SAMPLES / "stablehlo").glob("*.mlir")), ids=lambda p: p.stem
)
def test_bodies_decode_to_the_text_of_the_samples(path: Path) -> None:
    (body,) = bodies(path)
    module = read_kernel(body)
    wanted = (SAMPLES / "kernels" / f"{path.stem}.generic.mlir").read_text()
    assert print_kernel(module, form="stable", prefix="") == wanted


def corpus_files() -> list[Path]:
    return sorted((SHARED / "corpus").glob("programs/pallas_*/*.stablehlo.mlir"))


def come_back(module: ModuleOp) -> None:
    """Every form of a module is read as the same module, but for the version it states."""
    module.attributes.pop(VERSION, None)
    generic = print_kernel(module, form="generic")
    for form in FORMS:
        again = read_kernel(print_kernel(module, form=form).encode())
        again.attributes.pop(VERSION, None)
        assert print_kernel(again, form="generic") == generic
    again = read_kernel(write_stable(module))
    again.attributes.pop(VERSION, None)
    assert print_kernel(again, form="generic") == generic


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.parent.name)
def test_bodies_of_the_corpus_come_back(path: Path) -> None:
    for body in bodies(path):
        come_back(read_kernel(body))


def cases() -> list[dict[str, str]]:
    lines = (SAMPLES / "acceptance.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
@sampled(6)
def test_small_kernels_come_back_in_every_form(every: int) -> None:
    for case in one_in(every, cases()):
        come_back(parse_kernel(case["mlir"], case["name"]))
