"""The language of GPUs: its kernels by the interpreter and as PTX, faults that the simulator finds, names, refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from unit.mosaic_gpu.faults import FAULTS, Fault
from unit.mosaic_gpu.gpu_kernels import CASES, F32, Case

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic import lax
from mlirhlo.mosaic.verifier import verify_kernel

NAMES = [
    "ACC",
    "Barrier",
    "BlockSpec",
    "ClusterBarrier",
    "CompilerParams",
    "CopyPartition",
    "GMEM",
    "Layout",
    "LoweringSemantics",
    "MemorySpace",
    "Mesh",
    "NDLoopInfo",
    "OOBFillMode",
    "PeerMemRef",
    "PipelinePipeline",
    "REGS",
    "RefType",
    "RefUnion",
    "Replicated",
    "SMEM",
    "SemaphoreSignal",
    "SemaphoreType",
    "ShapeDtypeStruct",
    "SwizzleTransform",
    "TMEM",
    "TMEMLayout",
    "Tiling",
    "TilingTransform",
    "TraceScope",
    "Transform",
    "TryClusterCancelResult",
    "WGMMAAccumulatorRef",
    "WarpMesh",
    "as_torch_kernel",
    "async_copy_scales_to_tmem",
    "async_copy_smem_to_tmem",
    "async_copy_sparse_metadata_to_tmem",
    "async_load_tmem",
    "async_prefetch",
    "async_store_smem",
    "async_store_tmem",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier_arrive",
    "barrier_test",
    "barrier_wait",
    "broadcasted_iota",
    "cluster_ref",
    "commit_smem",
    "commit_smem_to_gmem_group",
    "commit_tmem",
    "copy_gmem_to_smem",
    "copy_smem_to_gmem",
    "dynamic_scheduling_loop",
    "emit_pipeline",
    "emit_pipeline_warp_specialized",
    "find_swizzle",
    "format_tcgen05_sparse_metadata",
    "griddepcontrol_launch_dependents",
    "griddepcontrol_wait",
    "inline_mgpu",
    "kernel",
    "layout_cast",
    "load",
    "multicast_ref",
    "multimem_load_reduce",
    "multimem_store",
    "nd_loop",
    "planar_snake",
    "print_layout",
    "query_cluster_cancel",
    "remote_ref",
    "semaphore_signal",
    "semaphore_signal_multicast",
    "semaphore_signal_parallel",
    "semaphore_wait",
    "set_max_registers",
    "tcgen05_commit_arrive",
    "tcgen05_mma",
    "transform_ref",
    "transpose_ref",
    "try_cluster_cancel",
    "wait_load_tmem",
    "wait_smem_to_gmem",
    "warp_map",
    "wgmma",
    "wgmma_accumulator_load",
    "wgmma_wait",
]
"""Public names of `jax.experimental.pallas.mosaic_gpu` of jax 0.10.2."""


@cache
def case(name: str) -> tuple[Case, Any]:
    made = CASES[name]()
    return made, made.call.lower(*made.arrays)


def close(results: Sequence[Any], one: Case) -> None:
    expected = one.expected(*one.arrays)
    for found, right in zip(
        results, expected if isinstance(expected, list) else [expected], strict=True
    ):
        np.testing.assert_allclose(
            np.asarray(found, np.float64),
            right,
            rtol=max(one.tolerance, 1e-7),
            atol=one.tolerance,
        )


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_gives_what_numpy_does(name: str) -> None:
    one, kernel = case(name)
    close(kernel.interpret(*one.arrays), one)


@pytest.mark.parametrize("name", CASES)
def test_ptx_gives_it_too_without_a_fault(name: str) -> None:
    one, kernel = case(name)
    run = kernel.simulate(*one.arrays, gpu=one.gpu)
    assert not run.findings
    close(run.results, one)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kernel}: {fault.what}")
def test_planted_faults_are_found(fault: Fault) -> None:
    one, kernel = case(fault.kernel)
    sound = kernel.ptx(one.gpu)
    ptx = fault.plant(sound)
    assert ptx != sound
    try:
        run = kernel.simulate(*one.arrays, ptx=ptx, gpu=one.gpu)
        found = [finding.code for finding in run.findings]
    except HloError as problem:
        found = [problem.diagnostics[0].code]
    assert found
    # What is wrong is what the kernel does, not its text.
    assert re.fullmatch(r"HLO07(7[3-9]|8\d|96)", found[0]), found


@pytest.mark.parametrize("name", CASES)
def test_modules_verify_and_print_back(name: str) -> None:
    _, kernel = case(name)
    verify_kernel(kernel.module)
    text = kernel.as_text()
    assert print_kernel(parse_kernel(text)) == text


def test_every_name_of_pallas_is_here() -> None:
    assert len(NAMES) == 92
    assert not [name for name in NAMES if not hasattr(plgpu, name)]


def refused(body: Any, *scratch: Any, shape: tuple[int, ...] = (64, 64), **options: Any) -> str:
    """The code of what is wrong with a kernel of one operand, lowered to PTX."""
    call = plgpu.kernel(body, pl.ShapeDtypeStruct(shape, F32), scratch_types=scratch, **options)
    with pytest.raises(HloError) as caught:
        call.lower(np.zeros(shape, F32)).ptx()
    assert caught.value.diagnostics[0].help or caught.value.diagnostics[0].message
    return caught.value.diagnostics[0].code


def test_shapes_that_no_layout_has_are_refused() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] + 1.0

    assert refused(body, shape=(3, 5)) == "HLO0758"


def test_rows_that_no_copy_takes_are_refused() -> None:
    def body(x: Any, o: Any, xs: Any, arrived: Any) -> None:
        plgpu.copy_gmem_to_smem(x, xs, arrived)

    assert refused(body, plgpu.SMEM((64, 6), F32), plgpu.Barrier(), shape=(64, 6)) == "HLO0758"


def test_factors_without_swizzle_are_refused() -> None:
    def body(x: Any, o: Any, a: Any, b: Any) -> None:
        def scope(acc: Any) -> Any:
            plgpu.wgmma(acc, a, b)
            return acc[...]

        o[...] = pl.run_scoped(scope, plgpu.ACC((64, 64)))

    buffers = [plgpu.SMEM((64, 64), np.float16)] * 2
    assert refused(body, *buffers) == "HLO0758"


def test_other_misuse_is_refused_where_it_stands() -> None:
    def sizes(x: Any, o: Any, xs: Any, arrived: Any) -> None:
        plgpu.copy_gmem_to_smem(x, xs, arrived)

    assert refused(sizes, plgpu.SMEM((32, 64), F32), plgpu.Barrier()) == "HLO0721"

    def barrier(x: Any, o: Any, xs: Any) -> None:
        plgpu.barrier_wait(xs)

    assert refused(barrier, plgpu.SMEM((64, 64), F32)).startswith("HLO072")
    too_much = plgpu.SMEM((1024, 1024), F32)
    assert refused(barrier, too_much).startswith("HLO072")


def test_a_wait_that_nothing_ends_is_found_by_the_interpreter() -> None:
    def body(x: Any, o: Any, met: Any) -> None:
        plgpu.barrier_wait(met)

    call = plgpu.kernel(body, pl.ShapeDtypeStruct((64,), F32), scratch_types=[plgpu.Barrier()])
    with pytest.raises(HloError) as caught:
        call(np.zeros(64, F32))
    assert caught.value.diagnostics[0].code == "HLO0703"


def test_a_part_that_leaves_its_array_is_found_by_the_interpreter() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(lax.axis_index("i") * 64, 64)]

    call = plgpu.kernel(body, pl.ShapeDtypeStruct((64,), F32), grid=(2,), grid_names=("i",))
    with pytest.raises(HloError) as caught:
        call(np.zeros(64, F32))
    assert caught.value.diagnostics[0].code == "HLO0702"


def test_calls_on_the_simulator_raise_what_it_finds() -> None:
    def body(x: Any, o: Any, xs: Any, arrived: Any) -> None:
        plgpu.copy_gmem_to_smem(x, xs, arrived)
        o[...] = xs[...]
        plgpu.barrier_wait(arrived)

    call = plgpu.kernel(
        body,
        pl.ShapeDtypeStruct((64, 64), F32),
        scratch_types=[plgpu.SMEM((64, 64), F32), plgpu.Barrier()],
        platform="cuda",
    )
    with pytest.raises(HloError) as caught:
        call(np.ones((64, 64), F32))
    assert re.fullmatch(r"HLO07(7[3-9]|8\d|96)", caught.value.diagnostics[0].code)


def test_stages_are_dumped(tmp_path: Any) -> None:
    one = CASES["total"]()
    kernel = one.call.lower(*one.arrays)
    assert ".entry body(" in kernel.ptx()
    kernel.dump(str(tmp_path))
    names = ["body.0.mosaic_gpu.mlir", "body.1.ll", "body.2.ptx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / names[2]).read_text() == kernel.ptx()


def test_tensor_memory_is_not_on_every_device() -> None:
    _, kernel = case("tensor_matmul")
    with pytest.raises(HloError, match="tensor memory of sm_100a") as caught:
        kernel.ptx("h100")
    assert caught.value.diagnostics[0].code == "HLO0758"
    _, kernel = case("matmul")
    with pytest.raises(HloError, match="wgmma of sm_90a"):
        kernel.ptx("b200")


@pytest.mark.parametrize(
    ("shape", "dtype", "options"),
    [((64, 64), F32, {}), ((128, 64), np.float16, {}), ((128, 64), F32, {"collective": True})],
)
def test_tensor_memory_has_one_form(shape: Any, dtype: Any, options: Any) -> None:
    with pytest.raises(HloError, match="TMEM") as caught:
        plgpu.TMEM(shape, dtype, **options)
    assert caught.value.diagnostics[0].code == "HLO0726"


def test_misuse_of_tensor_memory_is_refused_where_it_stands() -> None:
    tensor = plgpu.TMEM((128, 64), F32)

    def read(x: Any, o: Any, acc: Any) -> None:
        o[...] = acc[...]

    def factors(x: Any, o: Any, acc: Any) -> None:
        plgpu.tcgen05_mma(acc, x, x)

    def late(x: Any, o: Any) -> None:
        pl.run_scoped(lambda acc: None, tensor)

    assert refused(read, tensor) == "HLO0725"
    assert refused(factors, tensor) == "HLO0725"
    assert refused(late) == "HLO0726"
    assert refused(read, *[plgpu.TMEM((128, 512), F32)] * 2) == "HLO0725"
