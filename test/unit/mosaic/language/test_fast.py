"""Kernels through the CPU compiler, against the simulator."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.mosaic.language.test_authored import ALL

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel
from mlirhlo.mosaic import kernels
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.fast import program_of
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.interpreter.memory import poison

QUICK = set(sorted(ALL)[::5]) | {"flash_attention", "taken", "packed_rows", "random_bits"}
REST = (pytest.mark.slow, pytest.mark.sweep)


def arrays(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def close(got: Any, want: Any) -> None:
    """Whole numbers are the same, floats but for rounding."""
    for a, b in zip(arrays(got), arrays(want), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            limit = 1e-2 if a.dtype.itemsize < 4 else 1e-4
            wide = (x.astype(np.float64) for x in (a, b))
            np.testing.assert_allclose(*wide, rtol=limit, atol=limit)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=REST) for n in sorted(ALL)],
)
def test_as_the_simulator_says(name: str) -> None:
    case = ALL[name]
    kernel = case.call.lower(*case.inputs)
    want = kernel(*case.inputs)
    before = kernel.fallbacks
    got = kernel(*case.inputs, platform="cpu")
    assert kernel.fallbacks - before == (name == "messages"), "only the simulator prints"
    close(got, want)


def test_what_has_no_machine_code_is_said_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    x = np.arange(4 * 8 * 128, dtype=np.float32).reshape(4, 8, 128)
    kernel = kernels.ring_all_gather.lower(x[0], mesh={"x": 4})
    with pytest.raises(HloError) as caught:
        kernel.to_program()
    assert caught.value.code == "HLO0738"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert np.array_equal(kernel(x, platform="cpu")[0], x)
    assert kernel.fallbacks == 2
    assert [record.getMessage().count("HLO0738") for record in caplog.records] == [1]


def test_a_block_of_an_operand_is_the_kernels_own() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        x_ref[...] = x_ref[...] * 2.0
        o_ref[...] = x_ref[...]

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = np.ones((16, 128), np.float32)
    call = pl.kernel_call(
        body, pl.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,), in_specs=[spec], out_specs=spec
    )
    assert np.array_equal(call(x), x * 2)
    assert np.array_equal(replace(call, platform="cpu")(x), x * 2)
    assert np.array_equal(x, np.ones_like(x))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("semantics", [("parallel", "arbitrary"), ("parallel", "parallel"), None])
def test_blocks_follow_their_dimensions_of_the_grid(semantics: Any) -> None:
    """A result's block that stays while an inner dimension goes on, with sums kept in it and in scratch."""

    def body(x_ref: Any, o_ref: Any, total_ref: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o_ref[...] = x_ref[...] * 0.0
            total_ref[...] = x_ref[...] * 0.0

        total_ref[...] += x_ref[...]
        o_ref[...] += total_ref[...]

    x = np.random.default_rng(0).normal(size=(24, 8, 128)).astype(np.float32)
    call = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct((64, 128), np.float32),
        grid=(8, 3),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i, j: (3 * i + j, 0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), np.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
    )
    sums = np.cumsum(x.reshape(8, 3, 8, 128), 1).sum(1).reshape(64, 128)
    # A block that several rounds share keeps them in order, whatever the dimension is called.
    np.testing.assert_allclose(replace(call, platform="cpu")(x), sums, rtol=1e-4, atol=1e-4)


def test_products_round_their_operands_where_the_simulator_does() -> None:
    case = ALL["product"]
    kernel = case.call.lower(*case.inputs)
    rounds = pl.InterpretParams(rounds_matmul_operands=True)
    exact = kernel(*case.inputs, platform="cpu")
    rounded = kernel(*case.inputs, platform="cpu", options=rounds)
    assert np.abs(exact - rounded).max() > 1e-4
    np.testing.assert_allclose(rounded, kernel(*case.inputs, options=rounds), rtol=1e-4, atol=1e-4)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32, np.uint8])
@pytest.mark.parametrize(
    ("index_map", "is_first", "needs_none"),
    [
        (lambda i, j: (j, i), lambda i, j: i >= 0, True),
        (lambda i, j: (i // 2, j), lambda i, j: i % 2 == 0, False),
        (lambda i, j: (0, j), lambda i, j: i == 0, False),
        (lambda i, j: (i, 0), lambda i, j: j == 0, False),
    ],
)
def test_results_that_blocks_fill_begin_without_contents(
    index_map: Any, is_first: Any, needs_none: bool, dtype: Any
) -> None:
    """Where they do not, or may not, what nobody writes is as the simulator has it, and blocks that stay
    keep theirs."""

    def body(x_ref: Any, o_ref: Any) -> None:
        @pl.when(is_first(pl.program_id(0), pl.program_id(1)))
        def _() -> None:
            o_ref[...] = x_ref[...]

        @pl.when(~is_first(pl.program_id(0), pl.program_id(1)))
        def _() -> None:
            o_ref[...] = (
                o_ref[...] | x_ref[...] if o_ref.dtype.kind in "iu" else x_ref[...] + o_ref[...]
            )

    x = (4 * np.random.default_rng(0).normal(size=(96, 384))).astype(np.int32).astype(dtype)
    call = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(3, 3),
        in_specs=[pl.BlockSpec((32, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((32, 128), index_map),
    )
    assert ("AllocateBuffer" in call.lower(x).to_program()) == needs_none
    # Kernels have no unsigned types.
    held = np.dtype(x.dtype.name.removeprefix("u"))
    want = np.full(x.shape, poison(held), held).view(dtype)
    for i in range(3):
        for j in range(3):
            row, column = (32 * index_map(i, j)[0], 128 * index_map(i, j)[1])
            block = want[row : row + 32, column : column + 128]
            new = x[32 * i : 32 * i + 32, 128 * j : 128 * j + 128]
            if is_first(i, j):
                block[...] = new
            else:
                block[...] = block | new if x.dtype.kind in "iu" else block + new
    got = replace(call, platform="cpu")(x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_arrays_are_rounded_in_front_of_the_grid() -> None:
    q, k = (np.ones((1, 1, 256, 128), np.float32) for _ in range(2))
    text = kernels.flash_attention.lower(q, k, k).to_program(rounds_matmul_operands=True)
    front, rounds, inside = text.split("stablehlo.while")
    # Blocks of keys and values are read again, those of queries once; weights are computed.
    assert [part.count("stablehlo.convert") for part in (front, rounds, inside)] == [2, 1, 1]


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_what_is_multiplied_often_is_laid_out_in_pairs(dtype: Any) -> None:
    """Along the depth: keys along their rows, values along their columns."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, 512, 128)).astype(dtype) for _ in range(3))
    kernel = kernels.flash_attention.lower(q, k[:, :1], v[:, :1], block_q=64, causal=True)
    text = kernel.to_program(rounds_matmul_operands=True, multiplies_pairs=True)
    assert text.count("contracting_dims = [1, 2] x [0, 2]") == 2
    assert text.partition("stablehlo.while")[0].count("ui32") > 4
    given = [a.astype(np.float32) for a in (q, k[:, :1], v[:, :1])]
    scores = np.einsum("bhmd,bhnd->bhmn", given[0], np.repeat(given[1], 2, 1)) / np.sqrt(128)
    scores = np.where(np.tri(512, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    want = np.einsum("bhmn,bhnd->bhmd", weights, np.repeat(given[2], 2, 1))
    module = mlirhlo.parse(text)
    for run in (module, mlirhlo.compile(module, cached=False)):
        found = np.asarray(run(q, k[:, :1], v[:, :1])).astype(np.float32)
        np.testing.assert_allclose(found, want, rtol=0.02, atol=0.02)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("last", "branches"), [(3, 1), (2, 2), (9, 2)])
def test_what_the_first_and_last_round_do_alone_stands_around_the_loop(
    last: int, branches: int
) -> None:
    def body(x_ref: pl.Ref, o_ref: pl.Ref, sum_ref: pl.Ref) -> None:
        at = pl.program_id(1)

        @pl.when(at == 0)
        def _() -> None:
            sum_ref[...] = np.float32(1)

        sum_ref[...] = sum_ref[...] + x_ref[...]

        @pl.when(at != 0)
        def _() -> None:
            sum_ref[...] = sum_ref[...] * np.float32(2)

        @pl.when(at == last)
        def _() -> None:
            o_ref[...] = sum_ref[...]

    x = np.arange(16 * 512, dtype=np.float32).reshape(16, 512)
    kernel = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct((16, 128), np.float32),
        grid=(2, 4),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), np.float32)],
    ).lower(x)
    assert kernel.to_program().count("stablehlo.if") == branches
    if last < 4:  # else nothing is stored
        np.testing.assert_array_equal(kernel(x, platform="cpu"), kernel(x))


def test_a_bound_of_the_grid_may_be_an_operand() -> None:
    rows = pl.BlockSpec((8, 128), lambda i, j: (i, 0))

    def body(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o_ref[...] = x_ref[...]

        o_ref[...] += pl.num_programs(0) + pl.program_id(0)

    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    kernel = pl.kernel_call(body, x, grid=(np.array(3), 2), in_specs=[rows], out_specs=rows).lower(
        x
    )
    for steps in (np.int32(3), np.int32(0), np.int32(4)):
        got = kernel(steps, x, platform="cpu")
        assert kernel.fallbacks == 0
        done = 8 * int(steps)
        more = 2 * (steps + np.arange(32)[:, None] // 8)
        assert np.array_equal(got[:done], (x + more)[:done])


STORE = """module @k {
  func.func @main(%x: REF, %y: WIDE) attributes {tpu.core_type = #tpu.core_type<tc>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    return
  }
}
""".replace("REF", "memref<16x128xi32, #tpu.memory_space<vmem>>").replace(
    "WIDE", "memref<32x128xi32, #tpu.memory_space<vmem>>"
)
LOAD = (
    "%v = vector.load %x[%c0, %c0] : memref<16x128xi32, #tpu.memory_space<vmem>>, "
    "vector<16x128xi32>\n    "
)
PUT = (
    "\n    vector.store %r, %y[%c0, %c0] : memref<32x128xi32, #tpu.memory_space<vmem>>, "
    "vector<16x128xi32>"
)
VEC = "vector<16x128xi32>"
BODIES = {
    "packed bytes": (
        f"%w = tpu.pack_elementwise %v, %v, %v, %v {{target_type = i8}} : {VEC}, {VEC}, {VEC}, {VEC} "
        f"-> {VEC}\n    %r = tpu.unpack_elementwise %w, 2 {{source_type = i8}} : {VEC} -> {VEC}{PUT}"
    ),
    "packed halves": (
        f"%f = arith.sitofp %v : {VEC} to vector<16x128xf32>\n"
        "    %w = tpu.pack_elementwise %f, %f {target_type = bf16} : vector<16x128xf32>, "
        f"vector<16x128xf32> -> {VEC}\n    %u = tpu.unpack_elementwise %w, 1 {{source_type = bf16}} "
        f": {VEC} -> vector<16x128xf32>\n    %r = arith.fptosi %u : vector<16x128xf32> to {VEC}{PUT}"
    ),
    "numbers along two dimensions": (
        f"%i = tpu.iota {{dimensions = array<i32: 1, 0>}} : {VEC}\n"
        f"    %r = arith.addi %i, %v : {VEC}{PUT}"
    ),
    "every second row": (
        "tpu.strided_store %y[%c1, %c0], %v {strides = array<i32: 2, 1>} : "
        f"memref<32x128xi32, #tpu.memory_space<vmem>>, {VEC}"
    ),
    "a reference reshaped, and of narrow elements": (
        "%s = tpu.memref_reshape %y : memref<32x128xi32, #tpu.memory_space<vmem>> -> "
        "memref<2x16x128xi32, #tpu.memory_space<vmem>>\n"
        "    %t = tpu.memref_bitcast %s : memref<2x16x128xi32, #tpu.memory_space<vmem>> -> "
        "memref<2x32x128xbf16, #tpu.memory_space<vmem>>\n"
        f"    %b = tpu.bitcast %v : {VEC} -> vector<32x128xbf16>\n"
        "    %d = vector.shape_cast %b : vector<32x128xbf16> to vector<1x32x128xbf16>\n"
        "    vector.store %d, %t[%c1, %c0, %c0] : memref<2x32x128xbf16, #tpu.memory_space<vmem>>, "
        "vector<1x32x128xbf16>"
    ),
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", BODIES)
def test_operations_as_the_simulator_has_them(name: str) -> None:
    module = parse_kernel(STORE.replace("BODY", LOAD + BODIES[name]))
    x = np.random.default_rng(0).integers(-100, 100, (16, 128)).astype(np.int32)
    types = [((16, 128), "i32")], [((32, 128), "i32")]
    program = mlirhlo.compile(mlirhlo.parse(program_of(module, *types)))
    (want,) = Kernel(module).run([x], [((32, 128), np.dtype(np.int32))])
    got = np.asarray(program(x))
    # What nobody wrote is marked by the simulator, and zero in machine code.
    written = want != np.iinfo(np.int32).min
    assert written.sum() >= x.size
    assert np.array_equal(got[written], want[written])


def test_results_are_row_major() -> None:
    x = np.arange(4 * 8 * 128, dtype=np.float32).reshape(4, 8, 128)

    def turned(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...].transpose(1, 0, 2)

    call = pl.kernel_call(turned, pl.ShapeDtypeStruct((8, 4, 128), np.float32), platform="cpu")
    found = call(x)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, x.transpose(1, 0, 2))


def test_messages_are_told_on_the_cpu_too() -> None:
    case, told = ALL["messages"], list[list[str]]()
    for platform in ("interpreter", "cpu"):
        told.append([])
        options = pl.InterpretParams(log=told[-1].append)
        case.call.lower(*case.inputs)(*case.inputs, platform=platform, options=options)
    assert told[0] == told[1]
    assert "the first element is" in told[0][0]


MAPS: dict[str, Any] = {
    "each": lambda i, j: (i, j),
    "halves": lambda i, j: (i // 2, j % 2),
    "shifted": lambda i, j: (i + 1, j),
    "backwards": lambda i, j: (3 - i, j),
    "products": lambda i, j: (i * j, 0),
    "constant": lambda i, j: (2, 0),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (4, 1), (300, 1)])
@pytest.mark.parametrize("is_result", [False, True])
def test_blocks_outside_of_their_array(name: str, grid: tuple[int, int], is_result: bool) -> None:
    """Both platforms refuse the same grids. The array has 3 x 2 blocks, the last row of them half."""
    x = np.ones((20, 256), np.float32)
    rows, one = pl.BlockSpec((8, 128), MAPS[name]), pl.BlockSpec((8, 128), lambda i, j: (0, 0))

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    specs = {"in_specs": [one if is_result else rows], "out_specs": rows if is_result else one}
    kernel = pl.kernel_call(
        body, pl.ShapeDtypeStruct(x.shape, np.float32), grid=grid, **specs
    ).lower(x)
    steps = [MAPS[name](i, j) for i in range(grid[0]) for j in range(grid[1])]
    is_outside = any(not (0 <= row < 3 and 0 <= column < 2) for row, column in steps)
    for platform in ("interpreter", "cpu"):
        try:
            kernel(x, platform=platform)
            found = ""
        except HloError as problem:
            found = problem.code
        assert (found == "HLO0732") == is_outside, (platform, found)
