"""Shapes of map, reduce, reduce-window, select-and-scatter, sort and topk."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    dimension,
    infers,
    listed,
    plain,
    plain_signature,
    same_but_precision,
    same_sizes,
    same_type,
)
from mlirhlo.analysis.shape_inference.reducers import check_reducer, check_same_sizes
from mlirhlo.analysis.shape_inference.windows import PADDING, WINDOW, check_window, window_sizes
from mlirhlo.dialects.hlo.attributes.dimensions import Window
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array, compatible


@infers(
    "map",
    c1="the operands are arrays",
    c2="there is at least one operand",
    c3="the operands have one shape, element types aside, or are scalars of the same type",
    c4="dimensions are all of the operands', in order",
    c5="to_apply takes a scalar of each operand's element type and gives a scalar",
)
def map_(given: Given) -> Shape:
    """The operands' sizes, with the element type that the computation gives."""
    if not given.operands:  # map_c2
        raise given.error(2, "Map expects at least one argument.")
    operands = given.arrays("operand of map")
    first = operands[0]
    for index, x in enumerate(operands[1:], 1):
        if same_sizes(first, x):
            continue
        if not (first.is_scalar or x.is_scalar) or not same_type(
            first.element_type, x.element_type
        ):
            shown = listed([plain(o) for o in operands])
            raise given.error(  # map_c3
                3,
                f"Map operation requires all operands to have the same shape; got: {shown}.",
                operand=index,
            )
        first = x if first.is_scalar else first
    numbers = given.ints("dimensions")
    # XLA infers from the dimensions, but lets none stand for all in an instruction with a shape.
    if given.shape is not None and not numbers:
        numbers = tuple(range(first.rank))
    if len(numbers) != first.rank:  # map_c4
        raise given.error(
            4,
            "Map applied to a subset of dimensions currently not supported: arg_dimension_size:"
            f" {first.rank}, requested_map_dimensions_size: {len(numbers)}.",
            attribute="dimensions",
        )
    if numbers != tuple(range(first.rank)):  # map_c4
        raise given.error(
            4,
            f"Map requires monotonically increasing dimension numbers; got: {listed(numbers)}.",
            attribute="dimensions",
        )
    element = _mapped_element(given, operands)
    return array(element.element_type, first.dimensions, first.dynamic)


def _mapped_element(given: Given, operands: tuple[ArrayShape, ...]) -> ArrayShape:
    callee = given.callee("to_apply")

    def fail(message: str) -> Exception:
        return given.error(5, message, attribute="to_apply")  # map_c5

    if len(callee.parameters) != len(operands):
        raise fail(
            "Map applied function arity must match number of arguments; got: arity:"
            f" {len(callee.parameters)}, arguments: {len(operands)}."
        )
    result = callee.result
    if not isinstance(result, ArrayShape) or not result.is_scalar:
        raise fail(f"Mapped computation's result has to be a scalar; got: {plain(result)}.")
    for index, (parameter, x) in enumerate(zip(callee.parameters, operands, strict=True)):
        if not isinstance(parameter, ArrayShape) or not parameter.is_scalar:
            raise fail(
                f"Mapped computation's parameter has to be a scalar; got parameter {index} shape:"
                f" {plain(parameter)}."
            )
        if not same_type(parameter.element_type, x.element_type):
            raise fail(
                "Mapped computation's parameter type has to match argument element type; got"
                f" parameter {index} shape: {plain(parameter)}, argument shape: {plain(x)}."
            )
    return result


@infers(
    "reduce",
    c1="the operands are arrays",
    c2="there is at least one operand and one initial value",
    c3="the reduced operands have equal sizes",
    c4="the dimensions are the operands'",
    c5="no dimension is named twice",
    c6="to_apply takes accumulators and elements, one of each an operand, and gives accumulators",
)
def reduce(given: Given) -> Shape:
    """The first operand's sizes without the reduced dimensions; a tuple if the computation gives one."""
    count = len(given.operands) // 2
    if count == 0:  # reduce_c2
        raise given.error(2, f"Reduce must have at least 2 arguments, has {len(given.operands)}")
    operands = tuple(given.array(i, "operand of reduce") for i in range(count))
    check_same_sizes(given, operands, 3)  # reduce_c3
    first = operands[0]
    numbers = given.ints("dimensions")
    for place, number in enumerate(numbers):
        if not 0 <= number < first.rank:  # reduce_c4
            raise given.error(
                4,
                f"Reducing out-of-bounds dimension {number} in shape {plain(first)}.",
                attribute="dimensions",
            )
        if number in numbers[:place]:  # reduce_c5
            raise given.error(5, f"Duplicate reduction dimension: {number}", attribute="dimensions")
    callee = given.callee("to_apply")
    accumulators = check_reducer(  # reduce_c6
        given, callee, given.operands[count:], [x.element_type for x in operands], 6, "to_apply"
    )
    kept = [dimension(first, d) for d in range(first.rank) if d not in numbers]
    results = tuple(
        array(a.element_type, [d[0] for d in kept], [d[1] for d in kept]) for a in accumulators
    )
    return TupleShape(results) if isinstance(callee.result, TupleShape) else results[0]


@infers(
    "reduce-window",
    c1="the operands are arrays",
    c2="there is at least one operand and one initial value",
    c3="the reduced operands have equal sizes",
    c4="to_apply takes accumulators and elements, one of each an operand, and gives accumulators",
    c5="the window has one dimension for each of the operands'",
    c6=WINDOW,
    c7=PADDING,
)
def reduce_window(given: Given) -> Shape:
    """How often the window fits each dimension; a tuple if the computation gives one."""
    count = len(given.operands) // 2
    if count == 0:  # reduce-window_c2
        raise given.error(
            2, f"Reduce-window must have at least 2 arguments, has {len(given.operands)}"
        )
    operands = tuple(given.array(i, "operand of reduce-window") for i in range(count))
    callee = given.callee("to_apply")
    check_reducer(  # reduce-window_c4
        given, callee, given.operands[count:], [x.element_type for x in operands], 4, "to_apply"
    )
    check_same_sizes(given, operands, 3, "reduced window")  # reduce-window_c3
    sizes = _windowed(given, operands[0], (5, 6, 7))
    # The initial values say the element types, not the computation.
    results = tuple(
        array(cast(ArrayShape, init).element_type, sizes.dimensions, sizes.dynamic)
        for init in given.operands[count:]
    )
    return TupleShape(results) if isinstance(callee.result, TupleShape) else results[0]


def _windowed(given: Given, x: ArrayShape, numbers: tuple[int, int, int]) -> ArrayShape:
    window = given.value("window", Window) or Window(())
    if len(window.dimensions) != x.rank:
        raise given.error(
            numbers[0],
            f"Window has dimension {len(window.dimensions)} but base shape has dimension {x.rank}.",
            attribute="window",
        )
    check_window(given, window, numbers[1])
    dims = window_sizes(given, [dimension(x, d) for d in range(x.rank)], window, numbers[2])
    return array(x.element_type, [d[0] for d in dims], [d[1] for d in dims])


@infers(
    "select-and-scatter",
    c1="the operands are arrays",
    c2="select takes two scalars of the operand's element type and gives pred[]",
    c3="scatter takes an accumulator and an element, and gives an accumulator",
    c4="the window has one dimension for each of the operand's",
    c5=WINDOW,
    c6=PADDING,
    c7="the source has one element for each window of the operand",
)
def select_and_scatter(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of select-and-scatter")
    source = given.array(1, "source of select-and-scatter")
    select = given.callee("select")
    if len(select.parameters) != 2:  # select-and-scatter_c2
        raise given.error(
            2,
            f"Select function must take 2 parameters, but takes {len(select.parameters)}"
            " parameter(s).",
            attribute="select",
        )
    if not compatible(select.result, array(PRED)):  # select-and-scatter_c2
        raise given.error(2, "Select function must have rank-0 PRED result.", attribute="select")
    check_reducer(  # select-and-scatter_c3
        given, given.callee("scatter"), given.operands[2:], [source.element_type], 3, "scatter"
    )
    windowed = _windowed(given, x, (4, 5, 6))
    if not (same_sizes(source, windowed) and same_type(source.element_type, x.element_type)):
        raise given.error(  # select-and-scatter_c7
            7,
            f"Source shape does not match the shape of window-reduced operand: source({plain(source)}),"
            f" window-reduced operand({plain(windowed)}).",
            operand=1,
        )
    return x


@checks("select-and-scatter", c8="select's parameters are scalars of the operand's element type")
def check_select(given: Given) -> None:
    """What inference lets pass: parameters of select."""
    x = given.array(0, "operand of select-and-scatter")
    for index, parameter in enumerate(given.callee("select").parameters):
        if not same_but_precision(parameter, array(x.element_type)):  # select-and-scatter_c8
            raise given.error(
                8,
                f"Select function's parameter {index} has to be {x.element_type}[]; got"
                f" {plain(parameter)}",
                attribute="select",
            )


@infers(
    "sort",
    c1="the operands have the sizes of the first",
)
def sort(given: Given) -> Shape:
    """The operands' shapes; a tuple for several."""
    first = given.operands[0] if given.operands else None
    if isinstance(first, ArrayShape):
        for index, x in enumerate(given.operands[1:], 1):
            if not isinstance(x, ArrayShape) or not same_sizes(first, x):  # sort_c1
                raise given.error(
                    1,
                    "Sort keys and values dimensions must match. Keys shape is:"
                    f" {plain(first)}, Values shape (operand index {index}) is: {plain(x)}",
                    operand=index,
                )
    return given.operands[0] if len(given.operands) == 1 else TupleShape(given.operands)


@checks(
    "sort",
    c2="there is at least one operand",
    c3="the operands are arrays",
    c4="one dimension is named, and it is the operands'",
    c5="to_apply takes two scalars of each operand's element type",
    c6="to_apply gives pred[]",
)
def check_sort(given: Given) -> None:
    """What inference lets pass: the dimension and the comparator."""
    if not given.operands:  # sort_c2
        raise given.error(2, "Sort expects at least one operand.")
    operands = given.arrays("operand of sort", 3)  # sort_c3
    numbers = given.ints("dimensions")
    if len(numbers) != 1 or not 0 <= numbers[0] < operands[0].rank:  # sort_c4
        raise given.error(
            4,
            f"sort needs one dimension of {plain(operands[0])}; got {{{listed(numbers)}}}",
            attribute="dimensions",
        )
    comparator = given.callee("to_apply")
    wanted = [array(x.element_type) for x in operands for _ in range(2)]
    if len(comparator.parameters) != len(wanted) or not all(
        map(same_but_precision, comparator.parameters, wanted)
    ):
        raise given.error(  # sort_c5
            5,
            f"the comparator takes two scalars of each operand's type, ({listed(list(map(plain, wanted)))});"
            f" its signature is {plain_signature(comparator)}",
            attribute="to_apply",
        )
    if not compatible(comparator.result, array(PRED)):  # sort_c6
        raise given.error(
            6,
            f"the comparator must return pred[], not {plain(comparator.result)}",
            attribute="to_apply",
        )


@infers(
    "topk",
    c1="the operand is an array",
    c2="k is between 0 and the size of the last dimension",
)
def topk(given: Given) -> Shape:
    """(values, s32 indices), the last dimension of size k."""
    x = given.array(0, "operand of top-k operation")
    k = given.int("k")
    last = x.dimensions[-1] if x.rank else 0
    if not 0 <= k <= last:  # topk_c2
        raise given.error(
            2, f"k={k} is larger than the last dimension of size={last}", attribute="k"
        )
    if x.is_scalar:
        return TupleShape((x, array("s32")))
    flags = (*x.dynamic[:-1], False) if x.dynamic else ()
    values = array(x.element_type, (*x.dimensions[:-1], k), flags)
    return TupleShape((values, replace(values, element_type=array("s32").element_type)))


@checks("topk", c3="the operand has a dimension")
def check_topk(given: Given) -> None:
    """What inference lets pass: a scalar."""
    if given.array(0, "operand of top-k operation").is_scalar:  # topk_c3
        raise given.error(3, "a scalar has no last dimension to take the top of", operand=0)
