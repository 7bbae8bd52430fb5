"""`cvt`: conversions between all scalar types, and of packed small floats. Source: PTX ISA, "cvt"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Operand
from mlirhlo.simulator import rounding
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.formats import decode, encode
from mlirhlo.simulator.lanes import Array
from mlirhlo.simulator.meanings.floats import canonical, clamp, flush
from mlirhlo.simulator.meanings.registry import elementwise, meaning
from mlirhlo.simulator.types import DTYPES, is_float, is_signed

if TYPE_CHECKING:
    pass

INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
MODES = ("rn", "rz", "rm", "rp", "rna")
PACKED = frozenset({"f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"})


@meaning("cvt")
def convert(assembler: Assembler) -> Run:
    """Converts from the second type to the first."""
    if assembler.has("pack"):
        return _pack_integers(assembler)
    to, source = assembler.types[0], assembler.types[1]
    if assembler.has("rs") or "scaled::n2::ue8m0" in assembler.modifiers:
        raise assembler.no_meaning()
    if to in PACKED or source in PACKED:
        return _packed(assembler, to, source)
    function = (
        _float_source(assembler, to, source)
        if is_float(source)
        else _integer_source(assembler, to, source)
    )
    return elementwise(_destination(assembler, to), function, assembler.source(1, source))


def _destination(assembler: Assembler, to: str) -> int:
    """The destination; one that is wider than the type is filled by the sign or by zeros."""
    operand = assembler.operands[0]
    width = assembler.width_of(operand)
    if width > DTYPES[to].itemsize and not is_float(to):
        return assembler.dest(0, f"{'s' if is_signed(to) else 'u'}{width * 8}")
    return assembler.dest(0, to)


def _integer_source(assembler: Assembler, to: str, source: str) -> Callable[[Array], Array]:
    mode = assembler.one_of(*MODES, default="rn")
    if is_float(to):
        return _integer_to_float(assembler, to, mode)
    dtype = DTYPES[to]
    if assembler.has("sat"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        given = np.iinfo(DTYPES[source])
        return lambda a: np.clip(a, max(low, given.min), min(high, given.max)).astype(dtype)
    return lambda a: a.astype(dtype)


def _integer_to_float(assembler: Assembler, to: str, mode: str) -> Callable[[Array], Array]:
    saturates = assembler.has("sat")

    def function(a: Array) -> Array:
        if to == "f32" and mode == "rn":
            result: Array = a.astype(np.float32)
        elif to == "f64" and mode == "rn":
            result = a.astype(np.float64)
        else:
            high = a.astype(np.float64)
            # Doubles hold 53 bits: the rest of a 64-bit integer is exact by itself.
            low = _rest(a, high)
            if to == "f64":
                result = rounding.step(high, low, mode)
            elif to == "f32":
                result = rounding._narrowed(high, low, mode)  # pyright: ignore[reportPrivateUsage]
            else:
                bits = encode(rounding.to_odd(high, low), to, mode)
                result = bits.astype(np.uint16)
                return result.view(np.float16) if to == "f16" else result
        return clamp(result) if saturates else result

    return function


def _rest(a: Array, high: Array) -> Array:
    if a.dtype.itemsize < 8:
        return np.zeros(len(a))
    top = 2.0**63 if a.dtype.kind == "i" else 2.0**64
    beyond = high >= top
    back = np.where(beyond, 0, high).astype(a.dtype)
    difference = (a - back).view(np.int64)
    if a.dtype.kind == "i":
        return np.where(
            beyond, -(np.float64(2**63) - a.astype(np.float64)) - (2.0**63 - 1 - a), difference
        )
    return np.where(beyond, -((~a).astype(np.float64) + 1.0), difference)


def to_double(bits: Array, source: str) -> Array:
    """Values of any float type as doubles."""
    if source in ("f32", "f64"):
        return bits.astype(np.float64)
    if source == "f16":
        return bits.astype(np.float64)
    return decode(bits, source)


def _float_source(assembler: Assembler, to: str, source: str) -> Callable[[Array], Array]:
    ftz = assembler.has("ftz")
    integral = assembler.one_of(*INTEGRAL)
    if not is_float(to):
        return _float_to_integer(assembler, to, source, integral or "rzi")
    mode = assembler.one_of(*MODES, default="rn")
    saturates = assembler.has("sat")
    relu, finite = assembler.has("relu"), assembler.has("satfinite")

    def function(a: Array) -> Array:
        if ftz and source == "f32":
            a = flush(a)
        if to == source and to in ("f32", "f64"):
            result = _integral(a, integral) if integral else a
            result = clamp(result) if saturates else result
            return canonical(flush(result) if ftz else result) if to == "f32" else result
        if to == "f64":
            return clamp(to_double(a, source)) if saturates else to_double(a, source)
        values = to_double(a, source)
        if integral:
            values = _integral(values, integral)
        if saturates:
            values = clamp(values)
        if to == "f32":
            result = rounding.narrow(values, mode)
            return canonical(flush(result) if ftz else result)
        if to == "f16" and mode == "rn" and not (relu or finite):
            return _canonical_half(a if source == "f32" and not saturates else values)
        bits = encode(values, to, mode, saturates=finite, relu=relu)
        if to == "tf32":
            # Numbers of ten mantissa bits stand in the upper bits of single precision.
            return (bits << 13).astype(np.uint32)
        return bits.astype(np.uint16).view(np.float16) if to == "f16" else bits.astype(np.uint16)

    return function


def _canonical_half(values: Array) -> Array:
    result = values.astype(np.float16)
    missing = np.isnan(result)
    if missing.any():
        return np.where(missing, np.array(0x7FFF, np.uint16), result.view(np.uint16)).view(
            np.float16
        )
    return result


def _integral(values: Array, integral: str) -> Array:
    match integral:
        case "rni":
            return np.rint(values)
        case "rzi":
            return np.trunc(values)
        case "rmi":
            return np.floor(values)
        case _:
            return np.ceil(values)


def _float_to_integer(
    assembler: Assembler, to: str, source: str, integral: str
) -> Callable[[Array], Array]:
    dtype = DTYPES[to]
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    ftz = assembler.has("ftz")

    def function(a: Array) -> Array:
        if ftz and source == "f32":
            a = flush(a)
        values = _integral(to_double(a, source), integral)
        missing = np.isnan(values)
        values = np.where(missing, 0.0, values)
        above, below = values >= high, values <= low
        result = np.where(above | below, 0.0, values).astype(dtype)
        return np.where(above, info.max, np.where(below, info.min, result)).astype(dtype)

    return function


def _pack_integers(assembler: Assembler) -> Run:
    """`cvt.pack.sat.u8.s32.b32 d, a, b, c`: a and b, saturated, below the low bits of c."""
    to = assembler.types[0]
    info, width = np.iinfo(DTYPES[to]), DTYPES[to].itemsize * 8
    sources = [assembler.source(i, "s32") for i in (1, 2)]
    with_rest = assembler.count > 3
    if with_rest:
        sources.append(assembler.source(3, "u32"))

    def function(a: Array, b: Array, c: Array | None = None) -> Array:
        parts = [
            np.clip(one.astype(np.int64), info.min, info.max).astype(np.uint64)
            & np.uint64((1 << width) - 1)
            for one in (b, a)
        ]
        result = parts[0] | parts[1] << np.uint64(width)
        if c is not None:
            result |= c.astype(np.uint64) << np.uint64(2 * width)
        return result.astype(np.uint32)

    return elementwise(assembler.dest(0, "u32"), function, *sources)


def _packed(assembler: Assembler, to: str, source: str) -> Run:
    """Two values at once: from two operands, or from a packed one."""
    mode = assembler.one_of(*MODES, default="rn")
    finite, relu = assembler.has("satfinite"), assembler.has("relu")
    element = to.removesuffix("x2")

    def pack(values: Array) -> Array:
        if element == "ue8m0":
            return _exponent(values, mode)
        return encode(values, element, mode, saturates=finite, relu=relu)

    width = 4 if element == "e2m1" else 16 if element in ("f16", "bf16") else 8
    if source in PACKED:
        return _from_packed(assembler, to, source, pack, width)
    if to not in PACKED:
        raise assembler.no_meaning()
    a, b = assembler.source(1, source), assembler.source(2, source)
    ftz = assembler.has("ftz")

    def function(high: Array, low: Array) -> Array:
        if ftz:
            high, low = flush(high), flush(low)
        result: Array = pack(low.astype(np.float64)) | pack(high.astype(np.float64)) << width
        return result

    return elementwise(_small_destination(assembler, width * 2), function, a, b)


def _small_destination(assembler: Assembler, bits: int) -> int:
    return assembler.dest(0, "b32" if bits == 32 else "b16" if bits == 16 else "b8")


def _from_packed(
    assembler: Assembler, to: str, source: str, pack: Callable[[Array], Array], width: int
) -> Run:
    element = source.removesuffix("x2")
    given = 4 if element == "e2m1" else 16 if element in ("f16", "bf16") else 8
    operand: Operand = assembler.operands[1]
    slot = assembler.part(operand, "b32" if given == 16 else "b16" if given == 8 else "b8", 0)
    mask = (1 << given) - 1

    def function(a: Array) -> Array:
        numbers = a.astype(np.int64)
        low, high = numbers & mask, numbers >> given & mask
        kind = np.uint16 if given == 16 else np.uint8
        values = [decode(one.astype(kind), element) for one in (low, high)]
        result: Array = pack(values[0]) | pack(values[1]) << width
        return result

    return elementwise(_small_destination(assembler, width * 2), function, slot)


def _exponent(values: Array, mode: str) -> Array:
    """The exponent alone (`ue8m0`), rounded up or towards zero."""
    size = np.abs(values)
    mantissa, exponent = np.frexp(np.where(np.isfinite(size) & (size > 0), size, 1.0))
    exponent = exponent - 1 + ((mantissa > 0.5) if mode == "rp" else 0) + 127
    result = np.clip(exponent, 0, 254).astype(np.int64)
    result = np.where(size == 0, 0, np.where(np.isinf(size), 254, result))
    return np.where(np.isnan(size), 255, result)
