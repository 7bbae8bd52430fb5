"""`map-inline`: the computation of a map on whole arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, Instruction, MapOp, ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, typed
from mlirhlo.rewrites.algsimp.mapping import keeps_types
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, RuleDriver, RulePass, rule
from mlirhlo.rewrites.simplify.dce import live_callers_first


@rule(MapOp)
def map_of_elementwise_instructions(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …), f => f's instructions on arrays, all of them element by element"""
    computation = rewriter.computation(op.to_apply)
    assert computation is not None
    shape = array(op)
    body = tuple(computation.instructions)
    if shape.is_dynamic or not all(map(_is_elementwise, body)) or not keeps_types(op, computation):
        return
    b = Builder(op, rewriter)
    values: dict[SSAValue, SSAValue] = {}
    for inner in body:
        if isinstance(inner, ParameterOp):
            values[inner.output] = op.inputs[inner.parameter_number]
            continue
        if isinstance(inner, ConstantOp):
            assert inner.literal is not None
            made: Instruction = b.spread(
                b.constant(inner.literal), typed(shape, array(inner).element_type)
            )
        else:
            properties = {
                k: v for k, v in inner.properties.items() if k not in ("metadata", "sharding")
            }
            if isinstance(inner, MapOp):
                properties["dimensions"] = integers(range(shape.rank))
            operands = [values[v] for v in inner.inputs]
            made = b(
                type(inner), *operands, shape=typed(shape, array(inner).element_type), **properties
            )
        values[inner.output] = made.output
    root = values[computation.root.output].owner
    if isinstance(root, Instruction) and root in b.made:
        b.done(root)


def _is_elementwise(op: Instruction) -> bool:
    if isinstance(op, ParameterOp | ConstantOp):
        return isinstance(op.shape, ArrayShape) and not op.shape.dimensions
    return (
        (op.opcode.elementwise or isinstance(op, MapOp))
        and not op.control_predecessors
        and isinstance(op.shape, ArrayShape)
        and not op.shape.dimensions
    )


@dataclass(frozen=True)
class MapInlinePass(RulePass):
    """Computes maps by instructions on whole arrays, outermost first.

    Before and after:

        %f { …  ROOT %r = f32[] add(%p, %q) }
        %m = f32[4] map(%x, %y), dimensions={0}, to_apply=%f      =>   %m = f32[4] add(%x, %y)

    Only computations of element-wise instructions, maps and scalar constants are inlined; what only maps called
    that were inlined stays as it is.
    Source: reference of the passes, "Other simplifiers", `map-inline`.
    """

    name = "map-inline"
    rules: ClassVar[tuple[Rule, ...]] = (map_of_elementwise_instructions,)

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Inlines; whether any map was inlined."""
        if not module.candidates(MapOp):
            return False
        driver = RuleDriver(module.op, self.selected(), trace=trace, name=self.name)
        done, left = 0, self.fuel
        for computation in live_callers_first(module):
            done += driver.apply_in(computation, None if left is None else left - done)
        return done > 0
