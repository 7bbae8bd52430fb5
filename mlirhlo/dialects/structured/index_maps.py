"""Index expressions in one canonical form: sums of dimensions, quotients and remainders with coefficients.

Knowing the sizes of the dimensions, quotients and remainders that have one value are found, and the two that a
reshape takes an index apart into become the index again: maps that compose to a simple one are a simple one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias, cast

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

Terms: TypeAlias = "dict[AffineExpr, int]"
"""Coefficients of dimensions, quotients and remainders."""

MAX_NODES = 256
"""Nodes of an expression beyond which maps are not composed."""


@dataclass(frozen=True, slots=True)
class _Sum:
    terms: Mapping[AffineExpr, int]
    constant: int


def simplified(expr: AffineExpr, sizes: Sequence[int]) -> AffineExpr:
    """The canonical form of an expression over dimensions of these sizes; equal for all that is found equal."""
    if isinstance(expr, AffineConstantExpr):
        return expr
    if isinstance(expr, AffineDimExpr) and sizes[expr.position] > 1:
        return expr
    return _expression(_sum_of(expr, sizes))


def simplified_map(map_: AffineMap, sizes: Sequence[int]) -> AffineMap:
    """`map_` with canonical results."""
    return AffineMap(map_.num_dims, 0, tuple(simplified(result, sizes) for result in map_.results))


def composed(outer: AffineMap, inner: AffineMap, sizes: Sequence[int]) -> AffineMap:
    """First `inner`, which begins at a space of these sizes, then `outer`; canonical."""
    results = tuple(
        simplified(result.replace_dims_and_symbols(inner.results, ()), sizes)
        for result in outer.results
    )
    return AffineMap(inner.num_dims, 0, results)


def node_count(map_: AffineMap) -> int:
    """Nodes of all expressions of a map."""
    count = 0
    stack: list[AffineExpr] = list(map_.results)
    while stack:
        part = stack.pop()
        count += 1
        if isinstance(part, AffineBinaryOpExpr):
            stack += (part.lhs, part.rhs)
    return count


def value_range(expr: AffineExpr, sizes: Sequence[int]) -> tuple[int, int]:
    """Bounds of an expression over dimensions of these sizes, none of them 0; not always the nearest."""
    return _range_of_sum(_sum_of(expr, sizes), sizes)


def reversed_index(index: AffineExpr, size: int) -> AffineExpr:
    """The index from the other end. (xDSL's `int - AffineExpr` has its operands exchanged.)"""
    return index * -1 + (size - 1)


def flattened(indices: Sequence[AffineExpr], sizes: Sequence[int]) -> AffineExpr:
    """The row-major number of an element."""
    number: AffineExpr = AffineExpr.constant(0)
    for index, size in zip(indices, sizes, strict=True):
        number = number * size + index
    return number


def unflattened(number: AffineExpr, sizes: Sequence[int]) -> tuple[AffineExpr, ...]:
    """The indices of an element by its row-major number."""
    indices: list[AffineExpr] = []
    stride = 1
    for dim in range(len(sizes) - 1, -1, -1):
        index = number // stride if stride > 1 else number
        # The first dimension needs no remainder: nothing lies beyond it.
        indices.append(index % max(sizes[dim], 1) if dim else index)
        stride *= max(sizes[dim], 1)
    return tuple(reversed(indices))


def _sum_of(expr: AffineExpr, sizes: Sequence[int]) -> _Sum:
    terms: Terms = {}
    constant = 0
    stack: list[tuple[AffineExpr, int]] = [(expr, 1)]
    while stack:
        part, factor = stack.pop()
        match part:
            case AffineConstantExpr():
                constant += factor * part.value
            case AffineDimExpr():
                if sizes[part.position] > 1:
                    terms[part] = terms.get(part, 0) + factor
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
                stack += [(part.lhs, factor), (part.rhs, factor)]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
                scale, other = part.rhs, part.lhs
                if not isinstance(scale, AffineConstantExpr):
                    scale, other = other, scale
                stack.append((other, factor * cast(AffineConstantExpr, scale).value))
            case AffineBinaryOpExpr():
                inner = _sum_of(part.lhs, sizes)
                divisor = cast(AffineConstantExpr, part.rhs).value
                found = _DIVISIONS[part.kind](inner, divisor, sizes)
                for term, count in found.terms.items():
                    terms[term] = terms.get(term, 0) + factor * count
                constant += factor * found.constant
            case _:
                terms[part] = terms.get(part, 0) + factor
    return _Sum(_rejoined({t: c for t, c in terms.items() if c}), constant)


def _quotient(whole: _Sum, divisor: int, sizes: Sequence[int]) -> _Sum:
    """`whole floordiv divisor`: what the divisor divides comes out, what stays below it goes."""
    outside: Terms = {t: c // divisor for t, c in whole.terms.items() if not c % divisor}
    inside = _Sum({t: c for t, c in whole.terms.items() if c % divisor}, whole.constant % divisor)
    constant = whole.constant // divisor
    low, high = _range_of_sum(inside, sizes)
    if low // divisor == high // divisor:
        return _Sum(outside, constant + low // divisor)
    inside, divisor, _ = _divided(inside, divisor, sizes)
    (term, count), *more = inside.terms.items()
    if not more and not inside.constant and count == 1 and _is(term, AffineBinaryOpKind.FloorDiv):
        binary = cast(AffineBinaryOpExpr, term)
        quotient = binary.lhs // (cast(AffineConstantExpr, binary.rhs).value * divisor)
    else:
        quotient = AffineBinaryOpExpr(
            AffineBinaryOpKind.FloorDiv, _expression(inside), AffineConstantExpr(divisor)
        )
    outside[quotient] = outside.get(quotient, 0) + 1
    return _Sum(outside, constant)


def _remainder(whole: _Sum, divisor: int, sizes: Sequence[int]) -> _Sum:
    """`whole mod divisor`: multiples of the divisor go."""
    inside = _Sum({t: c for t, c in whole.terms.items() if c % divisor}, whole.constant % divisor)
    low, high = _range_of_sum(inside, sizes)
    if low // divisor == high // divisor:
        return _Sum(inside.terms, inside.constant - low // divisor * divisor)
    reduced, rest_divisor, rest = _divided(inside, divisor, sizes)
    remainder = AffineBinaryOpExpr(
        AffineBinaryOpKind.Mod, _expression(reduced), AffineConstantExpr(rest_divisor)
    )
    return _Sum({**rest.terms, remainder: divisor // rest_divisor}, rest.constant)


def _ceiling(whole: _Sum, divisor: int, sizes: Sequence[int]) -> _Sum:
    return _quotient(_Sum(whole.terms, whole.constant + divisor - 1), divisor, sizes)


_DIVISIONS = {
    AffineBinaryOpKind.FloorDiv: _quotient,
    AffineBinaryOpKind.Mod: _remainder,
    AffineBinaryOpKind.CeilDiv: _ceiling,
}


def _divided(whole: _Sum, divisor: int, sizes: Sequence[int]) -> tuple[_Sum, int, _Sum]:
    """`whole` as `factor * main + rest` with a factor of the divisor that the rest does not reach: main, the
    divisor by the factor, and the rest. Then `whole floordiv divisor` is that of main."""
    for factor in sorted({gcd(divisor, count) for count in whole.terms.values()}, reverse=True):
        kept = {t: c for t, c in whole.terms.items() if c % factor}
        rest = _Sum(kept, whole.constant % factor)
        low, high = _range_of_sum(rest, sizes)
        if factor > 1 and low >= 0 and high < factor:
            main = {t: c // factor for t, c in whole.terms.items() if not c % factor}
            return _Sum(main, whole.constant // factor), divisor // factor, rest
    return whole, divisor, _Sum({}, 0)


def _rejoined(terms: Terms) -> Terms:
    """`(x floordiv c) * c * k + (x mod c) * k` is `x * k`."""
    for term, count in list(terms.items()):
        if not _is(term, AffineBinaryOpKind.Mod) or terms.get(term) != count:
            continue
        binary = cast(AffineBinaryOpExpr, term)
        divisor = cast(AffineConstantExpr, binary.rhs).value
        quotient = AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, binary.lhs, binary.rhs)
        if terms.get(quotient) != count * divisor:
            continue
        del terms[term], terms[quotient]
        whole = _plain_terms(binary.lhs)
        if whole is None:
            terms[term], terms[quotient] = count, count * divisor
            continue
        for part, factor in whole.items():
            terms[part] = terms.get(part, 0) + factor * count
    return terms


def _plain_terms(expr: AffineExpr) -> Terms | None:
    """The terms of a canonical expression without a constant."""
    terms: Terms = {}
    stack: list[tuple[AffineExpr, int]] = [(expr, 1)]
    while stack:
        part, factor = stack.pop()
        match part:
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
                stack += [(part.lhs, factor), (part.rhs, factor)]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
                stack.append((part.lhs, factor * cast(AffineConstantExpr, part.rhs).value))
            case AffineConstantExpr():
                return None
            case _:
                terms[part] = terms.get(part, 0) + factor
    return terms


def _is(expr: AffineExpr, kind: AffineBinaryOpKind) -> bool:
    return isinstance(expr, AffineBinaryOpExpr) and expr.kind is kind


def _range_of_sum(whole: _Sum, sizes: Sequence[int]) -> tuple[int, int]:
    low = high = whole.constant
    for term, count in whole.terms.items():
        least, greatest = _range_of_term(term, sizes)
        ends = (count * least, count * greatest)
        low, high = low + min(ends), high + max(ends)
    return low, high


def _range_of_term(term: AffineExpr, sizes: Sequence[int]) -> tuple[int, int]:
    if isinstance(term, AffineDimExpr):
        return 0, max(sizes[term.position] - 1, 0)
    binary = cast(AffineBinaryOpExpr, term)
    divisor = cast(AffineConstantExpr, binary.rhs).value
    low, high = value_range(binary.lhs, sizes)
    if binary.kind is AffineBinaryOpKind.FloorDiv:
        return low // divisor, high // divisor
    return (low, high) if low >= 0 and high < divisor else (0, divisor - 1)


def _expression(whole: _Sum) -> AffineExpr:
    """Terms in the order of their text, the constant last."""
    found: AffineExpr | None = None
    for term in sorted(whole.terms, key=_order):
        count = whole.terms[term]
        part = term
        if count != 1:
            part = AffineBinaryOpExpr(AffineBinaryOpKind.Mul, term, AffineConstantExpr(count))
        found = part if found is None else AffineBinaryOpExpr(AffineBinaryOpKind.Add, found, part)
    constant = AffineConstantExpr(whole.constant)
    if found is None:
        return constant
    return (
        found if not whole.constant else AffineBinaryOpExpr(AffineBinaryOpKind.Add, found, constant)
    )


def _order(term: AffineExpr) -> tuple[int, str]:
    return (term.position, "") if isinstance(term, AffineDimExpr) else (1 << 30, str(term))
