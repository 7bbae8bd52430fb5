"""`custom-call-expander`: instructions for custom calls that compute nothing of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import boolean, integer
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import CopyOp, CustomCallOp, GetDimensionSizeOp, TopkOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.importing import LATE
from mlirhlo.interp.custom_calls.annotations import ANNOTATIONS, NEW_BUFFERS
from mlirhlo.rewrites.algsimp.common import Builder
from mlirhlo.rewrites.computations import module_of
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

with LATE:
    from mlirhlo.interp import engine
    from mlirhlo.interp.custom_calls import top_k


_TOP_K = ("TopK", "__gpu$TopK")
OVERWRITTEN = "mlirhlo.overwritten"
"""Frontend attribute of memory without contents in which nothing is read that was not written there."""


@rule(CustomCallOp)
def annotation_of_a_value(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(x), a remark about x => x, or a copy of it in another layout"""
    if op.custom_call_target not in ANNOTATIONS or len(op.inputs) != 1 or op.control_predecessors:
        return
    have, want = op.input_shapes[0], op.shape
    if have == want:
        rewriter.replace_by_value(op, op.inputs[0])
        return
    if not isinstance(have, ArrayShape) or not isinstance(want, ArrayShape):
        return
    if have.dimensions != want.dimensions or have.element_type is not want.element_type:
        return
    if have.is_dynamic or want.is_dynamic:
        return
    b = Builder(op, rewriter)
    b.like(CopyOp, op.inputs[0])
    b.done()


def is_overwritten(op: CustomCallOp) -> bool:
    """Whether an instruction makes memory, and says that it needs no contents."""
    if op.custom_call_target not in NEW_BUFFERS or op.inputs:
        return False
    said = op.properties.get("frontend_attributes")
    return isinstance(said, FrontendAttributesAttr) and OVERWRITTEN in dict(said.data.entries)


@rule(CustomCallOp)
def buffer_without_contents(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(), memory without defined contents => zeros, unless all of it will be written"""
    if op.custom_call_target not in NEW_BUFFERS or op.inputs or op.control_predecessors:
        return
    if not isinstance(op.shape, ArrayShape) or op.shape.is_dynamic or is_overwritten(op):
        return
    b = Builder(op, rewriter)
    b.splat(op.shape, 0)
    b.done()


@rule(CustomCallOp)
def best_of_a_row(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(x), "TopK" => topk(x)"""
    if op.custom_call_target not in _TOP_K or op.control_predecessors:
        return
    shape, operand = op.shape, op.input_shapes[0]
    if not isinstance(shape, TupleShape) or not isinstance(operand, ArrayShape):
        return
    values = shape.elements[0]
    if not isinstance(values, ArrayShape) or len(shape.elements) != 2 or operand.is_dynamic:
        return

    engine.load_meanings()
    frame = engine.DeviceFrame(engine.Interpreter(module_of(op).op))
    largest = top_k.is_largest(op, frame, operand.element_type.dtype)
    b = Builder(op, rewriter)
    b.like(TopkOp, op.inputs[0], k=integer(values.dimensions[-1]), largest=boolean(largest))
    b.done()


@rule(GetDimensionSizeOp)
def size_that_is_known(op: GetDimensionSizeOp, rewriter: Rewriter) -> None:
    """get-dimension-size(x) => its size, where that is static"""
    shape = op.input_shapes[0]
    (dim,) = op.dimensions
    if not isinstance(shape, ArrayShape) or shape.is_dynamic_dimension(dim):
        return
    if op.control_predecessors:
        return
    b = Builder(op, rewriter)
    b.scalar(PRIMITIVE_TYPES["s32"], shape.dimensions[dim])
    b.done()


@dataclass(frozen=True)
class CustomCallExpanderPass(RulePass):
    """Writes custom calls that say nothing, or that an instruction says too, by instructions.

    Before and after:

        %c = f32[4] custom-call(%x), custom_call_target="MoveToDevice"   =>   %x

    Needs: partitioning and placement are done; what the annotations say is lost.
    """

    name = "custom-call-expander"
    rules: ClassVar[tuple[Rule, ...]] = (
        annotation_of_a_value,
        buffer_without_contents,
        best_of_a_row,
        size_that_is_known,
    )
