"""Shapes and layouts as plain values, in HLO's text syntax, and as MLIR types.

`Shape` values are what analyses, the interpreter and the codecs work with; `type_of` and
`shape_of` go to and from the MLIR type of a result. Both directions are cached on the objects,
and `parse_shape` interns by text, so a module of 100,000 instructions holds some hundred shapes.
Source of the syntax and of the printing rules: HLO text, "Shapes and layouts".
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, parse_all

UNBOUNDED = -(1 << 63)
"""Size of a `?` dimension (and of a `*` tile dimension), as in protos."""

_MAX_NESTING = 200
"""Deepest tuple nesting that is read; XLA has no useful limit, the Python stack does."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Physical order and padding of an array. Defaults are what XLA does not print."""

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    """First tile applied first; `UNBOUNDED` stands for `*`."""
    tail_padding_alignment: int = 1
    """`L`: total size is padded to a multiple of so many elements."""
    index_type: PrimitiveType | None = None
    pointer_type: PrimitiveType | None = None
    element_size_bits: int = 0
    """`E`: size of a stored element in bits; 0 = natural."""
    memory_space: int = 0
    split_configs: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """`SC`: dimension and the indices at which it is split."""
    physical_shape: Shape | None = None
    metadata_prefix_bytes: int = 0
    """`M`: bytes of dynamic-size prefix."""

    def __str__(self) -> str:
        return "{" + ",".join(map(str, self.minor_to_major)) + self._parts() + "}"

    def _parts(self) -> str:
        parts: list[str] = []
        if self.tiles:
            tile = (",".join("*" if d == UNBOUNDED else str(d) for d in t) for t in self.tiles)
            parts.append("T" + "".join(f"({t})" for t in tile))
        if self.tail_padding_alignment != 1:
            parts.append(f"L({self.tail_padding_alignment})")
        if self.index_type is not None:
            parts.append(f"#({self.index_type})")
        if self.pointer_type is not None:
            parts.append(f"*({self.pointer_type})")
        if self.element_size_bits:
            parts.append(f"E({self.element_size_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.split_configs:
            split = (f"({d}:{','.join(map(str, indices))})" for d, indices in self.split_configs)
            parts.append("SC" + "".join(split))
        if self.physical_shape is not None:
            parts.append(f"P({self.physical_shape})")
        if self.metadata_prefix_bytes > 0:
            parts.append(f"M({self.metadata_prefix_bytes})")
        return ":" + "".join(parts) if parts else ""

    @property
    def is_printed(self) -> bool:
        """Whether XLA prints it: rank at least one, or any part that is not the default."""
        return bool(self.minor_to_major) or bool(self._parts())


@functools.lru_cache(maxsize=1024)
def default_layout(rank: int) -> Layout:
    """Row-major layout `{rank-1,…,0}`."""
    return Layout(tuple(range(rank - 1, -1, -1)))


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """`f32[2,<=3]{1,0}`: element type, sizes or bounds, and a layout."""

    element_type: PrimitiveType
    dimensions: tuple[int, ...]
    """Sizes; bounds where dynamic; `UNBOUNDED` for `?`."""
    dynamic: tuple[bool, ...] = ()
    """Per dimension whether the size is only known when running; `()` = all static."""
    layout: Layout | None = None
    """None = not set (only in entry_computation_layout, or asked for); default is row-major."""
    _type: list[Attribute] = field(
        default_factory=list[Attribute], init=False, repr=False, compare=False
    )
    _text: list[str] = field(default_factory=list[str], init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        # By what mostly differs: that of a dataclass asks its layout and element type for theirs.
        return hash((self.element_type.name, self.dimensions))

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    @property
    def element_count(self) -> int:
        """Elements the array has room for (bounds count in full)."""
        return math.prod(self.dimensions)

    @property
    def byte_size(self) -> int:
        """Bytes of the unpadded array, sub-byte types counted one per byte."""
        return self.element_count * self.element_type.byte_size

    @property
    def is_scalar(self) -> bool:
        """Rank 0."""
        return not self.dimensions

    @property
    def is_dynamic(self) -> bool:
        """Whether any dimension is dynamic."""
        return True in self.dynamic

    def is_dynamic_dimension(self, dim: int) -> bool:
        """Whether dimension `dim` is dynamic."""
        return bool(self.dynamic) and self.dynamic[dim]

    def to_string(self, layout: bool = True) -> str:
        """HLO text; with `layout` as XLA's dumps print it."""
        if not self.dynamic:
            sizes = ",".join(map(str, self.dimensions))
        else:
            sizes = ",".join(
                "?" if size == UNBOUNDED else f"<={size}" if dynamic else str(size)
                for size, dynamic in zip(self.dimensions, self.dynamic, strict=True)
            )
        text = f"{self.element_type.name}[{sizes}]"
        if layout and self.layout is not None and self.layout.is_printed:
            text += str(self.layout)
        return text

    def __str__(self) -> str:
        if not self._text:
            self._text.append(self.to_string())
        return self._text[0]

    def with_layout(self, layout: Layout | None) -> ArrayShape:
        """The same array in another layout."""
        return replace(self, layout=layout)


@dataclass(frozen=True, slots=True)
class TupleShape:
    """`(f32[2]{0}, s32[])`."""

    elements: tuple[Shape, ...]
    _type: list[Attribute] = field(
        default_factory=list[Attribute], init=False, repr=False, compare=False
    )
    _text: list[str] = field(default_factory=list[str], init=False, repr=False, compare=False)
    _hash: list[int] = field(default_factory=list[int], init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        # Kept: every reader of an element looks the whole tuple up.
        if not self._hash:
            self._hash.append(hash(self.elements))
        return self._hash[0]

    def to_string(self, layout: bool = True) -> str:
        """HLO text, with `/*index=5*/` before every fifth element."""
        parts: list[str] = []
        for index, element in enumerate(self.elements):
            mark = f"/*index={index}*/" if index and index % 5 == 0 else ""
            parts.append(mark + element.to_string(layout))
        return "(" + ", ".join(parts) + ")"

    def __str__(self) -> str:
        if not self._text:
            self._text.append(self.to_string())
        return self._text[0]


@dataclass(frozen=True, slots=True)
class BufferShape:
    """`b(f32[8]{0})`: a mutable buffer of an array."""

    element: ArrayShape
    _type: list[Attribute] = field(
        default_factory=list[Attribute], init=False, repr=False, compare=False
    )

    def to_string(self, layout: bool = True) -> str:
        """HLO text."""
        return f"b({self.element.to_string(layout)})"

    def __str__(self) -> str:
        return self.to_string()


@dataclass(frozen=True, slots=True)
class TokenShape:
    """`token[]`: orders side effects."""

    _type: list[Attribute] = field(
        default_factory=list[Attribute], init=False, repr=False, compare=False
    )

    def to_string(self, layout: bool = True) -> str:
        """HLO text."""
        return "token[]"

    def __str__(self) -> str:
        return "token[]"


@dataclass(frozen=True, slots=True)
class OpaqueShape:
    """`opaque[]`: a value only custom calls look into."""

    _type: list[Attribute] = field(
        default_factory=list[Attribute], init=False, repr=False, compare=False
    )

    def to_string(self, layout: bool = True) -> str:
        """HLO text."""
        return "opaque[]"

    def __str__(self) -> str:
        return "opaque[]"


Shape: TypeAlias = ArrayShape | TupleShape | BufferShape | TokenShape | OpaqueShape

TOKEN_SHAPE = TokenShape()
OPAQUE_SHAPE = OpaqueShape()


def array(
    element_type: PrimitiveType | str,
    dimensions: Sequence[int] = (),
    dynamic: Sequence[bool] = (),
    layout: Layout | None = None,
) -> ArrayShape:
    """An array shape, row-major unless `layout` is given."""
    if isinstance(element_type, str):
        element_type = PRIMITIVE_TYPES[element_type]
    flags = tuple(dynamic) if any(dynamic) else ()
    layout = default_layout(len(dimensions)) if layout is None else layout
    return ArrayShape(element_type, tuple(dimensions), flags, layout)


def leaves(shape: Shape, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Shape]]:
    """Every non-tuple part of `shape` with its shape index, depth first."""
    if isinstance(shape, TupleShape):
        for position, element in enumerate(shape.elements):
            yield from leaves(element, (*index, position))
    else:
        yield index, shape


MAX_BYTES = 1 << 47
"""Bytes that a process can address: no memory holds a larger array."""


def is_too_large(shape: Shape) -> bool:
    """Whether no memory can hold an array of `shape`."""
    arrays = (part for _, part in leaves(shape) if isinstance(part, ArrayShape))
    return any(array.byte_size > MAX_BYTES for array in arrays)


def subshape(shape: Shape, index: Sequence[int]) -> Shape:
    """The part of `shape` at a shape index. Raises `IndexError` when there is none."""
    for position in index:
        if not isinstance(shape, TupleShape) or not 0 <= position < len(shape.elements):
            raise IndexError(f"no part {tuple(index)} in the shape")
        shape = shape.elements[position]
    return shape


def compatible(a: Shape, b: Shape) -> bool:
    """Equal but for layouts and dynamic marks (XLA's `ShapeUtil::Compatible`)."""
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return a.element_type is b.element_type and same_dimensions(a, b)
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a.elements) == len(b.elements) and all(map(compatible, a.elements, b.elements))
    if isinstance(a, BufferShape) and isinstance(b, BufferShape):
        return compatible(a.element, b.element)
    return type(a) is type(b)


def same_dimensions(a: ArrayShape, b: ArrayShape) -> bool:
    """Equal sizes, an unbounded dimension matching every size."""
    return len(a.dimensions) == len(b.dimensions) and all(
        x == y or UNBOUNDED in (x, y) for x, y in zip(a.dimensions, b.dimensions, strict=True)
    )


def without_layout(shape: Shape) -> Shape:
    """`shape` with every layout row-major."""
    if isinstance(shape, ArrayShape):
        return shape.with_layout(default_layout(shape.rank))
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(without_layout, shape.elements)))
    return shape


# ---------------------------------------------------------------- text


@functools.lru_cache(maxsize=1 << 16)
def parse_shape(text: str) -> Shape:
    """The shape that `text` spells; missing layouts are row-major. Raises `SyntaxProblem`."""
    return parse_all(text, read_shape)


def read_shape(cursor: Cursor, default: bool = True, depth: int = 0) -> Shape:
    """Reads a shape. With `default` false a missing layout stays None. Raises `SyntaxProblem`."""
    if depth > _MAX_NESTING:
        raise cursor.problem(f"shape nested deeper than {_MAX_NESTING}")
    if cursor.peek("("):
        return TupleShape(cursor.items("(", ")", lambda: read_shape(cursor, default, depth + 1)))
    start = cursor.skip()
    if default and (simple := _read_simple(cursor, start)) is not None:
        return simple
    word = cursor.word("a shape")
    if word == "b" and cursor.accept("("):
        inner = read_shape(cursor, default, depth + 1)
        cursor.expect(")")
        if not isinstance(inner, ArrayShape):
            raise SyntaxProblem(
                start, "a buffer holds an array, not another buffer, tuple or token"
            )
        return BufferShape(inner)
    element_type = PRIMITIVE_TYPES.get(word)
    if element_type is None or element_type in (et.TUPLE, et.BUFFER):
        raise SyntaxProblem(start, f"expects a primitive type, found {word!r}", len(word))
    if not cursor.accept("["):
        raise cursor.problem(f"expects '[' after primitive type {word}")
    sizes: list[tuple[int, bool]] = []
    if not cursor.accept("]"):
        while True:
            sizes.append(_read_size(cursor))
            if cursor.accept("]"):
                break
            cursor.expect(",")
    if not element_type.is_array:
        if sizes:
            raise SyntaxProblem(start, f"{word} takes no dimensions")
        return TOKEN_SHAPE if element_type is et.TOKEN else OPAQUE_SHAPE
    dimensions = tuple(size for size, _ in sizes)
    dynamic = tuple(flag for _, flag in sizes)
    layout = read_layout(cursor) if _layout_follows(cursor) else None
    if layout is not None and len(layout.minor_to_major) != len(dimensions):
        message = f"Dimensions size is {len(dimensions)}, but minor to major size is {len(layout.minor_to_major)}."
        raise SyntaxProblem(start, message, cursor.position - start)
    if layout is None and default:
        layout = default_layout(len(dimensions))
    return ArrayShape(element_type, dimensions, dynamic if True in dynamic else (), layout)


_SIMPLE = re.compile(r"[a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[0-9:][^{}/]*+\}|(?![ \t\r\n]*+[{/]))")
"""A static array on its own or with a layout that holds no shape."""


def _read_simple(cursor: Cursor, start: int) -> Shape | None:
    """An array in a longer text, looked up by its text; long tuples repeat a few shapes."""
    match = _SIMPLE.match(cursor.text, start, cursor.end)
    if match is None or (start == 0 and match.end() == cursor.end) or match.end() - start > 200:
        return None
    try:
        shape = parse_shape(match.group())
    except SyntaxProblem:
        return None  # the slow way says what is wrong, and where
    cursor.position = match.end()
    return shape


def _read_size(cursor: Cursor) -> tuple[int, bool]:
    if cursor.accept("?"):
        return UNBOUNDED, True
    dynamic = cursor.accept("<=")
    start = cursor.skip()
    size = cursor.integer("a dimension size")
    if size < 0:
        raise SyntaxProblem(start, f"dimension size {size} is negative", cursor.position - start)
    return size, dynamic


def _layout_follows(cursor: Cursor) -> bool:
    """A `{` is a layout only when an integer or `:` follows; a body may open there too."""
    if not cursor.peek("{"):
        return False
    ahead = Cursor(cursor.text, cursor.position + 1, cursor.end)
    where = ahead.skip()
    if where < cursor.end and cursor.text[where] == "-":
        where += 1
    return where < cursor.end and (cursor.text[where].isdigit() or cursor.text[where] == ":")


def read_layout(cursor: Cursor) -> Layout:
    """Reads `{1,0:T(8,128)S(1)}`; level types `D(…)` are read and dropped. Raises `SyntaxProblem`."""
    cursor.expect("{")
    order: list[int] = []
    if not (cursor.peek(":") or cursor.peek("}")):
        order.append(cursor.integer())
        while cursor.accept(","):
            order.append(cursor.integer())
    layout = Layout(tuple(order))
    if cursor.accept(":"):
        layout = _read_layout_parts(cursor, layout)
    cursor.expect("}")
    return layout


def _accept_part(cursor: Cursor, mark: str) -> bool:
    """Takes `mark` and the parenthesis after it, if both come next."""
    start = cursor.position
    if cursor.accept(mark) and cursor.accept("("):
        return True
    cursor.position = start
    return False


def _read_layout_parts(cursor: Cursor, layout: Layout) -> Layout:
    if _accept_part(cursor, "D"):
        while not cursor.accept(")"):
            start = cursor.skip()
            word = cursor.word("a dimension level type")
            if word not in ("D", "C", "S"):
                message = f"expects a dimension level type (D, C or S), found {word!r}"
                raise SyntaxProblem(start, message, len(word))
            _ = cursor.accept("+"), cursor.accept("~"), cursor.accept(",")
    if _accept_part(cursor, "T"):
        tiles = [_read_tile(cursor)]
        while cursor.accept("("):
            tiles.append(_read_tile(cursor))
        layout = replace(layout, tiles=tuple(tiles))
    if _accept_part(cursor, "L"):
        layout = replace(layout, tail_padding_alignment=_read_alignment(cursor))
    if _accept_part(cursor, "#"):
        layout = replace(layout, index_type=_read_integer_type(cursor))
    if _accept_part(cursor, "*"):
        layout = replace(layout, pointer_type=_read_integer_type(cursor))
    if _accept_part(cursor, "E"):
        layout = replace(layout, element_size_bits=_read_closed_integer(cursor))
    if _accept_part(cursor, "S"):
        layout = replace(layout, memory_space=_read_closed_integer(cursor))
    if _accept_part(cursor, "SC"):
        splits = [_read_split(cursor)]
        while cursor.accept("("):
            splits.append(_read_split(cursor))
        layout = replace(layout, split_configs=tuple(splits))
    start = cursor.skip()
    if _accept_part(cursor, "P"):
        raise SyntaxProblem(
            start, "physical shapes are for sparse arrays, which XLA has no more", 1
        )
    if _accept_part(cursor, "M"):
        layout = replace(layout, metadata_prefix_bytes=_read_closed_integer(cursor))
    return layout


def _read_tile(cursor: Cursor) -> tuple[int, ...]:
    sizes: list[int] = []
    if cursor.accept(")"):
        return ()
    while True:
        start = cursor.skip()
        size = UNBOUNDED if cursor.accept("*") else cursor.integer("a tile size")
        if size < 0 and size != UNBOUNDED:
            message = f"expects a tile size of at least 0, or '*', found {size}"
            raise SyntaxProblem(start, message, len(str(size)))
        sizes.append(size)
        if cursor.accept(")"):
            return tuple(sizes)
        if not cursor.accept(","):
            raise cursor.problem("expects ',' or ')' in a tile")


def _read_closed_integer(cursor: Cursor) -> int:
    value = cursor.integer()
    cursor.expect(")")
    return value


def _read_alignment(cursor: Cursor) -> int:
    start = cursor.skip()
    value = _read_closed_integer(cursor)
    if value < 1:
        message = f"the alignment of the tail padding is at least 1, found {value}"
        raise SyntaxProblem(start, message, len(str(value)))
    return value


def _read_integer_type(cursor: Cursor) -> PrimitiveType:
    start = cursor.skip()
    word = cursor.word("an integer type")
    type_ = PRIMITIVE_TYPES.get(word)
    if type_ is None or not type_.is_integer:
        message = f"index and pointer types are integers, found {word!r}"
        raise SyntaxProblem(start, message, len(word))
    cursor.expect(")")
    return type_


def _read_split(cursor: Cursor) -> tuple[int, tuple[int, ...]]:
    dimension = cursor.integer()
    cursor.expect(":")
    indices = [cursor.integer()]
    while cursor.accept(","):
        indices.append(cursor.integer())
    cursor.expect(")")
    return dimension, tuple(indices)
