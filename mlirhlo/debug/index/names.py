"""Names of dump files, taken apart: XLA's of every backend and age, Graphcore's, kernel dumps, JAX's.

    [TIMESTAMP.]module_ID[.NAME][.cl_CL].SUFFIX EXT

Source: dumps reference, "File names". A name that fits nothing is of kind `other`; nothing here fails.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mlirhlo.debug.index.foreign_names import foreign, time_text
from mlirhlo.debug.index.suffixes import (
    BY_EXTENSION,
    EXTENSIONS,
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
                f"when the module was first dumped, {time_text(time / 1e6)} (--xla_dump_include_timestamp)",
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
    said = foreign(stem, extension)
    parts = list(said.parts)
    if extension:
        parts.append((extension, extension_meaning(extension)))
    base = FileName(
        name, kind=said.kind, extension=extension, meaning=said.meaning, parts=tuple(parts)
    )
    return replace(base, **cast("dict[str, Any]", said.fields))
