"""Every pass leaves every program of the corpus computing the same.

Bit for bit; passes that say they round otherwise are held to closeness.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import CORPUS, DATA, needs_shared, sample
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.passes import HloPass
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of
from mlirhlo.rewrites.registry import list_passes

PASSES = (
    *(
        name
        for name, info in list_passes(loaded=False).items()
        if issubclass(info.factory(), HloPass)
    ),
    "fusion{moves=true}",
    "priority-fusion{moves=true}",
)
"""Passes from HLO to HLO, and those whose options make others of them."""
LONG = PrintOptions(large_constants=True)
CANNOT_RUN = {"HLO0301", "HLO0350", "HLO0352"}
"""Constants left out of the text, unknown custom calls, empty host queues."""
TOGETHER = "flatten-call-graph,call-inliner,tuple-simplifier,cse,hlo-module-dce,dce"


def recorded_inputs(path: Path) -> list[object]:
    """The inputs the corpus has for a program: made-up ones may keep a loop going for ever."""
    sys.path.insert(0, str(CORPUS / "gen"))
    import corpuslib  # pyright: ignore[reportMissingImports]

    inputs: list[object] = corpuslib.load_npz(str(path.parent / f"{path.parent.name}.npz"))[
        "inputs"
    ]
    return inputs


def programs(*variants: str) -> Iterator[Path]:
    """Programs of the corpus with recorded inputs: `hlo` unoptimised, `cpu_after_opt` by XLA:CPU."""
    if not CORPUS.is_dir():
        return
    manifest = json.loads((CORPUS / "MANIFEST.json").read_text())
    for entry in manifest["programs"]:
        if "pallas" in entry["features"] or "npz" not in entry["files"] or entry["devices"] != 1:
            continue
        for variant in variants:
            if variant in entry["files"] and entry["files"][variant].endswith(".hlo"):
                yield CORPUS / entry["files"][variant]


def outputs(module: object, arguments: list[object]) -> list[Any]:
    return [np.asarray(a) for a in run_module(module, arguments)]  # type: ignore[arg-type]


def the_same(pipeline: str, before: list[Any], after: list[Any], eps: float) -> bool:
    """Whether all bits stayed or, after a pass that rounds otherwise, the values but for rounding.

    `eps`: of the narrowest floats of the module, at the least that of each result.
    """
    exact = all(getattr(pass_, "exact", True) for pass_ in parse_pipeline(pipeline))
    return len(before) == len(after) and all(
        (a.dtype, a.shape) == (b.dtype, b.shape)
        and (a.tobytes() == b.tobytes() or (not exact and _close(a, b, eps)))
        for a, b in zip(before, after, strict=True)
    )


def narrowest(module: ModuleOp) -> float:
    """The unit in the last place of 1 in the narrowest floats that the module computes in."""
    import ml_dtypes

    floats = {
        shape.element_type.real
        for op in HloModule(module).instructions
        for _, shape in leaves(op.shape)
        if isinstance(shape, ArrayShape)
        and (shape.element_type.is_float or shape.element_type.is_complex)
    }
    return max((float(ml_dtypes.finfo(t.dtype).eps) for t in floats if t.bits >= 16), default=0.0)


def _close(a: Any, b: Any, least: float = 0.0) -> bool:
    if a.dtype.kind in "iub":
        return False
    if a.dtype.kind == "c":
        return _close(a.real, b.real, least) and _close(a.imag, b.imag, least)
    import ml_dtypes

    eps = max(least, float(ml_dtypes.finfo(a.dtype).eps))
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.abs(x[np.isfinite(x)]).max(initial=1.0)
        bound = eps * (256 * scale + 1024 * np.abs(x))
        return bool(((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= bound)).all())


def reorder(module: ModuleOp, seed: int) -> None:
    """Puts the instructions of unscheduled computations into another order that definitions before uses allow."""
    choose = random.Random(seed)
    if HloModule(module).is_scheduled:
        return
    for computation in HloModule(module).computations:
        block = computation.body.block
        end = block.last_op
        waiting = {op: len({v.owner for v in op.operands}) for op in block.ops if op is not end}
        ready = [op for op, count in waiting.items() if not count]
        while ready:
            op = ready.pop(choose.randrange(len(ready)))
            op.detach()
            assert end is not None
            block.insert_op_before(op, end)
            for user in {use.operation for use in op.results[0].uses} - {end}:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)


def check(path: Path, pipelines: Sequence[str], arguments: list[object]) -> None:
    """As `check_text`, of a file."""
    check_text(path.read_text(), path.name, pipelines, arguments)


def check_text(text: str, name: str, pipelines: Sequence[str], arguments: list[object]) -> None:
    """Each pipeline alone, on a copy of the module: what it leaves is valid, and computes the same; and it says
    whether it changed anything.

    The program runs once, and after each pipeline that changed it, also as its text says it. Its instructions
    stand in an order by chance.
    """
    module = parse_module(text, name)
    reorder(module, len(text))
    assert verify_module(module) == []
    original = print_module(module, LONG)
    before: list[Any] | None = None
    eps = narrowest(module)
    unchanged: ModuleOp | None = None
    for pipeline in pipelines:
        changed = unchanged or clone_module(module)
        says_so = run_pipeline(changed, parse_pipeline(pipeline)).changed
        printed = print_module(changed, LONG)
        if pipeline in PASSES:
            assert says_so is (printed != original), pipeline
        if printed == original:
            unchanged = changed
            continue  # what is the same computes the same
        unchanged = None
        assert verify_module(changed) == [], pipeline
        if before is None:
            try:
                before = outputs(module, arguments)
            except HloError as problem:
                if problem.code not in CANNOT_RUN:
                    raise
                pytest.skip(f"does not run here: {problem.code}")
        assert the_same(pipeline, before, outputs(changed, arguments), eps), pipeline
        again = parse_module(printed, name)
        assert print_module(again, LONG) == printed, pipeline
        assert the_same(pipeline, before, outputs(again, arguments), eps), f"{pipeline}, printed"


@pytest.mark.one_case_in(3)
@needs_shared
@pytest.mark.parametrize(
    "path", list(programs("cpu_after_opt")), ids=lambda p: p.name.removesuffix(".hlo")
)
def test_the_passes_together(path: Path) -> None:
    check(path, (TOGETHER,), recorded_inputs(path))


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sample(programs("hlo"), 8), ids=lambda p: p.name.removesuffix(".hlo")
)
def test_each_pass(path: Path) -> None:
    check(path, (*PASSES, TOGETHER), recorded_inputs(path))


@pytest.mark.parametrize(
    "path", sample(sorted(DATA.glob("programs/*/*.hlo")), 3), ids=lambda p: p.name
)
def test_the_programs_of_the_repository(path: Path) -> None:
    if "spmd" not in path.name:
        arguments = list(make_fake_arguments(parse_module(path.read_text()), 7))
        check(path, (*PASSES, TOGETHER), arguments)


FINISHED = list(programs("hlo"))[::9]
"""A sample of the programs."""


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
@pytest.mark.parametrize("path", sample(FINISHED, 4), ids=lambda p: p.name.removesuffix(".hlo"))
def test_passes_say_whether_they_change_a_finished_module(path: Path, platform: str) -> None:
    module = parse_module(path.read_text(), path.name)
    for _ in range(2):
        run_pipeline(module, pipelines_of(platform))
    before = print_module(module, LONG)
    copy = clone_module(module)
    for name in PASSES:
        changed = run_pipeline(copy, parse_pipeline(name)).changed
        differs = print_module(copy, LONG) != before
        assert changed is differs, name
        if changed:
            copy = clone_module(module)


CONSTANT_FIRST = """
less { q = (f32[], f32[], s32[]) parameter(0) j = s32[] get-tuple-element(q), index=2
  three = s32[] constant(3) ROOT more = pred[] compare(j, three), direction=LT }
body { c = f32[] constant(2) one = s32[] constant(1) p = (f32[], f32[], s32[]) parameter(0)
  a = f32[] get-tuple-element(p), index=0 b = f32[] get-tuple-element(p), index=1
  i = s32[] get-tuple-element(p), index=2 n = s32[] add(i, one)
  m = f32[] multiply(b, c) s = f32[] add(a, c) t = f32[] add(s, m)
  ROOT r = (f32[], f32[], s32[]) tuple(t, b, n) }
ENTRY e { x = f32[] parameter(0) y = f32[] parameter(1) zero = s32[] constant(0)
  start = (f32[], f32[], s32[]) tuple(x, y, zero)
  ROOT w = (f32[], f32[], s32[]) while(start), condition=less, body=body }
"""


@pytest.mark.parametrize("seed", sample(range(8), 4))
def test_loops_whose_constants_stand_before_their_parameter(seed: int) -> None:
    arguments: list[object] = [np.float32(1), np.float32(3)]
    check_text(CONSTANT_FIRST + " " * seed, "loop", PASSES, arguments)
