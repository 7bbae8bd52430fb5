"""Gradients of layer norms as calls of cuDNN; dx is found by its terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, element, is_array, sized
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_calls import (
    is_row_major,
    norm_call,
    norm_config,
    part_of,
    workspace,
)
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_matching import (
    NORM_TYPES,
    Spread,
    look,
    near,
    sum_of,
)
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_terms import (
    OF_A_GRADIENT,
    Forward,
    Product,
    Reading,
    Terms,
    forward_of,
    given_by,
    times_gradient,
)
from mlirhlo.rewrites.legalize.expander import out_of_order
from mlirhlo.rewrites.rules import Rewriter, rule

MOST_NODES = 64
"""Instructions that a term of a gradient may be made of, and terms of a sum."""


def _within(root: Spread) -> Iterator[Spread]:
    """What sums and products that make a value are made of, from the value down."""
    seen: set[SSAValue] = set()
    stack = [root]
    while stack and len(seen) < MOST_NODES:
        found = stack.pop()
        if found.value in seen:
            continue
        seen.add(found.value)
        yield found
        owner = found.made_by(AddOp, SubtractOp, NegateOp, MultiplyOp, DivideOp)
        if owner is not None:
            stack += [found.operand(v) for v in owner.inputs]


def _summands(op: Instruction) -> list[tuple[float, SSAValue]]:
    """What is added up, with its sign, by sums and differences that nobody else reads."""
    found: list[tuple[float, SSAValue]] = []
    stack = [(1.0, op)] if isinstance(op, (AddOp, SubtractOp)) else []
    while stack:
        sign, each = stack.pop()
        for k, value in enumerate(each.inputs):
            own = -sign if k and isinstance(each, SubtractOp) else sign
            owner = value.owner
            if isinstance(owner, (AddOp, SubtractOp)) and value.has_one_use():
                stack.append((own, owner))
            else:
                found.append((own, value))
        if len(found) > MOST_NODES:
            break
    return found or [(1.0, op.output)]


@dataclass(frozen=True, slots=True)
class Gradient:
    """What the backward call gives instead of instructions there are."""

    norm: Forward
    dy: SSAValue
    times: float
    """What dy has to be multiplied by."""
    mean: SSAValue
    factor: SSAValue
    others: tuple[tuple[float, SSAValue], ...]
    """What else is in the sum, with its sign: gradients that come another way."""
    dscale: ReduceOp
    dbias: ReduceOp | None


def _gradient(op: Instruction, rewriter: Rewriter) -> Gradient | None:
    space = array(op).dimensions
    dims = tuple(None if n == 1 else d for d, n in enumerate(space))
    real = tuple(d for d in dims if d is not None)
    summands = [(sign, value, look(value, dims, space)) for sign, value in _summands(op)]
    # By the call whose factor they have: what summands are made of; one of them has dy.
    parts: dict[CustomCallOp, list[Spread]] = {}
    within: list[Spread] = []
    for _, _, found in summands:
        inside = list(_within(found))
        within += inside
        given = {pair for each in inside if (pair := given_by(each)) is not None}
        for call, index in given:
            if index == 2:
                parts.setdefault(call, []).extend(inside)
    for call, inside in parts.items():
        norm = next((n for f in within if (n := forward_of(call, f)) is not None), None)
        if norm is None or norm.everything != real:
            continue
        for dy in dict.fromkeys(f.value for f in inside if f.real == real):
            reading = Reading(norm, dy, rewriter)
            total: Terms = {}
            others: list[tuple[float, SSAValue]] = []
            for sign, value, found in summands:
                terms = None if dy is op.output else reading.terms(found)
                if terms is None or not terms.keys() <= OF_A_GRADIENT:
                    others.append((sign, value))
                    continue
                for key, number in terms.items():
                    total[key] = total.get(key, 0.0) + sign * number
            times = times_gradient(total, norm.count)
            if times is not None:
                return _with_sums(reading, times, tuple(others), dims, space)
    return None


def _with_sums(
    reading: Reading,
    times: float,
    others: tuple[tuple[float, SSAValue], ...],
    dims: tuple[int | None, ...],
    space: tuple[int, ...],
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
        norm, reading.dy, times, results[1], results[2], others, sums["dscale"], sums.get("dbias")
    )


def _sums_behind(dy: SSAValue) -> Iterator[ReduceOp]:
    """Sums that read a value, or products of it."""
    seen: set[Instruction] = set()
    stack = [dy]
    while stack and len(seen) < MOST_NODES:
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
    users = [] if gradient.others else [use.operation for use in op.output.uses]
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
    operands = (x, scale, norm.rows.there(b, dy), gradient.mean, gradient.factor)
    small: ArrayShape = sized(array(scale), array(scale).dimensions)
    room = workspace(rewriter, norm.rows.sizes[0])
    shapes = [sized(array(x), array(x).dimensions), small, small]
    call = norm_call(b, operands, shapes, room, norm_config(0, "LAYER_BWD", room))
    back = norm.rows.back(b, part_of(b, call, 0))
    if array(back).dimensions != array(result).dimensions:
        back = b.like(ReshapeOp, back)
    for sign, value in gradient.others:
        back = b.like(AddOp if sign > 0 else SubtractOp, back, value)
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
    out_of_order(computation, rewriter)
