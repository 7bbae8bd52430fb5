"""The files of a dump folder, module by module. Only names and sizes are read; contents when asked for."""

from __future__ import annotations

import gzip
import os
import re
import stat
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mlirhlo.debug.index.names import FileName, parse_name
from mlirhlo.diagnostics import error

_INSTRUCTION = re.compile(rb"^[ \t]+(?:ROOT )?%?[^\s=(]+ = ", re.MULTILINE)
_COMPILE_INPUTS = re.compile(r"(?:\d{13,19}\.)?module_\d{4,}(?:\..*)?")
_MAX_DEPTH = 32
_ORDER = {"before": -1, "boundary": 0, "during": 0, "stage": 1, "after": 1}
_FIXED = (
    "after_spmd_partitioner",
    "after_optimizations_before_buffer_assignment",
    "after_optimizations",
    "after_optimizations_after_buffer_assignment",
    "after_codegen",
)
"""Fixed suffixes in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file."""

    path: str
    """Below the folder, with slashes."""
    name: FileName
    size_bytes: int
    modified: float
    """Seconds since the epoch."""


@dataclass(slots=True)
class DumpedModule:
    """The files of one module (or, of kernel dumps, one kernel)."""

    folder: str
    """The folder that was indexed."""
    directory: str
    """Where the files lie below it; empty for the folder itself."""
    module_id: int | None
    name: str
    timestamp_us: int | None
    files: list[DumpFile] = field(default_factory=list[DumpFile])
    _count: int | None = None

    @property
    def label(self) -> str:
        """How people call it: `module_0000.jit_mlp`."""
        number = f"module_{self.module_id:04d}" if self.module_id is not None else ""
        return ".".join(filter(None, (number, self.name))) or "unnamed"

    @property
    def platform(self) -> str:
        """CPU, GPU, TPU or IPU; empty when no name tells."""
        found = [file.name.platform for file in self.files if file.name.platform]
        return max(sorted(set(found)), key=found.count) if found else ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def seconds(self) -> float:
        """From the first file written to the last: about the time of the compilation."""
        times = [file.modified for file in self.files]
        return max(times) - min(times) if times else 0.0

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel and not a program."""
        return self.module_id is None and any(file.name.kind == "kernel" for file in self.files)

    @property
    def stages(self) -> list[list[DumpFile]]:
        """Files that hold the module at one moment, oldest first; formats of one moment together."""
        moments: dict[tuple[int, int, str], list[DumpFile]] = defaultdict(list)
        for file in self.files:
            name = file.name
            if name.kind in _ORDER or (name.kind == "kernel" and name.step is not None):
                is_fixed = name.kind in ("stage", "after")
                place = _fixed_place(name.suffix) if is_fixed else name.step or 0
                moments[_ORDER.get(name.kind, 0), place, name.after or name.suffix].append(file)
        return [sorted(files, key=_preference) for _, files in sorted(moments.items())]

    @property
    def passes(self) -> int:
        """Dumps between passes."""
        return sum(files[0].name.kind in ("boundary", "during", "kernel") for files in self.stages)

    @property
    def instructions(self) -> int | None:
        """Instructions of the latest text of the module; None without a text."""
        if self._count is None:
            self._count = self._counted()
        return self._count if self._count >= 0 else None

    def _counted(self) -> int:
        for files in sorted(self.stages, key=lambda files: files[0].name.kind != "after"):
            for file in files:
                if file.name.is_text:
                    return count_instructions(self.read(file))
        return -1

    def read(self, file: DumpFile) -> bytes:
        """Content of a file, unpacked; empty when it cannot be read."""
        try:
            with open(os.path.join(self.folder, file.path), "rb") as opened:
                data = opened.read()
            return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        except (OSError, EOFError, zlib.error):
            return b""


@dataclass(slots=True)
class Dump:
    """A folder."""

    folder: str
    modules: list[DumpedModule]
    others: list[DumpFile]
    """Files that belong to no module."""

    @property
    def main(self) -> tuple[DumpedModule, str] | None:
        """The module that is likely the program, and why; None for an empty folder."""
        programs = [module for module in self.modules if not module.is_kernel] or self.modules
        if not programs:
            return None
        if len(programs) == 1:
            return programs[0], "the only module"
        counted = [(module.instructions or 0, module.size_bytes, module) for module in programs]
        counted.sort(key=lambda row: (-row[0], -row[1], row[2].label))
        (most, size, best), (second, _, _) = counted[:2]
        if not most:
            return best, f"most bytes: {size}; no text tells how many instructions"
        reason = f"most instructions: {most}, the next has {second}"
        if most == second:
            reason += "; among those, most bytes"
        return best, reason

    def find(self, wanted: str) -> DumpedModule:
        """The module that `wanted` names: id, name, label or part of one; `main` for the empty text.

        Raises `HloError` HLO0544 when there is none.
        """
        if not wanted:
            main = self.main
            if main is None:
                raise error(
                    "HLO0544",
                    f"no dumps in '{self.folder}'",
                    help="name the folder that --xla_dump_to named",
                )
            return main[0]
        number = re.fullmatch(r"(?:module_)?0*(\d+)", wanted)
        by_number = [m for m in self.modules if number and m.module_id == int(number[1])]
        by_name = [m for m in self.modules if wanted in (m.name, m.label)]
        by_part = [m for m in self.modules if wanted in f"{m.directory}/{m.label}"]
        for found in (by_number, by_name, by_part):
            if found:
                return max(found, key=lambda module: (module.instructions or 0, module.size_bytes))
        raise error(
            "HLO0544",
            f"no module '{wanted}' in '{self.folder}'",
            help=f"hlo-dump ls {self.folder} shows them",
        )


def read_folder(folder: str, *, recursive: bool = True) -> Dump:
    """Indexes a folder, and those below it if `recursive`. Links are not followed. Raises `HloError` HLO0544."""
    if not os.path.isdir(folder):
        raise error(
            "HLO0544",
            f"'{folder}' is not a folder",
            help="name the folder that --xla_dump_to named",
        )
    modules: dict[tuple[str, int | None, str, int | None], DumpedModule] = {}
    others: list[DumpFile] = []
    named: list[DumpFile] = []
    for directory, entries in islice(_walk(folder), None if recursive else 1):
        known = _known_names(entries)
        loose: list[tuple[DumpFile, FileName]] = []
        for entry in entries:
            name = parse_name(os.path.basename(entry[0]), known)
            inputs = _input_folder(directory)
            if inputs is not None:
                name = inputs
            file = DumpFile(entry[0], name, entry[1], entry[2])
            home = os.path.dirname(directory) if inputs is not None else directory
            if name.module_id is not None or name.kind == "kernel":
                loose.append((file, name))
                key = _key(home, name)
                # Code and options carry no timestamp though the module's texts do: they join below.
                if key not in modules and (name.kind in _ORDER or name.module_id is None):
                    modules[key] = DumpedModule(folder, home, name.module_id, key[2], key[3])
            elif name.module_name:
                named.append(file)
            else:
                others.append(file)
        _sort_in(loose, directory, folder, modules)
    _sort_in_by_name(named, folder, modules)
    for module in modules.values():
        module.files.sort(key=lambda file: (file.name.step is None, file.name.step or 0, file.path))
    ordered = sorted(
        modules.values(),
        key=lambda m: (
            m.directory,
            m.module_id is None,
            m.module_id or 0,
            m.timestamp_us or 0,
            m.name,
        ),
    )
    return Dump(folder, ordered, others)


def _key(directory: str, name: FileName) -> tuple[str, int | None, str, int | None]:
    if name.kind == "kernel" and name.suffix:  # low-level code, by program
        return directory, None, name.suffix, None
    return directory, name.module_id, name.module_name, name.timestamp_us


def _sort_in(
    loose: Sequence[tuple[DumpFile, FileName]],
    directory: str,
    folder: str,
    modules: dict[tuple[str, int | None, str, int | None], DumpedModule],
) -> None:
    latest = {key[:3]: key for key in sorted(modules, key=lambda key: key[3] or 0)}
    by_number: dict[tuple[str, int | None], list[tuple[str, int | None, str, int | None]]] = {}
    for key in modules:
        by_number.setdefault(key[:2], []).append(key)
    for file, name in loose:
        home = os.path.dirname(directory) if _input_folder(directory) is not None else directory
        key = _key(home, name)
        if key not in modules:
            same = by_number.get(key[:2], [])
            # An over-long name is dropped from some files of a module and not from others.
            key = latest.get(key[:3]) or (
                same[0] if len(same) == 1 and not name.module_name else key
            )
        if key not in modules:
            modules[key] = DumpedModule(folder, home, name.module_id, name.module_name, key[3])
            latest[key[:3]] = key
        modules[key].files.append(file)


def _sort_in_by_name(
    files: Sequence[DumpFile],
    folder: str,
    modules: dict[tuple[str, int | None, str, int | None], DumpedModule],
) -> None:
    """Files that say a module's name and not its id join the module of that name, or are one."""
    by_name = {(module.directory, module.name): module for module in modules.values()}
    for file in files:
        place = home, name = os.path.dirname(file.path), file.name.module_name
        if place not in by_name:
            by_name[place] = modules[home, None, name, None] = DumpedModule(
                folder, home, None, name, None
            )
        by_name[place].files.append(file)


def _input_folder(directory: str) -> FileName | None:
    """What the name of a folder of compile inputs says; None for other folders."""
    base = os.path.basename(directory)
    if not _COMPILE_INPUTS.fullmatch(base):
        return None
    name = parse_name(base)
    return name if name.kind == "inputs" else None


def _known_names(entries: Sequence[tuple[str, int, float]]) -> Mapping[int, Collection[str]]:
    """Names of modules by id, from files whose names leave no doubt."""
    found: dict[int, set[str]] = defaultdict(set)
    for path, _, _ in entries:
        name = parse_name(os.path.basename(path))
        if name.module_id is not None and name.kind in _ORDER and name.module_name:
            found[name.module_id].add(name.module_name)
    return found


def _walk(folder: str) -> Iterator[tuple[str, list[tuple[str, int, float]]]]:
    """Folders below `folder` with their plain files: path, bytes, time."""
    waiting = [("", 0)]
    while waiting:
        directory, depth = waiting.pop(0)
        files: list[tuple[str, int, float]] = []
        try:
            with os.scandir(os.path.join(folder, directory)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            path = f"{directory}/{entry.name}" if directory else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode) and depth < _MAX_DEPTH:
                waiting.append((path, depth + 1))
            elif stat.S_ISREG(status.st_mode):
                files.append((path, status.st_size, status.st_mtime))
        yield directory, files


def _fixed_place(suffix: str) -> int:
    return _FIXED.index(suffix) if suffix in _FIXED else _FIXED.index("after_optimizations")


def _preference(file: DumpFile) -> int:
    """Texts before protos before graphs."""
    extension = file.name.extension.removesuffix(".gz")
    order = (".txt", ".hlo", ".mlir", "", ".hlo.pb", ".pb", ".dot")
    return order.index(extension) if extension in order else len(order)


def count_instructions(text: bytes) -> int:
    """Instructions in a text of HLO or MLIR."""
    return sum(1 for _ in _INSTRUCTION.finditer(text))
