"""What every shape rule shares: the registry, the numbered constraints, and what a rule is given.

A rule is a function of `Given`; its decorator names the opcodes and states each constraint in a
sentence under its number. The check itself raises `given.error(number, …)`. The sentences make
`docs/constraints.md`, and a test holds that each number has a failing case.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, ints, str_of, symbols_of
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import (
    UNBOUNDED,
    ArrayShape,
    Shape,
    TupleShape,
    compatible,
)

T = TypeVar("T")


@dataclass(eq=False)  # not frozen: whoever raises it again sets its traceback
class ConstraintError(Exception):
    """An instruction breaks a numbered constraint. No place: the caller knows the instruction."""

    constraint: str
    """Opcode and number: `dot_c3`."""
    message: str
    """What is wrong, with the values; without the opcode."""
    operand: int | None = None
    """Operand at fault."""
    attribute: str | None = None
    """Key of the attribute at fault, as in HLO text."""
    help: str | None = None
    """How to mend it."""

    def __str__(self) -> str:
        return self.message


Infer = Callable[["Given"], Shape]
Check = Callable[["Given"], None]

INFERENCES: dict[str, Infer] = {}
"""Rule that infers the result's shape, by opcode."""

CHECKS: dict[str, Check] = {}
"""Checks beyond inference, by opcode; they may look at the declared shape."""

CONSTRAINTS: dict[str, str] = {}
"""Sentence of every numbered constraint, by its number (`dot_c3`)."""


def declare(subject: str, **constraints: str) -> None:
    """States constraints of an opcode, or of `instruction`, `computation`, `module`: `c1="…"`."""
    for number, sentence in constraints.items():
        key = f"{subject}_{number}"
        if key in CONSTRAINTS:
            raise ValueError(f"constraint {key} is stated twice")
        CONSTRAINTS[key] = sentence


def infers(*opcodes: str, **constraints: str) -> Callable[[Infer], Infer]:
    """Registers the rule that infers the result of `opcodes`, and its constraints."""

    def register(rule: Infer) -> Infer:
        for opcode in opcodes:
            INFERENCES[opcode] = rule
            declare(opcode, **constraints)
        return rule

    return register


def checks(*opcodes: str, **constraints: str) -> Callable[[Check], Check]:
    """Registers a check of `opcodes` that runs after inference, and its constraints."""

    def register(rule: Check) -> Check:
        for opcode in opcodes:
            CHECKS[opcode] = rule
            declare(opcode, **constraints)
        return rule

    return register


declare(
    "instruction",
    c1="the number of operands is the opcode's",
    c2="required attributes are there",
    c3="a shape is written for opcodes whose shape cannot be inferred",
    c4="the declared shape is the one the opcode gives, layouts aside",
)


@dataclass(frozen=True, slots=True)
class Given:
    """What a rule knows of an instruction. `error` makes the exceptions it raises."""

    opcode: str
    operands: tuple[Shape, ...]
    properties: Mapping[str, Attribute]
    callees: Mapping[str, ProgramLayout]
    """Signatures of the computations it calls, by name."""
    shape: Shape | None = None
    """Declared shape; None while it is being inferred for a text that leaves it out."""

    def error(
        self,
        number: int,
        message: str,
        *,
        operand: int | None = None,
        attribute: str | None = None,
        help: str | None = None,
    ) -> ConstraintError:
        """The exception for a broken constraint `<opcode>_c<number>`."""
        return ConstraintError(f"{self.opcode}_c{number}", message, operand, attribute, help)

    # -------------------------------------------------------------- operands

    def array(self, index: int, what: str, number: int = 1) -> ArrayShape:
        """Operand `index`, which must be an array (constraint `number`)."""
        if index >= len(self.operands):  # instruction_c1
            raise ConstraintError(
                "instruction_c1",
                f"expects at least {index + 1} operands, but has {len(self.operands)} operands",
            )
        shape = self.operands[index]
        if not isinstance(shape, ArrayShape) or not shape.element_type.is_array:
            raise self.error(
                number,
                f"Expected array argument for {what}, but got {plain(shape)}.",
                operand=index,
            )
        return shape

    def arrays(self, what: str, number: int = 1) -> tuple[ArrayShape, ...]:
        """All operands, which must be arrays (constraint `number`)."""
        return tuple(self.array(i, what, number) for i in range(len(self.operands)))

    @property
    def declared(self) -> Shape:
        """The declared shape, in checks."""
        assert self.shape is not None
        return self.shape

    def declared_array(self, number: int) -> ArrayShape:
        """The declared shape, which must be an array (constraint `number`)."""
        if not isinstance(self.shape, ArrayShape):
            raise self.error(number, f"the result is an array, not {plain(self.declared)}")
        return self.shape

    # -------------------------------------------------------------- attributes

    def ints(self, key: str) -> tuple[int, ...]:
        """A list of integers; `()` when absent."""
        return ints(self.properties.get(key))

    def int(self, key: str, default: int = 0) -> int:
        """An integer, or its default."""
        return int_of(self.properties.get(key), default)

    def bool(self, key: str, default: bool = False) -> bool:
        """A bool, or its default."""
        return bool_of(self.properties.get(key), default)

    def str(self, key: builtins.str, default: builtins.str = "") -> builtins.str:
        """A string, or its default."""
        return str_of(self.properties.get(key), default)

    def value(self, key: builtins.str, type_: type[T]) -> T | None:
        """Value of a structured attribute; None when absent."""
        attribute = self.properties.get(key)
        return None if attribute is None else cast(T, cast(Any, attribute).data)

    def callee(self, key: builtins.str) -> ProgramLayout:
        """Signature of the computation that `key` names."""
        return self.callees[symbols_of(self.properties.get(key))[0]]


# ---------------------------------------------------------------- words


def plain(shape: Shape) -> str:
    """The shape without layouts, as messages show it."""
    return shape.to_string(layout=False)


def listed(values: Sequence[object]) -> str:
    """`1, 2, 3`."""
    return ", ".join(map(str, values))


def plain_signature(signature: ProgramLayout) -> str:
    """`(f32[2], s32[]) -> f32[]`."""
    return f"({listed([plain(p) for p in signature.parameters])}) -> {plain(signature.result)}"


# ---------------------------------------------------------------- element types

_MAX_EXPONENT = {
    "f16": 16, "bf16": 128, "f32": 128, "f64": 1024, "f8e5m2": 16, "f8e5m2fnuz": 16,
    "f8e4m3": 8, "f8e4m3fn": 9, "f8e4m3b11fnuz": 5, "f8e4m3fnuz": 8, "f8e3m4": 4,
    "f8e8m0fnu": 128, "f4e2m1fn": 3, "f6e3m2fn": 5, "f6e2m3fn": 3,
}  # fmt: skip
_SIGNIFICAND = {
    "f16": 11, "bf16": 8, "f32": 24, "f64": 53, "f8e5m2": 3, "f8e5m2fnuz": 3,
    "f8e4m3": 4, "f8e4m3fn": 4, "f8e4m3b11fnuz": 4, "f8e4m3fnuz": 4, "f8e3m4": 5,
    "f8e8m0fnu": 1, "f4e2m1fn": 2, "f6e3m2fn": 3, "f6e2m3fn": 4,
}  # fmt: skip


def _rank_of_type(type_: PrimitiveType) -> tuple[bool, int, int, int, bool]:
    part = type_.real
    return (
        type_.is_complex,
        _MAX_EXPONENT.get(part.name, -1),
        _SIGNIFICAND.get(part.name, -1),
        part.bits,
        part.is_signed,
    )


def higher_precision(a: PrimitiveType, b: PrimitiveType) -> PrimitiveType:
    """The type XLA takes for operands of two types: complex before real, wider range first."""
    return a if a is b or _rank_of_type(a) >= _rank_of_type(b) else b


def same_type(a: PrimitiveType, b: PrimitiveType) -> bool:
    """Equal, or both real floating point (XLA lets precisions mix in inference)."""
    return a is b or (a.is_float and b.is_float)


# ---------------------------------------------------------------- sizes


def is_unbounded(shape: ArrayShape) -> bool:
    """Whether any dimension is `?`."""
    return UNBOUNDED in shape.dimensions


def fits(a: int, b: int) -> bool:
    """Whether two sizes are equal or one is `?`."""
    return a == b or UNBOUNDED in (a, b)


def same_sizes(a: ArrayShape, b: ArrayShape) -> bool:
    """Equal ranks and sizes, `?` fitting every size; dynamic marks do not matter."""
    return a.dimensions == b.dimensions or (
        a.rank == b.rank and all(map(fits, a.dimensions, b.dimensions))
    )


def same_but_precision(a: Shape, b: Shape) -> bool:
    """Compatible, floating-point types of different precision counting as one."""
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return same_type(a.element_type, b.element_type) and same_sizes(a, b)
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a.elements) == len(b.elements) and all(
            map(same_but_precision, a.elements, b.elements)
        )
    return compatible(a, b)


Dimension = tuple[int, bool]
"""Size (or bound) of a dimension, and whether it is dynamic."""


def dimension(shape: ArrayShape, dim: int) -> Dimension:
    """Size and dynamic mark of one dimension."""
    return shape.dimensions[dim], shape.is_dynamic_dimension(dim)


def most_specific(a: Dimension, b: Dimension) -> Dimension:
    """What is known of a dimension that both describe: static, else bounded, else `?`."""
    if not a[1]:
        return a
    if not b[1]:
        return b
    if UNBOUNDED in (a[0], b[0]):
        return (max(a[0], b[0]), True)
    return (min(a[0], b[0]), True)
