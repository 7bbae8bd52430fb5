"""Map, assemble, fold and contract in numpy."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.ir.affine import AffineMap

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    IndexOp,
    MapOp,
    YieldOp,
    element_types,
    identity_map,
    sizes_of,
)
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.interp.numerics import work_dtype, wrap
from mlirhlo.interp.ops.dot import rounded
from mlirhlo.interp.ops.indexing import as_signed
from mlirhlo.interp.ops.reduction import fold_rows
from mlirhlo.interp.reducers import Reducer, combine, fold, identity_element
from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured.bodies import Bodies, along
from mlirhlo.interp.structured.registry import computes


def indices_of(map_: AffineMap, space: Sequence[int]) -> list[Array]:
    """The results of a map over a space; of size 1 along dimensions that a result does not depend on."""
    grid = cast(Any, [along(space, dim) for dim in range(len(space))])
    return [np.asarray(result.eval(grid, ())) for result in map_.results]


def read(array: Array, map_: AffineMap, space: Sequence[int]) -> Array:
    """Elements at mapped indices, of size 1 along dimensions that the map does not depend on.

    Raises `HloError` HLO0792 for an index out of bounds.
    """
    if map_.results == identity_map(len(space)).results and array.shape == tuple(space):
        return array
    if not map_.results:
        return array
    indices = indices_of(map_, space)
    for dim, (index, size) in enumerate(zip(indices, array.shape, strict=True)):
        if index.size and (index.min() < 0 or index.max() >= size) and 0 not in space:
            raise error(
                "HLO0792",
                f"{map_} reads dimension {dim} of size {size} at {index.min()} to {index.max()}",
            )
    if 0 in space:
        return np.empty(tuple(space), array.dtype)
    return np.asarray(array[tuple(indices)])


def _filled(results: Sequence[Array], space: Sequence[int]) -> list[Array]:
    return [np.broadcast_to(result, tuple(space)) for result in results]


@computes(MapOp)
def run_map(op: MapOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """The body on whole arrays of elements."""
    space = op.space
    given = [read(a, m, space) for a, m in zip(arrays, op.index_maps, strict=True)]
    return _filled(bodies.apply(op.body, given, space), space)


@computes(AssembleOp)
def run_assemble(op: AssembleOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """Piece by piece, each over the ones before."""
    del bodies
    count = len(op.pieces)
    sizes = sizes_of(op.output)
    (element,) = element_types([op.output])
    dtype = BY_MLIR[element].dtype
    fill = arrays[count] if op.fill is not None else np.zeros((), dtype)
    result = np.full(sizes, fill, dtype)
    starts = iter(arrays[count + (op.fill is not None) :])
    rows = zip(arrays[:count], op.piece_offsets, op.piece_strides, strict=True)
    for piece, offsets, strides in rows:
        source: list[slice] = []
        target: list[slice] = []
        for size, whole, offset, step in zip(piece.shape, sizes, offsets, strides, strict=True):
            if offset == DYNAMIC:
                offset = int(np.clip(as_signed(next(starts)), 0, whole - size))
            first = max(0, -(offset // step))
            last = min(size, (whole - 1 - offset) // step + 1)
            count_ = max(0, last - first)
            start = offset + first * step
            source.append(slice(first, first + count_))
            target.append(slice(start, start + count_ * step, step) if count_ else slice(0, 0))
        result[tuple(target)] = piece[tuple(source)]
    return [result]


@computes(FoldOp)
def run_fold(op: FoldOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """By numpy's own function for a common combiner, else by the combiner, one position after the other."""
    space, count = op.space, len(op.inputs)
    given = [read(a, m, space) for a, m in zip(arrays[:count], op.index_maps, strict=True)]
    elements = _filled(bodies.apply(op.body, given, space), space)
    inits = arrays[count:]
    rank = len(space) - len(op.folded)
    reducer = bodies.reducer(op.combiner)
    if len(inits) == 1 and reducer.ufunc is not None:
        return [_fold_common(op, elements, inits[0], reducer, rank)]
    length = prod(op.folded)
    rows = [
        np.moveaxis(e.reshape((*space[:rank], length)), -1, 0) if e.size else
        np.empty((length, *space[:rank]), e.dtype)
        for e in elements
    ]  # fmt: skip
    if op.guarded is None:
        return fold_rows(rows, inits, reducer.name, bodies.frame)
    *rows, inside = rows
    state = tuple(np.broadcast_to(init, space[:rank]) for init in inits)
    for index in range(length):
        new = bodies.frame.call_elementwise(reducer.name, [*state, *(r[index] for r in rows)])
        state = tuple(np.where(inside[index], n, s) for n, s in zip(new, state, strict=True))
    return state


def _fold_common(
    op: FoldOp, elements: Sequence[Array], init: Array, reducer: Reducer, rank: int
) -> Array:
    work, dtype = work_dtype(reducer.element_type), reducer.element_type.dtype
    values = elements[0].astype(work)
    if op.guarded is not None:
        values = np.where(elements[1], values, identity_element(reducer))
    if op.folded:
        values = fold(reducer, values, tuple(range(rank, values.ndim)))
    return wrap(combine(reducer, init.astype(work), values), dtype)


@computes(ContractOp)
def run_contract(op: ContractOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """One product of two arrays, each over the dimensions that it depends on."""
    space, sizes = op.space, sizes_of(op.output)
    dtype = BY_MLIR[op.accumulator].dtype
    given = [read(a, m, space) for a, m in zip(arrays, op.index_maps, strict=True)]
    depends = [set[int](), set[int]()]
    factors = [np.asarray(f) for f in bodies.apply(op.body, given, space)]
    ranks = len(space)
    operands: list[Any] = []
    for factor, dims in zip(_alone(factors, given, op, space), depends, strict=True):
        full = factor.reshape((1,) * (ranks - factor.ndim) + factor.shape)
        dims.update(dim for dim in range(ranks) if full.shape[dim] != 1)
        operands.append(full)
    missing = [d for d in range(len(sizes), ranks) if not any(d in dims for dims in depends)]
    if missing:
        shape = [space[d] if d in missing else n for d, n in enumerate(operands[0].shape)]
        operands[0] = np.broadcast_to(operands[0], shape)
        depends[0].update(d for d in missing if space[d] != 1)
    lhs, rhs = (
        o.reshape([o.shape[d] for d in sorted(dims)]).astype(dtype)
        for o, dims in zip(operands, depends, strict=True)
    )
    kept = [dim for dim in range(len(sizes)) if any(dim in dims for dims in depends)]
    product = np.einsum(
        lhs, sorted(depends[0]), rhs, sorted(depends[1]), kept, optimize=dtype.kind in "fc"
    )
    result = np.asarray(product).reshape([n if d in kept else 1 for d, n in enumerate(sizes)])
    (element,) = element_types([op.output])
    return [rounded(np.array(np.broadcast_to(result, sizes)), BY_MLIR[element])]


def _alone(
    factors: Sequence[Array], given: Sequence[Array], op: ContractOp, space: Sequence[int]
) -> list[Array]:
    """Each factor over the dimensions of what it is computed from: the body gives both over those of all."""
    depends: dict[Any, set[int]] = {}
    for argument, array in zip(op.body.block.args, given, strict=True):
        shape = (1,) * (len(space) - array.ndim) + array.shape
        depends[argument] = {dim for dim, size in enumerate(shape) if size != 1}
    found: list[Array] = []
    for inner in op.body.block.ops:
        if isinstance(inner, IndexOp):
            depends[inner.result] = {inner.dimension}
        elif not isinstance(inner, YieldOp):
            sets = [depends[value] for value in inner.operands]
            depends[inner.results[0]] = set[int]().union(*sets)
        else:
            for value, factor in zip(inner.operands, factors, strict=True):
                full = factor.reshape((1,) * (len(space) - factor.ndim) + factor.shape)
                chosen = tuple(
                    slice(None) if d in depends[value] or full.shape[d] <= 1 else slice(0, 1)
                    for d in range(len(space))
                )
                found.append(full[chosen])
    return found
