"""The pipelines of XLA's compilers, for the passes there are: their names, their order, their nesting.

`hlo-opt --platform=cpu --stage=hlo` runs one. Source: order observed in dumps of XLA:CPU, XLA:GPU and
XLA:TPU (reference of the passes, "Observed pipelines"); libraries and scheduling are questions of a target
and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.pipeline import (
    Instrumentation,
    PipelinePass,
    PipelineResult,
    parse_pipeline,
)
from mlirhlo.rewrites.spmd.partitions import partitions_of

_SIMPLIFICATION_CPU = (
    "algsimp{executing-on-cpu=true},simplify-sorts,dce,gather_expander{simple-only=true},"
    "gather_simplifier,tree_reduction_rewriter,zero_sized_hlo_elimination,while-loop-invariant-code-motion,tuple-simplifier,"
    "while-loop-constant-sinking,simplify-while-loops,dce,reshape-mover,constant_folding,"
    "simplify-conditional"
)
_SIMPLIFICATION_GPU = (
    "zero_sized_hlo_elimination,gather_simplifier,gather_expander{simple-only=true},"
    "scatter_simplifier,scatter_expander{simple-only=true},"
    "algsimp,simplify-sorts,tuple-simplifier,while-loop-constant-sinking,simplify-while-loops,"
    "slice-sinker,reshape-mover,constant_folding,simplify-conditional,transpose-folding,cse,dce"
)
_SIMPLIFICATION_TPU = (
    "zero_sized_hlo_elimination,algsimp,simplify-sorts,tuple-simplifier,while-loop-constant-sinking,"
    "simplify-while-loops,reshape-mover,constant_folding,simplify-conditional,cse,dce"
)
_LAID_OUT = "is-layout-sensitive=true"
"""Option of passes that run when layouts are assigned."""
_NORMALIZATION = "reshape-decomposer,layout_normalization"
_FACTORS = "cholesky_expander,qr_expander,eigh_expander"
_NARROW = (
    *("bf16", "f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"),
    *("f8e3m4", "s4", "u4", "f4e2m1fn", "f8e8m0fnu"),
)
_FLOATS = ",".join(f"float-normalization-{name}" for name in _NARROW)


def _named(name: str, *parts: str | PipelinePass, fix_point: bool = False) -> PipelinePass:
    passes = [
        pass_
        for part in parts
        for pass_ in ((part,) if isinstance(part, PipelinePass) else parse_pipeline(part))
    ]
    return PipelinePass(name, tuple(passes), fix_point)


class _PartitionedPass(PipelinePass):
    """A pipeline for modules of several partitions, or only for those of one."""

    def __init__(self, several: bool, name: str, *parts: str | PipelinePass) -> None:
        super().__init__(name, _named(name, *parts).passes)
        vars(self)["several"] = several

    def run_watched(
        self,
        module: ModuleOp,
        instrumentation: Sequence[Instrumentation],
        context: Context | None,
        result: PipelineResult,
    ) -> bool:
        """Runs the passes where the module is meant for them; whether anything changed."""
        if (partitions_of(HloModule(module), 0) > 1) is not vars(self)["several"]:
            return False
        return super().run_watched(module, instrumentation, context, result)


_CLEANUP = _named("spmd-cleanup", "dce,tuple-simplifier,dce,cse,call-inliner")


@cache
def cpu() -> tuple[PipelinePass, ...]:
    """XLA:CPU, up to copies."""
    return (
        _PartitionedPass(False, "sharding-removal", "flatten-call-graph,sharding-remover,dce"),
        _PartitionedPass(
            True,
            "spmd-partitioner",
            "flatten-call-graph,call-inliner,zero_sized_hlo_elimination",
            "shardy-xla,spmd-partitioning",
            _CLEANUP,
        ),
        _named(
            "HLO passes through layout assignment",
            "batched_gather_scatter_normalizer,result_caster,dot_decomposer,operand_upcaster",
            "rng-expander,rng-bit-generator-expander,zero_sized_hlo_elimination",
            "dynamic-index-splitter,conditional-to-select,map-inline",
            f"topk-decomposer,comparison-expander,{_FACTORS},triangular_solve_expander",
            "stochastic_convert_decomposer,call-inliner,batch-dot-simplification,dot_decomposer",
            f"all-reduce-promotion{{types=bf16}},{_FLOATS}",
            "batch-dot-simplification",
            "convolution-group-converter{convert-batch-groups-only=true}",
            "batchnorm_expander,logistic-expander,conditional-canonicalizer",
            "dynamic-dimension-simplifier,reduce-window-rewriter",
            "dynamic_padder,convolution-canonicalization",
            _named("simplification", _SIMPLIFICATION_CPU, fix_point=True),
            "select_and_scatter_expander,scatter_expander,scatter_simplifier",
            _named("post_scatter_expansion_simplification", _SIMPLIFICATION_CPU, fix_point=True),
            "bitcast_dtypes_expander,transpose-folding{dots-only=true},cse",
            "optimization_barrier_expander",
            "tuple-simplifier,while-loop-trip-count-annotator,flatten-call-graph",
            "layout-assignment{target=cpu}",
        ),
        _named("hlo normalization", "reduce-decomposer,broadcast_canonicalizer"),
        _named("dot-library-passes", "dot_decomposer"),
        _named(
            "HLO passes after layout assignment",
            "fusion,all-reduce-combiner,tuple-simplifier",
            _named(
                "simplification after layout assignment",
                f"algsimp{{{_LAID_OUT} executing-on-cpu=true}},dce,cse{{{_LAID_OUT}}}",
                fix_point=True,
            ),
            "cpu-parallel-task-assigner,dce,copy-insertion,dce",
        ),
    )


@cache
def gpu() -> tuple[PipelinePass, ...]:
    """XLA:GPU, up to copies."""
    return (
        _named(
            "pre-spmd-partitioner",
            "flatten-call-graph,call-inliner,zero_sized_hlo_elimination,conditional-canonicalizer",
        ),
        _PartitionedPass(False, "sharding-removal", "sharding-remover,dce"),
        _PartitionedPass(True, "spmd-partitioner", "shardy-xla,spmd-partitioning", _CLEANUP),
        _named(
            "optimization",
            "ragged_dot_rewriter,batched_gather_scatter_normalizer,topk-decomposer,dot_decomposer",
            "rng-expander,rng-bit-generator-expander,comparison-expander",
            f"zero_sized_hlo_elimination,select_and_scatter_expander,{_FACTORS}",
            "dynamic-index-splitter,call-inliner,stochastic_convert_decomposer",
            "convolution_4d_expander,convolution-pred-expander,batchnorm_expander,logistic-expander",
            "conditional-canonicalizer,dynamic-dimension-simplifier,reduce-window-rewriter",
            "dynamic_padder,stable-sort-expander",
            _named("simplification", _SIMPLIFICATION_GPU, fix_point=True),
            "dot-merger,transpose-folding",
            _named("simplification-2", "convert-mover,algsimp", fix_point=True),
        ),
        _named(
            "collective-optimizations",
            "all-reduce-simplifier,all-reduce-folder,all-gather-optimizer",
            "all-gather-dynamic-slice-simplifier,all-reduce-reassociate,reduce-scatter-reassociate",
            "dce,algsimp,reduce-scatter-creator,all-gather-bcast-reorder",
            "all-gather-remove-degenerate-dims,all-reduce-promotion,dce,while-loop-trip-count-annotator",
        ),
        _named(
            "conv_canonicalization",
            "conv-rewriter,cudnn-fused-convolution-rewriter,call-inliner,tuple-simplifier,algsimp",
            _named("reshape_mover_after_conv_canonicalization", "reshape-mover,algsimp"),
            "constant_folding",
        ),
        _named("layout assignment", "flatten-call-graph,layout-assignment"),
        _named(
            "layout normalization",
            f"{_NORMALIZATION},algsimp{{{_LAID_OUT}}},broadcast_canonicalizer,scatter_simplifier",
        ),
        _named("nvptx post-layout_assignment part 1", "dot_dimension_merger"),
        _named(
            "hlo normalization",
            f"algsimp{{{_LAID_OUT}}},bitcast_dtypes_expander,transpose-folding,reshape-decomposer",
            f"reduce-decomposer,cublas-gemm-rewriter,{_NORMALIZATION},algsimp{{{_LAID_OUT}}}",
            "scatter_simplifier,broadcast_canonicalizer",
            f"reduction-layout-normalizer,algsimp{{{_LAID_OUT}}},cse{{{_LAID_OUT}}}",
            "constant_folding,dce",
        ),
        _named(
            "post-layout_assignment",
            _NORMALIZATION,
            _named("float_normalization", f"{_FLOATS},simplify-fp-conversions"),
            f"tuple-simplifier,algsimp{{{_LAID_OUT}}},simplify-fp-conversions,cse{{{_LAID_OUT}}}",
        ),
        _named(
            "fusion",
            f"priority-fusion,cse{{{_LAID_OUT}}},dce,multi_output_fusion,cse{{{_LAID_OUT}}},dce",
        ),
        _named(
            "post-fusion optimization",
            "all-gather-combiner,all-reduce-combiner,reduce-scatter-combiner,collective-permute-combiner",
            "all-reduce-contiguous",
        ),
        _named("async-collective-conversion", "async-collective-creator"),
        _named(
            "post-fusion-simplification-pipeline optimization",
            f"algsimp{{{_LAID_OUT}}},computation-deduplicator",
        ),
        _named("pre-scheduling-copy-insertion", "dce,copy-insertion"),
    )


@cache
def tpu() -> tuple[PipelinePass, ...]:
    """XLA:TPU's public passes, up to copies."""
    algsimp, cse = f"algsimp{{{_LAID_OUT}}}", f"cse{{{_LAID_OUT}}}"
    return (
        _named("pre-optimization", "call-inliner,zero_sized_hlo_elimination,tuple-simplifier,dce"),
        _PartitionedPass(
            True,
            "xla-partitioner",
            "dce,shardy-xla,tuple-simplifier,dce,spmd-partitioning",
            _CLEANUP,
        ),
        _named(
            "Before X64 rewriter",
            "topk-decomposer,dynamic-index-splitter,batchnorm_expander,call-inliner",
            "conditional-canonicalizer,dynamic-dimension-simplifier,dynamic_padder",
        ),
        _named("X64 elimination", "comparison-expander"),
        _named(
            "Phase 1 pre-layout assignment passes",
            "convolution-group-converter{convert-batch-groups-only=true},convolution-group-converter",
            _named(
                "convolution folding",
                "dce,broadcast_canonicalizer,transpose-folding,convert_operand_folding,dce",
            ),
        ),
        _named("simplification", "map-inline", _SIMPLIFICATION_TPU, fix_point=True),
        _named("hlo-module-dce", "hlo-module-dce"),
        _named(
            "Pre layout assignment",
            "tuple-simplifier,dce",
            _named("while-loop-simplification", "simplify-while-loops,tuple-simplifier"),
            "flatten-call-graph,while-loop-invariant-code-motion",
        ),
        _named("Layout assignment", "layout-assignment{target=tpu}"),
        _named(
            "Post layout assignment",
            f"tuple-simplifier,{cse},dce,{algsimp},simplify-conditional,dce,{cse},tuple-simplifier",
            "constant_folding,dce",
        ),
        _named("Main fusion", f"fusion,{cse},dce"),
        _named("JF after main fusion", f"simplify-sorts,{algsimp},{cse},dce,bfloat16-propagation"),
        _named("multi output fusion and bf16 folding", "bfloat16-propagation,bfloat16-fold,dce"),
        _named("Global Copy Insertion", "flatten-call-graph,call-inliner,dce,copy-insertion"),
    )


_PLATFORMS: Mapping[str, str] = {
    "cpu": "cpu",
    "host": "cpu",
    "cuda": "gpu",
    "gpu": "gpu",
    "rocm": "gpu",
    "tpu": "tpu",
}
_BUILDERS = {"cpu": cpu, "gpu": gpu, "tpu": tpu}


def pipelines_of(platform: str) -> Sequence[PipelinePass]:
    """The pipelines of a platform, in order. Raises `HloError` HLO0406 for one that has none."""
    name = _PLATFORMS.get(platform.lower())
    if name is None:
        raise error(
            "HLO0406",
            f"there is no pipeline of platform '{platform}'",
            help=f"there are those of {', '.join(sorted(_PLATFORMS))}",
        )
    return _BUILDERS[name]()
