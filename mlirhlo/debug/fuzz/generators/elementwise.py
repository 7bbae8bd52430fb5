"""Every element-wise opcode on every element type it takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.instructions import Case, Known, executes
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.table import ELEMENTWISE_ROWS
from mlirhlo.formats.hlo_text import parse_module

TYPES = [
    row.name
    for row in PRIMITIVE_TYPES.values()
    # jaxlib reads s1, u1 as pred and does not know f6.
    if row.is_array and row.bits != 1 and not row.name.startswith("f6")
] + ["pred"]

APPROXIMATE = frozenset(
    row.name for row in ELEMENTWISE_ROWS if row.transcendental and row.name != "sqrt"
)
OPCODES = [
    row.name for row in ELEMENTWISE_ROWS if not row.newer and row.name != "stochastic-convert"
]
REDUCED = ("f32", "f64", "bf16", "f16")
"""Types whose precision XLA:CPU reduces."""


def operand_types(opcode: str, name: str) -> tuple[str, ...]:
    """Element types of an opcode's operands, when its first data operand has type `name`."""
    arity = next(row.arity for row in ELEMENTWISE_ROWS if row.name == opcode)
    assert isinstance(arity, int)
    return ("pred", name, name) if opcode == "select" else (name,) * arity


@lru_cache(maxsize=4096)
def result_type(opcode: str, name: str) -> str | None:
    """Element type of the result; None where the opcode does not take the type."""
    if opcode in ("convert", "reduce-precision"):
        return name if opcode == "convert" or name in REDUCED else None
    types = operand_types(opcode, name)
    text = "HloModule m\nENTRY e {\n"
    text += "".join(f"  p{i} = {t}[] parameter({i})\n" for i, t in enumerate(types))
    extra = ", direction=EQ" if opcode == "compare" else ""
    text += f"  ROOT r = {opcode}({', '.join(f'p{i}' for i in range(len(types)))}){extra}\n}}\n"
    try:
        shape: Any = HloModule(parse_module(text)).entry.root.shape
    except HloError:
        return None
    return str(shape.element_type.name)


def lines(opcode: str, name: str) -> list[tuple[str, str]]:
    """Result type and attributes of every form of an opcode on a type."""
    result = result_type(opcode, name)
    if result is None:
        return []
    type_ = type_of(name)
    if opcode == "clamp" and type_.is_complex:
        # Complex numbers have no order: refused here, while XLA compares some part of them.
        return []
    if opcode == "convert":
        # XLA does not take the imaginary part away.
        wanted = [t for t in TYPES if t != name]
        return [(t, "") for t in wanted if type_of(t).is_complex or not type_.is_complex]
    if opcode == "compare":
        directions = ("EQ", "NE") if type_.is_complex else ("EQ", "NE", "LT", "LE", "GT", "GE")
        total = type_.is_float and type_.bits >= 16
        kinds = ("", ", type=TOTALORDER") if total else ("",)
        return [(result, f", direction={d}{kind}") for d in directions for kind in kinds]
    return [(result, "")]


def known_difference(opcode: str, type_: PrimitiveType, values: list[np.ndarray]) -> np.ndarray:
    """Places where XLA:CPU is wrong or its result is its own affair."""
    first = values[0]
    nothing = np.zeros(first.shape, np.bool_)
    if opcode == "power" and type_.is_integer:
        # XLA looks at six bits of the exponent.
        exponent = values[1].astype(np.int64 if type_.bits < 64 else values[1].dtype)
        return (exponent < 0) | (exponent > 63) if type_.is_signed else exponent > 63
    if opcode == "popcnt" and type_.is_signed and type_.bits < 8:
        return first.astype(np.int8) < 0  # sign-extended bits are counted
    if type_.name == "f4e2m1fn":
        return ~nothing if opcode in ("sqrt", "divide", "remainder", "power", "log") else nothing
    if type_.name == "f8e8m0fnu":
        # Its least number is a denormal f32, which XLA:CPU takes for zero.
        floats = [v.astype(np.float32) for v in values if v.dtype == type_.dtype]
        return np.any([v < 2.0**-126 for v in floats], axis=0)
    if type_.is_complex:
        return _known_complex(opcode, values)
    return nothing


def _known_complex(opcode: str, values: list[np.ndarray]) -> np.ndarray:
    x = values[0].astype(np.complex128)
    if opcode in ("sqrt", "rsqrt"):
        return (x.real < 0) & (x.imag == 0) & np.signbit(x.imag)  # the wrong side of the cut
    if opcode == "atan2":  # beside a cut a rounding error decides the side
        y, z = (v.astype(np.complex128) for v in values)
        with np.errstate(all="ignore"):
            ratio = y / z
        on_cut = (np.abs(ratio.imag) < 1e-4 * np.abs(ratio.real)) | ~np.isfinite(ratio)
        return on_cut | (np.abs(ratio.real) < 1e-4 * np.abs(ratio.imag)) | (np.abs(y * z) == 0)
    if opcode == "power":  # parts overflow on the way
        return (np.abs(x) == 0) | (np.abs(values[1].astype(np.complex128)) > 100)
    return np.zeros(x.shape, np.bool_)


def ulps(opcode: str, type_: PrimitiveType) -> float:
    """How far XLA's own approximations may be from the rounded true value."""
    if type_.is_complex:
        return {"power": 3e4, "atan2": 3e4, "divide": 8.0, "multiply": 4.0}.get(opcode, 256.0)
    if type_.name == "f8e3m4" and opcode == "sqrt":
        return 1.0  # XLA rounds twice, by way of f16
    if opcode not in APPROXIMATE or not type_.is_float:
        return 0.0
    return 2.0 if type_.bits < 32 else 6.0


def known(opcode: str, name: str, result: str) -> Known:
    """The places of one instruction where nothing is compared."""
    type_ = type_of(name)

    def places(inputs: list[np.ndarray], got: np.ndarray) -> np.ndarray:
        found = known_difference(opcode, type_, inputs) if opcode != "convert" else None
        if found is None:
            found = np.zeros(got.shape, np.bool_)
            if name == "f8e8m0fnu":
                found = inputs[0].astype(np.float32) < 2.0**-126
            if name == "f4e2m1fn" and type_of(result).is_integer:
                found = np.abs(inputs[0].astype(np.float32)) >= 6  # taken for infinity
            if result == "f4e2m1fn" and not type_.is_integer:
                found = np.isnan(inputs[0].astype(np.complex128).real)
        if result == "f8e8m0fnu":
            found = found | (got.astype(np.float32) < 2.0**-126)
        return found.reshape(-1)

    return places


def case(opcode: str, name: str, result: str, extra: str, inputs: list[np.ndarray]) -> Case:
    """One instruction on one array an operand."""
    shape = f"[{','.join(map(str, inputs[-1].shape))}]"
    names = ", ".join(f"@p{i}" for i in range(len(inputs)))
    return Case(
        f"{result}{shape} {opcode}({names}){extra}",
        inputs,
        0.0 if opcode == "convert" else ulps(opcode, type_of(name)),
        # XLA rounds every step of a logistic in f16 to f16.
        floor=2.0**-16 if opcode == "logistic" else 0.0,
        known=known(opcode, name, result),
    )


def precision(c: Choices, opcode: str) -> str:
    if opcode != "reduce-precision":
        return ""
    return f", exponent_bits={c.integer(1, 11)}, mantissa_bits={c.integer(0, 52)}"


@executes(*OPCODES)
def elementwise(c: Choices, opcode: str) -> Case:
    """An opcode on a type it takes, in any shape."""
    name = c.pick([t for t in TYPES if lines(opcode, t)])
    result, extra = c.pick(lines(opcode, name))
    shape = c.shape(c.integer(0, 3), 0, 4)
    inputs = [c.values(t, shape, denormals=False) for t in operand_types(opcode, name)]
    if opcode in ("clamp", "select") and c.rarely(3):  # scalars are broadcast
        for at in (0, 2) if opcode == "clamp" else (0,):
            inputs[at] = inputs[at].reshape(-1)[0] if inputs[at].size else inputs[at]
        inputs = [np.asarray(i) for i in inputs]
        made = case(opcode, name, result, extra + precision(c, opcode), inputs)
        return Case(f"{result}[{','.join(map(str, shape))}] {made.line.split(' ', 1)[1]}", inputs)
    return case(opcode, name, result, extra + precision(c, opcode), inputs)


def every_form(c: Choices, name: str) -> list[Case]:
    """Most forms of most opcodes that take a type, on the same values."""
    forms = [(o, *line) for o in OPCODES for line in lines(o, name)]
    chosen = c.some(forms, 85)
    most = 40
    one, two = c.pool(type_of(name), c.integer(1, most)), c.pool(type_of(name), c.integer(1, most))
    pairs = [np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(one, two)]
    size = one.size + two.size
    triple = [c.arranged(np.concatenate([one, two]), [size]) for _ in range(3)]
    flags = c.arranged(np.array([False, True]), [size])
    given = {1: [np.concatenate([one, two])], 2: pairs, 3: triple}
    cases: list[Case] = []
    for opcode, result, extra in chosen:
        arity = len(operand_types(opcode, name))
        inputs = [flags, *triple[1:]] if opcode == "select" else given[arity]
        cases.append(case(opcode, name, result, extra + precision(c, opcode), inputs))
    return cases
