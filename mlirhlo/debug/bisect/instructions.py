"""Which instructions of a wrong stage are at fault: those that read values like before and give others.

Instructions of both stages are paired by structure (`debug.match`), run, and their values compared pair by pair.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from mlirhlo.debug.bisect.compare import Given, run_recorded
from mlirhlo.debug.match import Kind, Listing, listing_of_text, match
from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.conditions import fields_of, load_module
from mlirhlo.debug.trials.texts import module_text
from mlirhlo.dialects.hlo.ops.base import Instruction

Array: TypeAlias = np.ndarray[Any, Any]
MAX_SUSPECTS = 4
_LOOSE = 1e-3
"""Relative to the largest number of an array: values of pairs that are nearer agree."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """An instruction of the wrong stage, and what it was."""

    name: str
    computation: str
    text: str
    before: str
    """Its counterpart in the stage before; empty for a new instruction."""
    why: str
    """`values differ`, or how it was changed."""


def locate(before: str, after: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Suspects as plain data, the likeliest first; what worker processes run."""
    inputs = Given(**fields_of(given))
    texts = [module_text(load_module(text, "stage.hlo")) for text in (before, after)]
    left, right = (listing_of_text(text) for text in texts)
    values = [_values(before, inputs), _values(after, inputs)]
    return [asdict(s) for s in _suspects(left, right, values, texts)[:MAX_SUSPECTS]]


def _values(text: str, given: Given) -> dict[str, Array]:
    """The last value of each instruction that gives an array, by name."""
    found: dict[str, Array] = {}

    def hook(op: Instruction, _: Sequence[Any], value: Any) -> None:
        name = op.instruction_name
        if name and isinstance(value, np.ndarray):
            found[name] = cast(Array, value)

    run_recorded(text, given, hook)
    return found


def _suspects(
    left: Listing, right: Listing, values: Sequence[Mapping[str, Array]], texts: Sequence[str]
) -> list[Suspect]:
    rows = match(left, right, thorough=True).rows
    partner = {
        row.after: row.before for row in rows if row.after is not None and row.before is not None
    }
    agrees: dict[int, bool] = {}
    for new, old in partner.items():
        a, b = values[0].get(left.rows[old].name), values[1].get(right.rows[new].name)
        if a is not None and b is not None and a.size == b.size:
            agrees[new] = _agree(a, b)
    differing = [
        new
        for new in range(len(right.rows))
        if agrees.get(new) is False
        and all(agrees.get(operand, True) for operand in right.rows[new].operands)
    ]
    changed = {
        row.after: row
        for row in rows
        if row.kind in (Kind.CHANGED, Kind.ADDED) and row.after is not None
    }
    lines = [_lines(text) for text in texts]

    def suspect(new: int, old: int | None, why: str) -> Suspect:
        row = right.rows[new]
        was = "" if old is None else lines[0].get(left.rows[old].name, "")
        return Suspect(
            row.name, right.computations[row.computation], lines[1].get(row.name, ""), was, why
        )

    found: list[Suspect] = []
    for new in sorted(differing, key=lambda k: (k not in changed, k)):
        inside = _called(right, new)
        found += [
            suspect(k, row.before, row.kind.value)
            for k, row in changed.items()
            if right.rows[k].computation in inside
        ]
        found.append(suspect(new, partner[new], "values differ"))
    if not found:
        found = [
            suspect(k, row.before, row.kind.value)
            for k, row in changed.items()
            if right.opcodes[k] not in ("parameter", "tuple", "get-tuple-element")
        ]
    return list({s.name: s for s in reversed(found)}.values())[::-1]


def _called(listing: Listing, index: int) -> set[int]:
    """Computations that a row calls, and those that are called in there."""
    found: set[int] = set()
    waiting = list(listing.rows[index].calls)
    inside: dict[int, list[int]] = {}
    for row in listing.rows:
        inside.setdefault(row.computation, []).extend(row.calls)
    while waiting:
        computation = waiting.pop()
        if computation not in found:
            found.add(computation)
            waiting += inside.get(computation, [])
    return found


def _agree(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return bool(np.array_equal(np.sort(_flat(a)), np.sort(_flat(b))))
    if rounding.same(a, b):
        return True
    x, y = _flat(a), _flat(b)
    if a.dtype.kind in "biu":
        return False
    with np.errstate(all="ignore"):
        scale = np.abs(x[np.isfinite(x)]).max(initial=0.0)
        near = (np.abs(x - y) <= _LOOSE * scale) | (np.isnan(x) & np.isnan(y)) | (x == y)
    return bool(near.all())


def _flat(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).reshape(-1)


def _lines(text: str) -> dict[str, str]:
    """Instructions by name, as they are printed."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, _ = line.strip().removeprefix("ROOT ").partition(" = ")
        if equals:
            found[name.removeprefix("%")] = line.strip()
    return found
