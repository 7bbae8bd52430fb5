"""As much of FlatBuffers as reading a table takes; every offset is checked.

A table begins with the distance back to its vtable, which lists for each field where in the table it
stands, or 0 where the field has its default. Strings, vectors and tables are referred to by distances
forward. All numbers are little-endian.
"""

from __future__ import annotations

from dataclasses import dataclass


class BadBuffer(Exception):
    """An offset or a size leads outside of the buffer."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def unsigned(data: bytes, offset: int, size: int) -> int:
    """An unsigned number. Raises `BadBuffer`."""
    if offset < 0 or offset + size > len(data):
        raise BadBuffer(f"{size} bytes are needed here", offset)
    return int.from_bytes(data[offset : offset + size], "little")


@dataclass(frozen=True, slots=True)
class Table:
    """A table at `offset` of a buffer."""

    data: bytes
    offset: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The table that the buffer begins with."""
        return cls(data, unsigned(data, 0, 4))

    def place(self, field: int) -> int | None:
        """Where a field stands; None where it has its default."""
        distance = unsigned(self.data, self.offset, 4)
        if distance >> 31:
            distance -= 1 << 32
        vtable = self.offset - distance
        size = unsigned(self.data, vtable, 2)
        if size < 4 or size & 1:
            raise BadBuffer(f"a vtable of {size} bytes cannot be", vtable)
        if 4 + 2 * field >= size:
            return None
        found = unsigned(self.data, vtable + 4 + 2 * field, 2)
        return self.offset + found if found else None

    def number(self, field: int, size: int, default: int = 0) -> int:
        """An unsigned number of `size` bytes."""
        place = self.place(field)
        return default if place is None else unsigned(self.data, place, size)

    def reference(self, field: int) -> int | None:
        """Where the string, vector or table of a field stands."""
        place = self.place(field)
        return None if place is None else place + unsigned(self.data, place, 4)

    def vector(self, field: int, size: int = 1) -> tuple[int, int] | None:
        """Where the elements of a vector begin, and how many there are; `size` bytes each."""
        start = self.reference(field)
        if start is None:
            return None
        count = unsigned(self.data, start, 4)
        if start + 4 + count * size > len(self.data):
            raise BadBuffer(f"a vector of {count} elements does not fit", start)
        return start + 4, count

    def octets(self, field: int) -> bytes:
        """A vector of bytes, or a string."""
        found = self.vector(field)
        return b"" if found is None else self.data[found[0] : found[0] + found[1]]

    def text(self, field: int) -> str:
        """A string."""
        return self.octets(field).decode("utf-8", "replace")

    def numbers(self, field: int, size: int) -> tuple[int, ...]:
        """A vector of unsigned numbers."""
        found = self.vector(field, size)
        if found is None:
            return ()
        start, count = found
        return tuple(unsigned(self.data, start + size * i, size) for i in range(count))

    def table(self, field: int) -> Table | None:
        """The table of a field."""
        start = self.reference(field)
        return None if start is None else Table(self.data, start)

    def tables(self, field: int) -> tuple[Table, ...]:
        """A vector of tables."""
        return tuple(Table(self.data, at) for at in self._references(field))

    def texts(self, field: int) -> tuple[str, ...]:
        """A vector of strings."""
        found: list[str] = []
        for start in self._references(field):
            size = unsigned(self.data, start, 4)
            if start + 4 + size > len(self.data):
                raise BadBuffer(f"a string of {size} bytes does not fit", start)
            found.append(self.data[start + 4 : start + 4 + size].decode("utf-8", "replace"))
        return tuple(found)

    def _references(self, field: int) -> list[int]:
        found = self.vector(field, 4)
        if found is None:
            return []
        start, count = found
        places = range(start, start + 4 * count, 4)
        return [place + unsigned(self.data, place, 4) for place in places]
