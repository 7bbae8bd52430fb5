"""One element of any instruction, from the elements of its operands.

`Elements.at(value, place)` emits what computes a value at a place, all lanes at once, through as many
instructions as it takes to come to buffers; what was emitted for the same place is used again. An
opcode joins by a function under `@emits`; element-wise ones live in `elementwise`, those that move
elements in `movement`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.ops import ComputationOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import FunctionBuilder, vector_of
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_MAX_DEPTH = 100
"""Functions in each other that are inlined, as many as the interpreter runs."""
_DEEP = 32
"""Elements emitted for each other's sake, before operands are emitted first."""

_ANYWHERE = Coordinate(0)

Place: TypeAlias = "tuple[Coordinate, ...]"
Emitter: TypeAlias = "Callable[[Elements, Any, Place], Value]"

_EMITTERS: dict[str, Emitter] = {}


def emits(*opcodes: str) -> Callable[[Emitter], Emitter]:
    """Decorator: the function emits elements of these opcodes."""

    def register(function: Emitter) -> Emitter:
        for opcode in opcodes:
            _EMITTERS[opcode] = function
        return function

    return register


PartsEmitter: TypeAlias = "Callable[[Elements, Any, Place], Sequence[Value]]"

_PARTS_EMITTERS: dict[str, PartsEmitter] = {}


def emits_parts(*opcodes: str) -> Callable[[PartsEmitter], PartsEmitter]:
    """Decorator: the function emits elements of all results of these opcodes."""

    def register(function: PartsEmitter) -> PartsEmitter:
        for opcode in opcodes:
            _PARTS_EMITTERS[opcode] = function
        return function

    return register


def emitters_of_parts() -> Mapping[str, PartsEmitter]:
    """Those of instructions with several results, by opcode."""
    emitters()
    return _PARTS_EMITTERS


StructuredEmitter: TypeAlias = "Callable[[Elements, Any, int, Place], Value]"

_STRUCTURED_EMITTERS: dict[type[Any], StructuredEmitter] = {}


def emits_structured(cls: type[Any]) -> Callable[[StructuredEmitter], StructuredEmitter]:
    """Decorator: the function emits elements of the result of that number of structured ops of a class; under
    `Block`, of an argument of a body, for the op that has it."""

    def register(function: StructuredEmitter) -> StructuredEmitter:
        _STRUCTURED_EMITTERS[cls] = function
        return function

    return register


def emitters() -> Mapping[str, Emitter]:
    """All of them, by opcode."""
    from mlirhlo.lowering.hlo_to_loops import elementwise, folds, maps, movement

    del elementwise, folds, maps, movement
    return _EMITTERS


def _scalars_under(root: Instruction) -> Sequence[Instruction]:
    """All that the root of a long computation of scalars is computed from, in its order; of a short one
    nothing, as each instruction emits its own operands."""
    listed = instruction_list(cast(ComputationOp, root.parent_op()))
    if len(listed) < _DEEP:
        return ()
    needed: set[SSAValue] = set()
    stack = [root]
    while stack:
        fresh = [v for v in stack.pop().inputs if v not in needed]
        needed.update(fresh)
        stack += [cast(Instruction, v.owner) for v in fresh]
    return [
        op
        for op in listed
        if op.output in needed and isinstance(op.shape, ArrayShape) and op.shape.dimensions == ()
    ]


class Elements:
    """Emits elements within one loop body."""

    def __init__(self, places: Places, buffers: Mapping[SSAValue, SSAValue]) -> None:
        self._outer: Elements | None = None
        self._depth = 0
        """Functions around this one that are inlined."""
        self.places = places
        self.b: FunctionBuilder = places.b
        self._block = self.b.block
        self._moves: dict[SSAValue, bool] = {}
        """Whether a value changes from round to round of the loop this is the body of."""
        self.lanes = places.lanes
        self.buffers = buffers
        """Memrefs of the values that stand in memory."""
        self._known: dict[SSAValue, dict[Place, Value]] = {}
        """By the value first: hashing places takes long, and most values are at none here."""
        self._parts: dict[tuple[SSAValue, Place], Sequence[Value]] = {}
        self._once: dict[tuple[Hashable, Place], SSAValue] = {}
        self._steady: dict[SSAValue, Sequence[SSAValue]] = {}
        self.dependences: dict[SSAValue, Container[int]] = {}
        """Of values in bodies of maps that do not depend on all dimensions: those that they depend on."""
        self._emitters = emitters()
        self.divides = False
        """Whether dividing takes more time than memory does: loops over what is in the first cache."""

    def at(self, value: SSAValue, place: Sequence[Coordinate]) -> Value:
        """The element of `value` at `place`. Raises `HloError` HLO0432 for an opcode without one."""
        at = self._own_place(value, tuple(place))
        found = self._find(value, at)
        if found is None and (outer := self._stays(at)) is not None:
            # What is the same in every round is computed in front of the loop.
            here, self.b.block = self.b.block, outer._block
            found = outer.at(value, place)
            self.b.block = here
        elif found is None:
            buffer = self.buffers.get(value)
            if buffer is not None:
                found = self.places.load(buffer, cast(ArrayShape, shape_of(value.type)), at)
            else:
                self.b.nesting += 1
                found = self._emitted(value, at)
                self.b.nesting -= 1
            self._known.setdefault(value, {})[at] = found
        return found

    def _own_place(self, value: SSAValue, place: Place) -> Place:
        """The place of a value in a body, without the dimensions that it does not depend on."""
        dims = self.dependences.get(value) if self.dependences else None
        if dims is None:
            return place
        return tuple([c if d in dims else _ANYWHERE for d, c in enumerate(place)])

    def _emitted(self, value: SSAValue, place: Place) -> Value:
        op = value.owner
        if not isinstance(op, Instruction):
            at = cast("OpResult | BlockArgument", value).index
            structured = _STRUCTURED_EMITTERS.get(type(op))
            if structured is None:
                raise error("HLO0432", f"`{cast(Operation, op).name}` has no lowering to a loop")
            return structured(self, op, at, place)
        emitter = self._emitters.get(op.opcode.name)
        if emitter is None:
            raise error("HLO0432", f"`{op.opcode.name}` has no lowering to a loop over elements")
        if not self.b.nesting % _DEEP:
            self._emit_operands(op, place)
        return emitter(self, op, place)

    def _emit_operands(self, root: Instruction, place: Place) -> None:
        """Emits what an instruction is computed from at its own place, through element-wise instructions:
        operands first, so that none of them goes down a long chain again."""
        stack = [root]
        while stack:
            op = stack[-1]
            sizes = sizes_of(op.output)
            missing = [
                v.owner
                for v in op.inputs
                if v not in self.buffers
                and isinstance(v.owner, Instruction)
                and v.owner.opcode.elementwise
                and sizes_of(v) == sizes
                and self._find(v, self._own_place(v, place)) is None
            ]
            if op.opcode.elementwise and missing:
                stack += reversed(missing)
                continue
            stack.pop()
            if op is not root:
                self.at(op.output, place)

    def parts(self, value: SSAValue, place: Sequence[Coordinate]) -> Sequence[Value]:
        """Elements of all arrays of an instruction with several results, at one place of each.

        Raises `HloError` HLO0432 for an opcode without them.
        """
        key = (value, tuple(place))
        found = self._find_parts(key)
        if found is None and (outer := self._stays(key[1])) is not None:
            here, self.b.block = self.b.block, outer._block
            found = outer.parts(value, place)
            self.b.block = here
        elif found is None:
            op = cast(Instruction, value.owner)
            emitter = emitters_of_parts().get(op.opcode.name)
            if emitter is None:
                raise error(
                    "HLO0432", f"`{op.opcode.name}` of several results has no lowering to a loop"
                )
            found = self._parts[key] = emitter(self, op, key[1])
        return found

    def _find(self, value: SSAValue, place: Place) -> Value | None:
        scope: Elements | None = self
        while scope is not None:
            places = scope._known.get(value)
            if places is not None and (found := places.get(place)) is not None:
                return found
            scope = scope._outer
        return None

    def once(
        self, key: Hashable, place: Sequence[Coordinate], make: Callable[[Elements], SSAValue]
    ) -> SSAValue:
        """What `make` emits, that depends on `place` alone: made once for all rounds of loops in
        which the place stays."""
        full = (key, tuple(place))
        scope: Elements | None = self
        while scope is not None:
            if (found := scope._once.get(full)) is not None:
                return found
            scope = scope._outer
        if (outer := self._stays(full[1])) is not None:
            here, self.b.block = self.b.block, outer._block
            found = outer.once(key, place, make)
            self.b.block = here
        else:
            found = self._once[full] = make(self)
        return found

    def steady(
        self, value: SSAValue, make: Callable[[], Sequence[SSAValue]]
    ) -> Sequence[SSAValue] | None:
        """What `make` emits out of a value that stays in all rounds of this loop, in front of it and
        made once; None for a value that changes."""
        outer = self
        while outer._outer is not None and not outer._is_moving(value):
            outer = outer._outer
        if outer is self:
            return None
        found = outer._steady.get(value)
        if found is None:
            here, self.b.block = self.b.block, outer._block
            found = outer._steady[value] = make()
            self.b.block = here
        return found

    def _find_parts(self, key: tuple[SSAValue, Place]) -> Sequence[Value] | None:
        scope: Elements | None = self
        while scope is not None:
            if (found := scope._parts.get(key)) is not None:
                return found
            scope = scope._outer
        return None

    def _stays(self, place: Place) -> Elements | None:
        """The elements around this loop when `place` is the same in all its rounds."""
        outer = self._outer
        if outer is None or outer.lanes != self.lanes:
            return None
        same_lanes = outer.places.mask is self.places.mask
        for c in place:
            if not same_lanes and not c.uniform:
                return None
            for index in (c.base, c.lanes):
                if index is None or isinstance(index, int):
                    continue
                if self._is_moving(index):
                    return None
        return outer

    def _is_moving(self, value: SSAValue) -> bool:
        found = self._moves.get(value)
        if found is not None:
            return found
        stack = [value]
        while stack:
            owner = stack[-1].owner
            operands: Sequence[SSAValue] = ()
            if isinstance(owner, Block):
                found = owner is self._block
            elif self._is_outside(owner.parent):
                found = False
            elif owner.parent is self._block or owner.regions:
                found = True  # what was emitted in the loop is not there before it
            else:
                operands = owner.operands
                found = any(self._moves.get(v) for v in operands)
            unknown = () if found else [v for v in operands if v not in self._moves]
            if unknown:
                stack += unknown
            else:
                self._moves[stack.pop()] = found
        return self._moves[value]

    def _is_outside(self, block: Block | None) -> bool:
        """Whether a block is the body of a loop around this one."""
        outer = self._outer
        while outer is not None:
            if outer._block is block:
                return block is not self._block
            outer = outer._outer
        return False

    def know(self, value: SSAValue, place: Sequence[Coordinate], element: Value) -> None:
        """Says what the element of `value` at `place` is."""
        self._known.setdefault(value, {})[tuple(place)] = element

    def know_parts(
        self, value: SSAValue, place: Sequence[Coordinate], elements: Sequence[Value]
    ) -> None:
        """Says what the elements of all results of an instruction are."""
        self._parts[value, tuple(place)] = elements

    def scope(self, places: Places | None = None) -> Elements:
        """Elements of the body of a loop, just begun: it sees what was emitted here, not the other
        way. Every loop has one, so that what does not change in it is known."""
        inner = Elements(places or self.places, self.buffers)
        inner._outer, inner._depth = self, self._depth
        inner.divides, inner.dependences = self.divides, self.dependences
        return inner

    def inline(self, computation: ComputationOp, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Results of a computation of scalars on elements, one for each part of its root.

        Raises `HloError` HLO0309 for functions in functions too deep.
        """
        # The same computation is inlined many times, with other arguments each.
        inner = Elements(self.places, self.buffers)
        inner._depth = self._depth + 1
        if inner._depth > _MAX_DEPTH:
            raise error(
                "HLO0309",
                f"functions of elements are nested deeper than {_MAX_DEPTH};"
                f" the innermost is %{computation.computation_name}",
                help="inline them: hlo-opt --passes=map-inline,call-inliner",
            )
        for parameter, value in zip(computation.parameters, arguments, strict=True):
            inner._known[parameter.output] = {(): value}
        root = computation.root
        for op in _scalars_under(root):
            inner.at(op.output, ())
        parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
        return tuple(inner.at(part, ()) for part in parts)

    def splat(self, value: SSAValue) -> SSAValue:
        """A scalar in every lane, where there are lanes."""
        return self.b.broadcast(value, self.lanes) if self.lanes else value

    def constant(self, number: float | int | bool, element: Any) -> SSAValue:
        """A number of a register type in every lane."""
        return self.b.constant(number, vector_of(element, self.lanes) if self.lanes else element)

    def true(self) -> SSAValue:
        """A mask that is set everywhere."""
        return self.constant(True, i1)
