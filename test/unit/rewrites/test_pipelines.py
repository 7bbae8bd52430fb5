"""The pipelines of the platforms: names as XLA's, results kept, watchers told of every level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from support import DATA, needs_shared, sample
from unit.rewrites.test_passes_keep_meaning import (
    CANNOT_RUN,
    _close,
    narrowest,
    outputs,
    programs,
    recorded_inputs,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule, Listing
from mlirhlo.dialects.hlo.ops import ConstantOp, NegateOp, ParameterOp
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import PipelinePass, parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of

PLATFORMS = ("cpu", "gpu", "tpu")


class Watcher:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        self.told.append(f"{pipeline}: {','.join(p.name for p in passes)}")

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        self.told.append(f"before {pass_.name}")

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        self.told.append(f"after {pass_.name} {changed}")


TEXT = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  z = f32[4] broadcast(zero), dimensions={}
  n = f32[4] negate(x)
  a = f32[4] negate(n)
  ROOT s = f32[4] subtract(a, z)
}
"""


def test_a_pipeline_in_a_pipeline_is_a_pass_and_runs_until_nothing_changes() -> None:
    inner = PipelinePass("inner", parse_pipeline("algsimp,dce"), fix_point=True)
    watcher = Watcher()
    result = run_pipeline(parse_module(TEXT), [inner], [watcher], name="outer")
    assert result.changed
    assert watcher.told[:4] == [
        "outer: inner",
        "before inner",
        "inner: algsimp,dce",
        "before algsimp",
    ]
    assert watcher.told.count("inner: algsimp,dce") == 2
    assert watcher.told[-1] == "after inner True"


@dataclass(frozen=True)
class Ask(HloPass):
    """Changes nothing, and remembers what it saw."""

    name = "ask"
    seen: ClassVar[list[tuple[Listing, int]]] = []

    def run(self, module: HloModule, trace: Trace) -> bool:
        self.seen.append((module.known(Listing.of), len(module.candidates(NegateOp))))
        return False


def test_what_is_known_of_a_module_is_kept_until_a_pass_changes_it() -> None:
    idle, changing = parse_pipeline("map-inline,algsimp")
    run_pipeline(parse_module(TEXT), [Ask(), idle, Ask(), changing, Ask()])
    (first, before), (second, _), (third, after) = Ask.seen
    assert first is second
    assert third is not first
    assert (before, after) == (2, 0)


def test_a_listing_finds_instructions_of_classes_in_their_order() -> None:
    module = HloModule(parse_module(TEXT), {})
    found = module.candidates(ConstantOp, NegateOp, ParameterOp)
    assert [op.instruction_name for op in found] == ["x", "zero", "n", "a"]
    assert found == module.instructions_of(ConstantOp, NegateOp, ParameterOp)
    assert module.known(Listing.of).instructions == [*module.instructions]


def check(path: Path, platform: str, arguments: list[object]) -> None:
    text = path.read_text()
    module, changed = parse_module(text, path.name), parse_module(text, path.name)
    run_pipeline(changed, pipelines_of(platform))
    assert verify_module(changed) == []
    try:
        before = outputs(module, arguments)
    except HloError as problem:
        if problem.code not in CANNOT_RUN:
            raise
        pytest.skip(f"does not run here: {problem.code}")
    after = outputs(changed, arguments)
    eps = narrowest(module)
    assert [(a.dtype, a.shape) for a in before] == [(a.dtype, a.shape) for a in after]
    for a, b in zip(before, after, strict=True):
        assert a.tobytes() == b.tobytes() or _close(a, b, eps)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "path",
    sample([p for p in sorted(DATA.glob("programs/*/*.hlo")) if "spmd" not in p.name], 3),
    ids=lambda p: p.name,
)
def test_the_programs_of_the_repository(path: Path, platform: str) -> None:
    check(path, platform, list(make_fake_arguments(parse_module(path.read_text()), 7)))


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "path", sample(programs("hlo"), 8), ids=lambda p: p.name.removesuffix(".hlo")
)
def test_the_programs_of_the_corpus(path: Path, platform: str) -> None:
    check(path, platform, recorded_inputs(path))


def test_an_unknown_platform_is_refused() -> None:
    with pytest.raises(HloError) as caught:
        pipelines_of("abacus")
    assert caught.value.code == "HLO0406"
