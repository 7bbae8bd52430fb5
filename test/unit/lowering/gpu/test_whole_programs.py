"""Stages `gpu` and `nvvm` are whole programs: kernels, and the host's function that launches them."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.cli.opt.gpu_stages import context
from mlirhlo.cli.opt.stage_parsing import parsed
from mlirhlo.cli.opt.stages import render_module
from mlirhlo.lowering.gpu.compiler import merged, plan_gpu
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.host import kernels_in, whole_program, with_code
from mlirhlo.lowering.gpu.nvvm import to_nvvm

LOOP = """HloModule loop
more {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
round {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[8] get-tuple-element(s), index=1
  y = f32[8] sine(v)
  ROOT t = (s32[], f32[8]) tuple(j, y)
}
ENTRY e {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(t), condition=more, body=round
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""

SWITCH = """HloModule switch
flip { x = f32[4,6] parameter(0) ROOT r = f32[6,4] transpose(x), dimensions={1,0} }
ones {
  x = f32[4,6] parameter(0)
  ROOT r = f32[6,4] constant({{1,2,3,4},{5,6,7,8},{-inf,nan,1,2},{3,4,5,6},{7,8,9,0},{1,2,3,4}})
}
double { x = f32[6,4] parameter(0) ROOT r = f32[6,4] add(x, x) }
same { x = f32[6,4] parameter(0) ROOT r = f32[6,4] copy(x) }
ENTRY e {
  i = s32[] parameter(0)
  p = pred[] parameter(1)
  x = f32[4,6] parameter(2)
  a = f32[6,4] conditional(i, x, x, x), branch_computations={flip, ones, flip}
  ROOT r = f32[6,4] conditional(p, a, a), true_computation=double, false_computation=same
}
"""

OTHERS = """HloModule others, replica_count=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[64,256] parameter(0)
  zero = f32[] constant(0)
  rows = f32[64] reduce(x, zero), dimensions={1}, to_apply=add
  all = f32[64] all-reduce(rows), to_apply=add
  order = f32[64] sort(all), dimensions={0}, to_apply=less
  wide = c64[64] convert(order)
  ROOT f = c64[64] fft(wide), fft_type=FFT, fft_length={64}
}
"""

PRODUCT = """HloModule product
ENTRY e {
  x = bf16[64,256] parameter(0)
  ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""

UNTIL = LOOP.replace(
    "n = s32[] constant(3)",
    "v = f32[8] get-tuple-element(s), index=1  a = f32[1] slice(v), slice={[0:1]}  b = f32[] reshape(a)"
    "  n = s32[] convert(b)",
)

PROGRAMS = {"loop": LOOP, "until": UNTIL, "switch": SWITCH, "others": OTHERS, "product": PRODUCT}


def stages_of(text: str) -> dict[str, ModuleOp]:
    """A program at both stages, by name."""
    _, plan = plan_gpu(mlirhlo.parse(text).op, device())
    program = whole_program(merged(plan.kernels), plan)
    nvvm = with_code(program, to_nvvm(kernels_in(program)))
    return {"gpu": program, "nvvm": nvvm}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_stages_verify_and_read_back(name: str) -> None:
    for module in stages_of(PROGRAMS[name]).values():
        module.verify()
        text = render_module(module)
        assert render_module(parsed(text.decode(), name, context())) == text


IN_ORDER = {
    "loop": ("scf.for", "gpu.launch_func", "gpu.launch_func"),
    "until": ("scf.while", "gpu.launch_func", "gpu.memcpy", "scf.condition", "gpu.launch_func"),
    "switch": ("scf.index_switch", "default", "gpu.memcpy", "scf.if"),
    "product": ("gpu.launch_func",),
    "others": ("gpu.alloc", "gpu.launch_func", "func.call @host_0_all_reduce", "gpu.dealloc"),
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_host_follows_control_flow(name: str) -> None:
    text = render_module(stages_of(PROGRAMS[name])["gpu"]).decode()
    at = text.index("func.func @main")
    for word in IN_ORDER[name]:
        at = text.index(word, at) + 1


@pytest.mark.one_case_in(2)
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["loop", "switch", "others"])  # ops of matrix units are ours
def test_mlir_reads_both_stages(name: str) -> None:
    mlir: Any = pytest.importorskip("jax._src.interpreters.mlir")
    ir: Any = pytest.importorskip("jaxlib.mlir.ir")
    with mlir.make_ir_context():
        for module in stages_of(PROGRAMS[name]).values():
            ir.Module.parse(render_module(module).decode()).operation.verify()
