"""rng and rng-get-and-update-state.

`rng` leaves the generator to the implementation: here numpy's, seeded by the machine's `seed` and
the device's number, so runs repeat but agree with XLA's in distribution only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.registry import Array, Frame, Value, evaluates

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.random import RngGetAndUpdateStateOp, RngOp


@evaluates("rng")
def rng(op: RngOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`rng_uniform`: numbers in [a, b); `rng_normal`: of mean a and standard deviation b.

    Complex numbers get two independent parts. Raises `HloError` HLO0355 for a distribution the
    element type does not have.
    """
    shape = cast(ArrayShape, op.shape)
    generator: Any = frame.machine.generator(frame.machine.device(frame.replica, frame.partition))
    a: Any = np.broadcast_to(inputs[0], shape.dimensions)
    b: Any = np.broadcast_to(inputs[1], shape.dimensions)
    type_ = shape.element_type
    is_uniform = op.distribution == "rng_uniform"
    if not is_uniform and not (type_.is_float or type_.is_complex):
        raise error("HLO0355", f"rng: {op.distribution} has no values of type {type_}")
    if type_.is_complex:
        draw = _uniform if is_uniform else _normal
        real, imag = draw(generator, a.real, b.real), draw(generator, a.imag, b.imag)
        return (real + 1j * imag).astype(type_.dtype)
    if type_.is_float:
        return (_uniform if is_uniform else _normal)(generator, a, b)
    if type_.kind is Kind.PRED:
        return cast(Array, np.where(generator.random(shape.dimensions) < 0.5, a, b))
    return _integers(generator, a, b)


def _uniform(generator: Any, a: Any, b: Any) -> Array:
    low, high = a.astype(np.float64), b.astype(np.float64)
    values = (low + (high - low) * generator.random(a.shape)).astype(a.dtype)
    # Rounding to a narrow type may reach the upper end, which is not in the interval.
    return cast(Array, np.where(values < b, values, np.nextafter(b, a)))


def _normal(generator: Any, mean: Any, deviation: Any) -> Array:
    values: Any = generator.standard_normal(mean.shape)
    result = mean.astype(np.float64) + deviation.astype(np.float64) * values
    return cast(Array, result.astype(mean.dtype))


def _integers(generator: Any, a: Any, b: Any) -> Array:
    wide = np.uint64 if a.dtype == np.uint64 else np.int64
    low, high = a.astype(wide), b.astype(wide)
    # An empty interval has no values to choose from; its lower end stands in.
    high = cast(Array, np.where(high > low, high - wide(1), low))
    values: Any = generator.integers(low, high, dtype=wide, endpoint=True)
    return cast(Array, values.astype(a.dtype))


@evaluates("rng-get-and-update-state")
def rng_get_and_update_state(
    op: RngGetAndUpdateStateOp, inputs: Sequence[Any], frame: Frame
) -> Value:
    """The device's 128-bit random state, low half first; it then moves on by `delta`.

    The state belongs to the device, as in XLA:GPU; XLA:CPU keeps one for each instruction.
    """
    device = frame.machine.device(frame.replica, frame.partition)
    state = frame.machine.advance_rng_state(device, op.delta)
    return np.array([state % (1 << 64), state >> 64], dtype=np.uint64)
