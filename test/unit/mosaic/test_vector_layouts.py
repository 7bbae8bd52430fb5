"""`infer-vector-layout`: what the TPU compiler writes of operations on vectors that are loaded whole."""

from __future__ import annotations

import re

import pytest

from mlirhlo.dialects.tpu.values import VectorLayout
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic.pipeline import run_pipeline
from mlirhlo.mosaic.pipeline.layouts import joined

VMEM = "#tpu.memory_space<vmem>"


def zeros(shape: str) -> str:
    return ", ".join(["%c0"] * shape.count("x"))


def laid_out(inputs: list[str], result: str, body: str, generation: str = "v5e") -> str:
    """The text of the stage of a kernel that loads `%v0`, … and stores `%r`."""
    refs = [f"%x{at}: memref<{shape}, {VMEM}>" for at, shape in enumerate((*inputs, result))]
    lines = [f"module @k {{ func.func @main({', '.join(refs)}) attributes "]
    lines.append("{tpu.core_type = #tpu.core_type<tc>} { %c0 = arith.constant 0 : index")
    for at, shape in enumerate((*inputs, result)):
        ref = f"%x{at}[{zeros(shape)}] : memref<{shape}, {VMEM}>, vector<{shape}>"
        if at < len(inputs):
            lines.append(f"%v{at} = vector.load {ref}")
        else:
            lines += [body, f"vector.store %r, {ref}"]
    module = parse_kernel("\n".join([*lines, "return } }"]))
    run_pipeline(module, stop_after="infer-vector-layout", generation=generation)
    return re.sub(r'#mosaic_tc.vpad<"(.*?)">', r"\1", print_kernel(module))


def layouts_of(text: str, name: str) -> list[tuple[str, str]]:
    """The layouts of operands and results of each operation of that name."""
    found = [line for line in text.splitlines() if re.search(rf"\b{re.escape(name)} ", line)]
    return [
        (
            re.findall(r"in_layout = \[(.*?)\]", line)[0],
            re.findall(r"out_layout = \[(.*?)\]", line)[0],
        )
        for line in found
    ]


RESHAPES = [
    ("16x256xf32", "1x16x256xf32", "32,{0,0},(8,128)", "32,{0,0},(8,128)"),
    ("1024xbf16", "1x1024xbf16", "16,{0,0},(1,256),-2", "16,{0,0},(1,256)"),
    ("5x1x7xbf16", "5x7xbf16", "16,{0,0},(2,128)", "16,{0,0},(2,128),-2"),
    ("16x1xf32", "16xf32", "32,{0,0},(8,128)", "32,{0,0},(8,128),-1"),
    ("16xf32", "16x1xf32", "32,{0,0},(8,128),-2", "32,{0,*},(8,128)"),
    ("3x5xf32", "3x5x1xf32", "32,{0,0},(8,128)", "32,{0,*},(8,128)"),
    ("12x100xf32", "3x4x100xf32", "32,{0,0},(4,128)", "32,{0,0},(4,128)"),
    ("16x128xbf16", "2x8x128xbf16", "16,{0,0},(8,128)", "16,{0,0},(8,128)"),
    ("2x3x4xf32", "6x4xf32", "32,{0,0},(1,128)", "32,{0,0},(1,128)"),
    ("2x3x4xbf16", "6x4xbf16", "16,{0,0},(1,256)", "16,{0,0},(1,256)"),
    ("16x256xf32", "32x128xf32", "32,{0,0},(4,128)", "32,{0,0},(8,128)"),
    ("8x512xbf16", "32x128xbf16", "16,{0,0},(4,128)", "16,{0,0},(16,128)"),
    ("32x128xf32", "8x512xf32", "32,{0,0},(8,128)", "32,{0,0},(2,128)"),
    ("6x10xf32", "60xf32", "32,{0,0},(8,128)", "32,{0,0},(8,128),-2"),
]


@pytest.mark.parametrize(("before", "after", "operand", "result"), RESHAPES)
def test_reshapes(before: str, after: str, operand: str, result: str) -> None:
    text = laid_out(
        [before], after, f"%r = vector.shape_cast %v0 : vector<{before}> to vector<{after}>"
    )
    assert layouts_of(text, "tpu.reshape") == [(operand, result)]


def cast(name: str, before: str, after: str) -> tuple[list[str], str, str]:
    return [before], after, f"%r = arith.{name} %v0 : vector<{before}> to vector<{after}>"


CASTS = [
    ("tpu.extf", cast("extf", "5x40xf8E4M3FN", "5x40xf32"), "8,{0,0},(8,128)", "32,{0,0},(8,128)"),
    ("tpu.extf", cast("extf", "300xbf16", "300xf32"), "16,{0,0},(8,128),-2", "32,{0,0},(8,128),-2"),
    ("tpu.extf", cast("extf", "32x128xbf16", "32x128xf32"), "16,{0,0},(8,128)", "32,{0,0},(8,128)"),
    ("arith.extsi", cast("extsi", "4x128xi8", "4x128xi32"), "8,{0,0},(4,128)", "32,{0,0},(4,128)"),
    (
        "arith.trunci",
        cast("trunci", "33x130xi32", "33x130xi8"),
        "32,{0,0},(8,128)",
        "8,{0,0},(32,128)",
    ),
    ("tpu.truncf", cast("truncf", "3x5xf32", "3x5xbf16"), "32,{0,0},(8,128)", "16,{0,0},(8,128)"),
]


@pytest.mark.parametrize(("name", "given", "operand", "result"), CASTS)
def test_casts(name: str, given: tuple[list[str], str, str], operand: str, result: str) -> None:
    found = layouts_of(laid_out(*given), name)
    if name == "arith.extsi":
        found = [pair for pair in found if pair[0].startswith("8")]
    assert found == [(operand, result)]


@pytest.mark.parametrize(
    ("shape", "newer"), [("24x300", "16,{0,0},(16,128)"), ("33x130", "16,{0,0},(8,128)")]
)
def test_narrow_floats_in_whole_registers(shape: str, newer: str) -> None:
    """From generation 6 on, where these are not more than registers of tiles side by side."""
    given = cast("truncf", f"{shape}xf32", f"{shape}xbf16")
    found = [layouts_of(laid_out(*given, target), "tpu.truncf")[0][1] for target in ("v5e", "v6e")]
    assert found == ["16,{0,0},(8,128)", newer]


def test_narrow_floats_are_whole_registers_where_a_product_takes_them() -> None:
    product = """%h = arith.truncf %v0 : vector<128x128xf32> to vector<128x128xbf16>
        %z = arith.constant dense<0.0> : vector<128x128xf32>
        %r = tpu.matmul %h, %h, %z {dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1],
          [0, 0, 1, 1], [], []>, transpose_lhs_hint = false}
          : vector<128x128xbf16>, vector<128x128xbf16>, vector<128x128xf32> -> vector<128x128xf32>"""
    text = laid_out(["128x128xf32"], "128x128xf32", product)
    assert layouts_of(text, "tpu.truncf")[0][1] == "16,{0,0},(16,128)"


def test_what_is_joined_begins_where_the_part_before_it_ends() -> None:
    types = "vector<5x128xf32>, vector<9x128xf32> -> vector<14x128xf32>"
    text = laid_out(
        ["5x128xf32", "9x128xf32"], "14x128xf32", f"%r = tpu.concatenate %v0, %v1 in 0 : {types}"
    )
    parts = "32,{0,0},(8,128), 32,{5,0},(8,128)"
    assert layouts_of(text, "tpu.concatenate") == [(parts, "32,{0,0},(8,128)")]


@pytest.mark.parametrize(("amount", "begin"), [(1, 4), (5, 0), (8, 5)])
def test_what_is_turned_by_a_constant_begins_in_a_tile(amount: int, begin: int) -> None:
    text = laid_out(
        ["13x130xf32"],
        "13x130xf32",
        f"""%a = arith.constant {amount} : i32
        %r = tpu.dynamic_rotate %v0 by %a dim 0 : vector<13x130xf32>, i32 -> vector<13x130xf32>""",
    )
    want = f"32,{{{begin},0}},(8,128)"
    assert [pair[1] for pair in layouts_of(text, "tpu.dynamic_rotate")] == [want]


def test_bits_keep_their_tiles() -> None:
    text = laid_out(
        ["16x128xbf16"],
        "8x128xi32",
        "%r = tpu.bitcast %v0 : vector<16x128xbf16> -> vector<8x128xi32>",
    )
    assert layouts_of(text, "tpu.bitcast") == [("16,{0,0},(8,128)", "32,{0,0},(4,128)")]


def test_a_part_is_stored_from_where_it_lies() -> None:
    """Rows one after another in memory take any sublane as the first."""
    text = laid_out(
        ["16x256xf32"],
        "5x100xf32",
        """%r = vector.extract_strided_slice %v0 {offsets = [3, 128], sizes = [5, 100], strides = [1, 1]}
        : vector<16x256xf32> to vector<5x100xf32>""",
    )
    assert re.search(r"vector_store .*in_layout = \[32,\{3,0\},\(8,128\)", text)


LOOP = """%z = arith.constant dense<0.0> : vector<8x128xf32>
    %one = arith.constant dense<1.0> : vector<8x128xf32>
    %l = arith.constant 0 : i32
    %u = arith.constant 4 : i32
    %s = arith.constant 1 : i32
    %r, %o = scf.for %i = %l to %u step %s iter_args(%a = %z, %b = %z)
        -> (vector<8x128xf32>, vector<8x128xf32>) : i32 {
      %c = arith.addf %a, %v0 : vector<8x128xf32>
      %d = arith.addf %b, %one : vector<8x128xf32>
      scf.yield %c, %d : vector<8x128xf32>, vector<8x128xf32>
    }"""


def test_a_loop_carries_what_begins_and_each_step_can_have() -> None:
    """The first is everywhere the same only at the beginning, the second all the time."""
    text = laid_out(["8x128xf32"], "8x128xf32", LOOP)
    assert [pair[1] for pair in layouts_of(text, "tpu.assume_layout")] == [
        "32,{0,0},(8,128)",
        "32,{*,*},(8,128)",
    ]
    assert "scf.yield {in_layout = [32,{0,0},(8,128), 32,{*,*},(8,128)]}" in text


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("32,{*,0},(8,128)", "32,{0,*},(8,128)", "32,{0,0},(8,128)"),
        ("32,{*,*},(8,128)", "32,{3,5},(8,128)", "32,{3,5},(8,128)"),
        ("32,{0,0},(8,128)", "32,{3,0},(8,128)", "None"),
        ("32,{0,0},(8,128)", "16,{0,0},(8,128)", "None"),
    ],
)
def test_what_two_layouts_are_together(left: str, right: str, want: str) -> None:
    first, second = VectorLayout.of(left), VectorLayout.of(right)
    assert first is not None
    assert second is not None
    assert str(joined(first, second, (16, 256))) == want
