"""Contractions on the instructions of one kind of processor or another."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import sample, sample_rows
from unit.lowering.contraction_support import MATRICES, Array, agrees, dot, run
from unit.lowering.kernel_support import needs
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import mlirhlo
from mlirhlo.cli.opt.stage_parsing import context
from mlirhlo.lowering import target as targets
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.hlo_to_loops.contractions.kernels import contraction_kernel
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Cpu, compile_object

pytest.importorskip("llvmlite")

BF16_VECTORS = replace(targets.AVX512, features=targets.AVX512.features | {"avx512bf16"})
TILES = replace(
    targets.AVX512, features=targets.AVX512.features | {"amx-tile", "amx-bf16", "amx-int8"}
)


BYTES = replace(targets.AVX512, features=targets.AVX512.features | {"avx512vnni"})
NARROW_BYTES = replace(targets.AVX2, features=targets.AVX2.features | {"avxvnni"})
BYTES_OF_ONE_SIGN = replace(targets.AVX2, features=NARROW_BYTES.features | {"avxvnniint8"})


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("target", [targets.GENERIC, targets.AVX2, NARROW_BYTES, BF16_VECTORS])
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "s8", "c64"])
def test_other_processors(target: targets.Target, element: str) -> None:
    """Kernels for lesser processors run on this one too."""
    needs(target)
    with targets.using(target):
        agrees(dot(element, 33, 41, 37))
        agrees(
            f"{element}[2,6,6,20] convolution({element}[2,6,6,5] x, {element}[3,3,5,20] y), "
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
        )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("l2_bytes", [1 << 14, 1 << 16])
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "s8", "c64"])
@pytest.mark.parametrize(
    "sizes", sample([(33, 300, 70), (130, 257, 33), (7, 513, 100), (40, 140, 600)], 4)
)
def test_what_caches_do_not_hold_goes_in_blocks(
    sizes: tuple[int, int, int], element: str, l2_bytes: int
) -> None:
    """Of the depth, rows and columns; what comes after the sums waits for the last block."""
    rows, depth, columns = sizes
    kernels = f"{element}[3,3,{depth // 9},{columns}] y"
    residual = f"""ENTRY e {{
  x = {element}[{rows},{depth}] parameter(0)
  y = {element}[{columns},{depth}] parameter(1)
  z = {element}[{rows},{columns}] parameter(2)
  d = {element}[{rows},{columns}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT s = {element}[{rows},{columns}] add(d, z)
}}
"""
    with targets.using(replace(targets.current(), l1_bytes=1 << 12, l2_bytes=l2_bytes)):
        agrees(dot(element, *sizes))
        agrees(residual)
        agrees(
            f"{element}[1,5,{rows},{columns}] convolution("
            f"{element}[1,5,{rows},{depth // 9}] x, {kernels}), "
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
        )


def test_small_matrices_of_a_batch_go_whole() -> None:
    """Their depth in one piece; rows of the next tile, or matrix, are asked for meanwhile."""
    text = (
        "f32[9,64,48] dot(f32[9,64,64] x, f32[9,64,48] y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    )
    with targets.using(replace(targets.current(), l2_bytes=1 << 16)):
        agrees(text)
    with targets.using(replace(targets.AVX512, l2_bytes=1 << 16)):
        loops = str(lower(mlirhlo.parse(text).op).loops)
    assert "_ahead8(" in loops
    assert "_adds" not in loops


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("target", [targets.AVX2, NARROW_BYTES, targets.AVX512, BYTES, None])
@pytest.mark.parametrize(
    ("lhs", "rhs"), sample_rows(product(["s8", "u8", "u4", "pred", "s16"], ["s8", "u8"]), 3)
)
def test_small_integers_of_any_sign_are_exact(
    target: targets.Target | None, lhs: str, rhs: str
) -> None:
    """Of matrices whose memory runs along the depth or not; at an edge of a convolution zeros count."""
    target = target or targets.host()
    needs(target)
    with targets.using(target):
        agrees(f"s32[33,37] dot({lhs}[33,41] x, {rhs}[41,37] y), {MATRICES}")
        agrees(f"s32[33,37]{{0,1}} dot({lhs}[33,150]{{0,1}} x, {rhs}[150,37]{{0,1}} y), {MATRICES}")
        agrees(f"s32[70,600] dot({lhs}[70,1100] x, {rhs}[1100,600] y), {MATRICES}")
        agrees(
            f"s32[2,6,6,20] convolution({lhs}[2,6,6,5] x, {rhs}[3,3,5,20] y), "
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
        )
        agrees(f"""
ENTRY e {{
  x = {lhs}[40,64] parameter(0)
  y = {rhs}[64,48] parameter(1)
  scale = f32[48] parameter(2)
  wide = f32[40,48] broadcast(scale), dimensions={{1}}
  d = s32[40,48] dot(x, y), {MATRICES}
  f = f32[40,48] convert(d)
  ROOT r = f32[40,48] multiply(f, wide)
}}
""")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("target", [NARROW_BYTES, BYTES, targets.AVX512])
@pytest.mark.parametrize(("lhs", "rhs"), [("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")])
@pytest.mark.parametrize("greatest", [False, True])
def test_products_of_the_greatest_bytes_do_not_saturate(
    target: targets.Target, lhs: str, rhs: str, greatest: bool
) -> None:
    needs(target)
    with targets.using(target):
        module = mlirhlo.parse(f"s32[16,32] dot({lhs}[16,64] x, {rhs}[64,32] y), {MATRICES}")
        arguments: list[Array] = []
        for parameter in module.hlo.entry.parameters:
            shape: Any = parameter.shape
            info = np.iinfo(shape.element_type.dtype)
            value = info.max if greatest else info.min
            arguments.append(np.full(shape.dimensions, value, shape.element_type.dtype))
        expected = np.asarray(module(*arguments))
        assert np.array_equal(run(module, arguments, [expected])[0], expected)


@pytest.mark.parametrize("element", ["s8", "u8"])
def test_bytes_of_one_sign_have_an_instruction_of_their_own(element: str) -> None:
    """Which is not on this machine: LLVM is asked whether it knows it."""
    module = mlirhlo.parse(f"s32[16,32] dot({element}[16,64] x, {element}[64,32] y), {MATRICES}")
    entry = module.hlo.entry
    output = Output(entry.root.output, array(entry.root.output))
    with targets.using(BYTES_OF_ONE_SIGN):
        kernel = contraction_kernel("kernel", [output], [p.output for p in entry.parameters])
        assert kernel is not None
        text = print_llvm(convert_to_llvm(ModuleOp([*helpers_of([kernel]), kernel]), features={}))
    assert f"vpdpb{'ss' if element == 's8' else 'uu'}d.256" in text
    assert compile_object(text, Cpu("sierraforest", ""))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("target", [targets.AVX2, BF16_VECTORS, None])
@pytest.mark.parametrize(("rows", "units", "columns"), [(40, 32, 96), (8, 16, 32), (128, 24, 32)])
def test_a_right_operand_in_pairs(
    target: targets.Target | None, rows: int, units: int, columns: int
) -> None:
    """It is read where it is, with what follows the sums."""
    target = target or targets.host()
    needs(target)
    with targets.using(target):
        agrees(f"""
ENTRY e {{
  x = bf16[{rows},{2 * units}] parameter(0)
  y = bf16[{units},{columns},2] parameter(1)
  z = f32[{rows},{columns}] parameter(2)
  split = bf16[{rows},{units},2] reshape(x)
  d = f32[{rows},{columns}] dot(split, y), lhs_contracting_dims={{1,2}}, rhs_contracting_dims={{0,2}}
  ROOT s = f32[{rows},{columns}] add(d, z)
}}
""")


@pytest.mark.parametrize(
    ("element", "target", "name"),
    [
        ("bf16", TILES, "amx.tile_mulf"),
        ("s8", TILES, "amx.tile_muli"),
        ("bf16", BF16_VECTORS, "x86vector.avx512.dot"),
        ("s8", BYTES, "mlirhlo.dot_i8"),
        ("s8", BYTES_OF_ONE_SIGN, "mlirhlo.dot_i8"),
        ("s8", targets.AVX512, "mlirhlo.dot_i16"),
    ],
)
def test_loops_on_registers_of_one_processor_are_read_back(
    element: str, target: targets.Target, name: str
) -> None:
    module = mlirhlo.parse(dot(element, 32, 64, 32))
    entry = module.hlo.entry
    output = Output(entry.root.output, array(entry.root.output))
    with targets.using(target):
        kernel = contraction_kernel("kernel", [output], [p.output for p in entry.parameters])
    assert kernel is not None
    text = str(ModuleOp([*helpers_of([kernel]), kernel]))
    assert f'"{name}"(' in text
    again = Parser(context(), text).parse_module()
    again.verify()
    assert str(again) == text


@pytest.mark.parametrize(("element", "target"), [("s8", BYTES), ("bf16", BF16_VECTORS)])
def test_units_of_the_depth_are_not_gathered(element: str, target: targets.Target) -> None:
    """Taps of a window become one axis only where vectors of whole units stay within one of them."""
    total = {"s8": "s32", "bf16": "f32"}[element]
    text = (
        f"{total}[2,9,9,32] convolution({element}[2,9,9,32] x, {element}[3,3,32,32] y), "
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    )
    entry = mlirhlo.parse(text).hlo.entry
    with targets.using(target):
        root = entry.root.output
        kernel = contraction_kernel(
            "kernel", [Output(root, array(root))], [p.output for p in entry.parameters]
        )
    assert "vector.gather" not in str(kernel)
    if target.features <= targets.host().features:
        with targets.using(target):
            agrees(text)
