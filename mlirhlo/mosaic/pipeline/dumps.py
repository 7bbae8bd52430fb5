"""A file for every stage of a kernel: `TS-NNNN-mosaic-dump-NAME-STAGE.txt`.

`TS` is the nanosecond at which the kernel's compilation began, the same in all its files and in no
others; `NNNN` the stage's number; `NAME` the module's symbol name, else its kernel function's, else
`anonymous`. Stages that change nothing are written too, as tools compare by number; a stage that fails
writes `post-STAGE-failed`, and nothing follows it.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import HloError, error
from mlirhlo.formats.mosaic.printer import print_kernel
from mlirhlo.importing import LATE
from mlirhlo.mosaic.attributes import string_of
from mlirhlo.mosaic.target.structure import entry_of

with LATE:
    from mlirhlo.mosaic.pipeline import stages


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_LONGEST = 250
"""Characters of a file's name."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_lock = threading.Lock()
_last = [0]


def _moment() -> int:
    """Nanoseconds now, later than every moment before."""
    with _lock:
        _last[0] = max(time.time_ns(), _last[0] + 1)
        return _last[0]


def kernel_name(module: ModuleOp) -> str:
    """What a kernel's files are called after."""
    kernel = entry_of(module)
    found = string_of(module, "sym_name") or (
        string_of(kernel, "sym_name") if kernel is not None else None
    )
    return safe_name(found or "") or "anonymous"


def safe_name(name: str) -> str:
    """A kernel's name as files can have it."""
    return _UNSAFE.sub("_", name)


class StageDump:
    """The files of one kernel; an observer of `run_pipeline`."""

    def __init__(
        self,
        directory: str,
        name: str,
        *,
        debug_info: bool = False,
        clock: Callable[[], int] = _moment,
    ) -> None:
        self.directory, self.name, self.debug_info = directory, name, debug_info
        self.moment = clock()
        self.files: list[Path] = []

    def __call__(self, module: ModuleOp, stage: str, number: int) -> None:
        """Writes one stage. Raises `HloError` HLO0752 where the folder cannot be written."""
        text = print_kernel(module, debug_info=self.debug_info)
        file = self.file_name(stage, number)
        if self.directory == "-":
            sys.stdout.write(f"*** {file} ***\n{text}\n")
            return
        try:
            folder = Path(self.directory)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / file
            path.write_text(text if text.endswith("\n") else text + "\n")
        except OSError as problem:
            raise error(
                "HLO0752",
                f"the stages of kernel {self.name} cannot be written to {self.directory}: {problem}",
                help="name a folder that can be written in --xla_mosaic_dump_to",
            ) from problem
        self.files.append(path)

    def file_name(self, stage: str, number: int) -> str:
        """The name of a stage's file; too long names of kernels end in a hash of all of them."""
        name = self.name
        rest = len(f"{self.moment}-{number:04d}-mosaic-dump--{stage}.txt")
        if rest + len(name) > _LONGEST:
            mark = hashlib.sha256(name.encode()).hexdigest()[:16]
            name = f"{name[: _LONGEST - rest - 17]}_{mark}"
        return f"{self.moment}-{number:04d}-mosaic-dump-{name}-{stage}.txt"


def dump_stages(
    module: ModuleOp,
    directory: str,
    *,
    name: str | None = None,
    debug_info: bool = False,
    clock: Callable[[], int] = _moment,
    generation: str = "v5e",
) -> tuple[Path, ...]:
    """Runs the pipeline on a copy of a kernel, and writes a file a stage; gives the files.

    A stage that fails ends the files with `-failed`, and is no error here: the kernel itself was not
    changed.

    Raises `HloError` HLO0752 where the folder cannot be written.
    """
    dump = StageDump(directory, name or kernel_name(module), debug_info=debug_info, clock=clock)
    try:
        stages.run_pipeline(module.clone(), observe=dump, generation=generation)
    except HloError as problem:
        if problem.code == "HLO0752":
            raise
    return tuple(dump.files)
