"""What a kernel of the tests is: its operands, and what numpy says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from mlirhlo import mosaic as pl

BF16 = ml_dtypes.bfloat16
F8 = ml_dtypes.float8_e4m3fn
F32, I32, I8, I16 = np.float32, np.int32, np.int8, np.int16


@dataclass
class Case:
    """A kernel that runs and compiles."""

    call: Any
    inputs: list[Any]
    want: Callable[..., Any]
    tolerance: float = 1e-5
    not_on: tuple[str, ...] = field(default=())
    """Generations whose compiler refuses it: what the chip has not."""


CASES: dict[str, Case] = {}


def numbers(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return generator.integers(-20 if np.dtype(dtype).kind == "i" else 0, 20, shape, dtype)
    return generator.normal(size=shape).astype(dtype)


def like(shape: Any, dtype: Any = F32) -> Any:
    return pl.ShapeDtypeStruct(shape, dtype)


def case(
    inputs: list[Any],
    out: Any,
    want: Callable[..., Any],
    *,
    tolerance: float = 1e-5,
    not_on: tuple[str, ...] = (),
    **call: Any,
) -> Callable[..., Any]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        made = pl.kernel_call(body, out, **call)
        CASES[body.__name__] = Case(made, inputs, want, tolerance, not_on)
        return body

    return register


def pointwise(name: str, body: Any, want: Any, *inputs: Any, out: Any = None, **more: Any) -> None:
    """A kernel without a grid whose result is a function of whole operands."""

    def kernel(*refs: Any) -> None:
        *given, o_ref = refs
        o_ref[...] = body(*(ref[...] for ref in given)).astype(o_ref.dtype)

    kernel.__name__ = name
    case(
        list(inputs), like(inputs[0].shape, inputs[0].dtype) if out is None else out, want, **more
    )(kernel)
