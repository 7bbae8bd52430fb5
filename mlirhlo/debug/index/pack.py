"""An archive for a bug report: the module before and after, buffers, options, and who compiled it."""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from mlirhlo.debug.index.folder import DumpedModule, DumpFile
from mlirhlo.formats.files import whole_file

_KINDS = ("before", "after", "stage", "report", "options", "inputs", "thunks", "passes")
_PACKAGES = (
    "mlirhlo",
    "xdsl",
    "numpy",
    "jax",
    "jaxlib",
    "libtpu",
    "tensorflow",
    "torch",
    "llvmlite",
)


def packed_files(
    module: DumpedModule, *, with_passes: bool = False, with_data: bool = False
) -> list[DumpFile]:
    """The files that go in: with `with_passes` those between passes too, with `with_data` snapshots,
    which hold the inputs of a run."""
    kinds = (
        *_KINDS,
        *(("boundary", "during", "kernel") if with_passes or module.is_kernel else ()),
    )
    return [
        file
        for file in module.files
        if file.name.kind in kinds or (with_data and file.name.kind == "snapshot")
    ]


def pack(
    module: DumpedModule,
    path: str,
    *,
    with_passes: bool = False,
    with_data: bool = False,
    readme: str = "",
) -> list[str]:
    """Writes the archive and returns what is in it. Raises `HloError` HLO0503 when it cannot.

    `readme`: what its README says of how to use it, instead of the general words.
    """
    top = "".join(c if c.isalnum() or c in "._-" else "_" for c in module.label)[:100] or "module"
    members: list[str] = []
    name = os.path.basename(path)
    with whole_file(path) as file, tarfile.open(name, "w:gz", file) as archive:
        for member in packed_files(module, with_passes=with_passes, with_data=with_data):
            source = os.path.join(module.folder, member.path)
            relative = (
                os.path.relpath(member.path, module.directory) if module.directory else member.path
            )
            info = tarfile.TarInfo(f"{top}/{relative}")
            with open(source, "rb") as opened:
                data = opened.read()
            info.size, info.mtime = len(data), int(member.modified)
            archive.addfile(info, io.BytesIO(data))
            members.append(info.name)
        for fact, text in _about(module, readme):
            info = tarfile.TarInfo(f"{top}/{fact}")
            data = text.encode("utf-8", "replace")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            members.append(info.name)
    return members


def _about(module: DumpedModule, readme: str) -> Iterator[tuple[str, str]]:
    versions = {"python": platform.python_version(), "system": platform.platform()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    facts = {
        "module": module.label,
        "platform": module.platform,
        "instructions": module.instructions,
        "recorded_passes": module.passes,
        # Of the machine that packs, which need not be the one that compiled.
        "packed_with": versions,
    }
    yield "about.json", json.dumps(facts, indent=1) + "\n"
    how = f"{module.label}: a bug report.\n\n" + (
        readme
        or "before_optimizations is what the compiler was given, *after_optimizations what it made of it.\n"
        "Replay it with run_hlo_module, or look at it with hlo-view; about.json has the versions.\n"
    )
    yield "README.txt", how
