"""Rules of reshape, transpose, reverse and copy."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    CopyOp,
    DotOp,
    IotaOp,
    ReshapeOp,
    ReverseOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Binary
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.importing import LATE
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    forward,
    is_array,
    is_constant,
    is_scalar_broadcast,
    made_by,
    options_of,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import ELEMENTWISE, LI, inserted_ones
from mlirhlo.rewrites.rules import Rewriter, rule

with LATE:
    from mlirhlo.rewrites.algsimp import dot


@rule(ReshapeOp, needs=LI)
def reshape_of_empty(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(x) => constant, no elements"""
    if array(op).element_count or array(op).is_dynamic or is_constant(op.operand):
        return
    b = Builder(op, rewriter)
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    b.constant(Literal(shape, b""))
    b.done()


@rule(ReshapeOp)
def reshape_to_same_shape(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(x) => x, x of that shape"""
    if array(op).dimensions == array(op.operand).dimensions:
        forward(op, rewriter, op.operand)


@rule(ReshapeOp, needs=LI, reads=(ReshapeOp,))
def reshape_of_reshape(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(reshape(x)) => reshape(x)"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is not None and not any(
        array(v).is_dynamic for v in (op.output, inner.output, inner.operand)
    ):
        b = Builder(op, rewriter)
        b.reshape(inner.operand, op.shape)
        b.done()


@rule(ReshapeOp, needs=LI, reads=(BroadcastOp,))
def reshape_of_broadcast(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(broadcast(x)) => broadcast(x), the dimensions of x standing as they are"""
    inner = made_by(op.operand, BroadcastOp)
    if inner is None or array(op).is_dynamic or array(inner).is_dynamic:
        return
    if not array(op).element_count or not inner.dimensions:
        return
    kept = unmodified(array(inner), array(op))
    if any(d not in kept for d in inner.dimensions):
        return
    b = Builder(op, rewriter)
    b.broadcast(inner.operand, [kept[d] for d in inner.dimensions], op.shape)
    b.done()


def unmodified(before: ArrayShape, after: ArrayShape) -> dict[int, int]:
    """Dimensions that a reshape leaves alone: of equal size, with as many elements before them."""
    places: dict[tuple[int, int], int] = {}
    count = 1
    for dim, size in enumerate(after.dimensions):
        places.setdefault((count, size), dim)
        count *= size
    found: dict[int, int] = {}
    count = 1
    for dim, size in enumerate(before.dimensions):
        if (count, size) in places and places[count, size] not in found.values():
            found[dim] = places[count, size]
        count *= size
    return found


@rule(ReshapeOp, needs=LI, reads=(IotaOp,))
def reshape_of_iota(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(iota) => iota, its dimension standing as it is"""
    inner = made_by(op.operand, IotaOp)
    if inner is None or array(op).is_dynamic or not array(op).element_count:
        return
    kept = unmodified(array(inner), array(op))
    if inner.iota_dimension in kept:
        b = Builder(op, rewriter)
        b.like(IotaOp, iota_dimension=integer(kept[inner.iota_dimension]))
        b.done()


@rule(TransposeOp)
def transpose_by_identity(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(x) => x, no dimension moving"""
    if list(op.dimensions) == list(range(len(op.dimensions))):
        forward(op, rewriter, op.operand)


@rule(TransposeOp, needs=LI, reads=(TransposeOp,))
def transpose_of_transpose(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(transpose(x)) => transpose(x)"""
    if (inner := made_by(op.operand, TransposeOp)) is not None:
        b = Builder(op, rewriter)
        order = tuple(inner.dimensions[d] for d in op.dimensions)
        b.like(TransposeOp, inner.operand, dimensions=integers(order))
        b.done()


@rule(TransposeOp, needs=LI)
def transpose_of_ones(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(x) => reshape(x), only dimensions of size 1 moving"""
    source = array(op.operand)
    moved = [d for d in op.dimensions if source.dimensions[d] != 1]
    if moved != sorted(moved) or list(op.dimensions) == sorted(op.dimensions):
        return
    if source.is_dynamic or not source.element_count:
        return
    b = Builder(op, rewriter)
    b.reshape(op.operand, op.shape)
    b.done()


@rule(TransposeOp, needs=LI, reads=(BroadcastOp,))
def transpose_of_broadcast(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(broadcast(x)) => broadcast(x), the dimensions of x keeping their order"""
    inner = made_by(op.operand, BroadcastOp)
    if inner is None or not inner.dimensions:
        return
    dims = [op.dimensions.index(d) for d in inner.dimensions]
    if dims == sorted(dims):
        b = Builder(op, rewriter)
        b.broadcast(inner.operand, dims, op.shape)
        b.done()


@rule(ReverseOp)
def reverse_of_ones(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(x) => x, only dimensions of size 1 reversed"""
    if all(array(op).dimensions[d] == 1 for d in op.dimensions) and not array(op).is_dynamic:
        forward(op, rewriter, op.operand)


@rule(ReverseOp, needs=LI, reads=(ReverseOp,))
def reverse_of_reverse(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(reverse(x)) => reverse(x), of the dimensions that one of them reverses"""
    if (inner := made_by(op.operand, ReverseOp)) is None:
        return
    dims = tuple(sorted(set(op.dimensions) ^ set(inner.dimensions)))
    if not dims:
        forward(op, rewriter, inner.operand)
        return
    b = Builder(op, rewriter)
    b.like(ReverseOp, inner.operand, dimensions=integers(dims))
    b.done()


@rule(ReverseOp, needs=LI)
def reverse_of_binary_with_scalar(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(f(x, bc(y))) => f(reverse(x), bc(y)), f binary and element-wise, y a scalar"""
    inner = op.operand.owner
    if not isinstance(inner, Binary) or inner.opcode.name not in ELEMENTWISE - {"compare"}:
        return
    if not op.operand.has_one_use() or inner.control_predecessors:
        return
    for place in (1, 0):
        other = inner.inputs[1 - place]
        if is_scalar_broadcast(inner.inputs[place]) is None or is_scalar_broadcast(other):
            continue
        b = Builder(op, rewriter)
        turned = b(ReverseOp, other, shape=array(other), dimensions=op.properties["dimensions"])
        operands = [turned.output, inner.inputs[place]]
        b.like(type(inner), *(operands if place else operands[::-1]))
        b.done()
        return


@rule(ReverseOp, needs=LI, reads=(ReshapeOp,))
def reverse_of_inserting_reshape(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(reshape(x)) => reshape(reverse(x)), the reshape only inserting dimensions of size 1"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is None or array(op).is_dynamic or not (ones := inserted_ones(inner)):
        return
    places = [d for d in range(array(op).rank) if d not in ones]
    dims = tuple(places.index(d) for d in op.dimensions if d in places)
    b = Builder(op, rewriter)
    source = array(inner.operand)
    turned = b(ReverseOp, inner.operand, shape=source, dimensions=integers(dims))
    b.reshape(turned, op.shape)
    b.done()


@rule(CopyOp, reads=(CopyOp,))
def copy_of_copy(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(copy(x)) => copy(x)"""
    inner = made_by(op.operand, CopyOp)
    if inner is not None and is_array(op) and not inner.control_predecessors:
        b = Builder(op, rewriter)
        b.like(CopyOp, inner.operand)
        b.done()


@rule(CopyOp, looks_far=True)
def copy_in_same_layout(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(x) => x, layouts the same or not yet meant"""
    if "sharding" in op.properties and any(
        use.operation.name == "hlo.return" for use in op.output.uses
    ):
        return
    if is_array(op) and (
        not options_of(rewriter).is_layout_sensitive or op.shape == array(op.operand)
    ):
        forward(op, rewriter, op.operand)


@rule(TransposeOp, needs=LI, reads=(DotOp,))
def transpose_of_dot(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(dot(a, b)) => dot(b, a), of matrices without batch dimensions"""
    inner = made_by(op.operand, DotOp)
    if inner is None or not op.operand.has_one_use() or inner.control_predecessors:
        return
    properties = dot.swapped(inner, op.dimensions)
    if properties is None:
        return
    b = Builder(op, rewriter)
    b.like(DotOp, inner.inputs[1], inner.inputs[0], **properties)
    b.done()


RULES = (
    reshape_of_empty,
    reshape_to_same_shape,
    reshape_of_reshape,
    reshape_of_broadcast,
    reshape_of_iota,
    transpose_by_identity,
    transpose_of_transpose,
    transpose_of_ones,
    transpose_of_broadcast,
    transpose_of_dot,
    reverse_of_ones,
    reverse_of_reverse,
    reverse_of_binary_with_scalar,
    reverse_of_inserting_reshape,
    copy_of_copy,
    copy_in_same_layout,
)
