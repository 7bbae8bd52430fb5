"""Sizes of results that inference by the specification's rules leaves open: of custom calls that
stand for dynamic ops, of bitcasts, and of slices whose limit is the start and known sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import element_type_of, ints_of_value, sizes_of
from mlirhlo.rewrites.stablehlo_refine_shapes.static_ops import shape_operands

Sizes = Sequence[int] | None


def sizes_of_results(op: Operation) -> Sequence[Sizes]:
    """Sizes of each result of a custom call, or of a slice; None where they are not known."""
    if op.name == "stablehlo.real_dynamic_slice":
        return (_slice(op),)
    if op.name == "stablehlo.bitcast_convert":
        return (_bitcast(op),)
    indices = shape_operands(op)
    if indices:
        return [ints_of_value(op.operands[index]) for index in indices]
    rule = _RULES.get(cast(Any, op.properties["call_target_name"]).data)
    return () if rule is None else rule(op)


def _slice(op: Operation) -> Sizes:
    """The known addend, where limit = start + addend and strides are 1."""
    start, limit = op.operands[1], op.operands[2]
    strides = ints_of_value(op.operands[3])
    added = limit.owner
    if not isinstance(added, Operation) or added.name != "stablehlo.add":
        return None
    if strides is None or any(stride != 1 for stride in strides):
        return None
    others = [value for value in added.operands if value is not start]
    return ints_of_value(others[0]) if len(others) == 1 else None


def _bitcast(op: Operation) -> Sizes:
    """A last dimension more or less where the elements' widths differ."""
    sizes = sizes_of(op.operands[0].type)
    widths = [
        None if row is None else row.bits
        for row in (BY_MLIR.get(element_type_of(v.type)) for v in (op.operands[0], op.results[0]))
    ]
    source, target = widths
    if sizes is None or source is None or target is None:
        return None
    if source > target:
        return (*sizes, source // target)
    return sizes if source == target else sizes[:-1]


def _first(op: Operation) -> Sequence[Sizes]:
    return (sizes_of(op.operands[0].type),)


def _rng_bits(op: Operation) -> Sequence[Sizes]:
    return (None, ints_of_value(op.operands[1]))


def _top_k(op: Operation) -> Sequence[Sizes]:
    sizes, k = sizes_of(op.operands[0].type), ints_of_value(op.operands[1])
    if not sizes or k is None:
        return ()
    return ((*sizes[:-1], k[0]),) * 2


def _reduce_window(op: Operation) -> Sequence[Sizes]:
    """As `reduce_window`: operands, initial values, and five lists."""
    lists = [ints_of_value(value) for value in op.operands[-5:]]
    count = (len(op.operands) - 5) // 2
    found: list[Sizes] = []
    for value in op.operands[:count]:
        sizes = sizes_of(value.type)
        if sizes is None or any(one is None for one in lists):
            return ()
        window, strides, base, dilations, padding = cast("list[tuple[int, ...]]", lists)
        found.append(
            [
                _windows(
                    size,
                    (window[dim] - 1) * dilations[dim] + 1,
                    strides[dim],
                    base[dim],
                    padding[2 * dim] + padding[2 * dim + 1],
                )
                for dim, size in enumerate(sizes)
            ]
        )
    return found


def _windows(size: int, window: int, stride: int, base: int, padding: int) -> int:
    """How many windows fit into a dimension."""
    if size == DYNAMIC_INDEX:
        return DYNAMIC_INDEX
    room = ((size - 1) * base + 1 if size else 0) + padding
    return (room - window) // stride + 1 if room >= window else 0


_RULES: Mapping[str, Callable[[Operation], Sequence[Sizes]]] = {
    "stablehlo.dynamic_reduce_window": _reduce_window,
    "stablehlo.dynamic_rng_bit_generator": _rng_bits,
    "stablehlo.dynamic_top_k": _top_k,
    "stablehlo.shape_refinement_operand_wrapper": _first,
}
"""By target. JAX writes these."""
