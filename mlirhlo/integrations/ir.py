"""A program as a front end hands it out, whatever its form, as a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlirhlo import Module


def module_of(ir: str | bytes) -> Module:
    """The module that `ir` holds: HLO text or proto, StableHLO text, bytecode or artifact.

    Raises `HloError` as `mlirhlo.load` does.
    """
    from mlirhlo import load

    return load(ir.encode("utf-8", "surrogateescape") if isinstance(ir, str) else ir)


def executor_of(module: Module) -> Callable[[Sequence[Any]], Any]:
    """The module prepared once for many calls, each with a list of its parameters."""
    from mlirhlo.formats import holds_hlo
    from mlirhlo.interp.engine import Interpreter

    if holds_hlo(module.op):
        return Interpreter(module.op).run
    # Sizes are open: each call has a program of its own.
    return lambda arguments: module(*arguments)
