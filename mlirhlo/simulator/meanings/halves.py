"""Arithmetic of `.f16`, `.bf16` and their packed pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator import rounding
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.formats import encode
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.registry import Function, elementwise

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def from_f16(bits: Array) -> Array:
    """Values of halves as single precision."""
    return (
        bits.view(np.float16).astype(np.float32)
        if bits.dtype != np.float16
        else bits.astype(np.float32)
    )


def from_bf16(bits: Array) -> Array:
    """Values of bfloat16 as single precision."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_f16(values: Array) -> Array:
    """Bits of halves, rounded to nearest."""
    result = values.astype(np.float16)
    bits = result.view(np.uint16)
    return np.where(np.isnan(result), np.uint16(0x7FFF), bits)


def to_bf16(values: Array) -> Array:
    """Bits of bfloat16, rounded to nearest."""
    if values.dtype == np.float64:
        return encode(values, "bf16").astype(np.uint16)
    bits = values.view(np.uint32)
    even = bits >> np.uint32(16) & np.uint32(1)
    result = (bits + np.uint32(0x7FFF) + even >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), result)


WIDEN: dict[str, Callable[[Array], Array]] = {"f16": from_f16, "bf16": from_bf16}
PACK: dict[str, Callable[[Array], Array]] = {"f16": to_f16, "bf16": to_bf16}
SMALLEST = {"f16": np.float32(2.0**-14), "bf16": np.float32(2.0**-126)}


def element_of(type_name: str) -> str:
    """`f16` of `f16x2`."""
    return type_name.removesuffix("x2")


def halfwise(assembler: Assembler, function: Function, count: int | None = None) -> Run:
    """`function` of the bits of each half of the operands."""
    parts = range(2 if assembler.type.endswith("x2") else 1)
    operands = assembler.operands[: count or assembler.count]
    runs = list[Run]()
    for part in parts:
        slots = [assembler.part(one, "u16", part) for one in operands]
        runs.append(elementwise(slots[0], function, *slots[1:]))
    if len(runs) == 1:
        return runs[0]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        # A destination that is a source as well is safe: halves do not mix.
        for one in runs:
            one(cohort, lanes)

    return run


def _flushed(values: Array, least: np.float32) -> Array:
    return np.where(np.abs(values) < least, np.copysign(np.float32(0), values), values)


def wrapped(assembler: Assembler, function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of single precision as one of bits of halves, with `.ftz`, `.sat` and `.relu`."""
    element = element_of(assembler.type)
    widen, pack, least = WIDEN[element], PACK[element], SMALLEST[element]
    ftz, sat, relu = assembler.has("ftz"), assembler.has("sat"), assembler.has("relu")

    def run(*bits: Array) -> Array:
        values: list[Array] = [widen(one) for one in bits]
        if ftz:
            values = [_flushed(one, least) for one in values]
        result = function(*values)
        if sat:
            result = np.fmin(np.fmax(result, 0), 1) + result.dtype.type(0)
        if relu:
            result = np.where(result > 0, result, np.where(np.isnan(result), result, 0))
        packed = pack(result)
        if ftz:
            packed = pack(_flushed(widen(packed), least))
        return packed

    return run


def fused(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` as doubles that round once to a half."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return rounding.to_odd(*rounding.two_sum(product, c.astype(np.float64)))


def _fused(assembler: Assembler) -> Callable[..., Array]:
    element = element_of(assembler.type)

    def function(a: Array, b: Array, c: Array) -> Array:
        total = fused(a, b, c)
        if element == "f16":
            return encode(total, "f16").astype(np.uint16).view(np.float16).astype(np.float32)
        return (encode(total, "bf16").astype(np.uint32) << np.uint32(16)).view(np.float32)

    return function


FUNCTIONS: dict[str, Callable[..., Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def arithmetic(assembler: Assembler, opcode: str) -> Run:
    """`add`, `sub`, `mul`, `fma`: single precision has enough bits to round twice, except for `fma`."""
    if assembler.has("oob"):
        raise assembler.no_meaning()
    function = _fused(assembler) if opcode in ("fma", "mad") else FUNCTIONS.get(opcode)
    if function is None:
        raise assembler.no_meaning()
    return halfwise(assembler, wrapped(assembler, function))


def minimum_or_maximum(assembler: Assembler) -> Run:
    """`min` and `max` of halves."""
    from mlirhlo.simulator.meanings.floats import chooser

    return halfwise(assembler, wrapped(assembler, chooser(assembler)))


def sign_bits(assembler: Assembler, opcode: str) -> Run:
    """`abs` and `neg`."""
    if opcode == "abs":
        return halfwise(assembler, lambda bits: bits & np.uint16(0x7FFF))
    return halfwise(assembler, lambda bits: bits ^ np.uint16(0x8000))


def function_of_one(assembler: Assembler, function: Callable[[Array], Array]) -> Run:
    """`ex2`, `tanh` of halves."""
    return halfwise(assembler, wrapped(assembler, function))
