"""The recorded stages of a module in a folder of dumps, oldest first."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from mlirhlo.debug.index import read_folder
from mlirhlo.debug.index.folder import DumpedModule, DumpFile
from mlirhlo.debug.trials.texts import module_text
from mlirhlo.diagnostics import HloError, error
from mlirhlo.formats import load

_LOOSE = re.compile(
    r"(?P<step>\d+)\.(?P<pipeline>.+?)\.after_(?P<after>.+?)(?:\.before_.*)?\.(?:hlo|txt)"
)
"""Files of passes without a module's name in front."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The module after one pass."""

    pass_name: str
    """`before_optimizations` for what the compiler was given, `after_optimizations` for the end."""
    pipeline: str
    step: int | None
    file: str
    """Below the folder."""
    text: str = field(repr=False, compare=False)

    @property
    def label(self) -> str:
        """How reports call it."""
        return f"{self.pass_name} ({self.pipeline})" if self.pipeline else self.pass_name


@dataclass(frozen=True, slots=True)
class RecordedModule:
    """The stages of one module."""

    name: str
    folder: str
    stages: tuple[Stage, ...]
    dumped: DumpedModule | None
    """As the index of the folder has it; None for loose files of passes."""


def read_stages(folder: str, module: str = "") -> RecordedModule:
    """The stages of a module, by its name, a part of it, or its number; of the likely program for the empty text.

    Raises `HloError`: HLO0544 for no folder and no such module, HLO0863 for a module with fewer than two stages.
    """
    dump = read_folder(folder)
    if not dump.modules and (loose := _loose(folder)):
        return _checked(RecordedModule(os.path.basename(folder.rstrip("/")), folder, loose, None))
    found = dump.find(module)
    stages = [_stage(found, files) for files in found.stages]
    return _checked(RecordedModule(found.label, folder, tuple(s for s in stages if s), found))


def _checked(module: RecordedModule) -> RecordedModule:
    if len(module.stages) < 2:
        raise error(
            "HLO0863",
            f"{module.folder}: {len(module.stages)} stages of {module.name} are recorded, at least two are compared",
            help="dump with --xla_dump_hlo_pass_re=.*",
        )
    return module


def _stage(module: DumpedModule, files: list[DumpFile]) -> Stage | None:
    """The stage that some files hold: the first of them with all constants, else the first that is read."""
    texts = [(file, text) for file in files if (text := text_of_file(module, file))]
    if not texts:
        return None
    file, text = next((t for t in texts if "{...}" not in t[1]), texts[0])
    name = file.name
    title = {"before": "before_optimizations", "after": "after_optimizations"}.get(name.kind, "")
    title = name.after or title or name.suffix
    return Stage(title, name.pipeline, name.step, file.path, text)


def text_of_file(module: DumpedModule, file: DumpFile) -> str:
    """HLO text of a file; empty for what holds no module."""
    extension = file.name.extension.removesuffix(".gz")
    data = module.read(file)
    if extension in (".txt", ".hlo"):
        return data.decode("utf-8", "surrogateescape")
    if extension in (".pb", ".hlo.pb"):
        try:
            return module_text(load(data, name=file.path).module)
        except HloError:
            return ""
    return ""


def _loose(folder: str) -> tuple[Stage, ...]:
    found: list[tuple[int, Stage]] = []
    for name in sorted(os.listdir(folder)):
        match = _LOOSE.fullmatch(name)
        if match is not None:
            with open(
                os.path.join(folder, name), encoding="utf-8", errors="surrogateescape"
            ) as file:
                text = file.read()
            step = int(match["step"])
            found.append((step, Stage(match["after"], match["pipeline"], step, name, text)))
    return tuple(stage for _, stage in sorted(found, key=lambda row: row[0]))
