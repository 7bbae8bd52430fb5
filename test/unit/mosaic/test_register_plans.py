"""Registers as the TPU compiler plans them: its own text for kernels of every family, and what is folded
after it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import run_pipeline

TOOL = Path(__file__).parents[3] / "tools" / "compare_stages.py"
VMEM = "#tpu.memory_space<vmem>"
TILED = "memref<16x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>"


def zeros(shape: str) -> str:
    return ", ".join(["%c0"] * len(shape.split("x")))


def kernel(inputs: list[str], result: str, body: str) -> str:
    """A kernel that loads all of its operands as `%v0`, …, and stores `%r`."""
    refs = [f"%x{at}: memref<{shape}, {VMEM}>" for at, shape in enumerate((*inputs, result))]
    lines = [f"module @k {{\n  func.func @main({', '.join(refs)}) attributes "]
    lines.append("{tpu.core_type = #tpu.core_type<tc>} {\n    %c0 = arith.constant 0 : index")
    for at, shape in enumerate(inputs):
        places = zeros(shape.rpartition("x")[0])
        ref = f"memref<{shape}, {VMEM}>, vector<{shape}>"
        lines.append(f"    %v{at} = vector.load %x{at}[{places}] : {ref}")
    places = zeros(result.rpartition("x")[0])
    ref = f"memref<{result}, {VMEM}>, vector<{result}>"
    lines.append(f"    {body}\n    vector.store %r, %x{len(inputs)}[{places}] : {ref}")
    return "\n".join([*lines, "    return\n  }\n}\n"])


def reduction(kind: str, shape: str, dim: int, rest: str, element: str, start: str) -> str:
    kept = [("1" if at == dim else size) for at, size in enumerate(shape.split("x"))]
    whole, flat = f"vector<{shape}x{element}>", f"vector<{rest}x{element}>"
    held = f"vector<{'x'.join(kept)}x{element}>"
    return f"""%z = arith.constant dense<{start}> : {flat}
    %s = vector.multi_reduction <{kind}>, %v0, %z [{dim}] : {whole} to {flat}
    %t = vector.shape_cast %s : {flat} to {held}
    %r = vector.broadcast %t : {held} to {whole}"""


def product(rows: int, deep: int, wide: int) -> str:
    a, b, c = (f"vector<{m}x{n}xf32>" for m, n in ((rows, deep), (deep, wide), (rows, wide)))
    numbers = "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"
    options = f"{{dimension_numbers = {numbers}, transpose_lhs_hint = false}}"
    return f"""%z = arith.constant dense<0.0> : {c}
    %r = tpu.matmul %v0, %v1, %z {options} : {a}, {b}, {c} -> {c}"""


def turn(shape: str, dim: int, amount: int) -> str:
    type_ = f"vector<{shape}xf32>"
    return f"""%a = arith.constant {amount} : i32
    %r = tpu.dynamic_rotate %v0 by %a dim {dim} : {type_}, i32 -> {type_}"""


def count(shape: str, dims: str) -> str:
    return f"%r = tpu.iota {{dimensions = array<i32: {dims}>}} : vector<{shape}xi32>"


def copied(shape: str) -> tuple[list[str], str, str]:
    """Loaded, and stored with nothing added."""
    zero, add = ("0", "addi") if "xi" in shape else ("0.0", "addf")
    start = f"%z = arith.constant dense<{zero}> : vector<{shape}>"
    return [shape], shape, f"{start}\n    %r = arith.{add} %v0, %z : vector<{shape}>"


def spread(before: str, after: str) -> tuple[list[str], str, str]:
    return [before], after, f"%r = vector.broadcast %v0 : vector<{before}> to vector<{after}>"


def reshaped(before: str, after: str) -> tuple[list[str], str, str]:
    return [before], after, f"%r = vector.shape_cast %v0 : vector<{before}> to vector<{after}>"


def part(before: str, after: str, begin: str) -> tuple[list[str], str, str]:
    *sizes, _ = after.split("x")
    box = f"offsets = [{begin}], sizes = [{', '.join(sizes)}], strides = [1, 1]"
    types = f"vector<{before}> to vector<{after}>"
    return [before], after, f"%r = vector.extract_strided_slice %v0 {{{box}}} : {types}"


def joined(left: str, right: str, whole: str, dim: int) -> tuple[list[str], str, str]:
    types = f"vector<{left}>, vector<{right}> -> vector<{whole}>"
    return [left, right], whole, f"%r = tpu.concatenate %v0, %v1 in {dim} : {types}"


KERNELS: dict[str, tuple[list[str], str, str]] = {
    "whole tiles": copied("16x256xf32"),
    "ragged": copied("21x300xf32"),
    "rows of one tile": copied("12x128xf32"),
    "a row": copied("1000xf32"),
    "leading dimensions": copied("3x5x200xf32"),
    "integers": copied("20x300xi32"),
    "ragged bf16": copied("21x300xbf16"),
    "counts of lanes": (["8x128xf32"], "16x256xi32", count("16x256", "1")),
    "counts of rows": (["8x128xf32"], "20x300xi32", count("20x300", "0")),
    "counts of both": (["8x128xf32"], "20x300xi32", count("20x300", "0, 1")),
    "counts across": (["8x128xf32"], "16x256xi32", count("16x256", "1, 0")),
    "counts of a tile": (["8x128xf32"], "2x8x128xi32", count("2x8x128", "0, 1, 2")),
    "counts of boxes": (["8x128xf32"], "3x16x256xi32", count("3x16x256", "0")),
    "sums of rows": (
        ["20x300xf32"],
        "20x300xf32",
        reduction("add", "20x300", 1, "20", "f32", "0.0"),
    ),
    "sums of columns": (
        ["20x300xf32"],
        "20x300xf32",
        reduction("add", "20x300", 0, "300", "f32", "0.0"),
    ),
    "greatest of rows": (
        ["20x300xf32"],
        "20x300xf32",
        reduction("maximumf", "20x300", 1, "20", "f32", "0xFF800000"),
    ),
    "sums of integers": (
        ["20x300xi32"],
        "20x300xi32",
        reduction("add", "20x300", 1, "20", "i32", "0"),
    ),
    "sums of boxes": (
        ["3x16x256xf32"],
        "3x16x256xf32",
        reduction("add", "3x16x256", 0, "16x256", "f32", "0.0"),
    ),
    "a row in all rows": spread("1x256xf32", "16x256xf32"),
    "a lane in all lanes": spread("16x1xf32", "16x256xf32"),
    "a product": (["16x128xf32", "128x256xf32"], "16x256xf32", product(16, 128, 256)),
    "a ragged product": (["20x100xf32", "100x60xf32"], "20x60xf32", product(20, 100, 60)),
    "a deep product": (["8x200xf32", "200x300xf32"], "8x300xf32", product(8, 200, 300)),
    "lanes turned": (["16x256xf32"], "16x256xf32", turn("16x256", 1, 3)),
    "lanes turned far": (["16x256xf32"], "16x256xf32", turn("16x256", 1, 130)),
    "rows turned": (["16x256xf32"], "16x256xf32", turn("16x256", 0, 3)),
    "boxes turned": (["4x8x128xf32"], "4x8x128xf32", turn("4x8x128", 0, 1)),
    "transposed": (
        ["40x200xf32"],
        "200x40xf32",
        "%r = tpu.transpose %v0, [1, 0] : vector<40x200xf32> -> vector<200x40xf32>",
    ),
    "a row transposed": (
        ["1x128xf32"],
        "128x1xf32",
        "%r = tpu.transpose %v0, [1, 0] : vector<1x128xf32> -> vector<128x1xf32>",
    ),
    "transposed, bf16": (
        ["40x384xbf16"],
        "384x40xbf16",
        "%r = tpu.transpose %v0, [1, 0] : vector<40x384xbf16> -> vector<384x40xbf16>",
    ),
    "a row in all rows, bf16": spread("1x384xbf16", "32x384xbf16"),
    "a row in all rows, i8": spread("1x128xi8", "32x128xi8"),
    "one of the rows in all rows, bf16": (
        ["16x256xbf16"],
        "16x256xbf16",
        """%e = vector.extract %v0[9] : vector<256xbf16> from vector<16x256xbf16>
        %s = vector.shape_cast %e : vector<256xbf16> to vector<1x256xbf16>
        %r = vector.broadcast %s : vector<1x256xbf16> to vector<16x256xbf16>""",
    ),
    "a row of a computed vector": (
        ["16x128xf32"],
        "1x128xf32",
        """%t = arith.addf %v0, %v0 : vector<16x128xf32>
        %e = vector.extract %t[9] : vector<128xf32> from vector<16x128xf32>
        %r = vector.shape_cast %e : vector<128xf32> to vector<1x128xf32>""",
    ),
    "a row chosen against, bf16": (
        ["16x128xbf16", "1x128xbf16"],
        "16x128xbf16",
        """%b = vector.broadcast %v1 : vector<1x128xbf16> to vector<16x128xbf16>
        %z = arith.constant dense<0.0> : vector<16x128xbf16>
        %m = arith.cmpf ogt, %v0, %z : vector<16x128xbf16>
        %r = arith.select %m, %b, %v0 : vector<16x128xi1>, vector<16x128xbf16>""",
    ),
    "counted rows chosen, bf16": (
        ["32x256xbf16"],
        "32x256xbf16",
        """%n = tpu.iota {dimensions = array<i32: 0>} : vector<32x256xi32>
        %k = arith.constant dense<7> : vector<32x256xi32>
        %m = arith.cmpi slt, %n, %k : vector<32x256xi32>
        %z = arith.constant dense<0.0> : vector<32x256xbf16>
        %r = arith.select %m, %v0, %z : vector<32x256xi1>, vector<32x256xbf16>""",
    ),
    "rows in turns": joined("8x1x128xf32", "8x1x128xf32", "8x2x128xf32", 1),
    "words put together": (
        ["16x128xf32", "16x128xf32"],
        "16x128xi32",
        """%r = tpu.pack_elementwise %v0, %v1 {target_type = bf16}
        : vector<16x128xf32>, vector<16x128xf32> -> vector<16x128xi32>""",
    ),
    "words taken apart": (
        ["16x128xi32"],
        "16x128xf32",
        """%r = tpu.unpack_elementwise %v0, 1 {source_type = bf16}
        : vector<16x128xi32> -> vector<16x128xf32>""",
    ),
    "bytes of halves": (
        ["32x256xi16"],
        "64x256xi8",
        "%r = tpu.bitcast %v0 : vector<32x256xi16> -> vector<64x256xi8>",
    ),
    "a wide row, bf16": copied("1x300xbf16"),
    "a few rows, bf16": copied("3x5xbf16"),
    "rows of ranks": reshaped("12x100xf32", "3x4x100xf32"),
    "boxes into rows": reshaped("2x4x128xbf16", "2x1x4x128xbf16"),
    "lanes folded": reshaped("16x256xf32", "32x128xf32"),
    "lanes as rows": reshaped("100xf32", "100x1xf32"),
    "boxes one after another": reshaped("2x4x128xf32", "8x128xf32"),
    "pairs one after another": reshaped("16x2x128xf32", "32x128xf32"),
    "rows one after another": reshaped("2x3x4xf32", "6x4xf32"),
    "rows side by side": reshaped("32x128xf32", "8x512xf32"),
    "pairs, bf16": reshaped("2x4x128xbf16", "8x128xbf16"),
    "rows side by side, bf16": reshaped("32x128xbf16", "8x512xbf16"),
    "lanes folded, bf16": reshaped("8x512xbf16", "32x128xbf16"),
    "a row of any rank, bf16": reshaped("1x256xbf16", "256xbf16"),
    "a row, bf16": copied("300xbf16"),
    "part of words": part("32x256xbf16", "5x100xbf16", "3, 100"),
    "part of more words": part("32x128xbf16", "16x128xbf16", "9, 0"),
    "joined within a word": joined("3x128xbf16", "5x128xbf16", "8x128xbf16", 0),
    "joined lanes, bf16": joined("9x90xbf16", "9x150xbf16", "9x240xbf16", 1),
    "the greatest as a row": (
        ["21x130xf32"],
        "21xf32",
        """%z = arith.constant dense<0xFF800000> : vector<21xf32>
        %r = vector.multi_reduction <maximumf>, %v0, %z [1] : vector<21x130xf32> to vector<21xf32>""",
    ),
    "many rows, greatest": (
        ["72x100xf32"],
        "72x100xf32",
        reduction("maximumf", "72x100", 0, "100", "f32", "0xFF800000"),
    ),
    "part of rows": part("16x256xf32", "7x256xf32", "2, 0"),
    "part of rows and lanes": part("32x384xf32", "16x100xf32", "5, 3"),
    "part of bytes": part("64x128xi8", "32x128xi8", "32, 0"),
    "joined rows": joined("5x128xf32", "9x128xf32", "14x128xf32", 0),
    "joined lanes": joined("8x100xf32", "8x60xf32", "8x160xf32", 1),
    "a mask of bf16": (
        ["21x130xbf16"],
        "21x130xbf16",
        """%z = arith.constant dense<0.0> : vector<21x130xbf16>
        %m = arith.cmpf ogt, %v0, %z : vector<21x130xbf16>
        %r = arith.select %m, %v0, %z : vector<21x130xi1>, vector<21x130xbf16>""",
    ),
    "part of leading ones": (
        ["4x8x128xf32"],
        "8x128xf32",
        "%r = vector.extract %v0[2] : vector<8x128xf32> from vector<4x8x128xf32>",
    ),
}

SIMPLIFIED_FURTHER = {
    "rows one after another",
    "a row of any rank, bf16",
    "a row, bf16",
    "joined lanes, bf16",
}
"""Kernels planned as the compiler does, of which it folds more after that: shuffled loads in order, and words
that are taken apart and put together again; of the last it has two moves the other way round."""


def array_of(shape: str) -> str:
    *sizes, element = shape.split("x")
    return f"{element.replace('i', 's')}[{','.join(sizes)}]"


@pytest.mark.oracle
@pytest.mark.slow
def test_the_tpu_compiler_writes_the_same(tmp_path: Path) -> None:
    """For every kernel here, from `apply-vector-layout` on; for some in that stage."""
    file = tmp_path / "kernels.jsonl"
    with file.open("w") as out:
        for name, (inputs, result, body) in KERNELS.items():
            entry = {
                "name": re.sub(r"\W", "_", name),
                "mlir": kernel(inputs, result, body),
                "args": [array_of(shape) for shape in inputs],
                "outs": [array_of(result)],
            }
            out.write(json.dumps(entry) + "\n")
    run = subprocess.run(
        [sys.executable, str(TOOL), str(file), "--list"],
        capture_output=True,
        text=True,
        timeout=500,
    )
    if run.returncode == 77:
        pytest.skip("jax and libtpu are not installed")
    assert run.returncode == 0, run.stderr[-2000:]
    others = re.findall(r"^k(\d+)_.*: (post-\S+)", run.stdout, re.MULTILINE)
    names = list(KERNELS)
    assert {names[int(at)]: stage for at, stage in others} == dict.fromkeys(
        SIMPLIFIED_FURTHER, "post-apply-vector-layout-simplify"
    )
    stage = re.search(r"post-apply-vector-layout +(\d+) +(\d+)", run.stdout)
    assert stage is not None
    assert stage[1] == stage[2] == str(len(KERNELS)), run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v5e", "v6e"])
def test_plans_compute_the_same(generation: str) -> None:
    """The last stage as the first one."""
    names = {"xf32": np.float32, "xbf16": ml_dtypes.bfloat16, "xi32": np.int32}
    names |= {"xi16": np.int16, "xi8": np.int8}
    for name, (inputs, result, body) in KERNELS.items():
        types = [
            (tuple(map(int, shape.removesuffix(end).split("x"))), np.dtype(dtype))
            for shape in (*inputs, result)
            for end, dtype in names.items()
            if shape.endswith(end)
        ]
        *given, out = types
        generator = np.random.default_rng(len(name))
        values = [generator.integers(-9, 9, shape).astype(dtype) for shape, dtype in given]
        module = parse_kernel(kernel(inputs, result, body))
        expected = Kernel(module.clone()).run(values, [out])[0]
        run_pipeline(module, generation=generation)
        found = Kernel(module).run(values, [out])[0]
        np.testing.assert_array_equal(
            np.asarray(found, np.float64), np.asarray(expected, np.float64), err_msg=name
        )


def body_of(text: str) -> str:
    """The text after `apply-vector-layout-simplify` of operations on tiles."""
    module = parse_kernel(
        f"module @k {{ func.func @main(%x: {TILED}, %y: {TILED}, %n: i32) attributes "
        f"{{tpu.core_type = #tpu.core_type<tc>}} {{\n{text}\nreturn }} }}"
    )
    stage = "apply-vector-layout"
    run_pipeline(module, start_after=stage, stop_after=f"{stage}-simplify")
    return print_kernel(module)


END = ""
"""What ends a line with a blank."""
LAID = '{out_layout = [#tpu.vpad<"32,{0,0},(8,128)">]}'
PAIR, WORDS = "vector<8x128x2xi16>", "vector<8x128xi32>"
FORMAT = "pack_format = #tpu.pack_format<compressed>"
LOAD = "sublanes [true, true, true, true, true, true, true, true]"
ROWS = "vector<8x128xf32>"


def test_slices_and_casts_that_change_nothing_are_folded() -> None:
    """A slice from the beginning to the end, and an index that was one before."""
    text = body_of(f"""
        %c0 = arith.constant 0 : i32
        %i = arith.index_cast %n : i32 to index
        %j = arith.index_cast %i : index to i32
        %k = arith.index_cast %j : i32 to index
        %z = arith.constant 0 : index
        %s = tpu.memref_slice %x[%c0, %c0] : {TILED} -> {TILED}
        %v = tpu.load %s[%k, %z] {LOAD} : {TILED}, {ROWS}
        tpu.store %y[%z, %z], %v {LOAD} : {TILED}, {ROWS}, {END}""")
    assert "memref_slice" not in text
    assert text.count("index_cast") == 1


def test_a_slice_that_is_not_the_whole_stays() -> None:
    """Also where its type is the same."""
    text = body_of(f"""
        %c0 = arith.constant 0 : i32
        %z = arith.constant 0 : index
        %s = tpu.memref_slice %x[%n, %c0] : {TILED} -> {TILED}
        %v = tpu.load %s[%z, %z] {LOAD} : {TILED}, {ROWS}
        tpu.store %y[%z, %z], %v {LOAD} : {TILED}, {ROWS}, {END}""")
    assert "memref_slice" in text


def test_bits_and_rolled_registers_are_folded() -> None:
    """Two casts are one or none; registers put together and taken apart are those they were."""
    text = body_of(f"""
        %z = arith.constant 0 : index
        %e = arith.constant 8 : index
        %a = tpu.load %x[%z, %z] {LOAD} : {TILED}, {ROWS}
        %b = tpu.load %x[%e, %z] {LOAD} : {TILED}, {ROWS}
        %w = tpu.roll_vectors %a, %b {LAID} : {ROWS}, {ROWS} -> vector<16x128xf32>
        %u:2 = tpu.unroll_vectors %w : vector<16x128xf32> -> {ROWS}, {ROWS}
        %p = tpu.bitcast_vreg %u#0 : {ROWS} -> vector<8x128x2xbf16>
        %q = tpu.bitcast_vreg %p : vector<8x128x2xbf16> -> vector<8x128xi32>
        %r = tpu.bitcast_vreg %q : vector<8x128xi32> -> {ROWS}
        tpu.store %y[%z, %z], %u#1 {LOAD} : {TILED}, {ROWS}, {END}
        tpu.store %y[%e, %z], %r {LOAD} : {TILED}, {ROWS}, {END}""")
    assert "roll_vectors" not in text
    assert "bitcast_vreg" not in text


def test_what_is_only_packed_again_is_not_extended() -> None:
    """The upper bits of unpacked integers go, so that they need not be signs."""
    text = body_of(f"""
        %z = arith.constant 0 : index
        %a = tpu.load %x[%z, %z] {LOAD} : {TILED}, {ROWS}
        %p = tpu.bitcast_vreg %a : {ROWS} -> {PAIR}
        %u = tpu.unpack_subelements %p, 0 {{{FORMAT}}} : {PAIR} -> {WORDS}
        %k = tpu.unpack_subelements %p, 1 {{{FORMAT}}} : {PAIR} -> {WORDS}
        %q = tpu.pack_subelements %u, %u {{{FORMAT}, positions = array<i32: 0, 1>}} : {WORDS}, {WORDS} -> {PAIR}
        %r = tpu.bitcast_vreg %q : {PAIR} -> {ROWS}
        %t = tpu.bitcast_vreg %k : {WORDS} -> {ROWS}
        tpu.store %y[%z, %z], %r {LOAD} : {TILED}, {ROWS}, {END}
        tpu.store %y[%z, %z], %t {LOAD} : {TILED}, {ROWS}, {END}""")
    assert re.search(r"unpack_subelements \S+, 0 {integer_extended = false", text)
    assert re.search(r"unpack_subelements \S+, 1 {pack_format", text)


@pytest.mark.parametrize("element", ["bf16", "i8"])
def test_words_at_a_ragged_edge_keep_what_is_not_stored(element: str) -> None:
    """A store of 5 rows of packed elements leaves the sixth, which shares a word with it."""
    ref, vector = f"memref<8x128x{element}, {VMEM}>", f"vector<5x128x{element}>"
    module = parse_kernel(f"""module @k {{
      func.func @main(%x: {ref}, %y: {ref}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
        %c0 = arith.constant 0 : index
        %w = vector.load %x[%c0, %c0] : {ref}, vector<8x128x{element}>
        vector.store %w, %y[%c0, %c0] : {ref}, vector<8x128x{element}>
        %v = vector.load %x[%c0, %c0] : {ref}, {vector}
        %s = arith.{"addf" if element == "bf16" else "addi"} %v, %v : {vector}
        vector.store %s, %y[%c0, %c0] : {ref}, {vector}
        return
      }}
    }}""")
    dtype = np.dtype(ml_dtypes.bfloat16 if element == "bf16" else np.int8)
    numbers = np.arange(8 * 128).reshape(8, 128) // 64
    given = numbers.astype(dtype)
    run_pipeline(module)
    found = Kernel(module).run([given], [((8, 128), dtype)])[0]
    wanted = np.concatenate([2 * numbers[:5], numbers[5:]])
    np.testing.assert_array_equal(np.asarray(found, np.float32), wanted)


def test_slices_of_references_without_tiles_stay_inside() -> None:
    """Only registers go by tiles, over the end."""
    plain = f"memref<16x128xf32, {VMEM}>"
    text = f"""module @k {{ func.func @main(%x: {plain}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
      %c0 = arith.constant 0 : i32
      %s = tpu.memref_slice %x[%c0, %c0] : {plain} -> memref<24x128xf32, {VMEM}>
      return }} }}"""
    with pytest.raises(HloError, match="dimension 0 grows from 16 to 24"):
        run_pipeline(parse_kernel(text))


def stage_of(inputs: list[str], result: str, body: str, stage: str) -> list[str]:
    """The operations on vectors after a stage, by name."""
    module = parse_kernel(kernel(inputs, result, body))
    before = Kernel(module.clone())
    dims, dtype = tuple(int(n) for n in inputs[0].split("x")[:-1]), np.dtype(np.float32)
    given = np.random.default_rng(0).normal(size=dims).astype(dtype)
    outputs = [(tuple(int(n) for n in result.split("x")[:-1]), dtype)]
    wanted = before.run([given], outputs)[0]
    run_pipeline(module, stop_after=stage)
    np.testing.assert_array_equal(Kernel(module).run([given], outputs)[0], wanted)
    return re.findall(r"= (?:tpu|vector)\.(\w+)", print_kernel(module))


def test_registers_of_lanes_become_boxes_and_boxes_lanes() -> None:
    """A transposition of whole registers is their parts in another order."""
    made = stage_of(
        ["4x8x128xf32"],
        "8x512xf32",
        "%t = tpu.transpose %v0, [1, 0, 2] : vector<4x8x128xf32> -> vector<8x4x128xf32>\n"
        "    %r = vector.shape_cast %t : vector<8x4x128xf32> to vector<8x512xf32>",
        "canonicalize-mosaic",
    )
    assert made[-5:] == ["extract"] * 4 + ["concatenate"]
    made = stage_of(
        ["16x256xf32"],
        "2x16x128xf32",
        "%t = vector.shape_cast %v0 : vector<16x256xf32> to vector<16x2x128xf32>\n"
        "    %r = tpu.transpose %t, [1, 0, 2] : vector<16x2x128xf32> -> vector<2x16x128xf32>",
        "canonicalize-mosaic-simplify",
    )
    assert made[-5:] == ["extract_strided_slice"] * 2 + ["reshape"] * 2 + ["concatenate"]


def test_parts_of_registers_stay_transposed() -> None:
    """Lanes that are no whole register are not taken apart."""
    made = stage_of(
        ["4x8x64xf32"],
        "8x256xf32",
        "%t = tpu.transpose %v0, [1, 0, 2] : vector<4x8x64xf32> -> vector<8x4x64xf32>\n"
        "    %r = vector.shape_cast %t : vector<8x4x64xf32> to vector<8x256xf32>",
        "canonicalize-mosaic",
    )
    assert made[-2:] == ["transpose", "reshape"]


@pytest.mark.parametrize("order", [[1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1]])
def test_transpositions_are_made_of_those_registers_have(order: list[int]) -> None:
    """Of the last two dimensions, or of the two before the last one; never more than three."""
    shape = [2, 16, 128]
    result = "x".join(str(shape[dim]) for dim in order)
    vectors = f"vector<2x16x128xf32> -> vector<{result}xf32>"
    module = parse_kernel(
        kernel(["2x16x128xf32"], f"{result}xf32", f"%r = tpu.transpose %v0, {order} : {vectors}")
    )
    run_pipeline(module, stop_after="canonicalize-mosaic")
    steps = re.findall(r"tpu\.transpose \S+, \[(.*?)\]", print_kernel(module))
    assert set(steps) <= {"0, 2, 1", "1, 0, 2"}
    assert len(steps) == {"[0, 2, 1]": 1, "[2, 1, 0]": 3}.get(str(order), 2)


@pytest.mark.parametrize(("upper", "count"), [(1, 1), (0, 0), (2, 1)])
def test_loops_of_one_step_are_their_body(upper: int, count: int) -> None:
    """Of none, nothing; of two, a loop."""
    ref = f"memref<8x128xf32, {VMEM}>"
    module = parse_kernel(f"""module @k {{
      func.func @main(%x: {ref}, %y: {ref}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
        %c0 = arith.constant 0 : index
        %z = arith.constant 0 : i32
        %o = arith.constant 1 : i32
        %n = arith.constant {upper} : i32
        scf.for %i = %z to %n step %o : i32 {{
          %v = vector.load %x[%c0, %c0] : {ref}, {ROWS}
          vector.store %v, %y[%c0, %c0] : {ref}, {ROWS}
        }}
        return
      }}
    }}""")
    run_pipeline(module, stop_after="infer-memref-layout-simplify")
    text = print_kernel(module)
    assert text.count("vector.store") == count
    assert ("scf.for" in text) == (upper == 2)
