"""`topk-decomposer`: the greatest elements by a sort and slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Block
from xdsl.rewriter import InsertPoint

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, string
from mlirhlo.dialects.hlo.attributes.dimensions import SliceAttr
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    GetTupleElementOp,
    IotaOp,
    SliceOp,
    SortOp,
    TopkOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import Builder, array, slices, typed
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, inherit, rule

S32 = PRIMITIVE_TYPES["s32"]


@rule(TopkOp)
def topk_values_by_sort(op: TopkOp, rewriter: Rewriter) -> None:
    """get-tuple-element(topk(x), 0), k => the first k of sort(x), the places read by nobody"""
    shape = array(op.inputs[0])
    users = [use.operation for use in op.output.uses]
    if shape.is_dynamic or not isinstance(op.shape, TupleShape) or op.control_predecessors:
        return
    reads = [u for u in users if isinstance(u, GetTupleElementOp) and u.index == 0]
    if not reads or len(reads) < len(users) or any(u.control_predecessors for u in reads):
        return
    properties: dict[str, Attribute] = {
        "dimensions": integers((shape.rank - 1,)),
        "is_stable": boolean(True),
        "to_apply": _comparator(op, shape.element_type, largest=op.largest, places=False),
    }
    sort = rewriter.build(SortOp, op.inputs[0], shape=shape, **properties)
    values = rewriter.build(SliceOp, sort, shape=op.shape.elements[0], slice=_first(op, shape))
    for made in (sort, values):
        inherit(made, op)
    rewriter.insert([sort, values], InsertPoint.before(op))
    for read in reads:
        rewriter.replace_by_value(read, values.output)
    rewriter.erase(op)


def _first(op: TopkOp, shape: ArrayShape) -> SliceAttr:
    last = shape.rank - 1
    return slices(
        [(0, size if dim < last else op.k, 1) for dim, size in enumerate(shape.dimensions)]
    )


@rule(TopkOp)
def topk_by_sort(op: TopkOp, rewriter: Rewriter) -> None:
    """topk(x), k => the first k of sort(x, iota), both"""
    shape = array(op.inputs[0])
    if shape.is_dynamic or not isinstance(op.shape, TupleShape):
        return
    last = shape.rank - 1
    b = Builder(op, rewriter)
    places = b(IotaOp, shape=typed(shape, S32), iota_dimension=integer(last))
    both = TupleShape((shape, typed(shape, S32)))
    comparator = _comparator(op, shape.element_type, largest=op.largest, places=True)
    sort = b(
        SortOp,
        op.inputs[0],
        places,
        shape=both,
        dimensions=integers((last,)),
        is_stable=boolean(True),
        to_apply=comparator,
    )
    first = _first(op, shape)
    parts = [
        b(
            SliceOp,
            b(GetTupleElementOp, sort, shape=whole, index=integer(number)),
            shape=part,
            slice=first,
        )
        for number, (whole, part) in enumerate(zip(both.elements, op.shape.elements, strict=True))
    ]
    b(TupleOp, *parts, shape=op.shape)
    b.done()


def _comparator(
    op: Instruction, type_: PrimitiveType, *, largest: bool, places: bool
) -> SymbolRefAttr:
    """x before y: of floats in total order, so that NaN has its place."""
    block = Block()
    parameters: list[Instruction] = []
    for number, element in enumerate((type_, type_, S32, S32) if places else (type_, type_)):
        made = make("parameter", (), ArrayShape(element, ()), {"parameter_number": integer(number)})
        append(block, made)
        parameters.append(made)
    properties = {"direction": string("GT" if largest else "LT")}
    if type_.is_float:
        properties["type"] = string("TOTALORDER")
    pred = ArrayShape(PRIMITIVE_TYPES["pred"], ())
    root = make("compare", parameters[:2], pred, properties)
    append(block, root)
    return add_computation(op, "compare_top", block, root)


@dataclass(frozen=True)
class TopkDecomposerPass(ExpanderPass):
    """Finds the greatest elements by sorting all with their places.

    Before and after:

        %t = (f32[2], s32[2]) topk(%x), k=2, largest=true
          =>   %t = (f32[2], s32[2]) tuple(slice(…sort(%x, iota)…), slice(…))

    Source: reference of the passes, "Other expanders".
    """

    name = "topk-decomposer"
    rules: ClassVar[tuple[Rule, ...]] = (topk_values_by_sort, topk_by_sort)
