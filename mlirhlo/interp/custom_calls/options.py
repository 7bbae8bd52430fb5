"""Options of custom calls: `backend_config` as JSON or as an MLIR dictionary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import ParseError

from mlirhlo.diagnostics import HloError, error

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction


_KEY = re.compile(r'("(?:[^"\\]|\\.)*")|\b([A-Za-z_]\w*)(?=\s*:)')
"""A string, or a key that is none."""


def options_of(op: Instruction) -> Mapping[str, Any]:
    """The `backend_config` of an instruction as a dictionary of plain values; empty without one.

    JSON as it is, with keys that have no quotes too, as protobuf reads it (JAX 0.4 wrote one); of MLIR
    dictionaries numbers, booleans, strings (bytes where they are no UTF-8) and lists of them.
    Raises `HloError` HLO0355 when it is neither.
    """
    text = op.backend_config.strip()
    if not text:
        return {}
    try:
        return _read(text)
    except (ValueError, ParseError):
        raise _unreadable(op, text) from None


@lru_cache(maxsize=1 << 10)
def _read(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = json.loads(_KEY.sub(lambda m: m[1] or f'"{m[2]}"', text))
        except ValueError:
            value = _plain(_parsed(text))
    if not isinstance(value, dict):
        raise ValueError(text)
    return cast("dict[str, Any]", value)


def dictionary_of(op: Instruction) -> DictionaryAttr:
    """The `backend_config` of an instruction as an MLIR dictionary, whose numbers have types; empty without one.

    Raises `HloError` HLO0355 where it is something else.
    """
    text = op.backend_config.strip()
    try:
        attribute = _parsed(text) if text else DictionaryAttr({})
        if isinstance(attribute, DictionaryAttr):
            return attribute
    except ParseError:
        pass
    raise _unreadable(op, text)


def _unreadable(op: Instruction, text: str) -> HloError:
    shown = text if len(text) < 60 else text[:57] + "..."
    name = f"{op.opcode.name} %{op.instruction_name}"
    return error("HLO0355", f"{name}: cannot read backend_config {shown}")


def _parsed(text: str) -> Attribute:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    return Parser(context, text).parse_attribute()


def _plain(attribute: Attribute) -> Any:
    match attribute:
        case DictionaryAttr():
            return {key: _plain(value) for key, value in attribute.data.items()}
        case IntegerAttr():
            value = cast("IntegerAttr[Any]", attribute).value.data
            type_ = cast("IntegerAttr[Any]", attribute).type
            is_bool = isinstance(type_, IntegerType) and type_ == i1
            return bool(value) if is_bool else value
        case FloatAttr():
            return cast("FloatAttr[Any]", attribute).value.data
        case StringAttr() | BytesAttr():
            return attribute.data
        case ArrayAttr():
            return [_plain(item) for item in attribute.data]
        case DenseArrayBase() | DenseIntOrFPElementsAttr():
            return list(cast("DenseArrayBase[Any]", attribute).get_values())
        case _:
            return str(attribute)
