"""Arrays of dynamic size in programs for GPUs: alone, in branches, and carried through loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from dynamic_programs import UNORDERED, in_branch, in_loop, module, same, texts, valid

import mlirhlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module

pytest.importorskip("llvmlite")

Form = Callable[[str, Sequence[int]], str]
REFUSED = """ENTRY e { v = f32[<=6] parameter(0) c = c64[<=6] convert(v)
ROOT r = c64[<=6] fft(c), fft_type=FFT, fft_length={6} }"""
"""The dimension that is transformed keeps its dynamic size, which no code on GPUs has."""
FEW = {"concatenate", "dynamic_slice_whole", "push", "sort", "sum", "rows", "update"}


def flat(value: Any) -> list[Any]:
    """The arrays of a tree of tuples."""
    if isinstance(value, tuple | list):
        return [one for part in value for one in flat(part)]
    return [np.asarray(value)]


def test_a_transform_of_dynamic_size_is_refused() -> None:
    with pytest.raises(mlirhlo.diagnostics.HloError, match=r"HLO0802.*only static sizes"):
        mlirhlo.compile(mlirhlo.parse(REFUSED), platform="gpu")


@pytest.mark.slow
@pytest.mark.parametrize("form", [module, in_branch, in_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("name", "body", "sizes"),
    [
        pytest.param(*row, id=row[0], marks=() if row[0] in FEW else pytest.mark.sweep)
        for row in texts()
        if row[0] not in UNORDERED
    ],
)
def test_gpu_gives_what_the_interpreter_does(
    name: str, body: str, sizes: tuple[int, ...], form: Form
) -> None:
    text = form(body, sizes)
    run = mlirhlo.compile(mlirhlo.parse(text), platform="gpu")
    x = np.random.default_rng(1).permutation(np.arange(np.prod(sizes), dtype=np.float32) - 2)
    for n in (1, 2, sizes[0]):
        arguments: list[Any] = [x.reshape(sizes), np.int32(n), np.int32(2)]
        expected = flat([valid(out) for out in run_module(parse_module(text), arguments)])
        results = flat(valid(run(*arguments)))
        assert all(map(same, expected, results)), (name, n, expected, results)
        assert not run.findings
