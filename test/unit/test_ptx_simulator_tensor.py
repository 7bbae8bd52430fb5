"""`tcgen05`: fragments of loads and stores, products of all kinds, copies, against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_kernels import launch

BEGIN = """
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z)
{
.reg .pred %p<8>; .reg .b32 %r<20>; .reg .b32 %v<140>; .reg .b64 %rd<20>;
.shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar; .shared .align 4 .b32 at;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [z]; mov.u32 %r1, %tid.x;
setp.lt.u32 %p7, %r1, 32; setp.eq.u32 %p6, %r1, 0;
@%p7 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 512;
@%p6 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
ld.shared.u32 %r15, [at]; shr.u32 %r16, %r1, 5; shl.b32 %r16, %r16, 21; add.u32 %r16, %r16, %r15;
"""
END = """
bar.sync 0; @%p7 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r15, 512; ret;
}
"""
AWAIT = """
@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
W: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0; @!%p4 bra W; tcgen05.fence::after_thread_sync;
"""


def vector(count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%v{first + n}" for n in range(count)) + "}"


def stored(count: int, array: str) -> str:
    """Writes registers of all threads: threads × registers."""
    lines = [f"mul.wide.u32 %rd9, %r1, {4 * count}; add.u64 %rd9, %rd9, {array};"]
    lines += [f"st.global.u32 [%rd9+{4 * n}], %v{n};" for n in range(count)]
    return "\n".join(lines)


def copied(offset: int, count: int, array: str) -> str:
    """Copies words of an array to shared memory, from an offset on."""
    return "\n".join(
        f"add.u32 %r2, %r1, {n}; shl.b32 %r2, %r2, 2; cvt.u64.u32 %rd8, %r2; add.u64 %rd8, %rd8, {array};"
        f"mov.u32 %r4, tile; add.u32 %r4, %r4, %r2; ld.global.u32 %r3, [%rd8]; st.shared.u32 [%r4+{offset}], %r3;"
        for n in range(0, count, 128)
    )


def run(body: str, x: Any, y: Any, z: Any) -> list[Any]:
    report, arrays = launch(f"{BEGIN}{body}{END}", x, y, z, block=128)
    assert not [str(found) for found in report.findings]
    return arrays


NONE = np.zeros(64, np.uint32)
SHAPES = {
    "16x64b": (1, 2),
    "16x128b": (2, 4),
    "16x256b": (4, 8),
    "16x32bx2": (1, 1),
    "32x32b": (1, 1),
}


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_fragments(shape: str, times: int) -> None:
    """A warp has each cell once, and what a store wrote a load reads; C's fragments are those of `mma`."""
    count = SHAPES[shape][0] * times
    split = f", {times}" if shape == "16x32bx2" else ""
    numbers = "\n".join(f"mad.lo.u32 %v{n}, %r1, {count}, {n};" for n in range(count))
    store = f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r16]{split}, {vector(count)};"
    width = SHAPES[shape][1] * times * (2 if split else 1)
    rows = "\n".join(f"mov.u32 %v{n}, 0;" for n in range(width))
    fill = f"tcgen05.st.sync.aligned.32x32b.x{width}.b32 [%r16], {vector(width)}; tcgen05.wait::st.sync.aligned;"
    waits = "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"
    plain = f"tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {vector(width)}, [%r16];"
    same = f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {vector(count)}, [%r16]{split};"
    text = "\n".join(
        (
            rows,
            fill,
            numbers,
            store,
            waits[0],
            plain,
            waits[1],
            stored(width, "%rd2"),
            same,
            waits[1],
        )
    )
    back = np.zeros((128, count), np.uint32)
    _, cells, back = run(
        text + stored(count, "%rd3"), NONE, np.zeros((128, width), np.uint32), back
    )
    assert back.reshape(-1).tolist() == list(range(128 * count))
    for warp in range(4):
        reached = cells[32 * warp : 32 * warp + (32 if shape == "32x32b" else 16)]
        expected = np.arange(32 * count) + 32 * count * warp
        assert sorted(reached.reshape(-1).tolist()) == expected.tolist()
        if shape == "16x256b":
            lane, register = 7, 2  # row 1 + 8, columns 6 and 7
            assert reached[9, 6] == (32 * warp + lane) * count + register


TYPES: dict[str, tuple[str, Any, Any, int, int]] = {
    "f16": ("f16", np.float16, np.float32, 0, 1),
    "bf16": ("f16", ml_dtypes.bfloat16, np.float32, 1, 1),
    "f16 in f16": ("f16", np.float16, np.float16, 0, 0),
    "tf32": ("tf32", np.float32, np.float32, 2, 1),
    "e4m3": ("f8f6f4", ml_dtypes.float8_e4m3fn, np.float32, 0, 1),
    "e5m2": ("f8f6f4", ml_dtypes.float8_e5m2, np.float32, 1, 1),
    "u8": ("i8", np.uint8, np.int32, 0, 2),
    "s8": ("i8", np.int8, np.int32, 1, 2),
}
"""Kind, types of factors and sums, and their numbers in a descriptor."""


def laid_out(matrix: Any) -> Any:
    """Rows of 32 bytes as pieces of 8 rows and 16 bytes, without a swizzle."""
    rows = np.ascontiguousarray(matrix).view(np.uint8)
    pieces = rows.reshape(len(rows) // 8, 8, 2, 16).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(pieces).reshape(-1).view(np.uint32)


def laid_out_across(matrix: Any) -> Any:
    """The same of numbers of 16 bits, with neighbours along the rows' dimension: pieces of 8 terms and 8 rows."""
    pieces = matrix.T.reshape(2, 8, len(matrix) // 8, 8).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(pieces).reshape(-1).view(np.uint32)


def product(kind: str, rows: int, columns: int, types: int, sums: int, more: int = 0) -> str:
    descriptor = sums << 4 | types << 7 | types << 10 | columns // 8 << 17 | rows // 16 << 24 | more
    step = 8 << 16 | 16 << 32 | 1 << 46
    return f"""
fence.proxy.async; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
mov.u32 %r4, tile; cvt.u64.u32 %rd10, %r4; shr.u64 %rd10, %rd10, 4; or.b64 %rd11, %rd10, {step};
add.u64 %rd12, %rd11, 256; mov.u32 %r17, {descriptor};
setp.eq.u32 %p5, %r1, %r1; setp.ne.u32 %p3, %r1, %r1;
@%p6 tcgen05.mma.cta_group::1.kind::{kind} [%r15], FIRST, %rd12, %r17, %p3;
@%p6 tcgen05.mma.cta_group::1.kind::{kind} [%r15], FIRST, %rd12, %r17, %p5;
"""


def sums_of(rows: int, columns: int, cells: Any, dtype: Any) -> Any:
    """The matrix that lanes and columns of tensor memory hold."""
    lanes = cells if rows == 128 else cells.reshape(4, 32, columns)[:, :16].reshape(64, columns)
    return lanes.astype(np.uint16).view(dtype) if dtype == np.float16 else lanes.view(dtype)


@pytest.mark.parametrize(("rows", "columns"), [(128, 16), (64, 24)])
@pytest.mark.parametrize("name", TYPES)
def test_products(name: str, rows: int, columns: int) -> None:
    """Twice the product, by adding it to itself."""
    kind, factor, result, types, sums = TYPES[name]
    random = np.random.default_rng(3)
    depth = 32 // np.dtype(factor).itemsize
    low = 0 if name == "u8" else -4
    a = random.integers(low, 5, (rows, depth)).astype(factor)
    b = random.integers(low, 5, (columns, depth)).astype(factor)
    empty = np.zeros((128, columns), np.uint32)
    fill = "\n".join(f"mov.u32 %v{n}, 0;" for n in range(32))
    load = f"{AWAIT} {fill} tcgen05.ld.sync.aligned.32x32b.x32.b32 {vector(32)}, [%r16]; tcgen05.wait::ld.sync.aligned;"
    clear = f"{fill} tcgen05.st.sync.aligned.32x32b.x32.b32 [%r16], {vector(32)}; tcgen05.wait::st.sync.aligned;"
    text = clear + copied(0, rows * 8, "%rd1") + copied(4096, -(-columns * 8 // 128) * 128, "%rd2")
    text += product(kind, rows, columns, types, sums).replace("FIRST", "%rd11") + load
    padded = np.zeros(-(-columns * 8 // 128) * 128, np.uint32)
    padded[: columns * 8] = laid_out(b)
    _, _, cells = run(text + stored(columns, "%rd3"), laid_out(a), padded, empty)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64).T)
    np.testing.assert_array_equal(sums_of(rows, columns, cells, result), expected.astype(result))


def test_transposed_operands() -> None:
    random = np.random.default_rng(4)
    a = random.integers(-4, 5, (128, 16)).astype(np.float16)
    b = random.integers(-4, 5, (16, 16)).astype(np.float16)
    text = copied(0, 1024, "%rd1") + copied(4096, 128, "%rd2")
    # Pieces of 8 terms stand 128 bytes apart, those of 8 rows 256.
    text += product("f16", 128, 16, 0, 1, 3 << 15).replace("FIRST", "%rd11")
    text += f"{AWAIT} tcgen05.ld.sync.aligned.32x32b.x16.b32 {vector(16)}, [%r16]; tcgen05.wait::ld.sync.aligned;"
    cells = np.zeros((128, 16), np.uint32)
    _, _, cells = run(text + stored(16, "%rd3"), laid_out_across(a), laid_out_across(b), cells)
    np.testing.assert_array_equal(cells.view(np.float32), 2 * (a.astype("f8") @ b.astype("f8").T))


def test_a_factor_in_tensor_memory() -> None:
    """Copied there from shared memory."""
    random = np.random.default_rng(5)
    a = random.integers(-4, 5, (128, 16)).astype(np.float16)
    b = random.integers(-4, 5, (16, 16)).astype(np.float16)
    text = copied(0, 1024, "%rd1") + copied(4096, 128, "%rd2")
    body = product("f16", 128, 16, 0, 1).replace("FIRST", "[%r18]")
    copy = "add.u32 %r18, %r15, 64; @%p6 tcgen05.cp.cta_group::1.128x256b [%r18], %rd11;"
    body = body.replace("setp.eq.u32 %p5", f"{copy} setp.eq.u32 %p5")
    load = f"{AWAIT} tcgen05.ld.sync.aligned.32x32b.x16.b32 {vector(16)}, [%r16]; tcgen05.wait::ld.sync.aligned;"
    cells = np.zeros((128, 16), np.uint32)
    _, _, cells = run(text + body + load + stored(16, "%rd3"), laid_out(a), laid_out(b), cells)
    np.testing.assert_array_equal(cells.view(np.float32), 2 * (a.astype("f8") @ b.astype("f8").T))


@pytest.mark.parametrize("without", ["", "before", "after"])
def test_a_copy_and_a_product_of_another_thread(without: str) -> None:
    """Fences on both sides of a barrier make them one pipeline, which no commit has to divide."""
    random = np.random.default_rng(6)
    a, b = (random.integers(-4, 5, (n, 16)).astype(np.float16) for n in (128, 16))
    text = copied(0, 1024, "%rd1") + copied(4096, 128, "%rd2")
    body = product("f16", 128, 16, 0, 1).replace("FIRST", "[%r18]")
    copy = "add.u32 %r18, %r15, 64; @%p6 tcgen05.cp.cta_group::1.128x256b [%r18], %rd11;"
    fences = [f"tcgen05.fence::{side}_thread_sync;" for side in ("before", "after")]
    between = f"{fences[0]} bar.sync 0; {fences[1]} setp.eq.u32 %p6, %r1, 32;"
    if without:
        between = between.replace(f"tcgen05.fence::{without}_thread_sync;", "")
    body = body.replace("setp.eq.u32 %p5", f"{copy} {between} setp.eq.u32 %p5")
    load = f"{AWAIT} tcgen05.ld.sync.aligned.32x32b.x16.b32 {vector(16)}, [%r16]; tcgen05.wait::ld.sync.aligned;"
    text = f"{BEGIN}{text}{body}{load}{stored(16, '%rd3')}{END}"
    cells = np.zeros((128, 16), np.uint32)
    report, arrays = launch(text, laid_out(a), laid_out(b), cells, block=128)
    codes = {found.code for found in report.findings}
    if without:
        assert "HLO0796" in codes
        return
    assert not codes
    np.testing.assert_array_equal(
        arrays[2].view(np.float32), 2 * (a.astype("f8") @ b.astype("f8").T)
    )


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "at"),
    [
        ("32x128b.warpx4", 32, 4, lambda r: [r, r + 32, r + 64, r + 96]),
        ("64x128b.warpx2::02_13", 64, 4, lambda r: [r, r + 64]),
        (
            "64x128b.warpx2::01_23",
            64,
            4,
            lambda r: [r % 32 + 64 * (r // 32), r % 32 + 64 * (r // 32) + 32],
        ),
        ("128x128b", 128, 4, lambda r: [r]),
        ("128x256b", 128, 8, lambda r: [r]),
    ],
)
def test_copies(shape: str, rows: int, columns: int, at: Any) -> None:
    words = np.arange(rows * columns, dtype=np.uint32).reshape(rows, columns)
    pieces = words.reshape(rows // 8, 8, columns // 4, 4).transpose(0, 2, 1, 3)
    step = 8 << 16 | 8 * (columns // 4) << 32 | 1 << 46
    fill = "\n".join(f"mov.u32 %v{n}, 0;" for n in range(columns))
    text = f"{copied(0, rows * columns, '%rd1')} fence.proxy.async; bar.sync 0;"
    text += f"mov.u32 %r4, tile; cvt.u64.u32 %rd10, %r4; shr.u64 %rd10, %rd10, 4; or.b64 %rd11, %rd10, {step};"
    text += f"@%p6 tcgen05.cp.cta_group::1.{shape} [%r15], %rd11; {AWAIT} {fill}"
    text += f"tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {vector(columns)}, [%r16]; tcgen05.wait::ld.sync.aligned;"
    cells = np.zeros((128, columns), np.uint32)
    data = np.ascontiguousarray(pieces).reshape(-1)
    _, _, cells = run(text + stored(columns, "%rd3"), data, NONE, cells)
    for row in range(rows):
        for lane in at(row):
            assert cells[lane].tolist() == words[row].tolist()
