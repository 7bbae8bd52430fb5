"""`emit_pipeline` with any number of buffers, in any memory, and with buffers of the caller's."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic import tpu_compiler

HBM = pl.BlockSpec(memory_space=pl.ANY)
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def both(call: Any, *arrays: Any) -> Any:
    """The result, which is the same on the simulator in each of its ways and in machine code."""
    return same(call.lower(*arrays), *arrays)


def same(kernel: Any, *arrays: Any) -> Any:
    """`both` of a lowered kernel."""
    found = kernel(*arrays)
    for mode in ("eager", "random"):
        options: Any = pl.InterpretParams(dma_execution_mode=mode)
        np.testing.assert_array_equal(kernel(*arrays, options=options), found)
    np.testing.assert_array_equal(kernel(*arrays, platform="cpu"), found)
    assert kernel.fallbacks == 0
    return found


BLOCKS = [[2] * 5, [0, 0, 2, 3, 3, 3, 1, 7, 6, 6], [3, 3, 7, 6], [0, 1, 2, 3, 4]]


def gathered(steps: int, count: int, looks_ahead: bool) -> Any:
    """A kernel that adds one to blocks by their numbers."""

    def kernel(x_hbm: Any, places: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] + 1

        mode = pl.Buffered(count, use_lookahead=looks_ahead)
        taken = pl.BlockSpec((8, 128), lambda i: (places[i], 0), pipeline_mode=mode)
        pltpu.emit_pipeline(body, grid=(steps,), in_specs=[taken], out_specs=[ROWS])(x_hbm, o_hbm)

    shape = pl.ShapeDtypeStruct((8 * steps, 128), np.int32)
    call = pl.pallas_call(kernel, shape, in_specs=[HBM, SMEM], out_specs=HBM)
    return call.lower(numbers(64, 128), numbers(steps))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("looks_ahead", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_any_number_of_buffers(blocks: list[int], count: int, looks_ahead: bool) -> None:
    x, kernel = numbers(64, 128), gathered(len(blocks), count, looks_ahead)
    found = same(kernel, x, np.array(blocks, np.int32))
    np.testing.assert_array_equal(found, x.reshape(8, 8, 128)[blocks].reshape(-1, 128) + 1)
    assert f"memref<{count}x8x128xi32" in kernel.as_text()


@pytest.mark.oracle
@pytest.mark.slow
def test_the_tpu_compiler_takes_any_number_of_buffers() -> None:
    if not tpu_compiler.is_available():
        pytest.skip("jax and libtpu are not installed")
    kernels = [gathered(5, count, ahead) for count in (1, 2, 3, 4) for ahead in (False, True)]
    verdicts = tpu_compiler.compile_all([kernel.job("v5e") for kernel in kernels])
    assert [verdict.message for verdict in verdicts if not verdict.is_accepted] == []


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("blocks", [[0, 0, 2, 2, 2, 5, 3, 3], [5] * 8], ids=str)
def test_outputs(blocks: list[int], count: int) -> None:
    x = numbers(64, 128)

    def kernel(x_hbm: Any, places: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...]

        out = pl.BlockSpec((8, 128), lambda i: (places[i], 0), pipeline_mode=pl.Buffered(count))
        pltpu.emit_pipeline(body, grid=(8,), in_specs=ROWS, out_specs=out)(x_hbm, o_hbm)

    call = pl.pallas_call(kernel, x, in_specs=[HBM, SMEM], out_specs=HBM)
    found = both(call, x, np.array(blocks, np.int32)).reshape(8, 8, 128)
    for at, block in enumerate(blocks):
        if block not in blocks[at + 1 :]:
            np.testing.assert_array_equal(found[block], x[8 * at : 8 * at + 8])


def test_fewer_steps_than_buffers() -> None:
    x = numbers(16, 128)

    def kernel(x_hbm: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...]

        four = pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(4))
        pltpu.emit_pipeline(body, grid=(2,), in_specs=four, out_specs=ROWS)(x_hbm, o_hbm)

    np.testing.assert_array_equal(
        both(pl.pallas_call(kernel, x, in_specs=[HBM], out_specs=HBM), x), x
    )


def test_arrays_that_are_where_blocks_have_to_be() -> None:
    """They are not copied; blocks in HBM are for copies of the body's own."""
    x = numbers(32, 128)

    def kernel(x_ref: Any, o_hbm: Any) -> None:
        def body(x_block: Any, o_block: Any) -> None:
            at = pl.program_id(0) * 8
            pltpu.sync_copy(x_block, o_block.at[pl.ds(at, 8)])

        out = pl.BlockSpec((32, 128), lambda i: (0, 0), memory_space=pltpu.HBM)
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[ROWS], out_specs=[out])(x_ref, o_hbm)

    call = pl.pallas_call(kernel, x, out_specs=HBM)
    np.testing.assert_array_equal(both(call, x), x)
    assert "alloca" not in call.lower(x).as_text()


def test_blocks_in_smem() -> None:
    x, factors = numbers(32, 128), numbers(4, 128)

    def kernel(s_hbm: Any, x_hbm: Any, o_hbm: Any) -> None:
        def body(s_ref: Any, x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * s_ref[1]

        scalars = pl.BlockSpec((None, 128), lambda i: (i, 0), memory_space=pltpu.SMEM)
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[scalars, ROWS], out_specs=[ROWS])(
            s_hbm, x_hbm, o_hbm
        )

    call = pl.pallas_call(kernel, x, in_specs=[HBM, HBM], out_specs=HBM)
    want = (x.reshape(4, 8, 128) * factors[:, 1, None, None]).reshape(32, 128)
    np.testing.assert_array_equal(both(call, factors, x), want)


def test_an_array_that_is_one_block_has_one_buffer() -> None:
    x, y = numbers(32, 128), numbers(8, 128)

    def kernel(x_hbm: Any, y_hbm: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
            assert y_ref.shape == (8, 128)
            o_ref[...] = x_ref[...] + y_ref[...]

        specs = [
            pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
            pl.BlockSpec((8, 128), lambda i, j: (j, 0)),
        ]
        pltpu.emit_pipeline(body, grid=(4, 1), in_specs=specs, out_specs=[specs[0]])(
            x_hbm, y_hbm, o_hbm
        )

    call = pl.pallas_call(kernel, x, in_specs=[HBM, HBM], out_specs=HBM)
    np.testing.assert_array_equal(both(call, x, y), x + np.tile(y, (4, 1)))
    text = call.lower(x, y).as_text()
    assert text.count("memref<2x8x128xi32, #tpu.memory_space<vmem>>\n") == 2
    assert text.count("memref.alloca() : memref<8x128xi32") == 1


def test_buffers_of_one_dimension_lie_side_by_side() -> None:
    x = numbers(512)

    def kernel(x_hbm: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] + 1

        three = pl.BlockSpec((128,), lambda i: (i,), pipeline_mode=pl.Buffered(3))
        two = pl.BlockSpec((128,), lambda i: (i,))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=three, out_specs=two)(x_hbm, o_hbm)

    call = pl.pallas_call(kernel, x, in_specs=[HBM], out_specs=HBM)
    np.testing.assert_array_equal(both(call, x), x + 1)
    assert "memref<384xi32" in call.lower(x).as_text()


def test_buffers_of_the_callers() -> None:
    """Given as scratch, in and out: sums go on where they were."""
    x = numbers(32, 128)
    into = pl.BlockSpec((8, 128), lambda i, j: (i, 0))

    def kernel(x_hbm: Any, start: Any, o_hbm: Any, own: Any, sums: Any, after: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] += x_ref[...]

        after[0] = 7
        pltpu.sync_copy(start, o_hbm)
        pltpu.emit_pipeline(body, grid=(4, 2))(x_hbm, o_hbm, allocations=[own, sums])

    scratch = [
        pltpu.BufferedRef.input(into, np.int32, 3),
        pltpu.BufferedRef.input_output(into, np.int32),
        pltpu.SMEM((1,), np.int32),
    ]
    call = pl.pallas_call(kernel, x, in_specs=[HBM, HBM], out_specs=HBM, scratch_shapes=scratch)
    np.testing.assert_array_equal(both(call, x, x + 5), 3 * x + 5)
    assert "%after" in call.lower(x, x).as_text()


def test_shared_buffers_and_what_the_body_does_not_see() -> None:
    x = numbers(32, 128)

    def kernel(x_hbm: Any, unseen: Any, o_hbm: Any, calls: Any) -> None:
        def body(x_ref: Any, nothing: Any, o_ref: Any) -> None:
            assert nothing is None
            o_ref[...] = x_ref[...] + calls[0]

        def prologue() -> None:
            calls[0] = calls[0] + 1

        calls[0] = 0
        pipeline, make = pltpu.emit_pipeline_with_allocations(
            body, grid=(4,), in_specs=[ROWS, pl.no_block_spec], out_specs=[ROWS]
        )

        @partial(pl.run_scoped, buffers=make(x_hbm, unseen, o_hbm))
        def _(buffers: Any) -> None:
            assert buffers[1] is None
            for _ in range(2):
                pipeline(x_hbm, unseen, o_hbm, allocations=buffers, body_prologue=prologue)

    call = pl.pallas_call(
        kernel, x, in_specs=[HBM, HBM], out_specs=HBM, scratch_shapes=[pltpu.SMEM((1,), np.int32)]
    )
    want = x + np.repeat(np.arange(5, 9, dtype=np.int32), 8)[:, None]
    np.testing.assert_array_equal(both(call, x, x), want)


def test_what_a_cut_block_lacks_is_no_zero() -> None:
    """A sum over the end of an array that nobody masked shows it."""
    x = np.ones((20, 128), np.float32)

    def kernel(x_hbm: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.zeros((1, 128), np.float32)

        def body(x_ref: Any) -> None:
            o_ref[...] += x_ref[...].sum(axis=0, keepdims=True)

        pltpu.emit_pipeline(body, grid=(3,), in_specs=[ROWS])(x_hbm)

    call = pl.pallas_call(kernel, pl.ShapeDtypeStruct((1, 128), np.float32), in_specs=[HBM])
    assert np.isnan(both(call, x)).all()
    call.lower(x).check("v5e")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize("grid", [(5,), (3, 5), (1,), (6, 5)], ids=str)
def test_cores_share_what_they_do_not_divide(grid: tuple[int, ...], cores: int) -> None:
    """The longest parallel dimension, if none is a multiple; the first cores have a step more."""

    def kernel(o_hbm: Any, count: Any) -> None:
        count[...] = jnp.zeros((8, 128), np.int32)

        def body() -> None:
            count[...] += 1

        pltpu.emit_pipeline(
            body, grid=grid, core_axis_name="core", dimension_semantics=("parallel",) * len(grid)
        )()
        pltpu.sync_copy(count, o_hbm.at[pl.axis_index("core")])

    call = pl.kernel(
        kernel,
        pl.ShapeDtypeStruct((cores, 8, 128), np.int32),
        mesh=pltpu.create_tensorcore_mesh("core", num_cores=cores),
        scratch_types=[pltpu.VMEM((8, 128), np.int32)],
        interpret=pl.InterpretParams(num_cores_or_threads=cores),
    )
    even = [dim for dim, size in enumerate(grid) if size % cores == 0]
    dim = even[0] if even else grid.index(max(grid))
    rest = int(np.prod(grid)) // grid[dim]
    want = [(grid[dim] // cores + (core < grid[dim] % cores)) * rest for core in range(cores)]
    assert call()[:, 0, 0].tolist() == want


WRONG = {
    "3 buffers of an output": {"out_specs": [(3, "vmem")]},
    "0 buffers": {"in_specs": [(0, "vmem")]},
    "buffers of a pipeline in semaphore_mem": {"in_specs": [(2, "semaphore_mem")]},
    "each of its sizes": {"grid": (0,)},
}


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("message", WRONG)
def test_what_there_cannot_be(message: str) -> None:
    stated: Any = WRONG[message]

    def spec(count: int = 2, space: str = "vmem") -> Any:
        return pl.BlockSpec(
            (8, 128),
            lambda i: (i, 0),
            memory_space=pl.MemorySpace(space),
            pipeline_mode=pl.Buffered(count),
        )

    def kernel(x_hbm: Any, o_hbm: Any) -> None:
        pltpu.emit_pipeline(
            lambda x, o: None,
            grid=stated.get("grid", (4,)),
            in_specs=[spec(*one) for one in stated.get("in_specs", [()])],
            out_specs=[spec(*one) for one in stated.get("out_specs", [()])],
        )(x_hbm, o_hbm)

    with pytest.raises(HloError, match=message) as caught:
        pl.pallas_call(kernel, numbers(32, 128), in_specs=[HBM], out_specs=HBM).lower(
            numbers(32, 128)
        )
    assert caught.value.code == "HLO0726"
