"""Every program of the corpus that has outputs, as written and as XLA:CPU optimised it."""

from __future__ import annotations

import gzip
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import CORPUS, needs_shared

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module, run_spmd

pytestmark = needs_shared


@cache
def library() -> Any:
    """The corpus' own way to read and compare arrays."""
    sys.path.insert(0, str(CORPUS / "gen"))
    import corpuslib  # pyright: ignore[reportMissingImports]

    return corpuslib


def programs(variant: str, *, sharded: bool = False) -> list[Any]:
    if not CORPUS.is_dir():
        return []
    manifest = json.loads((CORPUS / "MANIFEST.json").read_text())
    return [
        pytest.param(entry, id=entry["name"])
        for entry in manifest["programs"]
        if "npz" in entry["files"]
        and variant in entry["files"]
        and "pallas" not in entry["features"]
        and ("sharded" in entry["features"]) == sharded
    ]


def text_of(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as file:
            return file.read()
    return path.read_text()


def check(entry: Any, got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(got) == len(wanted)
    types = [row["dtype"] for row in data(entry)["meta"]["out"]]
    factor = entry["tolerance"].get("factor", 1.0)
    for index, (a, b, name) in enumerate(zip(got, wanted, types, strict=True)):
        agrees, detail = library().compare(a, b, name, factor)
        assert agrees, f"output {index} ({name}): {detail}"


def data(entry: Any) -> Any:
    return library().load_npz(str(CORPUS / entry["files"]["npz"]))


def run(entry: Any, variant: str) -> None:
    module = parse_module(text_of(CORPUS / entry["files"][variant]), entry["name"])
    check(entry, run_module(module, data(entry)["inputs"], check=True), data(entry)["outputs"])


@pytest.mark.parametrize("entry", programs("hlo"))
def test_as_written(entry: Any) -> None:
    run(entry, "hlo")


@pytest.mark.parametrize("entry", programs("cpu_after_opt"))
def test_as_xla_cpu_optimised_it(entry: Any) -> None:
    run(entry, "cpu_after_opt")


@pytest.mark.parametrize("entry", programs("gpu_after_opt"))
def test_as_xla_gpu_optimised_it(entry: Any) -> None:
    if entry["name"] == "ew_f8_variants":
        pytest.skip("XLA:GPU drops pairs of converts (excess precision)")
    run(entry, "gpu_after_opt")


@pytest.mark.slow
@pytest.mark.parametrize("entry", programs("tpu_after_opt"))
def test_as_xla_tpu_optimised_it(entry: Any) -> None:
    # Matrix units take bf16, so values agree to some 1e-2 only.
    module = parse_module(text_of(CORPUS / entry["files"]["tpu_after_opt"]), entry["name"])
    got = run_module(module, data(entry)["inputs"], check=True)
    for a, b in zip(got, data(entry)["outputs"], strict=True):
        assert a.shape == b.shape
        if a.size and a.dtype.kind in "fc":
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            x, y = a.astype(wide), b.astype(wide)
            finite = np.isfinite(y)
            scale = np.max(np.abs(y[finite]), initial=1e-30)
            assert np.all(np.abs(x - y)[finite] <= 0.03 * scale)


@pytest.mark.parametrize("variant", ["cpu_spmd", "cpu_after_opt"])
@pytest.mark.parametrize("entry", programs("cpu_spmd", sharded=True))
def test_partitioned(entry: Any, variant: str) -> None:
    module = parse_module(text_of(CORPUS / entry["files"][variant]), entry["name"])
    given, wanted = data(entry)["parts_in"], data(entry)["parts_out"]
    count = entry["devices"]
    got = run_spmd(module, [[value[d] for value in given] for d in range(count)], check=True)
    for device in range(count):
        check(entry, got[device], [value[device] for value in wanted])


def test_kernels_are_named() -> None:
    manifest = json.loads((CORPUS / "MANIFEST.json").read_text())
    entry = next(e for e in manifest["programs"] if "pallas" in e["features"])
    module = parse_module(text_of(CORPUS / entry["files"]["hlo"]), entry["name"])
    with pytest.raises(HloError, match="tpu_custom_call"):
        run_module(module, data(entry)["inputs"])
