"""`dce`: removes what nobody reads: instructions, tuple elements of fusions, parameters, computations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter, not_
from typing import TypeGuard, cast

from xdsl.ir import Block, Operation

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule, Listing, holder
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    CustomCallOp,
    FusionOp,
    GetTupleElementOp,
    Instruction,
    ParameterOp,
    ReturnOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.dialects.quick import erase, owners_of, replace
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.tuple_parts import keep_origin

_ALLOW_KEY = "xla_allow_dce_side_effecting_op"


@dataclass(frozen=True)
class DcePass(HloPass):
    """Removes instructions nobody reads, unread outputs and inputs of fusions, uncalled computations.

    Before and after:

        %dead = f32[4] negate(%x)
        ROOT %r = f32[4] add(%x, %x)        =>   ROOT %r = f32[4] add(%x, %x)

    Kept: side effects, parameters of the entry, instructions with control dependencies.
    Source: reference of the passes, "HloDCE".
    """

    name = "dce"

    remove_dead_parameters_from_entry_computation: bool = False
    """Removes unread parameters of the entry too, which changes the program's signature."""
    remove_cross_partition_collective_ops: bool = False
    """Removes dead collectives whose layout is not constrained."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Removes what is dead; whether anything was."""
        unread = module.known(_holding_unread)
        several = module.known(_of_several_outputs)
        changed = False
        if unread or several:
            order = module.known(callers_first)
            changed = _Removal(self, module).run(c for c in order if c in several or c in unread)
        reachable = called_from_entry(module) if changed else module.known(called_from_entry)
        for computation in tuple(module.computations):
            if computation not in reachable:
                computation.detach()
                computation.erase(safe_erase=False)
                changed = True
        return changed

    def removable(self, op: Instruction, effects: SideEffects) -> bool:
        """Whether `op`, which nobody reads, may go."""
        if isinstance(op, ParameterOp) or op.control_predecessors:
            return False
        allowed = (
            dict(op.frontend_attributes.entries).get(_ALLOW_KEY) if op.frontend_attributes else None
        )
        if allowed == "false":
            return False
        if isinstance(op, CustomCallOp):
            if op.custom_call_target == "Sharding" and _sharding_matters(op):
                return False
            if op.custom_call_target == "tpu_custom_call" and allowed == "true":
                return True
        if isinstance(op, WhileOp) and _disabled_loop_dce(op):
            return False
        if self.remove_cross_partition_collective_ops and op.opcode.collective:
            return "constrain_layout" not in op.properties
        return not effects.of_instruction(op)


class _Removal:
    """Computations to clean: what one loses may leave something unread in its callers and in the fusions it calls."""

    def __init__(self, options: DcePass, module: HloModule) -> None:
        self._options, self._module = options, module
        self._effects = module.known(SideEffects.of)
        self._callers = module.known(call_sites)
        self._work: dict[ComputationOp, None] = {}

    def run(self, computations: Iterable[ComputationOp]) -> bool:
        """Cleans computations, the first first, and those that this affects; whether anything was removed."""
        self._work = dict.fromkeys(reversed(tuple(computations)))
        changed = False
        while self._work:
            changed |= self._clean(self._work.popitem()[0])
        return changed

    def _clean(self, computation: ComputationOp) -> bool:
        sites = [
            site
            for site in self._callers.get(computation.computation_name, ())
            if site.parent is not None
        ]
        changed = _drop_unread_fusion_outputs(computation, self._effects, sites)
        unread: list[Instruction] = []
        parameters: list[ParameterOp] = []
        for op in computation.instructions:
            if isinstance(op, ParameterOp):
                parameters.append(op)
            elif op.output.first_use is None:
                unread.append(op)
        for op in unread:
            if self._options.removable(op, self._effects):
                self._erase(op)
                changed = True
        dead = [p for p in parameters if p.output.first_use is None and not p.control_predecessors]
        if dead:
            changed |= self._remove_parameters(computation, dead, sites)
        return changed

    def _erase(self, op: Instruction) -> None:
        """Erases `op`, which nobody reads, and then what only it read."""
        stack = [op]
        while stack:
            gone = stack.pop()
            operands = owners_of(gone)
            erase(gone)
            for owner in dict.fromkeys(operands):
                if self._is_unread(owner):
                    stack.append(owner)

    def _is_unread(self, op: Operation | Block) -> TypeGuard[Instruction]:
        """Whether `op`, which lost a reader, may go; it may also have lost the only reader of one of its outputs."""
        if not isinstance(op, Instruction) or op.parent is None:
            return False
        if op.output.first_use is None:
            if isinstance(op, ParameterOp):
                self._work[holder(op)] = None
            return self._options.removable(op, self._effects)
        if isinstance(op, FusionOp) and isinstance(op.shape, TupleShape):
            self._work[self._effects.computations[op.calls]] = None
        return False

    def _remove_parameters(
        self, computation: ComputationOp, dead: Sequence[ParameterOp], sites: Sequence[Instruction]
    ) -> bool:
        if computation.is_entry is not None:
            if not self._options.remove_dead_parameters_from_entry_computation:
                return False
        elif not sites or not all(isinstance(site, FusionOp) for site in sites):
            return False
        if any("output_to_operand_aliasing" in site.properties for site in sites):
            return False
        parameters = computation.parameters
        gone = {p.parameter_number for p in dead}
        layout = self._module.program_layout
        for parameter in dead:
            erase(parameter)
        for number, parameter in enumerate(p for p in parameters if p.parameter_number not in gone):
            parameter.properties["parameter_number"] = integer(number)
        for site in sites:
            kept = [v for i, v in enumerate(site.inputs) if i not in gone]
            dropped = [v.owner for i, v in enumerate(site.inputs) if i in gone]
            site.operands = [*kept, *site.control_predecessors]
            for owner in dict.fromkeys(dropped):
                if self._is_unread(owner):
                    self._erase(owner)
        if computation.is_entry is not None:
            self._module.set_program_layout(
                [s for i, s in enumerate(layout.parameters) if i not in gone], layout.result
            )
        return True


def remove_unread_inputs(module: HloModule) -> None:
    """Cleans the bodies of fusions after rewrites: HLO allows no unread instruction there, parameters included."""
    fusions = [op for op in module.instructions_of(FusionOp) if isinstance(op, FusionOp)]
    if fusions:
        known = HloModule.by_name(module)
        bodies = dict.fromkeys(known[op.calls] for op in fusions if op.calls in known)
        unread = [
            body for body in bodies if any(op.output.first_use is None for op in body.instructions)
        ]
        if unread:
            _Removal(DcePass(), HloModule(module.op)).run(unread)


def erase_unused(op: Instruction, effects: SideEffects) -> None:
    """Erases `op`, which nobody uses, and then what only it used; side effects and parameters stay."""
    stack = [op]
    while stack:
        gone = stack.pop()
        if gone.parent is None or gone.output.first_use is not None:
            continue
        operands = owners_of(gone)
        erase(gone)
        for owner in operands:
            if (
                isinstance(owner, Instruction)
                and owner.output.first_use is None
                and not isinstance(owner, ParameterOp)
                and not owner.control_predecessors
                and not effects.of_instruction(owner)
            ):
                stack.append(owner)


def _disabled_loop_dce(op: WhileOp) -> bool:
    attributes = op.frontend_attributes
    return (
        attributes is not None
        and dict(attributes.entries).get("xla_disable_while_loop_dce") == "true"
    )


def _sharding_matters(op: CustomCallOp) -> bool:
    operand = op.inputs[0]
    owner = operand.owner
    uses = tuple(operand.uses)
    return (
        len(uses) > 1
        or isinstance(owner, ParameterOp)
        or any(isinstance(use.operation, ReturnOp) for use in uses)
    )


def _drop_unread_fusion_outputs(
    computation: ComputationOp, effects: SideEffects, sites: Sequence[Instruction]
) -> bool:
    """fusion(…) giving (a, b, c) of which only a and c are read => a fusion giving (a, c)"""
    if len(sites) != 1 or not isinstance(site := sites[0], FusionOp):
        return False
    root = computation.root
    if not isinstance(root, TupleOp):
        return False
    if (
        site.kind == "kCustom"
        or site.sharding is not None
        or "output_to_operand_aliasing" in site.properties
        or site.control_predecessors
        or site.output.first_use is None
    ):
        return False
    users = [use.operation for use in site.output.uses]
    if not all(isinstance(u, GetTupleElementOp) and not u.control_predecessors for u in users):
        return False
    elements = root.inputs
    reads = sorted({u.index for u in users if isinstance(u, GetTupleElementOp)})
    kept = [
        i
        for i, value in enumerate(elements)
        if i in reads
        or (isinstance(value.owner, Instruction) and effects.of_instruction(value.owner))
    ]
    if len(kept) == len(elements) or not kept or not isinstance(root.shape, TupleShape):
        return False
    shape = root.shape
    keep_origin(site.properties, kept if len(kept) > 1 else kept[0])
    if len(kept) == 1:
        computation.terminator.operands = [elements[kept[0]]]
        new_shape = shape.elements[kept[0]]
        site.output._type = type_of(new_shape)  # pyright: ignore[reportPrivateUsage]
        for user in users:
            replace(user.results[0], site.output)
            user.detach()
            user.erase()
    else:
        new_shape = TupleShape(tuple(shape.elements[i] for i in kept))
        replacement = make(
            "tuple", [elements[i] for i in kept], new_shape, name=root.instruction_name
        )
        replacement.properties.update({k: v for k, v in root.properties.items() if k == "metadata"})
        computation.block.insert_op_before(replacement, computation.terminator)
        computation.terminator.operands = [replacement.output]
        site.output._type = type_of(new_shape)  # pyright: ignore[reportPrivateUsage]
        for user in users:
            assert isinstance(user, GetTupleElementOp)
            user.properties["index"] = integer(kept.index(user.index))
    if root.output.first_use is None:
        root.detach()
        root.erase()
    return True


def _holding_unread(module: HloModule) -> set[ComputationOp]:
    """Computations with an instruction that nobody reads."""
    results = list(
        chain.from_iterable(map(attrgetter("results"), module.known(Listing.of).instructions))
    )
    are_unread = map(not_, map(attrgetter("first_use"), results))
    return {holder(cast(Instruction, result.owner)) for result in compress(results, are_unread)}


def _of_several_outputs(module: HloModule) -> set[ComputationOp]:
    """Bodies of fusions that give a tuple."""
    known = module.known(HloModule.by_name)
    fusions = [op for op in module.candidates(FusionOp) if isinstance(op.shape, TupleShape)]
    return {known[n] for op in fusions for n in op.called_computations if n in known}


def call_sites(module: HloModule) -> dict[str, list[Instruction]]:
    """Instructions that call each computation."""
    sites: dict[str, list[Instruction]] = {}
    for op in module.calling():
        for name in op.called_computations:
            sites.setdefault(name, []).append(op)
    return sites


def _calling(module: HloModule) -> dict[ComputationOp, list[Instruction]]:
    """Instructions of each computation that may call others."""
    found: dict[ComputationOp, list[Instruction]] = {}
    for op in module.calling():
        found.setdefault(holder(op), []).append(op)
    return found


def callers_first(module: HloModule) -> tuple[ComputationOp, ...]:
    """Computations, each before those it calls."""
    known, calling = module.known(HloModule.by_name), module.known(_calling)
    done: set[ComputationOp] = set()
    order: list[ComputationOp] = []
    for start in module.computations:
        stack: list[tuple[ComputationOp, bool]] = [(start, False)]
        while stack:
            computation, called_are_done = stack.pop()
            if called_are_done:
                order.append(computation)
            elif computation not in done:
                done.add(computation)
                stack.append((computation, True))
                ops = calling.get(computation, ())
                called = [name for op in ops for name in op.called_computations]
                stack += [(known[name], False) for name in dict.fromkeys(called) if name in known]
    order.reverse()
    return tuple(order)


def live_callers_first(module: HloModule) -> Iterator[ComputationOp]:
    """The computations that the entry reaches, each before those it calls.

    What is called is read when the next one is taken: whoever inlines calls as they come copies nothing twice, and
    is not given what only inlined calls reached.
    """
    live = {module.entry.computation_name}
    for computation in callers_first(module):
        if computation.computation_name in live:
            yield computation
            callers = [op for op in computation.instructions if op.calling_keys]
            live.update(*(op.called_computations for op in callers))


def called_from_entry(module: HloModule) -> frozenset[ComputationOp]:
    """The entry, and all that run when it does; what was erased since the instructions were listed calls none."""
    known, calling = module.known(HloModule.by_name), module.known(_calling)
    work = [module.entry]
    found = set(work)
    for computation in work:  # grows while it is walked
        for op in calling.get(computation, ()):
            for name in op.called_computations if op.parent is not None else ():
                callee = known.get(name)
                if callee is not None and callee not in found:
                    found.add(callee)
                    work.append(callee)
    return frozenset(found)
