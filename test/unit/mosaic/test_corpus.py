"""The programs of the corpus that call kernels, in every form they are stored in."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from support import CORPUS, ROOT, needs_shared

import mlirhlo
from mlirhlo.interp import run_module

sys.path.insert(0, str(ROOT / "tools"))

import optimised_numerics as numerics

pytestmark = needs_shared


def kernels() -> list[Any]:
    if not CORPUS.is_dir():
        return []
    manifest = json.loads((CORPUS / "MANIFEST.json").read_text())
    found = [entry for entry in manifest["programs"] if "pallas" in entry["features"]]
    return [pytest.param(entry, id=entry["name"]) for entry in found]


@pytest.mark.parametrize("variant", ["hlo", "stablehlo", "tpu_after_opt"])
@pytest.mark.parametrize("entry", kernels())
def test_as_recorded(entry: Any, variant: str) -> None:
    module = mlirhlo.load(str(CORPUS / entry["files"][variant]))
    data = numerics.data_of(entry)
    got = run_module(module.op, data["inputs"], check=True)
    types = [row["dtype"] for row in data["meta"]["out"]]
    assert numerics.differences(entry, got, data["outputs"], types) == []


@pytest.mark.parametrize("variant", ["hlo", "stablehlo", "tpu_after_opt"])
@pytest.mark.parametrize("entry", kernels())
def test_as_machine_code(entry: Any, variant: str) -> None:
    module = mlirhlo.load(str(CORPUS / entry["files"][variant]))
    data = numerics.data_of(entry)
    executable = mlirhlo.compile(module)
    result = executable(*data["inputs"])
    got = list(result) if isinstance(result, tuple) else [result]
    assert "custom-call tpu_custom_call" not in executable.callbacks
    types = [row["dtype"] for row in data["meta"]["out"]]
    assert numerics.differences(entry, got, data["outputs"], types) == []


def test_there_are_eight() -> None:
    assert len(kernels()) == 8
