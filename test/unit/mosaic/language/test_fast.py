"""Kernels through the CPU compiler, against the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from unit.mosaic.language.test_authored import ALL

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import kernels

ONLY_SIMULATED = {"packed_rows", "random_bits", "taken"}


def arrays(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize("name", sorted(ALL)[::4] + sorted(ONLY_SIMULATED))
def test_as_numpy_says(name: str) -> None:
    case = ALL[name]
    fast = replace(case.call, platform="cpu")
    if name in ONLY_SIMULATED:
        with pytest.raises(HloError) as caught:
            fast(*case.inputs)
        assert caught.value.code == "HLO0738"
        return
    for a, b in zip(arrays(fast(*case.inputs)), arrays(case.want(*case.inputs)), strict=True):
        assert a.shape == np.shape(b)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            limit = max(case.tolerance, 1e-4)
            want = np.asarray(b, np.float64)
            np.testing.assert_allclose(a.astype(np.float64), want, rtol=limit, atol=limit)


@pytest.mark.slow
def test_every_kernel_has_a_program() -> None:
    for name in sorted(set(ALL) - ONLY_SIMULATED):
        text = ALL[name].call.lower(*ALL[name].inputs).to_program()
        assert "stablehlo" in text


def test_meshes_are_simulated() -> None:
    with pytest.raises(HloError) as caught:
        kernels.ring_all_gather(np.zeros((4, 8, 128), np.float32), mesh={"x": 4}, platform="cpu")
    assert caught.value.code == "HLO0738"


def test_a_block_of_an_operand_is_not_stored_to() -> None:
    def body(x_ref, o_ref):
        x_ref[...] = x_ref[...] * 2.0
        o_ref[...] = x_ref[...]

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = np.ones((16, 128), np.float32)
    call = pl.kernel_call(
        body, pl.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,), in_specs=[spec], out_specs=spec
    )
    assert np.array_equal(call(x), x * 2)
    with pytest.raises(HloError) as caught:
        replace(call, platform="cpu")(x)
    assert caught.value.code == "HLO0738"
