"""Attributes of a `jax.ffi` call: its `backend_config` as structs of the foreign functions' interface."""

# The structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
)

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.integrations.jax.ffi_context import span, struct
from mlirhlo.interp.custom_calls.options import dictionary_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirhlo.dialects.hlo.ops.base import Instruction

Attrs = struct("Attrs", size=c.c_int64, types=c.c_void_p, names=c.c_void_p, attrs=c.c_void_p)
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4


class _Scalar(c.Structure):
    _fields_ = (("dtype", c.c_int), ("value", c.c_void_p))


class _Array(c.Structure):
    _fields_ = (("dtype", c.c_int), ("size", c.c_size_t), ("data", c.c_void_p))


def data_type(element_type: str) -> int:
    """The number of an element type, which is that of XLA's protos."""
    return PRIMITIVE_TYPES[element_type].number


def attributes_of(op: Instruction, kept: list[Any]) -> Any:
    """The attributes of a call; `kept` gets what the struct points to.

    Raises `HloError` HLO0355 for a `backend_config` that is no dictionary, or holds what a handler cannot take.
    """
    return _dictionary(op, dictionary_of(op), kept)


def _dictionary(op: Instruction, attribute: DictionaryAttr, kept: list[Any]) -> Any:
    items = sorted(attribute.data.items())
    count = max(len(items), 1)
    types, names, values = (c.c_int * count)(), (c.c_void_p * count)(), (c.c_void_p * count)()
    for number, (name, value) in enumerate(items):
        types[number], made = _converted(op, name, value, kept)
        spelled = span(name.encode(), kept)
        names[number], values[number] = c.addressof(spelled), c.addressof(made)
        kept += [spelled, made]
    kept += [types, names, values]
    at = [c.addressof(each) for each in (types, names, values)]
    return Attrs(
        struct_size=c.sizeof(Attrs), size=len(items), types=at[0], names=at[1], attrs=at[2]
    )


def _converted(op: Instruction, name: str, value: Attribute, kept: list[Any]) -> tuple[int, Any]:
    """The kind of an attribute, and its struct."""
    match value:
        case DictionaryAttr():
            return _DICTIONARY, _dictionary(op, value, kept)
        case StringAttr():
            return _STRING, span(value.data.encode(), kept)
        case BytesAttr():
            return _STRING, span(value.data, kept)
        case IntegerAttr() | FloatAttr():
            number = cast("IntegerAttr[Any]", value)
            dtype, data = _numbers(number.type, [number.value.data], kept)
            return _SCALAR, _Scalar(dtype=dtype, value=data)
        case DenseArrayBase() | DenseIntOrFPElementsAttr():
            array = cast("DenseArrayBase[Any]", value)
            numbers = list(array.get_values())
            dtype, data = _numbers(array.get_element_type(), numbers, kept)
            return _ARRAY, _Array(dtype=dtype, size=len(numbers), data=data)
        case _:
            raise error(
                "HLO0355",
                f"%{op.instruction_name}: attribute {name!r} = {value}: no handler takes it",
            )


def _numbers(type_: Any, values: list[Any], kept: list[Any]) -> tuple[int, int]:
    """Element type and address of numbers."""
    if isinstance(type_, IntegerType):
        width = type_.width.data
        is_unsigned = type_.signedness.data is Signedness.UNSIGNED
        name = "pred" if width == 1 else f"{'u' if is_unsigned else 's'}{width}"
    else:
        name = "s64" if str(type_) == "index" else str(type_)
    array = np.array(values).astype(PRIMITIVE_TYPES[name].dtype)
    kept.append(array)
    return data_type(name), array.ctypes.data
