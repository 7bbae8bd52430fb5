"""`algsimp`: the algebraic simplifier, a list of rules in files by the opcode they look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.algsimp import (
    collectives,
    control,
    convolution,
    data,
    dot,
    dot_cost,
    dot_operands,
    mapping,
    reduce,
    reduce_window,
)
from mlirhlo.rewrites.algsimp.arithmetic import (
    add,
    compare,
    complex_parts,
    convert,
    divide,
    logic,
    minmax,
    multiply,
    select,
    subtract,
    transcendental,
)
from mlirhlo.rewrites.algsimp.movement import (
    broadcast,
    concatenate,
    dynamic_slice,
    gather,
    movement_chains,
    physical_moves,
    reshape,
    scatter,
    slicing,
)
from mlirhlo.rewrites.algsimp.options import AlgsimpOptions
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rule, RuleDriver
from mlirhlo.rewrites.settled import Settled

_FAMILIES = (
    transcendental,
    add,
    logic,
    compare,
    complex_parts,
    convert,
    divide,
    minmax,
    multiply,
    select,
    subtract,
    broadcast,
    reshape,
    movement_chains,
    physical_moves,
    slicing,
    concatenate,
    dynamic_slice,
    data,
    gather,
    scatter,
    control,
    collectives,
    reduce,
    reduce_window,
    dot,
    dot_operands,
    dot_cost,
    convolution,
    mapping,
)

_SWEEPS = 50
"""So many rewrites an instruction, and the pass is taken to go round in circles, as in XLA."""


@dataclass(frozen=True)
class AlgebraicSimplifierPass(AlgsimpOptions):
    """Simplifies by identities of arithmetic, of shapes and of data movement.

    Before and after:

        %z = f32[] constant(0)
        %b = f32[4] broadcast(%z), dimensions={}
        ROOT %r = f32[4] add(%x, %b)          =>   %x

    Fusion computations are left alone. Not every rule keeps every bit of floats, as XLA's do not:
    a rule's contract says what it keeps. Some make arithmetic on constants for a later pass to fold.
    Source: reference of the passes, "AlgebraicSimplifier".
    """

    name = "algsimp"
    exact = False
    rules: ClassVar[tuple[Rule, ...]] = tuple(r for family in _FAMILIES for r in family.RULES)

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Applies the rules to every computation but those of fusions; whether anything changed."""
        fused = module.known(HloModule.fused_computations)
        own = Trace(listeners=trace.listeners)
        settled = None if module.kept is None else Settled.of(module, self)
        driver = RuleDriver(
            module.op,
            self.selected(),
            trace=own,
            name=self.name,
            options=self,
            once=not self.run_to_fixed_point,
            most_each=_SWEEPS,
            settled=settled,
        )
        left = self.fuel
        for computation in tuple(module.computations):
            if computation.computation_name in fused:
                continue
            done = driver.apply_in(computation, left)
            left = None if left is None else left - done
        if settled is not None:
            settled.write_down()
        trace.rule_counts.update(own.rule_counts)
        return bool(own.rule_counts)
