"""Names of a module, made unique as XLA does on loading, and the legal form of a name.

Source: HLO text, "Names".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

_NUMBERED = re.compile(r"(.+)\.(-?[0-9]{1,400})", re.DOTALL)
_ODD_NUMBER = re.compile(r"\.(?:-?0[0-9]+|-0)(?![^\n])")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.\-]")


class NameUniquer:
    """Names in use. A name is a root and a number; a plain root has number 0."""

    __slots__ = ("_next", "used")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.used: set[str] = {name.removesuffix(".0") for name in taken}
        """Names in use, with number 0 left out: `a` stands for `a` and `a.0`."""
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """`name` if it is free, else its root with the smallest unused number; now in use."""
        numbered = _NUMBERED.fullmatch(name)
        root, number = name, 0
        if numbered is not None and -(1 << 63) <= int(numbered[2]) < 1 << 63:
            root, number = numbered[1], int(numbered[2])
        key = f"{root}.{number}" if number else root
        if key in self.used:
            number = self._next.get(root, 0)
            key = f"{root}.{number}" if number else root
            while key in self.used:
                number += 1
                key = f"{root}.{number}"
            self._next[root] = number + 1
        self.used.add(key)
        return key if number else f"{root}.0" if root is not name else root

    def take_all(self, names: Iterable[str], joined: str) -> bool:
        """Uses all `names` as they are if that is what `unique` would do, else none.

        `names` are different from each other; `joined` is the text of all of them.
        """
        # `.0` and leading zeros are the only spellings that differ from what they mean.
        if ".0" in joined or ".-" in joined or not self.used.isdisjoint(names):
            return False
        self.used.update(names)
        return True


def are_read_as_spelled(names: Sequence[str]) -> bool:
    """Whether the reader keeps all `names`: none is there twice (`a.0` is `a`), and no number is spelled
    otherwise than the reader spells it (`a.05` is read as `a.5`).
    """
    if len(set(names)) != len(names):
        return False
    joined = "\n".join(names)
    if ".0" not in joined and ".-" not in joined:
        return True
    keys = {name.removesuffix(".0") for name in names}
    return len(keys) == len(names) and _ODD_NUMBER.search(joined) is None


def printed_names(own: Sequence[tuple[str | None, str]]) -> list[str]:
    """Names of instructions as printers spell them, from their own names and opcodes, as they are stored.

    An instruction with the name of an earlier one gets a number, as does one with a number that reads as
    another one; one without a name is called after its opcode.
    """
    kept: dict[str, int] = {}
    for index, (name, _) in enumerate(own):
        if name is not None and _ODD_NUMBER.search(name) is None:
            kept.setdefault(name.removesuffix(".0"), index)
    first = set(kept.values())
    uniquer = NameUniquer(cast(str, own[index][0]) for index in first)
    return [
        name if name is not None and index in first else uniquer.unique(name or opcode)
        for index, (name, opcode) in enumerate(own)
    ]


def legal_name(name: str) -> str:
    """`name` as XLA's loader spells it: legal characters, no type name, no leading `__`."""
    if not name:
        return "_"
    if not name.isascii():  # byte by byte
        name = name.encode("utf-8", "surrogateescape").decode("latin-1")
    found = _ILLEGAL.sub("_", name)
    if not (found[0].isalpha() or found[0] == "_"):
        found = "_" + found[1:]
    if found in PRIMITIVE_TYPES and found != "tuple":
        found += "_"
    if found.startswith("__"):
        found = "a" + found[1:]
    return found
