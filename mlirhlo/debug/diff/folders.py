"""Two folders of dumps, program by program: passes, instructions, fusions, operations, bytes, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.debug.bisect.stages import text_of_file
from mlirhlo.debug.diff.modules import diff_modules
from mlirhlo.debug.index import read_folder
from mlirhlo.debug.index.folder import DumpedModule
from mlirhlo.debug.trials.conditions import load_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import buffer_assignment, cost
    from mlirhlo.debug.index import changes as index_changes


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

COLUMNS = ("passes", "instructions", "fusions", "flops", "bytes", "memory")
"""Recorded passes that changed the module; the others of the last stage, memory in bytes of its buffers."""


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """One program in both folders, or in one of them."""

    name: str
    before: Mapping[str, float] | None
    """By column; None where the folder does not have the program. Columns that cannot be known are left out."""
    after: Mapping[str, float] | None
    differing: int | None = None
    """Instructions of the last stages that are not unchanged; None where they cannot be compared."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Columns that differ."""
        if self.before is None or self.after is None:
            return COLUMNS
        found = tuple(c for c in COLUMNS if self.before.get(c) != self.after.get(c))
        return (*found, "differing") if self.differing else found


@dataclass(frozen=True, slots=True)
class FolderDiff:
    """All programs of two folders, by name."""

    programs: tuple[ProgramDiff, ...]

    @property
    def is_same(self) -> bool:
        """Whether no program differs in any column."""
        return not any(program.changed for program in self.programs)


def diff_folders(
    before: str, after: str, progress: Callable[[int, int, str], None] | None = None
) -> FolderDiff:
    """Compares two folders of dumps. Raises `HloError` HLO0544."""
    sides = [_programs(read_folder(folder).modules) for folder in (before, after)]
    names = list(dict.fromkeys((*sides[0], *sides[1])))
    found: list[ProgramDiff] = []
    for number, name in enumerate(names):
        if progress is not None:
            progress(number, len(names), name)
        modules = [side.get(name) for side in sides]
        figures = [None if module is None else figures_of(module) for module in modules]
        texts = ["" if module is None else _last_text(module) for module in modules]
        found.append(ProgramDiff(name, figures[0], figures[1], _differing(texts[0], texts[1])))
    return FolderDiff(tuple(found))


def _programs(modules: list[DumpedModule]) -> dict[str, DumpedModule]:
    """Programs by name: numbers of modules change from run to run, those of one name are told apart by order."""
    found: dict[str, DumpedModule] = {}
    for module in modules:
        name = module.name or module.label
        number = 2
        while name in found:
            name, number = f"{module.name or module.label}#{number}", number + 1
        found[name] = module
    return found


def figures_of(module: DumpedModule) -> dict[str, float]:
    """The columns of a program; without those that its last stage does not tell."""
    found: dict[str, float] = {
        "passes": sum(change.has_changed for change in index_changes.changes(module))
    }
    try:
        found |= _of_module(load_module(_last_text(module), module.label))
    except (HloError, ValueError, KeyError):
        pass
    return found


def _last_text(module: DumpedModule) -> str:
    """The text of the last recorded stage; empty where there is none."""
    files = [file for stage in reversed(module.stages) for file in stage]
    return next((text for file in files if (text := text_of_file(module, file))), "")


def _differing(before: str, after: str) -> int | None:
    if not before or not after:
        return None
    try:
        counts = diff_modules(before, after).counts
    except (HloError, ValueError, KeyError):
        return None
    return sum(count for kind, count in counts.items() if kind != "unchanged")


def _of_module(module: ModuleOp) -> dict[str, float]:
    view = HloModule(module)
    opcodes = [op.opcode.name for op in view.instructions]
    found: dict[str, float] = {
        "instructions": len(opcodes),
        "fusions": opcodes.count("fusion"),
    }
    costs = cost.analyse(module)
    found["flops"], found["bytes"] = costs.flops, costs.bytes_accessed
    try:
        found["memory"] = buffer_assignment.assign_buffers(view).total_bytes
    except (HloError, ValueError, KeyError):
        pass
    return found
