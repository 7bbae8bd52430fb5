"""What kernels move between global memory and the chip, over shapes, against the least there is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "benchmarks"))
import gpu_traffic  # pyright: ignore[reportMissingImports]

SHORT_ROWS = ("[300,12]", "[1000,3]", "[500,33]", "[70,100]", "[128,65]", "[50,100]")
OFTEN = {"row sum bf16[500,33]", "softmax f32[128,65]", "layer norm f32[300,12]"}


def kernels_of_short_rows():
    """Kernels that fold short rows, whatever their lengths."""
    for kernel in gpu_traffic.kernels():
        name = f"{kernel.kind} {kernel.shape}"
        if kernel.shape.endswith(SHORT_ROWS) and kernel.kind not in ("column sum", "transpose"):
            yield pytest.param(kernel, id=name, marks=[] if name in OFTEN else pytest.mark.slow)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kernel", list(kernels_of_short_rows()))
def test_short_rows(kernel):
    """Whole sectors are read and written, each once, by whole requests."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("length", [1001, pytest.param(3000, marks=pytest.mark.slow), 12001])
@pytest.mark.parametrize("element", ["f32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_long_rows(element, length):
    """Rows that start within sectors are read and written from the starts of sectors."""
    (kernel,) = (k for k in gpu_traffic.chains([(20, length)], [element]) if k.kind == "softmax")
    assert gpu_traffic.measure(kernel).ratio <= 1.05


def test_rows_of_one_sector():
    """Threads of a warp read whole sectors at once where a row is one."""
    for kernel in gpu_traffic.chains([(504, 8)], ["f32"]):
        assert gpu_traffic.measure(kernel).ratio <= 1.05


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("shape", [(1, 5), (67, 5)])
def test_rows_of_blocks_that_are_not_full(shape):
    """What LLVM reads of shared memory beside the rows was written."""
    for kernel in gpu_traffic.chains([shape], ["bf16"]):
        assert gpu_traffic.measure(kernel).ratio <= 1.05


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["s32", "s8"])
def test_small_transposes(element):
    """Those of a few sectors too."""
    shapes = [((22, 8), (1, 0)), ((9, 7), (1, 0)), ((2, 73), (1, 0))]
    for kernel in gpu_traffic.transposes(shapes, [element]):
        assert gpu_traffic.measure(kernel).ratio <= 1.05


def test_complex_numbers():
    """They move as others do: in transposes, and in short rows."""
    shapes = [((2384, 2, 2, 2), (3, 2, 1, 0)), ((129, 65), (1, 0))]
    kernels = [*gpu_traffic.transposes(shapes, ["c64"]), *gpu_traffic.reduces([(1000, 3)], ["c64"])]
    for kernel in kernels:
        assert gpu_traffic.measure(kernel).ratio <= 1.05


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("kind", "shape", "element"),
    [
        ("softmax", (1, 32_769), "f32"),
        ("layer norm", (1, 40_001), "f32"),
        pytest.param("rms norm", (1, 100_000), "bf16", marks=pytest.mark.slow),
        pytest.param("softmax", (3, 50_004), "f64", marks=pytest.mark.slow),
        pytest.param("cross-entropy", (2, 262_144), "f16", marks=pytest.mark.slow),
    ],
)
def test_rows_of_clusters(kind, shape, element):
    """Rows that no block holds are read once by a cluster of blocks."""
    (kernel,) = (k for k in gpu_traffic.chains([shape], [element]) if k.kind == kind)
    assert gpu_traffic.measure(kernel).ratio <= 1.02


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 60))]
)
def test_sampled(seed):
    """Whatever the kind, shape and type, sectors move once; nothing waits for a bank in transposes."""
    kernel = gpu_traffic.sampled(seed)
    row = gpu_traffic.measure(kernel)
    assert row.ratio <= 1.05
    if kernel.kind == "transpose":
        assert row.conflicts == 0


def test_large_scales():
    """Scales of few long rows are read once: they take dynamic shared memory, beside that of the folds."""
    for kernel in gpu_traffic.chains([(2, 8776)], ["f64"]):
        if kernel.kind == "rms norm":
            assert gpu_traffic.measure(kernel).ratio <= 1.02


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("shape", [(4, 40_000), (2, 65_536), (33, 32_768)])
def test_few_long_sums(shape):
    """Blocks share a row, and the launch that adds up their sums computes several rows a block."""
    for kernel in gpu_traffic.reduces([shape], ["f32"]):
        if kernel.kind == "row sum":
            assert gpu_traffic.measure(kernel).ratio <= 1.05


def _long_chains():
    for shape in ((64, 1024), (33, 1001), (16, 4096), (5, 3001), (200, 520)):
        for kernel in gpu_traffic.chains([shape]):
            is_often = (kernel.kind, kernel.shape) in (
                ("layer norm", "bf16[33,1001]"),
                ("cross-entropy", "f32[64,1024]"),
            )
            yield pytest.param(
                kernel,
                id=f"{kernel.kind} {kernel.shape}",
                marks=[] if is_often else pytest.mark.slow,
            )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kernel", list(_long_chains()))
def test_long_chains(kernel):
    """What all rows read alike is read once a block, of few blocks; what a row reads one of, by one warp."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05


def _columns():
    for kernel in gpu_traffic.reduces():
        if kernel.kind == "column sum":
            is_often = kernel.shape in ("f32[500,33]", "bf16[300,12]", "f32[33,1001]")
            yield pytest.param(kernel, id=kernel.shape, marks=[] if is_often else pytest.mark.slow)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kernel", list(_columns()))
def test_columns(kernel):
    """Rows that end within sectors are read as they lie beside each other."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05


def _products():
    for kernel in gpu_traffic.products():
        is_often = kernel.shape in ("f16[70,81]x[81,43]", "f32[33,100]x[100,57]")
        yield pytest.param(kernel, id=kernel.shape, marks=[] if is_often else pytest.mark.slow)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kernel", list(_products()))
def test_products(kernel):
    """Shared memory is accessed without bank conflicts; what one tile computes moves once."""
    row = gpu_traffic.measure(kernel)
    assert row.conflicts == 0
    if kernel.shape.endswith("[64,64]x[64,64]"):
        assert row.ratio <= 1.05


def _moved():
    for kinds in (
        gpu_traffic.sorts,
        gpu_traffic.selections,
        gpu_traffic.movements,
        gpu_traffic.scans,
    ):
        for kernel in kinds():
            often = ("s32[1,4000]", "f32[1,20000] 8", "bf16[500,96]", "bf16[64,32,32]")
            often += ("bf16[33,1001] 1", "bf16[77,7] 1", "f32[500,33] 0", "bf16[300,9,3] 1")
            yield pytest.param(
                kernel,
                id=f"{kernel.kind} {kernel.shape}",
                marks=[] if kernel.shape in often else pytest.mark.slow,
            )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kernel", list(_moved()))
def test_moved_elements(kernel):
    """Lines of one tile are sorted in one launch, cheap indices are not stored, numbers are part of kernels,
    lines are scanned as they lie in memory."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05
