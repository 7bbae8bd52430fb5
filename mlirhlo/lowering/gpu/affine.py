"""Affine maps on indices: simplified with the ranges of dimensions, then emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from mlirhlo.diagnostics import error
from mlirhlo.lowering.builder import FunctionBuilder, Index


@dataclass(frozen=True, slots=True)
class _Atom:
    """A dimension, or the quotient or remainder of a sum."""

    name: str
    """`d`, `/` or `%`."""
    number: int
    """The dimension, or the divisor."""
    of: Sum | None = None

    def reach(self, space: Sequence[int]) -> tuple[int, int]:
        """Least and greatest value."""
        if self.of is None:
            return 0, max(space[self.number] - 1, 0)
        low, high = self.of.reach(space)
        if self.name == "/":
            return low // self.number, high // self.number
        return 0, min(self.number - 1, high)


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant + coefficient * atom + …`, atoms in order of appearance."""

    terms: tuple[tuple[_Atom, int], ...] = ()
    constant: int = 0

    def reach(self, space: Sequence[int]) -> tuple[int, int]:
        """Least and greatest value over a space, at most."""
        low = high = self.constant
        for atom, factor in self.terms:
            first, last = atom.reach(space)
            low += min(factor * first, factor * last)
            high += max(factor * first, factor * last)
        return low, high

    def factor(self, dim: int) -> int | None:
        """The factor of a dimension; None where a quotient or remainder depends on it."""
        factors = dict(self.terms)
        if any(atom.of is not None and atom.of.factor(dim) != 0 for atom in factors):
            return None
        return factors.get(_Atom("d", dim), 0)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        kept = tuple((atom, n) for atom, n in terms.items() if n)
        return Sum(kept, self.constant + factor * other.constant)

    def split(self, divisor: int) -> tuple[Sum, Sum]:
        """What the divisor divides, divided by it, and the rest."""
        even = tuple((atom, n // divisor) for atom, n in self.terms if n % divisor == 0)
        odd = tuple((atom, n) for atom, n in self.terms if n % divisor)
        constant = self.constant // divisor
        return Sum(even, constant), Sum(odd, self.constant - constant * divisor)


def simplified(expr: AffineExpr, space: Sequence[int]) -> Sum:
    """An expression of dimensions of these sizes as a sum. Raises `HloError` HLO0804 for one with symbols."""
    match expr:
        case AffineConstantExpr():
            return Sum((), expr.value)
        case AffineDimExpr():
            if space[expr.position] == 1:
                return Sum()
            return Sum(((_Atom("d", expr.position), 1),))
        case AffineBinaryOpExpr():
            lhs, rhs = simplified(expr.lhs, space), simplified(expr.rhs, space)
            return _combined(expr.kind, lhs, rhs, space)
        case _:
            raise error("HLO0804", f"the index map `{expr}` is not of dimensions alone")


def _combined(kind: AffineBinaryOpKind, lhs: Sum, rhs: Sum, space: Sequence[int]) -> Sum:
    if kind is AffineBinaryOpKind.Add:
        return lhs.plus(rhs)
    if kind is AffineBinaryOpKind.Mul:
        if lhs.terms:
            lhs, rhs = rhs, lhs
        return Sum().plus(rhs, lhs.constant)
    divisor = rhs.constant
    whole, rest = lhs.split(divisor)
    low, high = rest.reach(space)
    if low < 0:  # what is divided is never negative
        periods = -(low // divisor)
        whole, rest = whole.plus(Sum((), -periods)), rest.plus(Sum((), periods * divisor))
        low, high = rest.reach(space)
    is_inside = low >= 0 and high < divisor
    if kind is AffineBinaryOpKind.FloorDiv:
        return whole if is_inside else whole.plus(Sum(((_Atom("/", divisor, rest), 1),)))
    if kind is AffineBinaryOpKind.Mod:
        return rest if is_inside else Sum(((_Atom("%", divisor, rest), 1),))
    negative = Sum().plus(lhs, -1)
    floored = _combined(AffineBinaryOpKind.FloorDiv, negative, rhs, space)
    return Sum().plus(floored, -1)


def results_of(map_: AffineMap, space: Sequence[int]) -> tuple[Sum, ...]:
    """The results of a map as sums."""
    return tuple(simplified(expr, space) for expr in map_.results)


def emitted(b: FunctionBuilder, total: Sum, dims: Sequence[Index]) -> Index:
    """The value of a sum at indices; constants come last."""
    result: Index = 0
    for atom, factor in total.terms:
        if atom.of is None:
            value = dims[atom.number]
        else:
            inner = emitted(b, atom.of, dims)
            value = b.div(inner, atom.number) if atom.name == "/" else b.rem(inner, atom.number)
        result = b.add(result, b.mul(value, factor))
    return b.add(result, total.constant)
