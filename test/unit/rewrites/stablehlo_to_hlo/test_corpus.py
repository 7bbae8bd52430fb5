"""The StableHLO programs of the corpus as HLO: XLA's own conversion, and the recorded outputs."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import CORPUS, needs_shared, sample

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.formats.hlo_text import PrintOptions, print_module
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

PROGRAMS = sorted(
    path
    for path in CORPUS.glob("programs/*/*.stablehlo.mlir")
    if path.stat().st_size < int(os.environ.get("MLIRHLO_LARGEST_PROGRAM", "40000"))
)


def name_of(path: Path) -> str:
    return path.name.removesuffix(".stablehlo.mlir")


def canonical(text: str) -> str:
    from jaxlib import _hlo

    module = _hlo.hlo_module_from_text(text)
    options = _hlo.HloPrintOptions.canonical()
    options.print_large_constants = True
    options.print_metadata = False
    return str(module.to_string(options))


def by_xla(program: str) -> str:
    from jaxlib import _hlo, _jax

    proto = _jax.mlir.mlir_module_to_xla_computation(
        program, False, False
    ).as_serialized_hlo_module_proto()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    return str(_hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options))


@needs_shared
@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_as_xla_converts(path: Path) -> None:
    program = path.read_text()
    ours = print_module(convert_to_hlo(parse_module(program)), PrintOptions(large_constants=True))
    ours = re.sub(r", metadata=\{[^}]*\}", "", ours)
    theirs = by_xla(program)
    if ours.strip() == theirs.strip():
        return
    assert canonical(ours) == canonical(theirs)


@needs_shared
@pytest.mark.oracle
def test_metadata_and_stack_frames() -> None:
    from jaxlib import _hlo, _jax

    path = CORPUS / "programs" / "fusion_chain" / "fusion_chain.loc.stablehlo.mlir"
    proto = _jax.mlir.mlir_module_to_xla_computation(
        path.read_text(), False, False
    ).as_serialized_hlo_module_proto()
    theirs = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string()
    assert "stack_frame_id=2" in theirs
    assert mlirhlo.load(path).as_text() == theirs


@cache
def manifest() -> dict[str, Any]:
    found = json.loads((CORPUS / "MANIFEST.json").read_text())
    programs = found["programs"]
    rows = programs if isinstance(programs, dict) else {p["name"]: p for p in programs}
    return {"default": found["default_tolerance"], **rows}


RUNNABLE = [
    path
    for path in PROGRAMS
    if ".loc." not in path.name
    and (path.parent / f"{path.parent.name}.npz").exists()
    and not path.name.startswith("pallas_")
]


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("path", sample(RUNNABLE, 4), ids=name_of)
def test_gives_the_recorded_outputs(path: Path) -> None:
    arrays = np.load(path.parent / f"{path.parent.name}.npz")
    meta = json.loads(str(arrays["meta"]))

    def read(key: str) -> list[Any]:
        return [decoded(arrays[f"{key}{i}"], m["dtype"]) for i, m in enumerate(meta[key])]

    module = mlirhlo.load(path)
    assert module.stablehlo is not None
    with np.errstate(all="ignore"):
        found = flat(module(*read("in")))
    wanted = read("out")
    assert len(found) == len(wanted)
    row = manifest().get(path.parent.name, {})
    factor = row.get("tolerance", {}).get("factor", 1.0)
    for got, want, spec in zip(found, wanted, meta["out"], strict=True):
        tolerance = manifest()["default"].get(spec["dtype"])
        if tolerance is None:
            assert np.array_equal(np.asarray(got).astype(want.dtype), want)
            continue
        scale = factor if not isinstance(factor, dict) else factor.get(spec["dtype"], 1.0)
        close(np.asarray(got), want, tolerance, float(scale))


def decoded(array: Any, name: str) -> Any:
    """An array as the archive has it, in its own type: bits of narrow floats, values of s4."""
    dtype = PRIMITIVE_TYPES[name].dtype
    if array.dtype == dtype:
        return array
    return array.astype(dtype) if name[0] in "su" else array.view(dtype)


def flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def close(got: Any, want: Any, tolerance: dict[str, float], factor: float) -> None:
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    assert a.shape == b.shape
    assert np.array_equal(np.isnan(a), np.isnan(b))
    finite = np.isfinite(b)
    if not finite.any():
        return
    limit = factor * (
        tolerance["atol_of_max"] * np.abs(b[finite]).max() + tolerance["rtol"] * np.abs(b[finite])
    )
    assert (np.abs(a[finite] - b[finite]) <= limit).all()
