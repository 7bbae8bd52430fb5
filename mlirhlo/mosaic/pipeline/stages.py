"""The pipeline of a kernel: the TPU compiler's stages by their names, each on our IR.

`run_pipeline` takes a module from its original form to scheduled register code. After each stage the
module is verified, may be dumped, printed, and read back as the input of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnitAttr

from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.dialects.tpu.attributes import CoreTypeAttr
from mlirhlo.mosaic.pipeline.building import functions_of
from mlirhlo.mosaic.pipeline.canonical import (
    canonicalize_mosaic,
    canonicalize_operations,
    pre_canon_optimization,
)
from mlirhlo.mosaic.pipeline.devices import logical_to_physical_device_id
from mlirhlo.mosaic.pipeline.memory_spaces import (
    canonicalize_memory_space,
    specialize_any_memory_space,
)
from mlirhlo.mosaic.pipeline.memref_layout import infer_memref_layout
from mlirhlo.mosaic.pipeline.registers import apply_vector_layout
from mlirhlo.mosaic.pipeline.schedule import schedule
from mlirhlo.mosaic.pipeline.simplify import simplify
from mlirhlo.mosaic.pipeline.tiling import tiling_propagation
from mlirhlo.mosaic.pipeline.vector_layout import infer_vector_layout, relayout_insertion
from mlirhlo.mosaic.target.generations import generation_of
from mlirhlo.mosaic.target.structure import entry_of
from mlirhlo.mosaic.verifier import verify_kernel

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.mosaic.target.generations import Generation


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline."""

    name: str
    """As in the names of dumps, without `post-`."""
    apply: Callable[[ModuleOp, Generation], None]

    @property
    def number(self) -> int:
        """Its place in the names of dumps; the original is 1."""
        return STAGES.index(self) + 2


def _unchanged(module: ModuleOp) -> None:
    """A stage of the TPU compiler that has nothing to do on our IR."""


def _anywhere(apply: Callable[[ModuleOp], None]) -> Callable[[ModuleOp, Generation], None]:
    """A stage that does the same for every generation."""

    def run(module: ModuleOp, generation: Generation) -> None:
        apply(module)

    return run


STAGES: Sequence[Stage] = (
    Stage("specialize-any-memory-space", _anywhere(specialize_any_memory_space)),
    Stage("canonicalize-memory-space", _anywhere(canonicalize_memory_space)),
    Stage("infer-memref-layout", _anywhere(infer_memref_layout)),
    Stage("infer-memref-layout-simplify", _anywhere(simplify)),
    Stage("canonicalize-operations", _anywhere(canonicalize_operations)),
    Stage("pre-canon-optimization", _anywhere(pre_canon_optimization)),
    Stage("canonicalize-mosaic", canonicalize_mosaic),
    Stage("post-canon-optimization", _anywhere(_unchanged)),
    Stage("canonicalize-mosaic-2", canonicalize_mosaic),
    Stage("canonicalize-mosaic-simplify", _anywhere(simplify)),
    Stage("tiling-propagation", _anywhere(tiling_propagation)),
    Stage("infer-vector-layout", infer_vector_layout),
    Stage("relayout-insertion", _anywhere(relayout_insertion)),
    Stage("apply-vector-layout", apply_vector_layout),
    Stage("apply-vector-layout-simplify", _anywhere(simplify)),
    Stage("logical-to-physical-device-id", _anywhere(logical_to_physical_device_id)),
    Stage("late-loop-unroll", _anywhere(_unchanged)),
    Stage("schedule", _anywhere(schedule)),
)
"""All stages, in order. The last is ours, in the place of the compiler's own dialect."""

Observer = Callable[["ModuleOp", str, int], None]
"""Called with the module, the stage's name (`original`, `post-NAME`, `post-NAME-failed`), a number."""


def stage_named(name: str) -> Stage:
    """The stage of that name; `post-` and `-failed` do not count. Raises HLO0750 for others."""
    plain = name.removeprefix("post-") if name != "post-canon-optimization" else name
    for stage in STAGES:
        if stage.name in (name, plain):
            return stage
    from difflib import get_close_matches

    near = get_close_matches(plain, [stage.name for stage in STAGES], 1)
    raise error(
        "HLO0750",
        f"there is no stage '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""),
        help="mosaic-opt --list-stages shows all",
    )


def prepare(module: ModuleOp) -> None:
    """The original form: every function says its core, and the kernel that it is the one."""
    kernel = entry_of(module)
    for function in functions_of(module):
        function.attributes.setdefault("tpu.core_type", CoreTypeAttr("tc"))
    if kernel is not None:
        kernel.attributes.setdefault("tpu.main", UnitAttr())


def run_pipeline(
    module: ModuleOp,
    *,
    start_after: str | None = None,
    stop_after: str | None = None,
    observe: Observer | None = None,
    generation: str = "v5e",
) -> None:
    """Runs the stages on a module, in place, as for a generation of TPUs.

    `start_after` is the stage the module comes from; `stop_after` the last one to run (`original`
    runs none). `observe` sees the original and each stage's output, and where a stage fails the
    module as it stood.

    Raises `HloError` HLO0750 for unknown stages, HLO0749 for unknown generations, HLO0751 where a
    stage cannot go on.
    """
    target = generation_of(generation)
    stages = list(STAGES)
    if start_after not in (None, "original"):
        stages = stages[STAGES.index(stage_named(start_after or "")) + 1 :]
    if stop_after == "original":
        stages = []
    elif stop_after is not None:
        last = STAGES.index(stage_named(stop_after))
        stages = [stage for stage in stages if STAGES.index(stage) <= last]
    if start_after is None:
        prepare(module)
        if observe is not None:
            observe(module, "original", 1)
    for stage in stages:
        try:
            stage.apply(module, target)
            verify(module, stage)
        except HloError as problem:
            if observe is not None:
                observe(module, f"post-{stage.name}-failed", stage.number)
            raise _at(problem, stage) from None
        if observe is not None:
            observe(module, f"post-{stage.name}", stage.number)


def verify(module: ModuleOp, stage: Stage) -> None:
    """Raises `HloError` HLO0751 where a stage left a module that is none."""
    from xdsl.utils.exceptions import VerifyException

    try:
        for op in module.walk():
            for operand in op.operands:
                if operand.first_use is None:
                    raise VerifyException(f"{op.name} uses what is gone")
    except VerifyException as problem:
        raise error("HLO0751", f"{stage.name} left a broken module: {problem}") from None
    verify_kernel(module)


def _at(problem: HloError, stage: Stage) -> HloError:
    first: Diagnostic = problem.diagnostics[0]
    if first.code == "HLO0751":
        return problem
    return HloError(
        replace(first, message=f"in stage {stage.name}: {first.message}"),
        *problem.diagnostics[1:],
    )
