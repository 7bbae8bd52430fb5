"""Array literals from text to raw element data, with XLA's checks and messages.

Source: HLO text, "Literals and numbers" and "Diagnostics". Two ways that agree: a strict one that
knows every token and every message, and for long texts a vectorised one that takes only texts
whose braces and commas stand exactly as a printer writes them. The strict way uses no numpy for
common element types.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.dialects.hlo.element_types import (
    BF16,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    Kind,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.literal_printing import MANTISSA_BITS, WORD_CODES
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VECTORISED_FROM = 64
"""Elements from which the vectorised way pays for importing numpy."""

_BLANK = r"(?:[ \t\r\n]++|/\*.*?\*/|//[^\r\n]*)*+"
_LEADING_COMMAS = re.compile(rf"(?:{_BLANK},)*+", re.DOTALL)
_TOKEN = re.compile(
    rf"{_BLANK}(?:"
    r"(?P<float>-?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+|[0-9]+\.[0-9]*|(?<=-)\.[0-9]+))"
    r"|(?P<int>-?[0-9]+)"
    r"|(?P<nan>-?nan(?:\(0x(?P<payload>[0-9a-fA-F]+)\))?)(?![A-Za-z0-9_.(-])"
    r"|(?P<word>-?inf|true|false)(?![A-Za-z0-9_.-])"
    r"|(?P<mark>\{|\}|\(|\)|\.\.\.)"
    r"|)",
    re.DOTALL,
)
_COMMA = re.compile(rf"{_BLANK},", re.DOTALL)

_VECTORISED_RANK = 32

Element = tuple[float, int]
"""A value and, for a NaN, the payload asked for (0 = the quiet NaN)."""


AtScalar = Callable[[int], None]
"""Called with the offset of a number that is written without braces for a whole array."""


def read_array(
    cursor: Cursor, shape: ArrayShape, at_scalar: AtScalar | None = None
) -> bytes | None:
    """Reads a literal of `shape`: element data, or None when elided (nothing is, without elements).

    With `at_scalar`, a real number without braces is element 0 of an array whose other elements are
    zero, as XLA's parser reads it. Raises `SyntaxProblem`.
    """
    if shape.rank <= _VECTORISED_RANK and shape.element_count >= _VECTORISED_FROM:
        data = _read_vectorised(cursor, shape)
        if data is not None:
            return data
    return _Reader(cursor, shape, at_scalar).read()


class _Reader:
    """The strict way: walks tokens as XLA does, counting the elements of every open brace."""

    def __init__(self, cursor: Cursor, shape: ArrayShape, at_scalar: AtScalar | None) -> None:
        self.cursor, self.shape, self.type = cursor, shape, shape.element_type
        self.at_scalar = at_scalar
        self.at = 0
        self.values: list[int] = []
        self.floats: list[Element] = []

    def problem(self, message: str) -> SyntaxProblem:
        return SyntaxProblem(self.at, message)

    def token(self, after_commas: bool = False) -> re.Match[str]:
        """The next token; with `after_commas`, any number of commas are passed over first."""
        if after_commas:
            commas = _LEADING_COMMAS.match(self.cursor.text, self.cursor.position, self.cursor.end)
            assert commas is not None  # the pattern matches the empty string
            self.cursor.position = commas.end()
        match = _TOKEN.match(self.cursor.text, self.cursor.position, self.cursor.end)
        assert match is not None  # the pattern matches the empty string
        kind = match.lastgroup
        if kind == "payload":
            kind = "nan"
        self.at = match.start(kind) if kind else match.end()
        if kind == "int":
            if not -(1 << 63) <= int(match["int"][:40]) < 1 << 64:
                kind = None
        elif (
            kind == "nan" and match["payload"] and not 0 < int(match["payload"][:40], 16) < 1 << 52
        ):
            kind = None
        if kind is None:
            raise self.problem("unexpected token type in a literal")
        self.cursor.position = match.end()
        return match

    def read(self) -> bytes | None:
        dimensions, rank = self.shape.dimensions, self.shape.rank
        seen, level, elided = [0] * rank, 0, False
        while True:
            # XLA separates elements by any number of commas, but nothing stands before the literal.
            match = self.token(after_commas=level > 0)
            mark = match["mark"]
            if mark == "{":
                level += 1
                if level > rank:
                    raise self.problem(f"expects nested array in rank {rank}, but sees larger")
                if level > 1:
                    self.count(seen, level - 2)
                seen[level - 1] = 0
            elif mark == "}":
                if level == 0:
                    raise self.problem("unexpected '}' token")
                level -= 1
                if seen[level] != dimensions[level]:
                    raise self.problem(
                        f"expects {dimensions[level]} elements in the"
                        f" {_index(seen, level)}th element,"
                        f" but sees {seen[level]}"
                    )
            elif mark == "...":
                if level != 1:
                    raise self.problem(
                        f"expects `...` at nest level 1, but sees it at nest level {level}"
                    )
                seen[0], elided = dimensions[0], True
            elif mark == ")" or (mark == "(" and not self.type.is_complex):
                if mark == ")":
                    raise self.problem("unexpected token type in a literal")
                raise self.problem(
                    "unexpected '(' in literal. Parens are only valid for complex literals"
                )
            else:
                if level == 0 < rank and self.at_scalar and self.may_be_scalar():
                    start = self.at
                    self.element(match)
                    self.at_scalar(start)
                    return self.padded()
                if level != rank:
                    raise self.problem(f"expects nested array in rank {rank}, but sees {level}")
                if rank:
                    seen[-1] += 1
                    if seen[-1] > dimensions[-1]:
                        raise self.problem(
                            f"expects {dimensions[-1]} elements on the minor-most dimension,"
                            " but sees more"
                        )
                self.element(match)
            if level == 0:
                return None if elided and self.shape.element_count else self.data()

    def may_be_scalar(self) -> bool:
        """Whether one number may stand for the array: there is an element 0, and it is real."""
        return self.shape.element_count > 0 and not self.type.is_complex

    def padded(self) -> bytes:
        """Data of the array whose element 0 was read; the other elements are zero."""
        data = self.data()
        return data + bytes(len(data) * (self.shape.element_count - 1))

    def count(self, seen: list[int], dim: int) -> None:
        seen[dim] += 1
        if seen[dim] > self.shape.dimensions[dim]:
            size = self.shape.dimensions[dim]
            raise self.problem(
                f"expects {size} elements in the {_index(seen, dim)}th element, but sees more"
            )

    def element(self, match: re.Match[str]) -> None:
        type_ = self.type
        if type_.is_complex:
            self.complex(match)
        elif type_.is_float:
            self.floats.append(self.real(match, type_))
        else:
            self.values.append(self.integer(match))

    def integer(self, match: re.Match[str]) -> int:
        type_ = self.type
        if type_.kind is Kind.PRED and match["word"] in ("true", "false"):
            return int(match["word"] == "true")
        if match["int"] is None:
            raise self.problem(f"expects integer for primitive type: {type_.name.upper()}")
        value = int(match["int"])
        wrapped = value if value < 1 << 63 else value - (1 << 64)
        if type_.kind is Kind.PRED:
            return int(wrapped != 0)
        if type_.bits < 64:
            low = -(1 << (type_.bits - 1)) if type_.is_signed else 0
            high = low + (1 << type_.bits) - 1
            if not low <= wrapped <= high:
                raise self.out_of_range(str(wrapped), str(low), str(high))
        return wrapped

    def out_of_range(
        self, value: str, low: str, high: str, part: str = "value", comma: str = ""
    ) -> SyntaxProblem:
        return self.problem(
            f"{part} {value} is out of range for literal's primitive type"
            f" {self.type.name.upper()}{comma} namely [{low}, {high}]."
        )

    def real(self, match: re.Match[str], type_: PrimitiveType, part: str = "") -> Element:
        if match["nan"]:
            payload = int(match["payload"] or "0", 16)
            if payload:
                self.check_payload(payload, type_)
            return math.copysign(math.nan, -1.0 if match["nan"][0] == "-" else 1.0), payload
        text = match["float"] or match["word"]
        if match["int"] is not None:
            integer = int(match["int"])
            value = float(integer if integer < 1 << 63 else integer - (1 << 64))
            if integer == 0 and match["int"].startswith("-"):
                value = -0.0  # XLA prints -0.0 so, though it reads the integer as +0
        elif text is None or text in ("true", "false"):
            what = (
                f"expect floating-point value for {part} part of complex number"
                if part
                else (f"expect floating point value for primitive type: {type_.name.upper()}")
            )
            raise self.problem(what)
        else:
            value = float(text)
            if math.isinf(value) and match["float"]:
                raise self.problem(
                    "Constant is out of range for double (+/-1.79769e+308) and so is unparsable."
                )
        if math.isfinite(value) and type_ is not F64 and not _fits(type_, value):
            low, high = _float_range(type_)
            word = f"{part} part" if part else "value"
            raise self.out_of_range(f"{value:g}", low, high, word, "," if part else "")
        return value, 0

    def check_payload(self, payload: int, type_: PrimitiveType) -> None:
        mantissa = MANTISSA_BITS.get(type_.name)
        why = f"but {type_.name} does not support payloads"
        if mantissa is not None:
            limit = (1 << mantissa) - 1
            if payload <= limit:
                return
            why = f"but the NaN payload is out of range (0x{limit:x})"
        raise self.problem(
            f"tries to set NaN payload 0x{payload:x} to a literal in shape"
            f" {self.shape.to_string(layout=False)} at linear index {len(self.floats)}, {why}"
        )

    def complex(self, match: re.Match[str]) -> None:
        if match["mark"] != "(":
            raise self.problem(f"unsupported primitive type {self.type.name.upper()}")
        self.floats.append(self.real(self.token(), self.type.real, "real"))
        comma = _COMMA.match(self.cursor.text, self.cursor.position, self.cursor.end)
        if comma is None:
            raise SyntaxProblem(
                self.cursor.skip(), "expect comma after real part of complex literal"
            )
        self.cursor.position = comma.end()
        self.floats.append(self.real(self.token(), self.type.real, "imaginary"))
        if not self.cursor.accept(")"):
            raise SyntaxProblem(self.cursor.skip(), "expect ')' after complex number")

    def data(self) -> bytes:
        type_ = self.type
        if type_.is_float or type_.is_complex:
            real = type_.real
            raw = bytearray(encode_floats(real, [value for value, _ in self.floats]))
            size = real.byte_size
            for index, (_, payload) in enumerate(self.floats):
                if payload:
                    word = _payload_word(
                        real, payload, math.copysign(1.0, self.floats[index][0]) < 0
                    )
                    raw[index * size : (index + 1) * size] = word.to_bytes(size, "little")
            return bytes(raw)
        return encode_integers(type_, self.values)


def _index(seen: Sequence[int], dim: int) -> str:
    return "[" + ",".join(str(count - 1) for count in seen[:dim]) + "]"


def encode_integers(type_: PrimitiveType, values: Sequence[int]) -> bytes:
    """Raw data of integers or pred already known to fit (64-bit ones may be wrapped)."""
    if type_.bits < 8:
        mask = (1 << type_.bits) - 1
        return bytes([value & mask for value in values])
    if type_.bits == 64 and type_.is_unsigned:
        return array("Q", [value & 0xFFFFFFFFFFFFFFFF for value in values]).tobytes()
    code = WORD_CODES[type_.byte_size]
    return array(code.lower() if type_.is_signed else code, values).tobytes()


def encode_floats(type_: PrimitiveType, values: Sequence[float]) -> bytes:
    """Raw data of doubles rounded to `type_` as XLA rounds a parsed constant.

    f16 and bf16 round by way of f32 (twice), the smaller types straight from double (once).
    Raises `OverflowError` when a finite value has no finite counterpart (16 bits and more).
    """
    if type_ is F64:
        return array("d", values).tobytes()
    if type_ is F32:
        return struct.pack(f"<{len(values)}f", *values)
    if type_ is F16:
        singles = struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))
        return struct.pack(f"<{len(values)}e", *singles)
    if type_ is BF16:
        words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
        return array("H", map(_bf16_word, words)).tobytes()
    import numpy as np

    return round_small(np.array(values, dtype=np.float64), type_).tobytes()


def _bf16_word(word: int) -> int:
    if word & 0x7FFFFFFF > 0x7F800000:
        return word >> 16 | 0x40
    rounded = (word + 0x7FFF + (word >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and word & 0x7FFFFFFF != 0x7F800000:
        raise OverflowError("too large for bf16")
    return rounded


def round_small(values: NDArray[Any], type_: PrimitiveType) -> NDArray[Any]:
    """Doubles (a numpy array) rounded once to a type of less than 16 bits."""
    import numpy as np

    if type_ is F8E8M0FNU:
        # Powers of two alone; halfway between two of them is rounded up.
        mantissa, exponent = np.frexp(np.abs(values))
        words = exponent + 126 + (mantissa >= 0.75)
        fits = np.isfinite(values) & (values > 0) & (words >= 0) & (words < 255)
        return np.where(fits, words, 255).astype(np.uint8).view(type_.dtype)
    # ml_dtypes goes by way of f32; rounding to odd first keeps the second rounding exact.
    bits = values.view(np.uint64)
    dropped = np.uint64((1 << 29) - 1)
    odd = (bits & ~dropped) | np.where(bits & dropped, np.uint64(1 << 29), np.uint64(0))
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        single: NDArray[Any] = np.where(finite, odd.view(np.float64), values).astype(np.float32)
        return single.astype(type_.dtype)


def _fits(type_: PrimitiveType, value: float) -> bool:
    try:
        data = encode_floats(type_, [value])
    except OverflowError:
        return False
    if type_.bits >= 16:
        return True
    import numpy as np

    return bool(np.isfinite(np.frombuffer(data, dtype=type_.dtype).astype(np.float64))[0])


def _float_range(type_: PrimitiveType) -> tuple[str, str]:
    import ml_dtypes

    limits = cast(Any, ml_dtypes).finfo(type_.dtype)
    return f"{float(limits.min):g}", f"{float(limits.max):g}"


def _payload_word(type_: PrimitiveType, payload: int, negative: bool) -> int:
    mantissa = MANTISSA_BITS[type_.name]
    exponent = ((1 << (type_.bits - 1 - mantissa)) - 1) << mantissa
    return (1 << (type_.bits - 1) if negative else 0) | exponent | payload


# ---------------------------------------------------------------- the vectorised way

_NUMBER_BYTES = b"0123456789+-.eEinfa \n"
_TO_BLANK = bytes.maketrans(b"{}()", b"    ")
_DEEP_MARK = re.compile(rb"/\*i[0-9]+=[0-9]+\*/")


def _read_vectorised(cursor: Cursor, shape: ArrayShape) -> bytes | None:
    """Data of a text written as a printer writes it; None leaves it to the strict way."""
    start = cursor.skip()
    end = _end_of_braces(cursor, start, shape.rank)
    if end is None:
        return None
    count = shape.element_count
    if end - start < 2 * count:
        return None
    type_ = shape.element_type
    structure: list[bytes] = []
    pieces: list[bytes] = []
    try:
        for text in windows(cursor.text, start, end):
            raw = _plain(text, type_)
            if raw.count(b"+") != raw.count(b"e+") + raw.count(b"E+"):
                return None
            structure.append(raw.translate(None, _NUMBER_BYTES))
            piece = _convert(type_, raw.translate(_TO_BLANK).split(b","))
            if piece is None:
                return None
            pieces.append(piece)
    except (ValueError, OverflowError):
        return None
    if b",".join(structure) != _skeleton(shape):
        return None
    cursor.position = end
    return b"".join(pieces)


def _plain(text: str, type_: PrimitiveType) -> bytes:
    """ASCII of numbers without comments. Raises `ValueError` where it is not ASCII."""
    raw = text.encode("ascii")
    if b"/" in raw:
        raw = _DEEP_MARK.sub(b"", raw)
    if type_.kind is Kind.PRED:
        raw = raw.replace(b"true", b"1").replace(b"false", b"0")
    return raw


def _end_of_braces(cursor: Cursor, start: int, rank: int) -> int | None:
    """End of the array whose `{` is at `start`: only there do `rank` braces close in a row."""
    if not cursor.text.startswith("{", start):
        return None
    closing = re.compile(r"\}[ \n]*" * (rank - 1) + r"\}").search(cursor.text, start, cursor.end)
    return None if closing is None else closing.end()


def _skeleton(shape: ArrayShape) -> bytes:
    """The braces, parentheses and commas of a literal of `shape`."""
    piece = b"(,)" if shape.element_type.is_complex else b""
    for size in reversed(shape.dimensions):
        piece = b"{" + (piece + b",") * (size - 1) + piece + b"}"
    return piece


def _convert(type_: PrimitiveType, tokens: list[bytes]) -> bytes | None:
    import numpy as np

    if type_.kind in (Kind.PRED, Kind.SIGNED, Kind.UNSIGNED):
        integers = list(map(int, tokens))
        low, high = min(integers), max(integers)
        if type_.kind is Kind.PRED:
            return bytes(map(bool, integers)) if low >= -(1 << 63) and high < 1 << 64 else None
        smallest = -(1 << (type_.bits - 1)) if type_.is_signed else 0
        if low < smallest or high >= smallest + (1 << type_.bits):
            return None
        return encode_integers(type_, integers)
    values = np.array(list(map(float, tokens)), dtype=np.float64)
    finite = np.isfinite(values)
    if np.any(np.abs(values[finite]) >= 2.0**63):
        # Such an integer token wraps, and so does an exponent beyond double's: look closely.
        if any(
            b"." not in tokens[i] and b"e" not in tokens[i]
            for i in np.flatnonzero(np.abs(values) >= 2.0**63)
        ):
            return None
    if not finite.all() and not all(
        tokens[i].strip().lstrip(b"-") in (b"nan", b"inf") for i in np.flatnonzero(~finite)
    ):
        return None
    real = type_.real
    with np.errstate(all="ignore"):
        if real.bits < 16:
            rounded = round_small(values, real)
        else:
            single = values if real is F64 else values.astype(np.float32)
            rounded = single.astype(real.dtype)
        if not np.isfinite(rounded.astype(np.float64))[finite].all():
            return None
    return bytes(rounded.tobytes())
