"""The `mosaic_gpu` dialect: texts and bytecode of MLIR are read and print back exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import DATA, SHARED, needs_shared

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.mosaic_gpu import values
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.expanded import collapse_kernels, expand_kernels
from mlirhlo.mosaic.forms import check_roundtrip
from mlirhlo.mosaic.verifier import CONSTRAINTS, verify_kernel

FOLDER = DATA / "mosaic" / "gpu"
SAMPLES = SHARED / "reference" / "mosaic_samples" / "gpu"
B = "memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>"
S = "memref<64x64xf16, #gpu.address_space<workgroup>>"
G, V = "memref<128x128xf16>", "vector<64x64xf16>"
ARGUMENTS = (
    f"%b: {B}, %bs: memref<2x{B[7:]}, %s: {S}, %g: {G}, %v: {V}, %i: i32, %p: !llvm.ptr<3>, "
    "%f: vector<64x64xf32>, %r: vector<64xf32>, %m: memref<i32, #gpu.address_space<workgroup>>"
)


def load(indices: int = 2, lengths: str = "64, 64", to: str = "%s", type_: str = S) -> str:
    sizes = f"array<i32: 1, 1, 1, {indices}, 0>"
    types = ", ".join([G, type_, B, *["i32"] * indices])
    return (
        f'"mosaic_gpu.async_load"(%g, {to}, %b{", %i" * indices}) <{{collective = [], operandSegmentSizes = {sizes}, '
        f"slice_lengths = array<i64: {lengths}>}}> : ({types}) -> ()"
    )


def wgmma(m: int = 64, a: str = S, b: str = S, n: int = 64) -> str:
    acc = f"vector<{m}x{n}xf32>"
    return (
        f"%acc = arith.constant dense<0.0> : {acc}\n"
        f'%as = "mosaic_gpu.slice_smem"() <{{offset = 0 : i32}}> : () -> {a}\n'
        f'%bz = "mosaic_gpu.slice_smem"() <{{offset = 0 : i32}}> : () -> {b}\n'
        f"%o = mosaic_gpu.wgmma accumulator(%acc : {acc}) a(%as : {a}) b(%bz : {b}) -> {acc}"
    )


MMA = "%o = mosaic_gpu.mma accumulator(%f : vector<64x64xf32>) a({}) b({}) -> vector<64x64xf32>"
CASES = {
    "gpu_wgmma_c1": wgmma(a=S.replace("64x64", "64x32")),
    "gpu_mma_c1": MMA.format(f"%v : {V}", "%r : vector<64xf32>"),
    "gpu_wgmma_c2": wgmma(b=S.replace("f16", "bf16")),
    "gpu_mma_c2": MMA.format(f"%v : {V}", "%f : vector<64x64xf32>"),
    "gpu_wgmma_c3": wgmma(m=32, a=S.replace("64x", "32x", 1)),
    "gpu_wgmma_c4": wgmma(b="memref<64x64xf16>"),
    "gpu_arrive_c1": f'"mosaic_gpu.arrive"(%s) <{{orders_tensor_core = false}}> : ({S}) -> ()',
    "gpu_arrive_expect_tx_c1": f"mosaic_gpu.arrive_expect_tx barrier(%bs : memref<2x{B[7:]}) 8",
    "gpu_wait_c1": f"%t = arith.constant true\nmosaic_gpu.wait barrier(%s : {S}) parity(%t : i1)",
    "gpu_tcgen05_commit_arrive_c1": f'"mosaic_gpu.tcgen05_commit_arrive"(%s) : ({S}) -> ()',
    "gpu_async_load_c1": load(to="%g", type_=G, lengths="128, 128"),
    "gpu_async_load_c2": '%h = "mosaic_gpu.slice_smem"() <{offset = 0 : i32}> : () -> '
    f"{S.replace('f16', 'f32')}\n" + load(to="%h", type_=S.replace("f16", "f32")),
    "gpu_async_load_c3": load(indices=1),
    "gpu_async_load_c4": load(lengths="64, 32"),
    "gpu_async_store_c1": '"mosaic_gpu.async_store"(%g, %g, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, '
    f"slice_lengths = array<i64: 128, 128>}}> : ({G}, {G}, i32, i32) -> ()",
    "gpu_async_store_c2": f'%h = "mosaic_gpu.slice_smem"() <{{offset = 0 : i32}}> : () -> {S.replace("f16", "f32")}\n'
    '"mosaic_gpu.async_store"(%h, %g, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, '
    f"slice_lengths = array<i64: 64, 64>}}> : ({S.replace('f16', 'f32')}, {G}, i32, i32) -> ()",
    "gpu_async_store_c3": '"mosaic_gpu.async_store"(%s, %g, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, '
    f"slice_lengths = array<i64: 64, 64>}}> : ({S}, {G}, i32) -> ()",
    "gpu_async_store_c4": '"mosaic_gpu.async_store"(%s, %g, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, '
    f"slice_lengths = array<i64: 64, 32>}}> : ({S}, {G}, i32, i32) -> ()",
    "gpu_async_prefetch_c3": '"mosaic_gpu.async_prefetch"(%g, %i) <{collective = [], operandSegmentSizes = '
    f"array<i32: 1, 1, 0>, slice_lengths = array<i64: 64, 64>}}> : ({G}, i32) -> ()",
    "gpu_vector_load_c1": f'%o = "mosaic_gpu.vector_load"(%s) : ({S}) -> vector<64x32xf16>',
    "gpu_vector_store_c1": f'"mosaic_gpu.vector_store"(%f, %s) : (vector<64x64xf32>, {S}) -> ()',
    "gpu_broadcast_in_dim_c1": "%o = mosaic_gpu.broadcast_in_dim(%r : vector<64xf32>) "
    "{broadcast_dimensions = array<i64: 1>} -> vector<64x128xf32>",
    "gpu_broadcasted_iota_c1": '%o = "mosaic_gpu.broadcasted_iota"() <{dimension = 2 : i32}> : () -> vector<4x4xi32>',
    "gpu_layout_cast_c1": "%o = mosaic_gpu.layout_cast x(%r : vector<64xf32>) {new_layout = "
    "#mosaic_gpu.TiledLayout<[[64, 8], [16, 8], [8, 8], [2]], warp_dims = [-7], lane_dims = [-3, -2], "
    "vector_dim = -1>}",
    "gpu_with_transforms_c1": '%o = "mosaic_gpu.with_transforms"(%s) <{transforms = [#mosaic_gpu.tile<[7, 64]>]}> '
    f": ({S}) -> {S}",
    "gpu_initialize_barrier_c1": '"mosaic_gpu.initialize_barrier"(%p) <{arrival_count = 0 : i64, '
    "num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()",
    "gpu_tmem_alloc_c1": "%o = mosaic_gpu.tmem_alloc smem_ptr(%m : memref<i32, #gpu.address_space<workgroup>>) -> "
    "memref<128x96xf32, #mosaic_gpu.tmem>",
}
NUMBERS = {
    row.number
    for rows in CONSTRAINTS.values()
    for row in rows
    if row.operation.startswith("mosaic_gpu.")
}


def printed(text: str) -> str:
    return print_kernel(parse_kernel(text), keep_names=False)


@pytest.mark.parametrize("name", ["ops", "cluster", "two_warp_groups"])
def test_texts_print_back_exactly(name: str) -> None:
    text = (FOLDER / f"{name}.mlir").read_text()
    assert printed(text).rstrip() == text.rstrip()


@needs_shared
@pytest.mark.parametrize("name", ["before_layout", "before_lowering"])
def test_samples_print_back_exactly(name: str) -> None:
    text = (SAMPLES / f"wgmma_matmul.{name}.mlir").read_text()
    module = parse_kernel(text)
    verify_kernel(module)
    assert print_kernel(module, keep_names=False).rstrip() == text.rstrip()


def test_assembly_without_operands_prints_as_mlir_does() -> None:
    asm = 'llvm.inline_asm has_side_effects "fence.proxy.async;", ""  : () -> !llvm.void'
    assert asm in printed(f"module {{\n  func.func @f() {{\n    {asm}\n    return\n  }}\n}}")


@pytest.mark.parametrize("name", ["cluster", "two_warp_groups"])
def test_bytecode_is_the_text_of_mlir(name: str) -> None:
    module = read_kernel((FOLDER / f"{name}.bc").read_bytes(), name)
    text = (FOLDER / f"{name}.mlir").read_text()
    assert print_kernel(module, keep_names=False).rstrip() == text.rstrip()


@pytest.mark.parametrize("name", ["ops", "cluster"])
def test_every_form_says_the_same(name: str) -> None:
    check_roundtrip(read_kernel((FOLDER / f"{name}.mlir").read_bytes(), name), name)


def test_kernels_of_programs_are_written_out_and_put_back() -> None:
    program = (FOLDER / "two_warp_groups.hlo").read_text()
    shown = expand_kernels(program)
    kernel = shown.partition("/* kernel of mpmd_map.1:\n")[2].partition("\n  */")[0]
    assert kernel.rstrip() == (FOLDER / "two_warp_groups.mlir").read_text().rstrip()
    edited = collapse_kernels(shown.replace("decrease 40", "decrease 48"))
    assert "(above)" not in edited
    assert "nvvm.setmaxregister decrease 48" in expand_kernels(edited)


def test_a_version_that_is_too_new_is_refused(tmp_path: Path) -> None:
    text = "module attributes {stable_mosaic_gpu.version = 99 : i64} {\n}\n"
    with pytest.raises(HloError) as caught:
        read_kernel(text.encode(), "k.mlir")
    assert caught.value.diagnostics[0].code == "HLO0700"


def test_every_constraint_has_a_case() -> None:
    assert set(CASES) == NUMBERS


@pytest.mark.parametrize("number", CASES)
def test_a_broken_constraint_is_named(number: str) -> None:
    text = f"func.func @f({ARGUMENTS}) {{\n{CASES[number]}\nreturn\n}}"
    with pytest.raises(HloError) as caught:
        verify_kernel(read_kernel(text.encode(), "k.mlir"))
    found = caught.value.diagnostics[0]
    assert found.code == "HLO0737"
    assert found.message.endswith(f"({number})"), found.message


def test_accumulators_lie_as_the_matrix_units_write_them() -> None:
    lanes = values.elements_of(values.WGMMA, (64, 16))
    # Lane 5 of warp 1: row 16 + 5 // 4, columns from 2 (5 % 4); then eight rows on; then eight columns on.
    assert lanes[37] == ((17, 2), (17, 3), (25, 2), (25, 3), (17, 10), (17, 11), (25, 10), (25, 11))


@pytest.mark.parametrize(
    ("layout", "shape", "times"),
    [
        (values.WGMMA, (128, 24), 1),
        (values.WGMMA_ROW, (128,), 4),
        (values.WGMMA_COL, (24,), 32),
        (values.WGMMA_8BIT, (64, 32), 1),
        (values.TCGEN05, (128, 16), 1),
        (values.StridedLayout((64, 16), 2), (64, 16), 1),
    ],
    ids=str,
)
def test_each_element_is_held_as_often_as_it_is_replicated(
    layout: values.Layout, shape: tuple[int, ...], times: int
) -> None:
    held = np.zeros(shape, int)
    for lane in values.elements_of(layout, shape):
        for index in lane:
            held[index] += 1
    assert (held == times).all()
