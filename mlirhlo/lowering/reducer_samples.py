"""What a reducer that is no common operation shows on samples: whether folds may be cut in parts.

It has to give the same for every bracketing, and x for x and x. If it gives the same in both orders it
folds in any order. If not, it may still choose one of its operands, the first of those it cannot tell
apart, as argmax does among NaNs; then a position among the operands says which was first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.interp.engine import DeviceFrame, Interpreter
from mlirhlo.interp.structured.bodies import computation_of

_SAMPLES = 20
_ROUNDINGS = 32
"""How far apart, in the last places, two ways to fold three samples may be."""
Arrays: TypeAlias = "Sequence[Any]"
Fold: TypeAlias = "Callable[[Arrays, Arrays], Arrays]"


@dataclass(frozen=True, slots=True)
class Order:
    """Parts may be folded on their own."""

    position: int | None
    """The operand that tells which part was first; None where the order does not matter."""


def order_on_samples(computation: ComputationOp, elements: Sequence[PrimitiveType]) -> Order | None:
    """None when folding has to go in order."""
    module = cast(ModuleOp, computation.parent_op())
    folded = fold_of(module, computation)
    if folded is None:
        return None
    x, y, z = _triples(elements)
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


def is_associative_on_samples(folded: Fold, elements: Sequence[PrimitiveType]) -> bool:
    """Whether parts may be folded on their own, but for rounding."""
    x, y, z = _triples(elements)
    try:
        one, other = folded(folded(x, y), z), folded(x, folded(y, z))
    except HloError:
        return False
    parts = zip(one, other, elements, strict=True)
    return all(bool(np.all(_near(p, q, element))) for p, q, element in parts)


def are_identities_on_samples(
    folded: Fold, elements: Sequence[PrimitiveType], initial: Arrays
) -> bool:
    """Whether scalars, one for each element type, change nothing that they are folded with."""
    x, *_ = _triples(elements)
    starts = [np.broadcast_to(s, v.shape) for s, v in zip(initial, x, strict=True)]
    try:
        return bool(np.all(_same(folded(starts, x), x)) and np.all(_same(folded(x, starts), x)))
    except HloError:
        return False


def fold_of(module: ModuleOp, computation: ComputationOp) -> Fold | None:
    """A computation of a module as a function of arrays; None where it is none of one element at a time."""
    interpreter = Interpreter(module)
    name = computation.computation_name
    if not interpreter.vectorises(name):
        return None
    frame = DeviceFrame(interpreter)

    def folded(x: Arrays, y: Arrays) -> Arrays:
        with np.errstate(all="ignore"):  # infinities and NaNs are among the samples
            return frame.call_elementwise(name, [*x, *y])

    return folded


def step_of(region: Region) -> Fold | None:
    """The next state by the body of a scan, out of the state and the inputs' elements; None as above."""
    computation, _ = computation_of("body", region)
    body = fold_of(ModuleOp([computation]), computation)
    if body is None:
        return None
    return lambda state, x: body(x, state)[-len(state) :]


def _triples(elements: Sequence[PrimitiveType]) -> Iterator[Arrays]:
    """Three operands: every three of the samples."""
    samples = _samples(elements)
    for numbers in np.meshgrid(*[np.arange(_SAMPLES)] * 3, indexing="ij"):
        yield [s[numbers.ravel()] for s in samples]


def _near(x: Any, y: Any, element: PrimitiveType) -> Any:
    """Where arrays differ by rounding alone."""
    if not (element.is_float or element.is_complex):
        return x == y
    finfo: Any = ml_dtypes.finfo
    room = _ROUNDINGS * float(finfo(element.real.dtype).eps)
    p, q = (v.astype(np.complex128) for v in (x, y))
    with np.errstate(invalid="ignore"):
        return (p == q) | ((p != p) & (q != q)) | (np.abs(p - q) <= room * (1 + np.abs(p)))


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
