"""Smaller dimensions, consistently: every dimension of one size becomes smaller, with what is divided from it.

Works on text: a size stands in shapes, slice bounds, windows and slice sizes. What no longer fits is refused by the
verifier, like any other attempt that fails.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

_SHAPE = re.compile(r"(?<=[a-z0-9])\[(?P<sizes>[<=0-9, ]+)\](?!\()")
_NAMED = re.compile(r"(?P<key>\b(?:dynamic_slice_sizes|slice_sizes)=\{)(?P<sizes>[0-9,]+)\}")
_WINDOW = re.compile(r"(?P<key>\bsize=)(?P<sizes>[0-9x]+)")
_SLICE = re.compile(r"\[(?P<start>\d+):(?P<limit>\d+)(?P<stride>:\d+)?\]")
_NUMBER = re.compile(r"\d+")


def elements_of(text: str) -> int:
    """Elements of all shapes in a text."""
    shapes = (_NUMBER.findall(match["sizes"]) for match in _SHAPE.finditer(text))
    return sum(math.prod(map(int, numbers)) for numbers in shapes)


def sizes_of(text: str) -> list[int]:
    """Sizes above 1 in shapes, those that make most elements first."""
    counts: Counter[int] = Counter()
    for match in _SHAPE.finditer(text):
        for number in _NUMBER.findall(match["sizes"]):
            counts[int(number)] += 1
    return sorted((size for size in counts if size > 1), key=lambda size: (-size, -counts[size]))


def smaller(text: str, size: int) -> list[str]:
    """The text with each dimension of this size shrunk; also with multiples of it shrunk alike."""
    found: dict[str, None] = {}
    for target in dict.fromkeys((1, 2, size // 2)):
        if target < size:
            multiples = {s: s // size * target for s in sizes_of(text) if s % size == 0}
            found[resized(text, multiples)] = None
            found[resized(text, {size: target})] = None
    return [other for other in found if other != text]


def resized(text: str, sizes: Mapping[int, int]) -> str:
    """The text with each dimension of a size of another size."""

    def number(match: re.Match[str]) -> str:
        return str(sizes.get(int(match[0]), int(match[0])))

    def named(match: re.Match[str]) -> str:
        return (
            match["key"]
            + _NUMBER.sub(number, match["sizes"])
            + ("}" if "{" in match["key"] else "")
        )

    def bounds(match: re.Match[str]) -> str:
        start, limit = int(match["start"]), int(match["limit"])
        limit = sizes.get(limit, limit)
        return f"[{min(start, max(limit - 1, 0))}:{limit}{match['stride'] or ''}]"

    text = _SHAPE.sub(lambda match: f"[{_NUMBER.sub(number, match['sizes'])}]", text)
    text = _NAMED.sub(named, text)
    text = _WINDOW.sub(named, text)
    return _SLICE.sub(bounds, text)
