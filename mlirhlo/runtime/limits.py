"""What this machine can do, measured by kernels of our own: bytes through memory, and multiply-adds."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, f32
from xdsl.dialects.func import FuncOp

from mlirhlo.lowering.builder import FunctionBuilder, vector_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

_ELEMENTS = 1 << 24
_PART = 1 << 14
_CHAINS, _TURNS, _PARTS = 12, 20_000, 64


def limits() -> dict[str, float]:
    """`GB/s` of a triad whose stores go past the caches; `f32`: GFLOP/s in registers."""
    arrays = [_aligned(_ELEMENTS) for _ in range(3)]
    moved = 3 * 4e-9 * _ELEMENTS
    flops = 2e-9 * 16 * _CHAINS * _TURNS * _PARTS
    return {
        "GB/s": moved / _best(_loaded(_triad()), arrays),
        "f32": flops / _best(_loaded(_multiply_adds()), [_aligned(_PARTS * 16)]),
    }


def _aligned(count: int) -> Any:
    """Ones of f32 from a multiple of 64 bytes on, as streaming stores need them."""
    room = np.ones(count + 16, np.float32)
    return room[-room.ctypes.data % 64 // 4 :][:count]


def _triad() -> FuncOp:
    b = FunctionBuilder("kernel", [MemRefType(f32, [_ELEMENTS])] * 3)
    x, y, out = b.arguments
    factor = b.constant(1.5, vector_of(f32, 16))
    with b.parallel(_ELEMENTS // _PART) as part:
        first = b.mul(part, _PART)
        with b.loop(first, b.add(first, _PART), 16) as i:
            value = b.fma(b.vector_load(x, [i], 16), factor, b.vector_load(y, [i], 16))
            b.vector_store(value, out, [i], streaming=True)
    return b.finish()


def _multiply_adds() -> FuncOp:
    b = FunctionBuilder("kernel", [MemRefType(f32, [_PARTS, 16])])
    (data,) = b.arguments
    factor = b.constant(0.5, vector_of(f32, 16))
    with b.parallel(_PARTS) as part:
        start = b.vector_load(data, [part, 0], 16)
        with b.loop(0, _TURNS, 1, [start] * _CHAINS) as loop:
            loop.carry(*(b.fma(x, factor, start) for x in loop.carried))
        total = loop.results[0]
        for x in loop.results[1:]:
            total = b.addf(total, x)
        b.vector_store(b.mulf(total, factor), data, [part, 0])
    return b.finish()


def _loaded(function: FuncOp) -> Callable[..., None]:
    text = print_llvm(convert_to_llvm(ModuleOp([function])))
    library = Library([compile_object(text)], ["kernel"], externals(text))
    kinds = [ctypes.c_void_p] * len(function.function_type.inputs)
    entry = ctypes.CFUNCTYPE(None, *kinds)(library.address("kernel"))

    def call(*arrays: Any) -> None:
        assert library is not None  # it must live as long
        entry(*(a.ctypes.data for a in arrays))

    return call


def _best(call: Callable[..., None], arrays: list[Any]) -> float:
    """Seconds of the quickest of some runs."""
    times: list[float] = []
    for _ in range(8):
        start = time.perf_counter()
        call(*arrays)
        times.append(time.perf_counter() - start)
    return min(times)
