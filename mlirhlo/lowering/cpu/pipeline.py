"""The HLO passes of the CPU compiler: what stands between a module and its plan.

    calls inlined, fusions taken apart, TPU kernels written out ──► simplified
        ──► fused for this compiler's kernels

A module that another compiler optimised is fused anew: which instructions share a kernel is a
question of the kernels there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.lowering.plan import passes as planned
from mlirhlo.lowering.plan.passes import rules_that_keep_values
from mlirhlo.mosaic.kernel_expander import MosaicKernelExpanderPass
from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass
from mlirhlo.rewrites.control_flow.call_inliner import CallInlinerPass
from mlirhlo.rewrites.control_flow.defuser import DefuserPass
from mlirhlo.rewrites.control_flow.while_loop_invariant_code_motion import (
    WhileLoopInvariantCodeMotionPass,
)
from mlirhlo.rewrites.control_flow.while_loop_operand_packing import WhileLoopOperandPackingPass
from mlirhlo.rewrites.control_flow.while_loop_trip_count_annotator import (
    WhileLoopTripCountAnnotatorPass,
)
from mlirhlo.rewrites.control_flow.while_loop_unroller import WhileLoopUnrollerPass
from mlirhlo.rewrites.dynamic_padder import DynamicPadderPass
from mlirhlo.rewrites.fusion import FusionPass
from mlirhlo.rewrites.gpu_libraries.library_call_expander import LibraryCallExpanderPass
from mlirhlo.rewrites.layout.convolution_features_last import ConvolutionFeaturesLastPass
from mlirhlo.rewrites.legalize.batchnorm_expander import BatchNormExpanderPass
from mlirhlo.rewrites.legalize.custom_call_expander import CustomCallExpanderPass
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import Instrumentation
from mlirhlo.rewrites.precision.declared_types import DeclaredTypesPass
from mlirhlo.rewrites.reductions.reduce_in_blocks import ReduceInBlocksPass
from mlirhlo.rewrites.simplify.constant_folding import ConstantFoldingPass
from mlirhlo.rewrites.simplify.cse import CsePass
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass

NAME = "cpu"

_FOLDED = 4
"""Elements of all operands of what is known before it runs: scalars, such as a divisor that is no zero."""


_LEAST_SAVED = 1000
"""Nanoseconds of a round that are worth memory for what is computed in front of the loop."""


@functools.lru_cache(maxsize=1024)
def passes(*, has_layouts: bool = False) -> tuple[HloPass, ...]:
    """The passes in order. `has_layouts`: whether the order of dimensions in memory was chosen."""
    rules = rules_that_keep_values()
    return (
        CallInlinerPass(),
        DefuserPass(),
        LibraryCallExpanderPass(),
        MosaicKernelExpanderPass(),
        DeclaredTypesPass(),
        BatchNormExpanderPass(),
        DynamicPadderPass(checks=True),
        CustomCallExpanderPass(),
        TupleSimplifierPass(),
        WhileLoopUnrollerPass(),
        TupleSimplifierPass(),
        ConstantFoldingPass(largest=_FOLDED),
        ConvolutionFeaturesLastPass(),
        AlgebraicSimplifierPass(only=rules, executing_on_cpu=True, is_layout_sensitive=has_layouts),
        CsePass(is_layout_sensitive=True),
        DcePass(),
        WhileLoopInvariantCodeMotionPass(least_saved=_LEAST_SAVED),
        ReduceInBlocksPass(),
        WhileLoopOperandPackingPass(),
        WhileLoopTripCountAnnotatorPass(),
        FusionPass(multi_output=True, operands=True),
    )


def optimize(
    module: ModuleOp,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
) -> ModuleOp:
    """A copy of an HLO module as it is planned: simplified and fused.

    `wanted` says by name which passes run, `trace` is told what happens.
    """
    return planned.optimize(module, NAME, passes, watchers, wanted, trace)


def optimize_in_place(
    module: ModuleOp,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
) -> None:
    """What `optimize` does, to the module itself."""
    planned.optimize_in_place(module, NAME, passes, watchers, wanted, trace)
