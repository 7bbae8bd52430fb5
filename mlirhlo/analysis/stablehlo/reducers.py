"""Regions that combine two scalars: those of reduce, scatter, all_reduce and the like."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import Given
from mlirhlo.analysis.stablehlo.tensors import (
    Tensor,
    fits_element,
    fits_shape,
    is_promotable,
    same_but_precision,
    tensor_of,
)


def returned_tensors(given: Given, region: int, count: int, number: int) -> tuple[Tensor, ...]:
    """What region `region` returns: `count` tensors, else raises constraint `number`."""
    types = given.returned(region)
    if len(types) != count:
        raise given.error(number, f"the region returns {len(types)} values, not {count}")
    tensors = [tensor_of(kind) for kind in types]
    found = [tensor for tensor in tensors if tensor is not None]
    if len(found) != len(types):
        raise given.error(number, "the region returns a value that is no tensor")
    return tuple(found)


def reduced_elements(given: Given, region: int, count: int, number: int) -> list[Attribute]:
    """Element types that region `region` returns."""
    return [tensor.element for tensor in returned_tensors(given, region, count, number)]


def check_reducer(
    given: Given,
    region: int,
    inputs: Sequence[Tensor],
    initial: Sequence[Tensor],
    allowed: Sequence[int],
    numbers: tuple[int, int],
) -> None:
    """A region that takes and returns, for each input, two values and one of one type.

    `initial` are the types of the initial values, `allowed` the sizes that arguments may have
    beyond scalars. `numbers`: the constraint on the region, and that on the initial values.
    """
    number, initial_number = numbers
    count = len(inputs)
    arguments = given.arguments(region)
    if len(arguments) != 2 * count:
        raise given.error(number, f"the region takes {len(arguments)} values, not {2 * count}")
    for index, result in enumerate(returned_tensors(given, region, count, number)):
        for at in (index, count + index):
            argument = tensor_of(arguments[at])
            if argument is None or not fits_shape(argument, result):
                raise given.error(
                    number, f"argument #{at} of the region is {arguments[at]}, its result {result}"
                )
            alike = fits_element if at == index else same_but_precision
            if not alike(argument.element, result.element):
                raise given.error(
                    number, f"argument #{at} of the region is {argument}, its result {result}"
                )
        start = initial[index]
        if not fits_shape(start, result):
            raise given.error(
                initial_number, f"an initial value is {start}, the region returns {result}"
            )
        if not is_promotable(start.element, result.element, any_float=True):
            raise given.error(
                initial_number,
                f"an initial value is {start.element}, which does not promote to {result.element}",
            )
        second = tensor_of(arguments[count + index])
        assert second is not None
        if not is_promotable(inputs[index].element, second.element, any_float=True):
            raise given.error(
                number,
                f"elements {inputs[index].element} do not promote to the region's {second.element}",
            )
        if not _within(second.sizes, allowed):
            raise given.error(number, f"argument #{count + index} of the region is {second}")


def _within(sizes: Sequence[int], allowed: Sequence[int]) -> bool:
    """Whether `sizes` stand among `allowed` in order."""
    rest = iter(allowed)
    return all(any(fits(size, other) for other in rest) for size in sizes)
