"""Kernels in whole programs, as machine code, against the simulator."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.mosaic.language.test_authored import ALL
from unit.mosaic.language.test_fast import QUICK, REST, close

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.interp.custom_calls import CUSTOM_CALLS
from mlirhlo.mosaic import tpu as pltpu

CALL = "custom-call tpu_custom_call"
SIMULATED = {"xla_disable_hlo_passes": "mosaic-kernel-expander"}


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=REST) for n in sorted(ALL)],
)
def test_as_the_simulator_says(name: str) -> None:
    case = ALL[name]
    kernel = case.call.lower(*case.inputs)
    module = mlirhlo.parse(kernel.to_stablehlo())
    executable = mlirhlo.compile(module)
    got = executable(*case.inputs)
    assert executable.callbacks.get(CALL, 0) == (name == "messages")
    close(got, module(*case.inputs))


def doubled() -> tuple[str, Any]:
    """A program that calls a kernel twice, around an instruction of its own."""

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    call = pl.kernel_call(
        body, pl.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,), in_specs=[spec], out_specs=spec
    )
    text = str(mlirhlo.parse(call.lower(x).to_stablehlo()))
    start = text.index("ROOT %body = ")
    line = text[start : text.index("\n", start)]
    first = line.removeprefix("ROOT ").replace("%body =", "%first =")
    last = line.replace("(%Arg_0.1)", "(%between)")
    between = "%between = f32[32,128]{1,0} add(%first, %first)"
    return text.replace(line, f"{first}\n  {between}\n  {last}"), x


def test_calls_of_one_kernel_share_its_loops() -> None:
    text, x = doubled()
    module = mlirhlo.parse(text).opt("mosaic-kernel-expander")
    loops = [line for line in str(module).splitlines() if " while(" in line]
    assert len(loops) == 2
    assert len({line.partition("condition=")[2].split(",")[0] for line in loops}) == 1
    assert "tpu_custom_call" not in str(module)
    assert np.array_equal(module(x), 8 * x)
    assert np.array_equal(mlirhlo.compile(mlirhlo.parse(text))(x), 8 * x)


def test_operands_and_results_in_other_layouts() -> None:
    text, x = doubled()
    turned = text.replace("f32[32,128]{1,0} parameter", "f32[32,128]{0,1} parameter")
    turned = turned.replace(
        "{(f32[32,128]{1,0})->f32[32,128]{1,0}}", "{(f32[32,128]{0,1})->f32[32,128]{1,0}}"
    )
    turned = turned.replace("%first = f32[32,128]{1,0}", "%first = f32[32,128]{0,1}")
    executable = mlirhlo.compile(mlirhlo.parse(turned))
    assert np.array_equal(executable(x), 8 * x)
    assert not executable.callbacks


def test_the_simulator_can_be_asked_for() -> None:
    text, x = doubled()
    executable = mlirhlo.compile(mlirhlo.parse(text), options=SIMULATED)
    assert np.array_equal(executable(x), 8 * x)
    assert executable.callbacks[CALL] == 2


def test_what_only_the_simulator_has_is_said(caplog: pytest.LogCaptureFixture) -> None:
    def by_hand(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        pltpu.matmul_push_rhs(w_ref[...], 0, 0)
        pltpu.matmul_acc_lhs(0, x_ref[...], 0, load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(0, (16, 256), np.float32, 0)

    x, w = (np.ones((rows, 256), ml_dtypes.bfloat16) for rows in (16, 256))
    struct = pl.ShapeDtypeStruct(x.shape, np.float32)
    module = mlirhlo.parse(pl.kernel_call(by_hand, struct).lower(x, w).to_stablehlo())
    with caplog.at_level(logging.WARNING):
        mlirhlo.compile(module)
    said = [record.getMessage() for record in caplog.records if "HLO0738" in record.getMessage()]
    assert len(said) == 1
    assert "%by_hand" in said[0]
    assert "tpu.matmul_push_rhs" in said[0]


def test_messages_stay_with_the_simulator(capfd: pytest.CaptureFixture[str]) -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("here")
        o_ref[...] = x_ref[...]

    x = np.ones((8, 128), np.float32)
    kernel = pl.kernel_call(body, pl.ShapeDtypeStruct(x.shape, x.dtype)).lower(x)
    executable = mlirhlo.compile(mlirhlo.parse(kernel.to_stablehlo()))
    assert np.array_equal(executable(x), x)
    assert "here" in capfd.readouterr().err


def test_another_meaning_of_the_target_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    text, x = doubled()
    assert np.array_equal(mlirhlo.compile(mlirhlo.parse(text))(x), 8 * x)
    monkeypatch.setitem(CUSTOM_CALLS, "tpu_custom_call", lambda op, inputs, frame: inputs[0] + 1)
    assert np.array_equal(mlirhlo.compile(mlirhlo.parse(text))(x), 2 * (x + 1) + 1)


def test_a_kernel_that_does_not_fit_is_an_error_when_it_runs() -> None:
    text, x = doubled()
    wrong = text.replace("f32[32,128]", "bf16[32,128]")
    executable = mlirhlo.compile(mlirhlo.parse(wrong))
    with pytest.raises(HloError) as caught:
        executable(x)
    assert caught.value.code == "HLO0700"


def test_an_aliased_array_is_one_memory() -> None:
    """What is copied to the result is read back through the operand."""

    def body(x_ref: Any, o_ref: Any, block_ref: Any, semaphore: Any) -> None:
        def copy(source: Any, target: Any) -> None:
            started = pltpu.make_async_copy(source, target, semaphore)
            started.start()
            started.wait()

        copy(x_ref.at[pl.ds(0, 8)], block_ref)
        block_ref[...] = block_ref[...] * 2.0
        copy(block_ref, o_ref.at[pl.ds(8, 8)])
        copy(x_ref.at[pl.ds(8, 8)], block_ref)
        block_ref[...] = block_ref[...] + 1.0
        copy(block_ref, o_ref.at[pl.ds(0, 8)])

    x = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    kernel = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.VMEM((8, 128), np.float32), pltpu.SemaphoreType.DMA],
        input_output_aliases={0: 0},
    ).lower(x)
    module = mlirhlo.parse(kernel.to_stablehlo())
    executable = mlirhlo.compile(module)
    want = np.concatenate([2 * x[:8] + 1, 2 * x[:8]])
    assert np.array_equal(module(x), want)
    assert np.array_equal(executable(x), want)
    assert np.array_equal(kernel(x, platform="cpu"), want)
    assert not executable.callbacks


@pytest.mark.parametrize("index_map", ["rows that are named twice", "all rows twice", "each once"])
def test_blocks_of_an_aliased_array_are_what_was_stored(index_map: str) -> None:
    def body(rows_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = 2.0 * x_ref[...] + 1.0

    maps: dict[str, Any] = {
        "rows that are named twice": lambda i, j, rows: (rows[2 * i + j], 0),
        "all rows twice": lambda i, j, rows: (j, 0),
        "each once": lambda i, j, rows: (j + 2 * i, 0),
    }
    rows = np.array([1, 2, 1, 0], np.int32)
    x = np.random.default_rng(0).normal(size=(32, 128)).astype(np.float32)
    spec = pl.BlockSpec((8, 128), maps[index_map])
    kernel = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct(x.shape, x.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(2, 2), in_specs=[spec], out_specs=spec
        ),
        input_output_aliases={1: 0},
    ).lower(rows, x)
    module = mlirhlo.parse(kernel.to_stablehlo())
    executable = mlirhlo.compile(module)
    got = executable(rows, x)
    assert not executable.callbacks
    np.testing.assert_array_equal(got, module(rows, x))
    want = x.copy()
    for i in range(2):
        for j in range(2):
            at = 8 * int(maps[index_map](i, j, rows)[0])
            want[at : at + 8] = 2 * want[at : at + 8] + 1
    np.testing.assert_array_equal(got, want)


VECTOR, MEMORY = "vector<128x128xf32>", "memref<128x128xf32, #tpu.memory_space<vmem>>"
FORMS = {
    "plain": ("", lambda a, b: a @ b),
    "lhs": ("transpose_lhs = true", lambda a, b: a.T @ b),
    "rhs": ("transpose_rhs = true", lambda a, b: a @ b.T),
    "turned": (
        "dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1], [1, 1, 0, 0], [], []>",
        lambda a, b: (a @ b).T,
    ),
}


def old_kernel(name: str, op: str, kernel_name: str = "") -> str:
    """A program that calls a kernel as older versions wrote it, of a result %r of %x and %y."""
    load = f'"stable_mosaic.vector.load"({{0}}, %c, %c) : ({MEMORY}, index, index) -> {VECTOR}'
    body = f""""builtin.module"() ({{
  "stable_mosaic.func.func"() ({{
  ^bb0(%a: {MEMORY}, %b: {MEMORY}, %o: {MEMORY}):
    %c = "stable_mosaic.arith.constant"() {{value = 0 : index}} : () -> index
    %z = "stable_mosaic.arith.constant"() {{value = dense<0.0> : {VECTOR}}} : () -> {VECTOR}
    %x = {load.format("%a")}
    %y = {load.format("%b")}
    {op}
    "stable_mosaic.vector.store"(%r, %o, %c, %c) : ({VECTOR}, {MEMORY}, index, index) -> ()
    "stable_mosaic.func.return"() : () -> ()
  }}) {{sym_name = "{name}", tpu.core_type = #tpu.core_type<tc>, scratch_operands = 0 : i64,
    function_type = ({MEMORY}, {MEMORY}, {MEMORY}) -> ()}} : () -> ()
}}) {{sym_name = "{name}", stable_mosaic.version = 1 : i64}} : () -> ()"""
    config = {"custom_call_config": {"body": base64.b64encode(body.encode()).decode()}}
    said, kind = json.dumps(config).replace('"', "\\22"), "tensor<128x128xf32>"
    return f"""func.func public @main(%arg0: {kind}, %arg1: {kind}) -> {kind} {{
  %0 = stablehlo.custom_call @tpu_custom_call(%arg0, %arg1) {{
    backend_config = "{said}", kernel_name = "{kernel_name or name}"}} : ({kind}, {kind}) -> {kind}
  return %0 : {kind}
}}"""


def runs_as_machine_code(text: str) -> tuple[Any, Any, Any]:
    """Two operands, and what a program in machine code gives; no kernel of it is simulated."""
    x, y = np.random.default_rng(0).normal(size=(2, 128, 128)).astype(np.float32)
    executable = mlirhlo.compile(mlirhlo.parse(text))
    got = executable(x, y)
    assert executable.callbacks.get(CALL, 0) == 0
    close(got, mlirhlo.parse(text)(x, y))
    return x, y, got


@pytest.mark.parametrize("form", FORMS)
def test_products_without_dimension_numbers_and_turned_ones(form: str) -> None:
    said, meaning = FORMS[form]
    types = f"({VECTOR}, {VECTOR}, {VECTOR}) -> {VECTOR}"
    text = old_kernel(
        "product", f'%r = "stable_mosaic.tpu.matmul"(%x, %y, %z) {{{said}}} : {types}'
    )
    x, y, got = runs_as_machine_code(text)
    np.testing.assert_allclose(got, meaning(x, y), rtol=2e-4, atol=2e-4)


REPEAT = (
    f'%n = "stable_mosaic.arith.addf"(%x, %y) : ({VECTOR}, {VECTOR}) -> {VECTOR}\n'
    '%h = "stable_mosaic.vector.extract_strided_slice"(%n) {offsets = [0, 0], sizes = [128, 64], '
    f"strides = [1, 1]}} : ({VECTOR}) -> vector<128x64xf32>\n"
    '%r = "stable_mosaic.tpu.repeat"(%h) {dimension = 1 : i32, times = 2 : i32} : '
    f"(vector<128x64xf32>) -> {VECTOR}"
)


@pytest.mark.parametrize("name", ["plain", "tiles-bm_128", "a b"])
@pytest.mark.parametrize("kernel_name", ["", "block=128"])
def test_kernels_of_any_name(name: str, kernel_name: str) -> None:
    x, y, got = runs_as_machine_code(old_kernel(name, REPEAT, kernel_name))
    np.testing.assert_array_equal(got, np.tile((x + y)[:, :64], (1, 2)))
