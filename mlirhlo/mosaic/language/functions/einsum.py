"""`einsum`: sums, one product of matrices, and a transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirhlo.mosaic.language.elements import F32, I32, DTypeLike, as_dtype, kind_of, promoted
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import cast
from mlirhlo.mosaic.language.functions.products import dot_general
from mlirhlo.mosaic.language.functions.reductions import sum_
from mlirhlo.mosaic.language.functions.shapes import transpose
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


def einsum(
    equation: str,
    *operands: ArrayLike,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Sums of products by the letters of dimensions: `bqd,bkd->bqk`, of one or two operands.

    A letter stands once in each operand; one that both have and the result has not is contracted, one
    that all have is a batch. Raises `HloError` HLO0721 for anything else.
    """
    given, arrow, result = equation.replace(" ", "").partition("->")
    sides = given.split(",")
    values = [as_value(one) for one in operands]
    if len(sides) != len(values) or len(values) not in (1, 2):
        raise bad_shape(f"einsum {equation!r} of {len(values)} operands", "give one or two")
    letters = given.replace(",", "")
    if not arrow:
        result = "".join(sorted({x for x in letters if letters.count(x) == 1}))
    sizes: dict[str, int] = {}
    for side, value in zip(sides, values, strict=True):
        if len(side) != value.ndim or len(set(side)) != len(side) or not side.isalpha():
            raise bad_shape(
                f"einsum {equation!r}: {side!r} does not name the dimensions of {list(value.shape)}",
                "a letter for each, each once",
            )
        for letter, size in zip(side, value.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise bad_shape(f"einsum {equation!r}: {letter} is {sizes[letter]} and {size}")
    if len(set(result)) != len(result) or not set(result) <= set(letters):
        raise bad_shape(f"einsum {equation!r}: the result names each of its dimensions once")
    for at, (side, value) in enumerate(zip(sides, values, strict=True)):
        elsewhere = result + "".join(sides[:at] + sides[at + 1 :])
        alone = [n for n, letter in enumerate(side) if letter not in elsewhere]
        if alone:
            values[at] = sum_(value, tuple(alone))
            sides[at] = "".join(letter for letter in side if letter in elsewhere)
    if len(values) == 1:
        return _ordered(values[0], sides[0], result)
    left, right = sides
    batch = [x for x in left if x in right and x in result]
    summed = [x for x in left if x in right and x not in result]
    if set(left) == set(right) == {*batch, *summed}:
        order = "".join([*batch, *summed])
        dtype = promoted(values[0].dtype, values[1].dtype)
        wide = I32 if kind_of(dtype) in "iu" else F32
        one, other = (
            cast(_ordered(value, side, order), wide)
            for value, side in zip(values, sides, strict=True)
        )
        product = one * other
        if summed:
            product = sum_(product, tuple(range(len(batch), product.ndim)))
        wanted = dtype if preferred_element_type is None else as_dtype(preferred_element_type)
        return _ordered(cast(product, wanted), batch, result)
    for at, side in enumerate(sides):
        first = "".join([*batch, *(x for x in side if x not in batch)])
        values[at], sides[at] = _ordered(values[at], side, first), first
    left, right = sides
    numbers = tuple(
        tuple(tuple(side.index(x) for x in group) for side in sides) for group in (summed, batch)
    )
    made = dot_general(
        values[0],
        values[1],
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    rest = [x for x in left + right if x not in (*batch, *summed)]
    return _ordered(made, [*batch, *rest], result)


def _ordered(value: Value, have: Sequence[str], wanted: str) -> Value:
    axes = [have.index(x) for x in wanted]
    return value if axes == list(range(len(axes))) else transpose(value, axes)


__all__ = ["einsum"]
