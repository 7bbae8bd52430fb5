"""Names of dump files, taken apart: XLA's of every backend and age, Graphcore's, kernel dumps, JAX's.

    [TIMESTAMP.]module_ID[.NAME][.cl_CL].SUFFIX EXT

Source: dumps reference, "File names". A name that fits nothing is of kind `other`; nothing here fails.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from mlirhlo.debug.index.suffixes import (
    BY_EXTENSION,
    CLUSTERING,
    EXTENSIONS,
    INPUT_FILES,
    SUFFIXES,
    extension_meaning,
)


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says."""

    text: str
    kind: str = "other"
    """`boundary`, `during`, `before`, `after`, `report`, `options`, `ir`, `object`, `kernel`, …"""
    module_id: int | None = None
    module_name: str = ""
    timestamp_us: int | None = None
    change_number: str = ""
    """`cl_…` of closed builds."""
    prefix: str = ""
    """What stands before `module_`: a computation's name."""
    step: int | None = None
    pipeline: str = ""
    after: str = ""
    """Pass that has run."""
    before: str = ""
    """Pass that runs next."""
    suffix: str = ""
    """What is left between the module's name and the extension."""
    extension: str = ""
    platform: str = ""
    """CPU, GPU, TPU or IPU, where the name tells."""
    meaning: str = ""
    parts: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Each part of the name and what it means."""

    @property
    def is_text(self) -> bool:
        """Whether it holds the text of a whole module or kernel."""
        holds_it = self.kind in ("before", "after", "boundary", "during", "stage", "kernel")
        return holds_it and self.extension.removesuffix(".gz") in (".txt", ".hlo")


_MODULE = re.compile(
    r"(?:(?P<prefix>.+?)\.)??(?:(?P<time>\d{13,19})\.)?module_(?P<id>\d{4,})(?=\.|$)"
)
_STEP = re.compile(r"\.(?P<step>\d{4,})(?=\.[^.])")
_CHANGE = re.compile(r"\.(cl_\d+)(?=\.|$)")
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
_CLUSTERING = re.compile(rf"(?P<graph>{'|'.join(CLUSTERING)})(?:_(?P<number>\d+))?")
_EXECUTION = re.compile(r"module_(?P<name>.+)\.execution_(?P<number>\d{4,})\.hlo_snapshot")


def parse_name(name: str, known_names: Mapping[int, Collection[str]] | None = None) -> FileName:
    """Takes a file's name apart. `known_names` says what modules are called, by id, where other files
    have told: `module_0000.a.b.ir-no-opt.ll` alone does not say where the module's name ends. An id may
    have several names: processes count from 0, and some front ends compile in more than one client.
    """
    stem, extension = _split_extension(name)
    match = _MODULE.match(stem)
    if match is None:
        return _foreign(name, stem, extension)
    number = int(match["id"])
    parts: list[tuple[str, str]] = []
    if match["prefix"]:
        parts.append((match["prefix"], "the computation that the file is about"))
    time = int(match["time"]) if match["time"] else None
    if time is not None:
        parts.append(
            (
                match["time"],
                f"when the module was first dumped, {_when(time / 1e6)} (--xla_dump_include_timestamp)",
            )
        )
    parts.append(
        (
            f"module_{match['id']}",
            f"the module's id in its process: {number}; gaps are normal, clones take ids",
        )
    )
    found = FileName(
        name,
        module_id=number,
        timestamp_us=time,
        prefix=match["prefix"] or "",
        extension=extension,
    )
    rest = stem[match.end() :]
    found = _with_rest(found, rest, parts, _known(rest, (known_names or {}).get(number, ())))
    if extension:
        parts.append((extension, extension_meaning(extension)))
    return replace(found, parts=tuple(parts))


def _known(rest: str, names: Collection[str]) -> str | None:
    """The one of a module's known names that stands in `.NAME.SUFFIX`."""
    fitting = [name for name in names if f"{rest}.".startswith(f".{name}.")]
    if fitting:
        return max(fitting, key=len)
    return next(iter(names)) if len(names) == 1 else None


def _split_extension(name: str) -> tuple[str, str]:
    """Name without its extension, and the extension: the longest one that is known."""
    for extension in EXTENSIONS:
        if name.endswith(extension) and len(name) > len(extension):
            return name[: -len(extension)], extension
    return name, ""


def _with_rest(
    found: FileName, rest: str, parts: list[tuple[str, str]], known: str | None
) -> FileName:
    """Takes `.NAME.cl_N.SUFFIX` apart, adding to `parts`."""
    left, step, right = _at_step(rest, known)
    if step:
        found = replace(found, step=int(step), platform=found.platform)
        found = _name(found, left, parts)
        parts.append(
            (
                step,
                f"number {int(step)} of the dumps written between passes, per module, in compile order",
            )
        )
        return _at_pass(found, right, parts)
    for suffix in SUFFIXES:
        match = suffix.pattern.search(rest)
        if match is None:
            continue
        if known and rest.startswith(f".{known}.") and match.start() <= len(known):
            continue  # the number is the module name's: `module_0000.NAME.4.ir-no-opt.ll`
        left, right = rest[: match.start()], match.group().removeprefix(".")
        if suffix.kind == "ir" and not suffix.has_item and known and _split_item(left, known)[1]:
            continue  # the number is a kernel's: `module_0000.NAME.KERNEL.1.ir-no-opt.ll`
        if suffix.has_item:
            left, item = _split_item(left, known)
            right = f"{item}.{right}" if item else right
        found = _name(found, left, parts)
        meaning = suffix.meaning.format(match.groupdict().get("item") or "")
        if right:
            parts.append((right, meaning))
        platform = suffix.platform or found.platform
        return replace(found, kind=suffix.kind, suffix=right, platform=platform, meaning=meaning)
    if known is None and not found.extension:
        # A folder of compile inputs: nothing but the module's name.
        found = _name(found, rest, parts)
        return replace(found, kind="inputs", meaning="the folder of what the compiler was given")
    left, item = _split_item(rest, known)
    found = _name(found, left, parts)
    kind, platform, meaning = BY_EXTENSION.get(found.extension, ("other", "", "{}"))
    if item:
        what = (
            "running number of the module's IR files"
            if item.isdigit()
            else "part of the module that the file is about"
        )
        parts.append((item, what))
    meaning = meaning.format(extension_meaning(found.extension))
    return replace(
        found, kind=kind, platform=platform or found.platform, suffix=item, meaning=meaning
    )


def _at_step(rest: str, known: str | None) -> tuple[str, str, str]:
    """What stands before and after `.0003.`; empty strings where there is no step."""
    start = len(known) + 1 if known and rest.startswith(f".{known}.") else 0
    # A pass boundary follows the step; before it a name may have numbers of its own.
    end = max(rest.rfind(".after_"), rest.rfind(".before_"))
    matches = list(_STEP.finditer(rest, start, end if end > 0 else len(rest)))
    if not matches or end < 0:
        return rest, "", ""
    chosen = matches[-1]
    return rest[: chosen.start()], chosen["step"], rest[chosen.end() + 1 :]


def _name(found: FileName, left: str, parts: list[tuple[str, str]]) -> FileName:
    """Reads `.NAME.cl_N`."""
    change = _CHANGE.search(left)
    name = (left[: change.start()] if change else left).removeprefix(".")
    if name:
        parts.append((name, "the module's name"))
    else:
        parts.append(
            (
                "",
                "no module name: an empty one, one too long for a file name, or a dump before 2020",
            )
        )
    if change:
        parts.append((change[1], "change number of the closed build that compiled it"))
        found = replace(found, change_number=change[1], platform="TPU")
    return replace(found, module_name=name)


def _at_pass(found: FileName, right: str, parts: list[tuple[str, str]]) -> FileName:
    """Reads `PIPELINE.after_PASS.before_PASS`, `PASS.TEXT` of a dump within a pass, or the old form."""
    # Pipelines' names may have dots: the last `.after_` counts, and the last `.before_` behind it.
    start = right.rfind(".after_")
    end = right.rfind(".before_")
    if 0 <= start < end:
        pipeline, after, before = right[:start], right[start + 7 : end], right[end + 8 :]
    elif start >= 0 and not found.extension:
        pipeline, after, before = right[:start], right[start + 7 :], ""
    else:
        pass_name, _, text = right.partition(".")
        parts.append((pass_name, "the pass that wrote the file while it ran"))
        parts.append((text, "the moment within the pass"))
        meaning = f"the module within {pass_name}: {text.replace('_', ' ')}"
        return replace(found, kind="during", after=pass_name, suffix=text, meaning=meaning)
    parts.append((pipeline, "the pipeline"))
    starts, ends = "the pipeline has just started", "the pipeline ends here"
    parts.append((f"after_{after}", starts if after == "pipeline-start" else f"{after} has run"))
    if before:
        parts.append(
            (f"before_{before}", ends if before == "pipeline-end" else f"{before} runs next")
        )
    platform = "IPU" if pipeline == "IPU" else found.platform
    meaning = f"the module after {after} in {pipeline}"
    return replace(
        found,
        kind="boundary",
        pipeline=pipeline,
        after=after,
        before=before,
        platform=platform,
        meaning=meaning,
    )


def _split_item(left: str, known: str | None) -> tuple[str, str]:
    """The module's name and what follows it."""
    if known is not None and (left == f".{known}" or left.startswith(f".{known}.")):
        return f".{known}", left[len(known) + 2 :]
    words = left.removeprefix(".").split(".")
    count = 1
    # Old clients appended a number to the module's name.
    while count < len(words) and words[count].isdigit() and len(words[count]) > 1:
        count += 1
    if len(words) == 1:
        return left, ""
    return "." + ".".join(words[:count]), ".".join(words[count:])


def _foreign(name: str, stem: str, extension: str) -> FileName:
    """Names without `module_ID`."""
    parts: list[tuple[str, str]] = []

    def made(kind: str, meaning: str, **fields: object) -> FileName:
        if extension:
            parts.append((extension, extension_meaning(extension)))
        base = FileName(name, kind=kind, extension=extension, meaning=meaning, parts=tuple(parts))
        return replace(base, **cast("dict[str, Any]", fields))

    if extension == ".pbtxt" and (match := _CLUSTERING.fullmatch(stem)):
        parts.append((match["graph"], "the pass of TensorFlow's auto-clustering that wrote it"))
        if match["number"]:
            parts.append(
                (match["number"], "number of the graph of this name in its process, from 0")
            )
        meaning = f"{CLUSTERING[match['graph']]} (TF_DUMP_GRAPH_PREFIX)"
        return made("tensorflow", meaning, step=int(match["number"] or 0), after=match["graph"])
    if match := _MOSAIC.fullmatch(stem):
        module, stage = match["module"], match["stage"]
        time = int(match["time"]) if match["time"] else None
        if time is not None:
            when = f"when the kernel was compiled, {_when(time / 1e9)} (nanoseconds)"
            parts.append((match["time"], when))
        parts += [
            (match["step"], f"stage {int(match['step'])} of the kernel compiler"),
            ("mosaic-dump", "written by --xla_mosaic_dump_to"),
            (module, "symbol name of the kernel's module; JAX's have none"),
            (stage, "the stage that has run"),
        ]
        return made(
            "kernel",
            f"a Mosaic kernel, {stage.replace('-', ' ')}",
            module_name=module,
            step=int(match["step"]),
            after=stage,
            platform="TPU",
            timestamp_us=None if time is None else time // 1000,
        )
    if match := _LOW_LEVEL.fullmatch(stem):
        step = int(match["step"]) if match["step"] else None
        parts += [
            (match["time"], "when the program was compiled, in nanoseconds"),
            (match["program"], "the fusion or program"),
            (match["step"] or "", "number of the stage; 100 and up sort before 11"),
            (match["stage"], "the stage that has run"),
        ]
        return made(
            "kernel",
            f"low-level code of {match['program']}, {match['stage']}",
            step=step,
            after=match["stage"],
            platform="TPU",
            suffix=match["program"],
        )
    if match := _JAX_IR.fullmatch(stem):
        parts += [
            (f"jax_ir{match['number']}", "counter of modules in the process"),
            (match["module"], "the module's name"),
            ("compile", "as handed to the compiler"),
        ]
        meaning = "StableHLO as JAX hands it to the compiler (JAX_DUMP_IR_TO)"
        return made("stablehlo", meaning, module_name=match["module"])
    if match := _JAXPR.match(stem):
        parts += [
            (f"jax_{match['number']}", "counter of traced functions"),
            (match["function"], "the function"),
            (match["what"], "what is written of it"),
        ]
        return made("jaxpr", f"{match['what']} of {match['function']} (JAX_DUMP_IR_TO)")
    if match := _LLVM_PASS.fullmatch(stem):
        parts += [
            (match["module"], "the LLVM module"),
            (f"pass-{match['number']}", "number of the LLVM pass"),
            (f"before.{match['pass']}", "the LLVM pass that runs next"),
        ]
        meaning = f"LLVM IR before {match['pass']} (--xla_gpu_dump_llvmir)"
        number = int(match["number"])
        return made("ir", meaning, platform="GPU", step=number, before=match["pass"])
    if match := _TRITON.fullmatch(stem):
        parts += [
            (match["module"], "the module's name; no id"),
            (match["fusion"], "the fusion"),
            (match["stage"], "pipeline of its emitter, with the IR before every pass"),
        ]
        meaning = f"IR of fusion {match['fusion']} before every pass of {match['stage']}"
        where = " (--xla_dump_emitter_re)"
        return made("ir", meaning + where, module_name=match["module"], platform="GPU")
    if stem in INPUT_FILES:
        parts.append((stem, INPUT_FILES[stem]))
        return made("inputs", INPUT_FILES[stem])
    if match := _EXECUTION.fullmatch(stem):
        parts += [
            (f"module_{match['name']}", "the module's name; no id"),
            (f"execution_{match['number']}", "counter of executions"),
        ]
        return made(
            "snapshot", "a module with the arguments of one execution", module_name=match["name"]
        )
    parts.append((stem, "not a name that XLA gives to dumps"))
    return made("other", extension_meaning(extension))


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return "a time out of range"
