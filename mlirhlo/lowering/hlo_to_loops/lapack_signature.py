"""What a LAPACK routine expects of its arrays, as text: `x[m,n] x[k] -> x[m,n] i[]`.

Operands, then results, each with one matrix, vector or number per place of the batch, which all share.
Types: `x` that of operand 0, `r` and `c` its real and complex type, `i` s32. A size is bound where it first
stands; `l`, unless bound, is the smaller of `m` and `n`; `n-1` is one less.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlirhlo.dialects.hlo.element_types import C64, C128, F32, F64, S32, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape

_REAL_AND_COMPLEX = {F32: (F32, C64), F64: (F64, C128), C64: (F32, C64), C128: (F64, C128)}
_ARRAY = re.compile(r"([xrci])\[([\w,-]*)\]")

Pattern = tuple[str, tuple[str, ...]]
"""Type and sizes of an array."""


@dataclass(frozen=True)
class Signature:
    """Operands and results of a routine."""

    text: str

    @cached_property
    def _sides(self) -> tuple[tuple[Pattern, ...], tuple[Pattern, ...]]:
        operands, results = (
            tuple((kind, tuple(sizes.split(",")) if sizes else ()) for kind, sizes in found)
            for found in map(_ARRAY.findall, self.text.split("->"))
        )
        return operands, results

    @property
    def rank(self) -> int:
        """Dimensions of operand 0 that are no batch."""
        return len(self._sides[0][0][1])

    def fits(self, operands: Sequence[ArrayShape], results: Sequence[ArrayShape]) -> bool:
        """Whether these are what is expected, in number, types, ranks and sizes."""
        expected = self._sides
        if (len(operands), len(results)) != tuple(map(len, expected)):
            return False
        first = operands[0]
        if first.element_type not in _REAL_AND_COMPLEX or first.rank < self.rank:
            return False
        batch = first.dimensions[: first.rank - self.rank]
        types = _types(first.element_type)
        bound: dict[str, int] = {}
        for side, shapes in zip(expected, (operands, results), strict=True):
            for (kind, sizes), shape in zip(side, shapes, strict=True):
                if shape.element_type is not types[kind] or shape.is_dynamic:
                    return False
                if shape.rank != len(batch) + len(sizes) or shape.dimensions[: len(batch)] != batch:
                    return False
                pairs = zip(sizes, shape.dimensions[len(batch) :], strict=True)
                if not all(_agrees(size, value, bound) for size, value in pairs):
                    return False
            if "m" in bound and "n" in bound:
                bound.setdefault("l", min(bound["m"], bound["n"]))
        return True


def _types(element: PrimitiveType) -> dict[str, PrimitiveType]:
    real, complex_ = _REAL_AND_COMPLEX[element]
    return {"x": element, "r": real, "c": complex_, "i": S32}


def _agrees(size: str, value: int, bound: dict[str, int]) -> bool:
    """Whether a dimension is what its size says; binds a size that is new."""
    name, _, less = size.partition("-")
    return bound.setdefault(name, value + int(less or 0)) == value + int(less or 0)
