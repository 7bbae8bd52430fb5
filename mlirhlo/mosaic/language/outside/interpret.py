"""How calls are simulated that do not say it themselves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mlirhlo.mosaic.interpreter.core import InterpretParams, Options
from mlirhlo.mosaic.language.faults import bad_spec

_DEFAULT: ContextVar[Options | None] = ContextVar("interpret", default=None)


_PLATFORM: ContextVar[str] = ContextVar("platform", default="interpreter")


def platform_of(platform: str | None) -> str:
    """Where a call runs: what it says itself, else what `default_platform` says."""
    return _PLATFORM.get() if platform is None else platform


@contextmanager
def default_platform(platform: str) -> Generator[None]:
    """Within, calls without `platform` run there: `interpreter`, `cpu` or `cuda`."""
    token = _PLATFORM.set(platform)
    try:
        yield
    finally:
        _PLATFORM.reset(token)


def params_of(interpret: Any) -> Options | None:
    """What `interpret=` of a call says: parameters, or True, False and None for those that hold otherwise.

    Raises `HloError` HLO0726 for anything else.
    """
    if interpret is None or isinstance(interpret, bool):
        return _DEFAULT.get()
    if not isinstance(interpret, Options):
        raise bad_spec(
            f"interpret={interpret!r} says nothing of how to simulate a kernel",
            "give pl.InterpretParams(…), or True",
        )
    return interpret


@contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Generator[None]:
    """Within, calls without `interpret` are simulated so."""
    token = _DEFAULT.set(params)
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def set_tpu_interpret_mode(params: InterpretParams | None = None) -> None:
    """From here on, calls without `interpret` are simulated so; None for what holds at the start."""
    _DEFAULT.set(params)


def reset_tpu_interpret_mode_state() -> None:
    """Nothing: no run leaves a state behind."""


__all__ = [
    "default_platform",
    "force_tpu_interpret_mode",
    "params_of",
    "platform_of",
    "reset_tpu_interpret_mode_state",
    "set_tpu_interpret_mode",
]
