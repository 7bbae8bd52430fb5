"""Computations written as formulas over values, as XLA's client library builds them.

    graph = Graph.of(op)
    x = graph.parameter(shape)
    callee = graph.close("f", (x * 2 + 1).exp())

Numbers become scalar constants of the other operand's type, and scalars are broadcast; nothing is
simplified or shared, since expanders leave that to the passes after them. Arrays have the default layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, string
from mlirhlo.dialects.hlo.build import append
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.algsimp.common import paddings, slices
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation, binary_computation, called
from mlirhlo.rewrites.legalize.indexed_loops import PRED, S32, Writer, loop, plain, shape_at

Number: TypeAlias = "int | float | complex"
Operand: TypeAlias = "Value | Number"
Step: TypeAlias = "Callable[[Graph, Value, Sequence[Value]], Sequence[Value]]"
"""From the round's number and the state to the next state, inside of a loop's body."""


class Value:
    """An array of a graph. Operators make instructions."""

    __slots__ = ("graph", "op")

    def __init__(self, graph: Graph, op: Instruction) -> None:
        self.graph, self.op = graph, op

    @property
    def sizes(self) -> tuple[int, ...]:
        """Dimensions."""
        return shape_at(self.op).dimensions

    @property
    def type(self) -> PrimitiveType:
        """Element type."""
        return shape_at(self.op).element_type

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.sizes)

    # ------------------------------------------------------------ element by element

    def elementwise(
        self, opcode: str, *others: Operand, type: PrimitiveType | None = None
    ) -> Value:
        """An instruction on this and the others, scalars among them broadcast."""
        values = [self, *(self.graph.value(o, self.type) for o in others)]
        sizes = max((v.sizes for v in values), key=len)
        operands = [v if v.sizes == sizes else v.broadcast(sizes) for v in values]
        return self.graph.make(opcode, *operands, shape=plain(type or operands[-1].type, sizes))

    def __add__(self, other: Operand) -> Value:
        return self.elementwise("add", other)

    def __sub__(self, other: Operand) -> Value:
        return self.elementwise("subtract", other)

    def __mul__(self, other: Operand) -> Value:
        return self.elementwise("multiply", other)

    def __truediv__(self, other: Operand) -> Value:
        return self.elementwise("divide", other)

    def __neg__(self) -> Value:
        return self.elementwise("negate")

    def __and__(self, other: Operand) -> Value:
        return self.elementwise("and", other)

    def __or__(self, other: Operand) -> Value:
        return self.elementwise("or", other)

    def __xor__(self, other: Operand) -> Value:
        return self.elementwise("xor", other)

    def __lshift__(self, other: Operand) -> Value:
        return self.elementwise("shift-left", other)

    def __rshift__(self, other: Operand) -> Value:
        """Zeros come in from above."""
        return self.elementwise("shift-right-logical", other)

    def maximum(self, other: Operand) -> Value:
        """The greater; NaN where one is."""
        return self.elementwise("maximum", other)

    def minimum(self, other: Operand) -> Value:
        """The smaller; NaN where one is."""
        return self.elementwise("minimum", other)

    def compare(self, direction: str, other: Operand, *, in_total_order: bool = False) -> Value:
        """EQ, NE, LT, LE, GT or GE; of floats by value, or in the total order of their bits."""
        right = self.graph.value(other, self.type)
        sizes = max(self.sizes, right.sizes, key=len)
        operands = [v if v.sizes == sizes else v.broadcast(sizes) for v in (self, right)]
        kind = {"type": string("TOTALORDER")} if in_total_order and self.type.is_float else {}
        return self.graph.make(
            "compare", *operands, shape=plain(PRED, sizes), direction=string(direction), **kind
        )

    def select(self, on_true: Operand, on_false: Value) -> Value:
        """`on_true` where this, a predicate, holds."""
        chosen = self.graph.value(on_true, on_false.type)
        sizes = max((v.sizes for v in (self, chosen, on_false)), key=len)
        parts = [v if v.sizes == sizes else v.broadcast(sizes) for v in (self, chosen, on_false)]
        return self.graph.make("select", *parts, shape=plain(on_false.type, sizes))

    def sqrt(self) -> Value:
        """Square root."""
        return self.elementwise("sqrt")

    def abs(self) -> Value:
        """Magnitude; real for complex numbers."""
        return self.elementwise("abs", type=self.type.real)

    def real(self) -> Value:
        """Real part; itself for real numbers."""
        return self.elementwise("real", type=self.type.real) if self.type.is_complex else self

    def imag(self) -> Value:
        """Imaginary part of complex numbers."""
        return self.elementwise("imag", type=self.type.real)

    def conjugate(self) -> Value:
        """The complex conjugate; itself for real numbers."""
        return self.real().complex(-self.imag()) if self.type.is_complex else self

    def complex(self, imaginary: Value) -> Value:
        """The complex number of two real parts."""
        wide = PRIMITIVE_TYPES["c128" if self.type.bits == 64 else "c64"]
        return self.elementwise("complex", imaginary, type=wide)

    def is_nan(self) -> Value:
        """Whether it is NaN, by comparing with itself."""
        return self.compare("NE", self)

    def convert(self, type: PrimitiveType) -> Value:
        """Another element type; itself for its own."""
        return self if type is self.type else self.elementwise("convert", type=type)

    def bitcast_convert(self, type: PrimitiveType) -> Value:
        """The same bits as another type of the same width."""
        return self.elementwise("bitcast-convert", type=type)

    # ------------------------------------------------------------ shapes

    def in_layout(self, shape: ArrayShape) -> Value:
        """Itself, or a copy in the layout of a shape."""
        if shape.layout is None or shape_at(self.op).layout == shape.layout:
            return self
        return self.graph.make("copy", self, shape=shape)

    def reshape(self, *sizes: int) -> Value:
        """Other sizes."""
        return self.graph.make("reshape", self, shape=plain(self.type, sizes))

    def transpose(self, *order: int) -> Value:
        """Result dimension d is dimension `order[d]`."""
        return Value(self.graph, self.graph.write.transpose(self.op, order))

    def swap(self) -> Value:
        """The last two dimensions exchanged."""
        last = self.rank - 1
        return self.transpose(*range(last - 1), last, last - 1)

    def broadcast(self, leading: Sequence[int]) -> Value:
        """Dimensions put before the own ones."""
        own = range(len(leading), len(leading) + self.rank)
        return self.broadcast_in_dim((*leading, *self.sizes), tuple(own))

    def broadcast_in_dim(self, sizes: Sequence[int], dims: Sequence[int]) -> Value:
        """Dimension d stands at `dims[d]` of the result."""
        return self.graph.make(
            "broadcast", self, shape=plain(self.type, sizes), dimensions=integers(tuple(dims))
        )

    def slice(self, *parts: tuple[int, int]) -> Value:
        """From start to limit, of each dimension."""
        sizes = [limit - start for start, limit in parts]
        found = slices([(start, limit, 1) for start, limit in parts])
        return self.graph.make("slice", self, shape=plain(self.type, sizes), slice=found)

    def slice_minor(self, *parts: tuple[int, int]) -> Value:
        """From start to limit of the last dimensions, and the others whole."""
        whole = [(0, size) for size in self.sizes[: self.rank - len(parts)]]
        return self.slice(*whole, *parts)

    def dynamic_slice_minor(self, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """From starts on in the last dimensions, and the others whole."""
        left = self.rank - len(sizes)
        zero = self.graph.scalar(starts[0].type, 0)
        wanted = (*self.sizes[:left], *sizes)
        return self.graph.make(
            "dynamic-slice",
            self,
            *([zero] * left),
            *starts,
            shape=plain(self.type, wanted),
            dynamic_slice_sizes=integers(wanted),
        )

    def update_minor(self, part: Value, starts: Sequence[Value | int]) -> Value:
        """With `part` written from starts on in the last dimensions."""
        zeros: list[Value | int] = [0] * (self.rank - len(starts))
        places = [self.graph.scalar(S32, s) if isinstance(s, int) else s for s in (*zeros, *starts)]
        return self.graph.make(
            "dynamic-update-slice", self, part, *places, shape=plain(self.type, self.sizes)
        )

    def pad(self, parts: Sequence[tuple[int, int]], number: Number = 0) -> Value:
        """Low and high padding of each dimension."""
        sizes = [low + n + high for n, (low, high) in zip(self.sizes, parts, strict=True)]
        return self.graph.make(
            "pad",
            self,
            self.graph.scalar(self.type, number),
            shape=plain(self.type, sizes),
            padding=paddings([(low, high, 0) for low, high in parts]),
        )

    def reverse(self, *dims: int) -> Value:
        """The order along dimensions turned."""
        return self.graph.make(
            "reverse", self, shape=plain(self.type, self.sizes), dimensions=integers(dims)
        )

    # ------------------------------------------------------------ sums

    def reduce(self, opcode: str, dims: Sequence[int], start: Number = 0) -> Value:
        """Dimensions taken together by a binary opcode."""
        sizes = [n for d, n in enumerate(self.sizes) if d not in dims]
        return self.graph.make(
            "reduce",
            self,
            self.graph.scalar(self.type, start),
            shape=plain(self.type, sizes),
            dimensions=integers(tuple(dims)),
            to_apply=binary_computation(self.graph.home, opcode, self.type),
        )

    def matmul(
        self, other: Value, *, transpose: bool = False, transpose_other: bool = False
    ) -> Value:
        """Matrix product of the last two dimensions, of each batch, at the highest precision."""
        batch = tuple(range(self.rank - 2))
        row = self.rank - 2
        left, right = (row, row + 1) if transpose else (row + 1, row), row + transpose_other
        sizes = (*self.sizes[:row], self.sizes[left[1]], other.sizes[2 * row + 1 - right])
        return self.graph.make(
            "dot",
            self,
            other,
            shape=plain(self.type, sizes),
            **(
                {"lhs_batch_dims": integers(batch), "rhs_batch_dims": integers(batch)}
                if batch
                else {}
            ),
            lhs_contracting_dims=integers((left[0],)),
            rhs_contracting_dims=integers((right,)),
            operand_precision=ArrayAttr([string("highest")] * 2),
        )


class Graph:
    """A computation under construction for the instruction `home`, whose module gets it."""

    def __init__(self, home: Instruction, write: Writer) -> None:
        self.home, self.write = home, write
        self.parameters = 0

    @staticmethod
    def of(home: Instruction) -> tuple[Graph, Block]:
        """An empty graph, and the block that its instructions go to."""
        block = Block()
        return Graph(home, Writer(lambda op: append(block, op))), block

    def make(
        self, opcode: str, *operands: Value, shape: Shape | None = None, **properties: object
    ) -> Value:
        """A new instruction; its shape is inferred where none is given."""
        return Value(
            self,
            self.write(opcode, *(v.op for v in operands), shape=shape, **properties),  # type: ignore[arg-type]
        )

    def parameter(self, shape: Shape) -> Value:
        """The next parameter."""
        number = integer(self.parameters)
        self.parameters += 1
        return self.make("parameter", shape=shape, parameter_number=number)

    def scalar(self, type: PrimitiveType, number: Number) -> Value:
        """A scalar constant; `number` is rounded to the type."""
        return Value(self, self.write.scalar(type, number))

    def value(self, given: Operand, type: PrimitiveType) -> Value:
        """A value as it is, a number as a scalar of `type`."""
        return given if isinstance(given, Value) else self.scalar(type, given)

    def full(self, type: PrimitiveType, sizes: Sequence[int], number: Number = 0) -> Value:
        """An array of equal numbers."""
        found = self.scalar(type, number)
        return found.broadcast(sizes) if sizes else found

    def iota(self, type: PrimitiveType, sizes: Sequence[int], dim: int = 0) -> Value:
        """0, 1, … along a dimension."""
        return self.make("iota", shape=plain(type, sizes), iota_dimension=integer(dim))

    def concatenate(self, values: Sequence[Value], dim: int) -> Value:
        """Values one after the other along a dimension."""
        first = values[0]
        sizes = list(first.sizes)
        sizes[dim] = sum(v.sizes[dim] for v in values)
        return self.make(
            "concatenate", *values, shape=plain(first.type, sizes), dimensions=integers((dim,))
        )

    def tuple(self, *values: Value) -> Value:
        """A tuple; of it only `op` may be read."""
        return self.make("tuple", *values, shape=TupleShape(tuple(v.op.shape for v in values)))

    def element(self, value: Value, index: int) -> Value:
        """An element of a tuple."""
        shape = value.op.shape
        assert isinstance(shape, TupleShape)
        return self.make(
            "get-tuple-element", value, shape=shape.elements[index], index=integer(index)
        )

    def inline(self, computation: str, *operands: Value) -> Value:
        """What a computation of the module makes of its arguments."""
        callee = called(self.home, computation)
        values: dict[SSAValue, SSAValue] = {}
        for op in callee.instructions:
            if isinstance(op, ParameterOp):
                values[op.output] = operands[op.parameter_number].op.output
                continue
            copy = clone_instruction(op, values)
            self.write.emit(copy)
            values[op.output] = copy.output
        root = values[callee.terminator.root].owner
        assert isinstance(root, Instruction)
        return Value(self, root)

    def sort(
        self,
        values: Sequence[Value],
        dim: int,
        *,
        direction: str = "LT",
        in_total_order: bool = False,
    ) -> list[Value]:
        """All ordered by the first, ascending or (`GT`) descending; equal ones keep their order."""
        graph, block = Graph.of(self.home)
        pairs = [graph.parameter(plain(v.type, ())) for v in values for _ in range(2)]
        less = pairs[0].compare(direction, pairs[1], in_total_order=in_total_order)
        comparator = add_computation(self.home, "less", block, less.op)
        shapes = tuple(v.op.shape for v in values)
        found = self.make(
            "sort",
            *values,
            shape=TupleShape(shapes) if len(shapes) > 1 else values[0].op.shape,
            dimensions=integers((dim,)),
            is_stable=boolean(True),
            to_apply=comparator,
        )
        if len(shapes) == 1:
            return [found]
        return [self.element(found, k) for k in range(len(shapes))]

    def for_each(self, rounds: int, state: Sequence[Value], step: Step) -> list[Value]:
        """Runs `step` for 0, 1, … `rounds` - 1; the state at the end."""

        def inside(
            own: Writer, number: Instruction, parts: Sequence[Instruction]
        ) -> Sequence[Instruction]:
            graph = Graph(self.home, own)
            values = [Value(graph, part) for part in parts]
            return [v.op for v in step(graph, Value(graph, number), values)]

        found = loop(self.home, self.write, rounds, [v.op for v in state], inside)
        return [Value(self, op) for op in found]

    def while_loop(
        self,
        state: Sequence[Value],
        condition: Callable[[Graph, Sequence[Value]], Value],
        body: Callable[[Graph, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Runs `body` while `condition` holds; the state at the end."""
        start = self.tuple(*state)

        def computation(
            name: str, root: Callable[[Graph, Sequence[Value]], Value]
        ) -> SymbolRefAttr:
            graph, block = Graph.of(self.home)
            whole = graph.parameter(start.op.shape)
            found = root(graph, [graph.element(whole, k) for k in range(len(state))])
            return add_computation(self.home, name, block, found.op)

        result = self.make(
            "while",
            start,
            shape=start.op.shape,
            body=computation("while_body", lambda g, v: g.tuple(*body(g, v))),
            condition=computation("while_cond", condition),
        )
        return [self.element(result, k) for k in range(len(state))]
