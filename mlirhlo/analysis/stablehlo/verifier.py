"""Holds one op against its row, its signature, and its rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from mlirhlo.analysis.stablehlo.base import (
    CHECKS,
    INFERENCES,
    RESULT_NUMBERS,
    ConstraintError,
    Given,
    as_types,
    declare,
)
from mlirhlo.analysis.stablehlo.chlo import signature_of
from mlirhlo.analysis.stablehlo.control_flow import is_token
from mlirhlo.analysis.stablehlo.quantization import check_element
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    Tensor,
    bits,
    fits_type,
    kind_words,
    tensor_of,
)
from mlirhlo.dialects.chlo.table import ROWS as CHLO_ROWS
from mlirhlo.dialects.stablehlo.rows import Operand, OpRow
from mlirhlo.dialects.stablehlo.table import ROWS


@lru_cache(maxsize=1)
def rows() -> dict[str, OpRow]:
    """Rows of both dialects' tables, by the name rules have for the op."""
    found = {name.removeprefix("stablehlo."): row for name, row in ROWS.items()}
    return {**found, **CHLO_ROWS}


def infer(given: Given) -> tuple[Attribute, ...] | None:
    """Types of the results; None where operands and attributes do not say. Raises
    `ConstraintError`."""
    check_form(given)
    check_kinds(given)
    return _inferred(given)


def _inferred(given: Given) -> tuple[Attribute, ...] | None:
    rule = INFERENCES.get(given.name)
    results = None if rule is None else rule(given)
    return None if results is None else as_types(results)


def check(given: Given) -> None:
    """Everything that must hold of an op. Raises `ConstraintError` for the first that does not."""
    check_form(given)
    check_kinds(given)
    for kind in (*given.operands, *given.results):
        tensor = tensor_of(kind)
        if tensor is None:
            continue
        if tensor.kind in ("Q", "A"):
            check_element(given, tensor)
        if tensor.bounds:
            _check_bounds(tensor)
    inferred = _inferred(given)
    if inferred is not None:
        _compare(given, inferred)
    rule = CHECKS.get(given.name)
    if rule is not None:
        rule(given)


declare(
    "bounds",
    c1="there is a bound, or ?, for each dimension",
    c2="dimensions with a bound are dynamic",
)


def _check_bounds(tensor: Tensor) -> None:
    if len(tensor.bounds) != tensor.rank:  # c1
        raise ConstraintError(
            "bounds_c1", f"{len(tensor.bounds)} bounds for rank {tensor.rank}: {tensor}"
        )
    for dim, (size, bound) in enumerate(zip(tensor.sizes, tensor.bounds, strict=True)):
        if DYNAMIC not in (size, bound):  # c2
            raise ConstraintError(
                "bounds_c2", f"dimension {dim} has size {size} and a bound: {tensor}"
            )


def check_form(given: Given) -> None:
    """Counts of operands, results and regions, and required attributes, are those of the row."""
    row = rows().get(given.name)
    if row is None:
        return
    for what, slots, count in (
        ("operands", row.operands, len(given.operands)),
        ("results", row.results, len(given.declared or ())),
    ):
        if what == "results" and given.declared is None:
            continue
        least = sum(not (slot.is_variadic or slot.is_optional) for slot in slots)
        if count < least or (count > least and not _is_open(slots)):
            raise given.error("form", f"expects {least} {what}, but has {count}")
    if row.regions >= 0 and len(given.regions) != row.regions:
        raise given.error("form", f"expects {row.regions} regions, but has {len(given.regions)}")
    for property_ in row.properties:
        if property_.is_required and property_.name not in given.properties:
            raise given.error(
                "form", f"requires attribute '{property_.name}'", help=f"write {property_.name} = …"
            )


def _is_open(slots: Sequence[Operand]) -> bool:
    return any(slot.is_variadic or slot.is_optional for slot in slots)


def check_kinds(given: Given) -> None:
    """Operands and results have the types of their slots."""
    signature = signature_of(given.name)
    if signature is None:
        return
    for types, slots, letter in (
        (given.operands, signature.operands, "i"),
        (given.declared or (), signature.results, "o"),
    ):
        if not slots:
            continue
        for index, kind in enumerate(types):
            at = min(index, len(slots) - 1)
            problem = _misfit(kind, slots[at])
            if problem:
                what = "operand" if letter == "i" else "result"
                raise given.error(
                    f"{letter}{at + 1}",
                    f"{what} #{index} must be {problem}, not {kind}",
                    operand=index if letter == "i" else None,
                )


def _misfit(kind: Attribute, slot: str) -> str:
    """What `slot` asks for where `kind` is something else; empty where it fits."""
    slot = slot.rstrip("*")
    if slot == "any":
        return ""
    if slot == "token":
        return "" if is_token(kind) else "a token"
    if slot == "tuple":
        return "" if isinstance(kind, TupleType) else "a tuple"
    tensor = tensor_of(kind)
    if slot == "value":
        # MLIR's while and optimization_barrier carry tuples too, and futures are in flight there.
        fits = tensor is not None or is_token(kind) or isinstance(kind, TupleType)
        return "" if fits or kind.name == "stablehlo.future" else "a tensor or a token"
    match = _SLOT.match(slot)
    assert match is not None, slot
    kinds, width, shape, rank = match.groups()
    if tensor is not None and tensor.kind and tensor.kind in kinds:
        is_wide = not width or bits(tensor.element) == int(width)
        if is_wide and (not rank or tensor.rank == int(rank)) and _has_form(tensor, shape):
            return ""
    what = f"a tensor of {width}{'-bit ' if width else ''}{kind_words(kinds)} elements"
    return what + (f" and rank {rank}" if rank else "") + _FORMS[shape]


_SLOT = re.compile(r"([A-Z]+)(\d*)([!~]?)(?::(\d))?\Z")
_FORMS = {
    "": "",
    "!": " of static shape",
    "~": " of static shape but for one bounded dimension",
}


def _has_form(tensor: Tensor, form: str) -> bool:
    dynamic = [dim for dim, size in enumerate(tensor.sizes) if size == DYNAMIC]
    if not form or not dynamic:
        return True
    return form == "~" and len(dynamic) == 1 and tensor.bound(dynamic[0]) != DYNAMIC


def _compare(given: Given, inferred: tuple[Attribute, ...]) -> None:
    """Declared results fit what was inferred."""
    if len(inferred) != len(given.results):
        raise given.error("form", f"expects {len(inferred)} results, but has {len(given.results)}")
    for index, (mine, declared) in enumerate(zip(inferred, given.results, strict=True)):
        if fits_type(mine, declared):
            continue
        numbers = RESULT_NUMBERS[given.name]
        at = min(2 * index, len(numbers) - 2)
        shape_number, element_number = numbers[at : at + 2]
        a, b = tensor_of(mine), tensor_of(declared)
        alike = (
            a is not None
            and b is not None
            and fits_type(mine, as_types([b.with_element(a.element)])[0])
        )
        raise ConstraintError(
            f"{given.name}_c{element_number if alike else shape_number}",
            f"result #{index} is {declared}, but {mine} follows from the operands",
            help=f"declare it as {mine}",
        )
