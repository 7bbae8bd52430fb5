"""Shapes of instructions that move elements without computing on them."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    dimension,
    fits,
    higher_precision,
    infers,
    is_unbounded,
    listed,
    most_specific,
    plain,
    same_type,
)
from mlirhlo.analysis.shape_inference.elementwise import retyped
from mlirhlo.dialects.hlo.attributes.dimensions import Padding
from mlirhlo.dialects.hlo.element_types import PRED, PrimitiveType
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, array


@infers(
    "broadcast",
    c1="the operand is an array",
    c2="no dimension number is negative",
    c7="the shape of an unbounded operand's broadcast is written",
)
def broadcast(given: Given) -> Shape:
    """The declared shape. Left out, XLA takes the dimension numbers for sizes to put in front."""
    x = given.array(0, "operand of broadcast")
    numbers = given.ints("dimensions")
    for number in numbers:
        if number < 0:  # broadcast_c2
            raise given.error(
                2, f"Broadcast with negative dimension size {number}.", attribute="dimensions"
            )
    if given.shape is not None:
        return given.shape
    if is_unbounded(x):  # broadcast_c7
        raise given.error(
            7, f"the shape of a broadcast of {plain(x)} cannot be inferred", operand=0
        )
    flags = (False,) * len(numbers) + (x.dynamic or (False,) * x.rank)
    return array(x.element_type, (*numbers, *x.dimensions), flags)


@checks(
    "broadcast",
    c3="the result is an array of the operand's element type, or floating point as it is",
    c4="there is one dimension number for each operand dimension",
    c5="dimension numbers name result dimensions of the operand's sizes",
    c6="dimension numbers differ from each other",
)
def check_broadcast(given: Given) -> None:
    """Each operand dimension becomes the result dimension its number names."""
    x = given.array(0, "operand of broadcast")
    result = given.declared_array(3)
    if not same_type(result.element_type, x.element_type):  # broadcast_c3
        raise given.error(
            3, f"{plain(x)} cannot become {plain(result)}: the types differ", operand=0
        )
    numbers = given.ints("dimensions")
    if len(numbers) != x.rank:  # broadcast_c4
        raise given.error(
            4,
            f"dimensions={{{listed(numbers)}}} names {len(numbers)} result dimensions for"
            f" {x.rank} of the operand {plain(x)}",
            attribute="dimensions",
        )
    for dim, number in enumerate(numbers):
        if number >= result.rank or not fits(result.dimensions[number], x.dimensions[dim]):
            raise given.error(  # broadcast_c5
                5,
                f"operand dimension {dim} of {plain(x)} cannot become dimension {number} of"
                f" {plain(result)}",
                attribute="dimensions",
            )
    if len(set(numbers)) != len(numbers):  # broadcast_c6
        raise given.error(
            6, f"dimensions={{{listed(numbers)}}} repeats a dimension", attribute="dimensions"
        )


@infers(
    "concatenate",
    c1="the operands are arrays",
    c2="there is at least one operand",
    c3="one dimension is named, and it is the operands'",
    c4="the operands have one rank",
    c5="the element types are equal, or floating point of any precision",
    c6="the other dimensions have equal sizes",
)
def concatenate(given: Given) -> Shape:
    """Sizes of the concatenated dimension add up."""
    if not given.operands:  # concatenate_c2
        raise given.error(2, "Concatenate expects at least one argument.")
    operands = given.arrays("operand of concatenation")
    numbers = given.ints("dimensions")
    first = operands[0]
    if len(numbers) != 1 or not 0 <= numbers[0] < first.rank:  # concatenate_c3
        raise given.error(
            3, f"Concatenate dimension out of bounds: {listed(numbers)}.", attribute="dimensions"
        )
    dim = numbers[0]
    element_type = first.element_type
    dims = [dimension(first, d) for d in range(first.rank)]
    for index, shape in enumerate(operands[1:], 1):
        if shape.rank != first.rank:  # concatenate_c4
            raise given.error(
                4,
                f"Cannot concatenate arrays with different ranks: {first.rank} ({plain(first)}) vs"
                f" {shape.rank} ({plain(shape)}).",
                operand=index,
            )
        if not same_type(first.element_type, shape.element_type):  # concatenate_c5
            raise given.error(
                5,
                "Cannot concatenate arrays with different element types:"
                f" {first.element_type.name.upper()} vs {shape.element_type.name.upper()}.",
                operand=index,
            )
        # As XLA has it: of the first and the last operand.
        element_type = higher_precision(first.element_type, shape.element_type)
        for d in range(first.rank):
            size, dynamic = dimension(shape, d)
            if d == dim:
                known, was = dims[d]
                unknown = UNBOUNDED in (known, size)
                dims[d] = (UNBOUNDED if unknown else known + size, was or dynamic)
            elif not fits(first.dimensions[d], size):  # concatenate_c6
                raise given.error(
                    6,
                    "Cannot concatenate arrays that differ in dimensions other than the one being"
                    f" concatenated. Dimension {d} in both shapes must be equal (or compatible):"
                    f" {plain(first)} vs {plain(shape)}.",
                    operand=index,
                )
            elif UNBOUNDED in (dims[d][0], size):
                dims[d] = most_specific(dims[d], (size, dynamic))
            else:
                known, was = dims[d]
                if known != size:  # of operands behind an unbounded one
                    what = "bound" if was and dynamic else "dimension"
                    raise given.error(
                        6,
                        f"Mismatched {what} sizes {known} and {size} in dimension {d}.",
                        operand=index,
                    )
                dims[d] = (size, was or dynamic)
    return array(element_type, [d[0] for d in dims], [d[1] for d in dims])


@infers(
    "get-dimension-size",
    c1="the operand is an array",
    c2="the dimension is one of the operand's",
)
def get_dimension_size(given: Given) -> Shape:
    """`s32[]`."""
    x = given.array(0, "operand of get-dimension-size")
    _dimension_number(given, x, "GetDimensionSize")
    return array("s32")


def _dimension_number(given: Given, x: ArrayShape, name: str) -> int:
    numbers = given.ints("dimensions")
    if not numbers or not 0 <= numbers[0] < x.rank:
        shown = numbers[0] if numbers else "none given"
        raise given.error(2, f"{name} dimension out of bounds: {shown}.", attribute="dimensions")
    return numbers[0]


@infers(
    "set-dimension-size",
    c1="the operand is an array",
    c2="the dimension is one of the operand's",
    c3="the size is an s32 scalar",
)
def set_dimension_size(given: Given) -> Shape:
    """The operand's shape with one dimension dynamic."""
    x = given.array(0, "operand of set-dimension-size")
    dim = _dimension_number(given, x, "SetDimensionSize")
    size = given.operands[1]
    if not (isinstance(size, ArrayShape) and size.is_scalar and size.element_type.name == "s32"):
        raise given.error(  # set-dimension-size_c3
            3, f"SetDimensionSize's value has to be S32 scalar, got {plain(size)}", operand=1
        )
    flags = x.dynamic or (False,) * x.rank
    return replace(x, dynamic=(*flags[:dim], True, *flags[dim + 1 :]))


@checks(
    "iota",
    c1="the result is an array of rank 1 or more",
    c2="the element type is a number",
    c3="the dimension is one of the result's",
)
def iota(given: Given) -> None:
    """Counts along one dimension."""
    result = given.declared_array(1)
    if result.is_scalar:  # iota_c1
        raise given.error(1, "Iota does not support scalars.")
    if result.element_type is PRED:  # iota_c2
        raise given.error(
            2,
            "Only supports iota of integral, floating point or complex primitive types, got"
            f" {result.element_type.name.upper()}",
        )
    dim = given.int("iota_dimension")
    if not 0 <= dim < result.rank:  # iota_c3
        raise given.error(
            3,
            "The iota dimension cannot go beyond the operation rank or be negative: got"
            f" {dim} for {plain(result)}.",
            attribute="iota_dimension",
        )


@infers(
    "pad",
    c1="the operand is an array",
    c2="the padding value is a scalar",
    c3="the padding has one entry for each dimension",
    c4="the element types are equal, or floating point of any precision",
    c5="no interior padding is negative",
    c6="no size of the result is negative",
)
def pad(given: Given) -> Shape:
    """`low + high + n + interior * (n - 1)` in every dimension."""
    x = given.array(0, "operand of pad")
    value = given.operands[1]
    if not isinstance(value, ArrayShape) or not value.is_scalar:  # pad_c2
        raise given.error(
            2,
            f"Pad operation does not support non-scalar padding values; got {plain(value)}.",
            operand=1,
        )
    padding = given.value("padding", Padding) or Padding(())
    if len(padding.dimensions) != x.rank:  # pad_c3
        raise given.error(
            3,
            "The rank of the operand and the padding configuration do not match:"
            f" {plain(x)} vs {padding}.",
            attribute="padding",
        )
    if not same_type(x.element_type, value.element_type):  # pad_c4
        raise given.error(
            4,
            "The element types of the operands to Pad do not match:"
            f" {plain(x)} and {plain(value)}.",
            operand=1,
        )
    sizes: list[int] = []
    for dim, (size, edge) in enumerate(zip(x.dimensions, padding.dimensions, strict=True)):
        if edge.interior < 0:  # pad_c5
            raise given.error(
                5, f"Interior padding cannot be negative: {padding}", attribute="padding"
            )
        if size == UNBOUNDED:
            sizes.append(UNBOUNDED)
            continue
        sizes.append(edge.low + edge.high + size + edge.interior * max(size - 1, 0))
        if sizes[-1] < 0:  # pad_c6
            raise given.error(
                6,
                f"Padding result in negative size for dimension {dim}:"
                f" {plain(x)} padded by {padding}",
                attribute="padding",
            )
    element_type = higher_precision(x.element_type, value.element_type)
    return array(element_type, sizes, x.dynamic)


@infers(
    "reverse",
    c1="the operand is an array",
    c2="no dimension is named twice",
    c3="the dimensions are the operand's",
)
def reverse(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of reverse")
    numbers = given.ints("dimensions")
    if len(set(numbers)) != len(numbers):  # reverse_c2
        raise given.error(
            2,
            f"a dimension number is duplicated in reverse: {listed(numbers)}",
            attribute="dimensions",
        )
    for number in numbers:
        if not 0 <= number < x.rank:  # reverse_c3
            raise given.error(
                3,
                f"One of the reverse dimensions ({number}) is out-of-bounds in shape {plain(x)}.",
                attribute="dimensions",
            )
    return x


@infers(
    "transpose",
    c1="the operand is an array",
    c2="the dimensions are a permutation of the operand's",
)
def transpose(given: Given) -> Shape:
    """Result dimension i is operand dimension `dimensions[i]`; the layout is permuted too, so that
    an inferred transpose moves nothing."""
    x = given.array(0, "transpose")
    numbers = given.ints("dimensions")
    if sorted(numbers) != list(range(x.rank)):  # transpose_c2
        raise given.error(
            2,
            f"Transpose dimensions [{','.join(map(str, numbers))}] are not a permutation of the"
            f" operand dimensions (operand shape is {plain(x)}).",
            attribute="dimensions",
        )
    layout = x.layout
    if layout is not None:
        place = {d: i for i, d in enumerate(numbers)}
        # A number that is no dimension stays: the verifier says so of the operand.
        order = tuple(place.get(d, d) for d in layout.minor_to_major)
        layout = replace(layout, minor_to_major=order)
    return ArrayShape(
        x.element_type,
        tuple(x.dimensions[d] for d in numbers),
        tuple(x.dynamic[d] for d in numbers) if x.dynamic else (),
        layout,
    )


@infers("shuffle", c1="the operand is an array", c2="the dimensions are the operand's")
def shuffle(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of shuffle")
    for number in given.ints("dimensions"):
        if not 0 <= number < x.rank:  # shuffle_c2
            raise given.error(
                2, f"dimension {number} is none of {plain(x)}", attribute="dimensions"
            )
    return x


# ---------------------------------------------------------------- the same elements, another shape


@checks(
    "reshape",
    c1="operand and result are arrays",
    c2="the element type stays, or is floating point of another precision",
    c3="the number of elements stays",
    c4="inferred_dimension is -1 or one of the result's dimensions",
)
def reshape(given: Given) -> None:
    """As many elements of the same type."""
    x = given.array(0, "reshape")
    result = given.declared_array(1)
    if not same_type(x.element_type, result.element_type):  # reshape_c2
        raise given.error(
            2, f"{plain(x)} cannot become {plain(result)}: the element types differ", operand=0
        )
    if not (is_unbounded(x) or is_unbounded(result)) and x.element_count != result.element_count:
        raise given.error(  # reshape_c3
            3,
            f"{x.element_count} elements of {plain(x)} cannot become {plain(result)}"
            f" ({result.element_count} elements)",
            operand=0,
        )
    inferred = given.int("inferred_dimension", -1)
    if not -1 <= inferred < max(result.rank, 1):  # reshape_c4
        raise given.error(
            4,
            f"inferred_dimension {inferred} is none of {plain(result)}",
            attribute="inferred_dimension",
        )


@checks(
    "dynamic-reshape",
    c1="operand and result are arrays",
    c2="the element type stays, or is floating point of another precision",
    c3="the number of elements, bounds counted in full, stays",
    c4="there is one size for each result dimension",
    c5="the sizes are s32 scalars",
)
def dynamic_reshape(given: Given) -> None:
    """A reshape whose sizes are operands."""
    x = given.array(0, "reshape")
    result = given.declared_array(1)
    if not same_type(x.element_type, result.element_type):  # dynamic-reshape_c2
        raise given.error(
            2, f"{plain(x)} cannot become {plain(result)}: the element types differ", operand=0
        )
    if not (is_unbounded(x) or is_unbounded(result)) and x.element_count != result.element_count:
        raise given.error(  # dynamic-reshape_c3
            3,
            f"{x.element_count} elements of {plain(x)} cannot become {plain(result)}"
            f" ({result.element_count} elements)",
            operand=0,
        )
    if len(given.operands) != result.rank + 1:  # dynamic-reshape_c4
        raise given.error(
            4, f"{len(given.operands) - 1} sizes are given for the {result.rank} of {plain(result)}"
        )
    for index, size in enumerate(given.operands[1:], 1):
        if not (
            isinstance(size, ArrayShape) and size.is_scalar and size.element_type.name == "s32"
        ):
            raise given.error(  # dynamic-reshape_c5
                5, f"a size is an s32 scalar, not {plain(size)}", operand=index
            )


def storage_bits(type_: PrimitiveType) -> int:
    """Bits of an element when it is reinterpreted: pred takes a byte."""
    return 8 if type_ is PRED else type_.bits


def _is_padded(shape: ArrayShape) -> bool:
    layout = shape.layout
    return layout is not None and (bool(layout.tiles) or layout.element_size_bits != 0)


@checks(
    "bitcast",
    c1="operand and result are arrays",
    c2="operand and result take the same number of bytes",
)
def bitcast(given: Given) -> None:
    """The same bytes. Sizes of tiled or packed layouts depend on the padding; not compared."""
    x = given.array(0, "bitcast")
    result = given.declared_array(1)
    if is_unbounded(x) or is_unbounded(result) or _is_padded(x) or _is_padded(result):
        return
    before = x.element_count * storage_bits(x.element_type)
    after = result.element_count * storage_bits(result.element_type)
    if before != after:  # bitcast_c2
        raise given.error(
            2,
            f"Bitcast cannot have different shape sizes of output ({after // 8}) and operand"
            f" ({before // 8}) bytes: {plain(x)} and {plain(result)}",
            operand=0,
        )


@checks(
    "bitcast-convert",
    c1="operand and result are arrays",
    c2="complex and real types do not become each other",
    c3="sizes stay, but for a last dimension that makes up for a change of width",
)
def bitcast_convert(given: Given) -> None:
    """The same bits; a change of width adds or drops a minor dimension."""
    x = given.array(0, "bitcast-convert")
    result = given.declared_array(1)
    if x.element_type.is_complex != result.element_type.is_complex:  # bitcast-convert_c2
        raise given.error(
            2,
            f"Conversion between complex and real type {plain(x)} => {plain(result)}.",
            operand=0,
        )
    before, after = storage_bits(x.element_type), storage_bits(result.element_type)
    wanted: tuple[int, ...] | None
    if before == after:
        wanted = x.dimensions
    elif before > after:
        wanted = (*x.dimensions, before // after) if before % after == 0 else None
    elif x.rank and after % before == 0 and fits(x.dimensions[-1], after // before):
        wanted = x.dimensions[:-1]
    else:
        wanted = None
    if (
        wanted is None
        or len(wanted) != result.rank
        or not all(map(fits, wanted, result.dimensions))
    ):
        shown = plain(ArrayShape(result.element_type, wanted)) if wanted is not None else None
        raise given.error(  # bitcast-convert_c3
            3,
            f"{plain(x)} of {before}-bit elements cannot become {plain(result)} of {after}-bit ones",
            operand=0,
            help=f"the result would be {shown}" if shown else None,
        )


def with_type(shape: ArrayShape, other: PrimitiveType) -> ArrayShape:
    """`shape` with the higher of two precisions."""
    return retyped(shape, higher_precision(shape.element_type, other))
