"""Which LAPACK routine a custom call means, and what it expects of its arrays, as text: `x[m,n] x[k] -> x[m,n] i[]`.

Operands, then results, each with one matrix, vector or number per place of the batch, which all share.
Types: `x` that of operand 0, `r` and `c` its real and complex type, `i` s32. A size is bound where it first
stands; `l`, unless bound, is the smaller of `m` and `n`; `n-1` is one less.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

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


LETTERS = {F32: "s", F64: "d", C64: "c", C128: "z"}
OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
_TARGET = re.compile(
    r"lapack_(?P<letter>[sdcz])(?P<lapack>\w+)_ffi"
    r"|(?:cusolver|hipsolver)_(?P<solver>\w+)_ffi"
    r"|(?:cu|hip)hybrid_(?P<hybrid>\w+)"
)
_OF_LIBRARY = {
    "lapack": {
        **{name: name for name in ("potrf", "getrf", "geqrf", "geqp3", "orgqr", "ormqr", "gehrd")},
        **{name: name for name in ("sytrd", "trsm", "gtsv", "syevd", "gesdd", "geev", "gees")},
        **{complex_: real for real, complex_ in OF_COMPLEX.items()},
    },
    "solver": {
        **{name: name for name in ("potrf", "getrf", "geqrf", "orgqr", "ormqr", "sytrd", "syevd")},
        "geev": "geev_packed",
        "gesdd": "gesdd",
        "gesvd": "gesdd",
    },
    "hybrid": {"eig_real": "geev", "eig_comp": "geev", "geqp3": "geqp3"},
    "XLA": {
        "Qr": "geqrf",
        "QrDecompositionBlock": "geqrf",
        "ProductOfElementaryHouseholderReflectors": "orgqr",
    },
}
"""The routine that is meant by a name of a library; of gesvd only the algorithm is another."""

SIGNATURES: dict[str, tuple[str, ...]] = {
    "potrf": ("x[n,n] -> x[n,n] i[]",),
    "getrf": ("x[m,n] -> x[m,n] i[l] i[]",),
    "geqrf": ("x[m,n] -> x[m,n] x[l]",),
    "geqp3": ("x[m,n] i[n] -> x[m,n] i[n] x[l]",),
    "orgqr": ("x[m,n] x[k] -> x[m,n]",),
    "ormqr": ("x[o,p] x[k] x[m,n] -> x[m,n]",),
    "gehrd": ("x[n,n] -> x[n,n] x[n-1] i[]",),
    "sytrd": ("x[n,n] -> x[n,n] r[n] r[n-1] x[n-1] i[]",),
    "trsm": ("x[o,o] x[m,n] -> x[m,n]",),
    "gtsv": ("x[m] x[m] x[m] x[m,n] -> x[m] x[m] x[m] x[m,n] i[]",),
    "syevd": ("x[n,n] -> x[n,n] r[n] i[]",),
    "gesdd": ("x[m,n] -> x[m,n] r[l] x[o,p] x[q,s] i[]",),
    "geev": (
        "x[n,n] -> r[n] r[n] c[n,n] c[n,n] i[]",
        "x[n,n] -> x[n] x[n,n] x[n,n] i[]",
    ),
    "geev_packed": ("x[n,n] -> x[n,n] c[n] x[n,n] x[n,n] i[]",),
    "gees": (
        "x[n,n] -> x[n,n] x[n,n] r[n] r[n] i[] i[]",
        "x[n,n] -> x[n,n] x[n,n] x[n] i[] i[]",
    ),
}
"""Of routines for real matrices, then for complex ones where these differ."""


def named(target: str) -> tuple[str, str | None] | None:
    """The routine that a target means, and the letter of its type where the name has one."""
    found = _TARGET.fullmatch(target)
    library = (found.lastgroup if found else None) or "XLA"
    called = _OF_LIBRARY[library].get(found[library] if found else target)
    return None if called is None else (called, found["letter"] if found else None)


@lru_cache
def _signature(text: str) -> Signature:
    return Signature(text)


def signature(routine: str, element: PrimitiveType) -> Signature:
    """What a routine expects for matrices of a type."""
    return _signature(SIGNATURES[routine][-1 if element.is_complex else 0])


def routine_of(
    target: str, operands: Sequence[ArrayShape], results: Sequence[ArrayShape]
) -> str | None:
    """The routine that a custom call means, if its arrays fit it and none is empty."""
    found = named(target)
    if found is None or not operands or any(0 in s.dimensions for s in (*operands, *results)):
        return None
    called, letter = found
    element = operands[0].element_type
    if not signature(called, element).fits(operands, results):
        return None
    return called if letter in (None, LETTERS[element]) else None


def letter(options: Mapping[str, Any], key: str, default: str) -> str:
    """An option that is a letter, or its number."""
    value = options.get(key, default)
    return chr(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def is_lower(options: Mapping[str, Any]) -> bool:
    """Whether the lower triangle is read."""
    return bool(options["lower"]) if "lower" in options else letter(options, "uplo", "L") == "L"
