# ruff: noqa: E501  a kernel stands on one line
"""Warps and blocks on the PTX simulator: exchanges, votes, atomics, barriers, calls, matrices, figures."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_kernels import launch

RANDOM = np.random.default_rng(2)
REGISTERS = """
.reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<8>; .reg .f64 %fd<16>; .reg .b16 %h<4>;
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2; ld.global.u32 %r2, [%rd3];
"""


def run(
    body: str, x: Any, block: int = 32, before: str = "", size: int = 0, **options: Any
) -> np.ndarray[Any, Any]:
    """Runs a body with x[tid] in %r2; what it leaves in %r3 is the result."""
    text = f"{before}.visible .entry k(.param .u64 x, .param .u64 y)\n{{{REGISTERS}{body}\nst.global.u32 [%rd4], %r3; ret; }}"
    y = np.zeros(size or block, np.uint32)
    report, (_, result) = launch(text, np.ascontiguousarray(x), y, block=block, **options)
    assert not report.findings, report.findings[0]
    return result


LANE = np.arange(32)


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffles(seed: int) -> None:
    x = RANDOM.integers(0, 2**32, 64).astype(np.uint32)
    rows = x.reshape(2, 32)
    down = np.where(LANE + 3 < 32, np.minimum(LANE + 3, 31), LANE)
    cases = {
        "bfly.b32 %r3, %r2, 5, 31": LANE ^ 5,
        "idx.b32 %r3, %r2, 7, 31": np.full(32, 7),
        "down.b32 %r3, %r2, 3, 31": down,
        "up.b32 %r3, %r2, 2, 0": np.maximum(LANE - 2, LANE * (LANE < 2)),
        "bfly.b32 %r3, %r2, 1, 0x181f": LANE ^ 1,
        "idx.b32 %r3, %r2, 3, 0x181f": LANE // 8 * 8 + 3,
    }
    for text, source in cases.items():
        found = run(f"shfl.sync.{text}, -1;", x, 64, seed=seed)
        np.testing.assert_array_equal(found.reshape(2, 32), rows[:, source])
    valid = run("shfl.sync.down.b32 %r3|%p1, %r2, 3, 31, -1; selp.b32 %r3, 1, 0, %p1;", x, 64)
    np.testing.assert_array_equal(valid.reshape(2, 32), np.tile(LANE + 3 < 32, (2, 1)))


def test_votes_matches_and_sums() -> None:
    x = RANDOM.integers(0, 5, 32).astype(np.uint32)
    bits = sum(1 << lane for lane in range(32) if x[lane] > 2)
    test = "setp.gt.u32 %p1, %r2, 2;"
    assert (run(f"{test} vote.sync.ballot.b32 %r3, %p1, -1;", x) == bits).all()
    for mode, expected in (("any", True), ("all", False), ("uni", False)):
        found = run(f"{test} vote.sync.{mode}.pred %p2, %p1, -1; selp.b32 %r3, 1, 0, %p2;", x)
        assert (found == expected).all()
    same = [sum(1 << i for i in range(32) if x[i] == x[lane]) for lane in range(32)]
    np.testing.assert_array_equal(run("match.any.sync.b32 %r3, %r2, -1;", x), same)
    assert (run("match.all.sync.b32 %r3|%p1, %r2, -1;", x) == 0).all()
    for name, function in (("add", np.sum), ("min", np.min), ("max", np.max)):
        assert (run(f"redux.sync.{name}.u32 %r3, %r2, -1;", x) == function(x)).all()
    found = run("elect.sync %r5|%p1, -1; selp.b32 %r3, 1, 0, %p1;", x)
    np.testing.assert_array_equal(found, LANE == 0)
    half = (
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; activemask.b32 %r3; bra B; A: activemask.b32 %r3; B:"
    )
    np.testing.assert_array_equal(run(half, x), np.where(LANE < 16, 0xFFFF, 0xFFFF0000))


def test_branches_meet_again() -> None:
    x = RANDOM.integers(0, 40, 96).astype(np.uint32)
    body = "mov.u32 %r3, 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; L: add.u32 %r3, %r3, %r2; sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L; E: activemask.b32 %r4; setp.eq.u32 %p2, %r4, -1; @!%p2 trap;"
    np.testing.assert_array_equal(run(body, x, 96), [sum(range(int(one) + 1)) for one in x])
    table = "T: .branchtargets A, B, C; rem.u32 %r4, %r2, 3; brx.idx %r4, T; A: mov.u32 %r3, 10; bra E; B: mov.u32 %r3, 20; bra E; C: mov.u32 %r3, 30; E:"
    np.testing.assert_array_equal(run(table, x, 96), 10 * (x % 3 + 1))


CALLS = """
.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) plus(.param .b32 a)
{ .reg .b32 %r<4>; .reg .pred %p; ld.param.u32 %r1, [a]; setp.gt.u32 %p, %r1, 20; @%p bra L;
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r1; call (q0), twice, (p0); ld.param.b32 %r1, [q0]; }
L: add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
.global .u64 table[2] = {twice, plus};
"""


def test_calls() -> None:
    x = RANDOM.integers(0, 40, 64).astype(np.uint32)
    plus = np.where(x > 20, x, 2 * x) + 1
    direct = "{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), plus, (p0); ld.param.b32 %r3, [q0]; }"
    np.testing.assert_array_equal(run(direct, x, 64, CALLS), plus)
    indirect = """and.b32 %r5, %r1, 1; mul.wide.u32 %rd5, %r5, 8; mov.u64 %rd6, table; add.s64 %rd6, %rd6, %rd5; ld.global.u64 %rd7, [%rd6];
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (q0), %rd7, (p0), P; ld.param.b32 %r3, [q0]; }"""
    np.testing.assert_array_equal(
        run(indirect, x, 64, CALLS), np.where(np.arange(64) & 1, plus, 2 * x)
    )


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics(space: str) -> None:
    x = RANDOM.integers(0, 8, 64).astype(np.uint32)
    if space == "global":
        at = "mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd5, %rd2; add.s64 %rd5, %rd5, 256;"
        body = f"{at} atom.global.add.u32 %r3, [%rd5], 1;"
    else:
        at = "shl.b32 %r4, %r1, 2; mov.u32 %r5, t; add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r1, 8; @%p1 st.shared.u32 [%r4], 0; bar.sync 0; shl.b32 %r4, %r2, 2; add.u32 %r4, %r4, %r5;"
        body = f".shared .align 4 .b32 t[8]; {at} atom.shared.add.u32 %r3, [%r4], 1;"
    found = run(body, x, 64, size=128)
    for value in range(8):
        assert sorted(found[:64][x == value]) == list(range(int((x == value).sum())))
    if space == "global":
        np.testing.assert_array_equal(found[64:72], np.bincount(x, minlength=8))
    swap = "L: ld.volatile.global.u32 %r4, [%rd2+256]; add.u32 %r5, %r4, %r2; atom.global.cas.b32 %r6, [%rd2+256], %r4, %r5; setp.ne.u32 %p1, %r6, %r4; @%p1 bra L; mov.u32 %r3, 0;"
    assert run(swap, x, 64, size=65)[64] == x.sum()


@pytest.mark.parametrize(("kind", "operation"), [("f32", "add"), ("s32", "add"), ("s32", "max")])
def test_many_atomics_on_few_locations(kind: str, operation: str) -> None:
    """They act as one after the other, in the order of lanes."""
    x = (RANDOM.normal(size=256) * 100).astype({"f32": np.float32, "s32": np.int32}[kind])
    body = f"and.b32 %r5, %r1, 1; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd5, %rd5, %rd2; atom.global.{operation}.{kind} %r3, [%rd5+1024], %r2;"
    found = run(body, x.view(np.uint32), 256, size=258).view(x.dtype)
    memory = np.zeros(2, x.dtype)
    for lane in range(256):
        assert found[lane] == memory[lane & 1]
        one = x[lane : lane + 1]
        at = slice(lane & 1, (lane & 1) + 1)
        memory[at] = memory[at] + one if operation == "add" else np.maximum(memory[at], one)
    np.testing.assert_array_equal(found[256:], memory)


def test_voting_barriers_and_named_ones() -> None:
    x = RANDOM.integers(0, 2, 64).astype(np.uint32)
    body = "setp.eq.u32 %p1, %r2, 1; barrier.sync 3; bar.red.popc.u32 %r3, 0, %p1;"
    assert (run(body, x, 64) == x.sum()).all()
    # The first warp produces, the second waits.
    body = ".shared .align 4 .b32 t[32]; and.b32 %r4, %r1, 31; shl.b32 %r4, %r4, 2; mov.u32 %r5, t; add.u32 %r4, %r4, %r5; setp.lt.u32 %p1, %r1, 32; mov.u32 %r3, 0; @!%p1 bra W; st.shared.u32 [%r4], %r2; bar.arrive 1, 64; bra E; W: bar.sync 1, 64; ld.shared.u32 %r3, [%r4]; E:"
    np.testing.assert_array_equal(run(body, x, 64)[32:], x[:32])


@pytest.mark.parametrize(
    ("shape", "kinds", "accumulate"),
    [
        ((16, 8, 16), ("f16", "f16"), "f32"),
        ((16, 8, 8), ("bf16", "bf16"), "f32"),
        ((16, 8, 8), ("tf32", "tf32"), "f32"),
        ((16, 8, 32), ("s8", "u8"), "s32"),
        ((8, 8, 16), ("s8", "s8"), "s32"),
        ((16, 8, 32), ("e4m3", "e5m2"), "f32"),
        ((8, 8, 4), ("f64", "f64"), "f64"),
    ],
)
def test_products(shape: tuple[int, int, int], kinds: tuple[str, str], accumulate: str) -> None:
    """Fragments are filled lane by lane as the ISA's figures show them, independently of the simulator."""
    dtypes: dict[str, Any] = {
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "tf32": np.float32,
        "s8": np.int8,
        "u8": np.uint8,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "f64": np.float64,
    }
    m, n, k = shape
    a = RANDOM.integers(-8 if kinds[0] != "u8" else 0, 8, (m, k)).astype(dtypes[kinds[0]])
    b = RANDOM.integers(-8 if kinds[1] != "u8" else 0, 8, (k, n)).astype(dtypes[kinds[1]])
    word = 8 if accumulate == "f64" else 4
    per_word = word // a.dtype.itemsize
    count_a, count_b, count_c = a.nbytes // 32 // word, b.nbytes // 32 // word, m * n // 32
    left = np.zeros((32, count_a, per_word), a.dtype)
    right = np.zeros((32, count_b, per_word), b.dtype)
    for lane in range(32):
        group, member = lane // 4, lane % 4
        for i in range(count_a * per_word):
            register, part = divmod(i, per_word)
            row = group + 8 * (register % 2 if m == 16 else 0)
            column = (
                member * per_word + part + (register // 2 if m == 16 else register) * 4 * per_word
            )
            left[lane, register, part] = a[row, column]
        for i in range(count_b * per_word):
            register, part = divmod(i, per_word)
            right[lane, register, part] = b[
                member * per_word + part + register * 4 * per_word, group
            ]
    unit = f"b{word * 8}"
    names = {"a": count_a, "b": count_b, "d": count_c}
    registers = "".join(f".reg .{unit} %{one}<{count}>;" for one, count in names.items())
    kind = {"f32": "f32", "s32": "s32", "f64": "f64"}[accumulate]
    loads = "".join(
        f"mad.wide.u32 %rd{10 + number}, %r1, {count * word}, %rd{number};"
        + "".join(
            f"ld.global.{unit} %{one}{i}, [%rd{10 + number}+{i * word}];" for i in range(count)
        )
        for number, (one, count) in enumerate((("a", count_a), ("b", count_b)), 1)
    )
    zero = "".join(f"mov.{unit} %d{i}, 0;" for i in range(count_c))
    listed = {
        one: "{" + ", ".join(f"%{one}{i}" for i in range(count)) + "}"
        for one, count in names.items()
    }
    stores = f"mad.wide.u32 %rd13, %r1, {count_c * word}, %rd3;" + "".join(
        f"st.global.{unit} [%rd13+{i * word}], %d{i};" for i in range(count_c)
    )
    text = f""".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z) {{
.reg .b32 %r<4>; .reg .b64 %rd<20>; {registers} mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [z]; {loads} {zero}
mma.sync.aligned.m{m}n{n}k{k}.row.col.{kind}.{kinds[0]}.{kinds[1]}.{kind} {listed["d"]}, {listed["a"]}, {listed["b"]}, {listed["d"]};
{stores} ret; }}"""
    out = np.zeros(
        (32, count_c), {"f32": np.float32, "s32": np.int32, "f64": np.float64}[accumulate]
    )
    _, (_, _, fragments) = launch(text, left.reshape(32, -1), right.reshape(32, -1), out)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for lane in range(32):
        for i in range(count_c):
            assert fragments[lane, i] == expected[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]


@pytest.mark.parametrize(("kind", "accumulate"), [("f16", "f32"), ("f16", "f16"), ("s8", "s32")])
def test_products_of_matrices_without_layout(kind: str, accumulate: str) -> None:
    a = RANDOM.integers(-4, 4, (16, 16)).astype({"f16": np.float16, "s8": np.int8}[kind])
    b = RANDOM.integers(-4, 4, (16, 16)).astype(a.dtype)
    count = 8 if kind == "f16" else 2
    unit = 4 if accumulate == "f16" else 8
    register = {"f32": "f32", "f16": "b32", "s32": "b32"}[accumulate]
    types = f"{accumulate}.{accumulate}" if kind == "f16" else "s32.s8.s8.s32"
    names = {
        one: "{" + ", ".join(f"%{one}{i}" for i in range(size)) + "}"
        for one, size in (("a", count), ("b", count), ("d", unit))
    }
    text = f""".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z) {{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b32 %a<{count}>; .reg .b32 %b<{count}>; .reg .{register} %d<{unit}>;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [z]; mov.u32 %r1, 16;
wmma.load.a.sync.aligned.row.m16n16k16.global.{kind} {names["a"]}, [%rd1], %r1; wmma.load.b.sync.aligned.col.m16n16k16.global.{kind} {names["b"]}, [%rd2], %r1;
wmma.load.c.sync.aligned.row.m16n16k16.global.{accumulate} {names["d"]}, [%rd3], %r1;
wmma.mma.sync.aligned.row.col.m16n16k16.{types} {names["d"]}, {names["a"]}, {names["b"]}, {names["d"]};
wmma.store.d.sync.aligned.row.m16n16k16.global.{accumulate} [%rd3], {names["d"]}, %r1; ret; }}"""
    out = np.ones((16, 16), {"f32": np.float32, "f16": np.float16, "s32": np.int32}[accumulate])
    report, (_, _, found) = launch(text, a, b, out)
    assert not report.findings
    np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64).T + 1)


def test_matrices_are_loaded_and_stored() -> None:
    x = RANDOM.integers(0, 2**16, (4, 8, 8)).astype(np.uint16)
    body = """.shared .align 16 .b8 t[512]; mov.u32 %r4, t; shl.b32 %r5, %r1, 4; add.u32 %r6, %r4, %r5;
mad.wide.u32 %rd5, %r1, 16, %rd1; ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd5]; st.shared.v4.u32 [%r6], {{%r10, %r11, %r12, %r13}}; bar.sync 0;
ldmatrix.sync.aligned.m8n8.x4{0}.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r6]; bar.sync 0;
stmatrix.sync.aligned.m8n8.x4{1}.shared.b16 [%r6], {{%r20, %r21, %r22, %r23}}; bar.sync 0;
ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r6]; mad.wide.u32 %rd6, %r1, 16, %rd2; st.global.v4.u32 [%rd6+128], {{%r10, %r11, %r12, %r13}}; mov.u32 %r3, 0;"""
    for load, store, expected in (
        ("", "", x),
        (".trans", "", x.transpose(0, 2, 1)),
        ("", ".trans", x.transpose(0, 2, 1)),
    ):
        found = run(body.format(load, store), x.view(np.uint32).reshape(-1), size=160)[32:]
        np.testing.assert_array_equal(found.view(np.uint16).reshape(4, 8, 8), expected)


def test_figures_count_sectors_and_conflicts() -> None:
    kernel = """.visible .entry k(.param .u64 x) {{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 16 .b8 t[8192];
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; mad.wide.u32 %rd2, %r1, {step}, %rd1; ld.global.u32 %r2, [%rd2];
mul.lo.u32 %r3, %r1, {pitch}; mov.u32 %r4, t; add.u32 %r4, %r4, %r3; st.shared.{width} [%r4], {value}; ret; }}"""
    x = np.zeros(4096, np.uint32)
    for step, sectors in ((4, 4), (8, 8), (32, 32), (64, 32)):
        report, _ = launch(kernel.format(step=step, pitch=4, width="u32", value="%r2"), x)
        assert (report.figures.global_memory.sectors, report.figures.global_memory.requests) == (
            sectors,
            1,
        )
    for pitch, conflicts in ((4, 0), (8, 1), (128, 31), (132, 0), (64, 15)):
        report, _ = launch(kernel.format(step=4, pitch=pitch, width="u32", value="%r2"), x)
        assert report.figures.shared_memory.bank_conflicts == conflicts
    report, _ = launch(
        kernel.format(step=4, pitch=16, width="v4.u32", value="{%r2, %r2, %r2, %r2}"), x
    )
    assert report.figures.shared_memory.bank_conflicts == 0
