"""Packages that need not be installed, and choices by name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from typing import Any

from mlirhlo.diagnostics import error


def require(package: str, extra: str, purpose: str) -> Any:
    """Imports `package`, which the extra `extra` of this project brings.

    Raises `HloError` HLO0600 when it is not installed, or is and cannot be imported.
    """
    try:
        return importlib.import_module(package)
    except ImportError as problem:
        root = package.partition(".")[0]
        missing = isinstance(problem, ModuleNotFoundError) and (problem.name or root) == root
        state = "is not installed" if missing else f"cannot be imported: {problem}"
        raise error(
            "HLO0600",
            f"{purpose} needs {root}, which {state}",
            help=f"pip install 'mlirhlo[{extra}]'",
        ) from None


def choose(what: str, given: str, known: Iterable[str], more: str = "") -> str:
    """`given` as it is spelled in `known`; case, dashes and underscores do not count.

    Raises `HloError` HLO0601 with the nearest name. `more` is added to the help.
    """
    names = {_plain(name): name for name in known}
    if (found := names.get(_plain(given))) is not None:
        return found
    near = difflib.get_close_matches(_plain(given), names, n=1)
    meant = f"did you mean {names[near[0]]!r}? " if near else ""
    listed = ", ".join(dict.fromkeys(names.values()))
    raise error("HLO0601", f"unknown {what} {given!r}", help=f"{meant}known: {listed}{more}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
