"""Rules of the ops that reduce, of map and of sort."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import (
    Given,
    Results,
    check_range,
    check_unique,
    checks,
    infers,
    listed,
)
from mlirhlo.analysis.stablehlo.reducers import check_reducer, reduced_elements, returned_tensors
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    Tensor,
    fits_element,
    fits_sizes,
    is_pred,
    most_specific,
    same_but_precision,
    tensor_of,
)
from mlirhlo.analysis.stablehlo.windows import Keys, Windows, read_windows


def _halves(given: Given, number: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Inputs and initial values, as many of each."""
    count = len(given.operands) // 2
    if count < 1 or len(given.operands) != 2 * count:
        raise given.error(
            number, f"{len(given.operands)} operands are not inputs and as many initial values"
        )
    return given.tensors(0, count), given.tensors(count)


def _check_one_shape(given: Given, tensors: tuple[Tensor, ...], number: int) -> None:
    for index, tensor in enumerate(tensors):
        if not fits_sizes(tensors[0].sizes, tensor.sizes):
            raise given.error(number, f"shapes differ: {tensors[0]} and {tensor}", operand=index)


def _check_initial(
    given: Given, inputs: tuple[Tensor, ...], initial: tuple[Tensor, ...], number: int
) -> None:
    for index, (one, start) in enumerate(zip(inputs, initial, strict=True)):
        if not same_but_precision(one.element, start.element) and not fits_element(
            one.element, start.element
        ):
            raise given.error(
                number,
                f"element types differ: {one.element} and {start.element}",
                operand=len(inputs) + index,
            )


@infers(
    "reduce",
    c1="all inputs have one shape",
    c2="inputs and initial values have the same element types",
    c3="there are as many initial values and results as inputs, and at least one",
    c4="dimensions are dimensions of the inputs",
    c5="dimensions are unique",
    c6="the body takes and returns scalars that the inputs are promotable to",
    c7="results have the sizes of the dimensions that are kept",
    c8="results have the element types that the body returns",
    result=(7, 8),
)
def _reduce(given: Given) -> Results:
    inputs, initial = _halves(given, 3)
    _check_one_shape(given, inputs, 1)
    dims = given.ints("dimensions")
    check_range(given, dims, inputs[0].rank, 4, "dimensions", "dimensions")  # c4
    check_unique(given, dims, 5, "dimensions")  # c5
    _check_initial(given, inputs, initial, 2)
    kept = [size for dim, size in enumerate(inputs[0].sizes) if dim not in dims]
    check_reducer(given, 0, inputs, initial, kept, (6, 6))  # c6
    elements = reduced_elements(given, 0, len(inputs), 6)
    results: list[Tensor] = []
    left = [dim for dim in range(inputs[0].rank) if dim not in dims]
    for one, element in zip(inputs, elements, strict=True):
        bounds = [one.bound(dim) for dim in left]
        results.append(one.with_sizes([one.sizes[d] for d in left], bounds).with_element(element))
    return results


_REDUCE_WINDOW = Keys(
    ("window_strides", 6, 7), 12, ("base_dilations", 8, 9), ("window_dilations", 10, 11)
)


@infers(
    "reduce_window",
    c1="there are as many initial values and results as inputs, and at least one",
    c2="all inputs have one shape",
    c3="inputs and initial values have the same element types",
    c4="window_dimensions has an entry for each dimension of the inputs",
    c5="window_dimensions are positive",
    c6="window_strides has an entry for each dimension of the inputs",
    c7="window_strides are positive",
    c8="base_dilations has an entry for each dimension of the inputs",
    c9="base_dilations are positive",
    c10="window_dilations has an entry for each dimension of the inputs",
    c11="window_dilations are positive",
    c12="padding has a pair for each dimension of the inputs",
    c13="the body takes and returns scalars that the inputs are promotable to",
    c14="all results have one shape",
    c15="results have as many elements as the window fits into the padded inputs",
    c16="results have the element types that the body returns",
    result=(15, 16),
)
def _reduce_window(given: Given) -> Results:
    inputs, initial = _halves(given, 1)
    _check_one_shape(given, inputs, 2)
    windows = _windows(given, inputs[0])
    _check_initial(given, inputs, initial, 3)
    check_reducer(given, 0, inputs, initial, given.ints("window_dimensions"), (13, 13))  # c13
    elements = reduced_elements(given, 0, len(inputs), 13)
    declared = [tensor_of(kind) for kind in given.declared or ()]
    for result in declared:  # c14
        if result is not None and declared[0] is not None:
            if not fits_sizes(result.sizes, declared[0].sizes):
                raise given.error(14, f"results have different shapes: {declared[0]} and {result}")
    return [
        one.with_sizes(
            windows.fit(one.sizes), windows.fit(one.bounds) if one.bounds else ()
        ).with_element(element)
        for one, element in zip(inputs, elements, strict=True)
    ]


def _windows(given: Given, base: Tensor) -> Windows:
    sizes = given.ints("window_dimensions")
    if len(sizes) != base.rank:  # c4
        raise given.error(
            4,
            f"window_dimensions has {len(sizes)} entries for rank {base.rank}",
            attribute="window_dimensions",
        )
    keys = _REDUCE_WINDOW if given.name == "reduce_window" else _SELECT_AND_SCATTER
    return read_windows(given, sizes, keys)


_SELECT_AND_SCATTER = Keys(("window_strides", 6, 7), 8)


@infers(
    "select_and_scatter",
    c1="operand and source have one element type",
    c2="the source has as many elements as the window fits into the padded operand",
    c3="operand and init_value have one element type",
    c4="window_dimensions has an entry for each dimension of the operand",
    c5="window_dimensions are positive",
    c6="window_strides has an entry for each dimension of the operand",
    c7="window_strides are positive",
    c8="padding has a pair for each dimension of the operand",
    c9="select takes two scalars of the operand's element type and returns tensor<i1>",
    c10="scatter takes and returns scalars that the operand is promotable to",
    c11="operand and result have one shape",
    c12="the result has the element type that scatter returns",
    result=(11, 12),
)
def _select_and_scatter(given: Given) -> Results:
    operand = given.tensor(0)
    _check_select_and_scatter(given)
    return (operand.with_element(reduced_elements(given, 1, 1, 10)[0]),)


def _check_select_and_scatter(given: Given) -> None:
    operand, source, initial = given.tensors()
    arguments = [tensor_of(kind) for kind in given.arguments(0)]
    if len(arguments) != 2 or any(
        a is None or a.rank != 0 or not same_but_precision(a.element, operand.element)
        for a in arguments
    ):  # c9
        raise given.error(9, f"select does not take two scalars of {operand.element}")
    chosen = returned_tensors(given, 0, 1, 9)[0]
    if chosen.rank != 0 or not is_pred(chosen.element):  # c9
        raise given.error(9, f"select returns {chosen}, not tensor<i1>")
    if not same_but_precision(initial.element, operand.element):  # c3
        raise given.error(
            3, f"element types differ: {operand.element} and {initial.element}", operand=2
        )
    if not same_but_precision(operand.element, source.element):  # c1
        raise given.error(
            1, f"element types differ: {operand.element} and {source.element}", operand=1
        )
    check_reducer(given, 1, [source.with_sizes(())], [initial], (), (10, 10))  # c10
    windows = _windows(given, operand)
    expected = windows.fit(operand.sizes)
    if not fits_sizes(expected, source.sizes):  # c2
        raise given.error(
            2, f"the source is {source}, the window fits {operand.with_sizes(expected)}", operand=1
        )


@infers(
    "map",
    c1="inputs and result have one shape",
    c2="there is an input",
    c3="dimensions are all dimensions of the inputs, in order",
    c4="the computation takes a scalar of each input's element type and returns one of the result's",
    result=(1, 4),
)
def _map(given: Given) -> Results:
    if not given.operands:  # c2
        raise given.error(2, "there is no input")
    inputs, dims = given.tensors(), given.ints("dimensions")
    _check_one_shape(given, inputs, 1)
    arguments = given.arguments(0)
    if len(arguments) != len(inputs):  # c4
        raise given.error(4, f"the computation takes {len(arguments)} values, not {len(inputs)}")
    for index, (kind, one) in enumerate(zip(arguments, inputs, strict=True)):  # c4
        argument = tensor_of(kind)
        if argument is None or argument.rank != 0 or argument.element != one.element:
            raise given.error(
                4, f"argument #{index} of the computation is {kind}, not {one.element}"
            )
    result = returned_tensors(given, 0, 1, 4)[0]
    if result.rank != 0:  # c4
        raise given.error(4, f"the computation returns {result}, not a scalar")
    if list(dims) != list(range(inputs[0].rank)):  # c3
        raise given.error(
            3, f"dimensions {listed(dims)} are not those of {inputs[0]}", attribute="dimensions"
        )
    merged = most_specific(inputs)
    if merged is None:  # c1
        raise given.error(1, f"sizes contradict each other: {listed(inputs)}")
    return (merged.with_element(result.element),)


@infers(
    "sort",
    c1="there is an input",
    c2="results have the types of the inputs",
    c3="all inputs have one shape",
    c4="dimension is a dimension of the inputs, counted from the end where it is negative",
    c5="the comparator takes two scalars of each input's element type and returns tensor<i1>",
    result=(2, 2),
)
def _sort(given: Given) -> Results:
    if not given.operands:  # c1
        raise given.error(1, "there is no input")
    inputs = given.tensors()
    _check_one_shape(given, inputs, 3)
    rank, dimension = inputs[0].rank, given.int("dimension", -1)
    if not -rank <= dimension < rank:  # c4
        raise given.error(
            4, f"dimension {dimension} is none of the {rank} dimensions", attribute="dimension"
        )
    return inputs


@checks("sort")
def _check_sort(given: Given) -> None:
    inputs, arguments = given.tensors(), given.arguments(0)
    if len(arguments) != 2 * len(inputs):  # c5
        raise given.error(5, f"the comparator takes {len(arguments)} values, not {2 * len(inputs)}")
    for index, kind in enumerate(arguments):  # c5
        argument, element = tensor_of(kind), inputs[index // 2].element
        if argument is None or argument.rank != 0 or argument.element != element:
            raise given.error(5, f"argument #{index} of the comparator is {kind}, not {element}")
    result = returned_tensors(given, 0, 1, 5)[0]
    if result.rank != 0 or not is_pred(result.element):  # c5
        raise given.error(5, f"the comparator returns {result}, not tensor<i1>")


@infers(
    "rng",
    c1="a, b and the result have one element type",
    c2="a and b are floats where the distribution is NORMAL",
    c3="the result has the sizes in shape",
    result=(3, 1),
)
def _rng(given: Given) -> Results:
    a, b, shape = given.tensors()
    if a.element != b.element:  # c1
        raise given.error(1, f"element types differ: {a.element} and {b.element}", operand=1)
    if given.str("rng_distribution") == "NORMAL" and a.kind != "F":  # c2
        raise given.error(2, f"NORMAL numbers are floats, not {a.element}", operand=0)
    sizes = given.constant(2)
    if sizes is None:
        count = shape.sizes[0]
        if count == DYNAMIC:
            raise given.error(3, "the number of dimensions is not known", operand=2)
        sizes = (DYNAMIC,) * count
    return (a.with_sizes(sizes),)


@infers("rng_bit_generator", c1="initial_state and output_state have one type")
def _rng_bit_generator(given: Given) -> Results | None:
    return None


@checks("rng_bit_generator")
def _check_rng_bit_generator(given: Given) -> None:
    before, after = given.tensor(0), given.result(0)
    same = len(before.sizes) == len(after.sizes) and all(map(fits, before.sizes, after.sizes))
    if not same or before.element != after.element:  # c1
        raise given.error(1, f"the state is {before} before and {after} after")
