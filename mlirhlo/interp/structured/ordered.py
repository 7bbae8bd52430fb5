"""Scan, sort, top_k, random_bits and library in numpy."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirhlo.dialects.hlo.attributes.base import boolean, string, symbol
from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.structured import (
    LibraryOp,
    RandomBitsOp,
    ScanOp,
    SortOp,
    TopKOp,
    element_types,
)
from mlirhlo.dialects.structured.base import ints_attribute
from mlirhlo.interp.ops.sorting import top
from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured.bodies import Bodies
from mlirhlo.interp.structured.registry import computes


@computes(ScanOp)
def run_scan(op: ScanOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """Slice by slice."""
    count = len(op.inputs)
    rows = [np.moveaxis(array, op.dim, 0) for array in arrays[:count]]
    state = tuple(arrays[count:])
    split = len(op.outputs) - len(state)
    elements = element_types(op.outputs)[:split]
    outputs = [np.empty(rows[0].shape, BY_MLIR[element].dtype) for element in elements]
    length = rows[0].shape[0]
    for index in range(length - 1, -1, -1) if op.reverse is not None else range(length):
        parts = bodies.apply(op.body, [*(row[index] for row in rows), *state])
        state = parts[split:]
        for output, part in zip(outputs, parts, strict=False):
            output[index] = part
    return [*(np.moveaxis(output, 0, op.dim) for output in outputs), *state]


@computes(SortOp)
def run_sort(op: SortOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """As the HLO instruction."""
    properties = {
        "dimensions": ints_attribute([op.dim]),
        "is_stable": boolean(True),
        "to_apply": symbol(bodies.name(op.comparator)),
    }
    return bodies.evaluate("sort", op.inputs, arrays, op.outputs, properties)


@computes(TopKOp)
def run_top_k(op: TopKOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """In total order, equal elements by index."""
    del bodies
    (element,) = element_types([op.input])
    return top(arrays[0], BY_MLIR[element], op.k, largest=op.largest is not None)


@computes(RandomBitsOp)
def run_random_bits(op: RandomBitsOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """As the HLO instruction."""
    properties = {"algorithm": string(op.algorithm.data)}
    results = [op.next_state, op.bits]
    return bodies.evaluate("rng-bit-generator", [op.state], arrays, results, properties)


@computes(LibraryOp)
def run_library(op: LibraryOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """As the HLO instruction."""
    settings = dict(op.settings.data)
    return bodies.evaluate(op.opcode.data, op.inputs, arrays, op.outputs, settings)
