"""Small attributes of StableHLO ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, TensorType, i1, i64
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, str_of, string
from mlirhlo.dialects.hlo.attributes.dimensions import Window
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.stablehlo.attributes import PrecisionAttr
from mlirhlo.dialects.stablehlo.elements import dense

__all__ = ["boolean", "booleans", "integer", "integers", "matrix", "precisions", "string", "window"]


def matrix(rows: Sequence[Sequence[int]], width: int | None = None) -> Attribute:
    """`dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; -1 fills short rows."""
    import numpy as np

    columns = max((len(row) for row in rows), default=0) if width is None else width
    values = np.full((len(rows), columns), -1, np.int64)
    for index, row in enumerate(rows):
        values[index, : len(row)] = row
    type_: TensorType[Attribute] = TensorType(i64, values.shape)
    return dense(values, type_)


def booleans(values: Sequence[bool]) -> Attribute:
    """`array<i1: true, false>`."""
    return DenseArrayBase.from_list(i1, [int(v) for v in values])


def precisions(op: Instruction, count: int = 2) -> Attribute:
    """`precision_config`, spelled out for each operand."""
    found = op.properties.get("operand_precision")
    words = (
        [str_of(word).upper() for word in cast("ArrayAttr[Attribute]", found).data]
        if isinstance(found, ArrayAttr)
        else ["DEFAULT"] * count
    )
    return ArrayAttr([PrecisionAttr(word) for word in words])


def window(value: Window, keys: dict[str, str]) -> dict[str, Attribute]:
    """The parts of a window, under the names that `keys` has for them; `padding` under its own."""
    dims = value.dimensions
    parts: dict[str, Attribute] = {
        "size": integers(tuple(d.size for d in dims)),
        "stride": integers(tuple(d.stride for d in dims)),
        "base": integers(tuple(d.base_dilation for d in dims)),
        "dilation": integers(tuple(d.window_dilation for d in dims)),
        "reversal": booleans([d.window_reversal for d in dims]),
        "padding": matrix([(d.padding_low, d.padding_high) for d in dims], 2),
    }
    return {name: parts[key] for key, name in keys.items()}
