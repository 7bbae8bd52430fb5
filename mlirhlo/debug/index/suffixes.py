"""Fixed suffixes and extensions of dump files. One row each; the first that matches counts.

Source: dumps reference, "Fixed suffixes" and "Emitter files".
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suffix:
    """One way in which a name ends, extension aside."""

    pattern: re.Pattern[str]
    kind: str
    meaning: str
    """`{}` stands for the group `item`."""
    platform: str = ""
    has_item: bool = False
    """Whether a kernel's or fusion's name stands between the module's name and the suffix."""


def _row(pattern: str, kind: str, meaning: str, platform: str = "", item: bool = False) -> Suffix:
    return Suffix(re.compile(rf"(?:{pattern})$"), kind, meaning, platform, item)


_AFTER = r"\.(?:(?:sm_[0-9.]+[a-z]?|gfx\w+)?_?(?P<item>gpu|cpu)_)?after_optimizations"
_GPU = r"\.(?:sm_[0-9.]+[a-z]?|gfx\w+)?_?gpu_after_optimizations"
_REPORTS = (
    ("-buffer-assignment-values", "which instructions define and use each buffer"),
    ("-buffer-assignment", "which value lives where in memory, allocation by allocation"),
    ("-live-range", "the schedule, when each buffer lives, and the peak"),
    ("-memory-usage-report", "memory by space and allocation, largest first"),
)

SUFFIXES: tuple[Suffix, ...] = (
    _row(r"\.before_optimizations", "before", "the module as the compiler was given it"),
    _row(r"\.after_spmd_partitioner", "stage", "the module after partitioning", "GPU"),
    *(
        row
        for end, meaning in _REPORTS
        for row in (
            _row(rf"{_GPU}{end}", "report", meaning, "GPU"),
            _row(rf"\.cpu_after_optimizations{end}", "report", meaning, "CPU"),
            _row(rf"{_AFTER}{end}", "report", meaning),
        )
    ),
    _row(
        r"\.after_optimizations_before_buffer_assignment",
        "stage",
        "the module before buffers are assigned",
        "TPU",
    ),
    _row(
        r"\.after_optimizations_after_buffer_assignment",
        "stage",
        "the module once buffers are assigned",
        "TPU",
    ),
    _row(r"\.after_codegen", "stage", "the module once code is generated", "TPU"),
    _row(_GPU, "after", "the optimized, scheduled module", "GPU"),
    _row(r"\.cpu_after_optimizations", "after", "the optimized, scheduled module", "CPU"),
    _row(r"\.after_optimizations", "after", "the optimized, scheduled module"),
    _row(
        r"\.debug_options",
        "options",
        "DebugOptions that differ from their defaults; enough to reproduce",
    ),
    _row(r"\.gpu_target_config", "options", "the device that the module was compiled for", "GPU"),
    _row(r"\.config", "options", "HloModuleConfig: layouts, devices, all options", "GPU"),
    _row(r"\.autotune_results", "options", "what autotuning chose", "GPU"),
    _row(
        r"\.thunk_sequence_after_thunk_passes",
        "thunks",
        "the launches in order, once optimized",
        "GPU",
    ),
    _row(r"\.priority_fusion_dump", "graph", "what the fusion pass decided", "GPU"),
    _row(r"\.thunk_sequence", "thunks", "the launches in order and what they wait for", "GPU"),
    _row(r"\.thunk_metadata", "thunks", "which instruction each launch comes from", "GPU"),
    _row(r"\.constants\.ir-no-opt", "ir", "LLVM IR of the constants", "GPU"),
    _row(
        r"\.(?P<item>__compute_module_.+)\.ir-no-opt",
        "ir",
        "LLVM IR of {} as handed to LLVM",
        "CPU",
    ),
    _row(
        r"\.(?P<item>__compute_module_.+)\.ir-with-opt",
        "ir",
        "LLVM IR of {} as LLVM has optimized it",
        "CPU",
    ),
    _row(r"\.(?P<item>\d+)\.ir-no-opt", "ir", "LLVM IR number {} as handed to LLVM", "GPU"),
    _row(
        r"\.(?P<item>\d+)\.ir-with-opt", "ir", "LLVM IR number {} as LLVM has optimized it", "GPU"
    ),
    _row(
        r"\.ir-no-opt",
        "ir",
        "LLVM IR as handed to LLVM, of the kernel or part named before",
        "",
        True,
    ),
    _row(
        r"\.ir-with-opt",
        "ir",
        "LLVM IR as LLVM has optimized it, of the kernel or part named before",
        "",
        True,
    ),
    _row(r"\.obj-file\.(?P<item>.+)", "object", "object code of {}", "CPU"),
    _row(r"\.snapshot\.(?P<item>-?\d+)", "snapshot", "module, arguments and result of launch {}"),
    _row(
        r"\.execution_(?P<item>\d{4,})\.hlo_unoptimized_snapshot",
        "snapshot",
        "module before optimization and arguments of execution {}",
    ),
    _row(
        r"\.execution_(?P<item>\d{4,})\.hlo_snapshot",
        "snapshot",
        "module and arguments of execution {}",
    ),
    _row(
        r"\.autotuner_(?P<item>\d+\..+)\.(?:before|after)",
        "autotuning",
        "instruction tried by the autotuner, as a module of its own: {}",
        "GPU",
    ),
    _row(
        r"\.metadata", "passes", "every pass that ran, whether it changed the module, and its time"
    ),
    _row(
        r"\.(?:flagfile|tpu_comp_env|hlo_module_config|execution_options|target_arguments|basic_compiler_metadata|transfer_stats)",
        "options",
        "options and facts of the TPU compiler",
        "TPU",
    ),
    _row(r"\.fdo_profile", "options", "profile for feedback-directed optimization", "GPU"),
    _row(
        r"-(?:pre-optimization|post-optimization|post-lowering)",
        "ir",
        "MLIR of a kernel at that stage of its emitter (--xla_dump_emitter_re)",
        "CPU",
        True,
    ),
    _row(r"\.mlir-passes", "ir", "MLIR of a kernel before every pass of its emitter", "CPU", True),
    _row(r"\.(?:before_validation\.)?ttir", "ir", "Triton IR of a fusion", "GPU", True),
    _row(
        r"\._fusion",
        "graph",
        "what the fusion pass decided, step by step (--xla_dump_fusion_visualization)",
    ),
    _row(r"\.schedule", "options", "what the latency-hiding scheduler decided"),
)

_EXTENSION_MEANINGS = {
    ".hlo.pb.gz": "HloProto, compressed",
    ".hlo.pb": "HloProto, binary",
    ".top_level.html": "page with the graph, fusions as one box each",
    ".textproto": "protobuf text",
    ".pbtxt": "protobuf text",
    ".pb.gz": "protobuf, compressed",
    ".pb": "protobuf, binary",
    ".html": "page with the graph",
    ".txt.gz": "text, compressed",
    ".txt": "text",
    ".dot": "graph for Graphviz",
    ".url": "address of a rendered graph",
    ".hlo": "HLO text",
    ".mlir": "MLIR text",
    ".log": "log",
    ".ll": "LLVM IR",
    ".ptx": "PTX, code for NVIDIA GPUs",
    ".o": "object file",
    ".s": "assembly",
    ".riegeli": "HloProto split into records",
    ".pyz": "self-contained viewer",
    ".json": "JSON",
}

INPUT_FILES = {
    "module": "the program as the compiler was given it, in StableHLO",
    "compile_options": "CompileOptions, with every option that was set",
    "topology": "the devices that it was compiled for",
}
"""Files of the folder `module_NNNN.NAME/`, extensions aside."""

BY_EXTENSION = {
    ".ptx": ("object", "GPU", "{} of the module's kernels"),
    ".ll": ("ir", "", "{} of the module"),
    ".o": ("object", "CPU", "{} of the module"),
    ".s": ("object", "", "{} of the module"),
    ".hlo": ("ir", "GPU", "a fusion as a module of its own (--xla_dump_emitter_re)"),
}
"""Kind, platform and meaning of names that say no more than their extension."""

EXTENSIONS = tuple(sorted(_EXTENSION_MEANINGS, key=len, reverse=True))
"""Known extensions, longest first."""


def extension_meaning(extension: str) -> str:
    """What an extension says."""
    return _EXTENSION_MEANINGS.get(
        extension, "no extension that XLA gives" if extension else "no extension"
    )
