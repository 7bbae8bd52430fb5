"""Constraints of loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.mosaic.attributes import (
    integers_of,
)
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import element_name, is_memref, shape_in, space_of
from mlirhlo.mosaic.verifier.constraint import Check, Constraint, demand

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _equal_elements(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    values = [v for v in (*op.results, *op.operands[:1]) if str(v.type).startswith("vector")]
    if base is None or not values:
        return None
    found, wanted = element_name(values[0].type), element_name(base.type)
    return None if found == wanted else f"a vector of {found} in a reference of {wanted}"


def _index_count(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    if base is None:
        return None
    at = list(op.operands).index(base) + 1
    indices = [v for v in op.operands[at:] if str(v.type) in ("index", "i32")]
    rank = len(shape_in(base.type))
    return None if len(indices) == rank else f"{len(indices)} indices for {rank} dimensions"


def _no_strides(op: KernelOp) -> str | None:
    strides = integers_of(op, "strides")
    return f"it has the strides {list(strides)}" if strides else None


def _in_vmem(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    stated = base is not None and "memory_space<" in str(base.type)
    if base is None or not stated or space_of(base.type) in ("vmem", "vmem_shared"):
        return None
    return f"the reference is in {space_of(base.type).upper()}"


def _inside(op: Operation) -> str | None:
    """Static indices leave room for the vector."""
    base = next((v for v in op.operands if is_memref(v.type)), None)
    vectors = [v for v in (*op.results, *op.operands[:1]) if str(v.type).startswith("vector")]
    if base is None or not vectors:
        return None
    shape, sizes = shape_in(base.type), shape_in(vectors[0].type)
    at = list(op.operands).index(base) + 1
    sizes = (1,) * (len(shape) - len(sizes)) + sizes
    for dim, (index, size, total) in enumerate(
        zip(op.operands[at : at + len(shape)], sizes, shape, strict=False)
    ):
        known = constant_of(index)
        if known is None or total < 0:
            continue
        if known < 0 or known + size > total:
            return f"elements {known} to {known + size} of dimension {dim}, which has {total}"
    return None


def _strides_at_least(least: int) -> Check:
    def check(op: KernelOp) -> str | None:
        strides = integers_of(op, "strides") or ()
        found = [stride for stride in strides if stride < least]
        return f"a stride of {found[0]}" if found else None

    return check


def _stride_count(op: KernelOp) -> str | None:
    strides, rank = integers_of(op, "strides") or (), len(shape_in(op.base.type))
    return None if len(strides) == rank else f"{len(strides)} strides for {rank} dimensions"


_ACCESS = "tpu.vector_load tpu.vector_store tpu.strided_load tpu.strided_store"
ROWS: tuple[Constraint, ...] = (
    *demand(
        _ACCESS,
        1,
        "the vector has the reference's element type",
        _equal_elements,
    ),
    *demand("tpu.vector_load tpu.vector_store", 2, "the vector is in VMEM", _in_vmem),
    *demand(
        "tpu.vector_load tpu.vector_store", 3, "strides are empty: use strided_load", _no_strides
    ),
    *demand("tpu.vector_load tpu.vector_store", 4, "there is an index a dimension", _index_count),
    *demand("tpu.vector_load tpu.vector_store", 5, "known indices stay inside", _inside),
    *demand(
        "vector.load vector.store",
        1,
        "the vector has the reference's element type",
        _equal_elements,
    ),
    *demand("vector.load vector.store", 2, "known indices stay inside", _inside),
    *demand("tpu.strided_load", 2, "strides are 0 or more", _strides_at_least(0)),
    *demand("tpu.strided_store", 2, "strides are 1 or more", _strides_at_least(1)),
    *demand(
        "tpu.strided_load tpu.strided_store", 3, "there is a stride a dimension", _stride_count
    ),
)
