"""Video instructions: arithmetic on parts of registers, alone or on two or four at once. Source: PTX ISA, "Video"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Component, Immediate, Negated, Operand
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.compare import COMPARISONS
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.types import is_signed

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

Pair = Callable[[Array, Array], Array]


OPERATIONS: dict[str, Pair] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
LIMITS = {"u32": (0, 2**32 - 1), "s32": (-(2**31), 2**31 - 1)}


def _operand(
    assembler: Assembler, operand: Operand, type_name: str
) -> Callable[[Cohort, Lanes], Array]:
    """A source as 64-bit integers: a register, or one byte or half of it, by its type's sign."""
    part, number, register = "", 0, operand
    if isinstance(operand, Component):
        part, number, register = operand.part[0], int(operand.part[1:]), operand.register
    width = {"b": 8, "h": 16}.get(part, 32)
    element = f"{type_name[0]}{width}"
    slot = (
        assembler.constant(operand.value, element)
        if isinstance(operand, Immediate)
        else assembler.part(register, element, number)
    )
    return lambda cohort, lanes: cohort.slots[slot][lanes].astype(np.int64)


def _shift(opcode: str, *, wraps: bool) -> Pair:
    def shift(a: Array, b: Array) -> Array:
        amount = b & 31 if wraps else np.minimum(b & 0xFFFFFFFF, 32)
        result: Array = a << amount if opcode == "vshl" else a >> amount
        return result

    return shift


def _operation(assembler: Assembler, opcode: str) -> Pair:
    if opcode in ("vshl", "vshr"):
        return _shift(opcode, wraps=assembler.has("wrap"))
    if opcode == "vset":
        compare = COMPARISONS[next(one for one in assembler.modifiers if one in COMPARISONS)]

        def as_number(a: Array, b: Array) -> Array:
            return compare(a, b).astype(np.int64)

        return as_number
    return OPERATIONS[opcode]


@meaning("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
def scalar(assembler: Assembler) -> Run:
    """One operation on parts of a and b; the result replaces a part of c, or is combined with it."""
    types = assembler.types
    to, type_a, type_b = types if len(types) == 3 else ("u32", *types)[:3]
    operation = _operation(assembler, assembler.op.opcode)
    a = _operand(assembler, assembler.operands[1], type_a)
    b = _operand(assembler, assembler.operands[2], type_b)
    target = assembler.operands[0]
    part = target.part if isinstance(target, Component) else ""
    register = target.register if isinstance(target, Component) else target
    d = assembler.value(register, "u32")
    c = assembler.source(3, to) if assembler.count > 3 else None
    secondary = assembler.modifiers[-1] if assembler.modifiers[-1] in ("add", "min", "max") else ""
    saturates = assembler.has("sat")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        result = operation(a(cohort, lanes), b(cohort, lanes))
        width = {"b": 8, "h": 16}.get(part[:1], 32)
        if saturates:
            low, high = LIMITS[to]
            if width < 32:
                low, high = (
                    (0, (1 << width) - 1)
                    if to == "u32"
                    else (-(1 << width - 1), (1 << width - 1) - 1)
                )
            result = np.clip(result, low, high)
        if c is not None:
            other = cohort.slots[c][lanes].astype(np.int64)
            if part:
                shift = int(part[1:]) * width
                mask = (1 << width) - 1 << shift
                result = other & 0xFFFFFFFF & ~mask | result << shift & mask
            elif secondary:
                functions: dict[str, Pair] = {"add": np.add, "min": np.minimum, "max": np.maximum}
                result = functions[secondary](_as(result, to), other)
        cohort.slots[d][lanes] = (result & 0xFFFFFFFF).astype(np.uint32)

    return run


def _as(values: Array, type_name: str) -> Array:
    """Integers as 32 bits of a type."""
    low = values & 0xFFFFFFFF
    return np.where(low >> 31 != 0, low - (1 << 32), low) if is_signed(type_name) else low


@meaning("vmad")
def multiply_add(assembler: Assembler) -> Run:
    """`(a * b + c) >> shift`, with one more for `.po`."""
    to, type_a, type_b = assembler.types
    sources = [
        _operand(assembler, operand.operand if isinstance(operand, Negated) else operand, type_name)
        for operand, type_name in zip(assembler.operands[1:4], (type_a, type_b, to), strict=True)
    ]
    signs = [-1 if isinstance(operand, Negated) else 1 for operand in assembler.operands[1:4]]
    d = assembler.dest(0, "u32")
    amount = 7 if assembler.has("shr7") else 15 if assembler.has("shr15") else 0
    saturates, plus_one = assembler.has("sat"), assembler.has("po")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        a, b, c = (
            source(cohort, lanes) * sign for source, sign in zip(sources, signs, strict=True)
        )
        result = a * b + c + plus_one >> amount
        result = np.clip(result, *LIMITS[to]) if saturates else result
        cohort.slots[d][lanes] = (result & 0xFFFFFFFF).astype(np.uint32)

    return run


@meaning(
    *(
        f"{name}{count}"
        for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vavrg")
        for count in (2, 4)
    )
)
def packed(assembler: Assembler) -> Run:
    """The same operation on two halves or four bytes; the selectors of sources name parts of both operands."""
    opcode = assembler.op.opcode
    count = int(opcode[-1])
    width = 32 // count
    types = assembler.types
    to, type_a, type_b = types if len(types) == 3 else ("u32", *types)[:3]
    operation = _operation(assembler, opcode[:-1])
    if any(isinstance(one, Component) for one in assembler.operands):
        raise assembler.no_meaning()
    slots = [assembler.source(i, "u32") for i in range(4)]
    sums, saturates = assembler.has("add"), assembler.has("sat")
    low, high = (
        (-(1 << width - 1), (1 << width - 1) - 1) if is_signed(to) else (0, (1 << width) - 1)
    )

    def run(cohort: Cohort, lanes: Lanes) -> None:
        d, a, b, c = slots
        total = cohort.slots[c][lanes].astype(np.int64) if sums else np.zeros(1, np.int64)
        for number in range(count):
            parts = list[Array]()
            for slot, type_name in ((a, type_a), (b, type_b)):
                value = (
                    cohort.slots[slot][lanes].astype(np.int64) >> number * width & (1 << width) - 1
                )
                top = value >> width - 1 != 0
                parts.append(
                    np.where(top, value - (1 << width), value) if is_signed(type_name) else value
                )
            result = operation(parts[0], parts[1])
            if sums:
                total = total + result
                continue
            result = np.clip(result, low, high) if saturates else result
            total = total | (result & (1 << width) - 1) << number * width
        cohort.slots[d][lanes] = (total & 0xFFFFFFFF).astype(np.uint32)

    return run
