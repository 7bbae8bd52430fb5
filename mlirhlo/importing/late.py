"""Modules that are imported when they are first used.

    with LATE:
        from mlirhlo.rewrites import pipeline

stands at the top of a file, beside its other imports, where type checkers and the test of their order read it.
Nothing is imported there: `pipeline` is a stand-in, and `pipeline.run_pipeline` imports the module, under `ALONE`, and
takes the name from it. Only whole modules are imported so, and only for the time that a start takes: a module under
`LATE` does not import the file back.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from threading import RLock, get_ident
from types import ModuleType, SimpleNamespace
from typing import Any


class _LateModule(ModuleType):
    """Stands for a module that is imported at the first question for a name in it."""

    def __init__(self, name: str, alone: AbstractContextManager[None]) -> None:
        super().__init__(name)
        self._alone = alone
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> object:
        module = self._module
        if module is None:
            if name.startswith("__"):  # doctest and inspect ask every object for such names
                raise AttributeError(name)
            with self._alone:
                module = self._module = import_module(self.__name__)
        return getattr(module, name)


class Late:
    """While it is held, `from package import module` in this thread imports nothing."""

    __slots__ = ("_alone", "_import", "_lock", "_thread")

    def __init__(self, alone: AbstractContextManager[None]) -> None:
        self._alone = alone
        self._lock = RLock()
        self._import = builtins.__import__
        self._thread = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._thread, self._import = get_ident(), builtins.__import__
        builtins.__import__ = self._stand_in

    def __exit__(self, *exception: object) -> None:
        builtins.__import__ = self._import
        self._lock.release()

    def _stand_in(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if get_ident() != self._thread:
            return self._import(name, globals, locals, fromlist or (), level)
        modules = {one: f"{name}.{one}" for one in fromlist or ()}
        return SimpleNamespace(
            **{k: sys.modules.get(m) or _LateModule(m, self._alone) for k, m in modules.items()}
        )
