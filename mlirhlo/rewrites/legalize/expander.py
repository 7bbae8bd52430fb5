"""What expanders share: they write one instruction by many, and leave fused computations alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import SymbolRefAttr

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.rewrites.algsimp.common import Builder
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.legalize.indexed_loops import Writer
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, RuleDriver, RulePass


@dataclass(frozen=True)
class ExpanderPass(RulePass):
    """A list of rules that adds computations or calls of libraries, which a fusion may not have."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Applies the rules outside of fusions; whether anything changed."""
        return self.apply_outside(module, trace, self.selected(), Callees(self))

    def apply_outside(
        self, module: HloModule, trace: Trace, rules: Sequence[Rule], options: object
    ) -> bool:
        """Applies some rules outside of fusions; whether anything changed."""
        driver = RuleDriver(module.op, rules, trace=trace, name=self.name, options=options)
        found = module.candidates(*driver.kinds)
        if not found:
            return False
        fused = module.known(HloModule.fused_computations)
        done = 0
        for computation in dict.fromkeys(map(holder, found)):
            if computation.computation_name not in fused:
                left = None if self.fuel is None else self.fuel - done
                done += driver.apply(computation, left)
        if isinstance(options, Callees):
            for computation in options.unordered:
                put_in_order(computation)
        return done > 0


@dataclass
class Callees:
    """What one run of an expander made: computations, each once for all its callers."""

    expander: ExpanderPass
    """Whose options count."""
    made: dict[object, SymbolRefAttr] = field(default_factory=dict[object, SymbolRefAttr])
    """By what they are for, and the thread of their callers."""
    unordered: dict[ComputationOp, None] = field(default_factory=dict[ComputationOp, None])
    """Computations in which users stand before what they read; put in order once, at the end."""


def out_of_order(computation: ComputationOp, rewriter: Rewriter) -> None:
    """Tells that something in a computation reads now what stands behind it."""
    options = rewriter.options
    if isinstance(options, Callees):
        options.unordered[computation] = None
    else:
        put_in_order(computation)


def put_in_order(computation: ComputationOp) -> None:
    """Operands before users again."""
    block = computation.block
    for op in post_order(instruction_list(computation)):
        block.detach_op(op)
        block.insert_op_before(op, computation.terminator)


def expand_to_call(
    op: Instruction, rewriter: Rewriter, key: object, name: str, build: Callable[[Graph], Value]
) -> None:
    """Replaces `op` by a call of what `build` writes; instructions of one `key` share a callee."""
    options = rewriter.options
    made = options.made if isinstance(options, Callees) else {}
    key = (key, holder(op).thread)
    callee = made.get(key)
    if callee is None:
        graph, block = Graph.of(op)
        root = build(graph)
        callee = made[key] = add_computation(op, name, block, root.op)
    call = make("call", op.inputs, op.shape, {"to_apply": callee})
    for kept in ("sharding", "frontend_attributes"):
        if kept in op.properties:
            call.properties[kept] = op.properties[kept]
    if op.control_predecessors:
        call = make(
            "call",
            op.inputs,
            op.shape,
            dict(call.properties),
            control_predecessors=op.control_predecessors,
        )
    rewriter.replace(op, call)


def expand_in_place(op: Instruction, rewriter: Rewriter, build: Callable[..., Value]) -> None:
    """Replaces `op` by what `build(graph, *operands)` writes on its operands."""
    from typing import cast

    b = Builder(op, rewriter)
    graph = Graph(op, Writer(b.made.append))
    root = build(graph, *(Value(graph, cast(Instruction, v.owner)) for v in op.inputs))
    b.done(root.op)
