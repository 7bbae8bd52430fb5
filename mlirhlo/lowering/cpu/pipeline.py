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

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.mosaic.kernel_expander import MosaicKernelExpanderPass
from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass
from mlirhlo.rewrites.batchnorm_expander import BatchNormExpanderPass
from mlirhlo.rewrites.call_inliner import CallInlinerPass
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.constant_folding import ConstantFoldingPass
from mlirhlo.rewrites.convolution_features_last import ConvolutionFeaturesLastPass
from mlirhlo.rewrites.cse import CsePass
from mlirhlo.rewrites.custom_call_expander import CustomCallExpanderPass
from mlirhlo.rewrites.dce import DcePass
from mlirhlo.rewrites.declared_types import DeclaredTypesPass
from mlirhlo.rewrites.default_layouts import DefaultLayoutsPass
from mlirhlo.rewrites.defuser import DefuserPass
from mlirhlo.rewrites.dynamic_padder import DynamicPadderPass
from mlirhlo.rewrites.fusion import FusionPass
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import Instrumentation, run_pipeline
from mlirhlo.rewrites.tuple_simplifier import TupleSimplifierPass
from mlirhlo.rewrites.while_loop_operand_packing import WhileLoopOperandPackingPass
from mlirhlo.rewrites.while_loop_trip_count_annotator import WhileLoopTripCountAnnotatorPass
from mlirhlo.rewrites.while_loop_unroller import WhileLoopUnrollerPass

NAME = "cpu"

_KEEPS_VALUES = frozenset(
    {
        "divide_by_one",
        "dot_with_dimensions_of_one",
        "multiply_one",
        "power_two",
        "reduce_of_reshape",
        "reduce_of_same_count",
        "reduce_of_transpose",
        "reduce_window_of_pad",
        "reduce_window_that_broadcasts",
    }
)
"""Rules of `algsimp` that are not exact in general and yet wanted: the order of a sum is the
kernel's own, x * x is the nearest to pow(x, 2)."""


_FOLDED = 4
"""Elements of all operands of what is known before it runs: scalars, such as a divisor that is no zero."""


@functools.cache
def passes(*, has_layouts: bool = False) -> tuple[HloPass, ...]:
    """The passes in order. `has_layouts`: whether the order of dimensions in memory was chosen."""
    rules = tuple(
        rule.name
        for rule in AlgebraicSimplifierPass.rules
        if rule.contract == "exact" or rule.name in _KEEPS_VALUES
    )
    return (
        CallInlinerPass(),
        DefuserPass(),
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
        WhileLoopOperandPackingPass(),
        WhileLoopTripCountAnnotatorPass(),
        FusionPass(multi_output=True),
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
    copy = clone_module(module)
    optimize_in_place(copy, watchers, wanted, trace)
    return copy


def optimize_in_place(
    module: ModuleOp,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
) -> None:
    """What `optimize` does, to the module itself."""
    DefaultLayoutsPass().run(HloModule(module), Trace())
    chosen = passes(has_layouts=has_layouts(HloModule(module)))
    run_pipeline(module, [p for p in chosen if wanted(p.name)], watchers, name=NAME, trace=trace)


def has_layouts(module: HloModule) -> bool:
    """Whether any array has its dimensions in another order than the default."""
    types = {id(op.output.type): op.output.type for op in module.instructions}.values()
    return any(
        leaf.layout is not None and leaf.layout.minor_to_major != tuple(range(leaf.rank))[::-1]
        for type_ in types
        for _, leaf in leaves(shape_of(type_))
        if isinstance(leaf, ArrayShape)
    )
