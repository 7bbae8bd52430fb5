"""Definitions of xDSL's operations and attributes built when they are first needed.

`irdl_op_definition` reads an operation's fields, makes constraints of them and compiles its assembly format. The
dialects that the CPU compiler imports have 200 operations with it, of which a program uses a dozen. What this package
imports under `ALONE` is therefore defined late; xDSL's own functions and classes stay what they are. So are
the parameters of attributes, whose types are evaluated and made constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar, cast

import xdsl.irdl
import xdsl.irdl.attributes
from xdsl.ir import ParametrizedAttribute, TypedAttribute
from xdsl.irdl import (
    IRDLOperation,
    OpDef,
    ParamAttrDef,
    attr_def,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    successor_def,
)
from xdsl.irdl.attributes import irdl_param_attr_definition
from xdsl.utils.runtime_final import runtime_final

from mlirhlo.importing import ALONE, verify_once
from mlirhlo.importing.late_data import PACKAGES

_OpT = TypeVar("_OpT", bound=type[IRDLOperation])
_AttributeT = TypeVar("_AttributeT", bound=type[ParametrizedAttribute])

_FIELDS: tuple[type, ...] = tuple(
    type(make())
    for make in (attr_def, operand_def, prop_def, region_def, result_def, successor_def)
)
"""What a class is written with for each of its fields."""
_ALWAYS = ("get_irdl_definition", "traits", "verify_")
_WITH_FORMAT = ("parse", "print")
_WITHOUT_FIELDS = frozenset(IRDLOperation.__mro__)
_LOCK = RLock()


def defer_definitions() -> None:
    """Definitions of xDSL and of this package are built on demand when they are imported under `ALONE`."""
    ALONE.while_held(_switch)


def _switch(on: bool) -> None:
    attributes = deferred_attribute if on else irdl_param_attr_definition
    setattr(xdsl.irdl, "irdl_op_definition", deferred if on else irdl_op_definition)  # noqa: B010
    setattr(xdsl.irdl.attributes, "irdl_param_attr_definition", attributes)  # noqa: B010


def deferred_attribute(cls: _AttributeT) -> _AttributeT:
    """As xDSL's `irdl_param_attr_definition`: with a definition that is built when it is first read."""
    if not cls.__module__.startswith(PACKAGES):
        return irdl_param_attr_definition(cls)

    def build(_: object) -> ParamAttrDef:
        definition = ParamAttrDef.from_pyrdl(cls)
        setattr(cls, "get_irdl_definition", classmethod(lambda _: definition))  # noqa: B010
        return definition

    def type_index(_: object) -> int:
        names = [name for name, _ in cls.get_irdl_definition().parameters]
        index = names.index("type")
        setattr(cls, "get_type_index", classmethod(lambda _: index))  # noqa: B010
        return index

    setattr(cls, "get_irdl_definition", classmethod(build))  # noqa: B010
    if issubclass(cls, TypedAttribute):
        setattr(cls, "get_type_index", classmethod(type_index))  # noqa: B010
    return cast(_AttributeT, runtime_final(dataclass(frozen=True, init=False)(cls)))


def deferred(cls: _OpT) -> _OpT:
    """As `irdl_op_definition`: with attributes that build the definition when the first of them is read.

    What is wrong with a definition is reported then; classes of other packages are built at once.
    """
    if not cls.__module__.startswith(PACKAGES):
        return cast(_OpT, irdl_op_definition(cls))
    names = set[str](_ALWAYS)
    for parent in cls.__mro__:
        if parent not in _WITHOUT_FIELDS:
            names.update(name for name, value in vars(parent).items() if isinstance(value, _FIELDS))
    if cls.assembly_format is not None:
        names.update(_WITH_FORMAT)
    _Definition(cls, names)
    return cls


class _Definition:
    """The definition of a class that has not been built yet."""

    def __init__(self, cls: type[IRDLOperation], names: set[str]) -> None:
        self.cls = cls
        self.names = names
        self.written = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        for name in names:
            setattr(cls, name, _Deferred(self, name))

    def build(self) -> None:
        """Has xDSL define a class that is written like this one, and takes over its attributes.

        Other threads may use the class meanwhile: an attribute is either deferred or final.
        """
        with _LOCK:
            if not self.names:
                return
            for parent in self.cls.__mro__[1:]:
                if isinstance(traits := vars(parent).get("traits"), _Deferred):
                    traits.definition.build()
            kind = cast(Any, type(self.cls))
            twin = kind(self.cls.__name__, self.cls.__bases__, self.written)
            defined: dict[str, Any] = dict(vars(cast(type, irdl_op_definition(twin))))
            _checked_once(twin.get_irdl_definition())
            for name in self.names:
                setattr(self.cls, name, defined[name])
            self.names = set[str]()


class _CheckedOnce(OpDef):
    """The definition of an operation of which equal ones are verified once."""

    __qualname__ = "OpDef"  # as it is printed
    verify = verify_once.verify


def _checked_once(definition: OpDef) -> None:
    definition.__class__ = _CheckedOnce


class _Deferred:
    """An attribute of a class whose definition has not been built yet."""

    __slots__ = ("definition", "name")

    def __init__(self, definition: _Definition, name: str) -> None:
        self.definition = definition
        self.name = name

    def __get__(self, op: IRDLOperation | None, owner: type) -> Any:
        get = self._built("__get__")
        return vars(self.definition.cls)[self.name] if get is None else get(op, owner)

    def __set__(self, op: IRDLOperation, value: object) -> None:
        if (put := self._built("__set__")) is None:
            raise AttributeError(f"{op.name}: '{self.name}' cannot be set")
        put(op, value)

    def _built(self, access: str) -> Callable[..., Any] | None:
        self.definition.build()
        return cast(
            "Callable[..., Any] | None", getattr(vars(self.definition.cls)[self.name], access, None)
        )
