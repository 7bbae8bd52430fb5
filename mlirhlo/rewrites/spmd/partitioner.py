"""Writing a module anew for one device: instructions on tiles, and the collectives between.

Source: reference of the passes, "SPMD partitioner".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingKind
from mlirhlo.dialects.hlo.build import close
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ConditionalOp,
    CustomCallOp,
    GetTupleElementOp,
    OptBarrierOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import STARTED
from mlirhlo.nesting import Walk, walked
from mlirhlo.rewrites.spmd.emit import Computations, Emitter, Value, shape_of_value
from mlirhlo.rewrites.spmd.factors import leaves, rank_of
from mlirhlo.rewrites.spmd.grid import Grids, Placement, whole
from mlirhlo.rewrites.spmd.manual_regions import MANUAL_BORDERS, border
from mlirhlo.rewrites.spmd.part import Opaque, Part, Tree, placed, reshard
from mlirhlo.rewrites.spmd.reducers import from_device
from mlirhlo.rewrites.spmd.shifting_rules import variants_of
from mlirhlo.rewrites.spmd.strategy import cheapest, common_grid, manual_of
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Windows, Work

BARRIERS = ("ShardBarrierFrom", "ShardBarrierTo")
"""Shardings go through them one way: from what reads the first, from what the second reads."""
MARKS = ("Sharding", *BARRIERS)


def flat(tree: Tree) -> list[Leaf]:
    """The leaves of a tree in order."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in flat(part)]
    return [tree]


def shaped(shape: Shape, parts: list[Leaf]) -> Tree:
    """The tree of a shape from its leaves, which are taken from the front of `parts`."""
    if isinstance(shape, TupleShape):
        return tuple(shaped(element, parts) for element in shape.elements)
    return parts.pop(0)


def made(tree: Tree, emit: Emitter) -> SSAValue:
    """One value of a tree: tuples are made."""
    if not isinstance(tree, tuple):
        return cast(SSAValue, tree.value)
    values = [made(part, emit) for part in tree]
    shape = TupleShape(tuple(map(shape_of_value, values)))
    return cast(SSAValue, emit.make("tuple", values, shape))


def taken_apart(value: Value, shape: Shape, places: list[Placement | None], emit: Emitter) -> Tree:
    """The tree of a local value of whole shape `shape`; placements are taken from the front."""
    if isinstance(shape, TupleShape):
        elements = emit.elements(value)
        return tuple(
            taken_apart(v, s, places, emit) for v, s in zip(elements, shape.elements, strict=True)
        )
    place = places.pop(0)
    if isinstance(shape, ArrayShape) and place is not None:
        return placed(value, shape, place, emit)
    return Opaque(value, shape)


def local_shape(shape: Shape, places: list[Placement | None]) -> Shape:
    """Shape of one device's part; placements are taken from the front."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(local_shape(s, places) for s in shape.elements))
    place = places.pop(0)
    if not isinstance(shape, ArrayShape) or place is None:
        return shape
    sizes = place.local(shape.dimensions)
    return ArrayShape(shape.element_type, sizes, shape.dynamic, shape.layout)


class Partitioner:
    """Writes the program of one device."""

    def __init__(
        self, module: HloModule, grids: Grids, computations: Computations, windows: Windows
    ) -> None:
        """Takes the computations of `module` as they are now."""
        self.windows: Windows = windows
        self.module: HloModule = module
        self.grids: Grids = grids
        self.added: Computations = computations
        self.old: Mapping[str, ComputationOp] = module.by_name()

    # -------------------------------------------------------------- placements

    def placements(self, op: Instruction) -> list[Placement | None]:
        """Where an instruction says its results are; None where it says nothing."""
        shapes = leaves(op.shape)
        sharding = op.sharding
        if sharding is None:
            return [None] * len(shapes)
        single = (
            sharding.elements if sharding.kind is ShardingKind.TUPLE else (sharding,) * len(shapes)
        )
        if len(single) != len(shapes):
            raise error(
                "HLO0480",
                f"%{op.instruction_name}: a sharding of {len(single)} elements "
                f"for {len(shapes)} arrays",
            )
        return [self._placement(s, shape) for s, shape in zip(single, shapes, strict=True)]

    def reduced(self, op: Instruction) -> list[Placement | None]:
        """As `placements`, with all sums made: where computations meet, none stays open."""
        return [None if place is None else place.reduced for place in self.placements(op)]

    def _placement(self, sharding: Sharding, shape: Shape) -> Placement | None:
        if not isinstance(shape, ArrayShape) or sharding.kind is ShardingKind.UNKNOWN:
            return None
        return self.grids.placement(sharding, shape.rank)

    def whole(self, shape: Shape, manual: frozenset[int] = frozenset()) -> Placement:
        """Everything everywhere."""
        return whole(self.grids.main, rank_of(shape), manual)

    def finished(self, tree: Tree, emit: Emitter) -> Tree:
        """The same values where they are, with all sums made."""
        if isinstance(tree, tuple):
            return tuple(self.finished(part, emit) for part in tree)
        if isinstance(tree, Part) and tree.partial:
            return reshard(tree, tree.placement, emit)
        return tree

    def brought(self, tree: Tree, places: list[Placement | None], emit: Emitter) -> Tree:
        """The same values at `places`, taken from the front; None leaves a value where it is."""
        if isinstance(tree, tuple):
            return tuple(self.brought(part, places, emit) for part in tree)
        place = places.pop(0)
        if not isinstance(tree, Part):
            return tree
        return reshard(tree, tree.placement if place is None else place, emit)

    # -------------------------------------------------------------- computations

    def entry(self) -> ComputationOp:
        """The entry for one device."""
        old = self.module.entry
        emit = Emitter(self.added, Block())
        parameters = {op.parameter_number: self._own_parameter(op, emit) for op in old.parameters}
        inputs = [parameters[k] for k in sorted(parameters)]
        result = self._opened(walked(self.body(old, inputs, emit)), emit)
        allowed = self.module.allow_propagation_to_output
        free = allowed.values if allowed is not None else (False,)
        places: list[Placement | None] = []
        for k, (part, at) in enumerate(zip(flat(result), self.placements(old.root), strict=True)):
            if at is None and isinstance(part, Part):
                stays = free[k if len(free) > 1 else 0] and part.is_even
                at = part.placement if stays else self.whole(part.shape, part.placement.manual)
            places.append(at)
        root = made(self.brought(result, places, emit), emit)
        new = close(self.added.names.unique(f"{old.computation_name}_spmd"), emit.block, root)
        new.properties["is_entry"] = UnitAttr()
        return new

    def _own_parameter(self, op: ParameterOp, emit: Emitter) -> Tree:
        places = [
            self.whole(leaf) if at is None and isinstance(leaf, ArrayShape) else at
            for leaf, at in zip(leaves(op.shape), self.placements(op), strict=True)
        ]
        value = emit.like(op, (), local_shape(op.shape, list(places)), op.properties)
        if "sharding" in op.properties:
            cast(Instruction, cast(SSAValue, value).owner).properties["sharding"] = op.properties[
                "sharding"
            ]
        tree = taken_apart(value, op.shape, places, emit)
        if op.sharding is None or op.output.first_use is None:
            return tree
        parts = flat(tree)
        for k, sharding in enumerate(op.sharding.expanded(len(parts)).elements):
            part, device = parts[k], sharding.device
            if isinstance(part, Part) and device is not None:
                parts[k] = from_device(part, device, emit)
        return shaped(op.shape, parts)

    def called(
        self, name: str, arguments: Sequence[Tree], places: Sequence[Placement | None] | None
    ) -> Walk[tuple[str, Tree]]:
        """The computation `name` for these arguments: its new name, and its result there.

        `places`: where the results must be; None where any place will do.
        """
        old = self.old[name]
        emit = Emitter(self.added, Block())
        parameters: list[Tree] = []
        for op, argument in zip(old.parameters, arguments, strict=True):
            at = [p.placement if isinstance(p, Part) else None for p in flat(argument)]
            shape = local_shape(op.shape, list(at))
            value = emit.like(op, (), shape, op.properties)
            parameters.append(taken_apart(value, op.shape, at, emit))
        result = self._opened((yield self.body(old, parameters, emit)), emit)
        if places is not None:
            result = self.brought(result, list(places), emit)
        result = self.finished(result, emit)
        root = made(result, emit)
        new = self.added.names.unique(f"{name}_spmd")
        self.added.added.append(close(new, emit.block, root))
        return new, result

    def body(self, old: ComputationOp, parameters: Sequence[Tree], emit: Emitter) -> Walk[Tree]:
        """Writes the instructions of a computation, and what they call; its result."""
        values: dict[SSAValue, Tree] = {}
        for op in old.instructions:
            emit.origin = op
            if isinstance(op, ParameterOp):
                values[op.output] = parameters[op.parameter_number]
                continue
            arguments = [values[v] for v in op.inputs]
            match op:
                case CallOp():
                    result = yield self._call(op, arguments, emit)
                case WhileOp():
                    result = yield self._while(op, arguments[0], emit)
                case ConditionalOp():
                    result = yield self._conditional(op, arguments, emit)
                case _:
                    result = self.instruction(op, arguments, emit)
            values[op.output] = result
        return values[old.terminator.root]

    # -------------------------------------------------------------- instructions

    def instruction(self, op: Instruction, arguments: list[Tree], emit: Emitter) -> Tree:
        """Writes one instruction that calls nothing for one device."""
        match op:
            case TupleOp():
                return tuple(arguments)
            case GetTupleElementOp():
                argument = arguments[0]
                if not isinstance(argument, tuple):
                    argument = self._opened(argument, emit)
                    assert isinstance(argument, tuple)
                return self._opened(argument[op.index], emit)
            case OptBarrierOp():
                return self._barrier(op, arguments[0], emit)
            case CustomCallOp() if op.custom_call_target in MANUAL_BORDERS:
                source = op.inputs[0].owner
                said = self.placements(source)[0] if isinstance(source, Instruction) else None
                return border(op, arguments[0], said, self.placements(op)[0], self.grids, emit)
            case CustomCallOp() if op.custom_call_target in MARKS:
                return self.brought(arguments[0], self.placements(op), emit)
            case CustomCallOp() if op.custom_call_target.startswith("xla.sdy."):
                raise error(
                    "HLO0481",
                    f"%{op.instruction_name}: {op.custom_call_target} is Shardy's",
                    help="run shardy-xla before spmd-partitioning",
                )
            case _ if op.opcode.name in STARTED or op.opcode.name == "async-update":
                return self._started(op, arguments, emit)
            case _:
                return self._plain(op, arguments, emit)

    def _plain(self, op: Instruction, arguments: Sequence[Tree], emit: Emitter) -> Tree:
        operands: list[Leaf] = []
        for argument, shape in zip(arguments, op.input_shapes, strict=True):
            if isinstance(argument, tuple):
                everywhere = [self.whole(leaf) for leaf in leaves(shape)]
                operands.append(
                    Opaque(made(self.brought(argument, list(everywhere), emit), emit), shape)
                )
            else:
                operands.append(argument)
        said = self.placements(op)
        targets = [None if place is not None and place.unreduced else place for place in said]
        if targets != said and op.opcode.name == "copy":
            return self.brought(arguments[0], said, emit)  # an open sum stays open
        grid = common_grid(operands, targets, self.grids.main)
        manual = manual_of([leaf for argument in arguments for leaf in flat(argument)])
        works = [
            Work(op, operands, factors, {}, grid, manual, self.old, emit, self.windows)
            for factors in variants_of(op)
        ]
        found = shaped(op.shape, cheapest(works, targets))
        return found if targets == said else self.brought(found, said, emit)

    def _started(self, op: Instruction, arguments: Sequence[Tree], emit: Emitter) -> Tree:
        """Begins on whole arrays; its end reads this very instruction, so that its value stays in one piece."""
        whole = [
            argument
            if isinstance(argument, Opaque)
            else self.brought(argument, [self.whole(leaf) for leaf in leaves(shape)], emit)
            for argument, shape in zip(arguments, op.input_shapes, strict=True)
        ]
        manual = manual_of([leaf for argument in whole for leaf in flat(argument)])
        operands = [made(argument, emit) for argument in whole]
        return Opaque(emit.like(op, operands, op.shape, op.properties), op.shape, manual)

    def _opened(self, value: Tree, emit: Emitter) -> Tree:
        """The elements of what an asynchronous instruction hands on; any other tree as it is."""
        if isinstance(value, tuple):
            return tuple(self._opened(part, emit) for part in value)
        if isinstance(value, Part) or not isinstance(value.shape, TupleShape):
            return value
        places: list[Placement | None] = [
            self.whole(leaf, value.manual) if isinstance(leaf, ArrayShape) else None
            for leaf in leaves(value.shape)
        ]
        return taken_apart(value.value, value.shape, places, emit)

    def _call(self, op: CallOp, arguments: Sequence[Tree], emit: Emitter) -> Walk[Tree]:
        inputs = [self.finished(self._opened(a, emit), emit) for a in arguments]
        name, result = yield self.called(op.to_apply, inputs, self.reduced(op))
        return self._result(op, [made(a, emit) for a in inputs], {"to_apply": name}, result, emit)

    def _result(
        self,
        op: Instruction,
        operands: Sequence[SSAValue],
        names: Mapping[str, str],
        result: Tree,
        emit: Emitter,
    ) -> Tree:
        places = [p.placement if isinstance(p, Part) else None for p in flat(result)]
        properties: dict[str, Attribute] = {
            **op.properties,
            **{key: symbol(name) for key, name in names.items()},
        }
        value = emit.like(op, operands, local_shape(op.shape, list(places)), properties)
        return taken_apart(value, op.shape, places, emit)

    def _state(self, op: Instruction, tree: Tree) -> list[Placement | None]:
        """Where values stay that several computations must agree on."""
        return [
            self.whole(p.shape, p.placement.manual) if at is None and isinstance(p, Part) else at
            for p, at in zip(flat(tree), self.reduced(op), strict=True)
        ]

    def _while(self, op: WhileOp, argument: Tree, emit: Emitter) -> Walk[Tree]:
        argument = self._opened(argument, emit)
        places = self._state(op, argument)
        state = self.brought(argument, list(places), emit)
        body, result = yield self.called(op.body, [state], places)
        condition, _ = yield self.called(op.condition, [state], [self.whole(ArrayShape(PRED, ()))])
        names = {"body": body, "condition": condition}
        return self._result(op, [made(state, emit)], names, result, emit)

    def _conditional(
        self, op: ConditionalOp, arguments: Sequence[Tree], emit: Emitter
    ) -> Walk[Tree]:
        selector = self.brought(arguments[0], [self.whole(op.input_shapes[0])], emit)
        inputs = [self.finished(self._opened(a, emit), emit) for a in arguments[1:]]
        manual = manual_of([leaf for tree in inputs for leaf in flat(tree)])
        places = [
            self.whole(leaf, manual) if at is None and isinstance(leaf, ArrayShape) else at
            for leaf, at in zip(leaves(op.shape), self.reduced(op), strict=True)
        ]
        names: list[str] = []
        result: Tree = ()
        for name, argument in zip(op.called_computations, inputs, strict=True):
            new, result = yield self.called(name, [argument], places)
            names.append(new)
        operands = [made(selector, emit), *(made(a, emit) for a in inputs)]
        if "branch_computations" in op.properties:
            properties: dict[str, Attribute] = {
                **op.properties,
                "branch_computations": ArrayAttr([symbol(name) for name in names]),
            }
            value = emit.like(op, operands, local_shape(op.shape, list(places)), properties)
            return taken_apart(value, op.shape, list(places), emit)
        keys = ("true_computation", "false_computation")
        return self._result(op, operands, dict(zip(keys, names, strict=True)), result, emit)

    def _barrier(self, op: Instruction, argument: Tree, emit: Emitter) -> Tree:
        argument = self.finished(self._opened(argument, emit), emit)
        return self._result(op, [made(argument, emit)], {}, argument, emit)
