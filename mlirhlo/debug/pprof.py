"""Profiles in the format of `pprof`: a gzipped proto of numbers by stack of names."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

from mlirhlo.formats.proto.message import bytes_field, number_field, numbers_field


def pprof_profile(samples: Mapping[tuple[str, ...], int], kind: str, unit: str) -> bytes:
    """A profile. `samples`: a number for each stack of names, the innermost first."""
    strings: dict[str, int] = {"": 0}

    def at(text: str) -> int:
        return strings.setdefault(text, len(strings))

    functions: dict[str, int] = {}
    rows: list[bytes] = []
    for stack, count in samples.items():
        ids = [functions.setdefault(part, len(functions) + 1) for part in stack]
        rows.append(bytes_field(2, numbers_field(1, ids) + numbers_field(2, [count])))
    parts = [bytes_field(1, number_field(1, at(kind)) + number_field(2, at(unit))), *rows]
    for name, number in functions.items():
        line = bytes_field(4, number_field(1, number) + number_field(2, 1))
        parts.append(bytes_field(4, number_field(1, number) + line))
        parts.append(bytes_field(5, number_field(1, number) + number_field(2, at(name))))
    # The first string has to be the empty one, spelled out.
    parts += [bytes_field(6, text.encode()) for text in strings]
    return gzip.compress(b"".join(parts), mtime=0)
