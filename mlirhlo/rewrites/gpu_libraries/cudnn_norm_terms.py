"""The terms of a value by what a layer norm knows.

Products are flattened into a number and what it multiplies, sums into such terms, through broadcasts and
conversions, with what is equal in a row taken out of the sums over rows. So the grouping does not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BitcastOp,
    CustomCallOp,
    DivideOp,
    GetTupleElementOp,
    MultiplyOp,
    NegateOp,
    ReduceOp,
    ReshapeOp,
    SubtractOp,
    TransposeOp,
)
from mlirhlo.rewrites.algsimp.common import array, splat_of
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_calls import NORM, Rows
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_matching import (
    Spread,
    look,
    near,
    operands_of,
    sum_of,
)
from mlirhlo.rewrites.gpu_libraries.gpu_calls import NORM_CONFIG, config_of
from mlirhlo.rewrites.rules import Rewriter

MOST_STEPS = 400
"""Instructions that are looked at for one gradient; more are no gradient of a norm."""

Product: TypeAlias = tuple[float, Counter[str]]
"""A number, and how often it is multiplied by each of the norm's values."""
Terms: TypeAlias = dict[tuple[frozenset[tuple[str, int]], bool], float]
"""Numbers by what they multiply, and whether the product is summed over what is normed."""

OF_A_ROW = frozenset({"factor", "total"})
"""Values that are equal wherever a norm sums."""
DX = Counter({"factor": 1, "scale": 1, "dy": 1})
BY_VARIANCE = Counter({"centre": 1, "factor": 3, "total": 1})
OF_A_GRADIENT = {
    (frozenset(names.items()), is_summed)
    for names in (DX, BY_VARIANCE)
    for is_summed in (False, True)
}
"""What the terms of dx multiply."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A call that gives mean and factor too, and what it norms."""

    call: CustomCallOp
    x: SSAValue
    rows: Rows
    outer: tuple[int, ...]
    """Dimensions of the larger array that are not normed, those of size 1 left out."""
    inner: tuple[int, ...]
    scale: SSAValue

    @property
    def everything(self) -> tuple[int, ...]:
        """Dimensions of the larger array, those of size 1 left out."""
        return tuple(sorted((*self.outer, *self.inner)))

    @property
    def count(self) -> int:
        """Numbers in an average."""
        return math.prod(self.rows.sizes[1:])


def given_by(found: Spread) -> tuple[CustomCallOp, int] | None:
    """The call of a training norm that gives a value, reshaped perhaps, and which result it is."""
    owner = found.value.owner
    if isinstance(owner, (ReshapeOp, BitcastOp)):
        owner = owner.inputs[0].owner
    if not isinstance(owner, GetTupleElementOp):
        return None
    call = owner.inputs[0].owner
    if not isinstance(call, CustomCallOp) or call.custom_call_target != NORM:
        return None
    if config_of(call, NORM_CONFIG).get("kind") != "LAYER_FWD_TRAIN":
        return None
    return call, owner.index


def _sources(call: CustomCallOp) -> Iterator[tuple[SSAValue, tuple[int, ...]]]:
    """What a call may norm, and the order that its dimensions were brought to."""
    value = call.inputs[0]
    yield value, tuple(range(array(value).rank))
    if not isinstance(value.owner, (ReshapeOp, BitcastOp)):
        return
    value = value.owner.inputs[0]
    yield value, tuple(range(array(value).rank))
    if isinstance(value.owner, TransposeOp):
        yield value.owner.inputs[0], tuple(value.owner.dimensions)


def forward_of(call: CustomCallOp, centre: Spread) -> Forward | None:
    """The norm of the x in x - mean, where that is what the call norms."""
    pair = operands_of(centre, SubtractOp)
    if pair is None or (mean := given_by(pair[1])) is None or mean != (call, 1):
        return None
    x, flat = pair[0], array(call.inputs[0]).dimensions
    everything = [d for d, n in enumerate(x.space) if n != 1]
    for value, order in _sources(call):
        if value is not x.value or list(x.real) != everything:
            continue
        sizes = [array(value).dimensions[k] for k in order]
        for cut in range(len(sizes) + 1):
            normed = [n for n in sizes[cut:] if n != 1]
            if math.prod(sizes[:cut]) == flat[0] and normed == [n for n in flat[1:] if n != 1]:
                outer = [d for k in order[:cut] if (d := x.dims[k]) is not None]
                inner = [d for k in order[cut:] if (d := x.dims[k]) is not None]
                if list(pair[1].real) != outer:
                    return None
                small = call.inputs[1]
                scale = look(small, range(array(small).rank), array(small).dimensions).value
                rows = Rows(array(value).dimensions, order, flat)
                return Forward(call, value, rows, tuple(outer), tuple(inner), scale)
    return None


@dataclass(slots=True)
class Reading:
    """Terms of a value by what a norm knows: `centre`, `factor`, `scale`, `dy` and `total`.

    total = sum(centre * scale * dy) over what is normed.
    """

    norm: Forward
    dy: SSAValue
    rewriter: Rewriter
    steps: int = field(default=0)

    def product(self, found: Spread) -> Product | None:
        """A value as a product; None where it is none of what the norm knows."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            return None
        if (name := self._name(found)) is not None:
            return 1.0, Counter({name: 1})
        if isinstance(number := splat_of(found.value), float):
            return number, Counter()
        owner = found.made_by(MultiplyOp, DivideOp, NegateOp, ReduceOp)
        if isinstance(owner, NegateOp):
            inner = self.product(found.operand(owner.inputs[0]))
            return None if inner is None else (-inner[0], inner[1])
        if isinstance(owner, ReduceOp):
            return self._total(found)
        if owner is None:
            return None
        left, right = (found.operand(v) for v in owner.inputs)
        return self._times(left, right, isinstance(owner, DivideOp))

    def _times(self, one: Spread, other: Spread, is_quotient: bool) -> Product | None:
        left = self.product(one)
        right = None if left is None else self.product(other)
        if left is None or right is None:
            return None
        if is_quotient:
            return None if right[1] or not right[0] else (left[0] / right[0], left[1])
        return left[0] * right[0], left[1] + right[1]

    def _name(self, found: Spread) -> str | None:
        if found.value is self.dy and found.real == self.norm.everything:
            return "dy"
        if found.value is self.norm.scale and found.real == self.norm.inner:
            return "scale"
        if given_by(found) == (self.norm.call, 2) and found.real == self.norm.outer:
            return "factor"
        return "centre" if forward_of(self.norm.call, found) == self.norm else None

    def _total(self, found: Spread) -> Product | None:
        made = sum_of(found, self.rewriter)
        inner = None if made is None else self.product(made.of)
        if made is None or inner is None or set(made.over) != set(self.norm.inner):
            return None
        outside = Counter({n: k for n, k in inner[1].items() if n in OF_A_ROW})
        if inner[1] - outside != Counter({"centre": 1, "scale": 1, "dy": 1}):
            return None
        return inner[0], outside + Counter({"total": 1})

    def terms(self, found: Spread) -> Terms | None:
        """A value as a sum of products."""
        if (single := self.product(found)) is not None:
            return {(frozenset(single[1].items()), False): single[0]}
        owner = found.made_by(AddOp, SubtractOp, NegateOp, MultiplyOp, DivideOp, ReduceOp)
        if owner is None or self.steps > MOST_STEPS:
            return None
        if isinstance(owner, ReduceOp):
            return self._summed(found)
        operands = [found.operand(v) for v in owner.inputs]
        if isinstance(owner, NegateOp):
            return _scaled(self.terms(operands[0]), (-1.0, Counter()))
        if isinstance(owner, (AddOp, SubtractOp)):
            left = self.terms(operands[0])
            right = None if left is None else self.terms(operands[1])
            sign = -1.0 if isinstance(owner, SubtractOp) else 1.0
            return _joined(left, _scaled(right, (sign, Counter())))
        for one, other in (operands, operands[::-1]):
            by = self.product(other)
            if by is not None and set(by[1]) <= OF_A_ROW:
                if isinstance(owner, MultiplyOp):
                    return _scaled(self.terms(one), by)
                if not by[1] and by[0]:
                    return _scaled(self.terms(one), (1 / by[0], by[1]))
            if isinstance(owner, DivideOp):
                return None
        return None

    def _summed(self, found: Spread) -> Terms | None:
        made = sum_of(found, self.rewriter)
        inner = None if made is None else self.terms(made.of)
        if made is None or inner is None or set(made.over) != set(self.norm.inner):
            return None
        if any(is_summed for _, is_summed in inner):
            return None
        return {(names, True): number for (names, _), number in inner.items()}


def _scaled(terms: Terms | None, by: Product) -> Terms | None:
    if terms is None:
        return None
    return {
        (frozenset((Counter(dict(names)) + by[1]).items()), is_summed): number * by[0]
        for (names, is_summed), number in terms.items()
    }


def _joined(left: Terms | None, right: Terms | None) -> Terms | None:
    if left is None or right is None:
        return None
    return {key: left.get(key, 0.0) + right.get(key, 0.0) for key in (*left, *right)}


def times_gradient(terms: Terms, count: int) -> float | None:
    """The number that dx is multiplied by where terms are those of dx; None where they are not.

    The sum of the third term, which is zero, may be among them.
    """
    mean = 1 / count
    wanted: Mapping[tuple[frozenset[tuple[str, int]], bool], float] = {
        (frozenset(DX.items()), False): 1.0,
        (frozenset(DX.items()), True): -mean,
        (frozenset(BY_VARIANCE.items()), False): -mean,
    }
    zero = (frozenset(BY_VARIANCE.items()), True)
    given = {key: number for key, number in terms.items() if key != zero}
    if given.keys() != wanted.keys():
        return None
    times = given[frozenset(DX.items()), False]
    return times if all(near(given[k], times * wanted[k]) for k in wanted) else None
