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
Value: TypeAlias = Array | tuple[object, ...]
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
    runs = [_values(before, inputs), _values(after, inputs)]
    return [asdict(s) for s in _suspects(left, right, runs, texts)[:MAX_SUSPECTS]]


@dataclass(slots=True)
class _Values:
    """Values of each instruction by name, in the first and in the last of its executions."""

    first: dict[str, Value]
    last: dict[str, Value]


def _values(text: str, given: Given) -> _Values:
    values = _Values({}, {})

    def hook(op: Instruction, _: Sequence[Any], value: Any) -> None:
        if (name := op.instruction_name) and isinstance(value, np.ndarray | tuple):
            values.first.setdefault(name, cast(Value, value))
            values.last[name] = cast(Value, value)

    run_recorded(text, given, hook)
    return values


def _suspects(
    left: Listing, right: Listing, runs: Sequence[_Values], texts: Sequence[str]
) -> list[Suspect]:
    rows = match(left, right, thorough=True).rows
    partner = {
        row.after: row.before for row in rows if row.after is not None and row.before is not None
    }
    changed = {
        row.after: row
        for row in rows
        if row.kind in (Kind.CHANGED, Kind.ADDED) and row.after is not None
    }
    lines = [_lines(text) for text in texts]

    def suspect(new: int, why: str) -> Suspect:
        row, old = right.rows[new], partner.get(new)
        was = "" if old is None else lines[0].get(left.rows[old].name, "")
        return Suspect(
            row.name, right.computations[row.computation], lines[1].get(row.name, ""), was, why
        )

    names = {new: (left.rows[old].name, right.rows[new].name) for new, old in partner.items()}
    # In the first iteration of a loop nothing has come back from its end yet.
    origins = _origins(right, names, runs[0].first, runs[1].first) or _origins(
        right, names, runs[0].last, runs[1].last
    )
    found: list[Suspect] = []
    for new in sorted(origins, key=lambda k: (k not in changed, k)):
        inside = _called(right, new)
        found += [
            suspect(k, row.kind.value)
            for k, row in changed.items()
            if right.rows[k].computation in inside and k not in origins
        ]
        found.append(suspect(new, "values differ"))
    if not found:
        found = [
            suspect(k, row.kind.value)
            for k, row in changed.items()
            if right.opcodes[k] not in ("parameter", "tuple", "get-tuple-element")
        ]
    return list({s.name: s for s in reversed(found)}.values())[::-1]


def _origins(
    right: Listing,
    names: Mapping[int, tuple[str, str]],
    before: Mapping[str, Value],
    after: Mapping[str, Value],
) -> list[int]:
    """Rows whose values differ though all that they are computed from agrees.

    Rows without a counterpart agree when their own operands do. Of a caller and what it calls, the latter is named.
    """
    agrees: dict[int, bool] = {}
    for new, (old_name, new_name) in names.items():
        a, b = before.get(old_name), after.get(new_name)
        if a is not None and b is not None:
            agrees[new] = _agree(a, b)
    is_sound = {new: agrees.get(new) for new in range(len(right.rows))}
    for new, row in enumerate(right.rows):  # operands stand before their users
        if is_sound[new] is None:
            is_sound[new] = all(is_sound[k] is not False for k in row.operands)
    origins = [
        new
        for new, row in enumerate(right.rows)
        if agrees.get(new) is False
        and right.opcodes[new] != "parameter"
        and all(is_sound[k] is not False for k in row.operands)
    ]
    within = {right.rows[new].computation for new in origins}
    return [new for new in origins if not _called(right, new) & within]


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


def _agree(a: object, b: object) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        if not (isinstance(a, tuple) and isinstance(b, tuple)) or len(a) != len(b):
            return True  # packed otherwise: the arrays are compared where they are used
        return all(map(_agree, a, b))
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or a.size != b.size:
        return True  # a token, or an array that was cut or padded: its users show it
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
