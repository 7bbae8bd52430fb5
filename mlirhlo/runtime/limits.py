"""What this machine can do, measured by kernels of our own: bytes through memory, and products in registers."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, f32, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder, vector_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.target import current
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

_LANES, _LINE = 16, 64
_ARRAY = 64 << 20
"""Bytes of each of a triad's arrays."""
_PART = 1 << 16
"""Bytes that a thread moves at once."""
_AHEAD = 4 << 10
"""Bytes in front of what is read, when a kernel asks for it early."""
_AT_ONCE = 4
"""Vectors of a turn, at least."""
_CHAINS, _TURNS, _PARTS = 12, 20_000, 64
_PRODUCTS = {"f32": 1, "bf16": 2, "s8": 4}
"""Products that a lane sums in an instruction."""


def limits() -> dict[str, float]:
    """`GB/s` of a triad whose stores go past the caches; `f32`: GFLOP/s in registers."""
    triad = streams(2 * _ARRAY, _ARRAY)[0]
    run, gigaflop = products("f32")
    return {"GB/s": 3e-9 * _ARRAY / _best(triad), "f32": gigaflop / _best(run)}


def streams(read: int, written: int) -> list[Callable[[], None]]:
    """Kernels that read and write about so many bytes, once and in order, on all threads: past the caches,
    asked for early, through the caches. Which is quickest depends on how much it is and on the machine."""
    ratio = Fraction(read, written).limit_denominator(8) if written else Fraction(1)
    loads, stores = (ratio.numerator, ratio.denominator) if written else (1, 0)
    most = max(loads, stores)
    many = -(-_AT_ONCE // most)
    parts = -(-max(read, written) // _PART)
    turns = _PART // _LINE // (most * many)
    shape = (loads * many, stores * many, turns, parts)
    source, target = (_aligned(max(n, 1) * turns * parts * _LANES) for n in shape[:2])
    sums = _aligned(parts * _LANES)
    forms = [(True, 0), (True, _AHEAD), (False, 0)] if written else [(False, 0), (False, _AHEAD)]

    def loaded(past: bool, ahead: int) -> Callable[[], None]:
        call = _loaded(_stream(*shape, past, ahead))
        return lambda: call(source, target, sums)

    return [loaded(past, ahead) for past, ahead in forms if read or not ahead]


def products(kind: str) -> tuple[Callable[[], None], float]:
    """A kernel of independent sums of products in registers, of `f32`, `bf16` or `s8` (summed in 32 bits), and
    its operations in 1e9.

    Raises KeyError for another type, and for one that this processor has no instructions for.
    """
    each = _PRODUCTS[kind]
    if kind == "bf16" and not current().has("avx512bf16"):
        raise KeyError(kind)
    if kind == "s8" and not current().multiplies_bytes:
        raise KeyError(kind)
    call, data = _loaded(_sums_of_products(kind)), _aligned(_PARTS * _LANES)
    return lambda: call(data), 2e-9 * each * _LANES * _CHAINS * _TURNS * _PARTS


def _aligned(count: int) -> Any:
    """Ones of f32 from a multiple of 64 bytes on, as streaming stores need them."""
    room = np.ones(count + _LANES, np.float32)
    return room[-room.ctypes.data % _LINE // 4 :][:count]


def _stream(loads: int, stores: int, turns: int, parts: int, past: bool, ahead: int) -> FuncOp:
    """In parts, turns of so many loads and stores of a vector; `past`: stores go past the caches."""
    sizes = [max(n, 1) * turns * parts * _LANES for n in (loads, stores)]
    b = FunctionBuilder("kernel", [MemRefType(f32, [n]) for n in (*sizes, parts * _LANES)])
    source, target, sums = b.arguments
    one = b.constant(1.5, vector_of(f32, _LANES))
    with b.parallel(parts) as part:
        first = b.mul(part, turns)
        carried = [] if stores else [one] * loads
        with b.loop(first, b.add(first, turns), 1, carried) as loop:
            turn = loop.index if carried else loop
            values: list[SSAValue] = []
            for n in range(loads):
                at = b.add(b.mul(turn, loads * _LANES), n * _LANES)
                if ahead:
                    b.prefetch(source, [b.add(at, ahead // 4)], locality=0)
                values.append(b.vector_load(source, [at], _LANES))
            if carried:
                loop.carry(*map(b.addf, loop.carried, values))
            for n in range(stores):
                # Every value that was read is used.
                value, *others = values[n::stores] or values[:1] or [one]
                for other in others:
                    value = b.fma(value, one, other)
                at = b.add(b.mul(turn, stores * _LANES), n * _LANES)
                b.vector_store(value, target, [at], streaming=past)
        if carried:
            total = loop.results[0]
            for value in loop.results[1:]:
                total = b.addf(total, value)
            b.vector_store(total, sums, [b.mul(part, _LANES)])
    return b.finish()


def _sums_of_products(kind: str) -> FuncOp:
    element = i32 if kind == "s8" else f32
    b = FunctionBuilder("kernel", [MemRefType(element, [_PARTS, _LANES])])
    (data,) = b.arguments
    bits = b.constant(0x3F003F00, vector_of(i32, _LANES))  # pairs of 0.5 of bf16, or any bytes
    half = b.constant(0.5, vector_of(f32, _LANES))

    def more(total: SSAValue) -> SSAValue:
        if kind == "s8":
            return b.dot_bytes(total, bits, bits, False, True)
        return b.dot_bf16(total, bits, bits) if kind == "bf16" else b.fma(total, half, half)

    with b.parallel(_PARTS) as part:
        start = b.vector_load(data, [part, 0], _LANES)
        with b.loop(0, _TURNS, 1, [start] * _CHAINS) as loop:
            loop.carry(*map(more, loop.carried))
        add = b.addi if kind == "s8" else b.addf
        total = loop.results[0]
        for value in loop.results[1:]:
            total = add(total, value)
        b.vector_store(total, data, [part, 0])
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


def _best(run: Callable[[], None]) -> float:
    """Seconds of the quickest of some runs."""
    times: list[float] = []
    for _ in range(8):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
