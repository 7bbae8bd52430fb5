"""Shapes of scan: a computation carried along a dimension."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.analysis.shape_inference.base import Given, checks, infers, plain, plain_signature
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, Shape, TupleShape, compatible


@infers(
    "scan",
    c1="the inputs are arrays",
    c2="num_carries is between 0 and the number of operands",
    c3="to_apply takes one parameter for each operand",
    c4="there is an input, so that the scanned size is known",
    c5="one dimension is named, and it is the inputs'",
)
def scan(given: Given) -> Shape:
    """The computation's outputs with the scanned dimension put in, then the final carries."""
    carries = given.int("num_carries")
    if not 0 <= carries <= len(given.operands):  # scan_c2
        raise given.error(
            2,
            f"expects at least {carries} operands to match the number of carries, but has"
            f" {len(given.operands)} operands",
            attribute="num_carries",
        )
    callee = given.callee("to_apply")
    if len(callee.parameters) != len(given.operands):  # scan_c3
        raise given.error(
            3,
            f"expects {len(given.operands)} operands to match the number of parameters of to_apply,"
            f" but to_apply has {len(callee.parameters)} parameters",
            attribute="to_apply",
        )
    if carries == len(given.operands):  # scan_c4
        if given.shape is not None:
            return given.shape
        raise given.error(4, "Cannot infer shape for scan with no inputs")
    first = given.array(0, "input of scan")
    numbers = given.ints("dimensions")
    if len(numbers) != 1 or not 0 <= numbers[0] < first.rank:  # scan_c5
        raise given.error(
            5, f"expects exactly one dimension of {plain(first)}", attribute="dimensions"
        )
    size = first.dimensions[numbers[0]]
    result = callee.result
    if not isinstance(result, TupleShape):
        return result if carries else _stacked(result, numbers[0], size)
    outputs = len(result.elements) - carries
    return TupleShape(
        tuple(
            _stacked(part, numbers[0], size) if index < outputs else part
            for index, part in enumerate(result.elements)
        )
    )


def _stacked(shape: Shape, dim: int, size: int) -> Shape:
    """`shape` with a dimension of `size` put in at `dim`."""
    if not isinstance(shape, ArrayShape) or dim > shape.rank:
        return shape
    sizes = (*shape.dimensions[:dim], size, *shape.dimensions[dim:])
    flags = (*shape.dynamic[:dim], False, *shape.dynamic[dim:]) if shape.dynamic else ()
    return ArrayShape(shape.element_type, sizes, flags, _with_dimension(shape.layout, dim))


def _with_dimension(layout: Layout | None, dim: int) -> Layout | None:
    """`layout` with a dimension put in at `dim`, next to the one that now follows it, and more
    major than it."""
    if layout is None:
        return None
    order = [d + 1 if d >= dim else d for d in layout.minor_to_major]
    order.insert(order.index(dim + 1) + 1 if dim + 1 in order else 0, dim)
    return Layout(tuple(order))


@checks(
    "scan",
    c6="to_apply gives outputs and then the carries (a lone one without a tuple)",
    c7="carries keep their shapes",
    c8="to_apply takes the inputs without the scanned dimension",
    c9="the inputs have one size in the scanned dimension",
)
def check_scan(given: Given) -> None:
    """What inference lets pass: whether the computation fits the operands."""
    carries = given.int("num_carries")
    inputs = len(given.operands) - carries
    callee = given.callee("to_apply")
    result = callee.result
    parts = result.elements if isinstance(result, TupleShape) else (result,)
    if len(parts) < carries:  # scan_c6
        raise given.error(
            6,
            f"the computation gives outputs and {carries} carries; its signature is"
            f" {plain_signature(callee)}",
            attribute="to_apply",
        )
    finals = parts[len(parts) - carries :]
    for index in range(carries):
        start = given.operands[inputs + index]
        for shape in (callee.parameters[inputs + index], finals[index]):
            if not compatible(start, shape):  # scan_c7
                raise given.error(
                    7,
                    f"carry {index} is {plain(start)} at first, but the computation has"
                    f" {plain(shape)}",
                    operand=inputs + index,
                )
    dim = given.ints("dimensions")[0]
    length: int | None = None
    for index in range(inputs):
        x = given.array(index, "input of scan")
        if dim >= x.rank or x.dimensions[dim] != (length or x.dimensions[dim]):  # scan_c9
            raise given.error(
                9, f"input {plain(x)} has not {length} elements in dimension {dim}", operand=index
            )
        length = x.dimensions[dim]
        flags = (*x.dynamic[:dim], *x.dynamic[dim + 1 :]) if x.dynamic else ()
        slice_ = replace(
            x, dimensions=(*x.dimensions[:dim], *x.dimensions[dim + 1 :]), dynamic=flags
        )
        if not compatible(slice_, callee.parameters[index]):  # scan_c8
            raise given.error(
                8,
                f"the computation takes {plain(callee.parameters[index])} for input {plain(x)}"
                f" without dimension {dim}",
                operand=index,
            )
