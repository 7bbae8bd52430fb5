"""The pipelines of XLA's compilers, for the passes there are: their names, their order, their nesting.

`hlo-opt --platform=cpu --stage=hlo` runs one. Source: order observed in dumps of XLA:CPU, XLA:GPU and
XLA:TPU (reference of the passes, "Observed pipelines"); layouts, libraries, scheduling and copies are
questions of a target and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirhlo.diagnostics import error
from mlirhlo.rewrites.pipeline import PipelinePass, parse_pipeline

_SIMPLIFICATION_CPU = (
    "algsimp{executing-on-cpu=true},simplify-sorts,dce,gather_expander{simple-only=true},"
    "zero_sized_hlo_elimination,while-loop-invariant-code-motion,tuple-simplifier,"
    "while-loop-constant-sinking,simplify-while-loops,dce,reshape-mover,constant_folding,"
    "simplify-conditional"
)
_SIMPLIFICATION_GPU = (
    "zero_sized_hlo_elimination,gather_expander{simple-only=true},scatter_expander{simple-only=true},"
    "algsimp,simplify-sorts,tuple-simplifier,while-loop-constant-sinking,simplify-while-loops,"
    "reshape-mover,constant_folding,simplify-conditional,transpose-folding,cse,dce"
)
_SIMPLIFICATION_TPU = (
    "zero_sized_hlo_elimination,algsimp,simplify-sorts,tuple-simplifier,while-loop-constant-sinking,"
    "simplify-while-loops,reshape-mover,constant_folding,simplify-conditional,cse,dce"
)
_FLOATS = ",".join(f"float-normalization-{name}" for name in ("bf16", "f8e5m2", "f8e4m3fn"))


def _named(name: str, *parts: str | PipelinePass, fix_point: bool = False) -> PipelinePass:
    passes = [
        pass_
        for part in parts
        for pass_ in ((part,) if isinstance(part, PipelinePass) else parse_pipeline(part))
    ]
    return PipelinePass(name, tuple(passes), fix_point)


def cpu() -> tuple[PipelinePass, ...]:
    """XLA:CPU, up to fusion."""
    return (
        _named("sharding-removal", "flatten-call-graph,sharding-remover,dce"),
        _named(
            "HLO passes through layout assignment",
            "dot_decomposer,zero_sized_hlo_elimination,map-inline,topk-decomposer",
            "comparison-expander,call-inliner,dot_decomposer",
            _FLOATS,
            "batchnorm_expander,logistic-expander",
            _named("simplification", _SIMPLIFICATION_CPU, fix_point=True),
            "scatter_expander",
            _named("post_scatter_expansion_simplification", _SIMPLIFICATION_CPU, fix_point=True),
            "transpose-folding,cse,optimization_barrier_expander,tuple-simplifier",
            "while-loop-trip-count-annotator,flatten-call-graph",
        ),
        _named("hlo normalization", "broadcast_canonicalizer"),
        _named("dot-library-passes", "dot_decomposer"),
        _named(
            "HLO passes after layout assignment",
            "fusion,tuple-simplifier",
            _named("simplification after layout assignment", "algsimp,dce,cse", fix_point=True),
            "dce",
        ),
    )


def gpu() -> tuple[PipelinePass, ...]:
    """XLA:GPU, up to fusion."""
    return (
        _named(
            "pre-spmd-partitioner", "flatten-call-graph,call-inliner,zero_sized_hlo_elimination"
        ),
        _named("sharding-removal", "sharding-remover,dce"),
        _named(
            "optimization",
            "topk-decomposer,dot_decomposer,comparison-expander,zero_sized_hlo_elimination",
            "call-inliner,batchnorm_expander,logistic-expander,stable-sort-expander",
            _named("simplification", _SIMPLIFICATION_GPU, fix_point=True),
            _named("simplification-2", "convert-mover,algsimp", fix_point=True),
        ),
        _named("collective-optimizations", "dce,algsimp,dce,while-loop-trip-count-annotator"),
        _named("layout assignment", "flatten-call-graph"),
        _named(
            "post-layout_assignment",
            _named("float_normalization", f"{_FLOATS},simplify-fp-conversions"),
            "tuple-simplifier,algsimp,simplify-fp-conversions,cse",
        ),
        _named("fusion", "fusion,cse,dce"),
        _named(
            "post-fusion-simplification-pipeline optimization", "algsimp,computation-deduplicator"
        ),
    )


def tpu() -> tuple[PipelinePass, ...]:
    """XLA:TPU's public passes, up to fusion."""
    return (
        _named("pre-optimization", "call-inliner,zero_sized_hlo_elimination,tuple-simplifier,dce"),
        _named("X64 elimination", "comparison-expander,topk-decomposer,batchnorm_expander"),
        _named("simplification", "map-inline", _SIMPLIFICATION_TPU, fix_point=True),
        _named("hlo-module-dce", "hlo-module-dce"),
        _named(
            "Pre layout assignment",
            "tuple-simplifier,dce",
            _named("while-loop-simplification", "simplify-while-loops,tuple-simplifier"),
            "flatten-call-graph,while-loop-invariant-code-motion",
        ),
        _named(
            "Post layout assignment",
            "tuple-simplifier,cse,dce,algsimp,simplify-conditional,dce,cse,tuple-simplifier",
            "constant_folding,dce",
        ),
        _named("Main fusion", "fusion,cse,dce"),
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
