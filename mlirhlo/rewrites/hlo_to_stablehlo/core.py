"""The conversion's machinery: values as trees of leaves, blocks in progress, regions, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import FunctionType, IntegerAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import Diagnostic, HloError, Place, error
from mlirhlo.dialects.chlo.table import ROWS as CHLO_ROWS
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.build import append, create
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule, source_of
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import Calls, opcodes
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, create_op
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.dialects.stablehlo.elements import dense
from mlirhlo.dialects.stablehlo.op_classes import make_classes
from mlirhlo.rewrites.hlo_to_stablehlo.annotations import common_attributes
from mlirhlo.rewrites.hlo_to_stablehlo.locations import Locations
from mlirhlo.rewrites.hlo_to_stablehlo.mixed_types import retyped, with_type, working_types
from mlirhlo.rewrites.hlo_to_stablehlo.types import leaf_types, leaves, type_of_leaf

Tree: TypeAlias = "SSAValue | tuple[Tree, ...] | None"
"""A value: a leaf, the parts of a tuple, or None for a part without meaning (contexts of async ops)."""

Handler: TypeAlias = "Callable[[Instruction, Scope], Tree]"
"""Emits the ops of an instruction and returns its value."""

HANDLERS: dict[str, Handler] = {}
"""How each opcode converts."""

_CALLING_FUNCTIONS = opcodes(lambda row: row.calls in (Calls.FUSED, Calls.TARGET)) | {"call"}
"""Opcodes whose called computations become functions; so do those of opcodes without a handler."""

CLASSES = {**OP_CLASSES, **make_classes(CHLO_ROWS.values())}


def converts(*opcodes: str) -> Callable[[Handler], Handler]:
    """Registers a handler for opcodes."""

    def register(function: Handler) -> Handler:
        for opcode in opcodes:
            HANDLERS[opcode] = function
        return function

    return register


class Scope:
    """A block in progress."""

    __slots__ = ("attributes", "block", "importer", "last", "location", "trees")

    def __init__(self, importer: Importer, block: Block) -> None:
        self.importer = importer
        self.block = block
        self.trees: dict[SSAValue, Tree] = {}
        """What each instruction of the computations converted here is."""
        self.last: Operation | None = None
        """The op emitted last."""
        self.location: Attribute | None = None
        self.attributes: dict[str, Attribute] = {}
        """Discardable attributes for the last op of the instruction being converted."""

    # -------------------------------------------------------------- emitting

    def add(self, op: Operation) -> Operation:
        """Appends an op."""
        if self.location is not None:
            op.location = self.location  # type: ignore[assignment]
        append(self.block, op)
        self.last = op
        return op

    def emit(
        self,
        name: str,
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Appends an op of the stablehlo or chlo dialect."""
        return self.add(
            create_op(CLASSES[name], operands, types, dict(properties or {}), regions=regions)
        )

    def one(
        self,
        name: str,
        operands: Sequence[SSAValue],
        shape: Shape,
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> SSAValue:
        """Appends an op with one result of an array's or a token's shape."""
        return self.emit(name, operands, (type_of_leaf(shape),), properties, regions).results[0]

    def many(
        self,
        name: str,
        operands: Sequence[SSAValue],
        shape: Shape,
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Tree:
        """Appends an op whose results are the leaves of `shape`; the value they make."""
        op = self.emit(name, operands, leaf_types(shape), properties, regions)
        return unflatten(shape, op.results)

    def constant(self, values: object, shape: ArrayShape) -> SSAValue:
        """Appends a constant."""
        type_ = type_of_leaf(shape)
        return self.one("stablehlo.constant", (), shape, {"value": dense(values, type_)})

    def mark(self, value: Attribute, key: str) -> None:
        """A discardable attribute for the last op of this instruction."""
        self.attributes[key] = value

    # -------------------------------------------------------------- reading

    def leaf(self, value: SSAValue) -> SSAValue:
        """What an instruction that is no tuple is here."""
        tree = self.trees[value]
        if isinstance(tree, tuple) or tree is None:
            (leaf,) = self.flatten(tree, cast(Instruction, value.owner).shape)
            return leaf
        return tree

    def inputs(self, op: Instruction) -> list[SSAValue]:
        """The operands of `op`, none of which is a tuple."""
        return [self.leaf(value) for value in op.inputs]

    def leaves(self, op: Instruction) -> list[SSAValue]:
        """The leaves of all operands of `op`."""
        found: list[SSAValue] = []
        for value in op.inputs:
            found += self.flatten(self.trees[value], cast(Instruction, value.owner).shape)
        return found

    def element(self, tree: Tree, index: int) -> Tree:
        """Part `index` of a tuple."""
        if isinstance(tree, tuple):
            return tree[index]
        if tree is None:
            return None
        part = cast("Sequence[Attribute]", tree.type.types.data)[index]  # type: ignore[attr-defined]
        properties: dict[str, Attribute] = {"index": _index32(index)}
        return self.emit("stablehlo.get_tuple_element", (tree,), (part,), properties).results[0]

    def flatten(self, tree: Tree, shape: Shape) -> list[SSAValue]:
        """The leaves of a value of `shape`; parts without meaning become zeros."""
        if isinstance(shape, TupleShape):
            found: list[SSAValue] = []
            for index, element in enumerate(shape.elements):
                found += self.flatten(self.element(tree, index), element)
            return found
        if tree is None:
            if isinstance(shape, ArrayShape):
                return [self.constant(0, shape)]
            return [self.one("stablehlo.create_token", (), shape)]
        return [cast(SSAValue, tree)]

    # -------------------------------------------------------------- converting

    def inline(self, computation: ComputationOp, arguments: Sequence[Tree]) -> Tree:
        """Converts a computation here, with these values as its parameters; returns its root."""
        importer = self.importer
        trees = self.trees
        outer = self.location
        importer.enter(computation)
        for op in importer.order(computation):
            if isinstance(op, ParameterOp):
                trees[op.results[0]] = arguments[op.parameter_number]
                continue
            handler = HANDLERS.get(op.opcode.name)
            self.location = importer.locations.of(op)
            self.attributes = common_attributes(op)
            self.last = None
            try:
                mixed = working_types(op)
                if mixed is not None and handler is not None:
                    trees[op.results[0]] = _convert_mixed(op, self, handler, mixed)
                else:
                    trees[op.results[0]] = (handler or importer.fallback)(op, self)
            except HloError as problem:
                raise at_instruction(problem, op) from None
            if self.attributes and self.last is not None:
                self.last.attributes.update(self.attributes)
        importer.depth -= 1
        self.location, self.attributes = outer, {}
        return trees[computation.terminator.root]


class Importer:
    """One conversion of a module."""

    def __init__(self, module: HloModule, fallback: Handler) -> None:
        self.module = module
        self.fallback = fallback
        """The handler of opcodes that have none of their own."""
        self.computations = module.by_name()
        self.locations = Locations(module.stack_frames)
        self.is_scheduled = module.is_scheduled
        self.functions: dict[str, FuncOp] = {}
        """Functions made so far, callees first, by the computation."""
        self.names: dict[str, str] = {}
        self.depth = 0
        """Number of computations that are being converted, each inside the one before."""
        self._taken = {"main"}
        self._orders: dict[str, list[Instruction]] = {}

    def order(self, computation: ComputationOp) -> list[Instruction]:
        """Instructions as they are converted: as scheduled, else as XLA prints them."""
        name = computation.computation_name
        found = self._orders.get(name)
        if found is None:
            found = instruction_list(computation)
            if not self.is_scheduled:
                found = post_order(found)
            self._orders[name] = found
        return found

    def region(self, name: str, *, captured: Sequence[Tree] | None = None) -> Region:
        """The region of a computation: a block with its parameters' leaves as arguments, or without
        arguments where it reads `captured` values of the blocks around it."""
        computation = self.computations[name]
        shapes = [p.shape for p in computation.parameters]
        if captured is not None:
            block, arguments = Block(), captured
        else:
            block = Block(arg_types=[t for s in shapes for t in leaf_types(s)])
            arguments = self._arguments(block, shapes)
        scope = Scope(self, block)
        root = scope.inline(computation, arguments)
        scope.location = None
        scope.emit("stablehlo.return", scope.flatten(root, computation.root.shape), ())
        return Region(block)

    def _arguments(self, block: Block, shapes: Sequence[Shape]) -> list[Tree]:
        values = list(block.args)
        found: list[Tree] = []
        for shape in shapes:
            count = sum(1 for _ in leaves(shape))
            found.append(unflatten(shape, values[:count]))
            del values[:count]
        return found

    def enter(self, computation: ComputationOp) -> None:
        """Counts a computation that is converted inside another one. Raises `HloError` HLO0033."""
        self.depth += 1
        if self.depth >= MAX_REGION_DEPTH:
            raise error(
                "HLO0033",
                f"%{computation.computation_name} would stand in regions nested deeper than {MAX_REGION_DEPTH}",
                help=REGION_DEPTH_HELP,
            )

    def function(self, name: str) -> str:
        """Name of the private function of a computation, which is made when it is first called."""
        if name not in self.names:
            outer, self.depth = self.depth, 0
            for needed in self._callees_first(name):
                computation = self.computations[needed]
                self.functions[needed] = self.make_function(
                    computation, self.names[needed], private=True
                )
            self.depth = outer
        return self.names[name]

    def _callees_first(self, name: str) -> Iterator[str]:
        """The computations that become functions because of `name`, each after those it calls.

        A stack, not recursion: calls nest deeper than Python's.
        """
        regions: set[str] = set()
        stack = [(name, True, self._callees(name))]
        self._choose_name(name)
        while stack:
            current, is_function, rest = stack[-1]
            following = next(
                (c for c in rest if c[0] not in (self.names if c[1] else regions)), None
            )
            if following is None:
                stack.pop()
                if is_function:
                    yield current
                continue
            callee, is_function = following
            if is_function:
                self._choose_name(callee)
            else:
                regions.add(callee)
            stack.append((callee, is_function, self._callees(callee)))

    def _callees(self, name: str) -> Iterator[tuple[str, bool]]:
        """The computations that instructions of `name` call, and whether as functions."""
        for op in self.order(self.computations[name]):
            if op.calling_keys:
                opcode = op.opcode.name
                is_function = opcode in _CALLING_FUNCTIONS or opcode not in HANDLERS
                for callee in op.called_computations:
                    yield callee, is_function

    def _choose_name(self, name: str) -> None:
        own, count = name, 0
        while own in self._taken:
            count += 1
            own = f"{name}_{count}"
        self._taken.add(own)
        self.names[name] = own

    def make_function(self, computation: ComputationOp, name: str, *, private: bool) -> FuncOp:
        """A function of the leaves of a computation's parameters."""
        parameters = computation.parameters
        block = Block(arg_types=[t for p in parameters for t in leaf_types(p.shape)])
        arguments = iter(block.args)
        for parameter in parameters:
            location = self.locations.of(parameter)
            for _ in leaves(parameter.shape):
                next(arguments).location = location  # type: ignore[assignment]
        scope = Scope(self, block)
        root = scope.inline(computation, self._arguments(block, [p.shape for p in parameters]))
        results = scope.flatten(root, computation.root.shape)
        append(block, create_op(ReturnOp, results))
        properties: dict[str, Attribute] = {
            "sym_name": string(name),
            "function_type": FunctionType.from_lists(
                [a.type for a in block.args], [r.type for r in results]
            ),
        }
        if private:
            properties["sym_visibility"] = string("private")
        attributes: dict[str, Attribute] = {}
        if computation.thread != "main":
            attributes["execution_thread"] = string(computation.thread)
        return create_op(
            FuncOp, (), (), properties, regions=(Region(block),), attributes=attributes
        )


def unflatten(shape: Shape, values: Sequence[SSAValue]) -> Tree:
    """The value of `shape` that has these leaves."""
    rest = iter(values)

    def build(shape: Shape) -> Tree:
        if isinstance(shape, TupleShape):
            return tuple(build(element) for element in shape.elements)
        return next(rest)

    return build(shape)


def at_instruction(problem: HloError, op: Instruction) -> HloError:
    """`problem`, with the place of `op` where it has none."""
    first = problem.diagnostics[0]
    if first.place is not None:
        return problem
    name = f"%{op.instruction_name}"
    found = source_of(op)
    where = Place("<module>", what=name) if found is None else found[0].place(found[1])
    return HloError(
        Diagnostic(first.code, f"{op.opcode.name} {name}: {first.message}", where, help=first.help)
    )


def _index32(value: int) -> Attribute:
    return IntegerAttr(value, i32)


def _convert_mixed(
    op: Instruction,
    scope: Scope,
    handler: Callable[[Instruction, Scope], Tree],
    types: tuple[dict[int, PrimitiveType], list[PrimitiveType]],
) -> Tree:
    """Converts `op` by its handler, between conversions of operands and results."""
    operands, results = types
    before: dict[SSAValue, Tree] = {}
    attributes, scope.attributes = scope.attributes, {}
    for index, wanted in operands.items():
        value = op.inputs[index]
        shape = cast(ArrayShape, op.input_shapes[index])
        if shape.element_type is wanted or value in before:
            continue
        before[value] = scope.trees[value]
        scope.trees[value] = _converted(scope.leaf(value), shape, wanted, scope)
    work = create(
        type(op),
        list(op.operands),
        type_of(retyped(op.shape, iter(results))),
        dict(op.properties),
        op.instruction_name,
    )
    scope.attributes = {
        k: v for k, v in attributes.items() if k not in ("xla_shape", "result_layout")
    }
    try:
        tree = handler(work, scope)
    finally:
        work.drop_all_references()
        scope.trees.update(before)
    if scope.last is not None:
        scope.last.attributes.update(scope.attributes)
    scope.attributes = {}
    found = [
        _converted(value, cast(ArrayShape, has), cast(ArrayShape, wanted).element_type, scope)
        for value, has, wanted in zip(
            scope.flatten(tree, op.shape), leaves(work.shape), leaves(op.shape), strict=True
        )
    ]
    return tuple(found) if isinstance(op.shape, TupleShape) else found[0]


def _converted(value: SSAValue, shape: ArrayShape, type_: PrimitiveType, scope: Scope) -> SSAValue:
    if shape.element_type is type_:
        return value
    return scope.one("stablehlo.convert", (value,), with_type(shape, type_))
