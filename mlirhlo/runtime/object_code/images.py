"""Machine code as bytes that run at any page: objects laid out once, then loaded by copying.

`link` puts the sections of relocatable objects beside each other, first what is only read, then what is
written, and fills in all distances between them. What is left for the loader is absolute: addresses of what
lies outside, which is reached through a table, and a few of the image's own places.

Only what LLVM writes for x86-64 in ELF, position-independent, is understood, without threads' own variables,
groups and constructors, which the lowering does not make. Everything else is for LLVM's own linker
(`jit.Library`), which takes ten times as long. Nothing here can be unwound: generated code throws nothing.

Source: System V ABI, chapter 4 (object files), and its AMD64 supplement, section 4.4 (relocation).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_PAGE = 4096

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_DISTANCE, _WORD = struct.Struct("<i"), struct.Struct("<Q")

_MAGIC = b"\x7fELF\x02\x01"
_RELOCATABLE, _X86_64 = 1, 62
# Kinds of sections, and their flags: the last two are of constants that a linker may merge.
_BITS, _SYMBOLS, _RELOCATIONS, _ZEROS, _UNWINDING = 1, 2, 4, 8, 0x70000001
_WRITTEN, _LOADED, _CODE, _EQUALS, _TEXTS = 1, 2, 4, 16, 32
# Bindings of symbols; a kind of them that says nothing of code; numbers of sections that are none.
_GLOBAL, _FILE, _UNDEFINED, _RESERVED = 1, 4, 0, 0xFF00
# R_X86_64_64, _PC32, _PLT32; _GOTPCREL, _GOTPCRELX and _REX_GOTPCRELX.
_ADDRESS, _NEAR, _CALL = 1, 2, 4
_BY_TABLE = frozenset((9, 41, 42))

_JUMP, _JUMP_BYTES = struct.Struct("<2si2s"), 8
"""`jmp *distance(%rip)`, to what a word of the table says, and two bytes that fill it up."""
_JUMP_END = 6

Section: TypeAlias = "tuple[int, int]"
"""Numbers of an object and of a section in it."""
Meaning: TypeAlias = "tuple[Section, int] | str"
"""Of a symbol: a section and a place in it, or a name outside."""


@dataclass(frozen=True, slots=True)
class Image:
    """Code that lacks a page to start at, and addresses."""

    data: bytes
    """Without the zeros behind it."""
    fixed_bytes: int
    """Whole pages at the start that nobody writes to once they are loaded."""
    size: int
    functions: Mapping[str, int]
    """Places of what it was asked for."""
    inner: Sequence[tuple[int, int]]
    """Places of words that hold the address of a place."""
    outer: Sequence[tuple[int, str]]
    """Places of words that hold the address of a symbol."""


class _Strange(Exception):
    """What objects of ours do not have."""


def link(objects: Sequence[bytes], functions: Sequence[str]) -> Image | None:
    """One image of objects that may call each other; `functions`: what it will be asked for.

    None for what is not understood, and for what LLVM's linker would refuse in words of its own.
    """
    if sys.platform != "linux":
        return None
    try:
        return _Linker(objects).image(functions)
    except (_Strange, LookupError, ValueError, struct.error):
        return None


class _Linker:
    def __init__(self, objects: Sequence[bytes]) -> None:
        self.objects = objects
        self.heads: dict[Section, tuple[int, ...]] = {}
        """By section: name, kind, flags, address, place in the file, size, two links, alignment, entry's size."""
        for number, data in enumerate(objects):
            head = _HEADER.unpack_from(data)
            if not head[0].startswith(_MAGIC) or head[1:3] != (_RELOCATABLE, _X86_64):
                raise _Strange
            table = data[head[6] : head[6] + head[12] * _SECTION.size]
            for at, section in enumerate(_SECTION.iter_unpack(table)):
                self.heads[number, at] = section
        self.defined: dict[str, Meaning] = {}
        self.symbols: list[list[Meaning]] = [
            list(self._symbols(number)) for number in range(len(objects))
        ]
        self.places: dict[Section, int] = {}
        self.size = 0

    def content(self, section: Section) -> bytes:
        start, size = self.heads[section][4:6]
        return self.objects[section[0]][start : start + size]

    def _symbols(self, number: int) -> Iterator[Meaning]:
        """Meanings of an object's symbols, as far as it knows them."""
        for section, head in self.heads.items():
            if section[0] != number or head[1] != _SYMBOLS:
                continue
            names = self.content((number, head[6]))
            for start, info, _, at, value, _ in _SYMBOL.iter_unpack(self.content(section)):
                binding, kind = info >> 4, info & 15
                if binding > _GLOBAL or (at >= _RESERVED and kind != _FILE):
                    raise _Strange
                name = names[start : names.index(0, start)].decode()
                meaning: Meaning = name if at == _UNDEFINED else ((number, at), value)
                if binding == _GLOBAL and at != _UNDEFINED:
                    if name in self.defined:
                        raise _Strange
                    self.defined[name] = meaning
                yield meaning

    def relocations(self) -> Iterator[tuple[int, int, Meaning, int]]:
        """Place in the image, kind, symbol and addend, of what is placed."""
        for section, head in self.heads.items():
            base = self.places.get((section[0], head[7]))
            if head[1] == _RELOCATIONS and base is not None:
                symbols = self.symbols[section[0]]
                rows: Iterator[tuple[int, ...]] = _RELOCATION.iter_unpack(self.content(section))
                for place, kind, symbol, addend in rows:
                    meaning = symbols[symbol]
                    known = self.defined.get(meaning) if isinstance(meaning, str) else None
                    yield base + place, kind, known or meaning, addend

    def image(self, functions: Sequence[str]) -> Image:
        read, written, zeros = self._sorted()
        self._lay(read)
        relocations = list(self.relocations())
        table = {
            meaning: self._room(_WORD.size, _WORD.size)
            for meaning in dict.fromkeys(m for _, k, m, _ in relocations if _goes_by_table(k, m))
        }
        jumps = {
            meaning: self._room(_JUMP_BYTES, 1)
            for meaning in dict.fromkeys(m for _, k, m, _ in relocations if _is_jump(k, m))
        }
        end = self.size
        fixed_bytes = self._room(0, _PAGE)
        self._lay(written)
        data = bytearray(self.size if written else end)
        self._lay(zeros)
        # Words of what is written may hold addresses, too.
        relocations = list(self.relocations())
        for section in (*read, *written):
            place, content = self.places[section], self.content(section)
            data[place : place + len(content)] = content
        for meaning, place in jumps.items():
            distance = table[meaning] - place - _JUMP_END
            _JUMP.pack_into(data, place, b"\xff\x25", distance, b"\x90\x90")
        inner: list[tuple[int, int]] = []
        outer: list[tuple[int, str]] = []

        def address(place: int, meaning: Meaning, addend: int = 0) -> None:
            if not isinstance(meaning, str):
                inner.append((place, self._place(meaning) + addend))
            elif not addend:
                outer.append((place, meaning))
            else:
                raise _Strange

        for meaning, place in table.items():
            address(place, meaning)
        for place, kind, meaning, addend in relocations:
            if kind == _ADDRESS:
                address(place, meaning, addend)
                continue
            if kind in _BY_TABLE:
                start = table[meaning]
            elif kind == _CALL and isinstance(meaning, str):
                start = jumps[meaning]
            elif kind in (_NEAR, _CALL):
                start = self._place(meaning)
            else:
                raise _Strange
            _DISTANCE.pack_into(data, place, start + addend - place)
        return Image(
            bytes(data),
            fixed_bytes,
            self.size,
            {name: self._place(self.defined[name]) for name in functions},
            inner,
            outer,
        )

    def _place(self, meaning: Meaning) -> int:
        if isinstance(meaning, str):
            raise _Strange
        section, value = meaning
        return self.places[section] + value

    def _sorted(self) -> tuple[list[Section], list[Section], list[Section]]:
        """Sections that are loaded: what is only read, what is written, and zeros."""
        read: list[Section] = []
        written: list[Section] = []
        zeros: list[Section] = []
        for section, (_, kind, flags, *_rest) in self.heads.items():
            if not flags & _LOADED or kind == _UNWINDING:
                continue
            if flags & ~(_WRITTEN | _LOADED | _CODE | _EQUALS | _TEXTS):
                raise _Strange
            if kind == _ZEROS and flags & _WRITTEN:
                zeros.append(section)
            elif kind == _BITS:
                (written if flags & _WRITTEN else read).append(section)
            else:
                raise _Strange
        return read, written, zeros

    def _lay(self, sections: Sequence[Section]) -> None:
        for section in sections:
            head = self.heads[section]
            self.places[section] = self._room(head[5], head[8])

    def _room(self, size: int, alignment: int) -> int:
        """A place for so many bytes."""
        if alignment > _PAGE:
            raise _Strange
        start = self.size + -self.size % max(alignment, 1)
        self.size = start + size
        return start


def _goes_by_table(kind: int, meaning: Meaning) -> bool:
    return kind in _BY_TABLE or _is_jump(kind, meaning)


def _is_jump(kind: int, meaning: Meaning) -> bool:
    return kind == _CALL and isinstance(meaning, str)


class Loaded:
    """An image in memory, as long as this lives."""

    __slots__ = ("_memory",)

    def __init__(self, image: Image, addresses: Mapping[str, int]) -> None:
        """`addresses`: of symbols; others are the process's own.

        Raises KeyError with the name of a symbol that is nowhere; OSError when there is no memory, or the
        system lets no new code run.
        """
        words = [(place, addresses.get(name) or _address(name)) for place, name in image.outer]
        system, size = _system(), image.size
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start: int = system.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
        if start == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._memory: tuple[int, int] = start, size
        ctypes.memmove(start, image.data, len(image.data))
        words += [(place, start + inner) for place, inner in image.inner]
        for place, word in words:
            ctypes.c_uint64.from_address(start + place).value = word
        if system.mprotect(start, image.fixed_bytes, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    @property
    def start(self) -> int:
        """Address of the image."""
        start, _ = self._memory
        return start

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # Other threads may still run it when the interpreter ends.
        if hasattr(self, "_memory") and not is_ending():
            _system().munmap(*self._memory)


_FAILED = ctypes.c_void_p(-1).value


@functools.cache
def _system() -> Any:
    """The C library."""
    library = ctypes.CDLL(None, use_errno=True)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.mmap.restype = pointer
    library.mmap.argtypes = [pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.mprotect.argtypes = [pointer, size, ctypes.c_int]
    library.munmap.argtypes = [pointer, size]
    return library


@functools.lru_cache(maxsize=1024)
def _address(symbol: str) -> int:
    """Raises KeyError for a symbol that the process does not have."""
    try:
        found = ctypes.cast(_system()[symbol], ctypes.c_void_p).value
    except AttributeError:
        found = None
    if not found:
        raise KeyError(symbol)
    return found
