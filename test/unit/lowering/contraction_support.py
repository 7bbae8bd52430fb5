"""Runs kernels of dots and convolutions as machine code, and compares with the interpreter."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

import mlirhlo
from mlirhlo.dialects.hlo.ops import TupleOp
from mlirhlo.lowering.builder import WORKSPACE
from mlirhlo.lowering.hlo_to_loops.contractions.kernels import contraction_kernel
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

Array = np.ndarray[Any, Any]

TOLERANCES = {
    "float32": 3e-6,
    "float64": 1e-13,
    "complex64": 4e-6,
    "complex128": 1e-13,
    "float16": 2e-3,
    "bfloat16": 1e-2,
}
"""Of the greatest absolute value: sums are made in another order."""


def run(module: mlirhlo.Module, arguments: list[Array], like: list[Array]) -> list[Array]:
    """Results of an entry that is one kernel; the memory it gets is full of NaN before."""
    entry = module.hlo.entry
    parts = entry.root.inputs if isinstance(entry.root, TupleOp) else [entry.root.output]
    kernel = contraction_kernel(
        "kernel", [Output(p, array(p)) for p in parts], [p.output for p in entry.parameters]
    )
    assert kernel is not None
    loops = ModuleOp([*helpers_of([kernel]), kernel])
    loops.verify()
    code = convert_to_llvm(loops, features={"prefer-vector-width": "512"})
    code.verify()
    text = print_llvm(code)
    library = Library([compile_object(text)], ["kernel"], externals(text))
    size = kernel.attributes.get(WORKSPACE)
    room = np.full((size.value.data if isinstance(size, IntegerAttr) else 0) + 128, 0xFF, np.uint8)
    start = -(-room.ctypes.data // 64) * 64
    orders = [array(p.output) for p in entry.parameters]
    inputs = [_in_memory(a, s) for a, s in zip(arguments, orders, strict=True)]
    results = [np.full(_physical(array(p)), 0x55, np.uint8) for p in parts]
    pointers = [x.ctypes.data for x in (*inputs, *results)]
    if isinstance(size, IntegerAttr):
        pointers.append(start)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(library.address("kernel"))(*pointers)
    return [
        _out_of_memory(r, array(p), e.dtype) for r, p, e in zip(results, parts, like, strict=True)
    ]


def _order(shape: Any) -> tuple[int, ...]:
    return (
        tuple(reversed(shape.layout.minor_to_major)) if shape.layout else tuple(range(shape.rank))
    )


def _in_memory(values: Array, shape: Any) -> Array:
    return np.ascontiguousarray(values.transpose(_order(shape)))


def _physical(shape: Any) -> int:
    return int(shape.element_count * shape.element_type.byte_size)


def _out_of_memory(data: Array, shape: Any, dtype: Any) -> Array:
    order = _order(shape)
    physical = data.view(dtype).reshape([shape.dimensions[d] for d in order])
    return physical.transpose(np.argsort(order))


def draw(rng: np.random.Generator, shape: Any) -> Array:
    dtype: Any = shape.element_type.dtype
    size = shape.dimensions
    if dtype == np.bool_:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -1000), min(info.max, 1000), size).astype(dtype)
    if dtype.name.startswith(("int", "uint")):
        return rng.integers(0, 4, size).astype(dtype)
    values = rng.normal(size=size)
    return (values + 1j * rng.normal(size=size) if dtype.kind == "c" else values).astype(dtype)


def agrees(text: str, seed: int = 0) -> None:
    """Runs a module and compares."""
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(seed)
    arguments = [draw(rng, p.shape) for p in module.hlo.entry.parameters]
    expected = module(*arguments)
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, tuple) else (expected,))]
    for actual, want in zip(run(module, arguments, wanted), wanted, strict=True):
        assert actual.shape == want.shape
        tolerance = TOLERANCES.get(want.dtype.name)
        if tolerance is None or not want.size:
            assert np.array_equal(actual, want), text
        else:
            kind: Any = np.complex128 if want.dtype.kind == "c" else np.float64
            apart = np.abs(actual.astype(kind) - want.astype(kind)).max()
            assert apart <= tolerance * max(np.abs(want.astype(kind)).max(), 1e-30), text


MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
TRANSPOSED = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
TYPES = ("f32", "f64", "c64", "c128", "s32", "s64", "u8", "s8", "u16", "pred", "f16", "bf16")


def dot(element: str, rows: int, depth: int, columns: int) -> str:
    shapes = f"{element}[{rows},{depth}] x, {element}[{depth},{columns}] y"
    return f"{element}[{rows},{columns}] dot({shapes}), {MATRICES}"


def drawn_shape(element: str, sizes: list[int], data: st.DataObject) -> str:
    """The text of a shape in any layout."""
    layout = ",".join(map(str, data.draw(st.permutations(range(len(sizes))))))
    return f"{element}[{','.join(map(str, sizes))}]" + (f"{{{layout}}}" if layout else "")
