"""What real MLIR prints of the same programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support import SEED
from unit.stablehlo.op_texts import LINES, PROGRAMS

from mlirhlo.dialects.stablehlo.elements import array_of, dense
from mlirhlo.formats.stablehlo import parse_module, print_module
from mlirhlo.formats.stablehlo.attribute_text import AttributeTexts

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")

KNOWN = [p for p, line in zip(PROGRAMS, LINES, strict=True) if "!quant" not in line]


def _context():
    from jax._src.interpreters import mlir

    return mlir.make_ir_context()


def _forms(text: str) -> list[str]:
    """Pretty and generic, without and with places, as MLIR prints them."""
    from jaxlib.mlir import ir

    with _context() as context:
        context.allow_unregistered_dialects = True
        operation = ir.Module.parse(text).operation
        return [
            operation.get_asm(print_generic_op_form=generic, enable_debug_info=places).rstrip()
            + "\n"
            for places in (False, True)
            for generic in (False, True)
        ]


@pytest.mark.parametrize("text", KNOWN, ids=range(len(KNOWN)))
def test_ops_are_printed_as_mlir_prints_them(text: str) -> None:
    pretty, generic, pretty_places, generic_places = _forms(text)
    module = parse_module(text)
    assert print_module(module) == pretty
    assert print_module(module, generic=True) == generic
    assert print_module(parse_module(generic)) == pretty
    # What a pretty form leaves out, such as a default, MLIR does not read back either.
    if ", , sizes" not in pretty:  # which MLIR prints and cannot read
        assert print_module(parse_module(pretty), generic=True) == _forms(pretty)[1]
    assert print_module(parse_module(pretty_places), debug_info=True) == pretty_places
    again = print_module(parse_module(generic_places), generic=True, debug_info=True)
    assert again == generic_places


PLACES = """
#l0 = loc("f.py":1:2)
#l1 = loc("name"(#l0))
module {
func.func @f(%a: tensor<f32> loc("a"), %b: tensor<f32> loc(fused<"m">["x", #l0])) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32> loc(#l1)
  %1 = stablehlo.add %a, %b : tensor<f32>
    loc(callsite("x"("f.py":1:2 to 3:4) at fused["a", unknown, "f.py":1:2 to :4]))
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = []
    : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("red")
  %3 = stablehlo.reduce(%0 init: %1) across dimensions = [] : (tensor<f32>, tensor<f32>)
    -> tensor<f32> reducer(%x: tensor<f32> loc("u"), %y: tensor<f32> loc("v"))
    { stablehlo.return %x : tensor<f32> loc("w")} loc("red2")
  %4 = "stablehlo.map"(%0) ({^bb0(%x: tensor<f32> loc("mm")):
    stablehlo.return %x : tensor<f32> loc("w")}) {dimensions=array<i64>}
    : (tensor<f32>) -> tensor<f32> loc("map")
  return %2 : tensor<f32> loc(unknown)
} loc("fun")
}
"""

SHARDY = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>})
    -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg1: tensor<4x8xf32>) {
    %c = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %2 = stablehlo.add %arg1, %c
        {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""

BLOCKS = """
func.func @f(%a: tensor<i1>, %b: tensor<f32>) -> tensor<f32> {
  %c = "t.cond"(%a) : (tensor<i1>) -> i1
  cf.cond_br %c, ^bb1(%b : tensor<f32>), ^bb2
^bb1(%x: tensor<f32>):
  return %x : tensor<f32>
^bb2:
  cf.br ^bb1(%b : tensor<f32>)
}
"""

NESTED = """
func.func private @g(tensor<f32> {jax.x = 1 : i32}) -> (tensor<f32> {jax.y}, tensor<f32>)
func.func private @"h i"(%x: tensor<f32>) -> tensor<f32> attributes {a.b = "q\\"\\\\\\n\\C3\\A9é"} {
  return %x : tensor<f32>
}
func.func @f(%arg0: tensor<f32>, %arg1: tensor<2xi32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = func.call @g(%arg0) {x} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %cst = stablehlo.constant dense<1.0> : tensor<f32>
  %cst_0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %2 = stablehlo.constant dense<true> : tensor<i1>
  %1:2 = "stablehlo.if"(%2) ({
    %cst_1 = stablehlo.constant dense<1> : tensor<i32>
    %9:2 = stablehlo.while(%i = %cst_1, %j = %cst) : tensor<i32>, tensor<f32> cond {
      %3 = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %3 : tensor<i1>
    } do {
      %7 = func.call @"h i"(%j) : (tensor<f32>) -> tensor<f32>
      stablehlo.return %i, %7 : tensor<i32>, tensor<f32>
    }
    stablehlo.return %9#1, %0#0 : tensor<f32>, tensor<f32>
  }, { stablehlo.return %cst, %0#1 : tensor<f32>, tensor<f32> })
    : (tensor<i1>) -> (tensor<f32>, tensor<f32>)
  return %1#0, %1#1 : tensor<f32>, tensor<f32>
}
"""

ATTRIBUTES = """
module @a.b attributes {z.x = #stablehlo<precision HIGH>, z.y = affine_map<(d0, d1) -> (d1, d0)>,
  z.z = [1, 2 : i32, 3.0, 4.0 : f32], z.w = array<i8: 1, 2>, z.v = unit, z.u = f32,
  z.t = tensor<2xf32>, z.s = @q::@r, z.r = dense<1> : tensor<i32>, z.q = true, z.p = -1 : i8,
  z.o = 0x7FC00000 : f32, z.n = 1.0e-7 : f32, z.m = {}, z.l = [], z.k = !stablehlo.token,
  z.j = (f32) -> f32, z.i = [[1.0]], z.ii = 255 : ui8, z.h = 5, z.g = 0.1,
  z.sp = sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>, z.uu = #unk.foo<a, "b>">,
  z.ud = #unk<bar [1,2]>, z.ut = !unk.foo<x>, z.in = 1 : index, z.df = array<f32: 1.0, 2.5>,
  z.se = dense_resource<foo> : tensor<2xf32>, z.str = "", z.i1a = array<i1: true>,
  "z.a b" = [{a = 1}, 1.0 : bf16, "x"], z.mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>]>,
  z.rg = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>,
    <name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "x">,
    #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>} {
 module @inner { }
}
"""

WHOLE = {
    "places": PLACES,
    "shardy": SHARDY,
    "blocks": BLOCKS,
    "nested": NESTED,
    "attributes": ATTRIBUTES,
}


@pytest.mark.parametrize("name", WHOLE)
def test_programs_are_printed_as_mlir_prints_them(name: str) -> None:
    pretty, generic, pretty_places, generic_places = _forms(WHOLE[name])
    module = parse_module(WHOLE[name])
    assert print_module(module) == pretty
    assert print_module(module, generic=True) == generic
    assert print_module(parse_module(pretty_places), debug_info=True) == pretty_places
    again = print_module(parse_module(generic_places), generic=True, debug_info=True)
    assert again == generic_places


_ELEMENTS = [
    *(f"i{bits}" for bits in (1, 2, 4, 8, 16, 32, 64)),
    *(f"ui{bits}" for bits in (2, 4, 8, 16, 32, 64)),
    *("index", "f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN", "f8E4M3", "f8E5M2FNUZ"),
    *("f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
    *("complex<f32>", "complex<f64>"),
]


_NARROW = (("i16", 8), ("i1", 1), ("i2", 2), ("i4", 4), ("f6", 6), ("f4", 4))
"""Bits of elements that do not fill their byte, by how their name begins."""


@pytest.mark.parametrize("element", _ELEMENTS)
def test_constants_are_printed_as_mlir_prints_them(element: str) -> None:
    """Any bits of every element type, through the hexadecimal form that both read."""
    from jaxlib.mlir import ir
    from xdsl.dialects.builtin import ComplexType, TensorType

    from mlirhlo.formats.stablehlo.reader_types import named_type

    inner = element.removeprefix("complex<").removesuffix(">")
    named = named_type(inner)
    assert named is not None
    type_ = ComplexType(named) if inner != element else named
    rng = random.Random(SEED)
    from mlirhlo.dialects.stablehlo.elements import dtype_of

    dtype = dtype_of(type_)
    for shape in ([], [3], [2, 3], [4, 5, 2], [0], [101], [7, 16]):
        for splat in (False, True):
            count = int(np.prod(shape))
            raw = rng.randbytes(count * dtype.itemsize)
            if dtype.itemsize == 1:
                width = next((b for p, b in _NARROW if element.lstrip("u").startswith(p)), 8)
                raw = bytes(b & ((1 << width) - 1) for b in raw)
            array = np.frombuffer(raw, dtype).reshape(shape)
            if splat and count:
                array = np.broadcast_to(array.reshape(-1)[0], shape)
            ours = dense(array, TensorType(type_, shape))
            text = AttributeTexts().text(ours)
            with _context() as context:
                parsed = (
                    str(ir.Attribute.parse(text, context)) if "complex" not in element else None
                )
                if parsed is None:
                    module = f"module attributes {{a.b = {text}}} {{}}"
                    parsed = str(ir.Module.parse(module)).split("a.b = ")[1].rpartition("} {")[0]
            assert text == parsed
            module = parse_module(f"module attributes {{a.b = {text}}} {{}}")
            read = module.attributes["a.b"]
            assert read == ours
            assert array_of(read).tobytes() == np.ascontiguousarray(array).tobytes()


def test_floats_are_printed_as_mlir_prints_them() -> None:
    from jaxlib.mlir import ir

    rng = np.random.default_rng(SEED)
    exponents = 10.0 ** rng.integers(-12, 12, 80)
    values = np.concatenate(
        [
            rng.integers(0, 1 << 32, 80, dtype=np.uint64).astype(np.uint32).view(np.float32),
            (rng.integers(1, 100, 80) * exponents).astype(np.float32),
            np.array([0.1, 0.9, 1e-5, 1e22, 123456.7, 1234567.0, 65504, 1e-45, -0.0], np.float32),
        ]
    )
    for dtype, element in ((np.float32, "f32"), (np.float64, "f64")):
        for value in values.astype(dtype):
            bits = int(value.view(f"u{value.itemsize}"))
            text = f"dense<0x{bits:X}> : tensor<{element}>"
            with _context() as context:
                expected = str(ir.Attribute.parse(text, context))
            module = parse_module(f"module attributes {{a.b = {text}}} {{}}")
            assert AttributeTexts().text(module.attributes["a.b"]) == expected
