"""Names of dump files without `module_ID`: of kernel compilers, JAX, TensorFlow, LLVM."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mlirhlo.debug.index.suffixes import INPUT_FILES, extension_meaning
from mlirhlo.debug.index.tensorflow_names import graph_file

_MOSAIC = re.compile(
    r"(?:(?P<time>\d{16,20})-)?(?P<step>\d{4})-mosaic-dump-"
    # Names of kernels may have dashes; stages begin with one of these words.
    r"(?P<module>.*?)-(?P<stage>(?:original|post|sparsecore|mosaic-module)\b.*)"
)
_LOW_LEVEL = re.compile(
    r"(?P<time>\d{16,20})-(?P<program>.+?)-(?:(?P<step>\d{2,3})-)?(?P<stage>[^-].*)"
)
_JAX_IR = re.compile(r"jax_ir(?P<number>\d{4,})_(?P<module>.*)_compile")
_JAXPR = re.compile(r"jax_(?P<number>\d{6,})_(?P<function>.*?)\.(?P<what>jaxpr|eqn_count_pprof)")
_LLVM_PASS = re.compile(r"(?P<module>.+)\.pass-(?P<number>\d+)\.before\.(?P<pass>.+)")
_TRITON = re.compile(
    r"(?P<module>[^.]+)\.(?P<fusion>.+)\.(?P<stage>canonicalize-cse|xtile-to-triton|triton-to-llvm)"
)
_EXECUTION = re.compile(r"module_(?P<name>.+)\.execution_(?P<number>\d{4,})\.hlo_snapshot")


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a name without `module_ID` says."""

    kind: str
    meaning: str
    parts: Sequence[tuple[str, str]]
    fields: Mapping[str, object] = field(default_factory=dict[str, object])
    """More of `FileName`."""


def _mosaic(match: re.Match[str]) -> Foreign:
    module, stage = match["module"], match["stage"]
    time = int(match["time"]) if match["time"] else None
    parts: list[tuple[str, str]] = []
    if time is not None:
        when = f"when the kernel was compiled, {time_text(time / 1e9)} (nanoseconds)"
        parts.append((match["time"], when))
    parts += [
        (match["step"], f"stage {int(match['step'])} of the kernel compiler"),
        ("mosaic-dump", "written by --xla_mosaic_dump_to"),
        (module, "symbol name of the kernel's module; JAX's have none"),
        (stage, "the stage that has run"),
    ]
    fields = {
        "module_name": module,
        "step": int(match["step"]),
        "after": stage,
        "platform": "TPU",
        "timestamp_us": None if time is None else time // 1000,
    }
    return Foreign("kernel", f"a Mosaic kernel, {stage.replace('-', ' ')}", parts, fields)


def _low_level(match: re.Match[str]) -> Foreign:
    program, stage = match["program"], match["stage"]
    parts = [
        (match["time"], "when the program was compiled, in nanoseconds"),
        (program, "the fusion or program"),
        (match["step"] or "", "number of the stage; 100 and up sort before 11"),
        (stage, "the stage that has run"),
    ]
    step = int(match["step"]) if match["step"] else None
    fields = {"step": step, "after": stage, "platform": "TPU", "suffix": program}
    return Foreign("kernel", f"low-level code of {program}, {stage}", parts, fields)


def _jax_ir(match: re.Match[str]) -> Foreign:
    parts = [
        (f"jax_ir{match['number']}", "counter of modules in the process"),
        (match["module"], "the module's name"),
        ("compile", "as handed to the compiler"),
    ]
    meaning = "StableHLO as JAX hands it to the compiler (JAX_DUMP_IR_TO)"
    return Foreign("stablehlo", meaning, parts, {"module_name": match["module"]})


def _jaxpr(match: re.Match[str]) -> Foreign:
    parts = [
        (f"jax_{match['number']}", "counter of traced functions"),
        (match["function"], "the function"),
        (match["what"], "what is written of it"),
    ]
    return Foreign("jaxpr", f"{match['what']} of {match['function']} (JAX_DUMP_IR_TO)", parts)


def _llvm_pass(match: re.Match[str]) -> Foreign:
    parts = [
        (match["module"], "the LLVM module"),
        (f"pass-{match['number']}", "number of the LLVM pass"),
        (f"before.{match['pass']}", "the LLVM pass that runs next"),
    ]
    meaning = f"LLVM IR before {match['pass']} (--xla_gpu_dump_llvmir)"
    fields = {"platform": "GPU", "step": int(match["number"]), "before": match["pass"]}
    return Foreign("ir", meaning, parts, fields)


def _triton(match: re.Match[str]) -> Foreign:
    parts = [
        (match["module"], "the module's name; no id"),
        (match["fusion"], "the fusion"),
        (match["stage"], "pipeline of its emitter, with the IR before every pass"),
    ]
    meaning = f"IR of fusion {match['fusion']} before every pass of {match['stage']}"
    fields = {"module_name": match["module"], "platform": "GPU"}
    return Foreign("ir", f"{meaning} (--xla_dump_emitter_re)", parts, fields)


def _execution(match: re.Match[str]) -> Foreign:
    parts = [
        (f"module_{match['name']}", "the module's name; no id"),
        (f"execution_{match['number']}", "counter of executions"),
    ]
    meaning = "a module with the arguments of one execution"
    return Foreign("snapshot", meaning, parts, {"module_name": match["name"]})


_DESCRIBED: tuple[
    tuple[Callable[[str], re.Match[str] | None], Callable[[re.Match[str]], Foreign]], ...
] = (
    (_MOSAIC.fullmatch, _mosaic),
    (_LOW_LEVEL.fullmatch, _low_level),
    (_JAX_IR.fullmatch, _jax_ir),
    (_JAXPR.match, _jaxpr),
    (_LLVM_PASS.fullmatch, _llvm_pass),
    (_TRITON.fullmatch, _triton),
    (_EXECUTION.fullmatch, _execution),
)
"""Forms of names, in the order in which they are tried."""


def foreign(stem: str, extension: str) -> Foreign:
    """What a name says, without and by its extension; of an unknown one, what its extension says."""
    if extension == ".pbtxt" and (graph := graph_file(stem)) is not None:
        return Foreign("tensorflow", *graph)
    if stem in INPUT_FILES:
        return Foreign("inputs", INPUT_FILES[stem], [(stem, INPUT_FILES[stem])])
    for find, describe in _DESCRIBED:
        if (match := find(stem)) is not None:
            return describe(match)
    unknown = [(stem, "not a name that XLA gives to dumps")]
    return Foreign("other", extension_meaning(extension), unknown)


def time_text(seconds: float) -> str:
    """A time since 1970 as text."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return "a time out of range"
