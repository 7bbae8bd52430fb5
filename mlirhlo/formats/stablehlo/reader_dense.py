"""Reads dense constants. Long ones are taken apart by string methods and numpy, not by a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.syntax import WINDOW, windows
from mlirhlo.dialects.stablehlo.elements import (
    DenseAttr,
    Elements,
    dtype_of,
    element_type_of,
    from_raw,
    integer_width,
    is_unsigned,
    is_vector_or_tensor,
    shape_of,
)
from mlirhlo.formats.stablehlo.reader_types import TypeReader
from mlirhlo.formats.stablehlo.scan import BAD_CONSTANT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HEX_BODY = re.compile(r'"0x([0-9A-Fa-f]*)"[ \t\r\n]*>')
_LIST_BODY = re.compile(r"[^<>\"#@!]*>")
_PAIR = re.compile(r"\([^()]*\)")
_ENTRY = re.compile(r"[^\[\],]+")
_BLANKS = re.compile(r"[ \t\r\n]+")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?\Z")
_INT = re.compile(r"-?(?:0x[0-9A-Fa-f]+|[0-9]+)\Z")
_SMALL = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
"""ml_dtypes' integers that do not fill a byte."""
_HEX = re.compile(r"0x[0-9A-Fa-f]+\Z")


class DenseReader(TypeReader):
    """The part of the reader that reads dense constants."""

    def dense(self) -> Attribute:
        """What follows the word `dense`: `<elements> : type`."""
        self.need("<")
        start = self.skip()
        hexadecimal = _HEX_BODY.match(self.text, start)
        if hexadecimal is not None:
            self.pos = hexadecimal.end()
            type_ = self._dense_type(start)
            return self._from_hex(hexadecimal.span(1), type_, start)
        match = _LIST_BODY.match(self.text, start)
        if match is None:
            self.fail("expected numbers, or a string of hexadecimal digits", start)
        self.pos = end = match.end()
        type_ = self._dense_type(start)
        return self._from_list((start, end - 1), type_, start)

    def _dense_type(self, start: int) -> Attribute:
        self.need(":")
        type_ = self.type()
        if not is_vector_or_tensor(type_):
            self.fail(f"a dense constant has a tensor type, not {type_}", start, code=BAD_CONSTANT)
        if any(size < 0 for size in shape_of(type_)):
            self.fail("a dense constant has a static shape", start, code=BAD_CONSTANT)
        return type_

    def _from_hex(self, span: tuple[int, int], type_: Attribute, start: int) -> DenseAttr:
        import numpy as np

        shape = shape_of(type_)
        count = prod(shape)
        begin, end = span
        if (end - begin) % 2:
            self.fail("an odd number of hexadecimal digits", start, code=BAD_CONSTANT)
        pieces = range(begin, end, WINDOW)
        raw = b"".join([bytes.fromhex(self.text[at : min(at + WINDOW, end)]) for at in pieces])
        element_type = element_type_of(type_)
        dtype = dtype_of(element_type)
        if integer_width(element_type) == 1:
            # A byte for each element; once, a bit.
            if len(raw) == count:
                return from_raw(type_, (np.frombuffer(raw, np.uint8) != 0).view(dtype))
            if len(raw) == 1 and raw[0] in (0, 1, 255) and count:
                return DenseAttr(Elements(type_, bytes([raw[0] & 1]), True))
            if len(raw) != (count + 7) // 8:
                self._wrong_size(len(raw), count, type_, start)
            bits = np.unpackbits(np.frombuffer(raw, np.uint8), count=count, bitorder="little")
            return from_raw(type_, bits.view(dtype))
        size = dtype.itemsize
        if len(raw) == size and count:
            return DenseAttr(Elements(type_, raw, True))
        if len(raw) != count * size:
            self._wrong_size(len(raw), count * size, type_, start)
        values: NDArray[Any] = np.frombuffer(raw, np.uint8)
        width = integer_width(element_type)
        if 0 < width < 8:  # the upper bits mean nothing
            values = values & ((1 << width) - 1)
        return from_raw(type_, values.view(dtype))

    def _wrong_size(self, found: int, wanted: int, type_: Attribute, start: int) -> None:
        self.fail(
            f"{found} bytes where {type_} has {wanted}",
            start,
            code=BAD_CONSTANT,
        )

    def _from_list(self, span: tuple[int, int], type_: Attribute, start: int) -> DenseAttr:
        import numpy as np

        shape = shape_of(type_)
        count = prod(shape)
        element_type = element_type_of(type_)
        if not count:
            if self.text[slice(*span)].strip("[], \t\r\n"):
                self.fail(f"{type_} has no elements", start, code=BAD_CONSTANT)
            return DenseAttr(Elements(type_, b"", False))
        is_complex = isinstance(element_type, ComplexType)
        found = self._check_brackets(span, shape, is_complex, start)
        values: list[NDArray[Any]] = []
        try:
            for piece in self._pieces(span, is_complex):
                values.append(self._numbers(_entries(piece, is_complex), element_type, start))
        except (ValueError, OverflowError) as problem:
            self.fail(f"{problem}", start, code=BAD_CONSTANT)
        if found == 1:
            return DenseAttr(Elements(type_, values[0].tobytes(), True))
        return from_raw(type_, values[0] if len(values) == 1 else np.concatenate(values))

    def _pieces(self, span: tuple[int, int], is_complex: bool) -> Iterator[str]:
        """The literal in pieces, without blanks; a complex number stays whole."""
        separator = ")," if is_complex else ","
        return (_BLANKS.sub("", piece) for piece in windows(self.text, *span, separator))

    def _check_brackets(
        self, span: tuple[int, int], shape: tuple[int, ...], is_complex: bool, start: int
    ) -> int:
        """How many numbers a literal has: one, or as many as the shape."""
        structure: list[str] = []
        count, is_empty = 0, False
        for piece in self._pieces(span, is_complex):
            flat = _PAIR.sub("c", piece) if is_complex else piece
            structure.append(_ENTRY.sub("", flat))
            is_empty |= "[," in flat or "[]" in flat
            count += len(_entries(piece, is_complex))
        brackets = ",".join(structure)
        if not brackets:
            return count
        if brackets != _brackets(shape) or is_empty:
            self.fail(
                f"the brackets of this literal are not those of a {_shape_text(shape)} tensor",
                start,
                code=BAD_CONSTANT,
            )
        if count != prod(shape):
            self.fail(
                f"{count} elements where the type has {prod(shape)}",
                start,
                code=BAD_CONSTANT,
            )
        return count

    def _numbers(self, entries: list[str], element_type: Attribute, start: int) -> NDArray[Any]:
        import numpy as np

        dtype = dtype_of(element_type)
        if isinstance(element_type, ComplexType):
            inner: Attribute = cast("ComplexType[Any]", element_type).element_type
            flat = [part for pair in entries for part in pair.strip("()").split(",")]
            if len(flat) != 2 * len(entries):
                self.fail("a complex number is (real, imaginary)", start, code=BAD_CONSTANT)
            return self._numbers(flat, inner, start).view(dtype)
        if dtype.kind in "biu" or dtype.name in _SMALL:
            return self._integers(entries, element_type, dtype, start)
        return self._floats(entries, dtype, np, start)

    def _integers(
        self, entries: list[str], element_type: Attribute, dtype: np.dtype[Any], start: int
    ) -> NDArray[Any]:
        import numpy as np

        storage: Attribute = getattr(element_type, "storage_type", element_type)
        width = integer_width(storage) or 64
        if width == 1:
            flags = [_truth(entry) for entry in entries]
            if None in flags:
                self.fail("elements of i1 are true or false", start, code=BAD_CONSTANT)
            return np.array(flags, np.uint8).view(dtype)
        try:
            numbers = [int(entry) for entry in entries]
        except ValueError:
            for entry in entries:
                if _INT.match(entry) is None:
                    self.fail(f"'{entry[:40]}' is not an integer", start, code=BAD_CONSTANT)
            numbers = [int(entry, 0) for entry in entries]
        unsigned = is_unsigned(storage)
        lowest = 0 if unsigned else -(1 << (width - 1))
        highest = (1 << width) - 1
        if min(numbers) < lowest or max(numbers) > highest:
            self.fail(f"a number does not fit into {storage}", start, code=BAD_CONSTANT)
        if unsigned:
            return np.array(numbers, np.uint64).astype(_plain(dtype)).astype(dtype)
        if max(numbers) >= 1 << (width - 1):
            numbers = [n - (1 << width) if n >= 1 << (width - 1) else n for n in numbers]
        return np.array(numbers, np.int64).astype(_plain(dtype)).astype(dtype)

    def _floats(
        self, entries: list[str], dtype: np.dtype[Any], np: Any, start: int
    ) -> NDArray[Any]:
        patterns: dict[int, int] = {}
        numbers: list[float] = []
        for index, entry in enumerate(entries):
            if "x" in entry:
                if _HEX.match(entry) is None or int(entry, 16) >> (8 * dtype.itemsize):
                    self.fail(f"'{entry[:40]}' are no bits of {dtype}", start, code=BAD_CONSTANT)
                patterns[index] = int(entry, 16)
                numbers.append(0.0)
                continue
            if "." not in entry or _FLOAT.match(entry) is None:
                self.fail(
                    f"'{entry[:40]}' is no floating-point number; write it with a point",
                    start,
                    code=BAD_CONSTANT,
                )
            numbers.append(float(entry))
        with np.errstate(all="ignore"):
            wide = np.array(numbers, np.float64)
            values = _narrowed(wide, dtype, np)
        if patterns:
            bits = values.view(np.dtype(f"u{dtype.itemsize}"))
            for index, pattern in patterns.items():
                bits[index] = pattern
        return cast("NDArray[Any]", values)


def _entries(piece: str, is_complex: bool) -> list[str]:
    """The numbers of a part of a literal, each complex one in parentheses."""
    if is_complex and "(" in piece:
        return _PAIR.findall(piece)
    return piece.replace("[", "").replace("]", "").split(",")


def _narrowed(wide: Any, dtype: np.dtype[Any], np: Any) -> Any:
    """Doubles as the nearest numbers of `dtype`. ml_dtypes rounds by way of float32, which may
    round twice; where the first step is inexact, its last bit is made odd, so that it cannot."""
    if dtype in (np.float64, np.float32, np.float16):
        return wide.astype(dtype)
    single = wide.astype(np.float32)
    inexact = (single.astype(np.float64) != wide) & np.isfinite(single)
    if inexact.any():
        bits = single.view(np.int32).copy()
        away = np.abs(single.astype(np.float64)) > np.abs(wide)
        bits = np.where(inexact & away, bits - 1, bits)  # towards zero
        single = np.where(inexact, bits | 1, bits).astype(np.int32).view(np.float32)
    return single.astype(dtype)


def _plain(dtype: np.dtype[Any]) -> Any:
    """A numpy type on the way to `dtype`: ml_dtypes' small integers are made of bytes."""
    import numpy as np

    return (
        np.int8
        if dtype.name.startswith("int") and dtype.itemsize == 1
        else (np.uint8 if dtype.itemsize == 1 else dtype)
    )


def _truth(entry: str) -> int | None:
    if entry in ("true", "1", "-1"):
        return 1
    if entry in ("false", "0"):
        return 0
    return None


def _brackets(shape: tuple[int, ...]) -> str:
    """What is left of a literal of this shape without its numbers: `[,,]`."""
    text = ""
    for size in reversed(shape):
        text = f"[{','.join([text] * size)}]"
    return text


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
