"""Errors of running kernels, at the operation that raised them."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, NameLoc

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.mosaic.attributes import name_of, string_of

if TYPE_CHECKING:
    from xdsl.ir import Operation


def place_of(op: Operation) -> Place:
    """The line of Python that wrote the operation, where the kernel knows it; else the kernel's
    function and the operation's number in it.
    """
    found: Any = op.location
    while isinstance(found, NameLoc | CallSiteLoc):
        found = found.location if isinstance(found, NameLoc) else found.callee
    if isinstance(found, FileLineColLoc):
        file, line = found.filename.data, found.line.data
        source = linecache.getline(file, line).rstrip("\n") or None
        return Place(file, line, found.column.data, source_line=source)
    function = op
    while (parent := function.parent_op()) is not None and name_of(function) != "func.func":
        function = parent
    name = string_of(function, "sym_name") or "kernel"
    number = next((i for i, other in enumerate(function.walk()) if other is op), 0)
    return Place(f"<kernel {name}>", what=f"{name_of(op)} (operation {number})")


def unknown(op: Operation) -> HloError:
    """The operation has no meaning."""
    return error(
        "HLO0701",
        f"{name_of(op)} has no meaning in the interpreter of kernels",
        place_of(op),
        help="lower the kernel again without compiler passes, or write it with other operations",
    )


def unfit(op: Operation, problem: str) -> HloError:
    """The operation is known; what it is asked for is not."""
    return error(
        "HLO0701",
        f"{name_of(op)}: {problem}",
        place_of(op),
        help="lower the kernel again without compiler passes, or write it with other operations",
    )


def fault(problem: str, help: str | None = None) -> HloError:
    """The kernel does what has no defined result; the operation adds its place."""
    return error("HLO0702", problem, help=help)


def stuck(problem: str) -> HloError:
    """The kernel waits for what never comes."""
    return error(
        "HLO0703",
        problem,
        help="start the copy, or signal the semaphore, before the wait",
    )
