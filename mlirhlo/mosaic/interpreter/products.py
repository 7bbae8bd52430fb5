"""Products of vectors: any contraction as one matrix product."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr

from mlirhlo.mosaic.attributes import attribute_of
from mlirhlo.mosaic.interpreter.numbers import is_float, width_of
from mlirhlo.mosaic.interpreter.problems import unfit

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from mlirhlo.mosaic.interpreter.registry import Array

Maps: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Which loop each dimension of the left, the right operand and the result belongs to."""

_RESULTS = re.compile(r"->\s*\(([^)]*)\)")


def _loops(attribute: Attribute) -> tuple[int, ...]:
    text = str(attribute.data) if isinstance(attribute, AffineMapAttr) else str(attribute)
    found = _RESULTS.search(text)
    body = found.group(1) if found is not None else ""
    return tuple(int(item.strip().removeprefix("d")) for item in body.split(",") if item.strip())


def indexing_maps(op: Operation) -> Maps:
    """The maps of a `vector.contract`. Raises `HloError` HLO0701 when they are no projections."""
    stated = attribute_of(op, "indexing_maps")
    if not isinstance(stated, ArrayAttr):
        raise unfit(op, "its indexing maps are missing")
    try:
        left, right, out = (_loops(item) for item in stated)
    except ValueError:
        raise unfit(op, f"indexing maps {stated}") from None
    return left, right, out


def _arranged(array: Array, dims: tuple[int, ...], groups: Sequence[Sequence[int]]) -> Array:
    """Transposed to the groups' loops in order, each group one dimension but the first."""
    order = [dims.index(loop) for group in groups for loop in group]
    batch = [array.shape[dims.index(loop)] for loop in groups[0]]
    sizes = [prod(array.shape[dims.index(i)] for i in g) for g in groups[1:]]
    return array.transpose(order).reshape(*batch, *sizes)


def contract(maps: Maps, a: Array, b: Array, start: Any, dtype: np.dtype[Any]) -> Any:
    """`start` plus the product; floats are multiplied and summed in f32, integers exactly."""
    left, right, out = maps
    batch = [i for i in out if i in left and i in right]
    contracting = [i for i in left if i in right and i not in out]
    rows = [i for i in out if i in left and i not in right]
    columns = [i for i in out if i in right and i not in left]
    wide: Any
    floats = is_float(a.dtype) or is_float(b.dtype)
    if floats:
        wide = np.float64 if dtype == np.float64 else np.float32
    elif max(width_of(a.dtype), width_of(b.dtype)) <= 16:
        # Such products and their sums are whole numbers that f64 holds, and BLAS is fast on them.
        wide = np.float64
    else:
        wide = np.int64
    x = _arranged(a, left, [batch, rows, contracting]).astype(wide, copy=False)
    y = _arranged(b, right, [batch, contracting, columns]).astype(wide, copy=False)
    product = np.matmul(x, y)
    if not floats:
        product = product.astype(np.int64).astype(dtype)
    sizes = dict(zip((*left, *right), (*a.shape, *b.shape), strict=True))
    found = [*batch, *rows, *columns]
    product = product.reshape([sizes[i] for i in found])
    product = product.transpose([found.index(i) for i in out])
    if floats:
        return (start.astype(product.dtype, copy=False) + product).astype(dtype, copy=False)
    return start + product
