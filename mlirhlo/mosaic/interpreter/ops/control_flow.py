"""`scf`, `func` and `cf.assert`; branches between blocks are followed in `code`."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.mosaic.attributes import (
    attribute_of,
    flag_of,
    integers_of,
    name_of,
    plain,
    string_of,
)
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.interpreter.numbers import as_unsigned
from mlirhlo.mosaic.interpreter.problems import fault, place_of, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _results(op: Operation, values: tuple[Any, ...]) -> Any:
    """What a region yields, as the results of its operation are kept."""
    return values[0] if len(op.results) == 1 else values


@means("scf.for")
def for_loop(op: Operation, scope: Scope) -> Run:
    """Counts from the lower bound by the step below the upper bound, with carried values."""
    body = scope.region(op.regions[0])
    dtype = dtype_in(op.operands[0].type)
    on_bits = flag_of(op, "unsignedCmp")

    def run(frame: Activation, lower: Any, upper: Any, step: Any, *carried: Any) -> Any:
        bounds = (as_unsigned(v) if on_bits else v for v in (lower, upper))
        first, last = (int(v) for v in bounds)
        if int(step) <= 0:
            raise fault(f"a loop with step {int(step)}", "the step has to be positive")
        values: tuple[Any, ...] = carried
        for at in range(first, last, int(step)):
            values = body(frame, (dtype.type(at), *values))
        return _results(op, values)

    return run


@means("scf.while")
def while_loop(op: Operation, scope: Scope) -> Run:
    """Runs the first region; while its condition holds, the second on what it passes on."""
    before, after = scope.region(op.regions[0]), scope.region(op.regions[1])
    is_alone = not any(_EFFECTS.search(inner.name) for inner in op.walk() if inner is not op)

    def run(frame: Activation, *carried: Any) -> Any:
        values: tuple[Any, ...] = carried
        rounds = 0
        while True:
            holds, *passed = before(frame, values)
            if not holds:
                return _results(op, tuple(passed))
            last, values = values, after(frame, tuple(passed))
            rounds += 1
            if is_alone and rounds % _PATIENCE == 0 and _same(last, values):
                raise _endless(op, rounds)

    return run


_EFFECTS = re.compile(r"store|enqueue|signal|wait|prng|call|delay")
_PATIENCE = 1 << 14
"""Rounds after which a loop is looked at that does nothing but change what it carries."""


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b, equal_nan=False) for a, b in zip(one, other, strict=True))


def _endless(op: Operation, rounds: int) -> HloError:
    condition = op.regions[0].blocks[0].last_op
    notes = [] if condition is None else [("its condition", place_of(condition))]
    return HloError(
        Diagnostic(
            "HLO0703",
            f"this loop never ends: after {rounds} rounds its condition holds, and a round changes nothing "
            "of what it carries",
            place_of(op),
            notes,
            help="let the body bring the condition to its end, or bound the rounds",
        )
    )


@means("scf.if")
def conditional(op: Operation, scope: Scope) -> Run:
    """One of two regions."""
    first, second = scope.region(op.regions[0]), scope.region(op.regions[1])

    def run(frame: Activation, condition: Any) -> Any:
        return _results(op, (first if condition else second)(frame, ()))

    return run


@means("scf.index_switch")
def switch(op: Operation, scope: Scope) -> Run:
    """The region of the case, else the first one."""
    cases = integers_of(op, "cases") or ()
    default, *others = (scope.region(region) for region in op.regions)
    ways = dict(zip(cases, others, strict=True))

    def run(frame: Activation, which: Any) -> Any:
        return _results(op, ways.get(int(which), default)(frame, ()))

    return run


@means("scf.execute_region", "tpu.region", "tpu.trace")
def run_region(op: Operation, scope: Scope) -> Run:
    """The region, once."""
    body = scope.region(op.regions[0])
    return lambda frame: _results(op, body(frame, ()))


@means("scf.parallel")
def parallel_loop(op: Operation, scope: Scope) -> Run:
    """Every point of a box, in lexicographic order."""
    if op.results:
        raise unfit(op, "with reductions")
    body = scope.region(op.regions[0])
    sizes = integers_of(op, "operandSegmentSizes")
    rank = sizes[0] if sizes is not None else len(op.operands) // 3
    dtype = dtype_in(op.operands[0].type)

    def run(frame: Activation, *bounds: Any) -> Any:
        lower, upper, step = (bounds[i * rank : (i + 1) * rank] for i in range(3))
        ranges = [range(int(a), int(b), int(s)) for a, b, s in zip(lower, upper, step, strict=True)]
        for point in product(*ranges):
            body(frame, tuple(dtype.type(at) for at in point))
        return ()

    return run


@means("func.call")
def call(op: Operation, scope: Scope) -> Run:
    """Another function of the module."""
    callee = attribute_of(op, "callee")
    if callee is None:
        raise unfit(op, "it has no callee")
    function = scope.function(plain(callee))
    return lambda frame, *operands: _results(op, function(frame.core, operands))


@means("cf.assert")
def check(op: Operation, scope: Scope) -> Run:
    """Raises `HloError` HLO0702 with the kernel's message when the condition does not hold."""
    message = string_of(op, "msg") or "assertion"

    def run(frame: Activation, condition: Any) -> Any:
        if not np.all(condition):
            raise fault(f"{name_of(op)} does not hold: {message}")
        return ()

    return run
