"""Checks of CHLO, the ops above StableHLO that expand into it. The numbers are ours: CHLO has no
specification beyond its dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ComplexType

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import Given, Results, check_unique, infers, listed
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    Tensor,
    fits_element,
    most_specific,
    signless,
    tensor_of,
)
from mlirhlo.dialects.chlo.attributes import RaggedDotDimensionNumbers
from mlirhlo.dialects.chlo.signatures import (
    BINARY,
    BROADCAST,
    BROADCAST_BITS,
    CHLO_SIGNATURES,
    COMPLEX_TOO,
    FLOAT_ONLY,
    TESTS,
)
from mlirhlo.dialects.stablehlo.signatures import SIGNATURES, Signature


@infers(
    *(f"chlo.{name}" for name in (*COMPLEX_TOO, *FLOAT_ONLY, "_asin_acos_kernel")),
    c1="operand and result have one type",
)
def _unary(given: Given) -> Results:
    return (given.tensor(0),)


@infers(*(f"chlo.{name}" for name in TESTS), c1="operand and result have one shape")
def _test(given: Given) -> Results:
    return (given.tensor(0).with_element(signless(1)),)


@infers(
    *(f"chlo.{name}" for name in (*BINARY, "mulhi")),
    c1="both operands and the result have one type",
)
def _binary(given: Given) -> Results:
    lhs, rhs = given.tensor(0), given.tensor(1)
    merged = most_specific((lhs, rhs)) if lhs.rank == rhs.rank else None
    if merged is None or not fits_element(lhs.element, rhs.element):
        raise given.error(1, f"operands have different types: {lhs} and {rhs}", operand=1)
    return (merged,)


_BROADCAST_SENTENCES = {
    "c1": "both operands have one element type",
    "c2": "broadcast_dimensions place the smaller operand's dimensions in the larger one's, ascending",
    "c3": "sizes are equal or 1 where both operands have a dimension",
}


@infers(
    *(f"chlo.broadcast_{name}" for name in (*BROADCAST, *BROADCAST_BITS, "zeta")),
    result=(3, 1),
    **_BROADCAST_SENTENCES,
)
def _broadcast(given: Given) -> Results:
    return (_broadcasted(given),)


@infers("chlo.broadcast_compare", result=(3, 1), **_BROADCAST_SENTENCES)
def _broadcast_compare(given: Given) -> Results:
    return (_broadcasted(given).with_element(signless(1)),)


@infers("chlo.broadcast_complex", result=(3, 1), **_BROADCAST_SENTENCES)
def _broadcast_complex(given: Given) -> Results:
    found = _broadcasted(given)
    return (found.with_element(ComplexType(found.element)),)  # type: ignore[type-var]


def _broadcasted(given: Given) -> Tensor:
    lhs, rhs = given.tensor(0), given.tensor(1)
    if not fits_element(lhs.element, rhs.element):  # c1
        raise given.error(1, f"element types differ: {lhs.element} and {rhs.element}", operand=1)
    small, large = sorted((lhs, rhs), key=lambda t: t.rank)
    places = tuple(range(large.rank - small.rank, large.rank))
    if given.has("broadcast_dimensions"):
        key, places = "broadcast_dimensions", given.ints("broadcast_dimensions")
        if len(places) != small.rank:  # c2
            raise given.error(2, f"{len(places)} entries for rank {small.rank}", attribute=key)
        check_unique(given, places, 2, key)
        if list(places) != sorted(places) or any(not 0 <= p < large.rank for p in places):
            raise given.error(
                2, f"{listed(places)} are not ascending dimensions of {large}", attribute=key
            )
    sizes = list(large.sizes)
    for dim, place in enumerate(places):
        mine, yours = small.sizes[dim], sizes[place]
        if not (fits(mine, yours) or 1 in (mine, yours)):  # c3
            raise given.error(
                3, f"{mine} and {yours} elements do not broadcast: {lhs} and {rhs}", operand=1
            )
        sizes[place] = _size(mine, yours)
    return Tensor(lhs.element, tuple(sizes))


def _size(a: int, b: int) -> int:
    """Size of two dimensions that broadcast together."""
    if DYNAMIC in (a, b):
        known = max(a, b)
        return known if known > 1 else DYNAMIC
    return max(a, b) if 0 not in (a, b) else 0


@infers(
    "chlo.broadcast_select",
    c1="on_true and on_false have one element type",
    c2="all operands broadcast to one shape",
    result=(2, 1),
)
def _broadcast_select(given: Given) -> Results:
    pred, on_true, on_false = given.tensors()
    if not fits_element(on_true.element, on_false.element):  # c1
        raise given.error(
            1, f"element types differ: {on_true.element} and {on_false.element}", operand=2
        )
    rank = max(t.rank for t in (pred, on_true, on_false))
    sizes = [1] * rank
    for tensor in (pred, on_true, on_false):
        for dim, size in enumerate(tensor.sizes, rank - tensor.rank):
            if not (fits(size, sizes[dim]) or 1 in (size, sizes[dim])):  # c2
                raise given.error(2, f"{size} and {sizes[dim]} elements do not broadcast")
            sizes[dim] = _size(size, sizes[dim])
    return (Tensor(on_true.element, tuple(sizes)),)


@infers("chlo.constant", c1="value and output have one type")
def _constant(given: Given) -> Results | None:
    kind: Any = getattr(given.properties.get("value"), "type", None)
    found = None if kind is None else tensor_of(kind)
    return None if found is None else (found,)


@infers("chlo.constant_like", c1="operand and result have one shape")
def _constant_like(given: Given) -> Results:
    kind: Any = getattr(given.properties.get("value"), "type", None)
    operand = given.tensor(0)
    return (operand if kind is None else operand.with_element(kind),)


@infers(
    "chlo.top_k",
    c1="the operand has at least one dimension",
    c2="the last dimension has at least k elements",
    c3="values and indices have the operand's shape with k as last size",
    result=(3, 3),
)
def _top_k(given: Given) -> Results:
    operand, count = given.tensor(0), given.int("k")
    if operand.rank < 1:  # c1
        raise given.error(1, f"the operand is {operand}", operand=0)
    last = operand.sizes[-1]
    if last != DYNAMIC and last < count:  # c2
        raise given.error(2, f"there are {last} elements, not {count}", attribute="k")
    bounds = [*(operand.bound(dim) for dim in range(operand.rank - 1)), DYNAMIC]
    values = operand.with_sizes((*operand.sizes[:-1], count), bounds)
    return (values, values.with_element(signless(32)))


@infers(
    "chlo.ragged_dot",
    c1="both sides have as many batching and as many contracting dimensions, of the same sizes",
    c2="there is one ragged dimension of lhs, and at most one group dimension of rhs",
    c3="the dimensions of each side are unique and in range",
    c4="the group dimension of rhs has an element for each group",
    result=(1, 1),
)
def _ragged_dot(given: Given) -> Results | None:
    lhs, rhs, groups = given.tensors()
    numbers: RaggedDotDimensionNumbers | None = given.data("ragged_dot_dimension_numbers")
    if numbers is None:
        return None
    batching = (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)
    contracting = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
    ragged, grouped = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(ragged) != 1 or len(grouped) > 1:  # c2
        raise given.error(2, f"{len(ragged)} ragged and {len(grouped)} group dimensions")
    for side, tensor in enumerate((lhs, rhs)):  # c3
        dims = (*batching[side], *contracting[side], *(grouped if side else ()))
        if len(set(dims)) != len(dims) or any(not 0 <= dim < tensor.rank for dim in dims):
            raise given.error(3, f"{listed(dims)} are not unique dimensions of {tensor}")
    if not 0 <= ragged[0] < lhs.rank:  # c3
        raise given.error(3, f"{ragged[0]} is no dimension of {lhs}")
    if grouped and groups.rank and not fits(rhs.sizes[grouped[0]], groups.sizes[-1]):  # c4
        raise given.error(
            4, f"{rhs.sizes[grouped[0]]} elements for {groups.sizes[-1]} groups", operand=1
        )
    for mine, yours in (batching, contracting):  # c1
        if len(mine) != len(yours):
            raise given.error(1, f"{len(mine)} and {len(yours)} dimensions do not pair")
        for a, b in zip(mine, yours, strict=True):
            if not fits(lhs.sizes[a], rhs.sizes[b]):
                raise given.error(1, f"{lhs.sizes[a]} and {rhs.sizes[b]} elements do not pair")
    element = given.result().element if given.declared else lhs.element
    sizes = _ragged_sizes((lhs, rhs, groups), batching, contracting, ragged[0], grouped)
    return (Tensor(element, tuple(sizes)),)


def _ragged_sizes(
    tensors: tuple[Tensor, Tensor, Tensor],
    batching: tuple[Sequence[int], Sequence[int]],
    contracting: tuple[Sequence[int], Sequence[int]],
    ragged: int,
    grouped: Sequence[int],
) -> list[int]:
    lhs, rhs, groups = tensors
    # Where a contracting dimension is ragged, each group is a product of its own.
    sizes = [groups.sizes[-1]] if ragged in contracting[0] and groups.rank else []
    sizes += [lhs.sizes[dim] for dim in batching[0]]
    for tensor, side in ((lhs, 0), (rhs, 1)):
        taken = {*batching[side], *contracting[side], *(grouped if side else ())}
        sizes += [size for dim, size in enumerate(tensor.sizes) if dim not in taken]
    return sizes


def signature_of(name: str) -> Signature | None:
    """The row of an op of either dialect; `name` without `stablehlo.`."""
    return SIGNATURES.get(name) or CHLO_SIGNATURES.get(name)
