"""Where forms of programs are registered, and how a module is written."""

from __future__ import annotations

from collections.abc import Callable

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n"
SHAPES: dict[str, Callable[[int], str]] = {}
"""The program of a size, by the name of its form."""


def shape(function: Callable[[int], str]) -> Callable[[int], str]:
    """Registers a form of program under the name of its function."""
    SHAPES[function.__name__] = function
    return function


def module(lines: list[str], before: str = "") -> str:
    """A module whose entry has these lines, the last of which is the root."""
    return "\n".join(
        [f"HloModule m\n\n{before}ENTRY e {{", *lines[:-1], f"  ROOT {lines[-1].lstrip()}", "}\n"]
    )
