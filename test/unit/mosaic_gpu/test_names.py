"""The names of Pallas' language for GPUs: their parameters, small ones called, and what the others say."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel
from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic.gpu.faults import LACKING, check_options

PARAMETERS = {
    "ClusterBarrier": "collective_axes num_barriers num_arrivals orders_tensor_core leader_tracked",
    "Barrier": "num_arrivals num_barriers orders_tensor_core",
    "Mesh": "grid grid_names cluster cluster_names num_threads thread_name kernel_name",
    "NDLoopInfo": "index local_index num_local_steps",
    "async_load_tmem": "src layout",
    "async_store_tmem": "ref value",
    "atomic_add": "ref val",
    "atomic_and": "ref val",
    "atomic_max": "ref val",
    "atomic_min": "ref val",
    "atomic_or": "ref val",
    "atomic_xor": "ref val",
    "barrier_arrive": "barrier",
    "barrier_test": "barrier",
    "barrier_wait": "barrier",
    "broadcasted_iota": "dtype shape dimension layout",
    "cluster_ref": "ref block_id",
    "commit_smem": "",
    "commit_smem_to_gmem_group": "",
    "commit_tmem": "",
    "copy_gmem_to_smem": "src dst barrier collective_axes leader_tracked oob_mode",
    "copy_smem_to_gmem": "src dst predicate commit_group reduction_op",
    "dynamic_scheduling_loop": "grid_names thread_axis cluster_axes init_carry",
    "emit_pipeline": "body grid in_specs out_specs max_concurrent_steps init_carry",
    "emit_pipeline_warp_specialized": (
        "body grid memory_registers in_specs out_specs max_concurrent_steps wg_axis num_compute_wgs "
        "pipeline_state manual_consumed_barriers compute_context memory_thread_idx"
    ),
    "find_swizzle": "minor_dim_bits what",
    "griddepcontrol_launch_dependents": "",
    "griddepcontrol_wait": "",
    "kernel": (
        "body out_shape out_type scratch_types scratch_shapes compiler_params grid grid_names cluster "
        "cluster_names num_threads thread_name interpret"
    ),
    "layout_cast": "x new_layout",
    "load": "src idx layout optimized",
    "nd_loop": "grid collective_axes tiling init_carry",
    "planar_snake": "lin_idx shape minor_dim tile_width",
    "set_max_registers": "n action",
    "tcgen05_commit_arrive": "barrier collective_axis",
    "tcgen05_mma": "acc a b barrier a_scale b_scale a_sparse_metadata accumulate collective_axis",
    "transform_ref": "ref transform",
    "transpose_ref": "ref permutation",
    "wait_load_tmem": "",
    "wait_smem_to_gmem": "n wait_read_only",
    "wgmma": "acc a b",
    "wgmma_accumulator_load": "acc wait_n",
    "wgmma_wait": "n",
}
"""Parameters that the documentation of jax 0.10.2 names, in its order but for those by keyword."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_have_the_names_that_pallas_gives_them(name: str) -> None:
    known = inspect.signature(getattr(plgpu, name)).parameters
    assert not set(PARAMETERS[name].split()) - set(known)


@pytest.mark.parametrize("name", LACKING)
def test_refused_names_say_what_to_do_instead(name: str) -> None:
    with pytest.raises(HloError) as caught:
        getattr(plgpu, name)()
    found = caught.value.diagnostics[0]
    assert found.code == "HLO0757"
    assert found.help


def code_of(call: Any) -> str:
    with pytest.raises(HloError) as caught:
        call()
    assert caught.value.diagnostics[0].help
    return caught.value.diagnostics[0].code


def test_names_that_kernels_cannot_follow_are_refused_where_they_are_used() -> None:
    assert code_of(lambda: plgpu.barrier_test(None)) == "HLO0725"
    assert code_of(lambda: plgpu.transform_ref(None, None)) == "HLO0726"
    assert (
        code_of(lambda: plgpu.ClusterBarrier(collective_axes="x", leader_tracked=True)) == "HLO0726"
    )
    assert code_of(lambda: plgpu.tcgen05_commit_arrive(None, collective_axis="x")) == "HLO0726"


def test_small_names() -> None:
    assert plgpu.find_swizzle(64 * 16) == 128
    assert plgpu.find_swizzle(8 * 32, "b") == 32
    assert plgpu.GMEM((8,), np.float32, packed=None).space == "gmem"
    assert plgpu.REGS is plgpu.MemorySpace.REGS
    assert plgpu.ACC is plgpu.WGMMAAccumulatorRef
    assert plgpu.ShapeDtypeStruct((2, 3), np.float32).size == 6
    assert (
        plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane).approx_math is False
    )
    assert plgpu.CompilerParams().profile_trace_scope is plgpu.TraceScope.WARPGROUP
    assert plgpu.OOBFillMode.ZEROS.value == 2
    assert plgpu.CopyPartition.REPLICATED.name == "REPLICATED"
    assert plgpu.Replicated(4).times == 4
    assert plgpu.Layout.WGMMA.reduce(1) is plgpu.Layout.WGMMA_ROW
    assert isinstance(plgpu.TilingTransform(plgpu.Tiling((8, 64))), plgpu.Transform)


def test_a_mesh_gives_its_sizes_and_its_name_to_a_kernel() -> None:
    def body(x: Any, o: Any) -> None:
        assert isinstance(x, plgpu.RefType)
        o[...] = x[...] + 1.0

    x = np.ones(128, np.float32)
    call = plgpu.Mesh(grid=(1,), grid_names=("i",), kernel_name="one").kernel(
        body, plgpu.ShapeDtypeStruct((128,), np.float32)
    )
    assert call.name == "one"
    assert np.array_equal(call(x), x + 1)


def test_a_union_is_of_shared_memory() -> None:
    def body(x: Any, o: Any, buffers: Any) -> None:
        o[...] = x[...]

    types = plgpu.ShapeDtypeStruct((128,), np.float32)
    union = plgpu.RefUnion(plgpu.SMEM((128,), np.float32), plgpu.Barrier())
    call = plgpu.kernel(body, types, scratch_types=[union])
    assert code_of(lambda: call.lower(types)) == "HLO0726"


MEMORY = "memref<64x64xf16, #gpu.address_space<workgroup>>"
STORE = f"""func.func @f(%s: {MEMORY}, %g: memref<64x64xf16>, %i: i32) {{
  "mosaic_gpu.async_store"(%s, %g, %i, %i) <{{operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>,
    slice_lengths = array<i64: 64, 64>, OPTION}}> : ({MEMORY}, memref<64x64xf16>, i32, i32) -> ()
  return
}}"""


@pytest.mark.parametrize("option", ["reduction_op = 0 : i32", "is_global_broadcast = true"])
def test_options_of_copies_that_have_no_code_are_named(option: str) -> None:
    check_options(parse_kernel(STORE.replace("OPTION", "is_global_broadcast = false")).walk())
    name = option.split()[0]
    with pytest.raises(HloError, match=f"with {name}") as caught:
        check_options(parse_kernel(STORE.replace("OPTION", option)).walk())
    assert caught.value.diagnostics[0].code == "HLO0758"
