"""Products of matrices."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from mlirhlo.dialects.tpu.attributes import DotDimensionNumbersAttr
from mlirhlo.dialects.tpu.values import DotDimensionNumbers
from mlirhlo.mosaic.language.elements import F32, I32, DType, DTypeLike, as_dtype, kind_of, promoted
from mlirhlo.mosaic.language.faults import bad_shape, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import cast
from mlirhlo.mosaic.language.functions.shapes import normal_axis, reshape
from mlirhlo.mosaic.language.trace import attribute, emit_one, flag, vector_type
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, constant


class Precision(Enum):
    """How exact products of f32 elements are."""

    DEFAULT = "default"
    """Elements are rounded to bf16; sums are f32."""
    HIGH = "bf16x3"
    """Three products of bf16 parts."""
    HIGHEST = "fp32"
    """Elements as they are."""


def _precision(precision: Any) -> Precision:
    if precision is None:
        return Precision.DEFAULT
    name = getattr(precision, "name", str(precision)).upper()
    for found in Precision:
        if name in (found.name, found.value.upper()):
            return found
    raise bad_type(f"{precision!r} is no precision", "DEFAULT, HIGH or HIGHEST")


def _accumulator(a: Value, b: Value, wanted: DType | None) -> DType:
    is_integer = kind_of(a.dtype) in "iu" and kind_of(b.dtype) in "iu"
    found = I32 if is_integer else F32
    if wanted is not None and kind_of(wanted) != kind_of(found):
        raise bad_type(
            f"a product of {a.dtype.name} and {b.dtype.name} sums in {found.name}, "
            f"not {wanted.name}",
            "cast the result with astype",
        )
    return found


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Sums of products: `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`.

    The result has the batch dimensions, what is left of lhs, what is left of rhs. Sums are f32, or i32
    of integers; without `preferred_element_type` the result has the type of the operands.
    Raises `HloError` HLO0721 for shapes, HLO0722 for types.
    """
    a, b = as_value(lhs), as_value(rhs)
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = [
        tuple(normal_axis(dim, side.ndim) for dim in dims)
        for side, dims in ((a, lc), (b, rc), (a, lb), (b, rb))
    ]
    lc, rc, lb, rb = numbers
    for what, ours, theirs in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = [a.shape[d] for d in ours], [b.shape[d] for d in theirs]
        if sizes[0] != sizes[1]:
            raise bad_shape(
                f"{what} dimensions of {list(a.shape)} and {list(b.shape)} have the sizes "
                f"{sizes[0]} and {sizes[1]}"
            )
    ln = tuple(d for d in range(a.ndim) if d not in (*lc, *lb))
    rn = tuple(d for d in range(b.ndim) if d not in (*rc, *rb))
    if not ln or not rn:
        return _with_rows(a, b, (lc, rc, lb, rb), ln, rn, precision, preferred_element_type)
    shape = (*(a.shape[d] for d in (*lb, *ln)), *(b.shape[d] for d in rn))
    order = [n for d in (*lb, *ln) for n in (0, d)] + [n for d in rn for n in (1, d)]
    wanted = None if preferred_element_type is None else as_dtype(preferred_element_type)
    dtype = _accumulator(a, b, wanted)
    attributes = {
        "dimension_numbers": DotDimensionNumbersAttr(
            DotDimensionNumbers(lc, rc, ln, rn, tuple(order), lb, rb)
        ),
        "transpose_lhs_hint": flag(False),
    }
    exact = _precision(precision)
    if exact is not Precision.DEFAULT:
        attributes["precision"] = attribute(f"#tpu.contract_precision<{exact.value}>")
    start = constant(0, dtype, shape)
    operands = [a.ssa, b.ssa, start.ssa]
    ssa = emit_one("tpu.matmul", operands, vector_type(shape, dtype), attributes)
    result = Value(ssa, shape, dtype)
    target = promoted(a.dtype, b.dtype) if wanted is None else wanted
    return cast(result, dtype if kind_of(target) in "iu" and wanted is None else target)


def _with_rows(
    a: Value,
    b: Value,
    numbers: Any,
    ln: tuple[int, ...],
    rn: tuple[int, ...],
    precision: Any,
    wanted: DTypeLike,
) -> Value:
    """A product with a vector: with a dimension of size one in the place of the one that lacks."""
    lc, rc, lb, rb = numbers
    shape = (*(a.shape[d] for d in (*lb, *ln)), *(b.shape[d] for d in rn))
    if not ln:
        at = len(lb)
        a = reshape(a, (*a.shape[:at], 1, *a.shape[at:])) if lb else reshape(a, (1, *a.shape))
        lc, lb = (tuple(d + (d >= at) for d in dims) for dims in (lc, lb))
    if not rn:
        b = reshape(b, (*b.shape, 1))
    made = dot_general(
        a, b, ((lc, rc), (lb, rb)), precision=precision, preferred_element_type=wanted
    )
    return reshape(made, shape)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """The product of matrices or vectors, as numpy's `dot` of at most two dimensions, and of stacks
    of matrices as `matmul`.
    """
    lhs, rhs = as_value(a), as_value(b)
    if not lhs.shape or not rhs.shape:
        raise bad_shape("a product with a scalar", "write *")
    lc, rc = lhs.ndim - 1, max(0, rhs.ndim - 2)
    batch = tuple(range(lhs.ndim - 2)) if lhs.ndim == rhs.ndim > 2 else ()
    numbers = (((lc,), (rc,)), (batch, batch))
    return dot_general(
        lhs, rhs, numbers, precision=precision, preferred_element_type=preferred_element_type
    )


ON_NUMPY.update({np.dot: dot, np.matmul: dot})
