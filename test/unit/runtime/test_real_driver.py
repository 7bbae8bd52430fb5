"""The driver on pycuda, against a pycuda that the simulator stands behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_pycuda import FakeCuda

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.runtime.cuda import cubins, devices, graphs

SCALE = """HloModule m
ENTRY e {
  x = f32[64,32] parameter(0)
  y = f32[64,32] parameter(1)
  p = f32[64,32] multiply(x, y)
  t = f32[32,64] transpose(p), dimensions={1,0}
  ROOT d = f32[64,64] dot(p, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
LOOP = """HloModule m
more { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(ROUNDS)
  ROOT c = pred[] compare(i, n), direction=LT }
round { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)
  j = s32[] add(i, one)  v = f32[8] get-tuple-element(s), index=1  y = f32[8] add(v, v)
  ROOT t = (s32[], f32[8]) tuple(j, y) }
ENTRY e { x = f32[8] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(t), condition=more, body=round  ROOT r = f32[8] get-tuple-element(w), index=1 }
"""


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeCuda]]:
    """Puts a fake in the place of pycuda and NVIDIA's driver."""

    def put(**settings: Any) -> FakeCuda:
        fake = FakeCuda(**settings)
        monkeypatch.setitem(sys.modules, "pycuda.driver", fake.driver)
        monkeypatch.setitem(sys.modules, "pycuda.tools", fake.tools)
        monkeypatch.setattr(graphs, "library", lambda: fake)
        monkeypatch.setattr(cubins, "nvidia_program", lambda name: None)
        devices._driver.cache_clear()  # pyright: ignore[reportPrivateUsage]
        return fake

    yield put
    devices._driver.cache_clear()  # pyright: ignore[reportPrivateUsage]


def compiled(text: str, gpu: str = "cuda") -> Any:
    return mlirhlo.compile(mlirhlo.parse(text), "cuda", gpu=gpu)


def test_steady_calls_replay_a_graph(cuda: Any) -> None:
    fake, rng = cuda(), np.random.default_rng(0)
    run = compiled(SCALE)
    assert run.program.device.description.endswith("(fake)")
    allocated = None
    for number in range(4):
        x, y = rng.normal(size=(2, 64, 32)).astype(np.float32)
        fake.calls.clear()
        np.testing.assert_allclose(run(x, y), (x * y) @ (x * y).T, rtol=1e-4, atol=1e-4)
        launches = sum(call.startswith("launch") for call in fake.calls)
        if number == 0:
            # Parameters, the result, and one arena.
            allocated = fake.calls.count("allocate")
            assert launches
            assert allocated <= 4
        assert number == 0 or "allocate" not in fake.calls
        assert (number < 2) == bool(launches)
        assert fake.calls.count("cuGraphLaunch") == (number >= 1)
    assert fake.depth == 0


def test_rounds_are_a_graph(cuda: Any) -> None:
    fake = cuda()
    run = compiled(LOOP.replace("ROUNDS", "9"))
    x = np.arange(8, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(run(x), x * 512)
    assert fake.calls.count("cuGraphLaunch") == 16


def test_predicates_are_read_by_the_host(cuda: Any) -> None:
    fake = cuda()
    text = LOOP.replace(
        "n = s32[] constant(ROUNDS)",
        "y = f32[8] get-tuple-element(s), index=1  f = f32[1] slice(y), "
        "slice={[1:2]}  g = f32[] reshape(f)  n = s32[] constant(100)",
    )
    text = text.replace(
        "ROOT c = pred[] compare(i, n), direction=LT",
        "k = f32[] constant(50)  ROOT c = pred[] compare(g, k), direction=LT",
    )
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(compiled(text)(x), x * 64)
    assert "cuGraphLaunch" not in fake.calls
    assert fake.calls.count("memcpy_dtoh_async") > 6


def test_launches_are_timed_by_events(cuda: Any) -> None:
    cuda()
    run = compiled(SCALE)
    run.driver.profile()
    x = np.ones((64, 32), np.float32)
    run(x, x)
    times = run.driver.profile()
    assert [launch.entry for launch, _ in times]
    assert all(time > 0 for _, time in times)


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises((HloError, MemoryError)) as problem:
        call()
    return str(problem.value)


def test_no_gpu(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda(count=0)
    assert "HLO0820" in code_of(lambda: compiled(SCALE))
    cuda()
    assert "GPU 3 is asked for, the machine has 1 GPU" in code_of(lambda: compiled(SCALE, "cuda:3"))
    assert "HLO0800" in code_of(lambda: compiled(SCALE, "cuda:x"))
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    devices._driver.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert "pycuda is not installed" in code_of(lambda: compiled(SCALE))


def test_code_of_another_gpu(cuda: Any) -> None:
    fake = cuda(gpu="a100")
    driver = devices.real_driver("cuda")
    assert driver is not None
    ptx = ".version 8.0\n.target {}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    driver.load(ptx.format("sm_80"), "k.ptx")
    for target in ("sm_90a", "sm_86", "sm_100a"):
        text = code_of(lambda target=target: driver.load(ptx.format(target), "k.ptx"))
        assert "HLO0821" in text
        assert f"{target}, the GPU is sm_80" in text
    assert "HLO0823" in code_of(
        lambda: driver.load(ptx.format("sm_80").replace("ret;", "ret"), "k.ptx")
    )
    assert fake.depth == 0


def test_memory_that_is_full(cuda: Any) -> None:
    cuda(memory=20_000)
    run = compiled(SCALE)
    x = np.ones((64, 32), np.float32)
    assert "HLO0507" in code_of(lambda: run(x, x))


def test_launches_that_fail_name_the_instruction(
    cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = cuda()
    run = compiled(SCALE)
    x = np.ones((64, 32), np.float32)

    def fails(*arguments: Any) -> None:
        raise fake.driver.LaunchError("cuLaunchKernel failed: too many resources requested")

    monkeypatch.setattr(fake.machine, "launch", fails)
    text = code_of(lambda: run(x, x))
    assert "HLO0822" in text
    assert "too many resources" in text
    assert "computes %" in text


class Foreign:
    """An array of another library, in the same GPU's memory."""

    def __init__(self, fake: FakeCuda, data: Any, strides: Any = None) -> None:
        self.data, self.fake = data, fake
        self.address = fake.machine.allocate(data.nbytes, "theirs")
        fake.machine.write(self.address, data.reshape(-1).view(np.uint8))
        self.strides = strides

    @property
    def __cuda_array_interface__(self) -> Any:
        kind = self.data.dtype.str
        data = (self.address, False)
        return {
            "shape": self.data.shape,
            "typestr": kind,
            "data": data,
            "strides": self.strides,
            "version": 3,
        }


class OnlyDlpack:
    """The same by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **others: Any) -> Any:
        return self.array.__dlpack__(**others)


def test_arrays_stay_on_the_gpu(cuda: Any) -> None:
    fake, rng = cuda(), np.random.default_rng(0)
    run = compiled(SCALE)
    x, y = rng.normal(size=(2, 64, 32)).astype(np.float32)
    wanted = (x * y) @ (x * y).T
    theirs = Foreign(fake, x)
    fake.calls.clear()
    result = run.on_device(theirs, y)
    assert fake.calls.count("memcpy_htod_async") == 1
    assert "memcpy_dtoh_async" not in fake.calls
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-4, atol=1e-4)
    assert result.__cuda_array_interface__["data"] == (result.address, False)
    # What it gives goes in again, by either interface.
    double = compiled(
        "HloModule m ENTRY e { x = f32[64,64] parameter(0) ROOT r = f32[64,64] add(x, x) }"
    )
    for given in (result, OnlyDlpack(result), Foreign(fake, np.asarray(result))):
        fake.calls.clear()
        np.testing.assert_allclose(
            np.asarray(double.on_device(given)), 2 * wanted, rtol=1e-4, atol=1e-4
        )
        assert "memcpy_htod_async" not in fake.calls


def test_memory_is_freed_with_the_last_that_uses_it(cuda: Any) -> None:
    fake = cuda()
    double = compiled("HloModule m ENTRY e { x = f32[8] parameter(0) ROOT r = f32[8] add(x, x) }")
    double.on_device(np.ones(8, np.float32))
    used = fake.used
    result = double.on_device(np.ones(8, np.float32))
    capsule = result.__dlpack__()
    taken = OnlyDlpack(result)
    del result
    assert fake.used > used
    del capsule, taken
    gc.collect()
    assert fake.used == used


def test_donated_memory_is_written_in_place(cuda: Any) -> None:
    fake = cuda()
    text = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[8] parameter(0)  ROOT r = f32[8] add(x, x) }"""
    run, x = compiled(text), np.arange(8, dtype=np.float32)
    theirs = Foreign(fake, x)
    kept = run.on_device(theirs)
    assert kept.address != theirs.address
    np.testing.assert_array_equal(fake.machine.read(theirs.address, 32).view(np.float32), x)
    given = run.on_device(theirs, donate=True)
    assert given.address == theirs.address
    np.testing.assert_array_equal(np.asarray(given), 2 * x)


def test_arrays_that_do_not_fit(cuda: Any) -> None:
    fake = cuda()
    run = compiled("HloModule m ENTRY e { x = f32[8,4] parameter(0) ROOT r = f32[8,4] add(x, x) }")
    data = np.ones((8, 4), np.float32)
    for given in (
        Foreign(fake, data, (4, 32)),
        Foreign(fake, data.T.copy()),
        Foreign(fake, data.astype("f8")),
        data.T,
    ):
        assert "HLO0508" in code_of(lambda given=given: run.on_device(given))
    assert "HLO0508" in code_of(run.on_device)


def test_simulated_memory_is_nobody_elses() -> None:
    run = compiled(
        "HloModule m ENTRY e { x = f32[8] parameter(0) ROOT r = f32[8] add(x, x) }", "h100"
    )
    result = run.on_device(np.ones(8, np.float32))
    np.testing.assert_array_equal(np.asarray(run.on_device(result)), np.full(8, 4, np.float32))
    assert not hasattr(result, "__cuda_array_interface__")
    with pytest.raises(BufferError):
        result.__dlpack__()


def test_cubins_are_kept_by_content(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ptxas"
    program.write_text('#!/bin/sh\necho run >> "$0.log"\ncp "$2" "$4"\n')
    program.chmod(0o755)
    monkeypatch.setattr(cubins, "nvidia_program", lambda name: str(program))
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "cache"))
    gpu = devices.device("h100")
    for text in ("one", "one", "two", "one"):
        assert cubins.code_for(text, gpu) == text.encode()
    cubins.code_for("one", devices.device("a100"))
    assert (tmp_path / "ptxas.log").read_text().count("run") == 3
