"""Primitive encodings of MLIR bytecode: variable-width integers, strings, alignment.

Everything is little-endian. The number of low zero bits in the first byte of a varint says how many
bytes follow; a first byte of zero is followed by eight. Signed varints interleave: 0, -1, 1, -2, …
"""

from __future__ import annotations

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.bytecode.problems import damaged

PADDING = 0xCB
"""Fills the gap before aligned data."""

_U64 = (1 << 64) - 1


class Cursor:
    """Reads a range of the file; offsets are those of the whole file."""

    __slots__ = ("data", "end", "file", "pos")

    def __init__(self, data: bytes, file: str, pos: int = 0, end: int | None = None) -> None:
        self.data, self.file = data, file
        self.pos, self.end = pos, len(data) if end is None else end

    def problem(self, message: str, offset: int | None = None) -> HloError:
        """HLO0221 at `offset`, by default the current one."""
        return damaged(message, self.file, self.pos if offset is None else offset)

    def done(self) -> bool:
        """Whether the range is used up."""
        return self.pos >= self.end

    def byte(self) -> int:
        """One byte."""
        if self.pos >= self.end:
            raise self.problem("the data ends here, one more byte is needed")
        self.pos += 1
        return self.data[self.pos - 1]

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        self.check(size)
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def check(self, size: int) -> None:
        """That `size` bytes are left."""
        if size > self.end - self.pos:
            raise self.problem(f"{size} bytes are needed here, {self.end - self.pos} are left")

    def sub(self, size: int) -> Cursor:
        """A cursor over the next `size` bytes, which are skipped here."""
        self.check(size)
        self.pos += size
        return Cursor(self.data, self.file, self.pos - size, self.pos)

    def varint(self) -> int:
        """An unsigned integer of at most 64 bits."""
        pos = self.pos
        if pos >= self.end:
            raise self.problem("the data ends here, an integer is needed")
        first = self.data[pos]
        if first & 1:
            self.pos = pos + 1
            return first >> 1
        if first == 0:
            self.pos = pos + 1
            return int.from_bytes(self.take(8), "little")
        size = (first & -first).bit_length()
        return int.from_bytes(self.take(size), "little") >> size

    def signed(self) -> int:
        """A signed integer of at most 64 bits."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def flagged(self) -> tuple[int, bool]:
        """An integer whose lowest bit is a flag."""
        value = self.varint()
        return value >> 1, bool(value & 1)

    def count(self, size: int = 1) -> int:
        """A number of things that take at least `size` bytes each, so that no count is absurd."""
        offset = self.pos
        value = self.varint()
        if value * size > self.end - self.pos:
            raise self.problem(
                f"a list of {value} entries does not fit in {self.end - self.pos} bytes", offset
            )
        return value

    def cstring(self) -> bytes:
        """A string that ends in a zero byte, without it."""
        end = self.data.find(0, self.pos, self.end)
        if end < 0:
            raise self.problem("a string has no end")
        text = self.data[self.pos : end]
        self.pos = end + 1
        return text

    def align(self, alignment: int) -> None:
        """Skips padding up to a multiple of `alignment`, counted from the start of the file."""
        if alignment <= 0 or alignment & (alignment - 1):
            raise self.problem(f"an alignment of {alignment} is not a power of two")
        gap = -self.pos % alignment
        for byte in self.take(gap):
            if byte != PADDING:
                raise self.problem(f"padding is 0x{byte:02x}, not 0x{PADDING:02x}")


class Emitter:
    """Collects bytes. Aligned parts force the start of every enclosing section to be aligned."""

    __slots__ = ("alignment", "data")

    def __init__(self) -> None:
        self.data = bytearray()
        self.alignment = 1
        """What the start of these bytes must be aligned to."""

    def byte(self, value: int) -> None:
        """One byte."""
        self.data.append(value)

    def raw(self, data: bytes | bytearray) -> None:
        """Bytes as they are."""
        self.data += data

    def varint(self, value: int) -> None:
        """An unsigned integer of at most 64 bits."""
        if value < 0x80:
            self.data.append(value << 1 | 1)
            return
        size = (value.bit_length() + 6) // 7
        if size > 8:
            self.data.append(0)
            self.data += value.to_bytes(8, "little")
            return
        self.data += ((value << 1 | 1) << (size - 1)).to_bytes(size, "little")

    def signed(self, value: int) -> None:
        """A signed integer of at most 64 bits."""
        self.varint((value << 1 ^ value >> 63) & _U64)

    def flagged(self, value: int, flag: bool) -> None:
        """An integer with a flag in its lowest bit."""
        self.varint(value << 1 | flag)

    def cstring(self, text: bytes) -> None:
        """A string and its zero byte."""
        self.data += text
        self.data.append(0)

    def align(self, alignment: int) -> None:
        """Padding up to a multiple of `alignment`."""
        self.alignment = max(self.alignment, alignment)
        self.data += bytes([PADDING]) * (-len(self.data) % alignment)

    def section(self, tag: int, content: Emitter) -> None:
        """A section: its tag, size and content, aligned as the content asks."""
        if content.alignment == 1:
            self.byte(tag)
            self.varint(len(content.data))
        else:
            self.byte(tag | 0x80)
            self.varint(len(content.data))
            self.varint(content.alignment)
            self.align(content.alignment)
        self.raw(content.data)
