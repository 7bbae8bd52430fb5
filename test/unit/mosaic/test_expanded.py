"""Kernels written out in HLO text, edited, and put back."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import print_module
from mlirhlo.mosaic.expanded import ABOVE, collapse_kernels, expand_kernels

X = np.arange(1024, dtype=np.float32).reshape(8, 128)


def program() -> str:
    def double(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2.0

    kernel = pl.kernel_call(double, X).lower(X)
    return print_module(mlirhlo.parse(kernel.to_stablehlo()).static_op)


def test_a_kernel_is_shown_and_put_back() -> None:
    text = program()
    shown = expand_kernels(text)
    assert "arith.mulf" in shown
    assert f'"body":"{ABOVE}"' in shown
    assert "arith.mulf" not in text
    back = collapse_kernels(shown)
    assert expand_kernels(back) == shown
    assert collapse_kernels(back) == back
    assert np.array_equal(mlirhlo.parse(back)(X), X * 2)


def test_an_edited_kernel_runs() -> None:
    shown = expand_kernels(program()).replace("arith.mulf", "arith.addf")
    assert np.array_equal(mlirhlo.parse(collapse_kernels(shown))(X), X + 2)


def test_a_mistake_is_at_its_line() -> None:
    shown = expand_kernels(program()).replace("arith.mulf", "arith.mulff")
    with pytest.raises(HloError) as caught:
        collapse_kernels(shown, "edited.hlo")
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert "arith.mulff" in shown.splitlines()[place.line - 1]


def test_a_kernel_needs_its_call() -> None:
    shown = expand_kernels(program()).replace(ABOVE, "")
    with pytest.raises(HloError) as caught:
        collapse_kernels(shown)
    assert caught.value.code == "HLO0700"
