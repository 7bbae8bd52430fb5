"""No pass recurs with the depth of a program: few frames of Python are enough for all of them."""

from __future__ import annotations

import pytest
from program_shapes import SHAPES
from support import frames
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import list_passes

PASSES = [name for name in list_passes(loaded=False) if name != "hlo-legalize-to-stablehlo"]
"""But the one that makes regions of what is called, and refuses what would nest too deep (HLO0033)."""
OF_STABLEHLO = [name for name in PASSES if name.startswith("stablehlo-")]
OF_STABLEHLO.remove("stablehlo-refine-arguments")  # which wants to be told of them
OF_HLO = [name for name in PASSES if "hlo-" not in name or name.startswith("hlo-")]
OF_HLO += ["sharding-propagation{num_partitions=2}", "spmd-partitioning{num_partitions=2}"]
NESTS = [f"nested_{name}" for name in ("whiles", "fusions", "reducers")]
FRAMES = 100


def run(module: ModuleOp, passes: list[str], count: int) -> None:
    """Each pass on a copy."""
    for name in passes:
        copy = module.clone() if passes is OF_STABLEHLO else clone_module(module)
        with frames(count):
            run_pipeline(copy, parse_pipeline(name))


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", NESTS)
def test_passes_on_programs_deeper_than_their_stack(form: str) -> None:
    run(parse_module(SHAPES[form](30)), OF_HLO, 900)  # imports nest too
    run(parse_module(SHAPES[form](640)), OF_HLO, FRAMES)  # 80 loops, 213 fusions


@pytest.mark.slow
def test_passes_of_stablehlo_on_functions_deeper_than_their_stack() -> None:
    module = convert_to_stablehlo(parse_module(SHAPES["nested_calls"](1200)))
    run(module, OF_STABLEHLO, 350)
