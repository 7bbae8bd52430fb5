"""Modules that JAX writes: read, printed back, and run, by the interpreter and as PTX, as JAX's own PTX is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DATA, SHARED, needs_shared
from unit.mosaic_gpu.gpu_kernels import CASES

import mlirhlo
from mlirhlo.cli.hlo_opt import main as hlo_opt
from mlirhlo.cli.mosaic_opt import main as mosaic_opt
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import print_kernel
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.ptx import ptxas
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.gpu import GpuKernel, imported
from mlirhlo.simulator import Machine
from mlirhlo.simulator.tensor_map import TensorMap

FOLDER = DATA / "mosaic" / "gpu" / "jax"
SAMPLES = SHARED / "reference" / "mosaic_samples" / "gpu"


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def product(a: Any, b: Any) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(product(q, k.T)) @ v.astype(np.float32)


MEANINGS: dict[str, Callable[..., Any]] = {
    "add_one": lambda x: x + 1,
    "attn": attention,
    "cluster_copy": lambda x: np.stack([2 * x, 2 * x]),
    "matmul": product,
    "persistent_matmul": product,
    "softmax": softmax,
    "softmax.layouts": softmax,
    "tensor_matmul": product,
    "total": lambda x: np.full(128, x.sum(dtype=np.float64)),
    "twowg": lambda x: x + 1,
}


FAULTS = {"persistent_matmul": {"HLO0775"}}
"""What is wrong with JAX's own kernels: the last copy of a block may still read its shared memory when it ends."""


def arrays_of(kernel: GpuKernel) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal(one.shape).astype(one.dtype) for one in kernel.inputs]


def near(found: Any, expected: Any) -> None:
    wide = np.asarray(expected, np.float64)
    bound = 2e-3 if found.dtype == np.float16 else 1e-6
    assert np.abs(found - wide).max() <= bound * max(1, np.abs(wide).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.mlir")))
def test_modules_of_warp_groups_compute_what_they_say(name: str) -> None:
    text = (FOLDER / f"{name}.mlir").read_text()
    module = read_kernel(text.encode(), name)
    assert print_kernel(module, keep_names=False).rstrip() == text.rstrip()
    kernel = imported(module)
    arrays = arrays_of(kernel)
    expected = MEANINGS[name](*arrays)
    near(kernel.interpret(*arrays)[0], expected)
    run = kernel.simulate(*arrays)
    near(run.results[0], expected)
    assert not run.findings


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.bc")))
def test_bodies_of_calls_compute_what_they_say(name: str) -> None:
    """Code of single threads, which JAX lowers its kernels to."""
    kernel = imported(read_kernel((FOLDER / name).read_bytes(), name))
    assert kernel.is_of_threads
    arrays = arrays_of(kernel)
    gpu, meaning = kernel.default_gpu, name.partition(".")[0]
    run = kernel.simulate(*arrays, gpu=gpu)
    near(run.results[0], MEANINGS[meaning](*arrays))
    assert {finding.code for finding in run.findings} == FAULTS.get(meaning, set())
    assert not any(one.spill_stores for one in ptxas(kernel.ptx(gpu), device(gpu)) or ())


def test_calls_in_programs_run() -> None:
    x = np.arange(512, dtype=np.float32).reshape(4, 128)
    result = mlirhlo.run(DATA / "mosaic" / "gpu" / "two_warp_groups.hlo", x)
    assert np.array_equal(result, x)


def test_code_of_threads_is_not_for_the_interpreter() -> None:
    kernel = imported(read_kernel((FOLDER / "add_one.wg.bc").read_bytes()))
    with pytest.raises(HloError, match="simulate") as caught:
        kernel.interpret(*arrays_of(kernel))
    assert caught.value.diagnostics[0].code == "HLO0757"


def run_theirs(name: str, blocks: int, parameters: Callable[..., Any], *arrays: Any) -> Any:
    """The last array after JAX's own PTX of a sample has run on the simulator."""
    machine = Machine("sm_90a")
    code = machine.load((SAMPLES / f"{name}.ptx").read_text(), f"{name}.ptx")
    addresses = [machine.allocate(array.nbytes, "array") for array in arrays]
    for address, array in zip(addresses, arrays, strict=True):
        machine.write(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    (entry,) = code.entries
    given = parameters(*addresses)
    report = machine.launch(code, entry, (blocks, 1, 1), (128, 1, 1), given, 65544, (1, 1, 1))
    assert not report.findings
    last = arrays[-1]
    return machine.read(addresses[-1], last.nbytes).view(last.dtype).reshape(last.shape)


@needs_shared
def test_ptx_of_jax_adds_one() -> None:
    x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    theirs = run_theirs(
        "add_one",
        4,
        lambda of, to: [to, TensorMap(of, 4, (1024,), (), (256,), 0).encode()],
        x,
        np.zeros_like(x),
    )
    ours = imported(read_kernel((FOLDER / "add_one.mlir").read_bytes())).simulate(x)
    assert np.array_equal(theirs, ours.results[0])


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_layout", "before_lowering"])
def test_the_sample_s_lowered_ptx_computes_what_theirs_does(stage: str) -> None:
    module = read_kernel((SAMPLES / f"wgmma_matmul.{stage}.mlir").read_bytes(), stage)
    kernel = imported(module)
    kernel.launch = replace(kernel.launch, grid=(1, 1, 1), sizes=(1, 1, 1))
    a, b = arrays_of(kernel)

    def described(address: int, box: tuple[int, ...]) -> bytes:
        sizes, strides = (64, 8, 8, 64), (1024, 128, 8192)
        return TensorMap(address, 2, sizes, strides, box, 128).encode()

    theirs = run_theirs(
        "wgmma_matmul",
        1,
        lambda *at: [
            described(at[0], (64, 8, 1, 16))
            + described(at[1], (64, 8, 2, 8))
            + described(at[2], (64, 8, 2, 16))
        ],
        a,
        b,
        np.zeros_like(a),
    )
    run = kernel.simulate(a, b)
    assert not run.findings
    tile = np.s_[:128, :128]
    assert np.array_equal(theirs[tile], run.results[0][tile])
    near(kernel.interpret(a, b)[0][tile], theirs[tile])


def test_modules_of_the_language_are_read_back() -> None:
    case = CASES["cluster_sums"]()
    kernel = case.call.lower(*case.arrays)
    again = imported(read_kernel(kernel.as_text().encode(), "k.mlir"))
    assert again.ptx() == kernel.ptx()
    assert np.array_equal(again.interpret(*case.arrays)[0], kernel.interpret(*case.arrays)[0])


def test_stages_are_dumped_by_the_tools(tmp_path: Path, capsys: Any) -> None:
    stages = ["0.mosaic_gpu.mlir", "1.ll", "2.ptx"]
    flag = f"--xla_mosaic_dump_to={tmp_path}"
    assert not mosaic_opt([flag, str(FOLDER / "add_one.mlir"), "-o", str(tmp_path / "o.mlir")])
    program = DATA / "mosaic" / "gpu" / "two_warp_groups.hlo"
    assert not hlo_opt([flag, str(program), "--passes=dce", "-o", str(tmp_path / "o.hlo")])
    names = sorted(path.name for path in tmp_path.iterdir() if path.stem != "o")
    assert names == [f"{kernel}.{stage}" for kernel in ("add_one", "body") for stage in stages]
    assert mosaic_opt(["--stop-after=all", str(FOLDER / "add_one.mlir")]) == 2
    assert "no stages of the TPU" in capsys.readouterr().err


def test_modules_that_launch_nothing_are_refused() -> None:
    with pytest.raises(HloError) as caught:
        imported(read_kernel(b"module @k {\n}\n", "k.mlir"))
    assert caught.value.diagnostics[0].code == "HLO0700"
