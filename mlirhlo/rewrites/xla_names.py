"""Names of XLA's, of passes and of their classes: which pass here they mean, or what does the work without one.

Source: reference of the passes; the classes of XLA's sources.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

ALIASES: Mapping[str, str] = {
    "control-dep-rewriter": "control-dep-remover",
    "gpu_scatter_expander": "scatter_expander",
    "hlo-computation-deduplicator": "computation-deduplicator",
    "norm-rewriter": "cudnn-norm-rewriter",
    "AlgebraicSimplifier": "algsimp",
    "BFloat16ConversionFolding": "bfloat16-fold",
    "BFloat16MixedPrecisionRemoval": "bf16-mixed-precision-removal",
    "ConditionalSimplifier": "simplify-conditional",
    "ConvCanonicalization": "convolution-canonicalization",
    "CudnnFusedConvRewriter": "cudnn-fused-convolution-rewriter",
    "FloatNormalization": "float-normalization-bf16",
    "GemmRewriter": "cublas-gemm-rewriter",
    "InstructionFusion": "fusion",
    "MapInliner": "map-inline",
    "ParallelTaskAssigner": "cpu-parallel-task-assigner",
    "SortSimplifier": "simplify-sorts",
    "SpmdPartitioner": "spmd-partitioning",
    "SubByteNormalization": "sub-byte-size-setter",
    "WhileLoopSimplifier": "simplify-while-loops",
}
"""Passes that have another name here. A class whose name is that of the pass but for its spelling (`HloDCE`)
needs no line."""

_SENTENCES: Mapping[str, str] = {
    "priority-fusion, multi_output_fusion and fusion fuse what it fuses": """
        AllReduceSoftmaxFusion FusionDispatchPipeline FusionMerger FusionWrapper HorizontalInputFusion
        HorizontalLoopFusion VariadicOpSplitter tpu_fusion tpu_multi_output_fusion
        tpu_trivial_instruction_unfuser trivial-fusion-remover""",
    "it is no pass but how XLA runs passes; a pipeline here repeats by itself what has to be repeated": """
        ApplyXlaTransforms HloModuleGroupPass HloModulePass HloPassFix HloPassInterface HloPassPipeline
        OpExpanderPass reshape_mover_after_conv_canonicalization spmd-cleanup""",
    "float-normalization-bf16 does its work": "BFloat16Normalization BFloat16NormalizationPass",
    "float-normalization-*, operand_upcaster and element-type-converter change element types": """
        ChangeOpDataType ConvolutionTypeCanonicalizer CpuFloatSupport FloatSupport GpuFloatSupport
        MixedTypeCanonicalizer OneDnnFloatSupport SubbytePacker
        TpuConvolutionTypeCanonicalizer""",
    "no platform here has a memory of the host beside its own: annotations stay, and nothing is moved": """
        AsyncWrapper HostMemoryTransferAsyncifier HostOffloadLegalize HostOffloader HostOffloadingPrepare
        ConvertMemoryPlacementToInternalAnnotations MemcopyAsyncWrapper MemorySpaceAssignment
        MemorySpacePropagation StripMemoryPlacementAnnotations""",
    "code for products, convolutions and reductions is chosen behind the passes (docs/lowering.md)": """
        AlgorithmChecker AutotunerPass BlockScalingRewriter ConvFusionRewriter ConvKindAssignment
        ConvPaddingLegalization CublasPadForGemms CudnnCustomCallConverter CudnnFusedConvDecomposer
        CudnnFusedMhaRewriter CudnnFusedMhaTransposeFusion CudnnFusionCompiler CudnnPadForConvolutions
        CudnnSimplifyPadding CudnnVectorizeConvolutions CudnnWorkspaceRewriter CustomKernelFusionAutotuner
        CustomKernelFusionRewriter DotAlgorithmRewriter DotDimensionSorter DotLibraryRewriter DotNormalizer
        DotOperandConverter DotSparsityRewriter DotStrengthReduction GemmAlgorithmPicker
        GemmBroadcastFoldingRewriter cublas-gemm-broadcast-folding-rewriter GemmFusion GemmFusionAutotuner
        GemmFusionSwapOperands GemvRewriter GpuConvAlgorithmPicker GpuConvPaddingLegalization GpusolverRewriter
        LibraryRewriter NestGemmFusion OneDnnContractionRewriter OneDnnOpsRewriter ReductionDegenerateDimRemover
        ReductionDimensionGrouper ReductionSplitter ScaledDotRewriter SoftmaxRewriterTriton SplitkRewriter
        TransposeDimensionGrouper TriangularSolveRewriter TritonFusionNumericsVerifier TritonGemmRewriter
        VariadicReductionLayoutEqualizer WindowedEinsumHandler YnnFusion""",
    "sorts, scans and scatters have machine code as they are; topk-decomposer writes a top-k as a sort": """
        AssociativeScanRewriter EstimateCubScratchSize ScanExpander ScanRewriter
        ScatterDeterminismExpander ScatterSliceSimplifier SortRewriter TopkRewriter TopkSpecializer TopKSplitter""",
    "hlo-memory-scheduler orders instructions, by memory alone": """
        AsyncInstructionScheduler BrkgaScheduler hlo-memory-scheduler-with-brkga-fallback L2PrefetchScheduler
        LatencyHidingScheduler LegalizeSchedulingAnnotations LoopScheduleLinearizer P2PSchedulePreparation
        PGLEAccuracyChecker ScheduleAwareCollectiveOpsCSE schedule-aware-collective-cse SchedulePostprocessing
        SchedulingInstructionAnnotator""",
    "launches and streams of the GPU are chosen behind the passes (docs/gpu.md)": """
        CommandBufferConversionPass CommandBufferScheduling ExecutionStreamAssignment
        ExplicitCollectivesGroupAsyncWrapper ExplicitDependencies ExplicitNcclGroupAsyncWrapper
        ExplicitStreamAnnotationAsyncWrapper FuturesModeAsyncWrapper StreamAttributeAnnotator
        StreamAttributeAsyncWrapper""",
    "collectives change by the passes whose names begin with all-, collective- and reduce-scatter-": """
        AllGatherCodeMotion AllGatherPermutedDsSimplifier AllReduceBlueConnect AllReduceReduceScatterReorder
        AllReduceSplitter ArCrsCombiner AsyncCollectiveAnnotator AsyncCollectiveReplacer CanonicalizeAllGatherForCSE
        canon-all-gather-for-cse CollectiveBackendAssigner CollectiveColoring CollectivePermuteCSE
        CollectivePermuteCycleDecomposer CollectivePermuteDecomposer CollectivePermuteMotion
        CollectivePermuteValidIterationAnnotator CollectivePipeliner CollectivePipeliningAnalyzer
        CollectiveQuantizer CollectiveSelectFolder CollectiveSendRecvCombiner CollectiveTransformationReorder
        CollectivesScheduleLinearizer PipelinedP2PRewriter RaggedAllToAllCanonicalizer RaggedAllToAllDecomposer
        RaggedAllToAllMultiHostDecomposer RematerializeLargeAllGather WhileLoopAllReduceCodeMotion
        WhileLoopAllReduceCodeMotionSetup""",
    "sharding-propagation, shardy-xla and spmd-partitioning do its work": """
        AutoSharding HloConstantSplitter HloDomainIsolator HloDomainRemover HloDomainVerifier SpmdPrepare
        StatefulRngSpmdPartitioner tpu-spmd-partitioning""",
    "while-loop-invariant-code-motion and while-loop-unroller do its work": """
        DoubleBufferLoopUnrolling SmallWhileLoopHoistingPass WhileLoopConcatCodeMotion WhileLoopConvertPeeler
        WhileLoopExpensiveInvariantCodeMotion WhileLoopFusibleSinking WhileLoopPipelineUnroller""",
    "a module's input_output_alias stays as it is written; copy-insertion adds what buffers need": """
        AliasPassthroughParams CopyFusion OptimizeInputOutputBufferAlias""",
    "names, metadata and annotations stay as they are": """
        AddTrackingSuffixToInstructionNames LiteralCanonicalizer PropagateCallMetadata
        RenameFusions SanitizeConstantNames ShapeCanonicalizer""",
    "algsimp, reduce-window-rewriter and the passes whose names end in simplifier do its work": """
        RecognizeReduceWindow ReduceWindowResizer SliceHoister SpaceToBatchConverter""",
    "while loops, conditionals and calls stay control flow; call-inliner inlines calls": """
        DynamicSliceFusionRewriter HloControlFlowFlattening""",
    "--print-analysis prints analyses": """
        BufferAssignment GpuHloCostAnalysis HeapSimulator HloAliasAnalysis HloBuffer HloCostAnalysis
        HloDataflowAnalysis HloLiveRange HloLivenessAnalysis HloReachabilityMap HloReplicationAnalysis""",
}
"""What does the work of passes that have no pass here."""


def pass_meant(name: str, known: Collection[str]) -> str | None:
    """The pass that a name means: its own in any spelling, or that of XLA's class (`AlgebraicSimplifier`, `HloDCE`)."""
    if name in known:
        return name
    own = _spellings(known)
    return own.get(_letters(name)) or own.get(_letters(_CLASS_PREFIX.sub("", name)))


def instead_of(name: str, known: Collection[str]) -> str:
    """What to write in place of a name that means no pass here: what does the work, or the nearest name."""
    wanted = {_letters(name), _letters(_CLASS_PREFIX.sub("", name))}
    for sentence, names in _SENTENCES.items():
        if not wanted.isdisjoint(map(_letters, names.split())):
            return f"{sentence}; "
    own = _spellings(known)
    near = difflib.get_close_matches(_letters(name), own, n=1)
    return f"did you mean {own[near[0]]!r}? " if near else ""


def _spellings(known: Collection[str]) -> dict[str, str]:
    """Passes by the letters of all their names."""
    names = {_letters(alias): own for alias, own in ALIASES.items()}
    return names | {_letters(own): own for own in known}


_CLASS_PREFIX = re.compile(r"^(?:Hlo|Cpu|Gpu|Tpu)(?=[A-Z])")


def _letters(name: str) -> str:
    """What all spellings of a name have in common: of `DotMergerPass`, `dot_merger` and `dot-merger`."""
    return re.sub(r"[-_]", "", name.removesuffix("Pass")).lower()
