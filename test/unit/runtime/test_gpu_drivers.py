"""The same programs and kernels over every driver: the simulator, pycuda's names over it, and pycuda on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_pycuda import FakeCuda
from unit.mosaic_gpu.gpu_kernels import CASES

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.runtime.cuda import cubins, devices, graphs

KEPT = devices._driver  # pyright: ignore[reportPrivateUsage]
SUM = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
X = "x = f32[64,128] parameter(0)"
PROGRAMS = {
    "elementwise": ("ROOT r = f32[64,128] tanh(x)", np.tanh, 1e-5),
    "reduce": (
        "z = f32[] constant(0)  ROOT r = f32[64] reduce(x, z), dimensions={1}, to_apply=add",
        lambda x: x.sum(1),
        1e-4,
    ),
    "transpose": ("ROOT r = f32[128,64] transpose(x), dimensions={1,0}", np.transpose, 0),
}
KERNELS = ("matmul", "flash_attention", "cluster_sums")


def has_gpu() -> bool:
    try:
        return devices.real_driver("cuda") is not None
    except HloError:
        return False


@pytest.fixture(params=["simulator", "pycuda's names", "pycuda"])
def gpu(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a GPU on the driver."""
    if request.param == "pycuda's names":
        fake = FakeCuda()
        monkeypatch.setitem(sys.modules, "pycuda.driver", fake.driver)
        monkeypatch.setitem(sys.modules, "pycuda.tools", fake.tools)
        monkeypatch.setattr(graphs, "library", lambda: fake)
        monkeypatch.setattr(cubins, "nvidia_program", lambda name: None)
        KEPT.cache_clear()
    elif request.param == "pycuda" and not has_gpu():
        pytest.skip("pycuda finds no GPU here")
    yield "h100" if request.param == "simulator" else "cuda"
    if request.param == "pycuda's names":
        KEPT.cache_clear()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(gpu: str, name: str) -> None:
    text, expected, tolerance = PROGRAMS[name]
    run = mlirhlo.compile(
        mlirhlo.parse(f"HloModule m\n{SUM}\nENTRY e {{ {X} {text} }}"), "cuda", gpu=gpu
    )
    rng = np.random.default_rng(0)
    # The third call is a steady one; each has other values.
    for _ in range(3):
        x = rng.normal(size=(64, 128)).astype(np.float32)
        np.testing.assert_allclose(run(x), expected(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(gpu: str, name: str) -> None:
    case = CASES[name]()
    (found,) = case.call.lower(*case.arrays).run(*case.arrays, gpu=gpu)
    expected = case.expected(*case.arrays)
    np.testing.assert_allclose(
        np.asarray(found, np.float32), expected, rtol=case.tolerance, atol=case.tolerance
    )


def test_what_another_library_has_is_used_where_it_is(gpu: str) -> None:
    text = "HloModule m ENTRY e { x = f32[256] parameter(0) ROOT r = f32[256] add(x, x) }"
    run: Any = mlirhlo.compile(mlirhlo.parse(text), "cuda", gpu=gpu)
    x = np.arange(256, dtype=np.float32)
    once = run.on_device(x)
    twice = run.on_device(once)
    np.testing.assert_array_equal(np.asarray(twice), 4 * x)
    if gpu == "cuda":
        assert twice.__cuda_array_interface__["shape"] == (256,)
        assert twice.__dlpack_device__() == (2, 0)
    with pytest.raises(HloError) as caught:
        run.on_device(x[:8])
    assert caught.value.diagnostics[0].code == "HLO0508"


BOUND = {
    "one result": ("ROOT r = f32[64,128] tanh(x)", lambda x: [np.tanh(x)]),
    "a tuple": (
        """n = f32[64,128] negate(x)  t = f32[128,64] transpose(x), dimensions={1,0}
        ROOT r = (f32[64,128], f32[128,64]) tuple(n, t)""",
        lambda x: [-x, x.T],
    ),
}


@pytest.mark.parametrize("name", BOUND)
def test_programs_bound_to_arrays_read_them_at_each_call(gpu: str, name: str) -> None:
    text, expected = BOUND[name]
    run: Any = mlirhlo.compile(
        mlirhlo.parse(f"HloModule m\n{SUM}\nENTRY e {{ {X} {text} }}"), "cuda", gpu=gpu
    )
    x = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
    held = run.on_device(x)
    argument = held if isinstance(held, tuple) else (held,)
    bound = run.bind(argument[0])
    # From the third call on a graph is replayed.
    for _ in range(4):
        results = bound()
        bound.synchronize()
        assert results is bound.result
        results = results if isinstance(results, tuple) else (results,)
        given = np.asarray(argument[0])
        for found, right in zip(results, expected(given), strict=True):
            np.testing.assert_allclose(np.asarray(found), right, rtol=1e-5, atol=1e-5)
    once = run.bind(x)
    np.testing.assert_allclose(np.asarray(_first(once())), expected(x)[0], rtol=1e-5, atol=1e-5)


def _first(results: Any) -> Any:
    return results[0] if isinstance(results, tuple) else results


def test_a_bound_result_shares_the_memory_that_it_is_let(gpu: str) -> None:
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n"
        "ENTRY e { x = f32[256] parameter(0) one = f32[] constant(1) "
        "ones = f32[256] broadcast(one), dimensions={} ROOT r = f32[256] add(x, ones) }"
    )
    run: Any = mlirhlo.compile(mlirhlo.parse(text), "cuda", gpu=gpu)
    bound = run.bind(np.zeros(256, np.float32))
    for count in range(1, 5):
        bound()
        bound.synchronize()
        np.testing.assert_array_equal(np.asarray(bound.result), np.full(256, count))


def test_arrays_that_do_not_fit_are_not_bound(gpu: str) -> None:
    text = "HloModule m ENTRY e { x = f32[256] parameter(0) ROOT r = f32[256] add(x, x) }"
    run: Any = mlirhlo.compile(mlirhlo.parse(text), "cuda", gpu=gpu)
    with pytest.raises(HloError) as caught:
        run.bind(np.zeros(8, np.float32))
    assert caught.value.diagnostics[0].code == "HLO0508"
