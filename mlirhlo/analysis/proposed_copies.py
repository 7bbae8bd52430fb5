"""Copies that a module might have: what they would read, and who would read them, without being in it.

A proposed copy stands at a reader's operand, for one part of it, or at a part of a parameter, for all readers of
that part. It is a `copy` without operands that is in no block. Analyses that are given proposals answer as they
would for the module with all of these copies, tuples taken apart and put together again where they need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.analysis.dataflow import Position, ShapeIndex, operand_at
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.ops import CopyOp, GetTupleElementOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import subshape
from mlirhlo.dialects.hlo.types import shape_of, type_of


class Place(NamedTuple):
    """Where a copy is proposed."""

    reader: Operation
    """Who reads it; the parameter, where all of its readers do."""
    number: int
    """Of the reader's operand; `READERS` at a parameter."""
    part: ShapeIndex
    """Of the operand or parameter: what is copied."""


READERS = -1
"""In place of an operand's number: all readers of a parameter."""


@dataclass(slots=True)
class _Within:
    """Copies of one computation."""

    copies: list[CopyOp] = field(default_factory=list[CopyOp])
    """Those proposed."""
    waiting: dict[CopyOp, CopyOp] = field(default_factory=dict[CopyOp, CopyOp])
    """Those that would run after another one."""
    of_parameters: dict[Operation, list[CopyOp]] = field(
        default_factory=dict[Operation, "list[CopyOp]"]
    )
    """Those of parameters, by what they stand before; in front of the others."""
    of_readers: dict[Operation, list[CopyOp]] = field(
        default_factory=dict[Operation, "list[CopyOp]"]
    )
    """Those of readers, by what they stand before."""


@dataclass(slots=True)
class ProposedCopies:
    """Those of one module."""

    places: dict[CopyOp, Place] = field(default_factory=dict[CopyOp, Place])
    waits: dict[CopyOp, CopyOp] = field(default_factory=dict[CopyOp, CopyOp])
    """Copies that would run after another one, proposed or not both of them."""
    _in: dict[ComputationOp, _Within] = field(default_factory=dict[ComputationOp, "_Within"])
    _of_element: dict[tuple[Operation, int], dict[ShapeIndex, CopyOp]] = field(
        default_factory=dict[tuple[Operation, int], "dict[ShapeIndex, CopyOp]"]
    )
    """Those of parameters, by the element of the parameter."""
    _behind: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    """By parameter: what follows it and is no parameter."""
    _readers: dict[Instruction, list[tuple[Operation, int]]] = field(
        default_factory=dict[Instruction, "list[tuple[Operation, int]]"]
    )
    _at: dict[tuple[Operation, int], dict[ShapeIndex, CopyOp]] = field(
        default_factory=dict[tuple[Operation, int], "dict[ShapeIndex, CopyOp]"]
    )

    def propose(self, place: Place) -> CopyOp:
        """One more. Those of readers stand before the reader, those of parameters before all that is no parameter;
        the last one last."""
        reader, number, part = place
        value = reader.results[0] if number == READERS else reader.operands[number]
        copy = create(CopyOp, (), type_of(subshape(shape_of(value.type), part)), {})
        self.places[copy] = place
        self._at.setdefault((reader, number), {})[part] = copy
        within = self._within(copy)
        within.copies.append(copy)
        if number == READERS:
            if part:
                self._of_element.setdefault((reader, part[0]), {})[part] = copy
            following = behind_parameters(reader, self._behind)
            within.of_parameters.setdefault(following, []).append(copy)
        else:
            within.of_readers.setdefault(reader, []).append(copy)
        return copy

    def wait(self, copy: CopyOp, other: CopyOp) -> None:
        """Lets a copy run after another one of its computation."""
        self.waits[copy] = other
        self._within(copy).waiting[copy] = other

    def _within(self, copy: CopyOp) -> _Within:
        return self._in.setdefault(self.holder(copy), _Within())

    def at(self, reader: Operation, number: int) -> dict[ShapeIndex, CopyOp]:
        """Those at an operand, or at a parameter, by the part."""
        return self._at.get((reader, number), {})

    def holder(self, op: Operation) -> ComputationOp:
        """The computation that a proposed copy, or an instruction of the module, stands in."""
        place = self.places.get(cast(CopyOp, op))
        parent = (op if place is None else place.reader).parent_op()
        return cast(ComputationOp, parent)

    def in_order(self, computation: ComputationOp) -> list[Instruction]:
        """Instructions as they stand, each after the copies proposed before it."""
        listed = instruction_list(computation)
        within = self._in.get(computation)
        if within is None:
            return listed
        before: dict[int, list[CopyOp]] = {}
        for copies in (within.of_parameters, within.of_readers):
            for op, here in copies.items():
                before[id(op)] = before.get(id(op), []) + here
        end: Operation = computation.terminator
        found: list[Operation] = []
        for op in (*listed, end):
            if id(op) in before:
                found += before[id(op)]
            found.append(op)
        found.pop()
        return cast("list[Instruction]", found)

    def as_they_stand(self) -> list[CopyOp]:
        """All of them, computation by computation."""
        in_one = dict.fromkeys(map(self.holder, self.places))
        listed = [op for computation in in_one for op in self.in_order(computation)]
        return [op for op in listed if type(op) is CopyOp and op in self.places]

    # ------------------------------------------------------------ who reads what

    def source(self, reader: Operation, number: int, index: ShapeIndex) -> Position:
        """What stands at a part of an operand."""
        copy = self._at.get((reader, number), {}).get(index)
        if copy is not None:
            return copy, ()
        return self._out_of(*operand_at(reader, number, index))

    def source_of(self, copy: CopyOp) -> Position:
        """What a copy, proposed or not, reads."""
        place = self.places.get(copy)
        if place is None:
            return self.source(copy, 0, ())
        if place.number == READERS:
            return cast(Instruction, place.reader), place.part
        return self._out_of(*operand_at(*place))

    def _out_of(self, op: Instruction, index: ShapeIndex) -> Position:
        copy = self._at.get((op, READERS), {}).get(index)
        return (op, index) if copy is None else (copy, ())

    def uses(self, op: Instruction, index: ShapeIndex) -> Iterator[Place]:
        """Operands that are a part of what `op` makes, or hold it; not of those that take tuples apart or
        make one."""
        place = self.places.get(cast(CopyOp, op))
        if place is not None and place.number != READERS:
            yield place
            return
        if place is not None:
            op, index = cast(Instruction, place.reader), place.part
        elif (copy := self._at.get((op, READERS), {}).get(index)) is not None:
            yield Place(copy, 0, ())
            return
        for user, number in self._holding(op):
            copy = self._at.get((user, number), {}).get(index)
            yield Place(user, number, index) if copy is None else Place(copy, 0, ())

    def _holding(self, op: Instruction) -> list[tuple[Operation, int]]:
        """Who reads an instruction, and as which operand, but for those that take tuples apart or make one."""
        found = self._readers.get(op)
        if found is None:
            uses = [(use.operation, use.index) for use in op.output.uses]
            kinds = (GetTupleElementOp, TupleOp)
            found = self._readers[op] = [use for use in uses if not isinstance(use[0], kinds)]
        return found

    # ------------------------------------------------------------ what runs before what

    def waited_for_in(self, computation: ComputationOp) -> dict[Operation, list[Instruction]]:
        """By instruction of a computation, proposed or not: what it runs after, beside its operands."""
        within = self._in.get(computation)
        if within is None:
            return {}
        found: dict[Operation, list[Instruction]] = {
            copy: [other] for copy, other in within.waiting.items()
        }
        read: set[Operation] = set()
        for copy in within.copies:
            reader, number, _ = self.places[copy]
            if number == READERS:
                if reader not in read:
                    read.add(reader)
                    found.update(
                        (user, []) for user in _users(reader.results[0]) if user not in found
                    )
            else:
                found.setdefault(reader, []).append(copy)
                found.setdefault(copy, []).extend(self._sources(copy))
        for op, others in found.items():
            if type(op) is GetTupleElementOp:
                others += self._copies_of(op.operand, (op.index,))
            else:
                for value in op._operands:  # pyright: ignore[reportPrivateUsage]
                    others += self._copies_of(value, None)
        return found

    def _sources(self, copy: CopyOp) -> Iterator[Instruction]:
        """What a copy proposed at an operand runs after."""
        reader, number, index = self.places[copy]
        value = reader.operands[number]
        while index and isinstance(owner := value.owner, TupleOp):
            value, index = owner.inputs[index[0]], index[1:]
        yield cast(Instruction, value.owner)
        yield from self._copies_of(value, index)

    def _copies_of(self, value: SSAValue, index: ShapeIndex | None) -> Iterator[CopyOp]:
        """Of the part of a parameter that a value's part is; None = of all parts of it."""
        path: ShapeIndex = ()
        while isinstance(owner := value.owner, GetTupleElementOp):
            value, path = owner.operand, (owner.index, *path)
        copies = self._at.get((cast(Instruction, owner), READERS))
        if not copies:
            return
        if index is not None:
            if (copy := copies.get((*path, *index))) is not None:
                yield copy
            return
        if path:
            copies = self._of_element.get((cast(Instruction, owner), path[0]), {})
        for part, copy in copies.items():
            # A part that was taken out runs after the copy itself.
            if part[: len(path)] == path and (len(part) > len(path) or not path):
                yield copy


def _users(value: SSAValue) -> Iterator[Operation]:
    """Who reads a value, or a part taken out of it."""
    for use in value.uses:
        user = use.operation
        yield user
        if isinstance(user, GetTupleElementOp):
            yield from _users(user.output)


def behind_parameters(op: Operation, known: dict[Operation, Operation]) -> Operation:
    """The first op behind a parameter that is none; `known` has what was found before."""
    passed: list[Operation] = []
    following: Operation | None = op
    while isinstance(following, ParameterOp):
        passed.append(following)
        following = known.get(following, following.next_op)
    assert following is not None
    known.update(dict.fromkeys(passed, following))
    return following


class PartReaders:
    """Who reads parts of values, while the module stays as it is."""

    def __init__(self) -> None:
        self._whole: dict[Instruction, list[Operation]] = {}
        self._parts: dict[Instruction, dict[int, list[Operation]]] = {}

    def of(self, op: Instruction, at: int) -> list[Operation]:
        """Readers of one part of a tuple and of the whole of it."""
        if op not in self._whole:
            whole: list[Operation] = []
            parts: dict[int, list[Operation]] = {}
            for use in op.output.uses:
                user = use.operation
                is_part = isinstance(user, GetTupleElementOp)
                (parts.setdefault(user.index, []) if is_part else whole).append(user)
            self._whole[op], self._parts[op] = whole, parts
        return [*self._whole[op], *self._parts[op].get(at, ())]


def own_copy(place: Place, readers: PartReaders) -> CopyOp | None:
    """The instruction that is the copy at a place already: it copies that part for nobody else."""
    reader, number, index = place
    if number == READERS:
        return _only_reader(cast(Instruction, reader), index, readers)
    value = reader.operands[number]
    while value.has_one_use():
        owner = value.owner
        if not index:
            return owner if isinstance(owner, CopyOp) and _keeps_layout(owner) else None
        if not isinstance(owner, TupleOp):
            break
        value, index = owner.inputs[index[0]], index[1:]
    return None


def _only_reader(op: Instruction, index: ShapeIndex, readers: PartReaders) -> CopyOp | None:
    for at in index:
        parts = readers.of(op, at)
        if len(parts) != 1 or not isinstance(part := parts[0], GetTupleElementOp):
            return None
        op = part
    user = next((use.operation for use in op.output.uses), None)
    if op.output.has_one_use() and isinstance(user, CopyOp) and _keeps_layout(user):
        return user
    return None


def _keeps_layout(copy: CopyOp) -> bool:
    return copy.shape == copy.input_shapes[0]
