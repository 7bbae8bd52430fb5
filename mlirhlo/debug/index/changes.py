"""What each pass of a dump changed, by comparing the instructions of its files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlirhlo.debug.index.folder import DumpedModule, DumpFile
from mlirhlo.diagnostics import HloError

_LINE = re.compile(r"^[ \t]+(?:ROOT )?%?(?P<name>[^\s=(]+) = (?P<text>.*)$", re.MULTILINE)
_OPCODE = re.compile(r"^(?:\((?:[^()]|\([^()]*\))*\)|\S+) (?P<opcode>[a-z][a-z0-9-]*)\(")
_MLIR_OPCODE = re.compile(r'^"?(?P<opcode>[a-z_]\w*\.[\w.]+)')
_METADATA = re.compile(r", metadata=\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class PassChange:
    """One recorded moment against the one before."""

    step: int | None
    pipeline: str
    name: str
    """The pass; `before_optimizations` for what the compiler was given, `after_optimizations` for the end."""
    file: str
    added: int
    removed: int
    changed: int
    instructions: int | None
    """None where the file cannot be read."""
    opcodes: tuple[tuple[str, int], ...] = ()
    """Opcodes of which there are more or fewer, with by how many."""
    note: str = ""

    @property
    def has_changed(self) -> bool:
        """Whether any instruction did."""
        return bool(self.added or self.removed or self.changed)


def changes(module: DumpedModule) -> Iterator[PassChange]:
    """Every recorded moment of a module, oldest first. Metadata is left out of comparisons."""
    before: dict[str, str] | None = None
    texts: dict[bytes, dict[str, str]] = {}
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
            now = texts.get(data)
            if now is None:
                now = _instructions(data, file)
                texts = {data: now}  # a pass that changes nothing leaves the same bytes
        except HloError as problem:
            note = problem.diagnostics[0].message
            yield PassChange(name.step, name.pipeline, title, file.path, 0, 0, 0, None, note=note)
            continue
        if before is None or now is before:
            yield PassChange(name.step, name.pipeline, title, file.path, 0, 0, 0, len(now))
        else:
            yield _compared(before, now, file, title)
        before = now


def _compared(
    before: Mapping[str, str], now: Mapping[str, str], file: DumpFile, title: str
) -> PassChange:
    added = now.keys() - before.keys()
    removed = before.keys() - now.keys()
    changed = sum(1 for name in now.keys() & before.keys() if now[name] != before[name])
    counts = Counter(map(opcode_of, now.values()))
    counts.subtract(Counter(map(opcode_of, before.values())))
    moved = sorted(((o, n) for o, n in counts.items() if n), key=lambda row: (-abs(row[1]), row[0]))
    name = file.name
    return PassChange(
        name.step,
        name.pipeline,
        title,
        file.path,
        len(added),
        len(removed),
        changed,
        len(now),
        tuple(moved),
    )


def opcode_of(text: str) -> str:
    """The opcode of an instruction's text, `f32[4]{0} add(…)`, or the name of an MLIR operation."""
    match = _OPCODE.match(text) or _MLIR_OPCODE.match(text)
    return match["opcode"] if match else "?"


def _instructions(data: bytes, file: DumpFile) -> dict[str, str]:
    """Text of every instruction by name, from any form of a module. Raises `HloError` for damaged protos."""
    extension = file.name.extension.removesuffix(".gz")
    # Before 2019 files of passes were protos without an extension.
    if extension in (".hlo.pb", ".pb", ""):
        from mlirhlo.formats import load
        from mlirhlo.formats.hlo_text import print_module

        text = print_module(load(data, name=file.path).module)
    else:
        text = data.decode("utf-8", "replace")
    if file.name.extension == ".dot":
        return {
            match[1]: match[0]
            for match in re.finditer(r"label=<<b>(.*?)</b>.*?(?=, shape)", text, re.DOTALL)
        }
    return {match["name"]: _METADATA.sub("", match["text"]) for match in _LINE.finditer(text)}
