"""Passes by name. Modules are imported when a pass of theirs is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error
from mlirhlo.importing import ALONE, LATE

with LATE:
    from mlirhlo.rewrites import authors, passes


if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_BUILTIN: Mapping[str, str] = {
    "all-gather-bcast-reorder": "collectives.all_gather_moves:AllGatherBroadcastReorderPass",
    "all-gather-combiner": "collectives.combiners:AllGatherCombinerPass",
    "all-gather-cse": "collectives.all_gather_cse:AllGatherCsePass",
    "all-gather-dynamic-slice-simplifier": (
        "collectives.simplifiers:AllGatherDynamicSliceSimplifierPass"
    ),
    "all-gather-optimizer": "collectives.simplifiers:AllGatherOptimizerPass",
    "all-gather-remove-degenerate-dims": (
        "collectives.all_gather_moves:AllGatherRemoveDegenerateDimsPass"
    ),
    "all-reduce-combiner": "collectives.combiners:AllReduceCombinerPass",
    "all-reduce-contiguous": "collectives.contiguous:AllReduceContiguousPass",
    "all-reduce-decomposer": "collectives.decomposers:AllReduceDecomposerPass",
    "all-reduce-folder": "collectives.simplifiers:AllReduceFolderPass",
    "all-reduce-promotion": "collectives.promotion:AllReducePromotionPass",
    "all-reduce-reassociate": "collectives.reassociate:AllReduceReassociatePass",
    "all-reduce-simplifier": "collectives.simplifiers:AllReduceSimplifierPass",
    "all_gather_decomposer": "collectives.decomposers:AllGatherDecomposerPass",
    "all_to_all_decomposer": "collectives.decomposers:AllToAllDecomposerPass",
    "async-collective-creator": "collectives.asynchronous:AsyncCollectiveCreatorPass",
    "convert-async-collectives-to-sync": (
        "collectives.asynchronous:ConvertAsyncCollectivesToSyncPass"
    ),
    "collective-permute-combiner": "collectives.combiners:CollectivePermuteCombinerPass",
    "reduce-scatter-combiner": "collectives.combiners:ReduceScatterCombinerPass",
    "reduce-scatter-creator": "collectives.simplifiers:ReduceScatterCreatorPass",
    "reduce-scatter-decomposer": "collectives.decomposers:ReduceScatterDecomposerPass",
    "reduce-scatter-reassociate": "collectives.reassociate:ReduceScatterReassociatePass",
    "batchnorm_expander": "legalize.batchnorm_expander:BatchNormExpanderPass",
    "broadcast_canonicalizer": "simplify.broadcast_canonicalizer:BroadcastCanonicalizerPass",
    "comparison-expander": "legalize.comparison_expander:ComparisonExpanderPass",
    "computation-deduplicator": "control_flow.computation_deduplicator:ComputationDeduplicatorPass",
    "constant_folding": "simplify.constant_folding:ConstantFoldingPass",
    "fill-constants": "fill_constants:FillConstantsPass",
    "logistic-expander": "legalize.logistic_expander:LogisticExpanderPass",
    "map-inline": "control_flow.map_inline:MapInlinePass",
    "simplify-conditional": "control_flow.simplify_conditional:SimplifyConditionalPass",
    "simplify-sorts": "simplify.simplify_sorts:SimplifySortsPass",
    "topk-decomposer": "legalize.topk_decomposer:TopkDecomposerPass",
    "transpose-folding": "simplify.transpose_folding:TransposeFoldingPass",
    "simplify-while-loops": "control_flow.simplify_while_loops:SimplifyWhileLoopsPass",
    "while-loop-constant-sinking": "control_flow.while_loop_constant_sinking:WhileLoopConstantSinkingPass",
    "while-loop-invariant-code-motion": (
        "control_flow.while_loop_invariant_code_motion:WhileLoopInvariantCodeMotionPass"
    ),
    "while-loop-operand-packing": "control_flow.while_loop_operand_packing:WhileLoopOperandPackingPass",
    "while-loop-unroller": "control_flow.while_loop_unroller:WhileLoopUnrollerPass",
    "while-loop-trip-count-annotator": (
        "control_flow.while_loop_trip_count_annotator:WhileLoopTripCountAnnotatorPass"
    ),
    "bitcast_dtypes_expander": "legalize.bitcast_dtypes_expander:BitcastDtypesExpanderPass",
    "cholesky_expander": "linear_algebra.cholesky_expander:CholeskyExpanderPass",
    "dot_decomposer": "legalize.dot_decomposer:DotDecomposerPass",
    "dynamic_padder": "dynamic_padder:DynamicPadderPass",
    "eigh_expander": "linear_algebra.eigh_expander:EighExpanderPass",
    "fft-expander": "legalize.fft_expander:FftExpanderPass",
    "lapack-expander": "linear_algebra.lapack_expander:LapackExpanderPass",
    "qr_expander": "linear_algebra.qr_expander:QrExpanderPass",
    "triangular_solve_expander": "linear_algebra.triangular_solve_expander:TriangularSolveExpanderPass",
    "rng-expander": "legalize.rng_expander:RngExpanderPass",
    "rng-bit-generator-expander": "legalize.rng_bit_generator_expander:RngBitGeneratorExpanderPass",
    "hlo-verifier": "hlo_verifier:HloVerifierPass",
    "optimization_barrier_expander": (
        "control_flow.optimization_barrier_expander:OptimizationBarrierExpanderPass"
    ),
    "real_imag_expander": "legalize.real_imag_expander:RealImagExpanderPass",
    "sharding-remover": "sharding_remover:ShardingRemoverPass",
    "sharding-propagation": "spmd.sharding_propagation:ShardingPropagationPass",
    "shardy-xla": "spmd.shardy_xla:ShardyXlaPass",
    "spmd-partitioning": "spmd.spmd_partitioning:SpmdPartitioningPass",
    "simplify-fp-conversions": "simplify.simplify_fp_conversions:SimplifyFpConversionsPass",
    "stable-sort-expander": "legalize.stable_sort_expander:StableSortExpanderPass",
    "bf16-mixed-precision-removal": "precision.float_normalization:Bf16MixedPrecisionRemovalPass",
    "bfloat16-propagation": "precision.bfloat16_propagation:Bfloat16PropagationPass",
    "bfloat16-fold": "precision.bfloat16_fold:Bfloat16FoldPass",
    "float-normalization-bf16": "precision.float_normalization:FloatNormalizationPass",
    "float-normalization-f8e4m3fn": "precision.narrow_normalization:F8e4m3fnNormalizationPass",
    "float-normalization-f8e5m2": "precision.narrow_normalization:F8e5m2NormalizationPass",
    "float-normalization-f8e3m4": "precision.narrow_normalization:F8e3m4NormalizationPass",
    "float-normalization-f8e4m3": "precision.narrow_normalization:F8e4m3NormalizationPass",
    "float-normalization-f8e4m3b11fnuz": "precision.narrow_normalization:F8e4m3b11fnuzNormalizationPass",
    "float-normalization-f8e4m3fnuz": "precision.narrow_normalization:F8e4m3fnuzNormalizationPass",
    "float-normalization-f8e5m2fnuz": "precision.narrow_normalization:F8e5m2fnuzNormalizationPass",
    "float-normalization-f8e8m0fnu": "precision.narrow_normalization:F8e8m0fnuNormalizationPass",
    "float-normalization-f4e2m1fn": "precision.narrow_normalization:F4e2m1fnNormalizationPass",
    "float-normalization-s4": "precision.narrow_normalization:S4NormalizationPass",
    "float-normalization-u4": "precision.narrow_normalization:U4NormalizationPass",
    "reshape-mover": "simplify.reshape_mover:ReshapeMoverPass",
    "gather_expander": "legalize.gather_expander:GatherExpanderPass",
    "scatter_expander": "legalize.scatter_expander:ScatterExpanderPass",
    "convert-mover": "simplify.convert_mover:ConvertMoverPass",
    "zero_sized_hlo_elimination": "simplify.zero_sized_hlo_elimination:ZeroSizedHloEliminationPass",
    "batch-dot-simplification": "simplify.batch_dot_simplification:BatchDotSimplificationPass",
    "batched_gather_scatter_normalizer": (
        "legalize.batched_gather_scatter_normalizer:BatchedGatherScatterNormalizerPass"
    ),
    "conditional-canonicalizer": "control_flow.conditional_canonicalizer:ConditionalCanonicalizerPass",
    "convert_operand_folding": "precision.convert_operand_folding:ConvertOperandFoldingPass",
    "convolution-pred-expander": "legalize.convolution_pred_expander:ConvolutionPredExpanderPass",
    "convolution_4d_expander": "legalize.convolution_4d_expander:Convolution4DExpanderPass",
    "AssumeGatherIndicesInBoundRewriteToCopy": (
        "legalize.despecializer:AssumeGatherIndicesInBoundRewriteToCopyPass"
    ),
    "ReduceWindowToReduceAndBroadcast": "legalize.despecializer:ReduceWindowToReduceAndBroadcastPass",
    "control-dep-remover": "memory.schedules:ControlDepRemoverPass",
    "despecializer": "legalize.despecializer:DespecializerPass",
    "dot-merger": "simplify.dot_merger:DotMergerPass",
    "dot_dimension_merger": "simplify.dot_dimension_merger:DotDimensionMergerPass",
    "dynamic-dimension-simplifier": (
        "simplify.dynamic_dimension_simplifier:DynamicDimensionSimplifierPass"
    ),
    "dynamic-index-splitter": "simplify.dynamic_index_splitter:DynamicIndexSplitterPass",
    "element-type-converter": "precision.element_type_converter:ElementTypeConverterPass",
    "fusion_constant_sinking": "fusion.fusion_constant_sinking:FusionConstantSinkingPass",
    "gather_simplifier": "simplify.gather_simplifier:GatherSimplifierPass",
    "hlo-descheduler": "memory.schedules:HloDeschedulerPass",
    "hlo-trivial-scheduler": "memory.schedules:HloTrivialSchedulerPass",
    "instruction-hoister": "memory.schedules:InstructionHoisterPass",
    "operand_upcaster": "precision.operand_upcaster:OperandUpcasterPass",
    "reduce-in-blocks": "reductions.reduce_in_blocks:ReduceInBlocksPass",
    "reduce-decomposer": "reductions.reduce_decomposer:ReduceDecomposerPass",
    "result_caster": "precision.operand_upcaster:ResultCasterPass",
    "root-instruction-sinker": "memory.root_instruction_sinker:RootInstructionSinkerPass",
    "scatter_simplifier": "simplify.scatter_simplifier:ScatterSimplifierPass",
    "select_and_scatter_expander": "legalize.select_and_scatter_expander:SelectAndScatterExpanderPass",
    "slice-sinker": "simplify.slice_sinker:SliceSinkerPass",
    "sub-byte-size-setter": "legalize.despecializer:SubByteSizeSetterPass",
    "tree_reduction_rewriter": "reductions.tree_reduction_rewriter:TreeReductionRewriterPass",
    "algsimp": "algsimp:AlgebraicSimplifierPass",
    "call-inliner": "control_flow.call_inliner:CallInlinerPass",
    "chlo-legalize-to-stablehlo": "chlo_expansion:ChloLegalizeToStablehloPass",
    "cse": "simplify.cse:CsePass",
    "dce": "simplify.dce:DcePass",
    "flatten-call-graph": "control_flow.flatten_call_graph:FlattenCallGraphPass",
    "conv-rewriter": "gpu_libraries.conv_rewriter:ConvRewriterPass",
    "cudnn-fused-convolution-rewriter": (
        "gpu_libraries.cudnn_fused_convolution_rewriter:CudnnFusedConvolutionRewriterPass"
    ),
    "cudnn-norm-rewriter": "gpu_libraries.cudnn_norm_rewriter:CudnnNormRewriterPass",
    "cublas-gemm-rewriter": "gpu_libraries.cublas_gemm_rewriter:CublasGemmRewriterPass",
    "cpu-parallel-task-assigner": "memory.cpu_parallel_task_assigner:CpuParallelTaskAssignerPass",
    "library-call-expander": "gpu_libraries.library_call_expander:LibraryCallExpanderPass",
    "layout-assignment": "layout_assignment:LayoutAssignmentPass",
    "layout_normalization": "layout.layout_normalization:LayoutNormalizationPass",
    "reshape-decomposer": "layout.reshape_decomposer:ReshapeDecomposerPass",
    "reduction-layout-normalizer": (
        "layout.reduction_layout_normalizer:ReductionLayoutNormalizerPass"
    ),
    "conditional-to-select": "control_flow.conditional_to_select:ConditionalToSelectPass",
    "copy-insertion": "copy_insertion:CopyInsertionPass",
    "hlo-memory-scheduler": "memory.hlo_memory_scheduler:HloMemorySchedulerPass",
    "rematerialization": "memory.rematerialization:RematerializationPass",
    "convolution-canonicalization": (
        "layout.convolution_canonicalization:ConvolutionCanonicalizationPass"
    ),
    "convolution-features-last": "layout.convolution_features_last:ConvolutionFeaturesLastPass",
    "convolution-group-converter": "legalize.convolution_group_converter:ConvolutionGroupConverterPass",
    "reduce-window-rewriter": "reductions.reduce_window_rewriter:ReduceWindowRewriterPass",
    "stochastic_convert_decomposer": (
        "legalize.stochastic_convert_decomposer:StochasticConvertDecomposerPass"
    ),
    "ragged_dot_rewriter": "legalize.ragged_dot_rewriter:RaggedDotRewriterPass",
    "custom-call-expander": "legalize.custom_call_expander:CustomCallExpanderPass",
    "declared-types": "precision.declared_types:DeclaredTypesPass",
    "default-layouts": "layout.default_layouts:DefaultLayoutsPass",
    "defuser": "control_flow.defuser:DefuserPass",
    "fusion": "fusion:FusionPass",
    "multi_output_fusion": "fusion:MultiOutputFusionPass",
    "priority-fusion": "fusion:PriorityFusionPass",
    "hlo-legalize-to-stablehlo": "hlo_to_stablehlo:HloLegalizeToStablehloPass",
    "hlo-module-dce": "simplify.hlo_module_dce:HloModuleDcePass",
    "stablehlo-canonicalize-dynamism": "stablehlo_refine_shapes:StablehloCanonicalizeDynamismPass",
    "stablehlo-legalize-quant-to-math": (
        "stablehlo_quant_to_math:StablehloLegalizeQuantToMathPass"
    ),
    "stablehlo-legalize-to-hlo": "stablehlo_to_hlo:StablehloLegalizeToHloPass",
    "stablehlo-refine-arguments": "stablehlo_refine_shapes:StablehloRefineArgumentsPass",
    "stablehlo-refine-shapes": "stablehlo_refine_shapes:StablehloRefineShapesPass",
    "stablehlo-target-independent-optimization": (
        "stablehlo_simplify:StablehloTargetIndependentOptimizationPass"
    ),
    "stablehlo-to-hlo": "stablehlo_to_hlo:StablehloToHloPass",
    "tuple-simplifier": "simplify.tuple_simplifier:TupleSimplifierPass",
    "gpu-fusion": "mlirhlo.lowering.gpu.fusion:GpuFusionPass",
    "gpu-approximate-quotients": "mlirhlo.lowering.schedule.passes:GpuApproximateQuotientsPass",
    "gpu-flatten-columns": "mlirhlo.lowering.schedule.passes:GpuFlattenColumnsPass",
    "gpu-stage-elements": "mlirhlo.lowering.schedule.passes:GpuStageElementsPass",
    "gpu-stage-rows": "mlirhlo.lowering.schedule.passes:GpuStageRowsPass",
    "gpu-map-columns": "mlirhlo.lowering.schedule.passes:GpuMapColumnsPass",
    "gpu-map-contractions": "mlirhlo.lowering.schedule.passes:GpuMapContractionsPass",
    "gpu-map-rows": "mlirhlo.lowering.schedule.passes:GpuMapRowsPass",
    "gpu-map-to-grid": "mlirhlo.lowering.schedule.passes:GpuMapToGridPass",
    "gpu-persist-rows": "mlirhlo.lowering.schedule.passes:GpuPersistRowsPass",
    "gpu-map-transposes": "mlirhlo.lowering.schedule.passes:GpuMapTransposesPass",
    "gpu-vectorize": "mlirhlo.lowering.schedule.passes:GpuVectorizePass",
    "cpu-choose-algorithm": "mlirhlo.lowering.loops.passes:CpuChooseAlgorithmPass",
    "cpu-parallelize": "mlirhlo.lowering.loops.passes:CpuParallelizePass",
    "cpu-vectorize": "mlirhlo.lowering.loops.passes:CpuVectorizePass",
    "structured-dce": "mlirhlo.lowering.structured.remove_dead:StructuredDcePass",
    "structured-merge-dimensions": "mlirhlo.lowering.structured.merge_dimensions:StructuredMergeDimensionsPass",
    "structured-move-words": "mlirhlo.lowering.structured.move_words:StructuredMoveWordsPass",
    "structured-merge-maps": "mlirhlo.lowering.structured.merge_maps:StructuredMergeMapsPass",
    "mosaic-kernel-expander": "mlirhlo.mosaic.kernel_expander:MosaicKernelExpanderPass",
}
"""Pass name to `module:class` in this package; of a room above it the module's whole name."""

LOADED = "mlirhlo_pass_"
"""How the names of modules begin that `load_pass_file` imported."""


@dataclass(frozen=True, slots=True)
class PassInfo:
    """One pass that can be asked for."""

    name: str
    factory: Callable[[], type[ModulePass]]
    """Imports and returns the class."""

    @property
    def summary(self) -> str:
        """First line of the class's docstring."""
        return (self.factory().__doc__ or "").strip().split("\n")[0]


_loaded: dict[str, type[ModulePass]] = {}


def _builtin(target: str) -> Callable[[], type[ModulePass]]:
    module, _, cls = target.partition(":")

    def factory() -> type[ModulePass]:
        place = module if module.startswith("mlirhlo.") else f"mlirhlo.rewrites.{module}"
        with ALONE:
            found: type[ModulePass] = getattr(importlib.import_module(place), cls)
        return found

    return factory


def register(cls: type[ModulePass]) -> type[ModulePass]:
    """Adds a pass class under its `name`; usable as a decorator.

    Raises `HloError` HLO0404 when another pass has the name.
    """
    if cls.name in _BUILTIN or _loaded.get(cls.name, cls) is not cls:
        raise error(
            "HLO0404",
            f"a pass named {cls.name!r} exists already",
            help="give the pass another name",
        )
    _loaded[cls.name] = cls
    return cls


def list_passes(*, loaded: bool = True) -> Mapping[str, PassInfo]:
    """Every pass of this project and, unless asked not to, every loaded one, by name."""
    found = {name: PassInfo(name, _builtin(target)) for name, target in _BUILTIN.items()}
    for name in _loaded if loaded else ():
        found[name] = PassInfo(name, partial(_loaded.__getitem__, name))
    return dict(sorted(found.items()))


HLO, STRUCTURED, LOWERED = "hlo", "structured", "lowered"
"""What passes run on: HLO and StableHLO programs, structured kernels, modules of MLIR's own dialects."""


def level_of(cls: type[ModulePass]) -> str:
    """What a pass runs on: `HLO`, `STRUCTURED` or `LOWERED`; empty for anything (loaded, and no `HloPass`)."""
    package = f"{cls.__module__}."
    if package.startswith("xdsl."):
        return LOWERED
    if issubclass(cls, passes.HloPass):
        return HLO
    if package.startswith("mlirhlo.lowering."):
        return STRUCTURED
    return HLO if package.startswith("mlirhlo.") else ""


def list_lowered_passes() -> Mapping[str, PassInfo]:
    """The passes for modules of MLIR's own dialects, by name: xDSL's, and loaded ones for any module."""
    from xdsl.transforms import get_all_passes

    found = {name: PassInfo(name, factory) for name, factory in get_all_passes().items()}
    for name, cls in _loaded.items():
        if not level_of(cls):
            found[name] = PassInfo(name, partial(_loaded.__getitem__, name))
    return found


def load_pass_file(path: str) -> tuple[str, ...]:
    """Imports a Python file and registers every pass it defines; returns their names.

    Raises `HloError` HLO0405 when the file cannot be read or run, or defines no pass.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"{LOADED}{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise error("HLO0405", f"cannot load passes from {path!r}: no Python file there")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    from xdsl.passes import ModulePass

    def too_long() -> None:
        raise TimeoutError(f"not imported after {authors.LIMIT_S} s")

    try:
        with authors.limited(too_long):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise  # by the user, most often
    except BaseException as problem:  # also what exits: nothing of the file's ends the tool
        where = _last_line_in(problem, file)
        message = f"{path}{where}: the pass file raised {described(problem)}"
        raise error("HLO0405", message, help=_near(problem)) from problem
    names: list[str] = []
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, ModulePass)
            and value.__module__ == module.__name__
            and isinstance(getattr(value, "name", None), str)
        ):
            register(value)
            names.append(value.name)
    if not names:
        raise error(
            "HLO0405",
            f"{path} defines no pass",
            help="a pass is a subclass of HloPass with a `name`",
        )
    return tuple(names)


def described(problem: BaseException) -> str:
    """The class of an exception and the first line of what it says."""
    try:
        said = str(problem).split("\n", 1)[0][:300]
    except Exception:  # noqa: BLE001  of a class whose text cannot be had
        said = ""
    return type(problem).__name__ + (f": {said}" if said else "")


def _near(problem: BaseException) -> str | None:
    """The nearest names to one that could not be imported."""
    import difflib

    wanted = re.match(r"cannot import name '(\w+)'", str(problem))
    if not isinstance(problem, ImportError) or wanted is None or problem.name not in sys.modules:
        return None
    names = [name for name in vars(sys.modules[problem.name]) if not name.startswith("_")]
    start = wanted[1].removesuffix("Op")
    near = [n for n in names if start and n.startswith(start)]
    near = near or difflib.get_close_matches(wanted[1], names, n=3)
    return f"{problem.name} has {', '.join(sorted(near))}" if near else None


def _last_line_in(problem: BaseException, file: Path) -> str:
    line, trace, file = "", problem.__traceback__, file.absolute()
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).absolute() == file:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
