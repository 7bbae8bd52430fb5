# ruff: noqa: E501  a kernel stands on one line
"""Asynchronous copies, tensor maps, products of warp groups and clusters on the PTX simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptx_kernels import HEAD, launch

from mlirhlo.diagnostics import HloError
from mlirhlo.simulator import Machine, TensorMap

RANDOM = np.random.default_rng(3)
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
BEGIN = ".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<64>; .shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, 0;"
INIT = "@%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"


def test_copies_fill_with_zeros_and_pipeline() -> None:
    x = RANDOM.integers(1, 99, (3, 32)).astype(np.uint32)
    text = """.visible .entry k(.param .u64 x, .param .u64 y) { .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p; .shared .align 16 .b8 t[384];
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2;
mov.u32 %r2, t; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; setp.lt.u32 %p, %r1, 20; selp.u32 %r4, 4, 0, %p;
cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group; cp.async.ca.shared.global [%r2+128], [%rd3+128], 4, %r4; cp.async.commit_group;
cp.async.ca.shared.global [%r2+256], [%rd3+256], 4; cp.async.commit_group; cp.async.wait_group 2; ld.shared.u32 %r5, [%r2]; st.global.u32 [%rd4], %r5;
cp.async.wait_group 1; ld.shared.u32 %r5, [%r2+128]; st.global.u32 [%rd4+128], %r5; cp.async.wait_all; ld.shared.u32 %r5, [%r2+256]; st.global.u32 [%rd4+256], %r5; ret; }"""
    report, (_, y) = launch(text, x, np.zeros_like(x))
    assert not report.findings
    x[1, 20:] = 0
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_boxes_of_tensors(swizzle: int) -> None:
    """A box beyond the edge is filled with zeros, swizzled in shared memory, and stored back within bounds."""
    columns = (swizzle or 64) // 4
    x = RANDOM.integers(1, 99, (20, 40)).astype(np.uint32)
    text = f""".visible .entry k(.param .align 64 .b8 m[128], .param .align 64 .b8 n[128], .param .u64 y) {{ {BEGIN} .shared .align 1024 .b8 t[2048]; ld.param.u64 %rd2, [y];
mov.u64 %rd3, m; cvta.param.u64 %rd3, %rd3; mov.u64 %rd4, n; cvta.param.u64 %rd4, %rd4; mov.u32 %r3, 36; mov.u32 %r4, 16; mov.u32 %r5, {columns * 32}; {INIT}
@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], %r5;
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [t], [%rd3, {{%r3, %r4}}], [bar]; {WAIT}
shl.b32 %r6, %r1, 2; mov.u32 %r7, t; add.u32 %r6, %r6, %r7; mad.wide.u32 %rd6, %r1, 4, %rd2;
{"".join(f"ld.shared.u32 %r8, [%r6+{i * 256}]; st.global.u32 [%rd6+{i * 256}], %r8;" for i in range(columns * 32 // 256))}
bar.sync 0; fence.proxy.async; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {{%r3, %r4}}], [t]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }}"""
    machine = Machine(memory_bytes=1 << 26)
    program = machine.load(HEAD + text)
    source, target = machine.allocate(x.nbytes, "x"), machine.allocate(x.nbytes, "z")
    out = machine.allocate(2048, "y")
    machine.write(source, x)
    machine.write(target, np.zeros_like(x))
    maps = [
        TensorMap(one, 4, (40, 20), (160,), (columns, 8), swizzle).encode()
        for one in (source, target)
    ]
    report = machine.launch(program, "k", 1, 64, [*maps, out])
    assert not report.findings, report.findings[0]
    found = machine.read(out, columns * 32).view(np.uint32)
    padded = np.zeros((8, columns), np.uint32)
    padded[:4, :4] = x[16:, 36:]
    position = np.arange(8 * columns) * 4
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    position ^= (position >> 7 & mask) << 4
    np.testing.assert_array_equal(found[position // 4].reshape(8, columns), padded)
    stored = machine.read(target, x.nbytes).view(np.uint32).reshape(20, 40)
    x[:16], x[:, :36] = 0, 0
    np.testing.assert_array_equal(stored, x)


def test_tensor_maps_are_checked() -> None:
    for wrong in (
        TensorMap(0, 4, (8, 8), (24,), (4, 4)),
        TensorMap(0, 4, (8, 8), (32,), (4,)),
        TensorMap(0, 4, (8, 8), (32,), (300, 4)),
        TensorMap(0, 4, (64, 8), (256,), (32, 4), 64),
        TensorMap(8, 4, (8, 8), (32,), (4, 4)),
    ):
        with pytest.raises(HloError, match="HLO0785"):
            wrong.encode()


def image(
    matrix: np.ndarray[Any, Any], span: int, *, along_k: bool
) -> tuple[np.ndarray[Any, Any], int]:
    """Shared memory that holds a matrix (rows of m or n, columns of k) for a descriptor, and its strides and mode."""
    rows, depth = matrix.shape
    unit, size = 8, 2
    memory = np.zeros(32768 // size, matrix.dtype)
    for row in range(rows):
        for k in range(depth):
            if along_k and span:
                leading, stride = 16, 8 * span
                at = row // 8 * stride + row % 8 * span + k * size
            elif along_k:
                leading, stride = rows // 8 * 128, 128
                at = row // 8 * stride + row % 8 * 16 + k // unit * leading + k % unit * size
            elif span:
                leading, stride = depth // 8 * 8 * span, 8 * span
                piece = span // size
                at = row // piece * leading + row % piece * size + k // 8 * stride + k % 8 * span
            else:
                leading, stride = 128, depth // 8 * 128
                at = row // unit * stride + row % unit * size + k // 8 * leading + k % 8 * 16
            at ^= (at >> 7 & {0: 0, 32: 1, 64: 3, 128: 7}[span]) << 4
            memory[at // size] = matrix[row, k]
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[span]
    return memory, mode << 62 | (stride >> 4) << 32 | (leading >> 4) << 16


@pytest.mark.parametrize("span", [0, 32, 64, 128])
@pytest.mark.parametrize("along_k", [True, False])
def test_products_of_warp_groups(span: int, along_k: bool) -> None:
    columns = 64
    a = RANDOM.integers(-8, 8, (64, 16)).astype(np.float16)
    b = RANDOM.integers(-8, 8, (columns, 16)).astype(np.float16)
    (left, first), (right, second) = (
        image(a, span, along_k=along_k),
        image(b, span, along_k=along_k),
    )
    count = columns // 2
    registers = "{" + ", ".join(f"%f{i}" for i in range(count)) + "}"
    moved = 16384 // 128 // 4
    text = f""".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 da, .param .u64 db) {{ {BEGIN} .shared .align 1024 .b8 t[32768];
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [z]; ld.param.u64 %rd10, [da]; ld.param.u64 %rd11, [db]; mov.u32 %r4, t; shl.b32 %r5, %r1, 2; add.u32 %r6, %r4, %r5;
mad.wide.u32 %rd5, %r1, 4, %rd1; mad.wide.u32 %rd6, %r1, 4, %rd2;
{"".join(f"ld.global.u32 %r7, [%rd5+{i * 512}]; st.shared.u32 [%r6+{i * 512}], %r7; ld.global.u32 %r7, [%rd6+{i * 512}]; st.shared.u32 [%r6+{16384 + i * 512}], %r7;" for i in range(moved))}
fence.proxy.async; bar.sync 0; cvt.u64.u32 %rd12, %r4; shr.u64 %rd12, %rd12, 4; or.b64 %rd10, %rd10, %rd12; add.s64 %rd12, %rd12, 1024; or.b64 %rd11, %rd11, %rd12;
setp.ne.u32 %p3, 0, 0; setp.eq.u32 %p4, 0, 0; wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {registers}, %rd10, %rd11, %p3, 1, 1, {int(not along_k)}, {int(not along_k)};
wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {registers}, %rd10, %rd11, %p4, 1, -1, {int(not along_k)}, {int(not along_k)};
wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {registers}, %rd10, %rd11, %p4, 1, 1, {int(not along_k)}, {int(not along_k)};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mad.wide.u32 %rd7, %r1, {count * 4}, %rd3;
{"".join(f"st.global.f32 [%rd7+{i * 4}], %f{i};" for i in range(count))} ret; }}"""
    out = np.zeros((128, count), np.float32)
    report, (_, _, fragments) = launch(
        text, left[:8192], right[:8192], out, block=128, scalars=(first, second)
    )
    assert not report.findings, report.findings[0]
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    for thread in range(128):
        for i in range(count):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
            assert fragments[thread, i] == expected[row, 8 * (i // 4) + thread % 4 * 2 + i % 2]


@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_share_memory(seed: int) -> None:
    """Each block reads its neighbour's shared memory, and adds to a counter in the first one's."""
    text = """.visible .entry k(.param .u64 x) { .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p; .shared .align 4 .b8 t[132];
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x; ld.param.u64 %rd1, [x]; mad.lo.u32 %r4, %r3, 32, %r1; mad.wide.u32 %rd2, %r4, 4, %rd1;
mov.u32 %r5, t; shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r4; setp.eq.u32 %p, %r1, 0; @%p st.shared.u32 [%r5+128], 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; xor.b32 %r7, %r2, 1; mapa.shared::cluster.u32 %r8, %r6, %r7; ld.shared::cluster.u32 %r9, [%r8];
mapa.shared::cluster.u32 %r10, %r5, 0; atom.shared::cluster.add.u32 %r11, [%r10+128], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared::cluster.u32 %r12, [%r10+128]; mad.lo.u32 %r9, %r12, 1000, %r9; st.global.u32 [%rd2], %r9; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }"""
    report, (x,) = launch(text, np.zeros((8, 32), np.uint32), grid=8, cluster=2, seed=seed)
    assert not report.findings, report.findings[0]
    block, lane = np.indices((8, 32))
    np.testing.assert_array_equal(x, (block ^ 1) * 32 + lane + 64000)


def test_memory_of_several_devices_is_that_of_one() -> None:
    text = """.visible .entry k(.param .u64 x) { .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .f32 %f<9>;
 ld.param.u64 %rd1, [x]; multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
 multimem.st.weak.global.v2.f32 [%rd1+16], {%f3, %f4}; bar.sync 0;
 multimem.red.relaxed.gpu.global.add.v2.f32 [%rd1+24], {%f2, %f3}; ret; }"""
    report, (found,) = launch(text, np.arange(8, dtype=np.float32), block=1)
    assert not report.findings
    assert found.tolist() == [0, 1, 2, 3, 2, 3, 7, 9]
