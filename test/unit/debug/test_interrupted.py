"""Ctrl-C: a search that goes on ends as one that was left alone, and its processes and temporary files are gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from planted.bugs import WRONG_PASSES
from support import DATA, ROOT

from mlirhlo.debug.bisect import folders, pipelines
from mlirhlo.debug.bisect.stages import read_stages
from mlirhlo.debug.fuzz import campaign
from mlirhlo.debug.reduce import driver
from mlirhlo.debug.trials.conditions import Condition

PROGRAM = """HloModule program
ENTRY main {
  x = f32[4,6] parameter(0)
  s = f32[4,6] sine(x)
  e = f32[4,6] exponential(s)
  f = f32[4,6] floor(e)
  g = f32[4,6] negate(f)
  m = f32[4,6] multiply(g, x)
  ROOT t = (f32[4,6], f32[4,6]) tuple(m, s)
}
"""
WRONG = "wrong{only=floor_is_lost}"


class Here:
    """Worker processes, within the process of the test; the request `stops_at` is interrupted."""

    stops_at = 0
    requests = 0

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def tighten(self, *_: float) -> None:
        """Limits are not tested here."""

    @classmethod
    def ask(cls, task: str, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        cls.requests += 1
        if cls.requests == cls.stops_at:
            raise KeyboardInterrupt
        module, _, function = task.partition(":")
        run = getattr(import_module(module), function)
        return [json.loads(json.dumps(run(**json.loads(json.dumps(r))))) for r in requests]


def reduced(state: Path) -> object:
    condition = Condition(
        "differs", (f"Interpreter:{WRONG}", "Interpreter"), load_passes=(WRONG_PASSES,)
    )
    return driver.reduce(PROGRAM, condition, verdicts=str(state)).text


def bisected(state: Path) -> object:
    sides = (f"Interpreter:algsimp,{WRONG},cse,dce", "Interpreter")
    condition = Condition("differs", sides, load_passes=(WRONG_PASSES,))
    found = pipelines.bisect_pipeline(PROGRAM, condition, verdicts=str(state))
    return {**asdict(found), "attempts": 0}


def bisected_folder(state: Path) -> object:
    dump = state.parent / "dump"
    if not dump.exists():
        shutil.copytree(DATA / "dumps" / "cpu", dump)
        stage = next(dump.glob("*.0001.*"))
        stage.write_text(stage.read_text().replace(" maximum(", " minimum("))
    return asdict(folders.bisect_folder(read_stages(str(dump)), verdicts=str(state)))


def fuzzed(state: Path) -> object:
    settings = campaign.Settings(3, ("passes",), passes=(WRONG, "dce"), load_passes=(WRONG_PASSES,))
    found = campaign.fuzz(settings, cases=12, folder=str(state.with_suffix(".folder")))
    assert found.groups
    return {**asdict(found), "seconds": 0}


@pytest.mark.parametrize("search", [reduced, bisected, bisected_folder, fuzzed])
def test_an_interrupted_search_ends_as_a_whole_one(
    search: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (driver, pipelines, folders, campaign):
        monkeypatch.setattr(module, "Workers", Here)
    monkeypatch.setattr(Here, "requests", 0)
    whole = search(tmp_path / "whole")
    count = Here.requests
    assert count > 1
    monkeypatch.setattr(Here, "requests", 0)
    for stop in (2, count // 2):
        monkeypatch.setattr(Here, "stops_at", Here.requests + stop)
        try:
            search(tmp_path / "part")
        except KeyboardInterrupt:
            continue
    monkeypatch.setattr(Here, "stops_at", 0)
    assert search(tmp_path / "part") == whole


@pytest.mark.slow
def test_processes_and_temporary_files_go_with_ctrl_c(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    file, verdicts = tmp_path / "m.hlo", tmp_path / "small.hlo.tries"
    file.write_text(PROGRAM)
    command = [
        sys.executable,
        str(ROOT / "tools" / "hlo-reduce"),
        str(file),
        "-o",
        str(tmp_path / "small.hlo"),
    ]
    command += [f"--bad=Interpreter:{WRONG}", f"--load-pass={WRONG_PASSES}", "--jobs=2"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not verdicts.exists() and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on where this one was" in said
    assert verdicts.read_text()
    assert not list(scratch.iterdir())
    assert not _processes_with(str(scratch))


def _processes_with(folder: str) -> list[str]:
    """Processes that have a folder in their environment."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if folder.encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue  # another's, or one that just ended
    return found
