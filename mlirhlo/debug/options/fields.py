"""`DebugOptions`: XLA's flags that steer dumps and graphs, and those this compiler listens to.

A field is a flag: its name, type and default are XLA's, its help says what it does here. XLA's other
flags are rows of `xla_flags.tsv`: known, and without effect.
Source: dumps reference, "Flag tables"; names of other times, "JAX, TensorFlow and historic switches".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T", bool, int, str, tuple[str, ...])


@dataclass(frozen=True, slots=True)
class FlagInfo:
    """What is known of a flag beside its name and default."""

    help: str
    type: str
    """`bool`, `int32`, `int64`, `string`, `string[]`: as XLA's usage text names it."""
    group: str
    is_flag: bool = True
    """Whether `XLA_FLAGS` may set it; a field of compile options only, otherwise."""
    has_effect: bool = True
    """Whether this compiler listens."""
    from_libtpu: bool = False
    """Whether it is a flag of the TPU compiler, which XLA takes from LIBTPU_INIT_ARGS only."""


def _option(default: T, help: str, group: str, type: str = "", **more: bool) -> T:
    names = {bool: "bool", int: "int32", str: "string", tuple: "string[]"}
    kind = type or names[default.__class__]
    return field(default=default, metadata={"flag": FlagInfo(help, kind, group, **more)})


WHERE, WHAT, WHICH, FORM, GRAPHS, PASSES, GPUS, OTHER_BACKENDS, GENERAL = (
    "Where dumps go",
    "What is written",
    "Of which modules, passes and kernels",
    "Form of what is written",
    "Graphs",
    "Passes",
    "Code for GPUs",
    "Other backends: known, no effect here",
    "General",
)


@dataclass(frozen=True, kw_only=True)  # without slots: they cost a second class at start-up
class DebugOptions:
    """XLA's debug options as this compiler knows them; made by `resolve`."""

    # ---------------------------------------------------------------- where
    xla_dump_to: str = _option(
        "",
        "Directory of all dumps, made when missing; `-` prints to standard output, `sponge` is the"
        " directory that TEST_UNDECLARED_OUTPUTS_DIR names.",
        WHERE,
    )
    xla_dump_hlo_to_subfolder: bool = _option(
        False, "Write to DIR/MODULE/HOST_PID/, so that no two processes meet.", WHERE
    )
    xla_dump_include_timestamp: bool = _option(
        False,
        "Put the microsecond of the module's first dump in front of the names of its HLO files.",
        WHERE,
    )
    xla_dump_max_hlo_modules: int = _option(
        -1, "Dump only so many modules; 0 and less: all of them.", WHERE
    )
    xla_enable_dumping: bool = _option(
        True, "False writes no files, whatever else is set.", WHERE, is_flag=False
    )
    xla_mosaic_dump_to: str = _option(
        "",
        "Directory of the stages of kernels (Mosaic). Here also taken from XLA_FLAGS.",
        WHERE,
        from_libtpu=True,
    )
    xla_mosaic_enable_dump_debug_info: bool = _option(
        False, "Source places in the stages of kernels.", FORM, from_libtpu=True
    )
    # ---------------------------------------------------------------- what
    xla_dump_hlo_as_text: bool = _option(
        False, "HLO text and the four reports on buffers; the default of all formats.", WHAT
    )
    xla_dump_hlo_as_proto: bool = _option(
        False, "HloProto (`.hlo.pb`), and the memory report as a proto.", WHAT
    )
    xla_dump_hlo_as_dot: bool = _option(False, "The graph as Graphviz source (`.dot`).", WHAT)
    xla_dump_hlo_as_html: bool = _option(
        False, "The graph as a page that needs no network (`.html`).", WHAT
    )
    xla_dump_hlo_as_url: bool = _option(
        False, "An address of the graph, on standard output and as `.url`.", WHAT
    )
    xla_dump_hlo_snapshots: bool = _option(
        False, "An HloSnapshot of every execution: optimized module, inputs, result.", WHAT
    )
    xla_dump_hlo_unoptimized_snapshots: bool = _option(
        False,
        "An HloUnoptimizedSnapshot of every execution: module as given and inputs. Suppresses the"
        " other dumps.",
        WHAT,
    )
    xla_dump_fusion_visualization: bool = _option(
        False, "A page of the fusions of every computation (`_fusion.html`).", WHAT
    )
    xla_dump_module_metadata: bool = _option(
        False, "All passes with their times (`module_NNNN.metadata.textproto`).", WHAT
    )
    xla_dump_buffer_assignment_analysis: bool = _option(
        True, "False leaves out the reports on values and live ranges.", WHAT
    )
    xla_dump_full_hlo_config: bool = _option(
        True, "The module's configuration (`config.pbtxt`).", WHAT, has_effect=False
    )
    xla_dump_latency_hiding_schedule: bool = _option(
        False, "The schedule of the latency-hiding scheduler.", WHAT, has_effect=False
    )
    # ---------------------------------------------------------------- which
    xla_dump_hlo_module_re: str = _option(
        "", "Only modules in whose name the expression is found.", WHICH
    )
    xla_dump_hlo_pass_re: str = _option(
        "",
        "The module before and after passes in whose name the expression is found; exactly `.*`"
        " leaves out what a pass has not changed.",
        WHICH,
    )
    xla_dump_hlo_pipeline_re: str = _option(
        "", "Of these, only the pipelines in whose name the expression is found.", WHICH
    )
    xla_dump_emitter_re: str = _option(
        "",
        "Stages of code generation: kernels in whose name the expression is found, as MLIR and as"
        " assembly, and the list of what runs.",
        WHICH,
    )
    # ---------------------------------------------------------------- form
    xla_dump_hlo_as_long_text: bool = _option(True, "False: HLO text in its short form.", FORM)
    xla_dump_large_constants: bool = _option(
        False, "Constants of more than ten elements in full instead of `{...}`.", FORM
    )
    xla_dump_disable_metadata: bool = _option(
        False, "Text without metadata and without the tables of stack frames.", FORM
    )
    xla_hlo_print_inline_stack_frames: bool = _option(
        False, "Source places in the instructions instead of numbers of stack frames.", FORM
    )
    xla_syntax_sugar_async_ops: bool = _option(
        False, "`add-start(…)` for an `async-start` whose computation is one `add`.", FORM
    )
    xla_dump_compress_protos: bool = _option(False, "gzip what `as_proto` writes.", FORM)
    xla_dump_enable_mlir_pretty_form: bool = _option(True, "False: MLIR in its generic form.", FORM)
    xla_debug_buffer_assignment_show_max: int = _option(
        15, "Buffers named when memory runs out.", FORM, "int64", has_effect=False
    )
    # ---------------------------------------------------------------- graphs
    xla_hlo_graph_addresses: bool = _option(
        False, "An address in every node: here its number, which is the same in every run.", GRAPHS
    )
    xla_hlo_graph_sharding_color: bool = _option(
        False, "Colours by sharding instead of by opcode.", GRAPHS
    )
    # ---------------------------------------------------------------- passes
    xla_disable_hlo_passes: tuple[str, ...] = _option(
        (), "Passes to leave out, between commas: NAME, NAME:RUN, PIPELINE/NAME, @ID.", PASSES
    )
    xla_enable_hlo_passes_only: tuple[str, ...] = _option(
        (), "The only passes to run, between commas: NAME, NAME:RUN, PIPELINE/NAME, @ID.", PASSES
    )
    xla_disable_all_hlo_passes: bool = _option(False, "Pipelines run empty.", PASSES)
    xla_unsupported_crash_on_hlo_pass_fix_max_iterations: bool = _option(
        False, "Fail when a pipeline still changes the module after 25 rounds.", PASSES
    )
    xla_unsupported_crash_on_hlo_pass_silent_hlo_change: bool = _option(
        False, "Fail when a pass changes the module and says it did not.", PASSES
    )
    xla_unsupported_crash_on_hlo_pass_noop_change: bool = _option(
        False, "Fail when a pass says that it changed the module and did not.", PASSES
    )
    # ---------------------------------------------------------------- general
    xla_flags_reset: bool = _option(
        False, "Read XLA_FLAGS anew for every compilation, instead of once per process.", GENERAL
    )
    xla_detailed_logging: bool = _option(
        True,
        "Changes no dump; false for small programs of `jit`, as JAX says it.",
        GENERAL,
        is_flag=False,
    )
    xla_hlo_profile: bool = _option(
        False, "Time by instruction; XLA has dropped it.", GENERAL, has_effect=False
    )
    xla_embed_ir_in_executable: bool = _option(
        False, "Keep the LLVM text with the executable.", GENERAL, has_effect=False
    )
    xla_backend_extra_options: tuple[str, ...] = _option(
        (), "`key=value,key2` for LLVM's command line.", GENERAL, "map", has_effect=False
    )
    # ---------------------------------------------------------------- newer
    xla_dump_hlo_as_riegeli: bool = _option(
        False, "HloProto in pieces; newer than the XLA measured.", WHAT, has_effect=False
    )
    xla_dump_compact_gte: bool = _option(
        False, "A shorter get-tuple-element; newer.", FORM, has_effect=False
    )
    xla_async_hlo_dump: bool = _option(
        False, "Dump by other threads; newer. Here dumps are written at once.", FORM,
        has_effect=False,
    )  # fmt: skip
    xla_async_hlo_dump_max_threads: int = _option(
        0, "Threads of it; 0: a quarter of the cores, 4 to 32.", FORM, has_effect=False
    )
    xla_async_hlo_dump_max_pending: int = _option(
        20, "Modules that wait for it.", FORM, has_effect=False
    )
    xla_enable_hlo_modules_upload: bool = _option(
        False, "Of libtpu; nothing is known of it.", GENERAL, has_effect=False
    )
    # ---------------------------------------------------------------- GPUs
    xla_gpu_target_config_filename: str = _option(
        "",
        "File that describes the GPU which code is made for, in the form of XLA's"
        " `gpu_target_config.pbtxt`.",
        GPUS,
    )
    xla_gpu_ptx_file: tuple[str, ...] = _option(
        (),
        "Files of PTX in place of the compiler's, of kernels that have an entry point there.",
        GPUS,
    )
    xla_gpu_llvm_ir_file: tuple[str, ...] = _option(
        (), "Files of LLVM IR in place of the compiler's, likewise.", GPUS
    )
    xla_gpu_deterministic_ops: bool = _option(
        False, "The same bits in every run: updates of a scatter are added in their order.", GPUS
    )
    xla_gpu_exclude_nondeterministic_ops: bool = _option(
        False, "Likewise: scatters have a form that is deterministic.", GPUS
    )
    # ---------------------------------------------------------------- other backends
    xla_gpu_dump_llvmir: bool = _option(
        False, "LLVM IR before every LLVM pass.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_dump_autotuned_instructions: bool = _option(
        False, "Instructions before and after autotuning.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_dump_autotuned_gemm_fusions: bool = _option(
        False, "Matrix products before and after autotuning.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_dump_autotune_results_to: str = _option(
        "", "File of autotuning results.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_dump_autotune_logs_to: str = _option(
        "", "File of the autotuner's log.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_experimental_dump_fdo_profiles: bool = _option(
        False, "A profile beside every HLO dump.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_experimental_dump_gpu_executable: bool = _option(
        False, "The executable as a proto.", OTHER_BACKENDS, has_effect=False
    )
    xla_gpu_print_compilation_stats: bool = _option(
        False, "Statistics of the compilation.", OTHER_BACKENDS, has_effect=False
    )
    xla_jf_dump_to: str = _option(
        "",
        "Directory of the TPU compiler's low-level code.",
        OTHER_BACKENDS,
        has_effect=False,
        from_libtpu=True,
    )
    xla_jf_dump_hlo_text: bool = _option(
        False, "HLO there.", OTHER_BACKENDS, has_effect=False, from_libtpu=True
    )
    xla_jf_dump_llo_text: bool = _option(
        True, "Low-level code there as text.", OTHER_BACKENDS, has_effect=False, from_libtpu=True
    )
    xla_jf_dump_llo_html: bool = _option(
        False, "As html.", OTHER_BACKENDS, has_effect=False, from_libtpu=True
    )
    xla_jf_dump_llo_proto: bool = _option(
        False, "As a proto.", OTHER_BACKENDS, has_effect=False, from_libtpu=True
    )
    xla_jf_dump_category_filter: str = _option(
        "all,-misc,-llvm,-proto,-binary-proto",
        "Which kinds.",
        OTHER_BACKENDS,
        has_effect=False,
        from_libtpu=True,
    )
    xla_jf_dump_use_subdirectories: bool = _option(
        False, "A directory a kind.", OTHER_BACKENDS, has_effect=False, from_libtpu=True
    )


_ASKING = re.compile(r"xla_dump_(?!hlo_as_long_text|buffer_|full_|enable_|max_|large_|disable_)")


@functools.lru_cache(maxsize=1024)
def asks_for_dumps(options: DebugOptions) -> bool:
    """Whether any flag that can lead to dumps is set; compilations without any pay nothing else."""
    return any(getattr(options, name) for name in flag_fields() if _ASKING.match(name))


@functools.cache
def flag_fields() -> Mapping[str, Field[Any]]:
    """The fields by name, in the order of their declaration."""
    return {member.name: member for member in fields(DebugOptions)}


def info_of(member: Field[Any]) -> FlagInfo:
    """What is known of a field beside its name and default."""
    found: FlagInfo = member.metadata["flag"]
    return found


ALIASES: Mapping[str, str] = {
    "xla_gpu_dump_hlo_unoptimized_snapshots": "xla_dump_hlo_unoptimized_snapshots",
    "xla_cpu_dump_unoptimized_hlo_snapshots": "xla_dump_hlo_unoptimized_snapshots",
}
"""Names of earlier releases that still mean the same."""

REPLACED: Mapping[str, str] = {
    "xla_generate_hlo_graph": "--xla_dump_hlo_as_dot with --xla_dump_hlo_module_re",
    "xla_hlo_graph_path": "--xla_dump_to",
    "xla_hlo_dump_as_graphdef": "--xla_dump_hlo_as_dot",
    "xla_hlo_tfgraph_device_scopes": "--xla_hlo_graph_sharding_color",
    "xla_log_hlo_text": "--xla_dump_to=- with --xla_dump_hlo_module_re",
    "xla_generate_hlo_text_to": "--xla_dump_to",
    "xla_dump_ir_to": "--xla_dump_to",
    "xla_dump_unoptimized_hlo_proto_to": "--xla_dump_to with --xla_dump_hlo_as_proto",
    "xla_dump_optimized_hlo_proto_to": "--xla_dump_to with --xla_dump_hlo_as_proto",
    "xla_dump_per_pass_hlo_proto_to": "--xla_dump_hlo_pass_re=.* with --xla_dump_hlo_as_proto",
    "xla_dump_computations_to": "--xla_dump_to with --xla_dump_hlo_as_proto",
    "xla_dump_executions_to": "--xla_dump_hlo_snapshots",
}
"""Flags before mid-2019, which XLA has forgotten, and what replaced them."""
