"""Updates that go to one element are combined in their order, by one thread; others run in parallel."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.gpu.kinds import scatter

pytest.importorskip("llvmlite")

LAST = "last { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] copy(b) }"
WINDOWS = (
    # Windows of two along the dimension that has indices meet, also in arrays of a batch.
    (
        "f32[9] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1: f32[9], s32[4,1], f32[4,2]"
    ),
    (
        "f32[2,9] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={}, input_batching_dims={0},"
        " scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2:"
        " f32[2,9], s32[2,4,1], f32[2,4,2]"
    ),
    # Rows do not, nor does a single window meet itself.
    (
        "f32[9,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1: f32[9,3], s32[4,1], f32[4,3]"
    ),
    (
        "f32[9] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=0: f32[9], s32[1], f32[5]"
    ),
)
PARALLEL = (1, 2, 3, 5)
"""Threads with updates of their own."""


@pytest.mark.parametrize(("text", "threads"), list(zip(WINDOWS, PARALLEL, strict=True)))
def test_windows_that_meet(text: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    dims = scatter.parallel_dims

    def seen(op: scatter.ScatterOp) -> list[int]:
        found = dims(op)
        counts.append(int(np.prod([op.space[d] for d in found], dtype=int)))
        return found

    monkeypatch.setattr(scatter, "parallel_dims", seen)
    line, shapes = text.rsplit(": ", 1)
    x, i, u = shapes.split(", ")
    module = mlirhlo.parse(
        f"{LAST}\nENTRY e {{ x = {x} parameter(0)  i = {i} parameter(1)  u = {u} parameter(2)"
        f"  ROOT r = {line}, to_apply=last }}"
    )
    sizes = [p.shape.dimensions for p in module.hlo.entry.parameters]  # type: ignore[union-attr]
    starts = np.arange(np.prod(sizes[1]), dtype=np.int32)[::-1] % 5
    updates = np.arange(np.prod(sizes[2]), dtype=np.float32) + 1
    arguments = np.zeros(sizes[0], np.float32), starts.reshape(sizes[1]), updates.reshape(sizes[2])
    compiled = mlirhlo.compile(module, "gpu")
    np.testing.assert_array_equal(compiled(*arguments), module(*arguments))
    assert not compiled.findings  # type: ignore[attr-defined]
    assert counts == [threads]
