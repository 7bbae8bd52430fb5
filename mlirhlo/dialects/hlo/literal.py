"""Literals: the values of constants, as immutable data with a shape.

A literal keeps its elements as raw little-endian bytes in logical (row-major) order, so numpy is
imported only by those who ask for an array. Source of the syntax: HLO text, "Literals and numbers".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.literal_printing import format_elements, format_nested
from mlirhlo.dialects.hlo.literal_reading import AtScalar, read_array
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, TupleShape, read_shape
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects.hlo import literal_reading


if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHORT_ELEMENTS = 10
"""Most elements XLA prints of a constant when large constants are off."""

_ESSENTIAL_ELEMENTS = 500_000
"""Most integers that printing of essential constants writes."""

_MAX_EMPTY_ROWS = 1 << 16
"""Most rows that printing of an array without elements writes; nothing is lost by `{...}`."""

_INTERNED_CHARACTERS = 48
"""Longest text whose literal is shared: most constants of a dump are a few scalars."""

_ELIDED = "{...}"


class Literal:
    """The value of a constant: an array, a tuple of literals, or elided (`{...}`: value unknown).

    Immutable; equal when shapes (layouts included) and all bits are equal.
    """

    __slots__ = ("_data", "_first", "_hash", "_short", "_splat", "elements", "shape")

    shape: Shape
    """Shape of the value; never dynamic."""
    elements: tuple[Literal, ...]
    """Parts of a tuple; `()` for arrays."""

    def __init__(
        self, shape: Shape, data: bytes | None, elements: tuple[Literal, ...] = ()
    ) -> None:
        """`data`: little-endian elements in row-major order, sub-byte types one per byte in the low
        bits; None for a tuple, and for an array that is elided.
        """
        self.shape, self._data, self.elements = shape, data, elements
        self._hash: int | None = None
        self._short: str | None = None
        self._first: Any = None
        self._splat: bytes | None = None

    # -------------------------------------------------------------- making

    @staticmethod
    def from_text(shape: Shape, text: str, begin: int = 0, end: int | None = None) -> Literal:
        """The literal that `text[begin:end]` spells (`{ { 1, 2 }, { 3, 4 } }`). Raises `SyntaxProblem`.

        A long one is not copied.
        """
        end = len(text) if end is None else end
        if end - begin <= _INTERNED_CHARACTERS:
            return _interned(shape, text[begin:end])
        return _parse(shape, Cursor(text, begin, end))

    @staticmethod
    def from_array(shape: Shape, values: NDArray[Any]) -> Literal:
        """A literal of the elements of `values`, which must have `shape`'s sizes; types are cast
        only between equal widths of the same kind (a bool array for pred, int8 for s4 values).
        """
        import numpy as np

        if not isinstance(shape, ArrayShape):
            raise TypeError(f"{shape} is not the shape of an array")
        if tuple(values.shape) != shape.dimensions:
            raise ValueError(f"an array of sizes {tuple(values.shape)} does not fill {shape}")
        data = np.ascontiguousarray(values.astype(shape.element_type.dtype, copy=False))
        return Literal(_static(shape), data.tobytes())

    @staticmethod
    def tuple_of(elements: Sequence[Literal]) -> Literal:
        """A tuple literal."""
        return Literal(TupleShape(tuple(e.shape for e in elements)), None, tuple(elements))

    @staticmethod
    def elided(shape: Shape) -> Literal:
        """A literal whose value was left out of the text."""
        return Literal(_static(shape), None)

    # -------------------------------------------------------------- asking

    @property
    def is_elided(self) -> bool:
        """Whether any value is unknown because the text said `{...}`."""
        if self._data is not None:
            return False
        if isinstance(self.shape, TupleShape) and len(self.elements) == len(self.shape.elements):
            return any(element.is_elided for element in self.elements)
        return True

    @property
    def data(self) -> bytes:
        """Raw elements of an array, as given to the constructor. Raises `ValueError` if elided."""
        if self._data is None:
            raise ValueError("a literal that is elided, or a tuple, has no data")
        return self._data

    @property
    def element_type(self) -> PrimitiveType:
        """Element type of an array."""
        shape = self.shape
        assert isinstance(shape, ArrayShape)
        return shape.element_type

    @property
    def array(self) -> NDArray[Any]:
        """The elements as a read-only array of the shape's sizes, in logical order."""
        import numpy as np

        shape = self.shape
        assert isinstance(shape, ArrayShape)
        return np.frombuffer(self.data, dtype=shape.element_type.dtype).reshape(shape.dimensions)

    def item(self) -> Any:
        """The value of a scalar: bool, int, float or complex."""
        if self._first is None:
            self._first = self._convert_first()
        return self._first

    @property
    def splat(self) -> bytes | None:
        """Raw element of an array all whose elements have the same bits; None otherwise.

        Raises `ValueError` if elided.
        """
        if self._splat is None:
            data, size = self.data, self.element_type.byte_size
            first = data[:size]
            same = len(data) == size or first * (len(data) // size) == data
            self._splat = first if same else b""
        return self._splat or None

    def _convert_first(self) -> Any:
        value: Any = self.array.reshape(-1)[0]
        match self.element_type.kind:
            case Kind.PRED:
                return bool(value)
            case Kind.SIGNED | Kind.UNSIGNED:
                return int(value)
            case Kind.COMPLEX:
                return complex(value)
            case _:
                return float(value)

    def is_all(self, value: int) -> bool:
        """Whether every element equals 0 or 1 (`value`) bit for bit; true for no elements."""
        if self._data is None or not isinstance(self.shape, ArrayShape):
            return False
        one = _word_of(self.shape.element_type, value)
        return self._data == one * self.shape.element_count

    def with_shape(self, shape: Shape) -> Literal:
        """The same elements under another shape of as many of the same type."""
        return Literal(shape, self._data, self.elements)

    # -------------------------------------------------------------- text

    def to_text(self, large: bool = True) -> str:
        """XLA's text, no shape. Unless `large`, tuples and more than 10 elements are `{...}`."""
        shape = self.shape
        if not large and (isinstance(shape, TupleShape) or _count(shape) > _SHORT_ELEMENTS):
            return _ELIDED
        if self._short is not None:
            return self._short
        text = self._format()
        if len(text) <= 256:
            self._short = text
        return text

    def _format(self) -> str:
        shape = self.shape
        if isinstance(shape, TupleShape):
            if len(self.elements) != len(shape.elements):
                return _ELIDED
            return "( " + ", ".join(e.to_text() for e in self.elements) + " )"
        if self._data is None:
            return _ELIDED
        assert isinstance(shape, ArrayShape)
        if not self._data and math.prod(takewhile(bool, shape.dimensions)) > _MAX_EMPTY_ROWS:
            return _ELIDED
        texts = format_elements(shape.element_type, self._data, scalar=shape.is_scalar)
        return format_nested(shape.dimensions, texts)

    def to_essential_text(self) -> str:
        """Text of a fingerprint: all zeros `0`, all ones `1`, integers in full, else `{...}`."""
        for value in (0, 1):
            if self.is_all(value):
                return str(value)
        if _is_integer(self.shape) and _count(self.shape) <= _ESSENTIAL_ELEMENTS:
            return self.to_text()
        return _ELIDED

    def to_text_with_shape(self) -> str:
        """`f32[2]{0} {1, 2}`, tuples `( f32[] 1, s32[] 2 )`: as in custom-call's `literal=`."""
        if isinstance(self.shape, TupleShape) and len(self.elements) == len(self.shape.elements):
            return "( " + ", ".join(e.to_text_with_shape() for e in self.elements) + " )"
        return f"{self.shape} {self.to_text()}"

    __str__ = to_text_with_shape

    def __repr__(self) -> str:
        return f"Literal({self.shape} {self.to_text(large=False)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self is other or (
            self.shape == other.shape
            and self._data == other._data
            and self.elements == other.elements
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.shape, self._data, self.elements))
        return self._hash


def _count(shape: Shape) -> int:
    return math.prod(shape.dimensions) if isinstance(shape, ArrayShape) else 1


def _is_integer(shape: Shape) -> bool:
    if isinstance(shape, TupleShape):
        return all(map(_is_integer, shape.elements))
    return isinstance(shape, ArrayShape) and shape.element_type.is_integer


def _word_of(type_: PrimitiveType, value: int) -> bytes:
    if type_.is_float or type_.is_complex:
        real = literal_reading.encode_floats(type_.real, [float(value)])
        return real + bytes(len(real)) if type_.is_complex else real
    return value.to_bytes(type_.byte_size, "little")


def _static(shape: Shape) -> Shape:
    """A constant's shape keeps its layout but loses its dynamic marks."""
    if isinstance(shape, ArrayShape):
        return (
            ArrayShape(shape.element_type, shape.dimensions, (), shape.layout)
            if shape.dynamic
            else shape
        )
    if isinstance(shape, TupleShape):
        parts = tuple(map(_static, shape.elements))
        return (
            shape
            if all(a is b for a, b in zip(parts, shape.elements, strict=True))
            else TupleShape(parts)
        )
    return shape


# ---------------------------------------------------------------- reading


@lru_cache(maxsize=1 << 14)
def _interned(shape: Shape, text: str) -> Literal:
    return _parse(shape, Cursor(text))


def _parse(shape: Shape, cursor: Cursor) -> Literal:
    literal = read_literal(cursor, shape)
    if not cursor.at_end():
        raise SyntaxProblem(cursor.position, "expects ')' after constant literal")
    return literal


def read_literal(cursor: Cursor, shape: Shape, at_scalar: AtScalar | None = None) -> Literal:
    """Reads a literal of a given shape; `at_scalar` as in `read_array`. Raises `SyntaxProblem`."""
    if isinstance(shape, TupleShape):
        return _read_tuple(cursor, shape, at_scalar)
    if not isinstance(shape, ArrayShape):
        inner = "buffer" if isinstance(shape, BufferShape) else str(shape).removesuffix("[]")
        raise cursor.problem(f"a constant cannot be a {inner}")
    if any(size < 0 for size in shape.dimensions):
        raise cursor.problem(f"a constant cannot have the unbounded shape {shape}")
    shape_ = _static(shape)
    assert isinstance(shape_, ArrayShape)
    return Literal(shape_, read_array(cursor, shape_, at_scalar))


def _read_tuple(cursor: Cursor, shape: TupleShape, at_scalar: AtScalar | None) -> Literal:
    if cursor.accept(_ELIDED):
        return Literal.elided(shape)
    if not cursor.accept("("):
        raise SyntaxProblem(cursor.skip(), "expects '(' in front of tuple elements")
    elements: list[Literal] = []
    for position, element in enumerate(shape.elements):
        if position and not cursor.accept(",") and cursor.peek(")"):
            raise SyntaxProblem(
                cursor.skip(),
                f"expects the {position}th element of {len(shape.elements)}, found ')'",
            )
        elements.append(read_literal(cursor, element, at_scalar))
    if not cursor.accept(")"):
        raise SyntaxProblem(
            cursor.skip(),
            f"expects ')' at the end of the tuple with {len(shape.elements)} elements",
        )
    return Literal(_static(shape), None, tuple(elements))


def read_literal_with_shape(cursor: Cursor) -> Literal:
    """Reads `s32[2]{0} {1, 2}`, `( s32[] 1, f32[] 2 )` or `(s32[], f32[]) {...}`.

    Raises `SyntaxProblem`.
    """
    if not cursor.peek("("):
        return read_literal(cursor, read_shape(cursor))
    start = cursor.position
    try:
        shape = read_shape(cursor)
        if cursor.peek(_ELIDED):
            return read_literal(cursor, shape)
    except SyntaxProblem:
        pass  # not a shape: a tuple whose elements carry theirs
    cursor.position = start
    return Literal.tuple_of(cursor.items("(", ")", lambda: read_literal_with_shape(cursor)))


@irdl_attr_definition
class LiteralAttr(TextAttr[Literal]):
    """A `Literal`, with its shape in front: `#hlo.literal<"f32[2]{0} {1, 2}">`."""

    name = "hlo.literal"
    read = read_literal_with_shape
