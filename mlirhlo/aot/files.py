"""The files of a program: object, archive, shared library, wheel, header, and what build systems read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlirhlo.aot import elf
from mlirhlo.aot.compiler import Ahead
from mlirhlo.aot.headers import header
from mlirhlo.aot.wheel import wheel
from mlirhlo.diagnostics import error

KINDS = ("obj", "static", "shared", "wheel")
"""What can be made."""


def emitted(
    ahead: Ahead, kinds: Sequence[str], *, cpp_class: str = "", version: str = "0.0.0"
) -> dict[str, bytes]:
    """The files of a program by their names.

    `kinds`: of `KINDS`. Raises `HloError` HLO0843 where the linker is missing or fails, the target has no
    such files, or the version is none.
    """
    name = ahead.name
    if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc)\d+)?", version):
        raise error("HLO0843", f"--package-version={version}: not a version such as 1.0.2")
    files: dict[str, bytes] = {}
    if set(kinds) - {"wheel"}:
        files[f"{name}.h"] = header(ahead, cpp_class).encode()
    if set(kinds) - {"obj"} and not ahead.is_elf:
        raise error(
            "HLO0843", f"{ahead.triple}: only objects are made for it", help="say --emit=obj"
        )
    if "obj" in kinds:
        files[f"{name}.o"] = ahead.object
    if "static" in kinds:
        files[f"lib{name}.a"] = elf.archive({f"{name}.o": ahead.object})
    if {"shared", "wheel"} & set(kinds):
        library = _shared(ahead)
        if "shared" in kinds:
            files[f"lib{name}.so"] = library
        if "wheel" in kinds:
            file, data = wheel(ahead, library, version)
            files[file] = data
    if {"static", "shared"} & set(kinds):
        files[f"{name}.pc"] = _pkg_config(ahead, version).encode()
        files[f"{name}Config.cmake"] = _cmake(ahead, "shared" in kinds).encode()
        files[f"{name}ConfigVersion.cmake"] = _CMAKE_VERSION.replace("@VERSION@", version).encode()
    if ahead.weights and set(kinds) - {"wheel"}:
        files[f"{name}.weights"] = ahead.weights
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Writes all files or none. Raises `HloError` HLO0503."""
    written: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            written.append((temporary, folder / name))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o755 if name.endswith(".so") else 0o644)
        for _, path in written:
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory", str(path))
        for temporary, path in written:
            os.replace(temporary, path)
    except OSError as problem:
        for temporary, _ in written:
            Path(temporary).unlink(missing_ok=True)
        raise error("HLO0503", f"cannot write to '{folder}': {problem.strerror}") from None
    return [path for _, path in written]


def _shared(ahead: Ahead) -> bytes:
    """A shared library, by the C compiler that `CC` names, or cc."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise error(
            "HLO0843",
            "shared libraries are linked by the C compiler, and there is none",
            help="install one, name it by CC, or say --emit=static",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, f"{ahead.name}.o"), Path(folder, f"lib{ahead.name}.so")
        source.write_bytes(ahead.object)
        command = [compiler, "-shared", "-Wl,--build-id=none", f"-Wl,-soname,{target.name}"]
        command += [str(source), "-o", str(target), *ahead.libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise error(
                "HLO0843",
                f"{Path(compiler).name} could not link the library: {said}",
                help=f"it needs {' '.join(ahead.libraries) or 'a linker for the target'}; "
                "--emit=static leaves linking to you",
            )
        return target.read_bytes()


def _pkg_config(ahead: Ahead, version: str) -> str:
    libraries = " ".join(ahead.libraries)
    return (
        "prefix=${pcfiledir}\n"
        f"Name: {ahead.name}\n"
        f"Description: {ahead.name}, compiled ahead of time for {ahead.triple}\n"
        f"Version: {version}\n"
        "Cflags: -I${prefix}\n"
        f"Libs: -L${{prefix}} -l{ahead.name} {libraries}\n".replace(" \n", "\n")
    )


_CMAKE_VERSION = """set(PACKAGE_VERSION "@VERSION@")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def _cmake(ahead: Ahead, is_shared: bool) -> str:
    name = ahead.name
    kind, file = ("SHARED", f"lib{name}.so") if is_shared else ("STATIC", f"lib{name}.a")
    libraries = ";".join("m" if one == "-lm" else one for one in ahead.libraries)
    link = f'    INTERFACE_LINK_LIBRARIES "{libraries}"\n' if libraries and not is_shared else ""
    return (
        f"# find_package({name} CONFIG) defines the target {name}::{name}.\n"
        f"if(NOT TARGET {name}::{name})\n"
        f"  add_library({name}::{name} {kind} IMPORTED)\n"
        f"  set_target_properties({name}::{name} PROPERTIES\n"
        f'    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"\n'
        f'    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"\n'
        f"{link}  )\n"
        "endif()\n"
    )
