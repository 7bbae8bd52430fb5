"""What quantized element types ask of operands and results; numbered by each op on its own."""

from __future__ import annotations

import math

from mlirhlo.analysis.stablehlo.base import ConstraintError, Given, declare
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    PER_AXIS,
    QUANTIZED,
    Tensor,
    bits,
    expressed,
    is_quantized,
    kind_of,
    quantized,
    scales,
)


def per_axis(tensor: Tensor) -> int | None:
    """Dimension along which scales differ; None for other tensors."""
    if kind_of(tensor.element) != PER_AXIS:
        return None
    found: int | None = quantized(tensor.element, "axis")
    return found


def widths_before(tensor: Tensor, dim: int) -> int:
    """Product of the sizes before `dim`."""
    return math.prod(tensor.sizes[:dim])


def check_same_scales(given: Given, a: Tensor, b: Tensor, number: int) -> None:
    """Quantized tensors of one granularity have the same scales and zero points; raises constraint
    `number`, also where one of both is not quantized."""
    if is_quantized(a.element) != is_quantized(b.element):
        raise given.error(number, f"one is quantized, the other is not: {a} and {b}")
    kinds = (kind_of(a.element), kind_of(b.element))
    if kinds == (QUANTIZED, QUANTIZED) and a.element != b.element:
        raise given.error(number, f"scale or zero point differ: {a.element} and {b.element}")
    if kinds == (PER_AXIS, PER_AXIS):
        for part in ("scales", "zero_points"):
            if tuple(quantized(a.element, part)) != tuple(quantized(b.element, part)):
                raise given.error(number, f"{part.replace('_', ' ')} differ: {a} and {b}")


def check_product(
    given: Given, lhs: Tensor, rhs: Tensor, result: Tensor, numbers: tuple[int, int, int, int, int]
) -> None:
    """What `dot_general` and `convolution` ask alike. `numbers`: which is quantized, storage types,
    expressed types, granularity, and the element types of a hybrid."""
    quantized_ones, storage, expression, granularity, hybrid = numbers
    if not is_quantized(rhs.element) or is_quantized(lhs.element) != is_quantized(result.element):
        raise given.error(
            quantized_ones, "rhs is quantized, and lhs just when the result is", operand=1
        )
    if not is_quantized(lhs.element):
        if lhs.element != expressed(rhs.element) or lhs.element != result.element:
            raise given.error(
                hybrid, "lhs and result have the element type that rhs expresses", operand=0
            )
        return
    if quantized(lhs.element, "storage_type") != quantized(rhs.element, "storage_type"):
        raise given.error(storage, "lhs and rhs have different storage types", operand=1)
    kinds = {expressed(tensor.element) for tensor in (lhs, rhs, result)}
    if len(kinds) != 1:
        raise given.error(
            expression, "expressed types differ: " + ", ".join(sorted(map(str, kinds)))
        )
    if kind_of(rhs.element) == QUANTIZED and kind_of(result.element) == PER_AXIS:
        raise given.error(granularity, "rhs is quantized as a whole, the result along an axis")


declare(
    "quantized_element_type",
    c1="the storage type is not wider than the expressed type, unless it has 32 bits",
    c4="storage_min is less than storage_max, and both are of the storage type",
    c6="scales are positive",
    c7="scales are finite",
    c8="zero points are within the storage range",
    c12="the quantized dimension is a dimension of the tensor",
    c13="there is a scale for each index of the quantized dimension",
)


def check_element(given: Given, tensor: Tensor) -> None:
    """The quantized element type of `tensor` is sound; numbers of the specification's list of
    constraints on quantized element types and tensor types. The others of that list (types of
    scales and zero points, and their counts) hold by the syntax of the type."""

    def problem(number: int, message: str) -> ConstraintError:
        return ConstraintError(f"quantized_element_type_c{number}", f"{tensor}: {message}")

    element = tensor.element
    storage = quantized(element, "storage_type")
    # The specification asks for less than the expressed type's bits; StableHLO takes more, and
    # sums of products are i32 for every expressed type.
    if bits(expressed(element)) < bits(storage) != 32:  # c1
        raise problem(1, f"{storage} is wider than {expressed(element)}")
    low, high = quantized(element, "storage_min"), quantized(element, "storage_max")
    if low >= high:  # c4
        raise problem(4, f"the range {low}:{high} is empty")
    factors, zeros = scales(element), tuple(quantized(element, "zero_points"))
    if any(not math.isfinite(scale) for scale in factors):  # c7
        raise problem(7, "a scale is not finite")
    if any(scale <= 0 for scale in factors):  # c6
        raise problem(6, "a scale is not positive")
    if any(not low <= zero <= high for zero in zeros):  # c8
        raise problem(8, f"a zero point is not within {low}:{high}")
    axis = per_axis(tensor)
    if axis is None:
        return
    if not 0 <= axis < tensor.rank:  # c12
        raise problem(12, f"dimension {axis} is none of {tensor.rank}")
    if tensor.sizes[axis] != DYNAMIC and len(factors) != tensor.sizes[axis]:  # c13
        raise problem(13, f"{len(factors)} scales for {tensor.sizes[axis]} elements")
