"""Runs whole entry computations as one kernel, for tests of kernel builders."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

import mlirhlo
from mlirhlo.dialects.hlo.ops import TupleOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.lowering.builder import WORKSPACE
from mlirhlo.lowering.hlo_to_loops.elements import physical_dimensions, physical_order
from mlirhlo.lowering.hlo_to_loops.kernels import computed, outputs_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.target import Target, host
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals, set_thread_count

Array = np.ndarray[Any, Any]
GUARD = 64
"""Bytes behind each buffer that nobody may write."""

WORDS = {
    "add": "add(a, b)",
    "multiply": "multiply(b, a)",
    "maximum": "maximum(a, b)",
    "minimum": "minimum(a, b)",
    "and": "and(a, b)",
    "or": "or(a, b)",
    "xor": "xor(a, b)",
}

ARGMAX = """pick {
  x = TYPE[] parameter(0)
  i = s32[] parameter(1)
  y = TYPE[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(x, y), direction=DIRECTION
  none = pred[] compare(x, x), direction=NE
  first = pred[] or(above, none)
  v = TYPE[] select(first, x, y)
  same = pred[] compare(x, y), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, before)
  takes = pred[] or(first, tie)
  n = s32[] select(takes, i, j)
  ROOT t = (TYPE[], s32[]) tuple(v, n)
}
"""
"""A reducer that takes the greatest, or the least, with its place: NaN first, of equal ones the first."""


def needs(processor: Target) -> None:
    """Skips a test of code for a processor that can do what this one cannot."""
    if not processor.features <= host().features:
        pytest.skip("this machine has less")


def reducer(name: str, type_: str, word: str) -> str:
    """A computation of two scalars."""
    return (
        f"{name} {{\n  a = {type_}[] parameter(0)\n  b = {type_}[] parameter(1)\n"
        f"  ROOT c = {type_}[] {WORDS[word]}\n}}\n"
    )


def loops_of(module: mlirhlo.Module) -> ModuleOp:
    """The entry computation as one kernel."""
    entry = module.hlo.entry
    root = entry.root
    parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
    outputs = [o for part in parts for o in outputs_of(part)]
    return ModuleOp([computed("kernel", outputs, [p.output for p in entry.parameters])])


def run(
    module: mlirhlo.Module, arguments: list[Array], threads: int = 1, offset: int = 0
) -> list[Array]:
    """Results of a module that is one kernel; fails where it writes beyond them.

    Results lie `offset` bytes behind a multiple of 64.
    """
    entry = module.hlo.entry
    shapes = entry.root.shape
    parts: Any = shapes.elements if isinstance(shapes, TupleShape) else (shapes,)
    inputs = [
        np.ascontiguousarray(x.transpose(physical_order(p.shape)))
        for x, p in zip(arguments, entry.parameters, strict=True)
    ]
    return run_loops(loops_of(module), inputs, parts, threads, offset)


def run_loops(
    loops: ModuleOp,
    inputs: list[Array],
    results: Sequence[ArrayShape],
    threads: int = 1,
    offset: int = 0,
) -> list[Array]:
    """Results of the function `kernel` of a module at stage loops; fails where it writes beyond them."""
    loops.verify()
    code = convert_to_llvm(loops)
    code.verify()
    text = print_llvm(code)
    library = Library([compile_object(text)], ["kernel"], externals(text))
    rooms = [_room(p.byte_size, offset) for p in results]
    kernel: Any = loops.body.block.last_op
    found = kernel.attributes.get(WORKSPACE)
    size = found.value.data if isinstance(found, IntegerAttr) else 0
    workspace = _room(size, 0)
    pointers = [x.ctypes.data for x in (*inputs, *rooms, workspace)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(library.address("kernel"))
    set_thread_count(threads)
    try:
        function(*pointers)
    finally:
        set_thread_count(0)
    assert all(np.all(room[-GUARD:] == 77) for room in (*rooms, workspace))
    return [_logical(room[:-GUARD], part) for room, part in zip(rooms, results, strict=True)]


def _room(size: int, offset: int) -> Array:
    memory = np.full(size + 2 * GUARD + offset, 77, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size + GUARD]


def _logical(data: Array, shape: ArrayShape) -> Array:
    array = data.view(shape.element_type.dtype).reshape(physical_dimensions(shape))
    return array.transpose(np.argsort(physical_order(shape)))


def agrees(
    text: str,
    arguments: list[Array],
    *,
    tolerance: float = 0.0,
    threads: int = 1,
    offset: int = 0,
) -> None:
    """Holds a kernel against the interpreter: bit for bit, or to within a part of the greatest."""
    module = mlirhlo.parse(text)
    module.verify()
    results = run(module, arguments, threads, offset)
    are_near(text, results, module(*arguments), tolerance=tolerance)


def compiled_agrees(text: str, arguments: list[Array], *, tolerance: float = 0.0) -> None:
    """Holds a compiled program, which calls no Python, against the interpreter."""
    module = mlirhlo.parse(text)
    executable = mlirhlo.compile(module, cached=False)
    results = executable(*arguments)
    assert not executable.callbacks
    actual = list(results) if isinstance(results, tuple) else [results]
    are_near(text, actual, module(*arguments), tolerance=tolerance)


def are_near(text: str, results: Sequence[Array], expected: Any, *, tolerance: float) -> None:
    """Results bit for bit as expected, or to within a part of the greatest."""
    wanted: Any = expected if isinstance(expected, tuple) else (expected,)
    for actual, want in zip(results, wanted, strict=True):
        want = np.asarray(want)
        kind: Any = np.complex128 if want.dtype.kind == "c" else np.float64
        if want.dtype.kind in "iub":
            assert np.array_equal(actual, want), (text, actual, want)
            continue
        x, y = actual.astype(kind), want.astype(kind)
        finite = np.isfinite(y)
        assert np.array_equal(x[~finite], y[~finite], equal_nan=True), (text, x, y)
        scale = float(np.abs(y[finite]).max()) if finite.any() else 0.0
        apart = np.abs(x[finite] - y[finite])
        assert np.all(apart <= tolerance * max(scale, 1e-30)), (text, apart.max() / scale)


def draw(rng: np.random.Generator, type_: str, sizes: tuple[int, ...]) -> Array:
    """Tame numbers, whose sums are not far from what they are made of."""
    dtype: Any = mlirhlo.parse(f"ENTRY e {{ ROOT p = {type_}[] parameter(0) }}")
    dtype = dtype.hlo.entry.root.shape.element_type.dtype
    if dtype == np.bool_:
        return rng.integers(0, 2, sizes).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 6, sizes).astype(dtype)
    values = rng.normal(size=sizes)
    return (values + 1j * rng.normal(size=sizes) if dtype.kind == "c" else values).astype(dtype)
