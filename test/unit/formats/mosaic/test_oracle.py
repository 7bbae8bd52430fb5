"""Small kernels printed as jaxlib prints them, in pretty and in generic form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import SHARED, needs_shared

from mlirhlo.formats.mosaic import parse_kernel, print_kernel

pytestmark = [needs_shared, pytest.mark.oracle, pytest.mark.slow]

CASES = SHARED / "reference" / "mosaic_samples" / "acceptance.jsonl"
WRITTEN = """module { func.func @f(%n: index, %v: vector<8x128xf32>, %m: memref<8x128xf32>) attributes {
    a = #tpu.element_window<[1, 2],[0, 4]>} {
  affine.for %i = 0 to %n step 2 { }
  %r = affine.for %i = 0 to 4 iter_args(%a = %v) -> (vector<8x128xf32>) { affine.yield %a : vector<8x128xf32> }
  scf.index_switch %n case 1 { scf.yield } default { scf.yield }
  %c = vector.create_mask %n, %n : vector<8x128xi1>
  %ml = vector.maskedload %m[%n, %n], %c, %v
    : memref<8x128xf32>, vector<8x128xi1>, vector<8x128xf32> into vector<8x128xf32>
  scf.parallel (%i) = (%n) to (%n) step (%n) { scf.reduce }
  %z = arith.constant 0.0 : f32
  %p = scf.parallel (%i) = (%n) to (%n) step (%n) init (%z) -> f32 { scf.reduce(%z : f32) {
     ^bb0(%a: f32, %b: f32):
     %s = arith.addf %a, %b fastmath<contract> : f32
     scf.reduce.return %s : f32 } }
  %s = memref.subview %m[0, %n] [8, 64] [1, 1] : memref<8x128xf32> to memref<8x64xf32, strided<[128, 1], offset: ?>>
  %t = arith.truncf %z to_nearest_even : f32 to bf16
  %d = memref.dim %m, %n : memref<8x128xf32>
  %e = vector.extract %v[%n, 3] : f32 from vector<8x128xf32>
  %o = arith.addi %n, %n overflow<nsw, nuw> : index
  %tr, %fa = arith.addui_extended %n, %n : index, i1
  %al = memref.alloca(%n) : memref<?xf32>
  %q = arith.cmpi slt, %n, %n {foo} : index
  scf.while : () -> () { scf.condition(%q) } do { scf.yield }
  cf.cond_br %q, ^bb1(%n : index), ^bb2 {x = 1 : i64}
 ^bb1(%k: index):
  cf.br ^bb2
 ^bb2:
  return } }
"""


@pytest.fixture(scope="module")
def jaxlib_prints() -> Any:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    tpu = pytest.importorskip("jax._src.lib").tpu
    ir = pytest.importorskip("jaxlib.mlir.ir")
    context = mlir.make_ir_context()
    tpu.register_dialect(context)
    context.allow_unregistered_dialects = True

    def prints(text: str) -> tuple[str, str] | None:
        """Pretty and generic form; None for ops that this jaxlib has not."""
        with context, ir.Location.unknown():
            try:
                op = ir.Module.parse(text).operation
            except ir.MLIRError:
                return None
            return op.get_asm(), op.get_asm(print_generic_op_form=True)

    return prints


def texts() -> dict[str, str]:
    lines = CASES.read_text().splitlines() if CASES.exists() else []
    cases = [json.loads(line) for line in lines]
    return {"written": WRITTEN} | {f"{c['group']} {c['name']}": c["mlir"] for c in cases}


def test_small_kernels_print_as_jaxlib_prints_them(jaxlib_prints: Any) -> None:
    compared = 0
    for name, text in texts().items():
        wanted = jaxlib_prints(text)
        if wanted is None:
            continue
        module = parse_kernel(text, name)
        pretty, generic = (
            print_kernel(module, keep_names=False),
            print_kernel(module, form="generic"),
        )
        assert (pretty.rstrip("\n"), generic.rstrip("\n")) == tuple(
            w.rstrip("\n") for w in wanted
        ), name
        compared += 1
    assert compared > len(texts()) * 0.95
