"""Mistakes in kernels are told at the line, with the mend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

X = np.ones((64, 256), np.float32)


def add(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def without_reading(x_ref, o_ref):
    o_ref[...] = x_ref * 2


def rows(size: Any = 8, index_map: Any = lambda i: (i, 0)) -> pl.BlockSpec:
    return pl.BlockSpec((size, 256), index_map)


def call(kernel: Any = add, grid: Any = (8,), spec: Any = None) -> Any:
    return pl.kernel_call(kernel, X, grid=grid, in_specs=[spec or rows()], out_specs=rows())(X)


MISTAKES: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "a map of another grid": (
        lambda: call(spec=rows(8, lambda i, j: (i, j))),
        "HLO0726",
        "missing a required argument: 'j'",
        "each dimension of the grid",
    ),
    "a block that is divided": (lambda: call(spec=rows(64 / 8)), "HLO0726", "8.0", "//"),
    "a grid that is divided": (lambda: call(grid=(64 / 8,)), "HLO0726", "8.0", "number"),
    "a block number that is divided": (
        lambda: call(spec=rows(8, lambda i: (i / 2, 0))),
        "HLO0724",
        "one integer",
        "//",
    ),
    "a reference for what it holds": (
        lambda: call(without_reading),
        "HLO0725",
        "reference",
        "ref[...]",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_it_is_told_at_the_line(name: str) -> None:
    make, code, said, mend = MISTAKES[name]
    with pytest.raises(HloError) as caught:
        make()
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert said in found.message
    assert mend in (found.help or "")
    assert found.place is not None
    assert found.place.file == __file__


OUTSIDE = {
    "a slice": lambda ref: ref[pl.ds(8, 8)],
    "python's slice": lambda ref: ref[4:9],
    "a row": lambda ref: ref[8],
    "a column": lambda ref: ref[0, 256],
    "too many": lambda ref: ref[0, 0, 0],
    "a view": lambda ref: ref.at[pl.ds(8, 8)],
    "nothing": lambda ref: ref[4:4],
}


@pytest.mark.parametrize("part", OUTSIDE)
def test_an_index_outside_names_the_reference(part: str) -> None:
    def leaves(x_ref: Any, o_ref: Any) -> None:
        OUTSIDE[part](x_ref)

    with pytest.raises(HloError, match=r"HLO0724.* x_ref"):
        call(leaves)


@pytest.mark.parametrize("timeline", [False, True])
@pytest.mark.parametrize("steps", [10**9, np.array(2**31 - 1, np.int32)])
def test_a_grid_of_billions_ends_at_the_end_of_the_array(steps: Any, timeline: bool) -> None:
    held = pl.kernel_call(add, X, grid=(steps,), in_specs=[rows()], out_specs=rows())
    bounds = () if isinstance(steps, int) else (steps,)
    lowered = held.lower(X)
    with pytest.raises(HloError) as caught:
        lowered.timeline(*bounds, X) if timeline else lowered(*bounds, X)
    assert caught.value.code == "HLO0732"


@pytest.mark.parametrize(
    ("name", "said"), [("dot", "mosaic.numpy"), ("VMEM", "mosaic.tpu"), ("BlokSpec", "'BlockSpec'")]
)
def test_names_that_are_elsewhere(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(pl, name)


@pytest.mark.parametrize(
    ("find", "said"),
    [
        (lambda: jnp.sort, "bitonic"),
        (lambda: lax.dynamic_slice, "pl.ds"),
        (lambda: jnp.maximun, "did you mean 'maximum'"),
        (lambda: lax.nothing_like_it, "has no attribute 'nothing_like_it'"),
    ],
)
def test_names_that_are_lacking_say_what_to_write(find: Callable[[], Any], said: str) -> None:
    """In a kernel; around it `jnp.sort` is numpy's."""
    with pytest.raises(AttributeError, match=said):
        pl.kernel_call(lambda o_ref: find(), X)()


def test_values_are_not_updated() -> None:
    def updated(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...].at[0].set(1)

    with pytest.raises(HloError, match="do not change") as caught:
        call(updated)
    assert caught.value.code == "HLO0723"
    assert "where" in (caught.value.diagnostics[0].help or "")


def test_values_are_not_indexed_by_values() -> None:
    def indexed(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...][jnp.argmax(x_ref[...], 1)]

    with pytest.raises(HloError, match="indexed by") as caught:
        call(indexed)
    assert "take_along_axis" in (caught.value.diagnostics[0].help or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ((8, 128), np.float32),
        ((8, 128),),
        (8, np.float32, pltpu.VMEM),
        (None, pltpu.VMEM),
        (1, 2, 3, 4),
    ],
)
def test_memory_refs_of_what_is_none(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(HloError, match=r"HLO0726.*MemoryRef takes"):
        pl.MemoryRef(*arguments)


def test_memory_refs_as_before_and_now() -> None:
    now = pl.MemoryRef(pl.ShapeDtypeStruct((8, 128), np.float32), pltpu.VMEM)
    assert pl.MemoryRef((8, 128), np.float32, pltpu.VMEM) == now == pltpu.VMEM((8, 128), np.float32)
