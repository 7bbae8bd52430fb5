"""Scatters: atomic updates, updates in order, windows that meet; deterministic sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.debug.options import resolve
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.structured import ScatterOp
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.kernels import structured_kernel
from mlirhlo.lowering.schedule.scatters import parallel_dims
from mlirhlo.runtime.cuda.executable import compile_for_gpu

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
    # Sorted: windows that meet, rows, a batch of both.
    (
        "f32[19] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1: f32[19], s32[40,1], f32[40,3]"
    ),
    (
        "f32[9,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1: f32[9,3], s32[700,1], f32[700,3]"
    ),
    (
        "f32[2,9,5] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0},"
        " scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2:"
        " f32[2,9,5], s32[2,40,1], f32[2,40,5]"
    ),
)
PARALLEL = (1, 2, 3, 5, 1, 3, 10)
"""Updates that do not meet others."""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("text", "count"), list(zip(WINDOWS, PARALLEL, strict=True)))
def test_updates_of_one_element_keep_their_order(text: str, count: int) -> None:
    line, shapes = text.rsplit(": ", 1)
    x, i, u = shapes.split(", ")
    module = mlirhlo.parse(
        f"{LAST}\nENTRY e {{ x = {x} parameter(0)  i = {i} parameter(1)  u = {u} parameter(2)"
        f"  ROOT r = {line}, to_apply=last }}"
    )
    view = HloModule(module.op)
    kernel = structured_kernel("k", view.entry.root, view.by_name(), device())
    (op,) = (op for op in kernel.block.ops if isinstance(op, ScatterOp))
    assert np.prod([op.space[d] for d in parallel_dims(op)], dtype=int) == count
    sizes = [p.shape.dimensions for p in view.entry.parameters]  # type: ignore[union-attr]
    starts = np.arange(np.prod(sizes[1]), dtype=np.int32)[::-1] % 12 - 1
    updates = np.arange(np.prod(sizes[2]), dtype=np.float32) + 1
    arguments = np.zeros(sizes[0], np.float32), starts.reshape(sizes[1]), updates.reshape(sizes[2])
    compiled = mlirhlo.compile(module, "gpu")
    np.testing.assert_array_equal(compiled(*arguments), module(*arguments))
    assert not compiled.findings  # type: ignore[attr-defined]


def combining(type_: str, opcode: str, *, count: int, size: int, window: int = 0) -> str:
    """A scatter of updates at one index each, or of windows."""
    inner, dims = (f",{window}", "{1}") if window else ("", "{}")
    return (
        f"HloModule m\nc {{ a = {type_}[] parameter(0)  b = {type_}[] parameter(1)"
        f"  ROOT r = {type_}[] {opcode}(a, b) }}\n"
        f"ENTRY e {{ x = {type_}[{size}{inner}] parameter(0)  i = s32[{count},1] parameter(1)"
        f"  u = {type_}[{count}{inner}] parameter(2)"
        f"  ROOT r = {type_}[{size}{inner}] scatter(x, i, u), update_window_dims={dims}, inserted_window_dims={{0}},"
        f" scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=c }}"
    )


def inputs(type_: str, count: int, size: int, window: int = 0) -> list[Any]:
    rng = np.random.default_rng(size)
    dtype, inner = PRIMITIVE_TYPES[type_].dtype, (window,) if window else ()
    return [
        rng.integers(0, 3, (size, *inner)).astype(dtype),
        rng.integers(-2, size + 3, (count, 1)).astype(np.int32),
        rng.integers(0, 3, (count, *inner)).astype(dtype),
    ]


ATOMIC = (
    *(("f32", "add", "atom.global.add.f32"), ("f64", "add", "atom.global.add.f64")),
    *(("f16", "add", "add.noftz.f16"), ("bf16", "add", "add.noftz.bf16")),
    *(("c64", "add", "atom.global.add.f32"), ("s32", "add", "atom.global.add.u32")),
    *(("u64", "maximum", "atom.global.max.u64"), ("s32", "minimum", "atom.global.min.s32")),
    *(("u32", "xor", "atom.global.xor.b32"), ("f32", "multiply", "cas.b32")),
    *(("f64", "maximum", "cas.b64"), ("bf16", "minimum", "cas.b32"), ("s8", "add", "cas.b32")),
    *(("u16", "multiply", "cas.b32"), ("pred", "or", "cas.b32"), ("f8e5m2", "maximum", "cas.b32")),
)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("type_", "opcode", "instruction"), ATOMIC)
def test_atomic_updates(type_: str, opcode: str, instruction: str) -> None:
    module = mlirhlo.parse(combining(type_, opcode, count=48, size=12))
    compiled: Any = mlirhlo.compile(module, "gpu")
    (ptx,) = compiled.program.ptx.values()
    assert instruction in ptx
    arguments = inputs(type_, 48, 12)
    got, want = (np.asarray(f(*arguments)).astype(complex) for f in (compiled, module))
    np.testing.assert_allclose(got, want, rtol=2e-2 if "16" in type_ else 1e-6)
    assert not compiled.findings


def test_elements_beside_the_array_stay() -> None:
    # Words around the last elements would be outside of it.
    module = mlirhlo.parse(combining("s8", "add", count=48, size=13))
    compiled: Any = mlirhlo.compile(module, "gpu")
    arguments = inputs("s8", 48, 13)
    np.testing.assert_array_equal(compiled(*arguments), module(*arguments))
    assert not compiled.findings


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "flag", ["xla_gpu_deterministic_ops", "xla_gpu_exclude_nondeterministic_ops"]
)
def test_deterministic_sums(flag: str) -> None:
    from mlirhlo.runtime.cuda.devices import device_of

    module = mlirhlo.parse(combining("f32", "add", count=700, size=12, window=3))
    rng = np.random.default_rng(0)
    arguments = inputs("f32", 700, 12, 3)
    arguments[2] = rng.standard_normal(arguments[2].shape).astype(np.float32)
    flags = resolve([(flag, "true")], environ={})
    for seed in range(2):
        compiled: Any = compile_for_gpu(module.op, device_of("h100", flags), flags=flags, seed=seed)
        np.testing.assert_array_equal(compiled(*arguments), module(*arguments))
        assert not compiled.findings


ROWS = (
    "sum {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT c = {0}[] add(a, b) }}\n"
    "ENTRY e {{ x = {0}[12,{1}] parameter(0) i = s32[256,1] parameter(1) u = {0}[256,{1}] parameter(2)\n"
    "  ROOT s = {0}[12,{1}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},"
    " scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=sum }}"
)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("element", "columns", "gpu", "code"),
    [
        ("f16", 8, "a100", "red.relaxed.gpu.global.add.noftz.f16x2"),
        ("bf16", 8, "h100", "red.relaxed.gpu.global.add.noftz.bf16x2"),
        ("bf16", 8, "a100", "atom.relaxed.gpu.global.cas.b32"),
        ("f16", 7, "h100", "add.noftz.f16"),
    ],
)
def test_neighbours_of_16_bits_are_added_together(element, columns, gpu, code):
    """Where a word of the target holds both; rows that are out of bounds are left alone."""
    module = mlirhlo.parse(ROWS.format(element, columns))
    random = np.random.default_rng(4)
    dtype = PRIMITIVE_TYPES[element].dtype
    x, u = (random.integers(-2, 3, (rows, columns)).astype(dtype) for rows in (12, 256))
    i = random.integers(-1, 13, (256, 1)).astype(np.int32)
    compiled: Any = mlirhlo.compile(module, "gpu", gpu=gpu)
    np.testing.assert_array_equal(compiled(x, i, u), module(x, i, u))
    assert not list(map(str, compiled.findings))
    assert any(code in ptx for ptx in compiled.program.ptx.values())
