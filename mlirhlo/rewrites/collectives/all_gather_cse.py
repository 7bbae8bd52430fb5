"""`all-gather-cse`: the same parameter gathered once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import (
    AllGatherOp,
    ComputationOp,
    ConvertOp,
    GetTupleElementOp,
    OptBarrierOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.rewrites.algsimp.common import array, is_array
from mlirhlo.rewrites.collectives.common import Surroundings, key_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter

_Source: TypeAlias = "tuple[SSAValue, tuple[int, ...], tuple[PrimitiveType, ...]]"
"""A parameter, the place in it, and the types that its numbers took on the way."""


def _source(value: SSAValue) -> _Source | None:
    """What a value is of a parameter, seen through tuples, barriers and converts; None for anything else."""
    places: list[int] = []
    types = [array(value).element_type]
    while True:
        op = value.owner
        match op:
            case ParameterOp():
                return value, tuple(reversed(places)), tuple(types)
            case GetTupleElementOp():
                places.append(op.index)
                value = op.inputs[0]
            case TupleOp() if places:
                value = op.inputs[places.pop()]
            case OptBarrierOp() if len(op.inputs) == 1:
                value = op.inputs[0]
            case ConvertOp() if not places:
                value = op.inputs[0]
                types.append(array(value).element_type)
            case _:
                return None


@dataclass(frozen=True)
class AllGatherCsePass(HloPass):
    """Gathers a parameter once where it is gathered several times in the same way.

    Before and after:

        %a = f32[8] all-gather(%p), …   %b = f32[8] all-gather(opt-barrier(%p)), …   =>   %a for both

    Barriers, which keep `cse` from finding them, tuples and the same converts between the parameter and the
    all-gathers make no difference; channels do not count. Source: XLA's pass of this name; it takes converts by way
    of different types for the same too, which give other numbers.
    """

    name = "all-gather-cse"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Lets later ones go; whether there were any."""
        if len(module.candidates(AllGatherOp)) < 2:
            return False
        around = Surroundings.of(module)
        first: dict[tuple[ComputationOp, object, _Source], AllGatherOp] = {}
        changed = False
        for op in around.collectives(AllGatherOp):
            assert isinstance(op, AllGatherOp)
            if len(op.inputs) != 1 or not is_array(op) or op.control_predecessors:
                continue
            source = _source(op.inputs[0])
            if source is None:
                continue
            key = (holder(op), (key_of(op, around), op.properties.get("sharding")), source)
            kept = first.setdefault(key, op)
            if kept is not op and kept.shape == op.shape:
                before = [v.owner for v in op.inputs]
                rewriter = Rewriter(op)
                rewriter.replace_by_value(op, kept.output)
                rewriter.erase_unread(*before)
                trace.rule_counts[self.name, "all_gather_cse"] += 1
                changed = True
        return changed
