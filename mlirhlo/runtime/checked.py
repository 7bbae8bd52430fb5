"""Runs of code that was compiled with checks: what it may not do becomes an error.

Accesses are tested by the code itself (`lowering/checking.py`). Here all buffers get memory of their
own with guards around it, parameters are compared with what they were, and each module runs twice, its
temporaries and results filled with other bytes before: results that differ depend on memory that was
never written. The second time, results lie over the parameters that the module gives them. Modules that
call back into Python run once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.lowering.checking import VIOLATION
from mlirhlo.runtime.jit import Library

if TYPE_CHECKING:
    from mlirhlo.lowering.plan.plan import Plan

Array = np.ndarray[Any, Any]

_GUARD = 256
"""Bytes before and behind every buffer."""
_FILLS = (0xA5, 0x3C)
_MARK = 0x77
_REPORT = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_violations: list[int] = []


def _noted(site: int) -> None:
    if len(_violations) < 100:
        _violations.append(site)


_report = _REPORT(_noted)


def externals(text: str) -> dict[str, int]:
    """Address of what checks call."""
    if f"@{VIOLATION}(" not in text:
        return {}
    return {VIOLATION: ctypes.cast(_report, ctypes.c_void_p).value or 0}


class _Guarded:
    """Memory with guards around it, aligned to 64 bytes."""

    def __init__(self, size: int, fill: int) -> None:
        self.memory = np.full(size + 2 * _GUARD + 64, _MARK, np.uint8)
        start = _GUARD + -(self.memory.ctypes.data + _GUARD) % 64
        self.inside = self.memory[start : start + size]
        self.inside[:] = fill
        self.around = (self.memory[:start], self.memory[start + size :])

    def is_intact(self) -> bool:
        return all(bool((part == _MARK).all()) for part in self.around)


class CheckedRunner:
    """A compiled `main`, for arrays in the order of memory."""

    def __init__(self, plan: Plan, library: Library, main: int, sites: Sequence[str]) -> None:
        self._plan = plan
        self._library = library
        self._main = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(main)
        self._sites = sites

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Raises `HloError` HLO0439 and HLO0440."""
        before: list[Array] = []
        for fill in _FILLS[: 1 if self._plan.sites else 2]:
            results = self._once(inputs, outputs, fill, gives=bool(before))
            for number, (result, earlier) in enumerate(zip(results, before, strict=False)):
                self._compare(number, result, earlier)
            before = results
        for output, result in zip(outputs, before, strict=True):
            output.reshape(-1).view(np.uint8)[:] = result

    def _once(
        self, inputs: Sequence[Array], outputs: Sequence[Array], fill: int, *, gives: bool
    ) -> list[Array]:
        """`gives`: whether results lie over parameters where they may."""
        plan = self._plan
        given = [_Guarded(x.nbytes, fill) for x in inputs]
        for guarded, x in zip(given, inputs, strict=True):
            guarded.inside[:] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        homes = [
            plan.parameters.index(r.alias) if gives and r.alias is not None else None
            for r in plan.results
        ]
        made = [
            _Guarded(x.nbytes, fill) if home is None else given[home]
            for x, home in zip(outputs, homes, strict=True)
        ]
        arena = _Guarded(plan.arena_size, fill)
        _violations.clear()
        self._main(_pointers(given), _pointers(made), arena.inside.ctypes.data)
        if _violations:
            site = self._sites[_violations[0]]
            raise error(
                "HLO0439",
                f"generated code reaches outside of a buffer: {site}",
                help="this is a fault of the compiler, not of the program; please report it",
            )
        groups = {"parameter": given, "result": made, "arena": [arena]}
        for kind, buffers in groups.items():
            for number, guarded in enumerate(buffers):
                if not guarded.is_intact():
                    raise error(
                        "HLO0439", f"generated code writes beside the memory of {kind} {number}"
                    )
        for number, (guarded, x) in enumerate(zip(given, inputs, strict=True)):
            if number in homes:
                continue
            if guarded.inside.tobytes() != np.ascontiguousarray(x).tobytes():
                raise error("HLO0439", f"generated code writes to parameter {number}")
        return [guarded.inside for guarded in made]

    def _compare(self, number: int, result: Array, earlier: Array) -> None:
        differing = np.flatnonzero(result != earlier)
        if len(differing):
            shape = self._plan.results[number].shape
            element = int(differing[0]) // max(shape.element_type.byte_size, 1)
            raise error(
                "HLO0440",
                f"result {number} depends on memory that was never written: element {element}"
                f" (in the order of memory) of {shape.to_string()}, and"
                f" {len(differing) - 1} more bytes",
                help="this is a fault of the compiler, not of the program; please report it",
            )


def _pointers(buffers: Sequence[_Guarded]) -> Any:
    return (ctypes.c_void_p * max(len(buffers), 1))(*[b.inside.ctypes.data for b in buffers])
