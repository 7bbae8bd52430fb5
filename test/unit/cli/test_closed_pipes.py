"""A pipe that is closed ends every tool quietly; SIGINT ends them with 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import DATA

MODULE = str(DATA / "programs" / "attention_causal" / "attention_causal.hlo")
COMMANDS = {
    "hlo-opt": ["hlo_opt", MODULE],
    "hlo-opt -o /dev/stdout": ["hlo_opt", "-o", "/dev/stdout", MODULE],
    "hlo-opt --list-passes": ["hlo_opt", "--list-passes"],
    "hlo-translate": ["hlo_translate", "--hlo-to-mlir-hlo", MODULE],
    "run_hlo_module": [
        "run_hlo_module",
        "--platform=Interpreter",
        "--reference_platform=",
        "--print_literals",
        MODULE,
    ],
    "hlo-dump": ["hlo_dump", "report", str(DATA / "dumps" / "cpu")],
    "hlo-view": ["hlo_view", "--help"],
    "mosaic-opt": ["mosaic_opt", "--help"],
    "ptx-run": ["ptx_run", "--help"],
    "ptx-opt": ["ptx_opt", "--help"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_closed_pipe_ends_a_tool_quietly(command: list[str], tmp_path: Path) -> None:
    name, *arguments = command
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        process = subprocess.run(
            [sys.executable, "-m", f"mlirhlo.cli.{name}", *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    said = [line for line in process.stderr.splitlines() if not line.startswith("inputs: ")]
    assert (process.returncode, said) == (0, [])
