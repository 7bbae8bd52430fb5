"""`--passes` at every stage: each pass runs on the module of the stage, or is refused with a code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import one_in, sampled

from mlirhlo.cli.opt import stages
from mlirhlo.cli.opt.stage_passes import passes_at
from mlirhlo.cli.report import UsageError
from mlirhlo.rewrites.registry import list_lowered_passes, list_passes

from .conftest import Ran

Tool = Callable[..., Ran]

PROGRAM = """HloModule m

ENTRY e {
  x = f32[64] parameter(0)
  a = f32[64] abs(x)
  ROOT r = f32[64] add(a, x)
}
"""
ACCEPTED = {
    "hlo": {"HLO", "structured"},
    "fused": {"HLO"},
    "structured": {"structured", "xDSL"},
    "scheduled": {"structured", "xDSL"},
    "loops": {"xDSL"},
    "llvm-dialect": {"xDSL"},
    "gpu": {"xDSL"},
    "nvvm": {"xDSL"},
}
"""Whose passes run at a stage; files at the stage `hlo` may hold structured kernels."""


def _kind(name: str, stage: str) -> str:
    """Whose pass a name means at a stage."""
    is_own = name in list_passes() and (stage in ("hlo", "fused") or name not in XDSL)
    if not is_own:
        return "xDSL"
    module = list_passes()[name].factory().__module__
    return "structured" if module.startswith(KERNEL_PASSES) else "HLO"


XDSL = list_lowered_passes()
KERNEL_PASSES = (
    "mlirhlo.lowering.schedule",
    "mlirhlo.lowering.structured",
    "mlirhlo.lowering.loops",
)
NAMES = sorted({*XDSL, *list_passes()})


def test_every_stage_is_known() -> None:
    every = {s for platform in ("cpu", "gpu") for s in stages.stages_of(platform)}
    assert set(ACCEPTED) == every - {"llvm", "llvm-opt", "asm", "obj", "ptx", "sass"}


@pytest.mark.slow
@sampled(10)
@pytest.mark.parametrize("stage", ACCEPTED)
def test_a_pass_is_taken_or_refused(stage: str, every: int) -> None:
    for name in one_in(every, NAMES):
        try:
            passes = passes_at(stage, name)
        except UsageError as problem:
            code = problem.diagnostics[0].code
            is_refused = _kind(name, stage) not in ACCEPTED[stage]
            assert code == "HLO0402" or (code == "HLO0418" and is_refused), name  # options it needs
        else:
            assert len(passes) == 1
            assert _kind(name, stage) in ACCEPTED[stage], name


@pytest.mark.parametrize("stage", ["llvm", "llvm-opt", "asm", "obj", "ptx", "sass"])
def test_text_and_code_have_no_passes(stage: str) -> None:
    with pytest.raises(UsageError) as caught:
        passes_at(stage, "cse")
    assert caught.value.diagnostics[0].code == "HLO0418"


@pytest.mark.parametrize(
    ("platform", "stage", "passes"),
    [
        ("cpu", "hlo", "dce,algsimp"),
        ("cpu", "fused", "cse,dce"),
        ("cpu", "structured", "canonicalize,cse,dce,licm,structured-merge-maps"),
        ("cpu", "loops", "canonicalize,cse,dce,licm"),
        ("cpu", "llvm-dialect", "canonicalize,cse,dce"),
        ("gpu", "structured", "cse,gpu-map-to-grid"),
        ("gpu", "scheduled", "gpu-vectorize,dce"),
        ("gpu", "gpu", "canonicalize,cse,dce"),
        ("gpu", "nvvm", "canonicalize,cse,dce"),
    ],
)
def test_passes_run(platform: str, stage: str, passes: str, tool: Tool) -> None:
    arguments = [f"--platform={platform}", f"--stage={stage}", f"--passes={passes}", "-"]
    ran = tool("hlo_opt", *arguments, "--mlir-print-ir-after-all", stdin=PROGRAM)
    assert ran.code == 0, ran.err
    dumps = [line.split()[5] for line in ran.err.splitlines() if "IR Dump After" in line]
    names = passes.split(",")
    assert [name for name in dumps if name in names][-len(names) :] == names


def test_formats_of_hlo_are_refused_below_it(tool: Tool) -> None:
    ran = tool("hlo_opt", "--platform=cpu", "--stage=loops", "--emit=proto", "-", stdin=PROGRAM)
    assert ran.code == 2
    assert "HLO0502" in ran.err
