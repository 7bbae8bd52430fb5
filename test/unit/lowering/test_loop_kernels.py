"""Kernels of single instructions and small fusions, run as machine code, against the interpreter."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.lowering import target
from mlirhlo.lowering.hlo_to_loops.kernels import computed, outputs_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]


def run(module: mlirhlo.Module, arguments: list[Array], like: Array) -> Array:
    """Result of a module that is one kernel, from machine code."""
    entry = module.hlo.entry
    kernel = computed("kernel", outputs_of(entry.root.output), [p.output for p in entry.parameters])
    loops = ModuleOp([kernel])
    loops.verify()
    code = convert_to_llvm(loops)
    code.verify()
    text = print_llvm(code)
    library = Library([compile_object(text)], ["kernel"], externals(text))
    result = np.full(like.shape, 77).astype(like.dtype)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arguments) + 1))(
        library.address("kernel")
    )
    function(*[a.ctypes.data for a in arguments], result.ctypes.data)
    return result


def draw(rng: np.random.Generator, text: str) -> Array:
    """Numbers of all sizes for a parameter `f32[2,3]`, with the special ones among them."""
    shape = mlirhlo.parse(f"ENTRY e {{ ROOT p = {text} parameter(0) }}").hlo.entry.root.shape
    dtype: Any = shape.element_type.dtype
    size = shape.dimensions
    if dtype == np.bool_:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wild = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
        tame = rng.integers(-4 if info.min else 0, 12, size).astype(dtype)
        return np.where(rng.random(size) < 0.5, wild, tame)
    values = rng.normal(size=size) * 10.0 ** rng.integers(-3, 12, size)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5, -2.5])
    values = np.where(rng.random(size) < 0.2, rng.choice(special, size), values)
    if dtype.kind == "c":
        values = values + 1j * rng.normal(size=size)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


INSTRUCTIONS = [
    *(
        f"{t}[67] {op}({t}[67] x, {t}[67] y)"
        for t in ("f32", "f64", "f16", "bf16", "s32", "u8", "s64", "u16")
        for op in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
    ),
    *(
        f"{t}[67] {op}({t}[67] x, {t}[67] y)"
        for t in ("s32", "u8", "s64", "u16", "s8", "s4", "u4")
        for op in (
            *("remainder", "and", "or", "xor", "shift-left", "shift-right-logical"),
            *("shift-right-arithmetic", "power"),
        )
    ),
    *(
        f"{t}[3,21] {op}({t}[3,21] x)"
        for t in ("f32", "f64", "bf16")
        for op in (
            *("negate", "abs", "sign", "floor", "ceil", "round-nearest-afz"),
            *("round-nearest-even", "sqrt"),
        )
    ),
    *(
        f"{t}[67] {op}({t}[67] x)"
        for t in ("s32", "u8", "s4")
        for op in ("negate", "abs", "sign", "not", "popcnt", "count-leading-zeros")
        if t != "u8" or op not in ("abs", "sign")
    ),
    *(
        f"pred[67] compare({t}[67] x, {t}[67] y), direction={d}"
        for t in ("f32", "f16", "s8", "u32", "pred")
        for d in ("EQ", "NE", "LT", "LE", "GT", "GE")
    ),
    "pred[67] compare(f32[67] x, f32[67] y), direction=LT, type=TOTALORDER",
    *(
        f"{to}[67] convert({t}[67] x)"
        for t in ("f32", "f64", "f16", "bf16", "s8", "u32", "s64", "u64", "pred", "s4")
        for to in ("f32", "f64", "f16", "bf16", "s8", "u8", "s32", "u64", "pred", "u4")
    ),
    "f32[67] select(pred[67] p, f32[67] x, f32[67] y)",
    "f32[67] clamp(f32[] a, f32[67] x, f32[] b)",
    "u8[67] clamp(u8[67] a, u8[67] x, u8[67] b)",
    "pred[67] is-finite(bf16[67] x)",
    "s32[67] bitcast-convert(f32[67] x)",
    "f32[5,33] transpose(f32[33,5] x), dimensions={1,0}",
    "c64[33,5] transpose(c64[5,33] x), dimensions={1,0}",
    "f32[6,10,33] broadcast(f32[10] x), dimensions={1}",
    "f32[60,33] reshape(f32[6,10,33] x)",
    "f32[330,6] reshape(f32[60,33] x)",
    "pred[6,330] reshape(pred[60,33] x)",
    "f32[30,20] slice(f32[60,41] x), slice={[0:60:2],[1:41:2]}",
    "f32[60,41] reverse(f32[60,41] x), dimensions={0,1}",
    "f32[7,34] pad(f32[5,17] x, f32[] y), padding=1_1x-1_2_1",
    "f32[3,30] pad(f32[3,10] x, f32[] y), padding=0_0x2_0_2",
    "f32[5,40] concatenate(f32[5,17] x, f32[5,0] z, f32[5,23] y), dimensions={1}",
    "f32[22,17] concatenate(f32[5,17] x, f32[17,17] y), dimensions={0}",
    "s64[3,50] iota(), iota_dimension=1",
    "bf16[3,50] iota(), iota_dimension=0",
    "f32[3,7] dynamic-slice(f32[9,20] x, u8[] a, u8[] b), dynamic_slice_sizes={3,7}",
    "f32[9,20] dynamic-update-slice(f32[9,20] x, f32[3,7] u, s64[] a, s64[] b)",
    (
        "f32[4,20] gather(f32[9,20] x, s32[4,1] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,20}"
    ),
    (
        "f32[4,3] gather(f32[9,20] x, u8[4,2] i), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,3}"
    ),
    "f32[5,40] dot(s8[5,7] x, s8[7,40] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}".replace(
        "f32", "s32"
    ),
    "pred[5,40] dot(pred[5,7] x, pred[7,40] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    (
        "s32[2,5,4] dot(s32[5,2,7,3] x, s32[2,7,3,4] y), lhs_batch_dims={1}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2,3}, rhs_contracting_dims={1,2}"
    ),
    (
        "s32[2,5,20] convolution(s32[2,9,9] x, s32[3,9,20] y), window={size=3 stride=2 pad=1_1}, "
        "dim_labels=b0f_0io->b0f"
    ),
    (
        "s32[1,9,6] convolution(s32[1,5,4] x, s32[3,2,6] y), "
        "window={size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f, "
        "feature_group_count=2"
    ),
    "f32[] add(f32[] x, f32[] y)",
    "f32[0,3] negate(f32[0,3] x)",
]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_an_instruction_gives_what_the_interpreter_gives(instruction: str) -> None:
    """Bit for bit, but for the bits of NaNs."""
    module = mlirhlo.parse(instruction)
    module.verify()
    rng = np.random.default_rng(len(instruction))
    arguments = [draw(rng, str(p.shape).split("{")[0]) for p in module.hlo.entry.parameters]
    expected = np.asarray(module(*arguments), order="C")
    actual = run(module, arguments, expected)
    if actual.tobytes() != expected.tobytes():
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        assert expected.dtype.kind not in "iub", (actual, expected)
        np.testing.assert_array_equal(actual.astype(wide), expected.astype(wide))
        numbers = ~np.isnan(expected.astype(wide))
        assert np.array_equal(
            np.signbit(actual[numbers].real.astype(float)),
            np.signbit(expected[numbers].real.astype(float)),
        )


FOLDS = [
    ("s32[33]", "s32[5,33]", "s32[]", "reduce(x, y), dimensions={0}, to_apply=f"),
    ("s32[5]", "s32[5,33]", "s32[]", "reduce(x, y), dimensions={1}, to_apply=f"),
    ("s32[]", "s32[5,33]", "s32[]", "reduce(x, y), dimensions={0,1}, to_apply=f"),
    (
        "s32[5,34]",
        "s32[5,33]",
        "s32[]",
        "reduce-window(x, y), window={size=2x3 pad=0_1x2_1 rhs_dilate=1x1}, to_apply=f",
    ),
    (
        "s32[3,29]",
        "s32[5,17]",
        "s32[]",
        "reduce-window(x, y), window={size=3x3 rhs_dilate=1x2 lhs_dilate=1x2}, to_apply=f",
    ),
]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("result", "x", "y", "fold"), FOLDS)
@pytest.mark.parametrize("combine", ["add(a, b)", "subtract(a, b)", "maximum(b, a)"])
def test_folds_give_what_the_interpreter_gives(
    result: str, x: str, y: str, fold: str, combine: str
) -> None:
    module = mlirhlo.parse(
        f"f {{\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] {combine}\n}}\n"
        f"ENTRY e {{\n  x = {x} parameter(0)\n  y = {y} parameter(1)\n  ROOT r = {result} {fold}\n}}\n"
    )
    module.verify()
    rng = np.random.default_rng(1)
    arguments = [draw(rng, x), draw(rng, y)]
    expected = np.asarray(module(*arguments), order="C")
    assert np.array_equal(run(module, arguments, expected), expected)


def test_layouts_are_followed() -> None:
    module = mlirhlo.parse(
        "ENTRY e {\n  x = f32[3,40]{0,1} parameter(0)\n  y = f32[3,40]{1,0} parameter(1)\n"
        "  ROOT r = f32[3,40]{1,0} add(x, y)\n}\n"
    )
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 40)).astype("f4")
    actual = run(module, [np.ascontiguousarray(x.T), y], y)
    assert np.array_equal(actual, x + y)


def asks_ahead(module: mlirhlo.Module, *, equal_nan: bool) -> str:
    """Whether the kernel of the whole module asks for memory ahead, where L2 is tiny, and computes the same;
    the kernel."""
    rng = np.random.default_rng(3)
    arguments = [draw(rng, p.shape) for p in module.hlo.entry.parameters]
    with np.errstate(all="ignore"):
        expected = np.asarray(module(*arguments))
    with target.using(replace(target.current(), l2_bytes=64)):
        entry = module.hlo.entry
        kernel = computed("k", outputs_of(entry.root.output), [p.output for p in entry.parameters])
        actual = run(module, arguments, expected)
    assert "memref.prefetch" in str(kernel)
    assert np.array_equal(actual, expected, equal_nan=equal_nan)
    return str(kernel)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16", "pred", "c64", "s4"])
@pytest.mark.parametrize("sizes", ["4099", "37,64", "5,8,33"])
def test_operands_that_no_cache_holds_are_asked_for(element: str, sizes: str) -> None:
    """Ahead, beyond the end too, of every element type."""
    type_ = f"{element}[{sizes}]"
    opcode = "xor" if element in ("pred", "s4") else "add"
    module = mlirhlo.parse(f"{type_} {opcode}({type_} x, {type_} y)")
    asks_ahead(module, equal_nan=opcode == "add")


GATHERED = """ENTRY e {{
  x = {element}[9,{line}] parameter(0)
  i = s32[{numbers}] parameter(1)
  y = {result} parameter(2)
  g = {result} gather(x, i), offset_dims={{{last}}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim={last}, slice_sizes={{1,{line}}}
  ROOT r = {result} {opcode}(g, y)
}}
"""


def gathered(element: str, numbers: str, line: int) -> mlirhlo.Module:
    """Lines of an array by numbers that fall outside of it too."""
    opcode, last = "xor" if element in ("pred", "s8") else "add", numbers.count(",") + 1
    result = f"{element}[{numbers},{line}]"
    return mlirhlo.parse(GATHERED.format(**locals()))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16", "pred", "c64", "s8"])
@pytest.mark.parametrize(("numbers", "line"), [("40", 256), ("3", 300), ("4,7", 270), ("2", 1000)])
def test_gathered_lines_are_asked_for(element: str, numbers: str, line: int) -> None:
    """Some lines ahead, the last one again at the end."""
    kernel = asks_ahead(gathered(element, numbers, line), equal_nan=True)
    assert "locality<2>" in kernel  # the other operand goes into the first cache


def test_short_gathered_lines_are_not_asked_for() -> None:
    with target.using(replace(target.current(), l2_bytes=64)):
        kernels = []
        for line in (63, 64):
            entry = gathered("f32", "40", line).hlo.entry
            (g,) = (op for op in entry.instructions if op.opcode.name == "gather")
            operands = [p.output for p in entry.parameters]
            kernels.append(str(computed("k", outputs_of(g.output), operands)))
    assert ["memref.prefetch" in kernel for kernel in kernels] == [False, True]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16", "pred", "c64"])
@pytest.mark.parametrize(
    "sizes", [(2, 70, 17, 64), (3, 64, 20, 72), (1, 300, 9, 1000), (2, 200, 50, 16)]
)
def test_lines_that_stand_in_another_order_are_asked_for(
    element: str, sizes: tuple[int, ...]
) -> None:
    """A block ahead, beyond the end too; of short lines all vectors go together."""
    a, b, c, d = sizes
    turned = f"{element}[{a},{c},{b},{d}]"
    module = mlirhlo.parse(f"""ENTRY e {{
  x = {element}[{a},{b},{c},{d}] parameter(0)
  y = {turned} parameter(1)
  t = {turned} transpose(x), dimensions={{0,2,1,3}}
  ROOT r = {turned} {"xor" if element == "pred" else "add"}(t, y)
}}
""")
    asks_ahead(module, equal_nan=element != "pred")
