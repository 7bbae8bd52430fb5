"""What the tools read: files and standard input, whole or in pieces."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlirhlo.cli.options import flag
from mlirhlo.cli.report import CURRENT_INPUT, report, usage_error, warn
from mlirhlo.diagnostics import Place, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.analysis import stablehlo, verifier
    from mlirhlo.dialects.hlo import module as hlo_module
    from mlirhlo.dialects.hlo.attributes import base
    from mlirhlo.formats import pieces as formats_pieces
    from mlirhlo.formats import sniff
    from mlirhlo.rewrites import hlo_to_stablehlo, stablehlo_to_hlo
    from mlirhlo.rewrites.spmd import partitions


if TYPE_CHECKING:
    from mlirhlo.diagnostics import Diagnostic
    from mlirhlo.formats import Loaded


@dataclass
class InputFlags:
    """Options of a tool that reads modules."""

    format: str | None = flag(
        None,
        "f",
        "input-format",
        "from",
        group="Input",
        metavar="FORMAT",
        help="hlo, mlir, pb, pbtxt, json, snapshot (told by content)",
    )
    split_input_file: bool = flag(
        False, group="Input", help="several modules, divided by '// -----' lines"
    )


def single_file(files: Sequence[str]) -> str:
    """The one file of a command line; standard input when none is named and it is no terminal."""
    if len(files) > 1:
        raise usage_error(
            f"one input file is wanted, {len(files)} given: {' '.join(files[:4])}",
            help="option values follow a '=' or a blank; --help shows the options",
        )
    if files:
        return files[0]
    if sys.stdin.isatty():
        raise usage_error("no input file", help="name one, or '-' for standard input")
    return "-"


def read_input(path: str) -> tuple[bytes, str]:
    """Content and name of a file or of standard input (`-`). Raises `HloError` HLO0503."""
    if path == "-":
        data, name = sys.stdin.buffer.read(), "<stdin>"
    else:
        data, name = formats.read_file(path)
    CURRENT_INPUT.name, CURRENT_INPUT.data = name, data
    return data, name


def check_format(format: str | None) -> str | None:
    """`--format` as the readers take it. Raises `UsageError` HLO0502."""
    if format is None or format in formats.FORMATS:
        return format
    from difflib import get_close_matches

    near = get_close_matches(format, formats.FORMATS, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise usage_error(
        f"unknown format '{format}'",
        help=f"{hint}formats are {', '.join(dict.fromkeys(formats.FORMATS))}",
    )


def pieces(data: bytes, name: str, *, split: bool) -> list[bytes]:
    """The modules of a file; gzip is unpacked when it has to be divided."""
    if not split:
        return [data]

    found, warnings = formats_pieces.split(sniff.unwrap(data, name), name)
    report(warnings)
    return [piece.data for piece in found]


def is_stablehlo(loaded: Loaded) -> bool:
    """Whether what was read is a StableHLO program and not an HLO module."""
    return any(op.name == "func.func" for op in loaded.module.ops)


def as_hlo(loaded: Loaded) -> Loaded:
    """What was read as HLO: a StableHLO program is converted. Raises `HloError` HLO042x."""
    if not is_stablehlo(loaded):
        return loaded

    return replace(
        loaded, module=stablehlo_to_hlo.convert_to_hlo(loaded.module, with_device_counts=True)
    )


def holds_kernels(loaded: Loaded) -> bool:
    """Whether what was read are structured kernels."""
    return formats.holds_kernels(loaded.module)


STABLEHLO_FORMATS = ("stablehlo", "artifact")
"""Formats that hold StableHLO only; MLIR text and bytecode hold either dialect."""


def for_format(loaded: Loaded, format: str) -> Loaded:
    """What was read in the dialect that `format` holds. Raises `HloError` HLO042x."""
    if format in STABLEHLO_FORMATS:
        if is_stablehlo(loaded):
            return loaded

        return replace(loaded, module=hlo_to_stablehlo.convert_to_stablehlo(loaded.module))
    return loaded if format.startswith("mlir") else as_hlo(loaded)


def verify(loaded: Loaded) -> list[Diagnostic]:
    """What is wrong with a module."""
    if holds_kernels(loaded):
        return [named(d, loaded.name) for d in verifier.verify_bodies(loaded.module, loaded.name)]
    if is_stablehlo(loaded):
        return [
            named(d, loaded.name) for d in stablehlo.verify_module(loaded.module, file=loaded.name)
        ]

    return [named(d, loaded.name) for d in verifier.verify_module(loaded.module, file=loaded.name)]


def check_entry(loaded: Loaded) -> None:
    """What runs or changes a module needs an entry; `--no-verify` lets others come so far.

    Raises `HloError` HLO0106.
    """
    try:
        _ = hlo_module.HloModule(loaded.module).entry
    except ValueError as problem:
        raise error("HLO0106", str(problem), Place(loaded.name)) from None


def unsaid_partitions(loaded: Loaded) -> int:
    """Partitions that an HLO module's shardings are for, when its header says no number; else 0."""
    return partitions.unsaid_partitions(hlo_module.HloModule(loaded.module))


def set_partitions(loaded: Loaded, count: int) -> None:
    """Makes an HLO module one of `count` partitions (0: as its header says). Warns (HLO0483) of shardings in a
    module whose header says no number.
    """
    module = hlo_module.HloModule(loaded.module)
    if unsaid := unsaid_partitions(loaded):
        taken = f"taken for {count} partitions" if count else "not partitioned"
        hint = None if count else f"--num_partitions={unsaid} partitions it"
        message = (
            f"{loaded.name}: shardings over {unsaid} devices, but no num_partitions in the header"
        )
        warn("HLO0483", f"{message}: {taken}", hint)
    if count:
        module.set("num_partitions", base.integer(count))


def named(diagnostic: Diagnostic, name: str) -> Diagnostic:
    """The diagnostic with the name of the file where only a module without text could be named."""
    place = diagnostic.place
    if place is None:
        return diagnostic.at(Place(name))
    if place.file == "<module>":
        return replace(diagnostic, place=replace(place, file=name))
    return diagnostic
