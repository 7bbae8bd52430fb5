"""Signatures of computations that fold scalars, shared by reduce, reduce-window, scatter and others."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.shape_inference.base import Given, plain, same_but_precision
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array, compatible


def check_reducer(
    given: Given,
    reducer: ProgramLayout,
    inits: Sequence[Shape],
    element_types: Sequence[PrimitiveType],
    number: int,
    key: str,
) -> tuple[ArrayShape, ...]:
    """Shapes of the accumulators: scalars, one an input. Raises constraint `number` when `reducer`
    does not take accumulators (like `inits`) and elements, and give accumulators."""
    count = len(element_types)
    accumulators = _accumulators(given, reducer, count, number, key)

    def fail(message: str) -> Exception:
        return given.error(number, "Reduction function" + message, attribute=key)

    for i, accumulator in enumerate(accumulators):
        taken, element = reducer.parameters[i], reducer.parameters[count + i]
        if not compatible(accumulator, taken):
            raise fail(
                f"'s {i}-th parameter shape differs from the result shape: {plain(taken)} vs"
                f" {plain(accumulator)}"
            )
        if not same_but_precision(accumulator, inits[i]):
            raise fail(
                f"'s accumulator shape at index {i} differs from the init_value shape:"
                f" {plain(accumulator)} vs {plain(inits[i])}"
            )
        if not same_but_precision(array(element_types[i]), element):
            raise fail(
                f"'s {count + i}-th parameter shape differs from the input type element type:"
                f" {plain(element)} vs {element_types[i]}[]"
            )
        if not same_but_precision(accumulator, element):
            raise fail(
                f"'s {count + i}-th parameter shape must match the result shape, but got"
                f" {plain(element)} vs {plain(accumulator)}."
            )
    return accumulators


def _accumulators(
    given: Given, reducer: ProgramLayout, count: int, number: int, key: str
) -> tuple[ArrayShape, ...]:
    def fail(message: str) -> Exception:
        return given.error(number, f"Reduction function must {message}", attribute=key)

    if len(reducer.parameters) != 2 * count:
        raise fail(
            f"take {2 * count} parameters, but takes {len(reducer.parameters)} parameter(s)."
        )
    result = reducer.result
    parts = result.elements if isinstance(result, TupleShape) else (result,)
    if len(parts) != count:
        has = (
            f"has {len(parts)} elements" if isinstance(result, TupleShape) else "produces a scalar"
        )
        raise fail(f"produce a tuple with {count} elements, but {has}")
    scalars = tuple(p for p in parts if isinstance(p, ArrayShape) and p.is_scalar)
    if len(scalars) != len(parts):
        raise fail(f"return a scalar or tuple of scalars but returns shape: {plain(result)}")
    return scalars


def check_same_sizes(
    given: Given, operands: Sequence[ArrayShape], number: int, what: str = "reduced"
) -> None:
    """All operands have the sizes of the first. Raises constraint `number`."""
    first = operands[0]
    for index, other in enumerate(operands[1:], 1):
        if not _fit(first, other):
            raise given.error(
                number,
                f"All {what} tensors must have compatible dimension. Tensor at index 0 has shape"
                f" {plain(first)}, and tensor at index {index} has shape {plain(other)}.",
                operand=index,
            )


def _fit(a: ArrayShape, b: ArrayShape) -> bool:
    return compatible(a, ArrayShape(a.element_type, b.dimensions, b.dynamic))
