"""The kernel library on GPUs: the kernels that TPUs run, as PTX on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import kernels
from mlirhlo.mosaic import tpu as pltpu

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def integers(*shape: int) -> Any:
    return RANDOM.integers(-9, 9, shape).astype(np.int8)


CASES: dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "add": lambda: ((floats(32, 128), floats(32, 128)), {"block": (8, 128)}),
    "softmax": lambda: ((floats(16, 128),), {"rows": 8}),
    "layernorm": lambda: ((floats(16, 128), floats(1, 128), floats(1, 128)), {}),
    "rmsnorm": lambda: ((floats(16, 128), floats(1, 128)), {}),
    "matmul": lambda: ((floats(128, 256), floats(256, 128)), {"block": (64, 128, 128)}),
    "flash_attention": lambda: ((floats(1, 1, 128, 128),) * 3, {"causal": True, "block_k": 64}),
    "quantised_matmul": lambda: (
        (floats(32, 128).astype(ml_dtypes.bfloat16), integers(128, 128), floats(1, 128)),
        {},
    ),
    "ragged_gather": lambda: (
        (np.array([[2, 0], [1, 3]]), np.array([2, 1]), floats(4, 8, 128)),
        {},
    ),
    "double_buffered_copy": lambda: ((floats(32, 128),), {"rows": 8}),
    "top_k": lambda: ((floats(16, 128),), {"k": 4, "rows": 8}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_gives_the_interpreters_results(name: str) -> None:
    arrays, options = CASES[name]()
    arrays = tuple(a.astype(np.int32) if a.dtype == np.int64 else a for a in arrays)
    call = kernels.LIBRARY[name]
    expected = call(*arrays, **options)
    found = call(*arrays, platform="cuda", **options)
    is_many = isinstance(expected, tuple | list)
    for one, other in zip(
        expected if is_many else [expected], found if is_many else [found], strict=True
    ):
        np.testing.assert_allclose(
            np.asarray(other, np.float32), np.asarray(one, np.float32), rtol=2e-5, atol=2e-5
        )


def test_what_only_a_tpu_has_is_refused() -> None:
    def sends(x_ref: Any, o_ref: Any, sent: Any, arrived: Any) -> None:
        pltpu.async_remote_copy(x_ref, o_ref, sent, arrived, device_id=0).wait()

    call = pl.kernel_call(
        sends,
        pl.ShapeDtypeStruct((8, 128), np.float32),
        scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        mesh={"x": 1},
        platform="cuda",
    )
    with pytest.raises(HloError) as caught:
        call(np.zeros((1, 8, 128), np.float32))
    assert caught.value.diagnostics[0].code == "HLO0738"
