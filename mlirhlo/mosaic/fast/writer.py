"""StableHLO as text, one operation a line, with what is known of its values."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType, i32

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.interpreter.problems import place_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation


OVERWRITTEN = 'mhlo.frontend_attributes = {mlirhlo.overwritten = "true"}'
"""Attribute of memory without contents in which nothing is read that was not written there."""
_NAME = re.compile(r"%v\d+\b")


@dataclass(frozen=True, slots=True)
class Val:
    """A value of the program."""

    name: str
    shape: tuple[int, ...]
    element: str
    """Element type as MLIR spells it."""
    known: int | None = None
    """The number, of integer scalars that are constants."""

    @property
    def type(self) -> str:
        """`tensor<8x128xf32>`."""
        return tensor(self.shape, self.element)


def tensor(shape: Sequence[int], element: str) -> str:
    """`tensor<8x128xf32>`."""
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def type_of(type_: Attribute) -> tuple[tuple[int, ...], str]:
    """Shape and elements of a scalar, vector or memref type; an index is an i32."""
    if isinstance(type_, VectorType | MemRefType):
        shaped: Any = type_
        return tuple(shaped.get_shape()), type_of(shaped.element_type)[1]
    return (), str(i32 if isinstance(type_, IndexType) else type_)


def has_no_program(op: Operation, why: str = "") -> HloError:
    """HLO0738: an operation that only the simulator has."""
    return error(
        "HLO0738",
        f"{op.name} has no form for the CPU compiler{': ' + why if why else ''}",
        place_of(op),
        help='run the kernel with platform="interpreter"',
    )


class PartOfArray(Protocol):
    """A part of an array that nothing stores to, in the forms in which it is multiplied."""

    @property
    def reads(self) -> int:
        """Times that all of the array is read, block by block."""
        ...

    def rounded(self) -> Val | None:
        """In bf16; None where that does not pay off."""
        ...

    def in_pairs(self, depth: int) -> Val | None:
        """A matrix whose elements are paired along dimension `depth`; None where that does not pay off."""
        ...


class Writer:
    """Lines, and names for what they define."""

    def __init__(
        self, *, rounds_matmul_operands: bool = False, multiplies_pairs: bool = False
    ) -> None:
        self.lines: list[str] = []
        self.multiplies_pairs = multiplies_pairs
        """Whether right factors of products in bf16 are laid out in pairs, where that pays off."""
        self.rounds_matmul_operands = rounds_matmul_operands
        """Whether products of f32 multiply as a TPU does that is not asked for more: in bf16."""
        self.boxes: dict[str, PartOfArray] = {}
        """By name of what is read of arrays that nothing stores to."""
        self.numbers: dict[tuple[str, int], Val] = {}
        """By name of a product with a number, what was multiplied by it."""
        self._next = 0

    def name(self) -> str:
        """A new name."""
        self._next += 1
        return f"%v{self._next}"

    @contextmanager
    def apart(self) -> Generator[list[str]]:
        """Within, lines go to a list of their own."""
        before, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = before

    def renamed(self, lines: list[str], names: dict[str, str]) -> list[str]:
        """Lines in which some values go by other names."""
        return [_NAME.sub(lambda at: names.get(at[0], at[0]), line) for line in lines]

    def emit(self, text: str, shape: Sequence[int], element: str) -> Val:
        """A line that defines one value; `text` is what stands behind `=`."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return Val(name, tuple(shape), element)

    def op(
        self, name: str, values: Sequence[Val], shape: Sequence[int], element: str, more: str = ""
    ) -> Val:
        """An operation in the form `op %a, %b, more : (types) -> type`."""
        operands = ", ".join(value.name for value in values)
        types = ", ".join(value.type for value in values)
        tail = f", {more}" if more else ""
        return self.emit(
            f"stablehlo.{name} {operands}{tail} : ({types}) -> {tensor(shape, element)}",
            shape,
            element,
        )

    def like(self, name: str, *values: Val) -> Val:
        """An elementwise operation whose result is as its operands."""
        operands = ", ".join(value.name for value in values)
        first = values[0]
        return self.emit(f"stablehlo.{name} {operands} : {first.type}", first.shape, first.element)

    def constant(self, number: Any, element: str, shape: Sequence[int] = ()) -> Val:
        """A number as a scalar or as all elements."""
        text = number if isinstance(number, str) else _spelled(number, element)
        text = "" if 0 in shape else text
        type_ = tensor(shape, element)
        made = self.emit(f"stablehlo.constant dense<{text}> : {type_}", shape, element)
        known = number if isinstance(number, int) and not shape and element == "i32" else None
        return Val(made.name, made.shape, made.element, known)

    def room(self, shape: Sequence[int], element: str) -> Val:
        """An array all of whose elements will be written before they are read."""
        text = f"stablehlo.custom_call @AllocateBuffer() {{{OVERWRITTEN}}} : () -> "
        return self.emit(text + tensor(shape, element), shape, element)

    def reshape(self, value: Val, shape: Sequence[int]) -> Val:
        """Row-major, in another shape."""
        if value.shape == tuple(shape):
            return value
        made = self.op("reshape", [value], shape, value.element)
        if value.name in self.boxes:
            self.boxes[made.name] = self.boxes[value.name]
        return made

    def convert(self, value: Val, element: str) -> Val:
        """As elements of another type."""
        if value.element == element:
            return value
        return self.op("convert", [value], value.shape, element)

    def rounded(self, value: Val) -> Val:
        """f32 as bf16."""
        if value.element != "f32":
            return value
        box = self.boxes.get(value.name)
        found = None if box is None else box.rounded()
        if box is None or found is None:
            return self.convert(value, "bf16")
        made = self.reshape(found, value.shape)
        self.boxes[made.name] = box
        return made

    def bits(self, value: Val, shape: Sequence[int], element: str) -> Val:
        """The same bits as other elements."""
        return self.op("bitcast_convert", [value], shape, element)

    def broadcast(self, value: Val, shape: Sequence[int]) -> Val:
        """Repeated, its dimensions being the last ones."""
        if value.shape == tuple(shape):
            return value
        lead = len(shape) - len(value.shape)
        dims = list(range(lead, len(shape)))
        return self.op("broadcast_in_dim", [value], shape, value.element, f"dims = {dims}")

    def compare(self, direction: str, a: Val, b: Val) -> Val:
        """`EQ`, `LT`, …"""
        text = f"stablehlo.compare {direction}, {a.name}, {b.name} : ({a.type}, {b.type})"
        return self.emit(f"{text} -> {tensor(a.shape, 'i1')}", a.shape, "i1")

    def select(self, condition: Val, on: Val, off: Val) -> Val:
        """`on` where the condition holds."""
        text = f"stablehlo.select {condition.name}, {on.name}, {off.name} : {condition.type}, {on.type}"
        return self.emit(text, on.shape, on.element)

    def slice(
        self, value: Val, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
    ) -> Val:
        """A box at known places."""
        _check_inside(
            value, [a + (n - 1) * s + 1 for a, n, s in zip(starts, sizes, strides, strict=True)]
        )
        bounds = ", ".join(
            f"{a}:{a + (n - 1) * s + 1}:{s}" for a, n, s in zip(starts, sizes, strides, strict=True)
        )
        text = f"stablehlo.slice {value.name} [{bounds}] : ({value.type})"
        return self.emit(f"{text} -> {tensor(sizes, value.element)}", sizes, value.element)

    def read(self, value: Val, starts: Sequence[Val], sizes: Sequence[int]) -> Val:
        """A box at places known when the program runs."""
        if tuple(sizes) == value.shape:
            return value
        _check_inside(value, sizes)
        if all(start.known is not None for start in starts):
            return self.slice(
                value, [start.known or 0 for start in starts], sizes, [1] * len(sizes)
            )
        return self.op(
            "dynamic_slice", [value, *starts], sizes, value.element, f"sizes = {list(sizes)}"
        )

    def write(self, value: Val, update: Val, starts: Sequence[Val]) -> Val:
        """The value with a box replaced."""
        if update.shape == value.shape:
            return update
        _check_inside(value, update.shape)
        return self.op("dynamic_update_slice", [value, update, *starts], value.shape, value.element)

    def reduce(self, name: str, value: Val, start: Val, dims: Sequence[int]) -> Val:
        """Dimensions folded by an operation of two scalars."""
        shape = [n for dim, n in enumerate(value.shape) if dim not in dims]
        text = (
            f"stablehlo.reduce({value.name} init: {start.name}) applies stablehlo.{name} across "
            f"dimensions = {list(dims)} : ({value.type}, {start.type})"
        )
        return self.emit(f"{text} -> {tensor(shape, value.element)}", shape, value.element)


def _check_inside(value: Val, ends: Sequence[int]) -> None:
    """Raises `HloError` HLO0738 for a box with more elements than an array has: the simulator knows what they are."""
    if any(end > size for end, size in zip(ends, value.shape, strict=True)):
        raise error(
            "HLO0738",
            f"a part of shape {list(ends)} of an array of shape {list(value.shape)} has no form for the CPU "
            "compiler",
            help="make blocks no larger than their arrays, or leave out those with no elements",
        )


def _spelled(number: Any, element: str) -> str:
    if element == "i1":
        return "true" if number else "false"
    if element.startswith(("i", "ui")):
        return str(int(number))
    import numpy as np

    if element == "f32":
        return f"0x{np.float32(number).view(np.uint32):08X}"
    if np.isfinite(float(number)):
        return f"{float(number):e}"
    import ml_dtypes

    narrow = np.array(number, np.float32).astype(ml_dtypes.bfloat16)
    return f"0x{narrow.view(np.uint16):04X}"
