"""Scatters and selections as machine code, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.interp.structured import run_kernel
from mlirhlo.lowering import target
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.structured import to_structured

pytest.importorskip("llvmlite")

ADD = "add { x = T[] parameter(0)\n y = T[] parameter(1)\n ROOT r = T[] add(x, y) }\n"
LAST = "last { x = T[] parameter(0)\n ROOT y = T[] parameter(1) }\n"
ODD = """odd { x = T[] parameter(0)
  y = T[] parameter(1)
  d = T[] subtract(x, y)
  ROOT r = T[] multiply(d, y) }
"""
ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"


def agree(text: str, *arguments: object) -> None:
    """Compiled without callbacks, and the interpreter's result; products of complex numbers nearly."""
    module = mlirhlo.parse(text)
    executable = mlirhlo.compile(module, cached=False)
    actual, expected = executable(*arguments), module(*arguments)
    assert not executable.callbacks
    many = isinstance(expected, tuple)
    for a, e in zip(actual if many else [actual], expected if many else [expected], strict=True):
        if a.dtype.kind == "c":
            np.testing.assert_allclose(a, e, 1e-5, 1e-5)
        else:
            np.testing.assert_array_equal(a, e)


def entry(operand: str, indices: str, updates: str, how: str, reducer: str, type_: str) -> str:
    """A module of one scatter."""
    body = {"add": ADD, "last": LAST, "odd": ODD}[reducer].replace("T[]", f"{type_}[]")
    return (
        f"HloModule m\n{body}ENTRY e {{\n  x = {operand} parameter(0)\n  i = {indices} parameter(1)\n"
        f"  u = {updates} parameter(2)\n"
        f"  ROOT r = {operand} scatter(x, i, u), {how}, to_apply={reducer}\n}}\n"
    )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("reducer", ["add", "last", "odd"])
@pytest.mark.parametrize("type_", ["f32", "bf16", "s8", "s4", "c64", "f64"])
def test_rows(type_: str, reducer: str) -> None:
    """Places that repeat, and some outside."""
    random = np.random.default_rng(3)
    text = entry(f"{type_}[9,70]", "s32[40,1]", f"{type_}[40,70]", ROWS, reducer, type_)
    module = mlirhlo.parse(text)
    arguments = list(make_fake_arguments(module.op, seed=1))
    arguments[1] = random.integers(-2, 11, (40, 1)).astype("i4")
    agree(text, *arguments)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("operand", "indices", "updates", "how"),
    [
        # Single elements.
        (
            "f32[50]",
            "s32[200]",
            "f32[200]",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        # Windows in front of the indices, and an index vector in the first dimension.
        (
            "f32[6,7,8]",
            "s64[2,5]",
            "f32[3,5,8]",
            (
                "update_window_dims={0,2}, inserted_window_dims={1},"
                " scatter_dims_to_operand_dims={0,1}, index_vector_dim=0"
            ),
        ),
        # Layouts that are not row-major.
        (
            "f32[16,20]{0,1}",
            "u8[30,1]{0,1}",
            "f32[30,20]{0,1}",
            ROWS,
        ),
        # Windows larger than single rows, moved in both dimensions.
        (
            "f32[16,40]",
            "u32[12,2]",
            "f32[12,2,20]",
            "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1",
        ),
        # Batching dimensions.
        (
            "f32[4,9,5]",
            "s32[4,3,1]",
            "f32[4,3,5]",
            (
                "update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0}, "
                "scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2"
            ),
        ),
        # Nothing to do.
        ("f32[4,5]", "s32[0,1]", "f32[0,5]", ROWS),
    ],
)
def test_modes(operand: str, indices: str, updates: str, how: str) -> None:
    text = entry(operand, indices, updates, how, "add", "f32")
    module = mlirhlo.parse(text)
    arguments = list(make_fake_arguments(module.op, seed=2))
    shape = np.asarray(arguments[1]).shape
    arguments[1] = (
        np.random.default_rng(5).integers(0, 8, shape).astype(np.asarray(arguments[1]).dtype)
    )
    agree(text, *arguments)


def test_columns_go_to_several_threads() -> None:
    from mlirhlo.runtime.threads import set_thread_count

    text = entry("f32[300,512]", "s32[999,1]", "f32[999,512]", ROWS, "add", "f32")
    random = np.random.default_rng(7)
    arguments = [
        random.standard_normal((300, 512)).astype("f4"),
        random.integers(0, 300, (999, 1)).astype("i4"),
        random.standard_normal((999, 512)).astype("f4"),
    ]
    try:
        set_thread_count(2)
        agree(text, *arguments)
    finally:
        set_thread_count(0)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "bf16", "s8", "s4", "pred", "c64", "f64"])
@pytest.mark.parametrize("sizes", ["300,700", "133,1023", "3,5"])
def test_what_no_cache_holds_is_copied_in_parts(type_: str, sizes: str) -> None:
    """Past the caches where the result begins with a line, as it does not when memory is given."""
    last = sizes.partition(",")[2]
    types = (f"{type_}[{sizes}]", "s32[40,1]", f"{type_}[40,{last}]")
    module = mlirhlo.parse(entry(*types, ROWS, "last", type_))
    arguments = list(make_fake_arguments(module.op, seed=1))
    expected = np.asarray(module(*arguments))
    with target.using(replace(target.current(), l2_bytes=1)):
        loops = str(lower(module.op).loops)
        executable = mlirhlo.compile(module, cached=False)
        checked = mlirhlo.compile(module, cached=False, debug=True)
    assert "nontemporal" in loops
    assert "memref.copy" in loops
    room = np.zeros(expected.size + 1, expected.dtype)[1:].reshape(expected.shape)
    for actual in (executable(*arguments), checked(*arguments), executable(*arguments, out=room)):
        np.testing.assert_array_equal(actual, expected)


def test_several_arrays() -> None:
    text = """HloModule m
swap { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  more = pred[] compare(c, a), direction=GT
  x = f32[] select(more, c, a)
  y = s32[] select(more, d, b)
  ROOT r = (f32[], s32[]) tuple(x, y) }
ENTRY e {
  x = f32[9] parameter(0)
  n = s32[9] parameter(1)
  i = s32[80,1] parameter(2)
  u = f32[80] parameter(3)
  v = s32[80] parameter(4)
  ROOT r = (f32[9], s32[9]) scatter(x, n, i, u, v), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=swap
}
"""
    module = mlirhlo.parse(text)
    arguments = list(make_fake_arguments(module.op, seed=3))
    arguments[2] = np.random.default_rng(9).integers(-1, 10, (80, 1)).astype("i4")
    agree(text, *arguments)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "s32", "bf16"])
@pytest.mark.parametrize(
    ("size", "source", "window"),
    [
        ("6,8", "3,4", "size=2x2 stride=2x2"),
        ("7,9", "3,4", "size=3x3 stride=2x2"),
        ("5,5", "5,5", "size=3x3 pad=1_1x1_1"),
        ("4,8", "0,4", "size=8x2 stride=2x2"),
        ("3,9,40", "3,4,40", "size=1x3x1 stride=1x2x1"),
        ("12,33", "3,33", "size=4x1 stride=4x1"),
        ("2,6,12", "2,3,12", "size=1x2x1 stride=1x2x1"),
        ("2,7,9,16", "2,4,5,16", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0"),
        ("2,8,8,17", "2,8,8,17", "size=1x2x2x1 pad=0_0x0_1x1_0x0_0"),
    ],
)
def test_select_and_scatter(type_: str, size: str, source: str, window: str) -> None:
    text = f"""HloModule m
{ADD.replace("T[]", f"{type_}[]")}
ge {{ x = {type_}[] parameter(0)
  y = {type_}[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=GE }}
ENTRY e {{
  x = {type_}[{size}] parameter(0)
  s = {type_}[{source}] parameter(1)
  z = {type_}[] parameter(2)
  ROOT r = {type_}[{size}] select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=add
}}
"""
    agree(text, *make_fake_arguments(mlirhlo.parse(text).op, seed=4))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("size", "source", "window", "together"),
    [
        ("8,40", "4,40", "size=2x1 stride=2x1", True),
        ("8,40", "8,20", "size=1x2 stride=1x2", False),
        ("8,3", "4,3", "size=2x1 stride=2x1", False),
    ],
)
def test_windows_beside_each_other_go_together(
    size: str, source: str, window: str, together: bool
) -> None:
    text = f"""HloModule m
{ADD.replace("T[]", "f32[]")}
ge {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=GE }}
ENTRY e {{
  x = f32[{size}] parameter(0)
  s = f32[{source}] parameter(1)
  z = f32[] parameter(2)
  ROOT r = f32[{size}] select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=add
}}
"""
    assert ("vector.store" in str(lower(mlirhlo.parse(text).op).loops)) == together


REDUCERS = ("add", "multiply", "maximum", "minimum")


def reduced(opcode: str, type_: str, sizes: tuple[int, int, int], *, is_sorted: bool) -> str:
    """A module of a scatter of rows by an opcode: rows, updates and elements of a row."""
    rows, updates, width = sizes
    how = ROWS + (", indices_are_sorted=true" if is_sorted else "")
    text = entry(
        f"{type_}[{rows},{width}]",
        f"s32[{updates},1]",
        f"{type_}[{updates},{width}]",
        how,
        "add",
        type_,
    )
    return text.replace(" add(x, y)", f" {opcode}(x, y)")


def specials(type_: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small numbers, and of floats zeros of both signs, infinities and NaN."""
    random = np.random.default_rng(seed)
    values = random.integers(-3, 4, shape).astype("f8")
    if type_[0] in "fbc":
        chosen = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        values = np.where(random.random(shape) < 0.2, chosen, values)
    return values


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("opcode", REDUCERS)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16", "s32", "s8"])
def test_rows_shorter_than_vectors(type_: str, opcode: str, is_sorted: bool) -> None:
    """Widths up to a vector and more; indices that repeat, lie outside and are in order or not; signs of zeros."""
    for width in (1, 2, 3, 5, 6, 7, 11, 15, 16, 19, 37):
        sizes = (7, 40, width)
        module = mlirhlo.parse(reduced(opcode, type_, sizes, is_sorted=is_sorted))
        executable = mlirhlo.compile(module, cached=False)
        x, _, u = make_fake_arguments(module.op, seed=1)
        x = specials(type_, (7, width), width).astype(np.asarray(x).dtype)
        u = specials(type_, (40, width), width + 50).astype(np.asarray(u).dtype)
        indices = np.random.default_rng(width).integers(-2, 9, (40, 1)).astype("i4")
        # In order or nearly: the promise changes no result.
        for i in (np.sort(indices, 0), indices) if is_sorted else (indices,):
            with np.errstate(all="ignore"):
                expected = module(x, i, u)
            actual, expected = (np.asarray(v, "f8") for v in (executable(x, i, u), expected))
            np.testing.assert_array_equal(actual, expected)
            # The interpreter's maximum does not tell zeros apart.
            if type_[0] in "fb" and opcode in ("add", "multiply"):
                zeros = expected == 0
                np.testing.assert_array_equal(
                    np.signbit(actual[zeros]), np.signbit(expected[zeros])
                )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "c64", "u16"])
def test_sorted_elements(type_: str) -> None:
    """Single elements, two dimensions of indices, and indices of rows all outside."""
    how = (
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=2, indices_are_sorted=true"
    )
    text = entry(f"{type_}[6]", "s32[5,30]", f"{type_}[5,30]", how, "add", type_)
    module = mlirhlo.parse(text)
    x, _, u = make_fake_arguments(module.op, seed=4)
    for low, high in ((0, 6), (-4, 9), (-4, 0)):
        indices = np.sort(np.random.default_rng(high).integers(low, high, (5, 30)), 1).astype("i4")
        agree(text, x, indices, u)


@pytest.mark.parametrize("layout", ["{2,1,0}", "{2,0,1}", "{1,0,2}", "{0,1,2}"])
def test_updates_combine_in_order_whatever_their_layout(layout: str) -> None:
    """Windows of two dimensions of start indices, which often meet."""
    how = (
        "update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=2"
    )
    text = ODD.replace("T[]", "s32[]") + (
        f"ENTRY e {{ o = s32[4,7] parameter(0)\n i = s32[5,9] parameter(1)\n"
        f" u = s32[5,9,7]{layout} parameter(2)\n"
        f" ROOT r = s32[4,7] scatter(o, i, u), {how}, to_apply=odd }}\n"
    )
    rng = np.random.default_rng(0)
    o, i, u = (rng.integers(0, 4, n).astype(np.int32) for n in ((4, 7), (5, 9), (5, 9, 7)))
    module = mlirhlo.parse(text)
    root = module.hlo.entry.root
    kernel = to_structured(root, module.hlo.by_name(), "kernel")
    (shape,) = (x for x in root.input_shapes if isinstance(x, ArrayShape) and x.rank == 3)
    (actual,) = run_kernel(kernel, [o, i, u.transpose(physical_order(shape))])
    np.testing.assert_array_equal(actual, module(o, i, u))
