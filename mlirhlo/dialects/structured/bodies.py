"""What values in bodies of structured ops depend on."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured.dense import MapOp
from mlirhlo.dialects.structured.kernel import IndexOp


def dependences(op: MapOp) -> dict[SSAValue, frozenset[int]]:
    """The dimensions that values of a body depend on, of those that do not depend on all of them."""
    body, rank = op.body.block, len(op.space)
    found: dict[SSAValue, frozenset[int]] = {}
    for argument, map_ in zip(body.args, op.index_maps, strict=True):
        dims = frozenset(map_.used_dims())
        if len(dims) < rank:
            found[argument] = dims
    whole = frozenset(range(rank))
    for inner in body.ops:
        if isinstance(inner, IndexOp):
            dims = frozenset((inner.dimension,))
        else:
            dims = frozenset[int]().union(*(found.get(v, whole) for v in inner.operands))
        if len(dims) < rank:
            for result in inner.results:
                found[result] = dims
    return found
