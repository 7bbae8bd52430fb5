"""Rules of dot that look at what makes its operands, and of dots of vectors."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.element_types import F32, F64, PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    ConcatenateOp,
    ConvertOp,
    DotOp,
    DynamicSliceOp,
    GetTupleElementOp,
    Instruction,
    MultiplyOp,
    ParameterOp,
    ReduceOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    is_constant,
    made_by,
    options_of,
    sized,
    slices,
    typed,
)
from mlirhlo.rewrites.algsimp.dot import (
    batch_of,
    contracted_of,
    free_of,
    is_plain,
    numbers,
    swapped_properties,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.physical import groups
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.rules import Rewriter, rule


def _is_static(op: DotOp) -> bool:
    return is_plain(op) and not any(array(v).is_dynamic for v in (op.output, *op.inputs))


def accumulator(type_: PrimitiveType) -> PrimitiveType:
    """The type in which products of numbers of `type_` are added up."""
    return F32 if type_.is_float and type_ is not F64 else type_


@rule(DotOp, contract="rounding", needs=("enable_dot_strength_reduction", *LI))
def dot_of_vector(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => reduce_add(bc(a) * bc(b)), a or b without dimensions of its own; on CPUs both"""
    contracted = len(op.lhs_batch_dims) + len(op.lhs_contracting_dims)
    vectors = [array(value).rank == contracted for value in op.inputs[:2]]
    wanted = all(vectors) if options_of(rewriter).executing_on_cpu else any(vectors)
    if not wanted or not _is_static(op) or not op.lhs_contracting_dims:
        return
    if element(op).is_complex or element(op).name == "pred":
        return
    if not all(array(v).element_count for v in (op.output, *op.inputs)):
        return
    batch, type_ = len(op.lhs_batch_dims), accumulator(element(op))
    summed = [array(op.inputs[0]).dimensions[d] for d in op.lhs_contracting_dims]
    shape = typed(sized(array(op), [*array(op).dimensions, *summed]), type_)
    last = tuple(range(array(op).rank, shape.rank))
    b = Builder(op, rewriter)
    factors: list[SSAValue] = []
    for side, value in enumerate(op.inputs):
        own = free_of(op, side)
        order = [*batch_of(op, side), *own, *contracted_of(op, side)]
        if element(value) is not type_:
            value = b(ConvertOp, value, shape=typed(array(value), type_)).output
        if order != sorted(order):
            value = b.transpose(value, order).output
        into = [*range(batch), *range(batch, batch + len(own)), *last]
        if len(into) < shape.rank:
            value = b.broadcast(value, into, shape).output
        factors.append(value)
    product = b(MultiplyOp, *factors, shape=shape)
    properties = {"dimensions": integers(last), "to_apply": binary_computation(op, "add", type_)}
    total = b(ReduceOp, product, b.scalar(type_, 0), shape=typed(array(op), type_), **properties)
    if type_ is not element(op):
        b.like(ConvertOp, total)
        b.done()
    else:
        b.done(total)


@rule(DotOp, contract="rounding", needs=LI, reads=(ReshapeOp,))
def dot_of_reordered_contraction(op: DotOp, rewriter: Rewriter) -> None:
    """dot(reshape(transpose(a)), C) => dot(reshape(a), reshape(transpose(reshape(C)))), C constant

    The transpose moves dimensions only among those that the reshape merges into the contracting one.
    """
    flat = made_by(op.inputs[0], ReshapeOp)
    turned = None if flat is None else made_by(flat.operand, TransposeOp)
    if flat is None or turned is None or not _is_static(op) or not is_constant(op.inputs[1]):
        return
    if len(op.lhs_contracting_dims) != 1 or array(turned).is_dynamic:
        return
    dim = op.lhs_contracting_dims[0]
    parts = groups(array(turned).dimensions, array(flat).dimensions)
    merged = next((a for a, b in parts or () if b == [dim]), None)
    if merged is None or len(merged) < 2:
        return
    moved = [turned.dimensions[d] for d in merged]
    if sorted(moved) != merged or moved == merged:
        return
    if any(turned.dimensions[d] != d for d in range(array(turned).rank) if d not in merged):
        return
    sizes = [array(turned).dimensions[d] for d in merged]
    other = op.rhs_contracting_dims[0]
    constant = array(op.inputs[1])
    order = [moved.index(d) for d in merged]
    before, after = range(other), range(other + len(sizes), constant.rank + len(sizes) - 1)
    b = Builder(op, rewriter)
    split = (*constant.dimensions[:other], *sizes, *constant.dimensions[other + 1 :])
    wide = b.reshape(op.inputs[1], sized(constant, split))
    back = b.transpose(wide, [*before, *(other + p for p in order), *after])
    again = b.reshape(back, sized(constant, constant.dimensions))
    bare = b.reshape(turned.operand, sized(array(flat), array(flat).dimensions))
    b.like(DotOp, bare, again, **_all_numbers(op))
    b.done()


def _all_numbers(op: DotOp) -> dict[str, Attribute]:
    sides = (op.lhs_batch_dims, op.rhs_batch_dims)
    return numbers(op, sides, (op.lhs_contracting_dims, op.rhs_contracting_dims))


def _is_matrices(op: DotOp) -> bool:
    ranks = [array(v).rank for v in op.inputs]
    return ranks == [2, 2] and not op.lhs_batch_dims and len(op.lhs_contracting_dims) == 1


@rule(DotOp, contract="rounding", needs=LI, reads=(ConcatenateOp,))
def dot_of_concatenate(op: DotOp, rewriter: Rewriter) -> None:
    """dot(concat(a, b, …), C) => dot(a, slice(C)) + dot(b, slice(C)) + …, joined where contracted"""
    if not _is_static(op) or not _is_matrices(op):
        return
    for side in (0, 1):
        joined, constant = made_by(op.inputs[side], ConcatenateOp), op.inputs[1 - side]
        if joined is None or not is_constant(constant):
            continue
        if joined.dimensions != contracted_of(op, side) or len(joined.inputs) < 2:
            continue
        (dim,) = contracted_of(op, 1 - side)
        b = Builder(op, rewriter)
        total: Instruction | None = None
        start = 0
        for part in joined.inputs:
            end = start + array(part).dimensions[joined.dimensions[0]]
            bounds = [(0, n, 1) for n in array(constant).dimensions]
            bounds[dim] = (start, end, 1)
            shape = sized(array(constant), [limit - low for low, limit, _ in bounds])
            cut = b(SliceOp, constant, shape=shape, slice=slices(bounds)).output
            pair = (part, cut) if side == 0 else (cut, part)
            product = b.like(DotOp, *pair, **_all_numbers(op))
            total = product if total is None else b.like(AddOp, total, product)
            start = end
        b.done(total)
        return


@rule(DotOp, contract="rounding", needs=LI, reads=(DynamicSliceOp,))
def dot_of_slice_of_constant(op: DotOp, rewriter: Rewriter) -> None:
    """dot(dynamic-slice(C, i), D) => dynamic-slice(dot(C, D), i), one row or column of constants"""
    if not _is_static(op) or not _is_matrices(op):
        return
    for side in (0, 1):
        cut, other = made_by(op.inputs[side], DynamicSliceOp), op.inputs[1 - side]
        if cut is None or not is_constant(cut.inputs[0]) or not is_constant(other):
            continue
        (free,), whole = free_of(op, side), array(cut.inputs[0])
        (summed,) = contracted_of(op, side)
        if len(cut.inputs) != 3 or cut.dynamic_slice_sizes[free] != 1:
            continue
        if cut.dynamic_slice_sizes[summed] != whole.dimensions[summed]:
            continue
        b = Builder(op, rewriter)
        sizes = list(array(op).dimensions)
        sizes[side] = whole.dimensions[free]
        pair = (cut.inputs[0], other) if side == 0 else (other, cut.inputs[0])
        all_rows = b(DotOp, *pair, shape=sized(array(op), sizes), **_all_numbers(op))
        start = cut.inputs[1 + free]
        zero = b.scalar(element(start), 0).output
        starts = (start, zero) if side == 0 else (zero, start)
        taken = integers(array(op).dimensions)
        b.like(DynamicSliceOp, all_rows, *starts, dynamic_slice_sizes=taken)
        b.done()
        return


@rule(DotOp, contract="rounding", needs=LI, reads=(TransposeOp,))
def dot_of_transposes(op: DotOp, rewriter: Rewriter) -> None:
    """dot(transpose(a), transpose(b)) => transpose(dot(b, a)), both turned alike; or of dot(a, b)"""
    a, c = (made_by(v, TransposeOp) for v in op.inputs) if len(op.inputs) == 2 else (None, None)
    if a is None or c is None or a.dimensions != c.dimensions or not _is_static(op):
        return
    batch, dims = len(op.lhs_batch_dims), a.dimensions
    leading = tuple(range(batch))
    if len(dims) != batch + 2 or array(c).rank != batch + 2 or sorted(dims[:batch]) != [*leading]:
        return
    if op.lhs_batch_dims != leading or op.rhs_batch_dims != leading:
        return
    if op.lhs_contracting_dims != (batch + 1,) or op.rhs_contracting_dims != (batch,):
        return
    turned = dims[batch:] == (batch + 1, batch)
    pair = (c.operand, a.operand) if turned else (a.operand, c.operand)
    places = [dims.index(d) for d in range(batch + 2)]
    b = Builder(op, rewriter)
    properties = numbers(op, (leading, leading), ((batch + 1,), (batch,)))
    if turned and "operand_precision" in properties:
        properties["operand_precision"] = swapped_properties(op)["operand_precision"]
    shape = sized(array(op), [array(op).dimensions[p] for p in places])
    b.like(TransposeOp, b(DotOp, *pair, shape=shape, **properties), dimensions=integers(dims))
    b.done()


_PARAMETER_LIKE = classes_of(lambda row: row.keeps_bytes or row.movement is Movement.PERMUTE) | {
    ConvertOp,
    GetTupleElementOp,
}


def _is_parameter(value: SSAValue) -> bool:
    owner = value.owner
    while isinstance(owner, Instruction) and type(owner) in _PARAMETER_LIKE:
        owner = owner.inputs[0].owner
    return isinstance(owner, ParameterOp)


@rule(DotOp, contract="rounding", needs=("enable_move_dot_param_to_rhs", *LI), looks_far=True)
def dot_of_parameter(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => transpose(dot(b, a)), a moved from a parameter only, b not"""
    if not _is_static(op) or not _is_parameter(op.inputs[0]) or _is_parameter(op.inputs[1]):
        return
    batch = len(op.lhs_batch_dims)
    left, right = (len(free_of(op, side)) for side in (0, 1))
    first = range(batch + right, batch + right + left)
    order = (*range(batch), *first, *range(batch, batch + right))
    sizes = list(array(op).dimensions)
    turned = [*sizes[:batch], *sizes[batch + left :], *sizes[batch : batch + left]]
    b = Builder(op, rewriter)
    shape = sized(array(op), turned)
    product = b(DotOp, op.inputs[1], op.inputs[0], shape=shape, **swapped_properties(op))
    b.like(TransposeOp, product, dimensions=integers(order))
    b.done()


RULES = (
    dot_of_slice_of_constant,
    dot_of_concatenate,
    dot_of_reordered_contraction,
    dot_of_transposes,
    dot_of_parameter,
    dot_of_vector,
)
