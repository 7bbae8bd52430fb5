"""How far results may move by rounding alone, measured by running the module.

A pass that only computes in another order moves a result as far as the module's own rounding does. `movements` runs the
module again while every inexact number moves by a few units in the last place of its own type, so that products in
bf16 may move by bf16's units, and numbers that are exact (small multiples of 1/16) do not move at all.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import interp
    from mlirhlo.rewrites import cloning


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Array: TypeAlias = np.ndarray[Any, Any]

NOISE_RUNS = 3
_MIN_SAMPLE = 16
"""Elements from which on their mean says something."""
_MOST_NOISE = 3.0


@dataclass(frozen=True, slots=True)
class Movement:
    """How far one result moves by rounding."""

    furthest: Array
    """By element; infinite for integers that change."""
    noise: float
    """The root of the mean square, of all elements taken together."""

    def allows(self, expected: Array, actual: Array) -> bool:
        """Whether rounding explains how far two arrays are apart."""
        near = within(expected, actual, self.furthest, 0.0)
        return near and is_likely_rounding(expected, actual, self.noise)

    def joined(self, other: Movement) -> Movement:
        """What either of two modules moves by."""
        if self.furthest.shape != other.furthest.shape:
            return other
        furthest = np.maximum(self.furthest, other.furthest)
        return Movement(furthest, max(self.noise, other.noise))


def movements(module: ModuleOp, inputs: Sequence[Any], results: Sequence[Array]) -> list[Movement]:
    """How far each result of `module` moves with its inexact numbers.

    `results`: what the module gives without noise. Raises what the interpreter raises.
    """
    noisy = [
        interp.run_module(cloning.clone_module(module), inputs, hook=Noise(run).hook)
        for run in range(NOISE_RUNS)
    ]
    return [movement(result, [run[k] for run in noisy]) for k, result in enumerate(results)]


def movement(result: Array, noisy: Sequence[Any]) -> Movement:
    """How far an array is from what noisy runs gave in its place."""
    moved = [np.asarray(run) for run in noisy]
    if any(m.shape != result.shape for m in moved):
        return Movement(np.full(result.shape, np.inf), float("inf"))
    return Movement(_distance(result, moved), _noise(result, moved))


def is_likely_rounding(a: Array, b: Array, noise: float) -> bool:
    """Whether arrays of some size differ, all elements taken together, no more than noise moves them.

    `noise`: the root of the mean square of how far noisy runs move the elements. One element may be off by chance; that
    all are, on the average by several times the noise, is no rounding.
    """
    if a.size < _MIN_SAMPLE or _digits(np.real(a).dtype) == 0:
        return True
    x, y = _wide(a), _wide(b)
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y)
    if not finite.any():
        return True
    units = 2.0 ** -_digits(np.real(a).dtype) * root_mean_square(x[finite])
    return root_mean_square((x - y)[finite]) <= _MOST_NOISE * noise + 2 * units


def root_mean_square(values: Array) -> float:
    """The root of the mean of squares; 0 for nothing."""
    if not values.size:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.abs(values.astype(np.complex128)) ** 2)))


def _noise(result: Array, moved: Sequence[Array]) -> float:
    wide = _wide(result)
    with np.errstate(all="ignore"):
        far = [(_wide(m) - wide)[np.isfinite(_wide(m)) & np.isfinite(wide)] for m in moved]
    return max(map(root_mean_square, far), default=0.0)


def _distance(result: Array, moved: Sequence[Array]) -> Array:
    if result.dtype.kind in "iub" or "int" in result.dtype.name:
        changes = any(not same(result, m) for m in moved)
        return np.full(result.shape, np.inf if changes else 0.0)
    wide = _wide(result)
    with np.errstate(all="ignore"):
        far = [np.where(_equal(wide, _wide(m)), 0.0, np.abs(wide - _wide(m))) for m in moved]
    furthest = np.max([np.where(np.isnan(f), np.inf, f) for f in far], axis=0)
    # What one element moves by says something of its neighbours.
    most = np.max(furthest, initial=0.0, where=np.isfinite(furthest))
    return np.asarray(np.maximum(furthest, most))


class Noise:
    """A hook that moves every inexact number of a run by some units in the last place, and gives NaNs one sign."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nan = np.nan if seed % 2 else -np.nan

    def hook(self, op: Any, _: Sequence[Any], value: Any) -> None:
        """Moves the numbers of one result, in place."""
        if op.opcode.name not in ("parameter", "constant"):
            self._move(value)

    def _move(self, value: Any) -> None:
        if isinstance(value, tuple):
            for part in value:
                self._move(part)
            return
        data = getattr(value, "data", value) if not isinstance(value, np.ndarray) else value
        if not isinstance(data, np.ndarray) or not data.flags.writeable:
            return
        for part in (data.real, data.imag) if data.dtype.kind == "c" else (data,):
            digits = _digits(part.dtype)
            if not digits:
                continue
            wide = part.astype(np.float64)
            scaled = np.abs(wide) * 16
            with np.errstate(all="ignore"):
                inexact = np.isfinite(wide) & ((scaled != np.rint(scaled)) | (scaled > 2**digits))
                factor = 1 + self.random.uniform(-3, 3, wide.shape) * 2.0**-digits
                moved = np.where(inexact, wide * factor, wide)
                part[...] = np.where(np.isnan(wide), self.nan, moved).astype(part.dtype)


@lru_cache(maxsize=1024)
def _digits(dtype: np.dtype[Any]) -> int:
    """Bits of a float's fraction; 0 for other types."""
    import ml_dtypes

    try:
        return int(ml_dtypes.finfo(dtype).nmant)
    except ValueError:
        return 0


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _equal(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def same(a: Array, b: Array) -> bool:
    """Whether all bits are the same, but for those of NaNs."""
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind in "iub" or not bool(_equal(_wide(a), _wide(b)).all()):
        return False
    zeros = _wide(a) == 0
    signs = [[np.signbit(part) for part in (np.real(_wide(x)), np.imag(_wide(x)))] for x in (a, b)]
    return all(bool((p == q)[zeros].all()) for p, q in zip(*signs, strict=True))


def within(a: Array, b: Array, bound: Array, floor: float = 1.0) -> bool:
    """Whether `b` is as near to `a` as rounding otherwise explains; not the sign of zeros.

    `floor`: the least scale of an array; sums of numbers of this size may have cancelled in it.
    """
    x, y = _wide(a), _wide(b)
    digits = _digits(np.real(a).dtype) or 60
    with np.errstate(all="ignore"):
        scale = np.abs(x[np.isfinite(x)]).max(initial=floor)
        # XLA's rules take sums and products that overflow to be apart from infinity.
        margin = 16 * bound + 2.0**-digits * (8 * np.abs(x) + 4 * scale if digits < 60 else 0)
        near = _equal(x, y) | (np.abs(x - y) <= margin) | (bound == np.inf)
    return bool(near.all())
