"""Constraints of kernels as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import (
    attribute_of,
    dictionaries_of,
    integer_of,
    integers,
    integers_of,
    plain,
)
from mlirhlo.mosaic.target.tiling import is_memref, shape_in
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue


def _arguments(op: Operation) -> Sequence[SSAValue]:
    """Arguments of the function; none where it is only declared."""
    has_body = bool(op.regions) and bool(op.regions[0].blocks)
    return op.regions[0].blocks[0].args if has_body else ()


def _count(op: Operation) -> str | None:
    numbers = integer_of(op, "scalar_prefetch"), integer_of(op, "scratch_operands")
    windows = dictionaries_of(op, "window_params") or ()
    bounds = integers_of(op, "iteration_bounds") or ()
    if not any(numbers) and not windows:
        return None
    count = len(_arguments(op))
    if min(numbers) >= 0 and len(bounds) + len(windows) + sum(numbers) <= count:
        return None
    return (
        f"{len(bounds)} bounds, {numbers[0]} prefetched scalars, {len(windows)} windows and"
        f" {numbers[1]} scratch operands for {count} arguments"
    )


def _windows(op: Operation) -> str | None:
    bounds = integers_of(op, "iteration_bounds") or ()
    if not bounds:
        return None
    semantics = attribute_of(op, "dimension_semantics")
    count = len(plain(semantics)) if semantics is not None else 0
    return None if count == len(bounds) else f"{count} dimension_semantics for {len(bounds)} bounds"


def _window_shapes(op: Operation) -> str | None:
    bounds = integers_of(op, "iteration_bounds") or ()
    types = [a.type for a in _arguments(op)]
    first = len(bounds) + integer_of(op, "scalar_prefetch")
    for at, window in enumerate(dictionaries_of(op, "window_params") or ()):
        if "window_bounds" not in window or not 0 <= first + at < len(types):
            continue
        type_ = types[first + at]
        block = integers(window["window_bounds"])
        # Dimensions of one may be dropped in the body.
        if is_memref(type_) and _without_ones(shape_in(type_)) != _without_ones(block):
            return f"window {at} is {list(block)}, the reference {list(shape_in(type_))}"
    return None


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _end(op: Operation) -> str | None:
    blocks = op.regions[0].blocks if op.regions else ()
    last = blocks[-1].last_op if blocks else None
    if not blocks or (last is not None and last.name == "func.return"):
        return None
    return "the body is empty" if last is None else f"the last operation is {last.name}"


ROWS: tuple[Constraint, ...] = (
    *demand("func.func", 1, "there is a dimension_semantics a bound", _windows),
    *demand(
        "func.func", 2, "windows have the shape of their references, but for ones", _window_shapes
    ),
    *demand("func.func", 3, "there is an argument for all that is counted", _count),
    *demand("func.func", 4, "a body ends in a return", _end),
)
