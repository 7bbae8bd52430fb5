"""Kernels of each kind, run on the simulator: results, findings, and the traffic that they cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.kernels import build_kernel
from mlirhlo.lowering.gpu.nvvm import to_nvvm
from mlirhlo.lowering.gpu.ptx import all_to_ptx, ptxas, to_llvm_text, to_ptx
from mlirhlo.runtime.cuda.simulated import arguments
from mlirhlo.simulator import Machine

COMBINERS = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
count {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = s32[] add(x, y)
}
max {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y)
}
less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT
}
"""
COLUMN_VARIANCE = """
fused {
  x = f32[20,6]{1,0} parameter(0)
  zero = f32[] constant(0)
  part = f32[] constant(0.05)
  parts = f32[6]{0} broadcast(part), dimensions={}
  s = f32[6]{0} reduce(x, zero), dimensions={0}, to_apply=add
  m = f32[6]{0} multiply(s, parts)
  mb = f32[20,6]{1,0} broadcast(m), dimensions={1}
  c = f32[20,6]{1,0} subtract(x, mb)
  q = f32[20,6]{1,0} multiply(c, c)
  ROOT t = f32[6]{0} reduce(q, zero), dimensions={0}, to_apply=add
}
ENTRY main {
  x = f32[20,6]{1,0} parameter(0)
  ROOT r = f32[6]{0} fusion(x), kind=kInput, calls=fused
}
"""
SOFTMAX = """
fused {{
  x = f32[{rows},{length}]{{1,0}} parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[{rows}]{{0}} reduce(x, low), dimensions={{1}}, to_apply=max
  mb = f32[{rows},{length}]{{1,0}} broadcast(m), dimensions={{0}}
  c = f32[{rows},{length}]{{1,0}} subtract(x, mb)
  e = f32[{rows},{length}]{{1,0}} exponential(c)
  t = f32[{rows}]{{0}} reduce(e, zero), dimensions={{1}}, to_apply=add
  tb = f32[{rows},{length}]{{1,0}} broadcast(t), dimensions={{0}}
  ROOT r = f32[{rows},{length}]{{1,0}} divide(e, tb)
}}
ENTRY main {{
  x = f32[{rows},{length}]{{1,0}} parameter(0)
  ROOT r = f32[{rows},{length}]{{1,0}} fusion(x), kind=kInput, calls=fused
}}
"""


def entry(instruction: str, *operands: str) -> str:
    """A module of one instruction; `{0}` in it is the first operand."""
    lines = [f"  p{at} = {shape} parameter({at})" for at, shape in enumerate(operands)]
    root = instruction.format(*(f"p{at}" for at in range(len(operands))))
    return "ENTRY main {\n" + "\n".join([*lines, f"  ROOT r = {root}"]) + "\n}\n"


def reduce(shape: str, result: str, dims: str) -> str:
    """A sum over dimensions."""
    return f"""
fused {{
  x = {shape} parameter(0)
  three = f32[] constant(3)
  ROOT r = {result} reduce(x, three), dimensions={{{dims}}}, to_apply=add
}}
ENTRY main {{
  x = {shape} parameter(0)
  ROOT r = {result} fusion(x), kind=kInput, calls=fused
}}
"""


DOT = "dot({0}, {1}), lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}"
NN, NT, TN = (DOT.replace("{lhs}", a).replace("{rhs}", b) for a, b in ("10", "11", "00"))
GATHER = (
    "f32[9,16]{{1,0}} gather({0}, {1}), offset_dims={{1}}, collapsed_slice_dims={{0}},"
    " start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,16}}"
)
SCATTER = (
    "f32[8,16]{{1,0}} scatter({0}, {1}, {2}), update_window_dims={{1}}, inserted_window_dims={{0}},"
    " scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add"
)
HISTOGRAM = SCATTER.replace("f32", "s32").replace("=add", "=count")
PAD = "f32[40,9]{{1,0}} pad({0}, {1}), padding=1_2x-1_3_1"


SCALED = """
fused {
  x = f32[6,3]{1,0} parameter(0)
  s = f32[3]{0} parameter(1)
  zero = f32[] constant(0)
  b = f32[6,3]{1,0} broadcast(s), dimensions={1}
  y = f32[6,3]{1,0} multiply(x, b)
  ROOT r = f32[6]{0} reduce(y, zero), dimensions={1}, to_apply=add
}
ENTRY main {
  x = f32[6,3]{1,0} parameter(0)
  s = f32[3]{0} parameter(1)
  ROOT r = f32[6]{0} fusion(x, s), kind=kInput, calls=fused
}
"""


@dataclass(frozen=True)
class Case:
    """A kernel, and what it may cost."""

    module: str
    traffic: float = 0.0
    """The most bytes moved for each of operands and results; 0 for any number."""
    kind: str = ""
    """Part of an instruction's name that its PTX has."""


CASES = {
    "add_vectors": Case(
        entry("f32[64,128]{{1,0}} add({0}, {1})", *["f32[64,128]{1,0}"] * 2), 1.0, "v4"
    ),
    "add_odd": Case(entry("f32[7,13]{{1,0}} add({0}, {1})", *["f32[7,13]{1,0}"] * 2), 1.1),
    "sine_vectors": Case(entry("f32[64,128]{{1,0}} sine({0})", "f32[64,128]{1,0}"), 1.0, "ld.global.nc.v4"),
    "sine_of_large": Case(entry("f64[40]{{0}} sine({0})", "f64[40]{0}")),
    "rows": Case(reduce("f32[33,1000]{1,0}", "f32[33]{0}", "1"), 1.05, "shfl"),
    "short_rows": Case(reduce("f32[300,12]{1,0}", "f32[300]{0}", "1")),
    "rows_of_three_scaled": Case(SCALED),
    "long_row": Case(reduce("f32[131072]{0}", "f32[]", "0"), 1.02, "shfl"),
    "minor_dimensions": Case(reduce("f32[5,6,7,8]{3,2,1,0}", "f32[5,6]{1,0}", "2,3"), 1.3),
    "columns": Case(reduce("f32[512,96]{1,0}", "f32[96]{0}", "0"), 1.1),
    "chain_of_columns": Case(COLUMN_VARIANCE),
    "odd_columns": Case(reduce("f32[77,35]{1,0}", "f32[35]{0}", "0")),
    "batch_norm": Case(reduce("f32[4,9,5,16]{3,2,1,0}", "f32[16]{0}", "0,1,2")),
    "softmax": Case(SOFTMAX.format(rows=6, length=1024), 1.02, "shfl"),
    "softmax_in_warps": Case(SOFTMAX.format(rows=70, length=96), 1.05, "shfl"),
    "softmax_odd": Case(SOFTMAX.format(rows=9, length=1001)),
    "transpose": Case(
        entry("f32[96,64]{{1,0}} transpose({0}), dimensions={{1,0}}", "f32[64,96]{1,0}"), 1.05, "st.shared"
    ),
    "transpose_bytes": Case(
        entry("s8[64,64]{{1,0}} transpose({0}), dimensions={{1,0}}", "s8[64,64]{1,0}"), 1.05, "st.shared"
    ),
    "dot": Case(entry("f32[64,64]{{1,0}} " + NN, "f32[64,48]{1,0}", "f32[48,64]{1,0}"), 1.05, "fma"),
    "dot_odd": Case(entry("f32[65,35]{{1,0}} " + NT, "f32[65,41]{1,0}", "f32[35,41]{1,0}")),
    "dot_across": Case(entry("f32[40,72]{{1,0}} " + TN, "f32[48,40]{1,0}", "f32[48,72]{1,0}")),
    "dot_bf16": Case(
        entry("bf16[64,64]{{1,0}} " + NN, "bf16[64,64]{1,0}", "bf16[64,64]{1,0}"), 1.34, "wgmma.mma_async"
    ),
    "dot_f16_across": Case(
        entry("f16[72,40]{{1,0}} " + TN, "f16[40,72]{1,0}", "f16[40,40]{1,0}"), 0, "mma"
    ),
    "dot_bf16_odd": Case(entry("f32[33,70]{{1,0}} " + NT, "bf16[33,37]{1,0}", "bf16[70,37]{1,0}")),
    "matrix_vector": Case(entry("f32[40]{{0}} " + NN, "f32[40,30]{1,0}", "f32[30]{0}")),
    "pad": Case(entry(PAD, "f32[37,4]{1,0}", "f32[]")),
    "concatenate": Case(
        entry("f32[9,5]{{1,0}} concatenate({0}, {1}), dimensions={{1}}", "f32[9,2]{1,0}", "f32[9,3]{1,0}")
    ),
    "concatenate_f8": Case(
        entry(
            "f8e4m3fn[4,5]{{1,0}} concatenate({0}, {1}), dimensions={{1}}",
            "f8e4m3fn[4,2]{1,0}",
            "f8e4m3fn[4,3]{1,0}",
        )
    ),
    "gather": Case(entry(GATHER, "f32[20,16]{1,0}", "s32[9,1]{1,0}")),
    "scatter": Case(entry(SCATTER, "f32[8,16]{1,0}", "s32[30,1]{1,0}", "f32[30,16]{1,0}")),
    "histogram": Case(
        entry(HISTOGRAM, "s32[8,16]{1,0}", "s32[30,1]{1,0}", "s32[30,16]{1,0}"),
        0, "global.add"
    ),
    "sort": Case(entry("f32[3,100]{{1,0}} sort({0}), dimensions={{1}}, to_apply=less", "f32[3,100]{1,0}")),
    "reversed": Case(entry("f32[6,9]{{1,0}} reverse({0}), dimensions={{0,1}}", "f32[6,9]{1,0}")),
    "complex": Case(entry("c64[6,9]{{1,0}} multiply({0}, {1})", *["c64[6,9]{1,0}"] * 2)),
    "fft": Case(entry("c64[2,8]{{1,0}} fft({0}), fft_type=FFT, fft_length={{8}}", "c64[2,8]{1,0}")),
}  # fmt: skip


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kernel(case):
    module = mlirhlo.parse("HloModule m\n" + COMBINERS + case.module)
    view = HloModule(module.op)
    inputs = make_fake_arguments(module.op)
    expected = mlirhlo.run(module, *inputs)
    gpu = device("h100")
    kernel = build_kernel("kernel", view.entry.root, view.by_name(), gpu)
    ptx = to_ptx(to_llvm_text(to_nvvm(kernel.module), gpu), gpu)
    assert case.kind in ptx
    assert all(a.spill_stores == 0 for a in ptxas(ptx, gpu) or ())

    machine = Machine(gpu.sm, seed=7)
    program = machine.load(ptx)
    arrays = [np.ascontiguousarray(a) for a in inputs]
    result = np.asarray(expected)
    sizes = [a.nbytes for a in (*arrays, result)]
    buffers = [machine.allocate(max(n, 1)) for n in (*sizes, *kernel.workspaces)]
    for address, array in zip(buffers, arrays, strict=False):
        machine.write(address, array)
    for operand, target in kernel.updates:
        machine.copy(buffers[target], buffers[operand], sizes[target])
    moved = conflicts = 0
    for launch in kernel.launches:
        addresses = arguments(launch, [buffers[n] for n in launch.buffers])
        report = machine.launch(
            program, launch.entry, launch.grid, launch.block, addresses, launch.shared_bytes
        )
        assert not report.findings
        moved += 32 * report.figures.global_memory.sectors
        conflicts += report.figures.shared_memory.bank_conflicts
    got = machine.read(buffers[len(arrays)], result.nbytes).view(result.dtype).reshape(result.shape)
    bits = shape_of(view.entry.root.output.type).element_type.real.bits
    relative = {16: 2e-2, 32: 2e-5}.get(bits, 1e-12)
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), result.astype(wide), relative, 10 * relative)
    if case.traffic:
        assert moved <= case.traffic * sum(sizes)
        assert conflicts == 0


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a100", "l40s", "b200", "rtx5090"])
def test_kernels_of_other_devices(name):
    """LLVM writes PTX for them, which ptxas takes where it is installed, without spills."""
    gpu = device(name)
    texts: list[str] = []
    for case in CASES.values():
        view = HloModule(mlirhlo.parse("HloModule m\n" + COMBINERS + case.module).op)
        kernel = build_kernel("kernel", view.entry.root, view.by_name(), gpu)
        texts.append(to_llvm_text(to_nvvm(kernel.module), gpu))
    for ptx in all_to_ptx(texts, gpu):
        assert f".target {gpu.sm}" in ptx
        assert all(a.spill_stores == 0 for a in ptxas(ptx, gpu) or ())
