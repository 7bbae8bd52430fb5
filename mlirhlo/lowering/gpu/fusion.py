"""`gpu-fusion`: kernels become one where the modelled device then takes less time.

Each candidate is built as a fusion, taken through the structured stage and scheduled; its time is that of the launches
it would have. So what decides is what this compiler would generate, and no change makes the model's sum worse.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    FusionOp,
    GetTupleElementOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import detach, insert_before, replace
from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, device, read_device
from mlirhlo.lowering.gpu.joined import (
    Joined,
    arrays_of,
    between,
    is_before,
    last_part,
    remove,
)
from mlirhlo.lowering.gpu.kernel_times import KernelTimes
from mlirhlo.lowering.gpu.model import KernelCost
from mlirhlo.rewrites.control_flow.defuser import drop_uncalled
from mlirhlo.rewrites.fusion import running
from mlirhlo.rewrites.fusion.building import Builder
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

MAX_KERNELS = 600
"""Of a computation: in larger ones, kernels stay as they are, since candidates are built to be judged."""
_SIBLINGS = 2
"""Readers of a value that are compared with the one before."""
_EFFORT = 24
"""Instructions of candidates that are looked at, for each in the computation."""
_NO_GAIN = 1.0
"""Nanoseconds that decide nothing."""


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
            merger = _Merger(
                module=module,
                builder=builder,
                bodies=bodies,
                computation=computation,
                gpu=_described(self.gpu),
                fuel=left,
            )
            changed += merger.run()
        trace.rule_counts[self.name, "merged"] += changed
        if changed:
            drop_uncalled(module)
        return changed > 0


@functools.lru_cache(maxsize=1024)
def _described(gpu: str) -> GpuDevice:
    return read_device(gpu) if "{" in gpu else device(gpu)


def modelled_cost(module: HloModule, gpu: GpuDevice) -> KernelCost:
    """What all kernels of a fused module do that are made of the structured stage, each counted once."""
    total, bodies = KernelCost(), module.by_name()
    for computation in running(module):
        times = KernelTimes(bodies=bodies, computation=computation, gpu=gpu)
        for op in instruction_list(computation):
            cost = times.cost(op)
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


@dataclass(slots=True, kw_only=True)
class _Merger(KernelTimes):
    """The kernels of one computation."""

    module: HloModule
    builder: Builder
    fuel: int | None
    numbers: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Of instructions in the order of the block; those that were inserted or moved share one with a neighbour."""
    instead: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What stands for values that candidates may still name."""

    def run(self) -> int:
        """Merges what is worth it, the greatest saving first; how many times."""
        instructions = instruction_list(self.computation)
        self.numbers = {op: number for number, op in enumerate(instructions)}
        kernels = (op for op in instructions if self._time(op) is not None)
        ops = list(itertools.islice(kernels, MAX_KERNELS + 1))
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
            if op.parent is None or change is None or -saving != change.saving:
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
            behind = (
                user
                for use in reversed(list(value.uses))
                if (user := cast(Instruction, use.operation)) is not op
                and self.kernels.get(user)
                and self._time(user)
                and self._is_before(op, user)
            )
            found.update(dict.fromkeys(reversed(list(itertools.islice(behind, _SIBLINGS)))))
        readers = self._readers(op)
        return (user for user in list(found)[:_SIBLINGS] if user not in readers)

    def _is_before(self, op: Instruction, other: Instruction) -> bool:
        """Whether one kernel runs before another, by their numbers, since a walk along the block is long."""
        one, two = self.numbers[op], self.numbers[other]
        return one < two or (one == two and is_before(op, other))

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
            self.numbers[moved] = self.numbers[fresh[-1]]
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
        self.numbers[fusion] = self.numbers[before]
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
