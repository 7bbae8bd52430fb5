"""Dumps must never cost a compilation: full disks, wrong directories, hostile names, two processes."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import environment

import mlirhlo
from mlirhlo.debug.dump import names, sink, writer
from mlirhlo.debug.options import process

TEXT = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(writer, "_numbers", itertools.count())
    monkeypatch.setattr(sink, "_told", set())
    monkeypatch.setattr(process, "_read", [])


def result(**flags: object) -> list[float]:
    run = mlirhlo.compile(mlirhlo.parse(TEXT), cached=False, options=flags)
    return run(np.arange(4, dtype=np.float32)).tolist()


RIGHT = [0, 2, 4, 6]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "mlirhlo.dump"]


def test_a_file_in_the_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "d").write_text("mine")
    assert result(xla_dump_to=str(tmp_path / "d")) == RIGHT
    (said,) = complaints(caplog)
    assert said.startswith(
        f"error[HLO0526]: Could not create directory: {tmp_path}/d. Error: a file"
    )
    assert (tmp_path / "d").read_text() == "mine"


def test_a_directory_that_cannot_be_made(caplog: pytest.LogCaptureFixture) -> None:
    assert result(xla_dump_to="/proc/nosuch/d", xla_dump_hlo_pass_re=".*") == RIGHT
    (said,) = complaints(caplog)
    assert "Could not create directory: /proc/nosuch/d. Error: " in said


def test_a_directory_that_must_not_be_written(caplog: pytest.LogCaptureFixture) -> None:
    assert result(xla_dump_to="/proc/self") == RIGHT
    (said,) = complaints(caplog)
    assert said.startswith("error[HLO0526]: cannot write /proc/self/module_0000.m.before_")


def test_a_full_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What still fits is written; nothing is left in halves."""

    def write_all(file: object, data: bytes) -> None:
        file.write(data[:400])
        if len(data) > 400:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sink, "_write_all", write_all)
    assert result(xla_dump_to=str(tmp_path)) == RIGHT
    (said,) = complaints(caplog)
    assert said.split("\n")[0].endswith(": No space left on device")
    left = sorted(p.name for p in tmp_path.iterdir())
    assert "module_0000.m.before_optimizations.txt" in left
    assert not any(name.endswith((".ll", ".o", ".part")) for name in left)


def test_content_that_cannot_be_made_loses_no_other_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("no graph today")

    monkeypatch.setattr("mlirhlo.debug.graph.render", fail)
    flags = {"xla_dump_hlo_as_dot": True, "xla_dump_hlo_as_text": True}
    assert result(xla_dump_to=str(tmp_path), **flags) == RIGHT
    assert any("RuntimeError: no graph today" in said for said in complaints(caplog))
    found = {p.name for p in tmp_path.iterdir()}
    assert "module_0000.m.cpu_after_optimizations.txt" in found
    assert not any(name.endswith(".dot") for name in found)


@pytest.mark.parametrize(
    "name",
    ["../../x", "..", ".", "/etc/passwd", "a\0b", "<script>'\"", "x" * 100_000, "\n", "", "é", "a/b[c] d"],
)  # fmt: skip
@pytest.mark.parametrize("subfolder", [False, True])
def test_hostile_names_stay_inside(name: str, subfolder: bool, tmp_path: Path) -> None:
    folder = tmp_path / "inside" / "here"
    module = mlirhlo.parse(TEXT)
    module.hlo.name = name
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_to_subfolder": subfolder}
    mlirhlo.compile(module, cached=False, options=options)
    found = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(found) == 10
    assert all(p.is_relative_to(folder) for p in found)
    assert not [p for p in found if any(c in p.name for c in "/\\[] \0\n<>\"'")]


def test_names_are_xlas() -> None:
    assert names.module_identifier("we ird/na[m]e") == "we_ird_na_m_e"
    assert names.module_identifier("é") == "__"
    assert names.stem(3, "f", "debug_options") == "module_0003.f.debug_options"
    assert names.stem(12345, "", "x", "17") == "17.module_12345.x"
    assert names.stem(0, "n" * 300, "before_optimizations") == "module_0000.before_optimizations"
    assert names.stem(0, "n" * 236, "s") == f"module_0000.{'n' * 236}.s"
    assert names.sanitized("0000.HLO passes.after_<a,b>") == "0000.HLO_passes.after_<a,b>"


# ---------------------------------------------------------------- two processes

PROGRAM = f"""
import sys, mlirhlo
module = mlirhlo.parse({TEXT!r})
mlirhlo.compile(module, cached=False, options={{"xla_dump_to": sys.argv[1]}})
print("done", flush=True)
sys.stdin.read()
"""


def test_two_processes_with_one_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]

    def started() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment()
        )

    first = started()
    assert first.stdout is not None
    assert first.stdout.readline() == "done\n"
    before = {p.name: (p.stat().st_ino, p.read_bytes()) for p in tmp_path.iterdir()}
    # While it lives, another one keeps away.
    second = started()
    _, said = second.communicate("", timeout=120)
    assert f"another process dumps to {tmp_path}: this one writes to" in said
    own = tmp_path / f"process_{second.pid}"
    assert {p.name for p in own.iterdir()} == set(before)
    assert {p.name: (p.stat().st_ino, p.read_bytes()) for p in tmp_path.iterdir()
            if p.is_file()} == before  # fmt: skip
    assert first.communicate("", timeout=120)[1] == ""
    # When it has ended, the next one has the names to itself, and says what it replaces.
    third = subprocess.run(command, input="", capture_output=True, text=True, env=environment())
    assert third.stderr.count(f"files of an earlier process in {tmp_path} are replaced") == 1
    assert {p.name for p in tmp_path.iterdir() if p.is_file()} == set(before)


def test_a_child_does_not_write_over_its_parent(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        'print("done"',
        "import os\nif os.fork(): os.wait()\nelse: mlirhlo.compile"
        '(module, cached=False, options={"xla_dump_to": sys.argv[1]}); os._exit(0)\nprint("done"',
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], input="",
                          capture_output=True, text=True, env=environment())  # fmt: skip
    assert done.returncode == 0, done.stderr
    (own,) = (p for p in tmp_path.iterdir() if p.is_dir())
    assert own.name.startswith("process_")
    assert len(list(own.iterdir())) == len([p for p in tmp_path.iterdir() if p.is_file()])
