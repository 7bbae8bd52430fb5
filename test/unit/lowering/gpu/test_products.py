"""Products of matrices of every type and shape on the simulated GPU, against the interpreter."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.structured import ContractOp
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.kernels import structured_kernel
from mlirhlo.lowering.gpu.ptx import ptxas
from mlirhlo.lowering.schedule.attributes import schedule_of
from mlirhlo.simulator.report import Figures

TOLERANCE = {1: 0.2, 2: 2e-2, 4: 1e-4, 8: 1e-12}
"""By the bytes of a result's element."""
RESULTS = {"s8": "s32", "u8": "u32", "f8e4m3fn": "f32", "f8e5m2": "f32"}


def dot(element, m, k, n, lhs=1, rhs=0, batch=0, more=""):
    """A module of one dot; `lhs` and `rhs` are the contracted dimensions of both sides."""
    left, right = ((m, k), (k, m))[1 - lhs], ((k, n), (n, k))[rhs]
    lead = f"{batch}," if batch else ""
    result = RESULTS.get(element, element)
    dims = (lhs + 1, rhs + 1) if batch else (lhs, rhs)
    batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch else ""
    return f"""HloModule m
ENTRY e {{
  a = {element}[{lead}{left[0]},{left[1]}] parameter(0)
  b = {element}[{lead}{right[0]},{right[1]}] parameter(1)
  ROOT r = {result}[{lead}{m},{n}] dot(a, b), {batches}lhs_contracting_dims={{{dims[0]}}},
    rhs_contracting_dims={{{dims[1]}}}{more}
}}"""


def check(hlo, gpu="h100", *, code="", is_clean=True):
    """Runs a module on both; what all kernels did."""
    module = mlirhlo.parse(hlo)
    executable = mlirhlo.compile(module, platform="gpu", gpu=gpu)
    inputs = make_fake_arguments(module.op)
    result = np.asarray(executable(*inputs))
    expected = np.asarray(mlirhlo.run(module, *inputs))
    tolerance = TOLERANCE[result.dtype.itemsize]
    wide = (a.astype(np.float64) for a in (result, expected))
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)
    assert not executable.findings
    texts = executable.program.ptx.values()
    assert any(code in ptx for ptx in texts)
    for ptx in texts:
        assert all(a.spill_stores == 0 for a in ptxas(ptx, device(gpu)) or ())
    figures = sum((one.figures for one in executable.figures), Figures())
    if is_clean:
        assert figures.shared_memory.bank_conflicts == 0
    return figures


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("element", "code"),
    [
        ("bf16", "m16n8k16.row.col.f32.bf16"),
        pytest.param("f16", "m16n8k16.row.col.f32.f16", marks=pytest.mark.slow),
        ("s8", "m16n8k32.row.col.s32.s8"),
        pytest.param("u8", "m16n8k32.row.col.s32.u8", marks=pytest.mark.slow),
        ("f8e4m3fn", "m16n8k32.row.col.f32.e4m3"),
        pytest.param("f8e5m2", "m16n8k32.row.col.f32.e5m2", marks=pytest.mark.slow),
        ("f32", "fma.rn.f32"),
        ("f64", "m8n8k4.row.col.f64"),
        pytest.param("s32", "mad.lo.s32", marks=pytest.mark.slow),
    ],
)
def test_types(element, code):
    """Each type is multiplied by the units that have it, from stages that copies fill."""
    figures = check(dot(element, 32, 256, 64, 1, 1), code=code)
    assert figures.instructions


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("element", "m", "lhs", "rhs", "code"),
    [
        ("bf16", 128, 1, 0, "m64n128k16.f32.bf16.bf16"),
        pytest.param("f16", 136, 0, 1, "k16.f32.f16.f16", marks=pytest.mark.slow),
        pytest.param("s8", 64, 1, 1, "k32.s32.s8.s8", marks=pytest.mark.slow),
        pytest.param("u8", 64, 1, 1, "k32.s32.u8.u8", marks=pytest.mark.slow),
        ("f8e4m3fn", 72, 1, 1, "k32.f32.e4m3.e4m3"),
        pytest.param("f8e5m2", 64, 1, 1, "k32.f32.e5m2.e5m2", marks=pytest.mark.slow),
    ],
)
def test_warp_groups(element, m, lhs, rhs, code):
    """Stages are filled by tensor maps, more than once each, also where tiles reach beyond the matrices."""
    figures = check(dot(element, m, 640, 128, lhs, rhs), code=code)
    assert figures.instructions


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "shapes",
    [
        ("bf16[2,40,128]", "bf16[128,64]", "bf16[2,40,64]", "{2}", "{0}", ""),
        pytest.param(
            ("f16[2,64,4,64]", "f16[2,64,4,64]", "f16[2,4,64,64]", "{3}", "{3}", "{0,2}"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_dimensions_of_warp_groups(shapes):
    """Rows of several dimensions are one dimension of a tensor map; batches are coordinates."""
    a, b, r, lhs, rhs, batch = shapes
    batches = f", lhs_batch_dims={batch}, rhs_batch_dims={batch}" if batch else ""
    check(
        f"""HloModule m
ENTRY e {{
  a = {a} parameter(0)
  b = {b} parameter(1)
  ROOT r = {r} dot(a, b), lhs_contracting_dims={lhs}, rhs_contracting_dims={rhs}{batches}
}}""",
        code="wgmma.mma_async",
    )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("lhs", "rhs", "algorithm"),
    [
        (1, 0, "dot_tf32_tf32_f32"),
        (0, 1, "dot_tf32_tf32_f32"),
        pytest.param(1, 0, "dot_bf16_bf16_f32", marks=pytest.mark.slow),
    ],
)
def test_rounded_to_tf32(lhs, rhs, algorithm):
    """An algorithm that rounds both factors is computed by the units for them, exactly."""
    module = dot("f32", 64, 48, 64, lhs, rhs, more=f", algorithm={algorithm}")
    check(module, code="m16n8k8.row.col.f32.tf32")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "gpu", ["a100", *(pytest.param(g, marks=pytest.mark.slow) for g in ("l40s", "rtx5090"))]
)
def test_devices(gpu):
    """Stages fit the shared memory of each device."""
    check(dot("bf16", 128, 512, 64), gpu, code="cp.async.cg.shared.global")


@pytest.mark.slow
def test_large_shared_memory():
    """More of it than a function may have is the launch's."""
    check(dot("bf16", 128, 256, 1280), "a100", code="dynamic_shared")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("lhs", "rhs"), [(1, 0), pytest.param(0, 0, marks=pytest.mark.slow)])
def test_transposed_bytes(lhs, rhs):
    """Threads transpose bytes whose lines stand beside each other; each sector is read once."""
    figures = check(dot("s8", 64, 128, 64, lhs, rhs), code="mma.sync")
    least = (64 * 128 * 2 + 64 * 64 * 4) // 32
    assert figures.global_memory.sectors <= 1.2 * least


PROLOGUE = """HloModule m
ENTRY e {{
  a = f32[{m},{k}] parameter(0)
  b = bf16[{k},{n}] parameter(1)
  c = f32[{n}] parameter(2)
  h = bf16[{m},{k}] convert(a)
  d = f32[{m},{n}] dot(h, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  cs = f32[{m},{n}] broadcast(c), dimensions={{1}}
  s = f32[{m},{n}] add(d, cs)
  ROOT r = f32[{m},{n}] tanh(s)
}}"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("m", "k", "n"), [(64, 192, 64), (40, 72, 48)])
def test_fused(m, k, n):
    """What a factor is computed from, and what is computed from the product, is part of the kernel."""
    check(PROLOGUE.format(m=m, k=k, n=n), code="mma")


def test_parts_of_terms():
    """Few results of many terms are computed in parts by many blocks, and added up with what follows."""
    check(PROLOGUE.format(m=64, k=8192, n=32), "a100", code=".entry fusion_1_1(")


@pytest.mark.slow
def test_parts_of_warp_groups():
    """Warp groups multiply parts too."""
    check(dot("bf16", 64, 8192, 64), code=".entry dot_0_1(")


def convolution(element, sizes, kernel, outputs, padding, stride):
    """A module of a convolution with features last."""
    n, h, w, c = sizes
    rows, columns = ((size + 2 * padding - kernel) // stride + 1 for size in (h, w))
    window = f"size={kernel}x{kernel} pad={padding}_{padding}x{padding}_{padding} stride={stride}x{stride}"
    return f"""HloModule m
ENTRY e {{
  x = {element}[{n},{h},{w},{c}] parameter(0)
  k = {element}[{kernel},{kernel},{c},{outputs}] parameter(1)
  ROOT r = {element}[{n},{rows},{columns},{outputs}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f
}}"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("case", "code", "launches"),
    [
        (("bf16", (2, 8, 8, 64), 3, 64, 1, 1), "cp.async.cg.shared.global", 1),
        pytest.param(("f16", (1, 16, 16, 32), 3, 64, 1, 2), "mma.sync", 1, marks=pytest.mark.slow),
        pytest.param(("f32", (2, 8, 8, 16), 3, 32, 1, 1), "cp.async", 1, marks=pytest.mark.slow),
        pytest.param(("bf16", (1, 12, 12, 3), 5, 32, 2, 1), "mma.sync", 2, marks=pytest.mark.slow),
        pytest.param(("bf16", (2, 8, 8, 64), 1, 64, 0, 1), "wgmma", 1, marks=pytest.mark.slow),
    ],
)
def test_convolutions(case, code, launches):
    """They are products whose factors are read at sums of indices; copies fill in the padding."""
    check(convolution(*case), code=code)
    executable = mlirhlo.compile(mlirhlo.parse(convolution(*case)), platform="gpu")
    (kernel,) = executable.program.plan.kernels.values()
    assert len(kernel.launches) == launches


def _random_cases(count):
    chooser = random.Random(7)
    for number in range(count):
        m, n, k = (chooser.choice((16, 17, 24, 33, 64, 70, 96, 130)) for _ in range(3))
        element = chooser.choice(("f32", "bf16", "f16", "s8", "f8e5m2", "f64", "s32"))
        lhs, rhs, batch = chooser.randrange(2), chooser.randrange(2), chooser.choice((0, 0, 3))
        name = f"{element}-{m}x{k}x{n}-{lhs}{rhs}-{batch}"
        marks = [] if number % 16 == 0 else pytest.mark.slow
        yield pytest.param(dot(element, m, k, n, lhs, rhs, batch), id=name, marks=marks)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("module", list(_random_cases(32)))
def test_shapes(module):
    """Ragged edges, batches and transposed factors."""
    check(module)


RAGGED = {
    "rows": (
        "f32[128,64] ragged-dot(f32[128,32] x, f32[{0},32,64] y, s32[{0}] g), lhs_contracting_dims={{1}},"
        " rhs_contracting_dims={{1}}, lhs_ragged_dims={{0}}, rhs_group_dims={{0}}"
    ),
    "terms": (
        "f32[{0},32,64] ragged-dot(f32[128,32] x, f32[128,64] y, s32[{0}] g), lhs_contracting_dims={{0}},"
        " rhs_contracting_dims={{0}}, lhs_ragged_dims={{0}}"
    ),
}


def ragged(form: str, groups: list[int], infinite: int | None = None) -> Any:
    """The instructions of threads of a ragged dot that gives the interpreter's result."""
    module = mlirhlo.parse(RAGGED[form].format(len(groups)))
    random = np.random.default_rng(6)
    x, y = (
        random.integers(-3, 4, p.shape.dimensions).astype(np.float32)
        for p in module.hlo.entry.parameters[:2]
    )
    if infinite is not None:
        y[infinite] = np.inf
    run: Any = mlirhlo.compile(module, "gpu", gpu="h100")
    sizes = np.array(groups, np.int32)
    np.testing.assert_array_equal(run(x, y, sizes), module(x, y, sizes))
    assert not list(map(str, run.findings))
    return sum(one.figures.thread_instructions for one in run.figures)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("groups", [[64, 64], [40, 0, 50, 20, 0, 10]])
@pytest.mark.parametrize("form", RAGGED)
def test_ragged(form, groups):
    """Groups that end within tiles, that are empty, and rows in none."""
    ragged(form, groups)


def _random_groups(random: np.random.Generator, count: int, total: int) -> list[int]:
    """Sizes of groups, of which some are empty; a part of the rows may be in none."""
    cuts = np.sort(random.integers(0, total + 1, count))
    sizes = np.diff(cuts, prepend=0)
    sizes[random.random(count) < 0.3] = 0
    return [int(n) for n in sizes]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("gpu", "element", "rows", "kind"),
    [
        ("h100", "bf16", 700, "wgmma"),
        ("a100", "f16", 150, "mma"),
        pytest.param("h100", "f32", 150, "tiles", marks=pytest.mark.slow),
        pytest.param("a100", "s8", 150, "mma", marks=pytest.mark.slow),
        pytest.param("a100", "f64", 150, "mma", marks=pytest.mark.slow),
    ],
)
def test_groups_of_rows(gpu, element, rows, kind):
    """Tiles are of one group each, on matrix units; numbers of other groups, infinite ones too, make no difference."""
    sums = {"s8": "s32", "f64": "f64"}.get(element, "f32")
    module = mlirhlo.parse(
        f"{sums}[2,{rows},80] ragged-dot({element}[2,{rows},48] x, {element}[5,2,48,80] y, s32[2,5] g),"
        " lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2},"
        " lhs_ragged_dims={1}, rhs_group_dims={0}"
    )
    kernel = structured_kernel("k", module.hlo.entry.root, module.hlo.by_name(), device(gpu))
    (contraction,) = (op for op in kernel.block.ops if isinstance(op, ContractOp))
    schedule = schedule_of(contraction)
    assert schedule is not None
    assert schedule.kind == kind
    run: Any = mlirhlo.compile(module, "gpu", gpu=gpu)
    random = np.random.default_rng(24)
    x, y = (
        random.integers(-3, 4, p.shape.dimensions).astype(p.shape.element_type.dtype)
        for p in module.hlo.entry.parameters[:2]
    )
    sizes = np.array([_random_groups(random, 5, rows) for _ in range(2)], np.int32)
    sizes[:, 1] = 0
    if element != "s8":
        y[1] = np.inf
    np.testing.assert_array_equal(run(x, y, sizes), module(x, y, sizes))
    assert not list(map(str, run.findings))


def test_other_groups_are_passed_over():
    """Of eight groups hardly more is computed than of one; what they hold does not matter."""
    one = ragged("rows", [128])
    assert ragged("rows", [40, 0, 50, 20, 0, 10, 4, 4], infinite=1) < 1.5 * one
    assert ragged("terms", [16] * 8) < 4 * ragged("terms", [128])
