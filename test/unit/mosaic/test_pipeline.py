"""The stages of kernels: each verifies, prints, reads back and computes the same; dumps; restarts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import SHARED, needs_shared, one_in, sample, sampled
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.cli.mosaic_opt import main
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import STAGES, dump_stages, run_pipeline

SAMPLES = SHARED / "reference" / "mosaic_samples"
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)
VMEM = "#tpu.memory_space<vmem>"

Shapes = list[tuple[tuple[int, ...], Any]]
KERNELS: dict[str, tuple[Shapes, Shapes]] = {
    "add": ([((32, 256), F32)] * 2, [((32, 256), F32)]),
    "layernorm": ([((64, 512), BF16), ((512,), F32), ((512,), F32)], [((64, 512), BF16)]),
    "softmax": ([((64, 256), F32)], [((64, 256), F32)]),
    "matmul": ([((256, 512), BF16), ((512, 256), BF16)], [((256, 256), BF16)]),
}


def arguments(shapes: Shapes) -> list[Any]:
    generator = np.random.default_rng(0)
    return [
        generator.integers(0, 4, shape).astype(dtype)
        if np.dtype(dtype).kind == "i"
        else generator.normal(size=shape).astype(dtype)
        for shape, dtype in shapes
    ]


def check_stages(
    module: ModuleOp, inputs: Shapes, outputs: Shapes, generation: str = "v5e"
) -> list[str]:
    """Runs every stage's printed output; gives the stages' names."""
    values = arguments(inputs)
    expected = Kernel(module.clone()).run(values, outputs)
    names: list[str] = []
    texts = [""]

    def observe(stage: ModuleOp, name: str, number: int) -> None:
        text = print_kernel(stage)
        assert number == len(names) + 1
        names.append(name)
        if text == texts[-1]:
            return  # a stage that changes nothing
        texts.append(text)
        again = read_kernel(text.encode(), name)
        assert print_kernel(again) == text, name
        for found, wanted in zip(Kernel(again).run(values, outputs), expected, strict=True):
            np.testing.assert_allclose(
                np.asarray(found, np.float64),
                np.asarray(wanted, np.float64),
                rtol=2e-2 if np.asarray(wanted).dtype == BF16 else 1e-4,
                atol=1e-4,
                err_msg=name,
            )

    run_pipeline(module, observe=observe, generation=generation)
    return names


def elementwise(element: str, body: str, rows: int = 24, lanes: int = 300) -> str:
    ref, vector = f"memref<{rows}x{lanes}x{element}, {VMEM}>", f"vector<{rows}x{lanes}x{element}>"
    return f"""module @k {{
  func.func @main(%x: {ref}, %y: {ref}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0, %c0] : {ref}, {vector}
    {body.replace("VEC", vector)}
    vector.store %r, %y[%c0, %c0] : {ref}, {vector}
    return
  }}
}}
"""


BODIES = {
    "a sum, ragged": ("f32", "%r = arith.addf %v, %v : VEC"),
    "bf16 by way of f32": (
        "bf16",
        (
            "%a = arith.extf %v : VEC to vector<24x300xf32>\n"
            "    %b = math.exp %a : vector<24x300xf32>\n"
            "    %r = arith.truncf %b : vector<24x300xf32> to VEC"
        ),
    ),
    "a mask": (
        "f32",
        (
            "%z = arith.constant dense<0.0> : VEC\n"
            "    %m = arith.cmpf ogt, %v, %z : VEC\n"
            "    %r = arith.select %m, %v, %z : vector<24x300xi1>, VEC"
        ),
    ),
    "a sum of rows": (
        "f32",
        (
            "%z = arith.constant dense<0.0> : vector<300xf32>\n"
            "    %s = vector.multi_reduction <add>, %v, %z [0] : VEC to vector<300xf32>\n"
            "    %t = vector.shape_cast %s : vector<300xf32> to vector<1x300xf32>\n"
            "    %r = vector.broadcast %t : vector<1x300xf32> to VEC"
        ),
    ),
    "the least of columns, bf16": (
        "bf16",
        (
            "%z = arith.constant dense<0x7F80> : vector<300xbf16>\n"
            "    %s = vector.multi_reduction <minimumf>, %v, %z [0] : VEC to vector<300xbf16>\n"
            "    %t = vector.shape_cast %s : vector<300xbf16> to vector<1x300xbf16>\n"
            "    %r = vector.broadcast %t : vector<1x300xbf16> to VEC"
        ),
    ),
    "sums of rows that a loop carries": (
        "f32",
        (
            "%z = arith.constant dense<0.0> : vector<24x1xf32>\n"
            "    %n = arith.constant dense<0.0> : vector<24xf32>\n"
            "    %l = arith.constant 0 : i32\n"
            "    %u = arith.constant 3 : i32\n"
            "    %s = arith.constant 1 : i32\n"
            "    %c = scf.for %i = %l to %u step %s iter_args(%a = %z) -> (vector<24x1xf32>) : i32 {\n"
            "      %t = vector.multi_reduction <add>, %v, %n [1] : VEC to vector<24xf32>\n"
            "      %w = vector.shape_cast %t : vector<24xf32> to vector<24x1xf32>\n"
            "      %b = arith.addf %a, %w : vector<24x1xf32>\n"
            "      scf.yield %b : vector<24x1xf32>\n"
            "    }\n"
            "    %r = vector.broadcast %c : vector<24x1xf32> to VEC"
        ),
    ),
    "what stays a vector": ("f32", "%r = arith.subf %v, %v : VEC"),
    "bf16 arithmetic": (
        "bf16",
        (
            "%a = arith.mulf %v, %v : VEC\n    %m = arith.cmpf olt, %a, %v : VEC\n"
            "    %r = arith.select %m, %a, %v : vector<24x300xi1>, VEC"
        ),
    ),
    "i16 arithmetic": (
        "i16",
        (
            "%a = arith.muli %v, %v : VEC\n    %m = arith.cmpi ult, %a, %v : VEC\n"
            "    %r = arith.select %m, %a, %v : vector<24x300xi1>, VEC"
        ),
    ),
    "floats to bytes and back": (
        "bf16",
        (
            "%a = arith.fptosi %v : VEC to vector<24x300xi8>\n"
            "    %r = arith.sitofp %a : vector<24x300xi8> to VEC"
        ),
    ),
    "a mask as numbers": (
        "bf16",
        (
            "%z = arith.constant dense<0.0> : VEC\n    %m = arith.cmpf ogt, %v, %z : VEC\n"
            "    %r = arith.uitofp %m : vector<24x300xi1> to VEC"
        ),
    ),
}


@pytest.mark.parametrize("generation", ["v4", "v5e", "v6e", "tpu7x"])
@pytest.mark.parametrize("name", sample(BODIES, 3))
def test_every_stage_computes_the_same(name: str, generation: str) -> None:
    element, body = BODIES[name]
    shape = ((24, 300), {"bf16": BF16, "i16": np.dtype(np.int16)}.get(element, F32))
    module = parse_kernel(elementwise(element, body))
    names = check_stages(module, [shape], [shape], generation)
    assert names == ["original", *(f"post-{stage.name}" for stage in STAGES)]


@pytest.mark.parametrize("element", ["bf16", "i8", "f32"])
def test_rows_of_rank_one_keep_their_meaning(element: str) -> None:
    """Their tiles are nested three deep: `(512)(128)(4,1)`."""
    ref, vector = f"memref<1000x{element}, {VMEM}>", f"vector<1000x{element}>"
    operation = "ori" if element == "i8" else "addf"
    text = f"""module @k {{
  func.func @main(%x: {ref}, %y: {ref}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : {ref}, {vector}
    %r = arith.{operation} %v, %v : {vector}
    vector.store %r, %y[%c0] : {ref}, {vector}
    return
  }}
}}
"""
    shape = ((1000,), {"bf16": BF16, "i8": np.dtype(np.int8)}.get(element, F32))
    check_stages(parse_kernel(text), [shape], [shape])


def test_narrow_elements_are_computed_wide_where_they_have_to_be() -> None:
    text = elementwise("bf16", "%r = arith.addf %v, %v : VEC")
    for generation, wide in (("v5e", True), ("v6e", False)):
        module = parse_kernel(text)
        run_pipeline(module, stop_after="canonicalize-mosaic", generation=generation)
        assert ("tpu.truncf" in print_kernel(module)) == wide


def test_loops_carry_only_what_changes_and_branches_on_constants_are_gone() -> None:
    body = """%true = arith.constant true
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = arith.constant 9 : i32
    %s:3 = scf.for %i = %z to %n step %one iter_args(%a = %v, %b = %v, %k = %z) -> (VEC, VEC, i32) : i32 {
      %c = scf.if %true -> (VEC) {
        %d = arith.addf %a, %b : VEC
        scf.yield %d : VEC
      } else {
        scf.yield %b : VEC
      }
      %l = arith.addi %k, %one : i32
      %m = arith.addi %l, %n : i32
      scf.yield %c, %b, %m : VEC, VEC, i32
    }
    %w = arith.sitofp %s#2 : i32 to f32
    %u = vector.broadcast %w : f32 to VEC
    %t = arith.addf %s#0, %s#1 : VEC
    %r = arith.addf %t, %u : VEC"""
    module = parse_kernel(elementwise("f32", body))
    check_stages(module.clone(), [((24, 300), F32)], [((24, 300), F32)])
    run_pipeline(module, stop_after="infer-memref-layout-simplify")
    text = print_kernel(module)
    assert "scf.if" not in text
    assert "scf.yield" in text
    (loop,) = (op for op in module.walk() if op.name == "scf.for")
    assert len(loop.results) == 2
    assert text.count("arith.addi") == 1


def test_registers_are_what_is_left() -> None:
    module = parse_kernel(elementwise("f32", "%r = arith.addf %v, %v : VEC", 16, 256))
    run_pipeline(module, stop_after="apply-vector-layout-simplify")
    text = print_kernel(module)
    assert text.count("tpu.load") == text.count("arith.addf") == text.count("tpu.store") == 4
    assert "vector<16x256xf32>" not in text


def test_a_stage_that_fails_is_the_last_file(tmp_path: Path) -> None:
    module = parse_kernel(
        elementwise(
            "f32",
            "%r = tpu.all_reduce %v {dim = 1 : i64, kind = #tpu.reduction_kind<sum>} : VEC -> VEC",
        )
    )
    files = dump_stages(module, str(tmp_path / "deep" / "er"), clock=lambda: 1795191111665530234)
    names = [path.name for path in files]
    assert names[0] == "1795191111665530234-0001-mosaic-dump-k-original.txt"
    assert names[-1] == "1795191111665530234-0013-mosaic-dump-k-post-infer-vector-layout-failed.txt"
    assert len(names) == 13
    with pytest.raises(HloError) as caught:
        run_pipeline(module)
    assert caught.value.code == "HLO0740"
    assert "infer-vector-layout" in str(caught.value)


def test_names_of_files_are_safe_and_short(tmp_path: Path) -> None:
    text = elementwise("f32", "%r = arith.addf %v, %v : VEC").replace("@k", '@"a/b c"')
    files = dump_stages(parse_kernel(text), str(tmp_path), clock=lambda: 7)
    assert files[0].name == "7-0001-mosaic-dump-a_b_c-original.txt"
    files = dump_stages(parse_kernel(text), str(tmp_path), name="x" * 300, clock=lambda: 8)
    assert all(len(path.name) <= 250 for path in files)
    assert len({re.sub(r"-\d{4}-.*(_[0-9a-f]{16}).*", r"\1", path.name) for path in files}) > 0
    once, twice = dump_stages(parse_kernel(text), str(tmp_path))[0], files[0]
    assert once.name.split("-")[0] != twice.name.split("-")[0]


def test_the_tool_starts_after_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "k.mlir"
    kernel.write_text(elementwise("f32", "%r = arith.addf %v, %v : VEC"))
    folder = tmp_path / "stages"
    assert main([str(kernel), f"--xla_mosaic_dump_to={folder}"]) == 0
    files = sorted(folder.iterdir())
    assert len(files) == len(STAGES) + 1
    capsys.readouterr()
    for stage in ("infer-memref-layout", "post-relayout-insertion"):
        middle = next(file for file in files if file.stem.endswith(stage))
        assert main([f"--start-after={stage}", str(middle)]) == 0
        assert "cycle = " in capsys.readouterr().out
    assert main(["--stop-after=nothing", str(kernel)]) == 1
    assert "HLO0750" in capsys.readouterr().err


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("name", sample(KERNELS, 3))
def test_samples_keep_their_meaning(name: str) -> None:
    module = read_kernel((SAMPLES / "kernels" / f"{name}.pretty.mlir").read_bytes())
    check_stages(module, *KERNELS[name])


@needs_shared
@pytest.mark.slow
@sampled(60, 20)
def test_one_op_kernels_keep_their_meaning(every: int) -> None:
    """Kernels that all generations take."""
    cases = [json.loads(line) for line in (SAMPLES / "acceptance.jsonl").read_text().splitlines()]
    taken = one_in(every, [case for case in cases if case["result"] == {"all": "PASS"}])
    names = {
        "f32": F32,
        "bf16": BF16,
        "s32": I32,
        "s16": np.dtype(np.int16),
        "s8": np.dtype(np.int8),
    }

    def shape(text: str) -> tuple[tuple[int, ...], Any] | None:
        element, _, sizes = text.rstrip("]").partition("[")
        return (tuple(map(int, sizes.split(","))), names[element]) if element in names else None

    done = 0
    for case in taken:
        inputs, outputs = [shape(t) for t in case["args"]], [shape(t) for t in case["outs"]]
        if None in inputs or None in outputs:
            continue
        module = read_kernel(case["mlir"].encode(), case["name"])
        check_stages(module, [s for s in inputs if s], [s for s in outputs if s])
        done += 1
    assert done > 200 // every


STAGE_DUMPS = (
    sorted((SAMPLES / "dumps" / "layernorm").glob("*-00*"))[3:] if SAMPLES.exists() else []
)


@needs_shared
@pytest.mark.slow
def test_dumps_of_the_real_compiler_run_and_go_on() -> None:
    inputs, outputs = KERNELS["layernorm"]
    values = arguments(inputs)
    results: list[Any] = []
    for file in STAGE_DUMPS:
        number = int(file.name.split("-")[1])
        text = file.read_text()
        if number > 18 or "... cut:" in text[-200:]:
            continue
        module = read_kernel(text.encode(), file.name)
        results.append(Kernel(module.clone()).run(values, outputs)[0])
        if number in (1, 5, 12, 14):
            stage = "original" if number == 1 else STAGES[number - 2].name
            run_pipeline(module, start_after=stage)
            found = np.asarray(Kernel(module).run(values, outputs)[0], np.float32)
            np.testing.assert_allclose(
                found, np.asarray(results[0], np.float32), rtol=2e-2, atol=1e-2
            )
    assert len(results) > 12
    assert all(np.array_equal(results[0], result) for result in results)
