"""Plain Python values of what kernels' operations carry, registered or not.

Kernels travel with all attributes in the discardable dictionary; registered operations have them as
properties. Everything here looks in both places. Attributes of the `tpu` dialect stand as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation

_CASE = re.compile(r"<\s*([\w.]+)")
_LIST = re.compile(r"\[([^\[\]]*)\]")


def name_of(op: Operation) -> str:
    """The operation's name, without the prefix of the stable form."""
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return name.removeprefix("stable_mosaic.")


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """The attribute or property of that name; None without one."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def integer_of(op: Operation, name: str, default: int = 0) -> int:
    """An integer attribute; `default` without one."""
    found = attribute_of(op, name)
    return cast("IntegerAttr[Any]", found).value.data if isinstance(found, IntegerAttr) else default


def flag_of(op: Operation, name: str, *, default: bool = False) -> bool:
    """A boolean attribute; `default` without one."""
    return bool(integer_of(op, name, int(default)))


def integers_of(op: Operation, name: str) -> tuple[int, ...] | None:
    """An array of integers in any of the forms they are written in; None without one."""
    found = attribute_of(op, name)
    return None if found is None else integers(found)


def integers(attribute: Attribute) -> tuple[int, ...]:
    """The numbers of `array<i64: 1, 2>`, `[1, 2]`, `dense<[1, 2]>` or a single integer."""
    value = plain(attribute)
    if isinstance(value, int):
        return (value,)
    return tuple(int(item) for item in value)


def string_of(op: Operation, name: str) -> str | None:
    """A string attribute; None without one."""
    found = attribute_of(op, name)
    return found.data if isinstance(found, StringAttr) else None


def case_of(attribute: Attribute | None, default: str = "") -> str:
    """`sum` for `#tpu.reduction_kind<sum>`: the first word between the angle brackets.

    `default` for no attribute.
    """
    if attribute is None:
        return default
    if isinstance(attribute, StringAttr):
        return attribute.data
    text = str(attribute)
    found = _CASE.search(text)
    return found.group(1) if found is not None else text.rsplit(".", 1)[-1]


def lists_of(attribute: Attribute) -> tuple[tuple[int, ...], ...]:
    """`((1,), (0,), ())` for `#tpu.something<[1], [0], []>`: the lists of numbers in its text."""
    return tuple(
        tuple(int(item) for item in body.split(",") if item.strip())
        for body in _LIST.findall(str(attribute))
    )


def plain(attribute: Attribute) -> Any:
    """Numbers, strings, lists and dictionaries as Python has them; other attributes unchanged."""
    match attribute:
        case IntegerAttr():
            return cast("IntegerAttr[Any]", attribute).value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [plain(item) for item in attribute.data]
        case DenseArrayBase() | DenseIntOrFPElementsAttr():
            return list(cast("DenseArrayBase[Any]", attribute).get_values())
        case DictionaryAttr():
            return {key: plain(value) for key, value in attribute.data.items()}
        case SymbolRefAttr():
            return attribute.string_value()
        case _:
            return attribute


def dictionaries_of(op: Operation, name: str) -> tuple[Mapping[str, Attribute], ...] | None:
    """An array of dictionaries; None without one."""
    found = attribute_of(op, name)
    if not isinstance(found, ArrayAttr):
        return None
    items: tuple[Attribute, ...] = cast("ArrayAttr[Any]", found).data
    return tuple(item.data if isinstance(item, DictionaryAttr) else {} for item in items)
