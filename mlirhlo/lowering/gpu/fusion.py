"""`gpu-fusion`: kernels become one where the modelled device then takes less time.

Each candidate is built as a fusion, taken through the structured stage and scheduled; its time is that of the launches
it would have. So what decides is what this compiler would generate, and no change makes the model's sum worse.
"""

from __future__ import annotations

import functools
import itertools
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import detach, insert_before, replace
from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, device, read_device
from mlirhlo.lowering.gpu.joined import (
    Joined,
    arrays_of,
    between,
    is_before,
    is_in_parts,
    join,
    last_part,
    remove,
)
from mlirhlo.lowering.gpu.model import KernelCost, kernel_cost
from mlirhlo.lowering.plan.in_memory import is_same_memory
from mlirhlo.lowering.schedule.passes import schedule
from mlirhlo.lowering.structured import optimize_kernel, to_structured
from mlirhlo.rewrites.defuser import drop_uncalled
from mlirhlo.rewrites.fusion import running
from mlirhlo.rewrites.fusion.building import Builder
from mlirhlo.rewrites.fusion.graph import INNER, barrier_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

MAX_CODE = 160
"""Instructions of a fusion."""
MAX_OPERANDS, MAX_OUTPUTS = 32, 8
"""Arrays that a kernel reads and writes."""
MAX_KERNELS = 600
"""Of a computation: in larger ones, kernels stay as they are, since candidates are built to be judged."""
_SIBLINGS = 2
"""Readers of a value that are compared with the one before."""
_EFFORT = 24
"""Instructions of candidates that are looked at, for each in the computation."""
_NO_GAIN = 1.0
"""Nanoseconds that decide nothing."""
_WRITERS = frozenset({"dynamic-update-slice", "scatter", "select-and-scatter"})
"""Opcodes that write into an array: they stay with what they are fused with already."""
_KERNELS = frozenset({*INNER, FusionOp, OP_CLASSES["reduce-window"], OP_CLASSES["reshape"]})
_FREE = frozenset({"bitcast", "bitcast-convert", "copy", "reshape"})


@dataclass(frozen=True)
class GpuFusionPass(HloPass):
    """Makes kernels one where a model of the described device then takes less time.

    Before and after:

        %a = f32[1024] fusion(%x), kind=kLoop, calls=%f
        %s = f32[] fusion(%a), kind=kInput, calls=%g
        %c = f32[1024] fusion(%a), kind=kLoop, calls=%h
            =>   %t = (f32[], f32[1024]) fusion(%x), kind=kInput, calls=%fused

    A kernel is computed in all that read it, or becomes one with one of them, or with another that reads the same:
    whichever saves most first. Kernels that write into an operand, and those of libraries, stay.
    Needs: `fusion`, of which it goes on.
    """

    name = "gpu-fusion"

    gpu: str = DEFAULT
    """The device: its name, or its description as XLA's `gpu_target_config` has it."""
    fuel: int | None = None
    """At most so many times kernels become one."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Merges kernels of every computation that runs as a whole; whether there were any."""
        fuel, changed = self.fuel, 0
        builder, bodies = Builder(module), module.by_name()
        for computation in running(module):
            left = None if fuel is None else fuel - changed
            merger = _Merger(module, builder, bodies, computation, _described(self.gpu), left)
            changed += merger.run()
        trace.rule_counts[self.name, "merged"] += changed
        if changed:
            drop_uncalled(module)
        return changed > 0


@functools.cache
def _described(gpu: str) -> GpuDevice:
    return read_device(gpu) if "{" in gpu else device(gpu)


def modelled_cost(module: HloModule, gpu: GpuDevice) -> KernelCost:
    """What all kernels of a fused module do that are made of the structured stage, each counted once."""
    total, bodies = KernelCost(), module.by_name()
    for computation in running(module):
        merger = _Merger(module, Builder(module), bodies, computation, gpu, None)
        for op in instruction_list(computation):
            cost = merger.cost(op)
            total.launches += [] if cost is None else cost.launches
    return total


@dataclass(frozen=True, slots=True)
class _Change:
    """Kernels that become others."""

    saving: float
    """Nanoseconds."""
    members: tuple[Instruction, ...]
    """Those that go away."""
    joined: tuple[tuple[Instruction, Joined], ...]
    """Fusions, and in front of what they go."""


@dataclass(slots=True)
class _Merger:
    """The kernels of one computation."""

    module: HloModule
    builder: Builder
    bodies: dict[str, ComputationOp]
    """By name; fusions that are put in join them."""
    computation: ComputationOp
    gpu: GpuDevice
    fuel: int | None
    kernels: dict[Instruction, tuple[KernelCost, float] | None] = field(
        default_factory=dict[Instruction, "tuple[KernelCost, float] | None"]
    )
    """What kernels do, and modelled nanoseconds; None for what is no kernel that may become one with others."""
    effort: int = 0
    """Instructions of candidates that may be looked at yet."""
    joins: dict[object, tuple[Joined, float] | None] = field(
        default_factory=dict[object, "tuple[Joined, float] | None"]
    )
    """Candidates that were looked at."""
    controlling: set[SSAValue] = field(default_factory=set[SSAValue])
    instead: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What stands for values that candidates may still name."""

    def __post_init__(self) -> None:
        self.controlling = {
            value
            for op in self.computation.instructions
            if CONTROL_PREDECESSORS in op.properties
            for value in op.control_predecessors
        }

    def run(self) -> int:
        """Merges what is worth it, the greatest saving first; how many times."""
        ops = [op for op in instruction_list(self.computation) if self._time(op) is not None]
        self.effort = _EFFORT * sum(map(self._code, ops))
        if len(ops) > MAX_KERNELS or sum(self._time(op) != 0.0 for op in ops) < 2:
            return 0
        heap: list[tuple[float, int, Instruction]] = []
        best: dict[Instruction, _Change] = {}
        number = itertools.count()

        def look(op: Instruction) -> None:
            best.pop(op, None)
            change = self._best(op) if self._time(op) is not None else None
            if change is not None:
                best[op] = change
                heappush(heap, (-change.saving, next(number), op))

        for op in ops:
            look(op)
        merged = 0
        while heap and (self.fuel is None or merged < self.fuel):
            saving, _, op = heappop(heap)
            change = best.get(op)
            if change is None or -saving != change.saving:
                continue
            if any(member.parent is None for member in change.members):
                look(op)
                continue
            del best[op]
            again = self._neighbours(change.members)
            fresh = self._apply(change)
            if fresh is None:
                continue
            merged += 1
            for other in dict.fromkeys((*again, *fresh)):
                if other.parent is not None:
                    look(other)
        return merged

    # Judging

    def _kernel(self, op: Instruction) -> tuple[KernelCost, float] | None:
        if op not in self.kernels:
            self.kernels[op] = self._judged(op)
        return self.kernels[op]

    def _time(self, op: Instruction) -> float | None:
        found = self._kernel(op)
        return None if found is None else found[1]

    def _judged(self, op: Instruction) -> tuple[KernelCost, float] | None:
        if type(op) not in _KERNELS or isinstance(op, ConstantOp) or not is_in_parts(op):
            return None
        if CONTROL_PREDECESSORS in op.properties or op.output in self.controlling:
            return None
        if op.opcode.name in _WRITERS or (isinstance(op, FusionOp) and self._stays(op)):
            return None
        cost = self.cost(op)
        return None if cost is None else (cost, cost.time(self.gpu))

    def _stays(self, op: FusionOp) -> bool:
        inside = self.bodies[op.calls].instructions
        return op.kind == "kCustom" or any(i.opcode.name in _WRITERS for i in inside)

    def cost(self, op: Instruction) -> KernelCost | None:
        """What the kernel of an instruction does; None where there is none, or none of the structured stage."""
        if isinstance(op, ConstantOp | GetTupleElementOp | ParameterOp | TupleOp):
            return None
        shapes = [part for _, part in leaves(op.shape)]
        if not all(
            isinstance(s, ArrayShape) and not s.is_dynamic and s.element_count for s in shapes
        ):
            return None
        if op.opcode.name in _FREE and is_same_memory(op):
            return KernelCost()
        return self._kernel_cost(op, self.bodies)

    def _kernel_cost(
        self, op: Instruction, bodies: Mapping[str, ComputationOp]
    ) -> KernelCost | None:
        try:
            kernel = to_structured(op, bodies, "candidate")
            optimize_kernel(kernel)
            schedule(kernel, self.gpu)
        except HloError:
            return None
        return kernel_cost(kernel, self.gpu)

    def _joined(
        self, members: tuple[Instruction, ...], outputs: Sequence[SSAValue]
    ) -> tuple[Joined, float] | None:
        """The fusion of kernels and its time; None where there is none."""
        key = (members, tuple(outputs))
        if key not in self.joins:
            self.joins[key] = self._built(members, outputs)
        return self.joins[key]

    def _built(
        self, members: tuple[Instruction, ...], outputs: Sequence[SSAValue]
    ) -> tuple[Joined, float] | None:
        code = sum(map(self._code, members))
        if not 0 < len(outputs) <= MAX_OUTPUTS or code > MAX_CODE or self.effort < code:
            return None
        if any(barrier_of(op) != barrier_of(members[0]) for op in members):
            return None
        self.effort -= code
        found = join(self.bodies, members, outputs)
        if len(found.operands) > MAX_OPERANDS:
            return None
        arguments = Block(arg_types=[v.type for v in found.operands]).args
        bodies = ChainMap({found.body.computation_name: found.body}, self.bodies)
        cost = self._kernel_cost(found.fusion(arguments), bodies)
        return None if cost is None else (found, cost.time(self.gpu))

    def _code(self, op: Instruction) -> int:
        return len(instruction_list(self.bodies[op.calls])) if isinstance(op, FusionOp) else 1

    # Candidates

    def _readers(self, op: Instruction) -> list[Operation]:
        """What reads the arrays of a kernel, each once."""
        found = (use.operation for value in arrays_of(op) for use in value.uses)
        return list(dict.fromkeys(found))

    def _best(self, op: Instruction) -> _Change | None:
        """What is best done with a kernel and what reads it, or reads what it reads."""
        changes = [
            c for c in self._changes(op) if c.saving >= (0.0 if self._time(op) == 0.0 else _NO_GAIN)
        ]
        return max(changes, key=lambda change: change.saving, default=None)

    def _changes(self, op: Instruction) -> Iterator[_Change]:
        readers = self._readers(op)
        kernels = [user for user in readers if isinstance(user, Instruction)]
        kernels = [user for user in kernels if self._time(user) is not None]
        are_kernels = bool(readers) and len(kernels) == len(readers)
        if are_kernels and (change := self._into_all(op, kernels)) is not None:
            yield change
        if self.module.is_scheduled or not self._time(op):
            return
        beside = [user for user in kernels if self._time(user)][:_SIBLINGS]
        if are_kernels and len(readers) == 1:
            beside = []
        for other in (*beside, *self._siblings(op)):
            if (change := self._beside(op, other)) is not None:
                yield change

    def _is_walked_alike(self, op: Instruction, other: Instruction) -> bool:
        """Whether a launch may be a part of both kernels."""
        pair = self._kernel(op), self._kernel(other)
        return None not in pair and not pair[0][0].spaces.isdisjoint(pair[1][0].spaces)  # type: ignore[index]

    def _into_all(self, op: Instruction, readers: Sequence[Instruction]) -> _Change | None:
        """A kernel computed in each that reads it."""
        kernel = self._kernel(op)
        assert kernel is not None
        if not kernel[0].is_elementwise and not all(
            self._is_walked_alike(op, user) for user in readers
        ):
            return None
        saving = self._time(op) or 0.0
        joined: list[tuple[Instruction, Joined]] = []
        for user in readers:
            found = self._joined((op, user), self._outputs((user,)))
            if found is None:
                return None
            saving += (self._time(user) or 0.0) - found[1]
            joined.append((user, found[0]))
        return _Change(saving, (op, *readers), tuple(joined))

    def _beside(self, op: Instruction, other: Instruction) -> _Change | None:
        """Two kernels as one that gives all the results of both."""
        if not self._is_walked_alike(op, other):
            return None
        found = self._joined((op, other), self._outputs((op, other)))
        if found is None:
            return None
        saving = (self._time(op) or 0.0) + (self._time(other) or 0.0) - found[1]
        return _Change(saving, (op, other), ((other, found[0]),))

    def _outputs(self, members: tuple[Instruction, ...]) -> list[SSAValue]:
        """Arrays of kernels that others read."""
        return [
            value
            for op in members
            for value in arrays_of(op)
            if any(use.operation not in members for use in value.uses)
        ]

    def _siblings(self, op: Instruction) -> Iterator[Instruction]:
        """Kernels behind it that read what it reads, a few."""
        found: dict[Instruction, None] = {}
        for value in op.inputs:
            shape = shape_of(value.type)
            if not isinstance(shape, ArrayShape) or shape.element_count <= 1:
                continue
            users = [cast(Instruction, use.operation) for use in value.uses]
            users = [u for u in users if u is not op and self.kernels.get(u) and is_before(op, u)]
            users = [u for u in users if self._time(u)]
            found.update(dict.fromkeys(users[-_SIBLINGS:]))
        readers = self._readers(op)
        return (user for user in list(found)[:_SIBLINGS] if user not in readers)

    def _neighbours(self, members: Iterable[Instruction]) -> list[Instruction]:
        """Kernels of which something changes when these become others."""
        found: dict[Instruction, None] = {}
        for op in members:
            for value in op.inputs:
                owner = value.owner
                if isinstance(owner, GetTupleElementOp):
                    owner = owner.operand.owner
                if isinstance(owner, Instruction):
                    found[owner] = None
        return [op for op in found if self.kernels.get(op) is not None]

    # Changing

    def _apply(self, change: _Change) -> list[Instruction] | None:
        """Puts the fusions in; None where that would close a cycle."""
        is_beside = len(change.joined) == 1 and len(change.members) == 2
        first, last = change.members[0], change.members[-1]
        behind: list[Operation] = []
        if is_beside and len(change.joined[0][1].outputs) > len(self._outputs((last,))):
            found = between(first, last)
            if found is None:
                return None
            behind = found
        fresh = [self._insert(user, joined) for user, joined in change.joined]
        for op in reversed(change.members):
            for value in arrays_of(op):
                if isinstance(value.owner, GetTupleElementOp):
                    remove(value.owner)
            remove(op)
        self.computation.properties.pop("storage_order", None)
        after: Operation = fresh[-1]
        for moved in behind:
            detach(moved)
            following = last_part(after).next_op
            assert following is not None
            insert_before(following, moved)
            after = moved
        return fresh

    def _insert(self, before: Instruction, joined: Joined) -> Instruction:
        """Puts a fusion in front of a kernel, and lets all read it."""
        body = joined.body
        label = before.opcode.name if not isinstance(before, FusionOp) else "fusion"
        name = self.builder.computations.unique(f"fused_{label}".replace("-", "_"))
        body.properties["sym_name"] = string(name)
        body.properties.update(self.computation.thread_property)
        self.bodies[name] = body
        self.computation.parent.insert_op_before(body, self.computation)  # type: ignore[union-attr]
        title = self.builder.instructions.unique(
            f"{joined.kind[1:].lower()}_{label}_fusion".replace("-", "_")
        )
        fusion = joined.fusion([*map(self._current, joined.operands)], title)
        inherit(fusion, before)
        insert_before(before, fusion)
        if len(joined.outputs) == 1:
            self._replace(joined.outputs[0], fusion.output)
            fusion.instruction_name = title
            return fusion
        for number, value in enumerate(joined.outputs):
            part = make(
                "get-tuple-element", [fusion], shape_of(value.type), {"index": integer(number)}
            )
            part.instruction_name = self.builder.instructions.unique("part")
            insert_before(before, part)
            self._replace(value, part.output)
        return fusion

    def _replace(self, old: SSAValue, new: SSAValue) -> None:
        replace(old, new)
        self.instead[old] = new

    def _current(self, value: SSAValue) -> SSAValue:
        while value in self.instead:
            value = self.instead[value]
        return value
