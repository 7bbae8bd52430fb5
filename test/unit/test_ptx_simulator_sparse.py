"""`mma.sp`: products of a sparse A against numpy, of all shapes and types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_kernels import launch

LANE = np.arange(32)
TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 16),
    "bf16": (ml_dtypes.bfloat16, 16),
    "tf32": (np.float32, 32),
    "s8": (np.int8, 8),
    "u8": (np.uint8, 8),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "s4": (np.int8, 4),
}
CASES = [
    *(("f16", "f32", 16, n) for n in range(4)),
    *(("f16", "f16", 32, n) for n in range(2)),
    *(("bf16", "f32", 32, 1), ("tf32", "f32", 8, 2), ("tf32", "f32", 16, 1)),
    *(("s8", "s32", 32, 1), ("u8", "s32", 64, 0), ("e4m3", "f32", 64, 0)),
    *(("s4", "s32", 64, 1), ("s4", "s32", 128, 0)),
]


def packed(rows: Any, width: int) -> Any:
    """Rows of numbers as words of 32 bits."""
    if width == 4:
        low, high = rows[:, 0::2] & 15, rows[:, 1::2] & 15
        rows = (low | high << 4).astype(np.uint8)
    return np.ascontiguousarray(rows).view(np.uint32)


def fragment(words: Any, *, rows: int) -> Any:
    """Registers of lanes: of A with 16 rows, of B with 8 columns."""
    count = words.shape[1] // 4 * (rows // 8)
    found = np.zeros((32, count), np.uint32)
    for n in range(count):
        row, word = (LANE // 4 + n % 2 * 8, n // 2) if rows == 16 else (LANE // 4, n)
        found[:, n] = words[row, LANE % 4 + 4 * word]
    return found


def metadata(indices: Any, selector: int, *, by_halves: bool) -> Any:
    """A word a lane, of indices of 16 rows × groups × 2."""
    nibbles = (indices[..., 0] | indices[..., 1] << 2).astype(np.uint64)
    per_word = 4 if by_halves else 8
    parts = nibbles.reshape(16, -1, per_word)
    parts = (parts << (4 * np.arange(per_word)).astype(np.uint64)).sum(axis=2)
    if by_halves:
        words = parts[:8] | parts[8:] << np.uint64(16)
    else:
        words = np.stack([parts[:8], parts[8:]], axis=2).reshape(8, -1)
    found = np.full((8, 4), 0xFFFFFFFF, np.uint32)
    threads = words.shape[1]
    found[:, selector * threads : (selector + 1) * threads] = words
    return found.reshape(32)


def run(
    name: str, to: str, depth: int, selector: int, word: str, flip: bool
) -> tuple[Any, Any, Any]:
    dtype, width = TYPES[name]
    random = np.random.default_rng(depth + selector)
    low = 0 if name == "u8" else -4
    slots, unit = (2, 1) if width == 32 else (4, 2 if width == 4 else 1)
    groups = depth // (slots * unit)
    order = np.stack([random.permutation(slots) for _ in range(16 * groups)])
    chosen = np.sort(order[:, : slots // 2], axis=1)
    if flip:
        chosen = chosen[:, ::-1]
    held = random.integers(low, 5, (16 * groups, slots // 2, unit))
    whole = np.zeros((16 * groups, slots, unit), np.int64)
    np.put_along_axis(whole, chosen[..., None], held, axis=1)
    if width == 32:
        indices = np.stack([2 * chosen[:, 0], 2 * chosen[:, 0] + 1], axis=1)
    else:
        indices = chosen
    a = packed(held.reshape(16, -1).astype(dtype), width)
    b = random.integers(low, 5, (8, depth))
    registers = [fragment(a, rows=16), fragment(packed(b.astype(dtype), width), rows=8)]
    e = metadata(indices.reshape(16, groups, 2), selector, by_halves=width >= 16)
    counts = [r.shape[1] for r in registers]
    sums = 2 if to == "f16" else 4
    names = [
        [f"%{x}{n}" for n in range(k)] for x, k in (("d", sums), ("a", counts[0]), ("b", counts[1]))
    ]
    vectors = ["{" + ", ".join(one) + "}" for one in names]
    zero = "0f00000000" if to == "f32" else "0"
    file = "f32" if to == "f32" else "b32"
    text = f""".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 w)
{{ .reg .b32 %t, %e, %a<8>, %b<8>; .reg .{file} %d<4>, %c<4>; .reg .b64 %p<8>; mov.u32 %t, %tid.x;
ld.param.u64 %p0, [x]; ld.param.u64 %p1, [y]; ld.param.u64 %p2, [z]; ld.param.u64 %p3, [w];
mul.wide.u32 %p4, %t, 4; add.u64 %p4, %p4, %p2; ld.global.u32 %e, [%p4];
mul.wide.u32 %p4, %t, {4 * counts[0]}; add.u64 %p4, %p4, %p0;
mul.wide.u32 %p5, %t, {4 * counts[1]}; add.u64 %p5, %p5, %p1;
"""
    for pointer, one in (("%p4", names[1]), ("%p5", names[2])):
        text += "".join(f"ld.global.u32 {r}, [{pointer}+{4 * n}];\n" for n, r in enumerate(one))
    text += "".join(f"mov.{file} %c{n}, {zero};\n" for n in range(sums))
    c = vectors[0].replace("%d", "%c")
    operands = ", ".join((*vectors, c, "%e", str(selector)))
    text += f"mma.{word}.sync.aligned.m16n8k{depth}.row.col.{to}.{name}.{name}.{to} {operands};\n"
    text += f"mul.wide.u32 %p6, %t, {4 * sums}; add.u64 %p6, %p6, %p3;\n"
    text += "".join(f"st.global.{file} [%p6+{4 * n}], %d{n};\n" for n in range(sums)) + "ret; }"
    report, arrays = launch(text, *registers, e, np.zeros((32, sums), np.uint32))
    view = arrays[-1].view({"f32": np.float32, "s32": np.int32, "f16": np.float16}[to])
    got = np.zeros((16, 8))
    for n in range(4):
        got[LANE // 4 + n // 2 * 8, LANE % 4 * 2 + n % 2] = view[:, n]
    return report, got, whole.reshape(16, depth) @ b.T


@pytest.mark.parametrize(("name", "to", "depth", "selector"), CASES)
def test_products(name: str, to: str, depth: int, selector: int) -> None:
    report, got, expected = run(name, to, depth, selector, "sp::ordered_metadata", flip=False)
    assert not [str(found) for found in report.findings]
    np.testing.assert_array_equal(got, expected)


def test_indices_that_do_not_ascend() -> None:
    report, got, expected = run("f16", "f32", 16, 0, "sp", flip=True)
    assert not report.findings
    np.testing.assert_array_equal(got, expected)
    report, _, _ = run("f16", "f32", 16, 0, "sp::ordered_metadata", flip=True)
    assert [found.code for found in report.findings] == ["HLO0786"]
