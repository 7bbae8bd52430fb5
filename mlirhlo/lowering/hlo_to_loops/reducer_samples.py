"""What a reducer that is no common operation shows on samples: whether folds may be cut in parts.

It has to give the same for every bracketing, and x for x and x. If it gives the same in both orders it
folds in any order. If not, it may still choose one of its operands, the first of those it cannot tell
apart, as argmax does among NaNs; then a position among the operands says which was first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.interp.engine import DeviceFrame, Interpreter

_SAMPLES = 20
Arrays = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """Parts may be folded on their own."""

    position: int | None
    """The operand that tells which part was first; None where the order does not matter."""


def order_on_samples(computation: ComputationOp, elements: Sequence[PrimitiveType]) -> Order | None:
    """None when folding has to go in order."""
    interpreter = Interpreter(cast(ModuleOp, computation.parent_op()))
    name = computation.computation_name
    if not interpreter.vectorises(name):
        return None
    frame = DeviceFrame(interpreter)

    def folded(x: Arrays, y: Arrays) -> Arrays:
        with np.errstate(all="ignore"):  # infinities and NaNs are among the samples
            return frame.call_elementwise(name, [*x, *y])

    i, j, k = (a.ravel() for a in np.meshgrid(*[np.arange(_SAMPLES)] * 3, indexing="ij"))
    samples = _samples(elements)
    x, y, z = ([s[n] for s in samples] for n in (i, j, k))
    try:
        if not np.all(_same(folded(x, x), x)):
            return None
        if not np.all(_same(folded(folded(x, y), z), folded(x, folded(y, z)))):
            return None
        result = folded(x, y)
        if np.all(_same(result, folded(y, x))):
            return Order(None)
    except HloError:
        return None
    for at, element in enumerate(elements):
        chooses = _same(result, x) | _same(result, y) | (x[at] == y[at])
        if element.is_integer and np.all(chooses):
            return Order(at)
    return None


def _same(x: Arrays, y: Arrays) -> Any:
    """Where all parts are the same, NaNs among them."""
    parts = [(p == q) | ((p != p) & (q != q)) for p, q in zip(x, y, strict=True)]
    return np.all(parts, axis=0)


def _samples(elements: Sequence[PrimitiveType]) -> list[Any]:
    """Values of all operands, special ones among them."""
    rng = np.random.default_rng(0)
    pools: list[list[float]] = []
    for element in elements:
        if element.is_float or element.is_complex:
            pools.append([0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
        else:
            pools.append([0, 1] if element.kind is Kind.PRED else [0, 1, 2, 3, 7])
    return [
        rng.choice(np.array(pool).astype(element.dtype), _SAMPLES)
        for pool, element in zip(pools, elements, strict=True)
    ]
