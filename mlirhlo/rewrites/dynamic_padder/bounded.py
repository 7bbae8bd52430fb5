"""Arrays as static room with sizes beside it, and the computation that is being rewritten in these terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, cast

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import own_properties, splat_of
from mlirhlo.rewrites.legalize.indexed_loops import S32, Writer
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import inherit

Sizes: TypeAlias = "tuple[Value | None, ...]"
"""The size in use of each dimension, s32[]; None where it is the bound."""


@dataclass(eq=False, slots=True)
class Bounded:
    """An array whose elements in use are the first of each dimension; the others are anything."""

    data: Value
    """Static; its sizes are the bounds."""
    sizes: Sizes
    packed: SSAValue | None = None
    """The same as one dynamic array, where there is one."""

    @property
    def bounds(self) -> tuple[int, ...]:
        """Dimensions of the room."""
        return self.data.sizes

    @property
    def is_whole(self) -> bool:
        """Whether all elements are in use."""
        return not any(size is not None for size in self.sizes)


@dataclass(frozen=True, eq=False, slots=True)
class Packed:
    """A dynamic array, or a tuple with some in it, that nobody looked into yet."""

    value: SSAValue


Tree: TypeAlias = "SSAValue | Packed | Bounded | tuple[Tree, ...]"
"""What stands for a value: itself where no part of it is dynamic."""


def is_dynamic(shape: Shape) -> bool:
    """Whether an array, or one in a tuple, has dynamic dimensions."""
    if isinstance(shape, TupleShape):
        return any(map(is_dynamic, shape.elements))
    return isinstance(shape, ArrayShape) and shape.is_dynamic


def static(shape: ArrayShape) -> ArrayShape:
    """The shape of the room."""
    return replace(shape, dynamic=())


def taken_apart(shape: Shape) -> Shape:
    """The shape with, for each dynamic array, a tuple of the room and the sizes of its dynamic dimensions."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(taken_apart, shape.elements)))
    if not isinstance(shape, ArrayShape) or not shape.is_dynamic:
        return shape
    count = sum(shape.dynamic)
    return TupleShape((static(shape), *(ArrayShape(S32, ()),) * count))


class Scope:
    """A computation on its way from dynamic to static arrays; new instructions go before `here`."""

    def __init__(self, computation: ComputationOp, functions: FunctionsLike) -> None:
        self.computation = computation
        self.functions = functions
        self.trees: dict[SSAValue, Tree] = {}
        """What stands for values with dynamic parts, or made of such."""
        self.here: Instruction = computation.root
        self.before: Operation | None = None
        """Where new instructions go, if not before `here`."""
        self.made = 0
        """How many instructions were put in."""

    # ------------------------------------------------------------ writing

    def emit(self, op: Instruction) -> None:
        """Puts a new instruction before the current one, whose metadata it takes."""
        block = self.here.parent
        assert block is not None
        inherit(op, self.here)
        block.insert_op_before(op, self.before or self.here)
        self.made += 1

    @property
    def graph(self) -> Graph:
        """For formulas."""
        return Graph(self.here, Writer(self.emit))

    def value(self, found: SSAValue) -> Value:
        """A static array for formulas."""
        return Value(self.graph, cast(Instruction, found.owner))

    def number(self, size: int) -> Value:
        """A size that is known."""
        return self.graph.scalar(S32, size)

    def again(
        self,
        op: Instruction,
        operands: Sequence[Value | SSAValue],
        shape: Shape,
        **changes: Attribute,
    ) -> Instruction:
        """`op` on other operands, of another shape, with some properties changed."""
        values = [v.op.output if isinstance(v, Value) else v for v in operands]
        properties = own_properties(op) | changes
        for kept in ("sharding", "frontend_attributes", "origin"):
            if kept in op.properties and (kept != "sharding" or shape == op.shape):
                properties[kept] = op.properties[kept]
        made = make(
            op.opcode.name,
            values,
            shape,
            properties,
            name=op.instruction_name,
            control_predecessors=op.control_predecessors,
        )
        self.emit(made)
        return made

    # ------------------------------------------------------------ reading

    def tree(self, value: SSAValue) -> Tree:
        """What stands for a value."""
        found = self.trees.get(value)
        if found is not None:
            return found
        return Packed(value) if is_dynamic(shape_of(value.type)) else value

    def array(self, tree: Tree) -> Bounded:
        """An array, taken apart where it has to be."""
        if isinstance(tree, SSAValue):
            found = self.value(tree)
            return Bounded(found, (None,) * found.rank)
        opened = self.open(tree)
        assert isinstance(opened, Bounded)
        return opened

    def open(self, tree: Tree) -> Tree:
        """The parts of what is packed: `PadToStatic` gives the room and all sizes of an array."""
        if not isinstance(tree, Packed):
            return tree
        known = self.trees.get(tree.value)
        if known is not None and not isinstance(known, Packed):
            return known
        shape = shape_of(tree.value.type)
        opened: Tree
        if isinstance(shape, TupleShape):
            opened = tuple(self.part(tree.value, k) for k in range(len(shape.elements)))
        else:
            assert isinstance(shape, ArrayShape)
            rank = shape.rank
            scalars = (ArrayShape(S32, ()),) * rank
            whole = self._call("PadToStatic", [tree.value], TupleShape((static(shape), *scalars)))
            data = self.value(self._element(whole.output, 0))
            sizes = tuple(
                self.value(self._element(whole.output, k + 1)) if shape.dynamic[k] else None
                for k in range(rank)
            )
            opened = Bounded(data, sizes, tree.value)
        self.trees[tree.value] = opened
        return opened

    def part(self, value: SSAValue, index: int) -> Tree:
        """An element of a tuple that is not taken apart."""
        found = self._element(value, index)
        return Packed(found) if is_dynamic(shape_of(found.type)) else found

    def parts(self, tree: Tree) -> tuple[Tree, ...]:
        """Elements of a tuple."""
        opened = self.open(tree)
        if isinstance(opened, tuple):
            return opened
        assert isinstance(opened, SSAValue)
        shape = shape_of(opened.type)
        assert isinstance(shape, TupleShape)
        return tuple(self.part(opened, k) for k in range(len(shape.elements)))

    # ------------------------------------------------------------ as one value

    def packed(self, tree: Tree, shape: Shape) -> SSAValue:
        """One value of `shape`; what is dynamic in it is put together by `SliceToDynamic`."""
        if isinstance(tree, Packed):
            return tree.value
        if isinstance(shape, TupleShape):
            if isinstance(tree, SSAValue) and not is_dynamic(shape):
                return tree
            parts = zip(self.parts(tree), shape.elements, strict=True)
            return self._tuple([self.packed(part, wanted) for part, wanted in parts])
        if isinstance(tree, SSAValue) and not is_dynamic(shape):
            return tree
        found = self.array(tree)
        assert isinstance(shape, ArrayShape)
        if not shape.is_dynamic:
            return found.data.op.output
        if found.packed is None:
            sizes = [s or self.number(n) for s, n in zip(found.sizes, found.bounds, strict=True)]
            operands = [v.op.output for v in (found.data, *sizes)]
            found.packed = self._call("SliceToDynamic", operands, shape).output
        return found.packed

    def joined(self, tree: Tree, shape: Shape) -> SSAValue:
        """One static value of the shape `taken_apart(shape)`."""
        if not is_dynamic(shape):
            return self.packed(tree, shape)
        if isinstance(shape, TupleShape):
            parts = zip(self.parts(tree), shape.elements, strict=True)
            return self._tuple([self.joined(part, wanted) for part, wanted in parts])
        found = self.array(tree)
        assert isinstance(shape, ArrayShape)
        sizes = [
            size or self.number(bound)
            for size, bound, dynamic in zip(found.sizes, found.bounds, shape.dynamic, strict=True)
            if dynamic
        ]
        return self._tuple([found.data.op.output, *(s.op.output for s in sizes)])

    def split(self, value: SSAValue, shape: Shape) -> Tree:
        """What `joined` put together."""
        if not is_dynamic(shape):
            return value
        if isinstance(shape, TupleShape):
            return tuple(
                self.split(self._element(value, k), part) for k, part in enumerate(shape.elements)
            )
        assert isinstance(shape, ArrayShape)
        index, sizes = 0, list[Value | None]()
        for dynamic in shape.dynamic:
            index += dynamic
            sizes.append(self.value(self._element(value, index)) if dynamic else None)
        return Bounded(self.value(self._element(value, 0)), tuple(sizes))

    def _call(self, target: str, operands: Sequence[SSAValue], shape: Shape) -> Instruction:
        made = make("custom-call", operands, shape, {"custom_call_target": string(target)})
        self.emit(made)
        return made

    def _tuple(self, parts: Sequence[SSAValue]) -> SSAValue:
        shape = TupleShape(tuple(shape_of(part.type) for part in parts))
        made = make("tuple", parts, shape)
        self.emit(made)
        return made.output

    def _element(self, value: SSAValue, index: int) -> SSAValue:
        shape = shape_of(value.type)
        assert isinstance(shape, TupleShape)
        made = make("get-tuple-element", [value], shape.elements[index], {"index": integer(index)})
        self.emit(made)
        return made.output


class FunctionsLike(Protocol):
    """What a scope asks about the computations that its instructions call."""

    def parameters(self, name: str) -> Sequence[Shape] | None:
        """Shapes, with dynamic parts, of the parameters of a computation that is rewritten; else None."""
        ...

    def result(self, name: str) -> Shape:
        """Shape, with dynamic parts, of its result."""
        ...


Handler: TypeAlias = "Callable[[Scope, Instruction, Sequence[Tree]], Tree | None]"
"""Writes an instruction anew on what stands for its operands; None where it stays dynamic."""

HANDLERS: dict[str, Handler] = {}
"""By opcode."""


def handles(*opcodes: str) -> Callable[[Handler], Handler]:
    """Decorator: the function writes these opcodes anew."""

    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(opcodes, function))
        return function

    return register


def masked(found: Bounded, dims: Sequence[int], fill: Value | complex) -> Value:
    """The room with `fill` in it wherever a place is not in use along `dims`."""
    data = found.data
    for dim in dims:
        size = found.sizes[dim]
        if size is not None:
            within = data.graph.iota(S32, found.bounds, dim).compare("LT", size)
            value = data.graph.value(fill, data.type)
            data = within.select(data, value)
    return data


def merged(*arrays: Bounded) -> Sizes:
    """Sizes of arrays that are equally large: the first that is known of each dimension."""
    return tuple(
        next((size for size in column if size is not None), None)
        for column in zip(*(a.sizes for a in arrays), strict=True)
    )


def same_number(first: Value, second: Value) -> bool:
    """Whether two sizes are known to be equal."""
    if first.op is second.op:
        return True
    number = splat_of(first.op.output)
    return number is not None and number == splat_of(second.op.output)
