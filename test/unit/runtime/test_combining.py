"""LLVM combines instructions where that gains something, and nowhere else."""

from __future__ import annotations

import pytest

import mlirhlo
from mlirhlo.lowering import target
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.runtime.jit import compile_object
from mlirhlo.runtime.object_code.combining import gains_by_combining

pytest.importorskip("llvmlite")


def text_of(type_: str, body: str) -> str:
    """Assembly of an entry with a parameter `x` of that type."""
    adder = "f { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] add(a, b) }\n"
    entry = f"ENTRY e {{\n  x = TYPE[64,96] parameter(0)\n  {body}\n}}\n"
    text = f"HloModule m\n{adder}{entry}".replace("TYPE", type_)
    return lower(mlirhlo.parse(text).op).text


ROWS = """zero = TYPE[] constant(0)
  s = TYPE[64] reduce(x, zero), dimensions={1}, to_apply=f
  b = TYPE[64,96] broadcast(s), dimensions={0}
  ROOT d = TYPE[64,96] divide(x, b)"""


def test_rows_of_floats_are_plain() -> None:
    assert not gains_by_combining(text_of("f32", ROWS))
    assert not gains_by_combining(text_of("f32", "ROOT r = f32[64,96] exponential(x)"))


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("bf16", ROWS),
        ("f16", "ROOT r = f16[64,96] add(x, x)"),
        ("s8", "ROOT r = s8[64,96] multiply(x, x)"),
        ("s32", "ROOT r = f64[64,96] convert(x)"),
        ("f32", "ROOT r = f32[64,96] sine(x)"),
        ("f32", "ROOT r = pred[64,96] compare(x, x), direction=EQ"),
    ],
)
def test_other_types_and_functions_are_not(type_: str, body: str) -> None:
    assert gains_by_combining(text_of(type_, body))


PLAIN = """define <16 x float> @f(<16 x float> %a, i64 %n) {
b0:
  %v = fadd <16 x float> %a, %a
  %m = OPCODE i64 %n, 12
  ret <16 x float> %v
}
"""


@pytest.mark.parametrize(("opcode", "gains"), [("shl", False), ("udiv", True), ("srem", True)])
def test_divisions_by_numbers_are_combined(opcode: str, gains: bool) -> None:
    assert gains_by_combining(PLAIN.replace("OPCODE", opcode)) is gains


CHOICE = """{DEFINE}
  a = pred[64,96] compare(x, y), direction=LT
  b = pred[64,96] compare(y, z), direction=LT
  c = pred[64,96] {HOW}
  ROOT r = f32[64,96] select(c, x, y)"""


@pytest.mark.skipif(not target.host().has("avx512vl"), reason="masks are vectors elsewhere")
@pytest.mark.parametrize(
    ("how", "gains"), [("xor(a, b)", False), ("compare(a, b), direction=EQ", True)]
)
def test_masks_are_not_compared(how: str, gains: bool) -> None:
    """LLVM has no instruction for that, but what it combines."""
    define = "y = f32[64,96] parameter(1)\n  z = f32[64,96] parameter(2)"
    text = text_of("f32", CHOICE.replace("{DEFINE}", define).replace("{HOW}", how))
    assert gains_by_combining(text) is gains
    assert compile_object(text)


@pytest.mark.parametrize(
    ("line", "gains"),
    [
        ("%v = select <16 x i1> %m, <16 x float> %a, <16 x float> %b", False),
        ("%v = select <16 x i1> %m, <16 x i1> %a, <16 x i1> %b", True),
        ("%v = select i1 %m, <16 x i1> %a, <16 x i1> %b", True),
        ("%v = and <16 x i1> %m, %n", False),
        ("%v = and <4 x i1> %m, %n", True),
        ("%v = shufflevector <16 x i1> %m, <16 x i1> %n, <16 x i32> zeroinitializer", True),
    ],
)
def test_masks_where_they_belong(line: str, gains: bool) -> None:
    assert gains_by_combining(f"define void @f() {{\nb0:\n  {line}\n  ret void\n}}\n") is gains


def test_intrinsics_count() -> None:
    for name, gains in (("fma.v16f32", False), ("maximum.v16f32", True)):
        assert (
            gains_by_combining(f"{PLAIN.replace('OPCODE', 'add')}declare float @llvm.{name}(float)")
            is gains
        )
