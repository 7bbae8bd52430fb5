"""What is different between two modules, or between two folders of dumps."""

from mlirhlo.debug.diff.folders import FolderDiff, ProgramDiff, diff_folders
from mlirhlo.debug.diff.modules import Change, InstructionDiff, ModuleDiff, diff_modules

__all__ = [
    "Change", "FolderDiff", "InstructionDiff", "ModuleDiff", "ProgramDiff", "diff_folders",
    "diff_modules",
]  # fmt: skip
