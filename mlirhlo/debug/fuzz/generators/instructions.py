"""Instructions with inputs, ready to run: one generator for every opcode that XLA:CPU executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.table import OPCODES, Calls, Opcode

COMMON = ("f32", "s32", "bf16", "u8", "pred", "f64", "c64", "s64", "f16")

Known = Callable[[list[np.ndarray], np.ndarray], np.ndarray]
"""From inputs and our result to the flat places where XLA:CPU is wrong or on its own."""


@dataclass(slots=True)
class Case:
    """One instruction `shape opcode(@p0, @p1), …` with its inputs.

    Before the opcode's line may come others, whose results it uses; `@` begins every name. Results may
    be off by `ulps` units of the last place, by `floor`, or
    by a part of the largest.
    """

    line: str
    inputs: list[np.ndarray]
    ulps: float = 0.0
    floor: float = 0.0
    scaled: float = 0.0
    """How far an element may be off, of the largest in the result."""
    computations: str = ""
    before: tuple[str, ...] = ()
    """`@name = …` lines."""
    known: Known | None = None

    @property
    def shape(self) -> str:
        """Text of the result's shape."""
        return shape_of(self.line)

    @property
    def key(self) -> str:
        """The instruction without sizes: what XLA:CPU takes or not, mostly."""
        types = " ".join(name_of(array) for array in self.inputs)
        return f"{self.line.split('[', 1)[0]} {self.line[len(self.shape) :].split('(')[0]} {types}"


def shape_of(line: str) -> str:
    """The shape that a line `shape opcode(…)` begins with."""
    if not line.startswith("("):
        return line.split(" ", 1)[0]
    depth = 0
    for at, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return line[: at + 1]
    raise AssertionError(line)


GENERATORS: dict[str, Callable[[Choices, str], Case]] = {}
"""By opcode."""


def _why_not_executed(row: Opcode) -> str:
    if row.calls is Calls.ASYNCHRONOUS:
        return "wrappers; XLA:CPU makes its own"
    if row.transfers:
        return "wait for a host that jaxlib does not offer"
    if row.collective and row.is_asynchronous:
        return (
            "made by XLA's own passes; StableHLO, by which programs come in, has no word for them"
        )
    if row.is_asynchronous or row.name in ("collective-broadcast", "ragged-all-to-all"):
        return "XLA:CPU has no thunk for them"
    if row.varies:
        return "XLA:CPU's numbers are its own"
    if row.name in ("ragged-dot", "scaled-dot") or row.name == "stochastic-convert":
        return "XLA:CPU cannot compile them"
    if row.newer:
        return "newer than this jaxlib"
    return "XLA refuses it before layouts are assigned" if row.name == "bitcast" else ""


NOT_EXECUTED: dict[str, str] = {
    name: reason for name, row in OPCODES.items() if (reason := _why_not_executed(row))
}
"""Opcodes without a meaning in XLA:CPU as jaxlib offers it, and why."""


def executes(
    *opcodes: str,
) -> Callable[[Callable[[Choices, str], Case]], Callable[[Choices, str], Case]]:
    """Registers the generator of opcodes."""

    def register(function: Callable[[Choices, str], Case]) -> Callable[[Choices, str], Case]:
        GENERATORS.update(dict.fromkeys(opcodes, function))
        return function

    return register


def dims(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def sizes(name: str, shape: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, shape))}]"


def name_of(array: np.ndarray) -> str:
    return next(r.name for r in PRIMITIVE_TYPES.values() if r.is_array and r.dtype == array.dtype)


def arguments(count: int) -> str:
    return ", ".join(f"@p{i}" for i in range(count))


# ---------------------------------------------------------------- computations

REDUCERS = tuple(
    sorted((n for n, row in OPCODES.items() if row.identity), key=lambda n: OPCODES[n].bitwise)
)


def computation(name: str, parameters: Sequence[str], *lines: str) -> str:
    """`@name`, of parameters `@a`, `@b`, …; the last line is the root's, `shape opcode(…)`."""
    given = [f"  @{chr(97 + i)} = {p} parameter({i})" for i, p in enumerate(parameters)]
    named = [f"  {line}" for line in lines[:-1]]
    return "\n".join([f"@{name} {{", *given, *named, f"  ROOT @r = {lines[-1]}", "}", ""])


def reducer(name: str, opcode: str) -> str:
    return computation("f", [f"{name}[]"] * 2, f"{name}[] {opcode}(@a, @b)")


def pick_reducer(c: Choices) -> tuple[str, str]:
    """Element type and opcode that go together."""
    name = c.pick(COMMON)
    type_ = type_of(name)
    options: Sequence[str] = REDUCERS if type_.is_integer or name == "pred" else REDUCERS[:4]
    options = ("add", "multiply") if type_.is_complex else options
    return name, c.pick(options)


def initial(name: str, opcode: str) -> np.ndarray:
    """An initial value; XLA wants one that leaves others as they are."""
    type_ = type_of(name)
    if opcode in ("add", "or", "xor"):
        value: Any = 0
    elif opcode == "multiply":
        value = 1
    elif opcode == "and":
        value = True if name == "pred" else ((1 << type_.bits) - 1 if type_.is_unsigned else -1)
    elif name == "pred":
        value = opcode == "minimum"
    elif type_.is_integer:
        info = np.iinfo(type_.dtype)
        value = info.min if opcode == "maximum" else info.max
    else:
        value = -np.inf if opcode == "maximum" else np.inf
    return np.array(value).astype(type_.dtype)
