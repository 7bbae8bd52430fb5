"""Faults planted in kernels: each is found, and both of its lines are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.interpreter import InterpretParams

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
ANY = pl.BlockSpec(memory_space=pl.ANY)
VMEM = pltpu.VMEM((32, 128), np.float32)
DMA = pltpu.SemaphoreType.DMA


def like(*shape: int) -> Any:
    return pl.ShapeDtypeStruct(shape, np.float32)


def lines_of(body: Callable[..., Any]) -> dict[str, int]:
    """The lines of a kernel that end in a mark: `# first`."""
    source, start = inspect.getsourcelines(body)
    return {
        line.rsplit("# ", 1)[1].strip(): start + number
        for number, line in enumerate(source)
        if "# " in line
    }


def fault(
    body: Any, *inputs: Any, interpret: InterpretParams | None = None, **call: Any
) -> HloError:
    call.setdefault("out_shape", like(32, 128))
    made = pl.kernel_call(body, interpret=interpret, **call)
    with pytest.raises(HloError) as caught:
        made(*inputs)
    return caught.value


def check(
    error: HloError, body: Any, code: str, place: str | None, note: str | None = None
) -> None:
    lines = lines_of(body)
    (found,) = error.diagnostics
    assert found.code == code, str(error)
    assert found.place is not None
    assert found.place.file == inspect.getsourcefile(body)
    if place is not None:
        assert found.place.line == lines[place], str(error)
    if note is not None:
        assert [at.line for _, at in found.notes if at is not None][:1] == [lines[note]], str(error)


@pytest.mark.parametrize("mode", ["on_wait", "eager", "random"])
def test_a_read_before_the_wait(mode: str) -> None:
    def body(x_ref, o_ref, buffer, sem):
        copy = pltpu.make_async_copy(x_ref, buffer, sem)
        copy.start()  # copy
        o_ref[...] = buffer[...]  # read
        copy.wait()

    error = fault(
        body,
        X,
        in_specs=[ANY],
        scratch_shapes=[VMEM, DMA],
        interpret=InterpretParams(dma_execution_mode=mode),
    )
    check(error, body, "HLO0730", "read", "copy")


def test_a_source_that_changes_under_a_copy() -> None:
    def body(x_ref, o_ref, buffer, sem):
        buffer[...] = x_ref[...]
        copy = pltpu.make_async_copy(buffer, o_ref, sem)
        copy.start()  # copy
        buffer[...] = x_ref[...] * 2.0  # write
        copy.wait()

    error = fault(body, X, out_specs=ANY, scratch_shapes=[VMEM, DMA])
    check(error, body, "HLO0730", "write", "copy")


def test_other_parts_of_a_buffer_are_no_race() -> None:
    def body(x_ref, o_ref, buffer, sem):
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, 16)], buffer.at[pl.ds(0, 16)], sem)
        copy.start()
        buffer[16:, :] = jnp.zeros((16, 128))
        copy.wait()
        o_ref[...] = buffer[...]

    call = pl.kernel_call(body, like(32, 128), in_specs=[ANY], scratch_shapes=[VMEM, DMA])
    assert np.array_equal(call(X), np.where(np.arange(32)[:, None] < 16, X, 0))


def test_a_copy_within_one_memory_is_no_race() -> None:
    def body(x_ref, o_ref, buffer, sem):
        pltpu.async_copy(x_ref.at[0:8], buffer.at[0], sem).wait()
        pltpu.async_copy(buffer.at[0], buffer.at[1], sem).wait()
        o_ref[...] = buffer[1]

    call = pl.kernel_call(
        body,
        like(8, 128),
        in_specs=[ANY],
        scratch_shapes=[pltpu.VMEM((2, 8, 128), np.float32), DMA],
    )
    np.testing.assert_array_equal(call(X), X[:8])


def test_a_copy_onto_itself() -> None:
    def body(x_ref, o_ref, buffer, sem):
        buffer[...] = x_ref[...]
        pltpu.async_copy(buffer.at[0:16], buffer.at[8:24], sem).wait()  # copy
        o_ref[...] = buffer[...]

    error = fault(body, X, scratch_shapes=[VMEM, DMA])
    check(error, body, "HLO0730", "copy", "copy")


def test_two_copies_into_one_buffer() -> None:
    def body(x_ref, o_ref, buffer, sems):
        one = pltpu.make_async_copy(x_ref, buffer, sems.at[0])
        other = pltpu.make_async_copy(x_ref, buffer, sems.at[1])
        one.start()  # one
        other.start()  # other
        one.wait()
        other.wait()
        o_ref[...] = buffer[...]

    error = fault(body, X, in_specs=[ANY], scratch_shapes=[VMEM, DMA((2,))])
    check(error, body, "HLO0730", "other", "one")


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_a_copy_that_is_never_waited_for(mode: str) -> None:
    def body(x_ref, o_ref, buffer, sem):
        pltpu.make_async_copy(x_ref, buffer, sem).start()  # copy
        o_ref[...] = jnp.zeros((32, 128))

    error = fault(
        body,
        X,
        in_specs=[ANY],
        scratch_shapes=[VMEM, DMA],
        interpret=InterpretParams(dma_execution_mode=mode),
    )
    check(error, body, "HLO0733", "copy")
    assert "kernel ends" in error.diagnostics[0].notes[0][0]


def test_a_signal_that_nobody_takes() -> None:
    def body(x_ref, o_ref, sem):
        o_ref[...] = x_ref[...]
        pl.semaphore_signal(sem, 2)
        pl.semaphore_wait(sem, 1)

    error = fault(body, X, scratch_shapes=[pltpu.SemaphoreType.REGULAR])
    assert error.code == "HLO0733"
    assert "the semaphore sem holds 1" in str(error)


@pytest.mark.parametrize(
    ("with_copy", "message"),
    [
        (True, "device 1 starts here .* the semaphore (sent of device 1|arrived of device 0)"),
        (False, "device 1 sends here .* the semaphore ready of device 0 holds 2"),
    ],
)
def test_what_is_left_over_names_device_and_semaphore(with_copy: bool, message: str) -> None:
    def body(x_ref, o_ref, sent, arrived, ready, buffer):
        o_ref[...] = x_ref[...]
        there = {"device_id": 0, "device_id_type": pltpu.DeviceIdType.LOGICAL}

        @pl.when(lax.axis_index("x") == 1)
        def _() -> None:
            if with_copy:
                pltpu.make_async_remote_copy(x_ref, buffer, sent, arrived, **there).start()
            else:
                pl.semaphore_signal(ready, 2, **there)

    scratch = [DMA, DMA, pltpu.SemaphoreType.REGULAR, pltpu.VMEM((8, 128), np.float32)]
    call = pl.kernel_call(body, like(8, 128), scratch_shapes=scratch, mesh={"x": 2})
    with pytest.raises(HloError, match=f"HLO0733.*{message}"):
        call(np.ones((2, 8, 128), np.float32))


def test_scratch_that_nobody_wrote() -> None:
    def body(x_ref, o_ref, acc_ref):
        acc_ref[...] += x_ref[...]  # read
        o_ref[...] = acc_ref[...]

    error = fault(body, X, scratch_shapes=[VMEM])
    check(error, body, "HLO0731", "read")
    assert "acc_ref" in str(error)


def test_memory_of_run_scoped_that_nobody_wrote() -> None:
    def body(x_ref, o_ref):
        def scoped(buffer):
            buffer[:16, :] = x_ref[:16, :]
            o_ref[...] = buffer[...]  # read

        pl.run_scoped(scoped, VMEM)  # allocated

    error = fault(body, X)
    check(error, body, "HLO0731", "read", "allocated")
    assert "2048 of 4096 elements" in str(error)


def test_an_output_block_begins_undefined_again() -> None:
    def body(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]  # read

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    error = fault(body, X, grid=(4,), in_specs=[spec], out_specs=spec)
    check(error, body, "HLO0731", "read")


def test_the_edge_of_a_ragged_block_may_be_read() -> None:
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2.0

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.kernel_call(body, like(30, 128), grid=(4,), in_specs=[spec], out_specs=spec)
    assert np.array_equal(call(X[:30]), X[:30] * 2)


def test_a_load_that_leaves_its_reference() -> None:
    def body(x_ref, o_ref):
        @pl.loop(0, 5)
        def _(i):
            o_ref[pl.ds(i * 8, 8), :] = x_ref[pl.ds(i * 8, 8), :]  # load

    error = fault(body, X)
    check(error, body, "HLO0702", "load")
    assert "elements 32 to 39 of dimension 0" in str(error)


def test_a_block_outside_of_its_array() -> None:
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    at = pl.BlockSpec((8, 128), lambda i: (i + 2, 0))
    error = fault(
        body, X, grid=(4,), in_specs=[at], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0))
    )
    assert error.code == "HLO0732"
    place = error.diagnostics[0].place
    assert place is not None
    assert "lambda i: (i + 2, 0)" in (place.source_line or "")


def test_a_grid_that_returns_to_a_block() -> None:
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    call: dict[str, Any] = {
        "out_shape": like(16, 128),
        "grid": (4,),
        "in_specs": [pl.BlockSpec((8, 128), lambda i: (i, 0))],
    }
    error = fault(body, X, out_specs=pl.BlockSpec((8, 128), lambda i: (i % 2, 0)), **call)
    assert error.code == "HLO0734"
    again = pl.BlockSpec(
        (8, 128), lambda i: (i % 2, 0), pipeline_mode=pl.Buffered(1, revisit="any")
    )
    assert np.array_equal(pl.kernel_call(body, out_specs=again, **call)(X), X[16:])


def test_a_wait_that_nothing_ends() -> None:
    def body(x_ref, o_ref, sem):
        pl.semaphore_signal(sem, 1)  # signal
        pl.semaphore_wait(sem, 2)  # wait
        o_ref[...] = x_ref[...]

    error = fault(body, X, scratch_shapes=[pltpu.SemaphoreType.REGULAR])
    check(error, body, "HLO0703", "wait", "signal")


def test_a_copy_that_is_waited_for_twice() -> None:
    def body(x_ref, o_ref, buffer, sem):
        copy = pltpu.async_copy(x_ref, buffer, sem)
        copy.wait()  # taken
        o_ref[...] = buffer[...]
        copy.wait()  # again

    error = fault(body, X, in_specs=[ANY], scratch_shapes=[VMEM, DMA])
    check(error, body, "HLO0703", "again", "taken")


@pytest.mark.parametrize("rows", [24, 12])
def test_one_wait_for_the_bytes_of_several_copies(rows: int) -> None:
    """It may state more rows than its reference has: it touches none of them."""

    def body(x: Any, count: Any, o: Any, block: Any, done: Any) -> None:
        for start in range(0, 24, 8):
            pltpu.make_async_copy(x.at[start : start + 8], o.at[start : start + 8], done).start()
        some = block.at[pl.ds(0, count[0])]
        pltpu.make_async_copy(some, some, done).wait()

    call = pl.kernel_call(
        body,
        in_specs=[ANY, pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=ANY,
        out_shape=like(24, 128),
        scratch_shapes=[pltpu.VMEM((8, 128), np.float32), DMA],
    )
    count = np.array([rows], np.int32)
    if rows == 24:
        np.testing.assert_array_equal(call(X[:24], count), X[:24])
    else:
        with pytest.raises(HloError, match="HLO0733"):
            call(X[:24], count)


def test_a_copy_of_more_than_there_is() -> None:
    def body(x: Any, count: Any, o: Any, done: Any) -> None:
        some = pl.ds(0, count[0])
        pltpu.async_copy(x.at[some], o.at[some], done).wait()

    specs = [ANY, pl.BlockSpec(memory_space=pltpu.SMEM)]
    call = pl.kernel_call(
        body, in_specs=specs, out_specs=ANY, out_shape=like(32, 128), scratch_shapes=[DMA]
    )
    with pytest.raises(HloError, match="HLO0702"):
        call(X, np.array([33], np.int32))


def test_a_wait_at_another_semaphore() -> None:
    def body(x_ref, o_ref, buffer, sems):
        pltpu.make_async_copy(x_ref, buffer, sems.at[0]).start()  # copy
        pltpu.make_async_copy(x_ref, buffer, sems.at[1]).wait()  # wait
        o_ref[...] = buffer[...]

    error = fault(body, X, in_specs=[ANY], scratch_shapes=[VMEM, DMA((2,))])
    check(error, body, "HLO0703", "wait", "copy")


@pytest.mark.parametrize("mode", ["on_wait", "eager", "random"])
def test_copies_that_share_a_semaphore_end_in_any_order(mode: str) -> None:
    """A wait for one of two of a size tells which of them nobody; the larger of two is told."""

    def body(x_ref, o_ref, buffer, sem):
        one = pltpu.async_copy(x_ref.at[0:8], buffer.at[0:8], sem)  # copy
        two = pltpu.async_copy(x_ref.at[8:16], buffer.at[8:16], sem)
        one.wait()  # wait
        o_ref[0:8] = buffer[0:8]  # read
        two.wait()
        o_ref[8:32] = x_ref[8:32]

    call: dict[str, Any] = {
        "scratch_shapes": [VMEM, DMA],
        "interpret": InterpretParams(dma_execution_mode=mode),
    }
    error = fault(body, X, **call)
    check(error, body, "HLO0730", "read", "copy")
    assert error.diagnostics[0].notes[1][0].startswith("this wait may be for another copy")
    assert "semaphore of its own" in str(error.diagnostics[0].help)

    def right(x_ref, o_ref, buffer, sem):
        one = pltpu.async_copy(x_ref.at[0:16], buffer.at[0:16], sem)
        two = pltpu.async_copy(x_ref.at[16:24], buffer.at[16:24], sem)
        one.wait()
        o_ref[0:16] = buffer[0:16]
        two.wait()
        three = pltpu.async_copy(x_ref.at[24:32], buffer.at[24:32], sem)
        three.wait()
        o_ref[16:32] = buffer[16:32]

    assert np.array_equal(pl.kernel_call(right, X, **call)(X), X)


def test_scratch_of_another_parallel_step() -> None:
    def body(x_ref, o_ref, sums):
        @pl.when(pl.program_id(0) + pl.program_id(1) == 0)
        def _():
            sums[...] = x_ref[...] * 0.0

        sums[...] += x_ref[...]  # sum
        o_ref[...] = sums[...]

    rows = pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))
    call: dict[str, Any] = {
        "grid": (2, 2),
        "in_specs": [rows],
        "out_specs": rows,
        "scratch_shapes": [pltpu.VMEM((8, 128), np.float32)],
    }
    params = pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))
    error = fault(body, X, **call, compiler_params=params)
    check(error, body, "HLO0731", "sum")
    assert "in this step of the parallel dimensions" in error.diagnostics[0].message
    pl.kernel_call(body, X, **call)(X)


def test_a_copy_to_a_device_that_is_none() -> None:
    def body(x_ref, o_ref, sems):
        other = lax.axis_index("x") + 1
        pltpu.make_async_remote_copy(x_ref, o_ref, sems.at[0], sems.at[1], other).start()  # copy

    error = fault(
        body,
        np.stack([X, X]),
        mesh={"x": 2},
        in_specs=[ANY],
        out_specs=ANY,
        out_shape=X,
        scratch_shapes=[DMA((2,))],
    )
    check(error, body, "HLO0702", "copy")
    assert "lax.rem" in str(error.diagnostics[0].help)


def test_what_is_allocated_has_its_parameters_name() -> None:
    def body(x_ref, o_ref):
        def scoped(kept):
            o_ref[...] = kept[...]  # read

        pl.run_scoped(scoped, VMEM)

    error = fault(body, X)
    check(error, body, "HLO0731", "read")
    assert "read from kept" in error.diagnostics[0].message


def test_a_loop_that_stands_still() -> None:
    def body(x_ref, o_ref):
        o_ref[0] = lax.while_loop(lambda c: c < 10, lambda c: c * 2, x_ref[0])  # loop

    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    whole = np.zeros(1, np.int32)
    error = fault(body, whole, in_specs=[scalars], out_specs=scalars, out_shape=whole)
    check(error, body, "HLO0703", "loop", "loop")


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_that_looks_at_a_semaphore_until_others_signal(seed: int) -> None:
    def body(x_ref, o_ref, sem, copied):
        there = lax.rem(lax.axis_index("x") + 1, 4)
        pl.semaphore_signal(sem, 1, device_id=(there,))
        lax.while_loop(lambda n: pl.semaphore_read(sem) < 1, lambda n: n + 1, 0)
        pl.semaphore_wait(sem, 1)
        copy = pltpu.async_copy(x_ref, o_ref, copied)
        lax.while_loop(lambda n: pl.semaphore_read(copied) < 1, lambda n: n + 1, 0)
        copy.wait()

    shards = np.stack([X, X + 1, X + 2, X + 3])
    call = pl.kernel_call(
        body,
        like(32, 128),
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[pltpu.SemaphoreType.REGULAR, DMA],
        mesh={"x": 4},
        interpret=InterpretParams(random_seed=seed),
    )
    np.testing.assert_array_equal(call(shards), shards)


def test_a_copy_of_what_nobody_wrote_over_what_was_written() -> None:
    def body(x_ref, o_ref, buffer, sem):
        step = pl.program_id(0)
        rows = pl.ds(pl.multiple_of(16 * step, 16), 16)

        @pl.when(step == 0)
        def _():
            pltpu.sync_copy(x_ref.at[rows], o_ref.at[rows])

        pltpu.async_copy(o_ref.at[rows], buffer, sem).wait()
        buffer[...] = buffer[...] + 1  # read

    scratch = [pltpu.VMEM((16, 128), np.float32), DMA]
    error = fault(body, X, grid=(2,), in_specs=[ANY], out_specs=ANY, scratch_shapes=scratch)
    check(error, body, "HLO0731", "read")


def test_an_aliased_block_that_the_step_before_writes() -> None:
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def call(**more: Any) -> Any:
        return pl.kernel_call(
            body,
            like(32, 128),
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: ((i + 3) % 4, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            **more,
        )

    np.testing.assert_array_equal(call()(X), np.roll(X, 8, 0))
    with pytest.raises(HloError, match=r"HLO0730.*one array with o_ref") as caught:
        call(input_output_aliases={0: 0})(X)
    (found,) = caught.value.diagnostics
    assert found.place is not None
    assert found.notes[0][1] is not None
    assert found.notes[0][1].line == found.place.line + 1


def test_a_kernel_that_does_not_fit_into_vmem() -> None:
    def body(x_ref, o_ref, big_ref):
        big_ref[0] = x_ref[...]
        o_ref[...] = big_ref[0]

    error = fault(body, X, scratch_shapes=[pltpu.VMEM((2048, 32, 128), np.float32)])
    assert error.code == "HLO0735"
    assert "33554432" in str(error)
    place = error.diagnostics[0].place
    assert place is not None
    assert "def body" in (place.source_line or "")
