"""What each pass of a dump changed, by comparing the instructions of its files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mlirhlo.debug.index.folder import DumpedModule, DumpFile
from mlirhlo.debug.match import (
    Interner,
    Kind,
    Listing,
    Structure,
    listing_of_lines,
    listing_of_text,
    match,
)
from mlirhlo.diagnostics import HloError
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.formats import hlo_text


_DOT_NODE = re.compile(r"label=<<b>(?P<name>.*?)</b>(?P<rest>.*?)(?=, shape)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PassChange:
    """One recorded moment against the one before."""

    step: int | None
    pipeline: str
    name: str
    """The pass; `before_optimizations` for what the compiler was given, `after_optimizations` for the end."""
    file: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    moved: int = 0
    """Instructions that stand in another computation or have another name, and are the same else."""
    instructions: int | None = None
    """None where the file cannot be read."""
    opcodes: tuple[tuple[str, int], ...] = ()
    """Opcodes of which there are more or fewer, with by how many."""
    note: str = ""

    @property
    def has_changed(self) -> bool:
        """Whether any instruction did."""
        return bool(self.added or self.removed or self.changed or self.moved)


def changes(module: DumpedModule) -> Iterator[PassChange]:
    """Every recorded stage of a module, oldest first. Metadata is left out of comparisons."""
    interner = Interner()
    before: Structure | None = None
    latest: tuple[bytes, Structure] | None = None
    for files in module.stages:
        file, name = files[0], files[0].name
        data = module.read(file)
        title = name.after or {
            "before": "before_optimizations",
            "after": "after_optimizations",
        }.get(name.kind, name.suffix)
        if name.kind == "during":
            title = f"{name.after}: {name.suffix}"
        try:
            if (
                latest is None or latest[0] != data
            ):  # a pass that changes nothing leaves the same bytes
                latest = (data, Structure(_listing(data, file), interner))
        except HloError as problem:
            note = problem.diagnostics[0].message
            yield PassChange(name.step, name.pipeline, title, file.path, note=note)
            continue
        now = latest[1]
        if before is None or now is before:
            count = len(now.listing.rows)
            yield PassChange(name.step, name.pipeline, title, file.path, instructions=count)
        else:
            yield _compared(before, now, file, title)
        before = now


def _compared(before: Structure, now: Structure, file: DumpFile, title: str) -> PassChange:
    found = match(before, now).counts
    counts = Counter(now.listing.opcodes)
    counts.subtract(Counter(before.listing.opcodes))
    opcodes = sorted(
        ((o, n) for o, n in counts.items() if n), key=lambda row: (-abs(row[1]), row[0])
    )
    return PassChange(
        file.name.step,
        file.name.pipeline,
        title,
        file.path,
        found[Kind.ADDED],
        found[Kind.REMOVED],
        found[Kind.CHANGED],
        found[Kind.MOVED] + found[Kind.RENAMED],
        len(now.listing.rows),
        tuple(opcodes),
    )


def _listing(data: bytes, file: DumpFile) -> Listing:
    """Every instruction, from any form of a module. Raises `HloError` for damaged protos."""
    extension = file.name.extension.removesuffix(".gz")
    # Before 2019 files of passes were protos without an extension.
    if extension in (".hlo.pb", ".pb", ""):
        text = hlo_text.print_module(formats.load(data, name=file.path).module)
    else:
        text = data.decode("utf-8", "replace")
    if file.name.extension == ".dot":
        nodes = [(0, False, node["name"], node["rest"]) for node in _DOT_NODE.finditer(text)]
        return listing_of_lines(nodes, [""])
    return listing_of_text(text)
