"""The interpreter: the reference meaning of every op, in numpy and ml_dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlirhlo.interp.engine import Interpreter, evaluate, run_module, run_spmd
    from mlirhlo.interp.machine import Machine

__all__ = ["Interpreter", "Machine", "evaluate", "run_module", "run_spmd"]


def __getattr__(name: str) -> Any:
    # Meanings import the registry through this package, so it must not import them itself.
    from importlib import import_module

    if name in ("Interpreter", "evaluate", "run_module", "run_spmd"):
        return getattr(import_module("mlirhlo.interp.engine"), name)
    if name == "Machine":
        return import_module("mlirhlo.interp.machine").Machine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
