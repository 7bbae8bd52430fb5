"""Gradients of layer norms as calls of cuDNN.

dx is found by its terms: products are flattened into a number and what it multiplies, sums into such terms,
through broadcasts and conversions, factors of a sum taken out of it. So the grouping does not matter.
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
    BroadcastOp,
    ComputationOp,
    ConvertOp,
    CustomCallOp,
    DivideOp,
    GetTupleElementOp,
    Instruction,
    MultiplyOp,
    NegateOp,
    ReduceOp,
    ReshapeOp,
    SubtractOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls.gpu_gemm import config_of
from mlirhlo.rewrites.algsimp.common import Builder, array, element, is_array, sized, splat_of
from mlirhlo.rewrites.cudnn_norm_calls import (
    NORM,
    Rows,
    is_row_major,
    norm_call,
    norm_config,
    part_of,
    put_in_order,
    workspace,
)
from mlirhlo.rewrites.cudnn_norm_matching import (
    NORM_TYPES,
    Spread,
    look,
    near,
    operands_of,
    sum_of,
)
from mlirhlo.rewrites.gpu_calls import NORM_CONFIG
from mlirhlo.rewrites.rules import Rewriter, rule

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


def _given_by(found: Spread) -> tuple[CustomCallOp, int] | None:
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


def _forward(call: CustomCallOp, centre: Spread) -> Forward | None:
    """The norm of the x in x - mean, where that is what the call norms."""
    pair = operands_of(centre, SubtractOp)
    if pair is None or (mean := _given_by(pair[1])) is None or mean != (call, 1):
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
        if _given_by(found) == (self.norm.call, 2) and found.real == self.norm.outer:
            return "factor"
        return "centre" if _forward(self.norm.call, found) == self.norm else None

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
            left, right = map(self.terms, operands)
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


def _times_gradient(terms: Terms | None, count: int) -> float | None:
    """The number that dx is multiplied by where terms are those of dx; None where they are not.

    The sum of the third term, which is zero, may be among them.
    """
    if terms is None:
        return None
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


# ---------------------------------------------------------------- finding


def _within(root: Spread) -> Iterator[Spread]:
    """What sums and products that make a value are made of, from the value down."""
    seen: set[SSAValue] = set()
    stack = [root]
    while stack and len(seen) < MOST_STEPS:
        found = stack.pop()
        if found.value in seen:
            continue
        seen.add(found.value)
        yield found
        owner = found.made_by(AddOp, SubtractOp, NegateOp, MultiplyOp, DivideOp)
        if owner is not None:
            stack += [found.operand(v) for v in owner.inputs]


@dataclass(frozen=True, slots=True)
class Gradient:
    """What the backward call gives instead of instructions there are."""

    norm: Forward
    dy: SSAValue
    times: float
    """What dy has to be multiplied by."""
    mean: SSAValue
    factor: SSAValue
    dscale: ReduceOp
    dbias: ReduceOp | None


def _gradient(op: Instruction, rewriter: Rewriter) -> Gradient | None:
    space = array(op).dimensions
    dims = tuple(None if n == 1 else d for d, n in enumerate(space))
    real = tuple(d for d in dims if d is not None)
    within = list(_within(Spread(op.output, dims, space)))
    given = {pair for found in within if (pair := _given_by(found)) is not None}
    calls = list(dict.fromkeys(call for call, index in given if index == 2))
    if len(calls) != 1:
        return None
    norms = [norm for f in within if (norm := _forward(calls[0], f)) is not None]
    if not norms or norms[0].everything != real:
        return None
    for found in within:
        if found.real != real or found.value is op.output:
            continue
        reading = Reading(norms[0], found.value, rewriter)
        times = _times_gradient(reading.terms(within[0]), norms[0].count)
        if times is not None:
            return _with_sums(reading, times, dims, space)
    return None


def _with_sums(
    reading: Reading, times: float, dims: tuple[int | None, ...], space: tuple[int, ...]
) -> Gradient | None:
    """The gradient with the sums over rows that are dscale and dbias."""
    norm = reading.norm
    sums: dict[str, ReduceOp] = {}
    for reduce in _sums_behind(reading.dy):
        made = _sum_of_rows(reduce, reading, dims, space)
        if made is None or not near(made[0], times):
            continue
        for name, wanted in (
            ("dbias", Counter({"dy": 1})),
            ("dscale", Counter({"dy": 1, "centre": 1, "factor": 1})),
        ):
            if made[1] == wanted:
                sums.setdefault(name, reduce)
    results = {
        index: op.output
        for use in norm.call.output.uses
        if isinstance(op := use.operation, GetTupleElementOp) and (index := op.index) in (1, 2)
    }
    if "dscale" not in sums or len(results) != 2:
        return None
    return Gradient(
        norm, reading.dy, times, results[1], results[2], sums["dscale"], sums.get("dbias")
    )


def _sums_behind(dy: SSAValue) -> Iterator[ReduceOp]:
    """Sums that read a value, or products of it."""
    seen: set[Instruction] = set()
    stack = [dy]
    while stack and len(seen) < MOST_STEPS:
        for use in stack.pop().uses:
            user = use.operation
            if isinstance(user, ReduceOp):
                yield user
            elif isinstance(user, (MultiplyOp, ConvertOp, ReshapeOp, BitcastOp, BroadcastOp)):
                if user not in seen:
                    seen.add(user)
                    stack.append(user.output)


def _sum_of_rows(
    op: ReduceOp, reading: Reading, dims: tuple[int | None, ...], space: tuple[int, ...]
) -> Product | None:
    """What is summed over all rows, in the larger array."""
    inner = reading.norm.inner
    if not is_array(op) or len(op.inputs) != 2:
        return None
    sizes = array(op).dimensions
    if [n for n in sizes if n != 1] != [space[d] for d in sorted(inner)]:
        return None
    own = iter(sorted(inner))
    found = Spread(op.output, tuple(None if n == 1 else next(own) for n in sizes), space)
    made = sum_of(found, reading.rewriter)
    if made is None or set(made.over) != {d for d in dims if d is not None} - set(inner):
        return None
    return Reading(reading.norm, reading.dy, reading.rewriter).product(made.of)


def _result(op: Instruction, gradient: Gradient) -> Instruction | None:
    """The instruction that gives dx in the type of x: the sum, or its conversion; or None."""
    norm = gradient.norm
    type_, scale = element(norm.x), element(norm.call.inputs[1])
    users = [use.operation for use in op.output.uses]
    result = op
    if len(users) == 1 and isinstance(user := users[0], ConvertOp) and element(user) is type_:
        result = user
    sums = [s for s in (gradient.dscale, gradient.dbias) if s is not None]
    if not all(is_row_major(array(v)) for v in (gradient.dy, op.output, *(s.output for s in sums))):
        return None
    if element(result) is not type_ or any(element(s) is not scale for s in sums):
        return None
    if element(gradient.dy) not in NORM_TYPES:
        return None
    widest = max(element(gradient.dy).bits, scale.bits)
    return result if type_.bits >= widest else None


@rule(AddOp, SubtractOp, MultiplyOp, contract="rounding")
def layer_norm_gradient(op: Instruction, rewriter: Rewriter) -> None:
    """dx, sum(dy * centre * factor) and sum(dy) of a layer norm of training => custom-call, __cudnn$norm"""
    gradient = _gradient(op, rewriter) if is_array(op) else None
    result = None if gradient is None else _result(op, gradient)
    if gradient is None or result is None:
        return
    norm = gradient.norm
    b = Builder(result, rewriter)
    x, scale = norm.call.inputs[:2]
    dy: SSAValue = gradient.dy
    if gradient.times != 1:
        dy = b.on(MultiplyOp, dy, b.splat(array(dy), gradient.times)).output
    dy = norm.rows.there(b, dy)
    operands = (x, scale, dy, gradient.mean, gradient.factor)
    small: ArrayShape = sized(array(scale), array(scale).dimensions)
    room = workspace(rewriter, norm.rows.sizes[0])
    shapes = [sized(array(x), array(x).dimensions), small, small]
    call = norm_call(b, operands, shapes, room, norm_config(0, "LAYER_BWD", room))
    back = norm.rows.back(b, part_of(b, call, 0))
    if array(back).dimensions != array(result).dimensions:
        back = b.like(ReshapeOp, back)
    sums: list[tuple[ReduceOp, Instruction]] = []
    for index, old in enumerate((gradient.dscale, gradient.dbias), 1):
        if old is not None:
            sums.append(
                (old, b.reshape(part_of(b, call, index), sized(array(old), array(old).dimensions)))
            )
    computation = result.parent_op()
    b.done(back)
    for old, new in sums:
        rewriter.replace_by_value(old, new.output)
    assert isinstance(computation, ComputationOp)
    put_in_order(computation)
