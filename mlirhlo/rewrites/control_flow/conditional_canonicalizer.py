"""`conditional-canonicalizer`: conditionals whose operands and results are tuples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, ConditionalOp
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.quick import insert_before, put_operand, read_instead
from mlirhlo.rewrites.cloning import clone_computation
from mlirhlo.rewrites.computations import rename_callees
from mlirhlo.rewrites.control_flow.flatten_call_graph import unshare
from mlirhlo.rewrites.control_flow.while_loops import count_calls, part, retype_parameter
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True)
class ConditionalCanonicalizerPass(HloPass):
    """Gives conditionals tuples, and takes tuples of them, where they have arrays.

    Before and after:

        ROOT %c = f32[4] conditional(%p, f32[4] %x, f32[4] %y), true_computation=%f, false_computation=%g
          =>   %c = (f32[4]) conditional(%p, (f32[4]) tuple(%x), (f32[4]) tuple(%y)), …
               ROOT %get-tuple-element = f32[4] get-tuple-element(%c), index=0

    Branches that somebody else calls are copied before they change. Conditionals with shardings stay. Source: XLA's
    pass of this name.
    """

    name = "conditional-canonicalizer"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites; whether any conditional changed."""
        computations = module.by_name()
        wanted = [
            op
            for op in module.candidates(ConditionalOp)
            if isinstance(op, ConditionalOp)
            and _has_arrays(op)
            and not _is_sharded(op, computations)
        ]
        if not wanted:
            return False
        own = Counter(name for op in wanted for name in op.called_computations)
        calls = count_calls(module)
        names = NameUniquer(computations)
        tupled: dict[str, str] = {}
        for name, count in own.items():
            branch = computations[name]
            tupled[name] = name
            if count != calls[name]:
                tupled[name] = names.unique(f"{name}.clone")
                copied = clone_computation(branch, tupled[name])
                insert_before(branch, copied)
                branch = copied
            _take_and_give_tuples(branch)
        for op in wanted:
            _write(op, tupled)
            trace.rule_counts[self.name, "conditional_canonicalizer"] += 1
        unshare(module.afresh())
        return True


def _has_arrays(op: ConditionalOp) -> bool:
    return any(not isinstance(s, TupleShape) for s in (op.shape, *op.input_shapes[1:]))


def _is_sharded(op: ConditionalOp, computations: dict[str, ComputationOp]) -> bool:
    branches = [computations[name] for name in op.called_computations]
    told = [op, *(b.root for b in branches), *(p for b in branches for p in b.parameters)]
    return any("sharding" in each.properties for each in told)


def _take_and_give_tuples(branch: ComputationOp) -> None:
    (parameter,) = branch.parameters
    if not isinstance(shape := parameter.shape, TupleShape):
        new = retype_parameter(branch, TupleShape((shape,)))
        element = part(new.output, 0, shape)
        read_instead(new.output, element.output)
        put_operand(element, 0, new.output)
        after = new.next_op
        assert after is not None
        insert_before(after, element)
    root = branch.root
    if not isinstance(root.shape, TupleShape):
        whole = make("tuple", [root], TupleShape((root.shape,)))
        insert_before(branch.terminator, whole)
        put_operand(branch.terminator, 0, whole.output)


def _write(op: ConditionalOp, names: dict[str, str]) -> None:
    rename_callees((op,), names)
    for number, (value, shape) in enumerate(zip(op.inputs, op.input_shapes, strict=True)):
        if number and not isinstance(shape, TupleShape):
            whole = make("tuple", [value], TupleShape((shape,)))
            insert_before(op, whole)
            put_operand(op, number, whole.output)
    if not isinstance(op.shape, TupleShape):
        properties = dict(op.properties)
        element = part(op.output, 0, op.shape)
        if (origin := properties.pop("origin", None)) is not None:
            element.properties["origin"] = origin
        new = make("conditional", op.inputs, TupleShape((op.shape,)), properties)
        new.instruction_name = op.instruction_name
        put_operand(element, 0, new.output)
        Rewriter(op).replace(op, (new, element))
