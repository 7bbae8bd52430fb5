"""Reading the attributes of StableHLO ops, whichever of MLIR's forms they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, string
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.stablehlo.elements import array_of

__all__ = [
    "attribute",
    "boolean",
    "flag",
    "integer",
    "integers",
    "listed",
    "number",
    "numbers",
    "pairs",
    "precisions",
    "string",
    "symbol_name",
    "text",
    "window",
    "word",
]


def attribute(op: Operation, key: str) -> Attribute | None:
    """Inherent or discardable attribute `key` of `op`."""
    found = op.properties.get(key)
    return op.attributes.get(key) if found is None else found


def number(op: Operation, key: str, default: int = 0) -> int:
    """An integer."""
    found = attribute(op, key)
    return default if found is None else cast("IntegerAttr[Any]", found).value.data


def flag(op: Operation, key: str) -> bool:
    """A bool, or a unit attribute that is there."""
    found = attribute(op, key)
    if found is None:
        return False
    return isinstance(found, UnitAttr) or cast("IntegerAttr[Any]", found).value.data != 0


def numbers_of(found: Attribute) -> tuple[int, ...]:
    """The integers of an array, a list, or a dense tensor of them."""
    if isinstance(found, DenseArrayBase):
        return tuple(int(v) for v in cast("DenseArrayBase[Any]", found).get_values())
    if isinstance(found, ArrayAttr):
        return tuple(
            cast("IntegerAttr[Any]", v).value.data for v in cast("ArrayAttr[Attribute]", found).data
        )

    return tuple(int(v) for v in array_of(found).reshape(-1))


def numbers(op: Operation, key: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """A list of integers."""
    found = attribute(op, key)
    return tuple(default) if found is None else numbers_of(found)


def flags(op: Operation, key: str, default: Sequence[bool]) -> tuple[bool, ...]:
    """A list of bools."""
    return tuple(v != 0 for v in numbers(op, key, [int(v) for v in default]))


def pairs(op: Operation, key: str, rank: int) -> tuple[tuple[int, int], ...]:
    """An N x 2 tensor of integers; zeros when absent."""
    found = attribute(op, key)
    if found is None:
        return ((0, 0),) * rank
    flat = numbers_of(found)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def listed(op: Operation, key: str) -> tuple[Attribute, ...]:
    """The parts of a list; none when it is absent."""
    found = attribute(op, key)
    return tuple(cast("ArrayAttr[Attribute]", found).data) if isinstance(found, ArrayAttr) else ()


def word(found: Attribute | None, default: str = "") -> str:
    """The spelled string of an enum attribute."""
    if found is None:
        return default
    value: Any = getattr(found, "data", default)
    return value if isinstance(value, str) else str(getattr(value, "value", value))


def text(op: Operation, key: str, default: str = "") -> str:
    """A string attribute."""
    found = attribute(op, key)
    return found.data if isinstance(found, StringAttr) else default


def symbol_name(found: Attribute | None) -> str:
    """Name a symbol reference means; empty for anything else."""
    return found.root_reference.data if isinstance(found, SymbolRefAttr) else ""


def precisions(op: Operation) -> Attribute | None:
    """`precision_config` as HLO's `operand_precision`; None when it says nothing."""
    found = attribute(op, "precision_config")
    if not isinstance(found, ArrayAttr):
        return None
    words = [word(p).lower() for p in cast("ArrayAttr[Attribute]", found).data]
    if all(w == "default" for w in words):
        return None
    return ArrayAttr([string(w) for w in words])


def window(op: Operation, sizes: Sequence[int], keys: dict[str, str]) -> Window:
    """The window of `op`: `keys` maps strides, base, dilations, reversal to attribute names."""
    rank = len(sizes)
    ones = (1,) * rank
    strides = numbers(op, keys["strides"], ones)
    base = numbers(op, keys["base"], ones) if "base" in keys else ones
    dilations = numbers(op, keys["dilations"], ones) if "dilations" in keys else ones
    padding = pairs(op, "padding", rank)
    reversal = flags(op, keys["reversal"], (False,) * rank) if "reversal" in keys else ()
    return Window(
        tuple(
            WindowDimension(
                size=size,
                stride=strides[dim],
                padding_low=padding[dim][0],
                padding_high=padding[dim][1],
                window_dilation=dilations[dim],
                base_dilation=base[dim],
                window_reversal=bool(reversal and reversal[dim]),
            )
            for dim, size in enumerate(sizes)
        )
    )
