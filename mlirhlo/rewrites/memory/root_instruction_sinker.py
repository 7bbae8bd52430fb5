"""`root-instruction-sinker`: what a computation returns is its last instruction."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.quick import insert_before
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit


@dataclass(frozen=True)
class RootInstructionSinkerPass(HloPass):
    """Lets every computation of a schedule end with its root.

    Before and after, in a schedule:

        ROOT %r = f32[4] add(%x, %y)   %t = token[] outfeed(%z, %u)
          =>   %r = f32[4] add(%x, %y)   %t = token[] outfeed(%z, %u)   ROOT %b = f32[4] bitcast(%r)

    Of a tuple the elements are taken and put together again. A module without a schedule stays, and so do fusions.
    Source: XLA's pass of this name.
    """

    name = "root-instruction-sinker"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Adds roots; whether any was missing."""
        if not module.is_scheduled:
            return False
        fused = module.known(HloModule.fused_computations)
        changed = False
        for computation in module.computations:
            if computation.computation_name in fused:
                continue
            root = computation.root
            if instruction_list(computation)[-1] is not root:
                _sink(computation, root)
                trace.rule_counts[self.name, "root_instruction_sinker"] += 1
                changed = True
        return changed


def _sink(computation: ComputationOp, root: Instruction) -> None:
    shape, made = root.shape, list[Instruction]()
    if isinstance(shape, TupleShape):
        for number, part in enumerate(shape.elements):
            made.append(make("get-tuple-element", [root], part, {"index": integer(number)}))
        made.append(make("tuple", list(made), shape, {}))
    else:
        made.append(make("bitcast", [root], shape, {}))
    ending = computation.terminator
    for op in made:
        inherit(op, root)
        insert_before(ending, op)
    ending.operands = [made[-1].output]
