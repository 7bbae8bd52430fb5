"""Kernels that measure what this machine can do."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.target import AVX2, using
from mlirhlo.runtime import limits


@pytest.mark.parametrize("loads,stores", [(4, 0), (8, 4), (4, 4), (2, 3), (7, 6), (0, 4)])
@pytest.mark.parametrize("past", [False, True])
def test_a_stream_moves_what_it_says(loads: int, stores: int, past: bool) -> None:
    function = limits._stream(loads, stores, 8, 2, past, 0)
    text = print_llvm(convert_to_llvm(ModuleOp([function])))
    found = [line for line in text.splitlines() if "<16 x float>" in line]
    assert sum(" load " in line for line in found) == loads
    stored = [line for line in found if line.strip().startswith("store")]
    assert len(stored) == (stores or 1)  # a sum for each part
    assert sum("nontemporal" in line for line in stored) == (stores if past else 0)


@pytest.mark.parametrize("read,written", [(1 << 20, 0), (3 << 16, 2 << 16), (0, 1 << 16), (64, 64)])
def test_streams_run(read: int, written: int) -> None:
    runs = limits.streams(read, written)
    assert len(runs) == (3 if read and written else 2)
    for run in runs:
        run()


@pytest.mark.parametrize("kind", ["f32", "bf16", "s8"])
def test_products_of_what_the_processor_multiplies(kind: str) -> None:
    try:
        run, gigaflop = limits.products(kind)
    except KeyError:
        pytest.skip("no instructions")
    assert gigaflop == pytest.approx({"f32": 0.49152, "bf16": 0.98304, "s8": 1.96608}[kind])
    run()
    with using(AVX2), pytest.raises(KeyError):
        limits.products("bf16")
