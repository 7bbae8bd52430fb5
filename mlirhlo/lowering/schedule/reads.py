"""At which indices a launch reads memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import FoldOp, MapOp, identity_map, sizes_of
from mlirhlo.dialects.structured.index_maps import flattened, simplified
from mlirhlo.lowering.gpu import affine
from mlirhlo.lowering.schedule.attributes import SCHEDULE


def reads_of(
    op: MapOp | FoldOp, launch: frozenset[Operation]
) -> Iterator[tuple[SSAValue, AffineMap | None]]:
    """The values that a map or fold reads from memory, itself or through maps that are computed where they are
    read, and the map from its space to their indices; None for what is read through an op that is no map.

    `launch`: ops that are computed with it.
    """
    stack: list[tuple[MapOp | FoldOp, AffineMap]] = [(op, identity_map(len(op.space)))]
    while stack:
        reader, outer = stack.pop()
        for value, map_ in zip(reader.inputs, reader.index_maps, strict=True):
            composed = map_.compose(outer)
            owner = value.owner
            if isinstance(owner, ConstantOp):
                continue
            if not isinstance(owner, Operation) or (
                SCHEDULE in owner.attributes and owner not in launch
            ):
                yield value, composed
            elif isinstance(owner, MapOp):
                stack.append((owner, composed))
            else:
                yield value, None


def read_where_written(ops: Sequence[Operation]) -> set[SSAValue]:
    """Values in memory of which a launch reads no other element than that whose index it writes."""
    launch = frozenset(ops)
    here: set[SSAValue] = set()
    elsewhere: set[SSAValue] = set()
    stack = [(op, isinstance(op, MapOp)) for op in ops]
    seen = set(stack)
    while stack:
        op, is_here = stack.pop()
        for number, value in enumerate(op.operands):
            owner = value.owner
            is_same = is_here and isinstance(op, MapOp) and is_read_in_place(op, number)
            if not isinstance(owner, Operation) or (
                SCHEDULE in owner.attributes and owner not in launch
            ):
                (here if is_same else elsewhere).add(value)
            elif (entry := (owner, is_same)) not in seen:
                seen.add(entry)
                stack.append(entry)
    return here - elsewhere


def is_read_in_place(op: MapOp, number: int) -> bool:
    """Whether an input is read at the row-major index of the element that is computed."""
    space = op.space
    sizes = sizes_of(op.inputs[number])
    own = identity_map(len(space)).results
    read = flattened(op.index_maps[number].results, sizes)
    return simplified(read, space) == simplified(flattened(own, space), space)


def linear_index(map_: AffineMap, sizes: Sequence[int], space: Sequence[int]) -> affine.Sum:
    """The row-major index, in an array of these sizes, of what a map from a space leads to."""
    total = affine.Sum()
    for at, expr in enumerate(map_.results):
        total = total.plus(affine.simplified(expr, space), prod(sizes[at + 1 :]))
    return total


def row_major(dims: Sequence[int], space: Sequence[int]) -> affine.Sum:
    """The row-major index of dimensions of a space, in this order."""
    total = affine.Sum()
    for at, dim in enumerate(dims):
        own = affine.simplified(identity_map(len(space)).results[dim], space)
        total = total.plus(own, prod(space[d] for d in dims[at + 1 :]))
    return total


def minor_dimension(sizes: Sequence[int]) -> int:
    """The last dimension of more than one element; the last one where there is none."""
    return next((d for d in range(len(sizes) - 1, -1, -1) if sizes[d] > 1), len(sizes) - 1)
