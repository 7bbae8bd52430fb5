"""Data classes completed when they are first used.

`dataclass` makes fields and up to six methods of every class that it decorates, a quarter of what importing xDSL
and this package takes; a program uses a third of them. What is imported under `ALONE` gets its methods late: the
class has attributes in their stead that have `dataclass` complete it when the first of them is read. Classes of
other packages, and those that `dataclass` does more with, are completed at once.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable
from threading import RLock
from types import FunctionType
from typing import Any, cast

PACKAGES = ("mlirhlo.", "xdsl.")
"""Whose definitions are completed late."""

_process: Callable[..., type] = vars(dataclasses)["_process_class"]
_TABLES = ("__dataclass_fields__", "__dataclass_params__")
_LATER_METHODS = ("__replace__",) if sys.version_info >= (3, 13) else ()
_OF_CLASS = ("__dict__", "__weakref__")
_SUBCLASSED = frozenset({"builtins", "typing", "typing_extensions"})
"""Modules whose `__init_subclass__` may run twice."""
_LOCK = RLock()


def switch(on: bool) -> None:
    """Has `dataclass` complete classes of this package and of xDSL late, or at once as ever."""
    setattr(dataclasses, "_process_class", _late if on else _process)  # noqa: B010


def _late(
    cls: type,
    init: bool,
    repr: bool,
    eq: bool,
    order: bool,
    unsafe_hash: bool,
    frozen: bool,
    *further: bool,
) -> type:
    """As `dataclasses._process_class`; what is wrong with the class is reported at its first use."""
    parameters = (init, repr, eq, order, unsafe_hash, frozen, *further)
    is_slotted = any(further[2:])
    if order or unsafe_hash or is_slotted or not cls.__module__.startswith(PACKAGES):
        return _process(cls, *parameters)
    written = {k: v for k, v in vars(cls).items() if k not in _OF_CLASS}
    names = set(_names(written, init, repr, eq, frozen, *further[:1]))
    if not _can_be_written_twice(cls, names):
        return _process(cls, *parameters)
    for name, value in written.items():
        if isinstance(value, dataclasses.Field):
            _set_default(cls, name, cast("dataclasses.Field[Any]", value))
    is_hashed = "__hash__" in written and not ("__eq__" in written and written["__hash__"] is None)
    if eq and not is_hashed:
        names.add("__hash__") if frozen else setattr(cls, "__hash__", None)
    late = _LateClass(cls, written, parameters, names)
    for name in names:
        setattr(cls, name, _LateAttribute(late, name))
    return cls


def _names(
    written: dict[str, Any], init: bool, repr: bool, eq: bool, frozen: bool, match_args: bool
) -> Iterable[str]:
    """What `dataclass` adds to a class, but its hash."""
    yield from _TABLES
    methods = [
        (init, "__init__"),
        (repr, "__repr__"),
        (eq, "__eq__"),
        (match_args, "__match_args__"),
    ]
    methods += [(frozen, "__setattr__"), (frozen, "__delattr__")]
    methods += [(True, name) for name in _LATER_METHODS]
    yield from (name for is_added, name in methods if is_added and name not in written)
    if not written.get("__doc__"):
        yield "__doc__"


def _can_be_written_twice(cls: type, names: set[str]) -> bool:
    """Whether a second class of the same definition leaves no trace."""
    if type(cls) not in (type, ABCMeta) or names & getattr(cls, "__abstractmethods__", set[str]()):
        return False
    return getattr(cls.__init_subclass__, "__module__", None) in {None, *_SUBCLASSED}


def _set_default(cls: type, name: str, field: dataclasses.Field[Any]) -> None:
    if field.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, field.default)


class _LateClass:
    """A data class that is not complete yet."""

    __slots__ = ("cls", "names", "parameters", "written")

    def __init__(
        self, cls: type, written: dict[str, Any], parameters: tuple[bool, ...], names: set[str]
    ) -> None:
        self.cls = cls
        self.written = written
        self.parameters = parameters
        self.names = names

    def complete(self) -> None:
        """Has `dataclass` complete a class that is written like this one, and takes over what it added.

        Other threads may use the class meanwhile: an attribute is either late or final.
        """
        with _LOCK:
            if not self.names:
                return
            kind, written = cast(Any, type(self.cls)), self.written
            written = {**written, "__qualname__": self.cls.__qualname__}
            twin = kind(self.cls.__name__, self.cls.__bases__, written)
            _process(twin, *self.parameters)
            for name in self.names:
                if isinstance(vars(self.cls).get(name), _LateAttribute):
                    setattr(self.cls, name, self._own(vars(twin)[name], twin))
            self.names = set[str]()

    def _own(self, value: Any, twin: type) -> Any:
        """A method of the twin, for this class."""
        if isinstance(value, FunctionType):
            for cell in value.__closure__ or ():
                if cell.cell_contents is twin:
                    cell.cell_contents = self.cls
        return value


class _LateAttribute:
    """An attribute of a data class that is not complete yet."""

    __slots__ = ("late", "name")

    def __init__(self, late: _LateClass, name: str) -> None:
        self.late = late
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.late.complete()
        value = vars(self.late.cls)[self.name]
        get = getattr(value, "__get__", None)
        return value if get is None else get(instance, owner)
