"""Constraints of vectors moved, counted and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.mosaic.attributes import (
    attribute_of,
    integer_of,
    integers_of,
)
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _iota_dims(op: KernelOp) -> str | None:
    dims, rank = integers_of(op, "dimensions") or (), len(shape_in(op.results[0].type))
    if len(set(dims)) != len(dims):
        return f"dimension {max(dims, key=dims.count)} is counted twice"
    bad = [dim for dim in dims if not 0 <= dim < rank]
    return f"dimension {bad[0]} of {rank}" if bad else None


def _iota_element(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if element.startswith(("i", "s", "u")) else f"it counts in {element}"


def _concatenate_count(op: KernelOp) -> str | None:
    return None if len(op.operands) >= 2 else f"{len(op.operands)} operands"


def _concatenate_shapes(op: KernelOp) -> str | None:
    dim, result = integer_of(op, "dimension"), shape_in(op.results[0].type)
    if not 0 <= dim < len(result):
        return f"dimension {dim} of {len(result)}"
    total = 0
    for source in op.operands:
        shape = shape_in(source.type)
        if len(shape) != len(result) or any(
            a != b for at, (a, b) in enumerate(zip(shape, result, strict=True)) if at != dim
        ):
            return f"a part of shape {list(shape)} in a result of {list(result)}"
        total += shape[dim]
    return None if total == result[dim] else f"parts of {total} elements in {result[dim]}"


def _permutation(op: KernelOp) -> str | None:
    permutation = integers_of(op, "permutation") or ()
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if sorted(permutation) != list(range(len(before))):
        return f"{list(permutation)} is no permutation of {len(before)} dimensions"
    wanted = tuple(before[dim] for dim in permutation)
    return None if wanted == after else f"the result is {list(after)}, not {list(wanted)}"


def _count(op: Operation) -> str | None:
    from math import prod

    before, after = prod(shape_in(op.operands[0].type)), prod(shape_in(op.results[0].type))
    return None if before == after else f"{before} elements become {after}"


def _rotate_pair(op: KernelOp) -> str | None:
    stated = [name for name in ("stride", "stride_dimension") if attribute_of(op, name) is not None]
    return f"it has {stated[0]} alone" if len(stated) == 1 else None


def _rotate_dims(op: KernelOp) -> str | None:
    rank = len(shape_in(op.operands[0].type))
    for name in ("dimension", "stride_dimension"):
        if attribute_of(op, name) is not None and not 0 <= integer_of(op, name) < rank:
            return f"{name} {integer_of(op, name)} of {rank}"
    return None


def _gather_shapes(op: KernelOp) -> str | None:
    indices, result = shape_in(op.operands[1].type), shape_in(op.results[0].type)
    return None if indices == result else f"indices of {list(indices)} for {list(result)}"


def _bitcast_rows(op: Operation) -> str | None:
    before, after = op.operands[0].type, op.results[0].type
    old, new = width_in_bits(element_name(before)), width_in_bits(element_name(after))
    a, b = shape_in(before), shape_in(after)
    if old == new:
        return None if a == b else f"{list(a)} becomes {list(b)} at one width"
    if len(a) < 2 or len(b) != len(a):
        return "another width needs two dimensions"
    if a[-2] * old != b[-2] * new or (*a[:-2], a[-1]) != (*b[:-2], b[-1]):
        return f"{list(a)} of {old} bits is not {list(b)} of {new}"
    return None


ROWS: tuple[Constraint, ...] = (
    *demand("tpu.iota", 1, "each dimension is counted once", _iota_dims),
    *demand("tpu.iota", 2, "it counts in integers", _iota_element),
    *demand("tpu.concatenate", 1, "there are two operands or more", _concatenate_count),
    *demand("tpu.concatenate", 2, "parts differ in one dimension only", _concatenate_shapes),
    *demand("tpu.transpose vector.transpose", 1, "the result is the permuted shape", _permutation),
    *demand("tpu.reshape vector.shape_cast", 1, "the number of elements stays", _count),
    *demand("tpu.memref_reshape", 1, "the number of elements stays", _count),
    *demand("tpu.dynamic_rotate", 1, "stride and stride_dimension come together", _rotate_pair),
    *demand("tpu.dynamic_rotate", 2, "dimensions are those of the vector", _rotate_dims),
    *demand("tpu.dynamic_gather", 1, "indices have the shape of the result", _gather_shapes),
    *demand("tpu.bitcast tpu.memref_bitcast", 1, "rows times bits stay", _bitcast_rows),
)
