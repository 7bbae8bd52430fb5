"""Runs optimised modules of the corpus and says where they leave the recorded results, and why.

    python tools/optimised_numerics.py                            # cpu_opt, gpu_opt and tpu_opt
    python tools/optimised_numerics.py --variant tpu_opt --only conv

The recorded results are those of the program as written, every instruction rounded to its own type.
Compilers take two liberties with that, and both stand in the modules that they write:

* They round less: a value converted to a narrow float type and back is taken as it was. Then the
  module has to give what the program as written gives without such pairs of converts.
* They round more: operands of dots and convolutions of f32 become bf16 (the matrix unit's type).
  Then the module with narrow floats lifted to f32, so that nothing in it rounds to them, has to give
  what the program as written gives with the same done to it. The first instruction that gives
  something else for lack of digits is named.

Verdicts: `as recorded`, `as without round trips`, `as lifted`, each within the corpus' own tolerance
(about 1e-5 of the largest value for f32), else `differs`; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_module

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.ops.base import Instruction

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared")) / "corpus"

VARIANTS = {"cpu_opt": "cpu_after_opt", "gpu_opt": "gpu_after_opt", "tpu_opt": "tpu_after_opt"}

NARROW = frozenset(row.name for row in PRIMITIVE_TYPES.values() if row.is_float and row.bits < 32)
"""Float types with fewer bits than f32."""

Entry = dict[str, Any]
Arrays = Sequence[np.ndarray[Any, np.dtype[Any]]]


# ---------------------------------------------------------------- the corpus


@cache
def library() -> Any:
    """The corpus' own way to read and compare arrays."""
    sys.path.insert(0, str(CORPUS / "gen"))
    import corpuslib  # pyright: ignore[reportMissingImports]

    return corpuslib


def programs(variant: str, *, sharded: bool = False) -> list[Entry]:
    """Programs with recorded results and a module `variant`, kernels aside."""
    if not CORPUS.is_dir():
        return []
    return [
        entry
        for entry in json.loads((CORPUS / "MANIFEST.json").read_text())["programs"]
        if "npz" in entry["files"]
        and variant in entry["files"]
        and "pallas" not in entry["features"]
        and ("sharded" in entry["features"]) == sharded
    ]


def module_of(entry: Entry, variant: str) -> ModuleOp:
    """A module of a program."""
    path = CORPUS / entry["files"][variant]
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return parse_module(text.decode(), f"{entry['name']} {variant}")


def data_of(entry: Entry) -> Any:
    """Inputs and recorded outputs of a program."""
    return library().load_npz(str(CORPUS / entry["files"]["npz"]))


def differences(entry: Entry, got: Arrays, wanted: Arrays, types: Sequence[str]) -> list[str]:
    """What lies outside of the corpus' tolerance."""
    if len(got) != len(wanted):
        return [f"{len(got)} outputs, {len(wanted)} are wanted"]
    factor = entry["tolerance"].get("factor", 1.0)
    found: list[str] = []
    for index, (a, b, name) in enumerate(zip(got, wanted, types, strict=True)):
        agrees, detail = library().compare(np.asarray(a), np.asarray(b), name, factor)
        if not agrees:
            found.append(f"output {index} ({name}): {detail}")
    return found


# ---------------------------------------------------------------- other roundings


def without_round_trips(module: ModuleOp) -> int:
    """Takes values for their conversion to a narrower float type and back, in place; how often."""
    count = 0
    for op in list(HloModule(module).instructions):
        inner = _converted(op)
        outer = None if inner is None else _converted(inner)
        if inner is None or outer is None or op.shape != outer.shape:
            continue
        narrow, wide = inner.shape, op.shape
        assert isinstance(narrow, ArrayShape)
        assert isinstance(wide, ArrayShape)
        types = narrow.element_type, wide.element_type
        if all(t.is_float for t in types) and types[0].bits < types[1].bits:
            op.output.replace_all_uses_with(outer.output)
            count += 1
    return count


def _converted(op: Instruction) -> Instruction | None:
    """What a convert converts; None for other instructions."""
    from mlirhlo.dialects.hlo.ops.base import Instruction

    if op.opcode.name != "convert":
        return None
    owner = op.inputs[0].owner
    return owner if isinstance(owner, Instruction) else None


def lifted(module: ModuleOp) -> ModuleOp:
    """The module with f32 in place of all narrower float types."""
    # Strings hold other languages' types; the rest of the text names types in shapes alone.
    options = PrintOptions(large_constants=True, metadata=False, frontend_attributes=False)
    parts = re.split(r'("(?:[^"\\]|\\.)*")', print_module(module, options))
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(NARROW))})(?=\[)")
    parts[::2] = [pattern.sub("f32", part) for part in parts[::2]]
    return parse_module("".join(parts), "lifted")


def lifted_inputs(inputs: Arrays, types: Sequence[str]) -> Arrays:
    """Inputs of a lifted module."""
    return [
        value.astype(np.float32) if name in NARROW else value
        for value, name in zip(inputs, types, strict=True)
    ]


def first_rounding(module: ModuleOp, inputs: Arrays, lifted_in: Arrays) -> str:
    """The first instruction of a run that gives something else when nothing rounds to narrow floats.

    Both runs take the same way as long as no value differs that steers it; beyond that nothing is
    compared.
    """
    wide: list[tuple[str, Any]] = []
    run_module(lifted(module), lifted_in, hook=lambda op, _, v: wide.append((_name(op), v)))
    steps = iter(wide)
    found: list[str] = []

    def look(op: Instruction, _: Sequence[Any], value: Any) -> None:
        name, other = next(steps, ("", None))
        if found or name != _name(op) or not isinstance(value, np.ndarray):
            return
        same = np.array_equal(value, np.asarray(other), equal_nan=value.dtype.kind not in "iub")
        if not same:
            operand = op.input_shapes[0] if op.inputs else ""
            found.append(f"%{op.instruction_name} = {op.shape} {op.opcode.name}({operand})")

    run_module(module, inputs, hook=look)
    return found[0] if found else "no instruction"


def _name(op: Instruction) -> str:
    return op.instruction_name or op.opcode.name


# ---------------------------------------------------------------- verdicts


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a module's results stand to the recorded ones."""

    kind: str
    """`as recorded`, `as without round trips`, `as lifted` or `differs`."""
    detail: str = ""
    """How far it is off, and why."""
    outputs: Arrays = ()
    """What the module gives."""


def judge(entry: Entry, variant: str) -> Verdict:
    """Runs a module of a program. Raises `HloError` for what has no meaning."""
    data = data_of(entry)
    types = [row["dtype"] for row in data["meta"]["out"]]
    module = module_of(entry, variant)
    got = run_module(module, data["inputs"], check=True)
    off = differences(entry, got, data["outputs"], types)
    if not off:
        return Verdict("as recorded", outputs=got)
    source = module_of(entry, "hlo")
    if count := without_round_trips(source):
        wanted = run_module(source, data["inputs"])
        if not differences(entry, got, wanted, types):
            why = f"{off[0]}; {count} pairs of converts are gone"
            return Verdict("as without round trips", why, got)
    inputs = lifted_inputs(data["inputs"], [row["dtype"] for row in data["meta"]["in"]])
    wide_types = ["f32" if name in NARROW else name for name in types]
    wanted = run_module(lifted(module_of(entry, "hlo")), inputs)
    still = differences(entry, run_module(lifted(module), inputs), wanted, wide_types)
    if still:
        return Verdict("differs", f"{off[0]}; lifted: {still[0]}", got)
    first = first_rounding(module, data["inputs"], inputs)
    return Verdict("as lifted", f"{off[0]}; first: {first}", got)


def verdicts(variant: str, only: str = "") -> Iterator[tuple[str, Verdict]]:
    """Verdicts on all programs whose name has `only` in it."""
    for entry in programs(VARIANTS[variant]):
        if not re.search(only, entry["name"]):
            continue
        try:
            verdict = judge(entry, VARIANTS[variant])
        except HloError as problem:
            verdict = Verdict("differs", str(problem))
        yield entry["name"], verdict


def main() -> int:
    """Prints the verdicts; 1 when a module differs without reason."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variant", default=",".join(VARIANTS), help="default: %(default)s")
    parser.add_argument("--only", default="", help="names that match this regular expression")
    options = parser.parse_args()
    if not CORPUS.is_dir():
        print(f"no corpus at {CORPUS}; set MLIRHLO_SHARED", file=sys.stderr)
        return 2
    unexplained = 0
    for variant in options.variant.split(","):
        counts: Counter[str] = Counter()
        for name, verdict in verdicts(variant, options.only):
            counts[verdict.kind] += 1
            if verdict.detail:
                print(f"{variant} {name}: {verdict.kind}; {verdict.detail}", flush=True)
        unexplained += counts["differs"]
        summary = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        print(f"{variant}: {counts.total()} programs: {summary}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
