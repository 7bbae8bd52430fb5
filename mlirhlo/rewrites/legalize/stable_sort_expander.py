"""`stable-sort-expander`: stable sorts compare places where keys are equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingAttr
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, IotaOp, ParameterOp, SortOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import Builder, array, typed
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation, called
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

S32 = PRIMITIVE_TYPES["s32"]
PRED = PRIMITIVE_TYPES["pred"]


@rule(SortOp)
def stable_sort(op: SortOp, rewriter: Rewriter) -> None:
    """sort(x, …), is_stable => sort(x, …, iota) that compares the iota where neither key is first"""
    if not op.is_stable:
        return
    shape = array(op.inputs[0])
    (dim,) = op.dimensions
    if shape.is_dynamic or shape.dimensions[dim] >= 1 << 31:
        return
    b = Builder(op, rewriter)
    places = b(IotaOp, shape=typed(shape, S32), iota_dimension=integer(dim))
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    properties = {k: v for k, v in op.properties.items() if k not in ("is_stable", "metadata")}
    properties["to_apply"] = _comparator(op)
    whole = TupleShape((*parts, places.shape))
    shardings = _shardings(properties.pop("sharding", None), len(parts))
    sort = b(SortOp, *op.inputs, places, shape=whole, **properties)
    if shardings:
        sort.properties["sharding"] = ShardingAttr(Sharding.tuple_of([*shardings, shardings[0]]))
    found: list[Instruction] = []
    for number, part in enumerate(parts):
        element = b(GetTupleElementOp, sort, shape=part, index=integer(number))
        if shardings:
            element.properties["sharding"] = ShardingAttr(shardings[number])
        found.append(element)
    if isinstance(op.shape, TupleShape):
        b(TupleOp, *found, shape=op.shape)
    b.done()


def _shardings(attribute: Attribute | None, count: int) -> tuple[Sharding, ...]:
    """Those of so many results; none where the sort has none."""
    if not isinstance(attribute, ShardingAttr):
        return ()
    return attribute.data.elements or (attribute.data,) * count


def _comparator(op: SortOp) -> SymbolRefAttr:
    """x before y, or neither before the other and x's place first."""
    computation = called(op, op.to_apply)
    block = Block()
    first = _copy(block, op, swapped=False)
    second = _copy(block, op, swapped=True)
    count = len(computation.parameters)
    scalar = ArrayShape(PRED, ())
    places: list[Instruction] = []
    for number in (count, count + 1):
        place = make("parameter", (), ArrayShape(S32, ()), {"parameter_number": integer(number)})
        append(block, place)
        places.append(place)
    earlier = make("compare", places, scalar, {"direction": string("LT")})
    same = make("compare", [first, second], scalar, {"direction": string("EQ")})
    root = make("select", [same, earlier, first], scalar)
    for made in (earlier, same, root):
        append(block, made)
    return add_computation(op, f"{computation.computation_name}.stable", block, root)


def _copy(block: Block, op: SortOp, *, swapped: bool) -> Instruction:
    """The comparator's instructions on (x, y), or on (y, x) with the parameters there already."""
    computation = called(op, op.to_apply)
    values: dict[SSAValue, SSAValue] = {}
    here = [o for o in block.ops if isinstance(o, ParameterOp)]
    by_number = {p.parameter_number: p for p in here}
    for inner in computation.instructions:
        if isinstance(inner, ParameterOp) and swapped:
            values[inner.output] = by_number[inner.parameter_number ^ 1].output
            continue
        copy = clone_instruction(inner, values)
        append(block, copy)
        values[inner.output] = copy.output
    root = values[computation.root.output].owner
    assert isinstance(root, Instruction)
    return root


@dataclass(frozen=True)
class StableSortExpanderPass(ExpanderPass):
    """Makes stable sorts of sorts that are not, by comparing places where keys are equal.

    Before and after:

        %s = f32[8] sort(%x), dimensions={0}, is_stable=true, to_apply=%less
          =>   %s = get-tuple-element((f32[8], s32[8]) sort(%x, iota), …, to_apply=%less.stable), index=0

    Source: reference of the passes, "Other expanders".
    """

    name = "stable-sort-expander"
    rules: ClassVar[tuple[Rule, ...]] = (stable_sort,)
