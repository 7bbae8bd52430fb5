"""Symbols of a relocatable object in ELF, and objects in an archive."""

from __future__ import annotations

import struct
from collections.abc import Mapping

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _UNDEFINED = 2, 0


def symbols(data: bytes) -> tuple[list[str], list[str]]:
    """Names of the symbols that an object defines for others, and of those it needs."""
    head = _HEADER.unpack_from(data)
    sections: list[tuple[int, ...]] = list(
        _SECTION.iter_unpack(data[head[6] : head[6] + head[12] * _SECTION.size])
    )
    defined: list[str] = []
    needed: list[str] = []
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        texts = sections[section[6]]
        names = data[texts[4] : texts[4] + texts[5]]
        for start, info, _, at, _, _ in _SYMBOL.iter_unpack(
            data[section[4] : section[4] + section[5]]
        ):
            name = names[start : names.index(0, start)].decode()
            if info >> 4 and name:  # not local
                (needed if at == _UNDEFINED else defined).append(name)
    return sorted(defined), sorted(needed)


def archive(members: Mapping[str, bytes]) -> bytes:
    """An archive of objects with an index of their symbols; no times and no owners.

    Source: the common format of `ar`, with GNU's index and names of at most 15 characters or in a table.
    """
    names = "".join(f"{name}/\n" for name in members).encode()
    index: list[tuple[str, str]] = [
        (symbol, name) for name, data in members.items() for symbol in symbols(data)[0]
    ]
    texts = b"".join(symbol.encode() + b"\0" for symbol, _ in index)
    index_size = 4 + 4 * len(index) + len(texts)
    place = 8 + 60 + index_size + index_size % 2 + 60 + len(names) + len(names) % 2
    places: dict[str, int] = {}
    bodies = b""
    at = 0
    for name, data in members.items():
        places[name] = place + len(bodies)
        bodies += _member(f"/{at}", data)
        at += len(name) + 2
    head = struct.pack(f">I{len(index)}I", len(index), *(places[name] for _, name in index))
    return b"!<arch>\n" + _member("/", head + texts) + _member("//", names) + bodies


def _member(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)
