"""Folders of dumps with one stage edited, so that it computes something else."""

from __future__ import annotations

import random
import re
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.bisect.compare import Given, results_of_stage
from mlirhlo.debug.bisect.stages import read_stages
from mlirhlo.debug.trials.conditions import load_module
from mlirhlo.diagnostics import HloError

SWAPS = {
    "add": "subtract", "subtract": "add", "multiply": "add", "maximum": "minimum", "minimum": "maximum",
    "divide": "multiply", "exponential": "negate", "negate": "abs", "tanh": "sine", "sine": "cosine",
    "and": "or", "or": "and", "floor": "ceil", "sqrt": "rsqrt", "rsqrt": "sqrt", "log": "abs",
}  # fmt: skip
SECONDS = 20
DIRECTIONS = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_LINE = re.compile(r"^ +(?:ROOT )?%?[\w.-]+ = .*$", re.MULTILINE)


def _opcode(line: str, draw: random.Random) -> str | None:
    del draw
    for old, new in SWAPS.items():
        if f" {old}(" in line:
            return line.replace(f" {old}(", f" {new}(", 1)
    return None


def _direction(line: str, draw: random.Random) -> str | None:
    del draw
    match = re.search(r"direction=([A-Z]+)", line)
    return match and line.replace(match[0], f"direction={DIRECTIONS[match[1]]}")


def _constant(line: str, draw: random.Random) -> str | None:
    match = re.search(r" constant\((-?[\d.e+-]+)\)", line)
    if match is None:
        return None
    new = (
        str(int(match[1]) + draw.choice((1, 2)))
        if match[1].lstrip("-").isdigit()
        else str(float(match[1]) + 0.75)
    )
    return line.replace(match[0], f" constant({new})")


def _slice(line: str, draw: random.Random) -> str | None:
    bounds = [m for m in re.finditer(r"\[(\d+):(\d+)\]", line) if int(m[1]) > 0]
    if " slice(" not in line or not bounds:
        return None
    m = draw.choice(bounds)
    return line[: m.start()] + f"[{int(m[1]) - 1}:{int(m[2]) - 1}]" + line[m.end() :]


def _operands(line: str, draw: random.Random) -> str | None:
    del draw
    match = re.search(
        r" (subtract|divide|power|concatenate|dot|select|atan2)\(([^(),]+), ([^(),]+)", line
    )
    if match is None or match[2] == match[3]:
        return None
    return line.replace(match[0], f" {match[1]}({match[3]}, {match[2]}", 1)


def _reverse(line: str, draw: random.Random) -> str | None:
    del draw
    match = re.search(r"dimensions=\{1,0\}", line)
    return match and re.sub(
        r" transpose\(", " transpose(", line.replace(match[0], "dimensions={0,1}")
    )


def _padding(line: str, draw: random.Random) -> str | None:
    del draw
    match = re.search(r"pad=(\d+)_(\d+)", line) or re.search(r"padding=(\d+)_(\d+)", line)
    return match and line.replace(match[0], f"{match[0].split('=')[0]}={match[2]}_{match[1]}", 1)


def _iota(line: str, draw: random.Random) -> str | None:
    del draw
    return (
        line.replace("iota_dimension=0", "iota_dimension=1") if "iota_dimension=0" in line else None
    )


EDITS: tuple[Callable[[str, random.Random], str | None], ...] = (
    _opcode, _opcode, _direction, _constant, _slice, _operands, _reverse, _padding, _iota,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planted:
    """A folder with one edited stage."""

    folder: Path
    file: str
    """The edited stage's."""
    old: str
    new: str


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks an archive of passes."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder


def plant(folder: Path, seed: int, tries: int = 60) -> Planted | None:
    """Edits one line of one stage in place, so that results for other inputs than the search's differ clearly."""
    draw = random.Random(f"{folder.name}:{seed}")
    module = read_stages(str(folder))
    for _ in range(tries):
        number = draw.randrange(1, len(module.stages))
        text = module.stages[number].text
        lines = list(_LINE.finditer(text))
        line = draw.choice(lines)
        new = draw.choice(EDITS)(line[0], draw)
        if new is None or new == line[0]:
            continue
        edited = text[: line.start()] + new + text[line.end() :]
        if _computes_something_else(text, edited):
            path = folder / module.stages[number].file
            path.write_text(edited, errors="surrogateescape")
            return Planted(folder, module.stages[number].file, line[0].strip(), new.strip())
    return None


def _computes_something_else(text: str, edited: str) -> bool:
    """Whether a stage and its edited form differ on inputs of their own by a hundredth of the scale."""
    try:
        if verify_module(load_module(edited, "edited.hlo")):
            return False
        given = Given(text, (7,))
        with _bound():
            old, new = results_of_stage(text, given), results_of_stage(edited, given)
    except (HloError, TimeoutError):
        return False
    if isinstance(old, str) or isinstance(new, str):
        return False
    return any(_differ(a, b) for a, b in zip(old, new, strict=True))


@contextmanager
def _bound() -> Iterator[None]:
    """Raises `TimeoutError` within it after `SECONDS` of CPU time: edits make loops endless."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
    with np.errstate(all="ignore"):
        if not (np.isfinite(x) == np.isfinite(y)).all():
            return True
        finite = np.isfinite(x) & np.isfinite(y)
        scale = np.abs(x[finite]).max(initial=1e-30)
        return bool((np.abs(x - y)[finite] > 0.01 * scale).any())


def archives(corpus: Path) -> list[Path]:
    """Archives of passes in the corpus, by name."""
    return sorted(corpus.glob("programs/*/*.passes.tar.gz"), key=lambda path: path.name)
