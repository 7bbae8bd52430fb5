"""Which attributes of an op are inherent, and the spellings that released versions have had.

Once, inherent attributes stood among the others, and lists of numbers were dense constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.rows import KINDS, OpRow, Property
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, Scanner

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


def settle(
    scanner: Scanner,
    cls: type[Operation],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    start: int,
) -> None:
    """Moves inherent attributes to `properties` and checks their kinds."""
    if issubclass(cls, TableOp):
        row = cls.row
        for name in [key for key in attributes if key in row.by_name or key in SEGMENTS]:
            value = attributes.pop(name)
            properties.setdefault(name, value)
        for name, value in properties.items():
            own = row.by_name.get(name)
            if own is not None:
                properties[name] = _settled(scanner, row, own, value, start)
            elif name not in SEGMENTS:
                scanner.fail(f"{row.name} has no property '{name}'", start, code=BAD_VALUE)
        for own in row.properties:
            if own.is_required and own.name not in properties:
                scanner.fail(
                    f"{row.name} needs '{own.name}'", start, length=len(row.name), code=BAD_VALUE
                )
    elif issubclass(cls, IRDLOperation):
        names = cls.get_irdl_definition().properties
        for name in [key for key in attributes if key in names]:
            value = attributes.pop(name)
            properties.setdefault(name, value)


def _is_integer(width: int) -> Callable[[Attribute], bool]:
    wanted = IntegerType(width)
    return lambda value: isinstance(value, IntegerAttr) and _type(cast(Any, value)) == wanted


def _type(value: Any) -> Attribute:
    """Type of a number."""
    return cast(Attribute, value.type)


def _entries(value: Any) -> Attribute:
    """Type of the entries of a dense array."""
    return cast(Attribute, value.elt_type)


_CHECKS: dict[str, Callable[[Attribute], bool]] = {
    "any": lambda _: True,
    "bool": lambda value: isinstance(value, IntegerAttr) and _type(cast(Any, value)) == i1,
    "bools": lambda value: isinstance(value, DenseArrayBase) and _entries(cast(Any, value)) == i1,
    "dict": lambda value: isinstance(value, DictionaryAttr),
    "elements": lambda value: hasattr(value, "get_type"),
    "elements64": lambda value: isinstance(value, DenseAttr) and value.data.element_type == i64,
    "f32": lambda value: isinstance(value, FloatAttr) and _type(cast(Any, value)) == f32,
    "i32": _is_integer(32),
    "i64": _is_integer(64),
    "i64s": lambda value: isinstance(value, DenseArrayBase) and _entries(cast(Any, value)) == i64,
    "layouts": lambda value: isinstance(value, ArrayAttr),
    "list": lambda value: isinstance(value, ArrayAttr),
    "precisions": lambda value: isinstance(value, ArrayAttr),
    "str": lambda value: isinstance(value, StringAttr),
    "symbol": lambda value: isinstance(value, SymbolRefAttr),
    "symbols": lambda value: isinstance(value, ArrayAttr),
    "unit": lambda value: isinstance(value, UnitAttr),
}


def _settled(
    scanner: Scanner, row: OpRow, own: Property, value: Attribute, start: int
) -> Attribute:
    """`value` in the spelling of today. Raises HLO0032 when it is of another kind."""
    kind = own.kind
    if kind in ("i64s", "bools") and isinstance(value, DenseAttr):
        array = array_of(value)
        if array.ndim <= 1 and array.dtype.kind in "iub":
            flat = [int(v) for v in array.reshape(-1)]
            value = (
                integers(tuple(flat))
                if kind == "i64s"
                else DenseArrayBase.from_list(i1, [int(v != 0) for v in flat])
            )
    check = _CHECKS.get(kind)
    if check is not None:
        fits = check(value)
    else:
        fits = type(value).__name__ == kind
    if not fits:
        scanner.fail(
            f"{row.name}: '{own.name}' is {_words(kind)}, not {str(cast(Any, value))[:60]}",
            start,
            length=len(row.name),
            code=BAD_VALUE,
        )
    return value


def _words(kind: str) -> str:
    return KINDS.get(kind, f"a {kind.removesuffix('Attr')} attribute")
