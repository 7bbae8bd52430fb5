"""A kernel in the language of GPUs as tests have it: with operands and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import gpu as plgpu

F32, F16 = np.float32, np.float16
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
Types = pl.ShapeDtypeStruct


@dataclass
class Case:
    """A kernel, its operands, and its results by numpy."""

    call: Any
    arrays: Sequence[Any]
    expected: Callable[..., Any]
    tolerance: float = 1e-5
    gpu: str = "h100"


def random(*shape: int, dtype: Any = F32) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)
