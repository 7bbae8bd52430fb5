"""hlo-translate: every direction, and what is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import DATA, environment

from mlirhlo.cli.hlo_translate import EXAMPLES

from .conftest import Ran

Tool = Callable[..., Ran]

MODULE = (DATA / "programs" / "donated_sgd" / "donated_sgd.hlo").read_text()


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("--hlo-to-mlir", "--mlir-to-hlo"),
        ("--hlo-text-to-mlir-hlo", "--mlir-hlo-to-hlo-text"),
        ("--hlo-to-mlir-generic", "--mlir-to-hlo"),
        ("--hlo-to-proto", "--proto-to-hlo"),
        ("--hlo-to-pbtxt", "--pbtxt-to-hlo"),
        ("--hlo-to-json", "--json-to-hlo"),
        ("--hlo_to_pb", "--pb_to_hlo"),
        ("--to=pb", "--from=pb --to=hlo"),
    ],
)
def test_there_and_back(there: str, back: str, tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "file"
    ran = tool("hlo_translate", there, "-o", file, stdin=MODULE)
    assert (ran.code, ran.err) == (0, "")
    ran = tool("hlo_translate", *back.split(), file)
    assert (ran.code, ran.err, ran.out) == (0, "", MODULE)


def test_output_name_is_enough(tool: Tool, tmp_path: Path) -> None:
    assert tool("hlo_translate", "-o", tmp_path / "m.mlir", stdin=MODULE).code == 0
    assert (tmp_path / "m.mlir").read_text().startswith("builtin.module @")


def test_print_options(tool: Tool) -> None:
    assert "%" not in tool("hlo_translate", "--hlo-to-hlo", "--short", stdin=MODULE).out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no format to write"),
        (["--hlo-to-nonsense"], "unknown option '--hlo-to-nonsense'"),
        (["--hlo-to-mlir", "a", "b"], "one input file is wanted"),
    ],
)
def test_mistake(argv: list[str], message: str, tool: Tool) -> None:
    ran = tool("hlo_translate", *argv, stdin=MODULE)
    assert ran.code == 2
    assert message in ran.err


def test_wrong_direction_is_an_error_of_the_reader(tool: Tool) -> None:
    ran = tool("hlo_translate", "--mlir-to-hlo", stdin=MODULE)
    assert ran.code == 1
    assert "error[HLO00" in ran.err


def test_pieces(tool: Tool) -> None:
    ran = tool(
        "hlo_translate", "--hlo-to-mlir", "--split-input-file", stdin=f"{MODULE}// -----\n{MODULE}"
    )
    assert ran.out.count("builtin.module @") == 2


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_work(example: str) -> None:
    done = subprocess.run(
        example, shell=True, capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
