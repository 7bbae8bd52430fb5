"""XLA:TPU's linear algebra on numbers that it has no registers for, each as two f32.

A complex matrix is given as its real and its imaginary part, an f64 one as the nearest f32 and what that
leaves; results that are floating come back so, one part after the other.

Source: modules that libtpu 0.0.52 makes of Cholesky, QR, LU and triangular solves of c64, f64, c128.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.registry import Array, Frame, Meaning, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


def computes_in_parts(*targets: str) -> Callable[[Meaning], Meaning]:
    """Decorator: the meaning of one matrix is also that of its two or four f32 parts.

    Two parts are a c64, or an f64 where the target has "Real" in its name; four are a c128.
    """

    def register(meaning: Meaning) -> Meaning:
        def run(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
            if len(inputs) == 1:
                return meaning(op, inputs, frame)
            if len(inputs) not in (2, 4):
                raise unfit(op, f"it has {len(inputs)} operands, not 1, 2 or 4")
            whole = _joined(inputs, "Real" in op.custom_call_target)
            results: Any = meaning(op, [whole], frame)
            each = cast("tuple[Array, ...]", results if isinstance(results, tuple) else (results,))
            return tuple(part for result in each for part in _parts(result))

        computes(*targets)(run)
        return meaning

    return register


def _joined(parts: Sequence[Array], is_real: bool) -> Array:
    """The numbers of which these are the parts."""
    if is_real:
        return parts[0].astype(np.float64) + parts[1].astype(np.float64)
    half = len(parts) // 2
    real, imag = (_joined(p, True) if half == 2 else p[0] for p in (parts[:half], parts[half:]))
    whole: Any = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    whole.real, whole.imag = real, imag
    return cast(Array, whole)


def _parts(value: Array) -> Iterator[Array]:
    """The parts of floating numbers; integers as they are."""
    if value.dtype.kind == "c":
        of_complex: Any = value
        yield from _parts(of_complex.real)
        yield from _parts(of_complex.imag)
    elif value.dtype == np.float64:
        near = value.astype(np.float32)
        yield near
        yield cast(Array, np.where(np.isfinite(value), value - near, 0)).astype(np.float32)
    else:
        yield value.copy()
