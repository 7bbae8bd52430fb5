"""Modules from before partitioning: manual computations over simulated partitions."""

from __future__ import annotations

import numpy as np
import pytest
from support import CORPUS, needs_shared

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.interp.custom_calls.manual import read_mesh, read_shardings


def test_meshes() -> None:
    mesh = read_mesh('mesh<["a"=4, "b"=2]>')
    assert mesh.axes == (("a", 4), ("b", 2))
    assert mesh.coordinates(5) == {"a": 2, "b": 1}
    mesh = read_mesh('mesh<["a"=2], device_ids=[1, 0]>')
    assert mesh.coordinates(0) == {"a": 1}
    assert read_mesh("mesh<[]>").coordinates(0) == {}
    with pytest.raises(ValueError, match="<@"):
        read_mesh("<@nothing>")


def test_shardings() -> None:
    mesh = read_mesh('mesh<["a"=4, "b"=2]>')
    text = (
        '#sdy.sharding_per_value<[<@m, [{"b", "a"}, {}, {?}]>, <@m, []>, '
        '<@m, [{"a":(2)2}], replicated={"b"}>, <mesh<["x"=2]>, [{"x"}p1]>]>'
    )
    first, second, third, inline = read_shardings(text, (("m", mesh),))
    both = frozenset("ab")
    # Device 5 is a=2, b=1.
    assert first.tile(5, 0, both) == (1 * 4 + 2, 8)
    assert first.tile(5, 0, frozenset("a")) == (2, 4)
    assert first.tile(5, 1, both) == (0, 1)
    assert second.tile(5, 0, both) == (0, 1)
    assert third.tile(5, 0, both) == (0, 2)
    assert third.tile(7, 0, both) == (1, 2)
    assert inline.tile(1, 0, frozenset("x")) == (1, 2)


@needs_shared
@pytest.mark.parametrize("name", ["smap_collectives", "smap_2d_mesh", "smap_halo_stencil"])
def test_shard_map_programs_of_the_corpus(name: str) -> None:
    folder = CORPUS / "programs" / name
    module = parse_module((folder / f"{name}.hlo").read_text(), name)
    arrays = np.load(folder / f"{name}.npz")
    inputs = [arrays[f"in{k}"] for k in range(10) if f"in{k}" in arrays]
    assert inputs
    for k, got in enumerate(run_module(module, inputs, check=True)):
        np.testing.assert_allclose(got, arrays[f"out{k}"], rtol=1e-5, atol=1e-5)
