"""The HLO passes of the GPU compiler: what stands between a module and its kernels.

    calls inlined, fusions taken apart, calls of libraries written out ──► simplified
        ──► fused for this compiler's kernels

A module that XLA:GPU optimised is fused anew, as on the CPU: which instructions share a kernel is a question
of the kernels there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, name_or_description
from mlirhlo.lowering.gpu.fusion import GpuFusionPass
from mlirhlo.lowering.plan import passes as planned
from mlirhlo.lowering.plan.passes import rules_that_keep_values
from mlirhlo.mosaic.kernel_expander import MosaicKernelExpanderPass
from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass
from mlirhlo.rewrites.control_flow.call_inliner import CallInlinerPass
from mlirhlo.rewrites.control_flow.defuser import DefuserPass
from mlirhlo.rewrites.control_flow.while_loop_trip_count_annotator import (
    WhileLoopTripCountAnnotatorPass,
)
from mlirhlo.rewrites.dynamic_padder import DynamicPadderPass
from mlirhlo.rewrites.fusion import FusionPass
from mlirhlo.rewrites.gpu_libraries.library_call_expander import LibraryCallExpanderPass
from mlirhlo.rewrites.legalize.batchnorm_expander import BatchNormExpanderPass
from mlirhlo.rewrites.legalize.custom_call_expander import CustomCallExpanderPass
from mlirhlo.rewrites.legalize.fft_expander import FftExpanderPass
from mlirhlo.rewrites.linear_algebra.eigh_expander import EighExpanderPass
from mlirhlo.rewrites.linear_algebra.lapack_expander import LapackExpanderPass
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import Instrumentation
from mlirhlo.rewrites.precision.declared_types import DeclaredTypesPass
from mlirhlo.rewrites.simplify.constant_folding import ConstantFoldingPass
from mlirhlo.rewrites.simplify.cse import CsePass
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.reshape_mover import ReshapeMoverPass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass

NAME = "gpu"

_FOLDED = 4
"""Elements of all operands of what is known before it runs."""


@functools.lru_cache(maxsize=1024)
def passes(*, has_layouts: bool = False, gpu: str = DEFAULT) -> tuple[HloPass, ...]:
    """The passes in order. `has_layouts`: whether the order of dimensions in memory was chosen; `gpu`: the device,
    as `gpu-fusion` takes it."""
    return (
        CallInlinerPass(),
        DefuserPass(),
        LibraryCallExpanderPass(),
        MosaicKernelExpanderPass(),
        DeclaredTypesPass(),
        BatchNormExpanderPass(),
        DynamicPadderPass(),
        CustomCallExpanderPass(),
        LapackExpanderPass(),
        EighExpanderPass(),
        FftExpanderPass(),
        CallInlinerPass(),
        TupleSimplifierPass(),
        ConstantFoldingPass(largest=_FOLDED),
        # Else values of `keepdims` have other dimensions than the rows that they belong to.
        *(() if has_layouts else (ReshapeMoverPass(),)),
        AlgebraicSimplifierPass(only=rules_that_keep_values(), is_layout_sensitive=has_layouts),
        CsePass(is_layout_sensitive=True),
        DcePass(),
        WhileLoopTripCountAnnotatorPass(),
        FusionPass(multi_output=True, operands=True),
        GpuFusionPass(gpu=gpu),
    )


def optimize(
    module: ModuleOp,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
    device: GpuDevice | None = None,
) -> ModuleOp:
    """A copy of an HLO module as it is planned for a GPU: simplified and fused.

    `wanted` says by name which passes run, `trace` is told what happens, `device` is what it is fused for.
    """
    return planned.optimize(module, NAME, _passes_for(device), watchers, wanted, trace)


def optimize_in_place(
    module: ModuleOp,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    device: GpuDevice | None = None,
) -> None:
    """What `optimize` does, to the module itself."""
    planned.optimize_in_place(module, NAME, _passes_for(device), watchers, wanted)


def _passes_for(device: GpuDevice | None) -> planned.Passes:
    return functools.partial(passes, gpu=DEFAULT if device is None else name_or_description(device))
