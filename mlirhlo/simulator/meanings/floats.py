"""Floating-point arithmetic of 32 and 64 bits, and what opcodes share with integers and halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator import rounding
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings import halves, integers
from mlirhlo.simulator.meanings.registry import Unary, apply, elementwise, meaning
from mlirhlo.simulator.types import is_float

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

MODES = ("rn", "rz", "rm", "rp", "rna")
TINY = np.float32(2.0**-126)
CANONICAL_NAN = np.array([0x7FFFFFFF], np.uint32).view(np.float32)[0]
HALVES = frozenset({"f16", "f16x2", "bf16", "bf16x2"})


def flush(values: Array) -> Array:
    """Subnormal single-precision numbers as zeros of their sign."""
    small = np.abs(values) < TINY
    return np.where(small, np.copysign(np.float32(0), values), values)


def clamp(values: Array) -> Array:
    """`.sat`: the range from 0 to 1; NaN is 0."""
    result: Array = np.fmin(
        np.fmax(values, values.dtype.type(0)), values.dtype.type(1)
    ) + values.dtype.type(0)
    return result


def canonical(values: Array) -> Array:
    """Results of single precision, whose NaNs have one form."""
    missing = np.isnan(values)
    if missing.any():
        return np.where(missing, CANONICAL_NAN, values)
    return values


def finished(
    assembler: Assembler, function: Callable[..., Array], type_name: str
) -> Callable[..., Array]:
    """`function` with the flushing, saturation and NaNs of the instruction."""
    ftz, sat = assembler.has("ftz"), assembler.has("sat")
    single = type_name == "f32"

    def run(*operands: Array) -> Array:
        if ftz:
            operands = tuple(flush(one) for one in operands)
        result = function(*operands)
        if sat:
            result = clamp(result)
        if ftz:
            result = flush(result)
        return canonical(result) if single else result

    return run if ftz or sat or single else function


def arithmetic(assembler: Assembler, name: str) -> Run:
    """`add`, `sub`, `mul`, `fma`, `div`, `sqrt`, `rcp` with a rounding mode."""
    type_name = assembler.type
    mode = assembler.one_of(*MODES, default="rn")
    function = OPERATIONS[name]

    def operation(*operands: Array) -> Array:
        return function(*operands, mode)

    if type_name == "f32x2":
        return _pair(assembler, finished(assembler, operation, "f32"))
    if not is_float(type_name):
        raise assembler.no_meaning()
    if set(assembler.types) != {type_name}:
        return _mixed(assembler, operation)
    return apply(assembler, type_name, finished(assembler, operation, type_name))


def _mixed(assembler: Assembler, operation: Callable[..., Array]) -> Run:
    """`add.f32.f16`, `fma.rn.f32.bf16`: narrow operands a (and b), a wide result."""
    narrow = next(one for one in assembler.types if one != "f32")
    widen = halves.WIDEN[narrow]
    last = assembler.count - 1
    sources = [
        assembler.source(i, narrow if i < last else "f32") for i in range(1, assembler.count)
    ]
    finish = finished(assembler, operation, "f32")

    def widened(*values: Array) -> Array:
        return finish(*(widen(one) for one in values[:-1]), values[-1])

    return elementwise(assembler.dest(0, "f32"), widened, *sources)


def _pair(assembler: Assembler, function: Callable[..., Array]) -> Run:
    runs = [
        elementwise(
            assembler.part(assembler.operands[0], "f32", part),
            function,
            *(assembler.part(one, "f32", part) for one in assembler.operands[1:]),
        )
        for part in range(2)
    ]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        for one in runs:
            one(cohort, lanes)

    return run


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": rounding.add,
    "sub": rounding.subtract,
    "mul": rounding.multiply,
    "fma": rounding.fma,
    "div": rounding.divide,
    "sqrt": rounding.square_root,
    "rcp": rounding.reciprocal,
}


@meaning("add", "sub", "mul", "mad", "fma", "div")
def by_type(assembler: Assembler) -> Run:
    """The opcodes that integers and floats share."""
    opcode, type_name = assembler.op.opcode, assembler.type
    if type_name in HALVES and len(set(assembler.types)) == 1:
        return halves.arithmetic(assembler, opcode)
    if is_float(type_name) or type_name == "f32x2":
        if opcode == "div" and assembler.has("approx", "full"):
            return approximate_division(assembler)
        return arithmetic(assembler, "fma" if opcode == "mad" else opcode)
    match opcode:
        case "add" | "sub":
            return integers.add_or_subtract(assembler)
        case "mul":
            return integers.multiply(assembler)
        case "mad":
            return integers.multiply_add(assembler)
        case "div":
            return apply(assembler, type_name, integers.quotient)
        case _:
            raise assembler.no_meaning()


@meaning("min", "max")
def minimum_or_maximum(assembler: Assembler) -> Run:
    """The smaller or larger; -0 is smaller than 0, NaN loses unless `.NaN` says that it wins."""
    type_name = assembler.type
    if type_name in HALVES:
        return halves.minimum_or_maximum(assembler)
    if not is_float(type_name):
        return integers.minimum_or_maximum(assembler)
    return apply(
        assembler,
        type_name,
        finished(assembler, chooser(assembler), type_name),
    )


def chooser(assembler: Assembler) -> Callable[..., Array]:
    """`min` or `max` of two or three floats."""
    smaller = assembler.op.opcode == "min"
    wins, signs = assembler.has("NaN"), assembler.has("xorsign")

    def two(a: Array, b: Array) -> Array:
        x, y = (np.abs(a), np.abs(b)) if signs else (a, b)
        first = (
            (x < y) | ((x == y) & np.signbit(x))
            if smaller
            else (x > y) | ((x == y) & ~np.signbit(x))
        )
        result = np.where(first | np.isnan(y), x, y)
        if wins:
            result = np.where(np.isnan(x) | np.isnan(y), x + y, result)
        if signs:
            sign = np.where(np.signbit(a) ^ np.signbit(b), -1.0, 1.0).astype(a.dtype)
            result = np.copysign(result, sign)
        return result

    return lambda *values: two(*values) if len(values) == 2 else two(two(*values[:2]), values[2])


def absolute(assembler: Assembler) -> Run:
    """`abs` of floats."""
    if assembler.type in HALVES:
        return halves.sign_bits(assembler, "abs")
    return apply(assembler, assembler.type, _maybe_flushed(assembler, np.abs))


def negate(assembler: Assembler) -> Run:
    """`neg` of floats."""
    if assembler.type in HALVES:
        return halves.sign_bits(assembler, "neg")
    return apply(assembler, assembler.type, _maybe_flushed(assembler, np.negative))


def _maybe_flushed(assembler: Assembler, function: Unary) -> Unary:
    return (lambda a: function(flush(a))) if assembler.has("ftz") else function


@meaning("copysign")
def copy_sign(assembler: Assembler) -> Run:
    """The magnitude of b with the sign of a."""
    return apply(assembler, assembler.type, lambda a, b: np.copysign(b, a))


@meaning("testp")
def test_property(assembler: Assembler) -> Run:
    """Whether a number is finite, infinite, …"""
    tiny = np.finfo(np.float32 if assembler.type == "f32" else np.float64).tiny
    functions: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    which = assembler.one_of(*functions)
    return elementwise(
        assembler.dest(0, "pred"), functions[which], assembler.source(1, assembler.type)
    )


def approximate_division(assembler: Assembler) -> Run:
    """`div.approx` and `div.full`: the dividend times the reciprocal, each rounded, so within two units in the last
    place. `div.full` scales both operands where the reciprocal would be subnormal or infinite."""
    full = assembler.has("full")
    one, low, high = np.float32(1), np.float32(2.0**-126), np.float32(2.0**126)

    def function(a: Array, b: Array) -> Array:
        is_huge = (np.abs(b) > high) & np.isfinite(b)
        if not full:
            return a * np.where(is_huge, np.copysign(np.float32(0), b), one / b)
        small = np.where(np.abs(b) < low, np.float32(2.0**24), one)
        scale = np.where(is_huge, np.float32(0.25), small)
        return (a * scale) * (one / (b * scale))

    return apply(assembler, "f32", finished(assembler, function, "f32"))


def _through_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


APPROXIMATE: dict[str, Callable[[Array], Array]] = {
    "ex2": _through_double(np.exp2),
    "lg2": _through_double(np.log2),
    "sin": _through_double(np.sin),
    "cos": _through_double(np.cos),
    "tanh": _through_double(np.tanh),
    "rsqrt": _through_double(lambda a: 1.0 / np.sqrt(a)),
    "rcp": lambda a: (np.array(1, a.dtype) / a).astype(a.dtype),
    "sqrt": np.sqrt,
}


@meaning("ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt")
def approximate(assembler: Assembler) -> Run:
    """Functions with an error bound, here rounded correctly (or almost); and `rcp`, `sqrt` with a mode."""
    opcode, type_name = assembler.op.opcode, assembler.type
    if opcode in ("rcp", "sqrt") and assembler.has(*MODES):
        return arithmetic(assembler, opcode)
    function = APPROXIMATE[opcode]
    if type_name in HALVES:
        return halves.function_of_one(assembler, function)
    if type_name == "f64" and not assembler.has("ftz"):
        # rsqrt.approx.f64 is exact to the last places, a function in software.
        return apply(assembler, "f64", function)
    if type_name == "f64":
        # rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper half of the bits.
        def upper(a: Array) -> Array:
            result = function(a)
            return (result.view(np.uint64) & np.uint64(0xFFFFFFFF_00000000)).view(np.float64)

        return apply(assembler, "f64", upper)
    return apply(assembler, "f32", finished(assembler, function, "f32"))
