"""Finding layer norms and their gradients: values as they are read in a larger array, sums and averages of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import BF16, F16, F32
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BitcastOp,
    BroadcastOp,
    ConvertOp,
    DivideOp,
    Instruction,
    MultiplyOp,
    ReduceOp,
    ReshapeOp,
)
from mlirhlo.rewrites.algsimp.common import array, element, is_all, is_array, splat_of
from mlirhlo.rewrites.rules import Rewriter

NORM_TYPES = (BF16, F16, F32)
"""Element types that cuDNN's norms take and give."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A value as it is read in a larger array: which of the array's dimensions each of its own is.

    None for dimensions of size 1. Broadcasts, conversions among the types of the library and reshapes that add
    or drop dimensions of size 1 are looked through.
    """

    value: SSAValue
    dims: tuple[int | None, ...]
    space: tuple[int, ...]
    """Sizes of the larger array."""

    def made_by(self, *classes: type[Instruction]) -> Instruction | None:
        """The instruction that makes the value, if it is of one of the classes and an array's."""
        owner = self.value.owner
        return owner if isinstance(owner, classes) and is_array(owner) else None

    def operand(self, value: SSAValue) -> Spread:
        """An operand of the instruction that makes the value, which is as large."""
        return look(value, self.dims, self.space)

    @property
    def real(self) -> tuple[int, ...]:
        """Dimensions of the array, those of size 1 left out."""
        return tuple(d for d in self.dims if d is not None)


def look(value: SSAValue, dims: Sequence[int | None], space: tuple[int, ...]) -> Spread:
    """What a value of the dimensions is, seen through what only moves it."""
    while True:
        owner = value.owner
        if isinstance(owner, BroadcastOp):
            sizes = array(owner.operand).dimensions
            dims = [
                None if n == 1 else dims[d] for n, d in zip(sizes, owner.dimensions, strict=True)
            ]
        elif isinstance(owner, ConvertOp):
            if element(owner) not in NORM_TYPES or element(owner.operand) not in NORM_TYPES:
                break
        elif isinstance(owner, (ReshapeOp, BitcastOp)):
            given, wanted = array(owner.operand).dimensions, array(owner).dimensions
            if [n for n in given if n != 1] != [n for n in wanted if n != 1]:
                break
            rest = iter([d for n, d in zip(wanted, dims, strict=True) if n != 1])
            dims = [None if n == 1 else next(rest) for n in given]
        else:
            break
        value = owner.inputs[0]
    sizes = array(value).dimensions
    real = tuple(None if n == 1 else d for n, d in zip(sizes, dims, strict=True))
    return Spread(value, real, space)


@dataclass(frozen=True, slots=True)
class Mean:
    """An average of `of`; `node` multiplies or divides the sum."""

    node: Instruction
    of: Spread
    over: tuple[int, ...]
    """Dimensions that are summed, those of size 1 left out."""


def operands_of(found: Spread, *classes: type[Instruction]) -> tuple[Spread, Spread] | None:
    """The two operands of the instruction that makes a value, if it is of one of the classes."""
    op = found.made_by(*classes)
    return None if op is None else (found.operand(op.inputs[0]), found.operand(op.inputs[1]))


def both_ways(found: Spread, cls: type[Instruction]) -> Iterator[tuple[Spread, Spread]]:
    """Operands of a commutative instruction in both orders."""
    pair = operands_of(found, cls)
    if pair is not None:
        yield pair
        yield pair[1], pair[0]


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of `of`, as it is read in a larger array."""

    of: Spread
    over: tuple[int, ...]
    """Dimensions of the larger array that are summed, those of size 1 left out."""
    count: int
    """Numbers in each sum."""


def sum_of(found: Spread, rewriter: Rewriter) -> Sum | None:
    """The sum that makes a value: its dimensions are those that the value has not, in their order."""
    reduce = found.made_by(ReduceOp)
    if not isinstance(reduce, ReduceOp) or not is_sum(reduce, rewriter):
        return None
    source, init = reduce.inputs
    if not is_all(init, 0):
        return None
    sizes = array(source).dimensions
    summed = [d for d in sorted(reduce.dimensions) if sizes[d] != 1]
    free = [d for d, n in enumerate(found.space) if n != 1 and d not in found.real]
    if [sizes[d] for d in summed] != [found.space[d] for d in free]:
        return None
    kept, own = iter(found.dims), iter(free)
    dims = [
        (next(own) if d in summed else None) if d in reduce.dimensions else next(kept)
        for d in range(len(sizes))
    ]
    count = math.prod(sizes[d] for d in reduce.dimensions)
    return Sum(look(source, dims, found.space), tuple(free), count)


def mean_of(found: Spread, rewriter: Rewriter) -> Mean | None:
    """sum(of) * (1 / n), or sum(of) / n."""
    node = found.made_by(MultiplyOp, DivideOp)
    if node is None:
        return None
    for total, factor in both_ways(found, type(node)):
        scale = splat_of(factor.value)
        made = sum_of(total, rewriter) if isinstance(scale, float) and scale else None
        if made is not None:
            inverse = 1 / scale if isinstance(node, DivideOp) else scale
            return Mean(node, made.of, made.over) if near(inverse, 1 / made.count) else None
        if isinstance(node, DivideOp):
            break
    return None


def near(number: float, wanted: float) -> bool:
    """Whether a factor is what it should be, as far as bf16 can tell."""
    return abs(number - wanted) < abs(number + wanted) * 2**-7


def is_sum(op: ReduceOp, rewriter: Rewriter) -> bool:
    """Whether a reduce of one array adds."""
    function = rewriter.computation(op.to_apply)
    if function is None or not isinstance(function.root, AddOp) or len(op.inputs) != 2:
        return False
    return {*function.root.operands} == {p.output for p in function.parameters}


def squared(found: Spread) -> Spread | None:
    """x of x * x."""
    pair = operands_of(found, MultiplyOp)
    return pair[0] if pair is not None and pair[0] == pair[1] else None
