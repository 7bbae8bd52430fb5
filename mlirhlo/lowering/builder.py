"""Building functions of the loops stage.

    b = FunctionBuilder("scale", [MemRefType(f32, [64]), MemRefType(f32, [64])])
    x, out = b.arguments
    with b.loop(0, 64, 16) as i:
        value = b.vector_load(x, [i], 16)
        b.vector_store(b.mulf(value, b.constant(2.0, value.type)), out, [i])
    function = b.finish()

Ops go to the end of the current block; constants stand once at the head of the function. Values are
scalars or vectors, and every arithmetic method takes both.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import func, math, memref, scf
from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects import arith, vector
from mlirhlo.dialects.quick import create_op

OpT = TypeVar("OpT", bound=Operation)

INDEX = IndexType()
Index: TypeAlias = "SSAValue | int"
"""An index: a value, or a number known now."""

EXACT = xarith.FastMathFlagsAttr("none")
REASSOCIATE = xarith.FastMathFlagsAttr([FastMathFlag.REASSOC])
_NO_OVERFLOW = xarith.IntegerOverflowAttr("none")
_STREAMING = IntegerAttr(1, i1)
_VECTORS: dict[tuple[Attribute, int], VectorType[Any]] = {}


def vector_of(element: Attribute, lanes: int) -> VectorType[Any]:
    """`vector<lanes x element>`, one object for each."""
    found = _VECTORS.get((element, lanes))
    if found is None:
        found = _VECTORS[element, lanes] = VectorType(element, [lanes])
    return found


def lanes_of(type_: Attribute) -> int:
    """Lanes of a vector; 0 for a scalar."""
    if isinstance(type_, VectorType):
        (size,) = cast("VectorType[Attribute]", type_).get_shape()
        return size
    return 0


def element_of(type_: Attribute) -> Attribute:
    """Element type of a vector; the type itself for a scalar."""
    if isinstance(type_, VectorType):
        return cast("VectorType[Attribute]", type_).element_type
    return type_


def like(type_: Attribute, element: Attribute) -> Attribute:
    """`type_` with other elements: a vector of as many lanes, or the scalar."""
    lanes = lanes_of(type_)
    return vector_of(element, lanes) if lanes else element


@dataclass
class Loop:
    """A loop while it is built, and its results after it."""

    index: SSAValue
    carried: Sequence[SSAValue]
    """Values carried from the round before."""
    results: Sequence[SSAValue] = ()
    _next: list[SSAValue] = field(default_factory=list[SSAValue])

    def carry(self, *values: SSAValue) -> None:
        """Says what the next round gets, in the order of `carried`."""
        self._next[:] = values


@dataclass
class Choice:
    """Values that a branch may replace."""

    results: Sequence[SSAValue] = ()
    _given: list[SSAValue] = field(default_factory=list[SSAValue])

    def give(self, *values: SSAValue) -> None:
        """Says what the branch makes of them, in their order."""
        self._given[:] = values


class FunctionBuilder:
    """Builds one `func.func` of the loops stage."""

    def __init__(
        self,
        name: str,
        argument_types: Sequence[Attribute],
        result_types: Sequence[Attribute] = (),
        *,
        public: bool = True,
        argument_attributes: Sequence[dict[str, Attribute]] = (),
    ) -> None:
        self.name = name
        self._body = Block(arg_types=argument_types)
        self.block = self._body
        """Where ops go."""
        self.arguments = self._body.args
        self._signature = FunctionType.from_lists(argument_types, result_types)
        self._public = public
        self._argument_attributes = argument_attributes
        self._constants: dict[tuple[object, Attribute], SSAValue] = {}
        self._heads: list[Operation] = []

    def finish(self, *results: SSAValue) -> func.FuncOp:
        """Ends the function with a return."""
        self.block.add_op(create_op(func.ReturnOp, results))
        if self._heads:
            first = self._body.first_op
            if first is None:
                self._body.add_ops(self._heads)
            else:
                self._body.insert_ops_before(self._heads, first)
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(self.name),
            "function_type": self._signature,
        }
        if not self._public:
            properties["sym_visibility"] = StringAttr("private")
        if self._argument_attributes:
            properties["arg_attrs"] = ArrayAttr(
                [DictionaryAttr(a) for a in self._argument_attributes]
            )
        return create_op(func.FuncOp, (), (), properties, regions=[Region(self._body)])

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Appends an op of one result and gives it."""
        op = create_op(cls, operands, (result_type,), properties)
        self.block.add_op(op)
        return op.results[0]

    def effect(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        properties: dict[str, Attribute] | None = None,
    ) -> None:
        """Appends an op without results."""
        self.block.add_op(create_op(cls, operands, (), properties))

    # Constants

    def constant(self, value: float | int | bool, type_: Attribute) -> SSAValue:
        """A number as a scalar or in every lane, at the head of the function."""
        key = (repr(value), type_)
        found = self._constants.get(key)
        if found is None:
            element = element_of(type_)
            attribute: Attribute
            if isinstance(element, IntegerType | IndexType):
                number: Any = int(value)
                if not isinstance(element, IndexType):
                    number = _wrapped(number, cast(Any, element).width.data)
                attribute = cast(Attribute, IntegerAttr(number, cast(Any, element)))
            else:
                number = float(value)
                attribute = FloatAttr(number, cast(Any, element))
            if lanes_of(type_):
                attribute = DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [number])
            op = create_op(xarith.ConstantOp, (), (type_,), {"value": attribute})
            self._heads.append(op)
            found = self._constants[key] = op.results[0]
        return found

    def table(self, numbers: Sequence[float], element: Attribute) -> SSAValue:
        """A buffer that holds these numbers, filled at the head of the function."""
        key = (tuple(numbers), element)
        found = self._constants.get(key)
        if found is None:
            lanes = 8
            padded = [*numbers, *[0.0] * (-len(numbers) % lanes)]
            found = self._constants[key] = self.scratch([len(padded)], element)
            type_ = vector_of(element, lanes)
            for at in range(0, len(padded), lanes):
                row = DenseIntOrFPElementsAttr.from_list(cast(Any, type_), padded[at : at + lanes])
                constant = create_op(xarith.ConstantOp, (), (type_,), {"value": row})
                place = self.index(at)
                store = create_op(xvector.StoreOp, (constant.results[0], found, place))
                self._heads += [constant, store]
        return found

    def index(self, value: Index) -> SSAValue:
        """An index as a value."""
        return value if isinstance(value, SSAValue) else self.constant(value, INDEX)

    # Arithmetic on indices, folded where both sides are known

    def add(self, lhs: Index, rhs: Index) -> Index:
        """`lhs + rhs`."""
        if isinstance(lhs, int):
            lhs, rhs = rhs, lhs
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs + rhs
        return lhs if rhs == 0 else self._integer(xarith.AddiOp, lhs, rhs)

    def sub(self, lhs: Index, rhs: Index) -> Index:
        """`lhs - rhs`."""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs - rhs
        return lhs if rhs == 0 else self._integer(xarith.SubiOp, lhs, rhs)

    def mul(self, lhs: Index, rhs: Index) -> Index:
        """`lhs * rhs`."""
        if isinstance(lhs, int):
            lhs, rhs = rhs, lhs
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs * rhs
        if rhs == 0:
            return 0
        return lhs if rhs == 1 else self._integer(xarith.MuliOp, lhs, rhs)

    def div(self, lhs: Index, rhs: int) -> Index:
        """`lhs / rhs` of indices that are not negative."""
        if isinstance(lhs, int):
            return lhs // rhs
        return lhs if rhs == 1 else self._integer(xarith.DivUIOp, lhs, rhs)

    def rem(self, lhs: Index, rhs: int) -> Index:
        """`lhs % rhs` of indices that are not negative."""
        if isinstance(lhs, int):
            return lhs % rhs
        return 0 if rhs == 1 else self._integer(xarith.RemUIOp, lhs, rhs)

    def _integer(self, cls: type[Operation], lhs: Index, rhs: Index) -> SSAValue:
        properties: dict[str, Attribute] | None = None
        if cls in _WITH_OVERFLOW:
            properties = {"overflowFlags": _NO_OVERFLOW}
        return self.emit(cls, [self.index(lhs), self.index(rhs)], INDEX, properties)

    # Arithmetic on values

    def _two(self, cls: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        properties: dict[str, Attribute] | None = None
        if cls in _WITH_OVERFLOW:
            properties = {"overflowFlags": _NO_OVERFLOW}
        return self.emit(cls, (lhs, rhs), lhs.type, properties)

    def _float(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        flags: xarith.FastMathFlagsAttr = EXACT,
    ) -> SSAValue:
        return self.emit(cls, operands, operands[0].type, {"fastmath": flags})

    def addf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x + y`."""
        return self._float(xarith.AddfOp, (x, y))

    def subf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x - y`."""
        return self._float(xarith.SubfOp, (x, y))

    def mulf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x * y`."""
        return self._float(xarith.MulfOp, (x, y))

    def divf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x / y`."""
        return self._float(xarith.DivfOp, (x, y))

    def negf(self, x: SSAValue) -> SSAValue:
        """`-x`."""
        return self._float(xarith.NegfOp, (x,))

    def fma(self, x: SSAValue, y: SSAValue, z: SSAValue) -> SSAValue:
        """`x * y + z`, rounded once."""
        return self._float(math.FmaOp, (x, y, z))

    def one(self, cls: type[Operation], x: SSAValue) -> SSAValue:
        """An op of `math` with one float operand: `SqrtOp`, `FloorOp`, `AbsFOp`, …"""
        return self._float(cls, (x,))

    def maximumf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The greater, NaN when one is."""
        return self._float(xarith.MaximumfOp, (x, y))

    def minimumf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The lesser, NaN when one is."""
        return self._float(xarith.MinimumfOp, (x, y))

    def addi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x + y`, wrapping."""
        return self._two(xarith.AddiOp, x, y)

    def subi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x - y`, wrapping."""
        return self._two(xarith.SubiOp, x, y)

    def muli(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x * y`, wrapping."""
        return self._two(xarith.MuliOp, x, y)

    def andi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise and."""
        return self._two(xarith.AndIOp, x, y)

    def ori(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise or."""
        return self._two(xarith.OrIOp, x, y)

    def xori(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise exclusive or."""
        return self._two(xarith.XOrIOp, x, y)

    def shli(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift left by less than the width."""
        return self._two(xarith.ShLIOp, x, y)

    def shrui(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift right by less than the width, zeros in front."""
        return self._two(xarith.ShRUIOp, x, y)

    def shrsi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift right by less than the width, signs in front."""
        return self._two(xarith.ShRSIOp, x, y)

    def integer(self, cls: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        """Another op of `arith` on two integers: `DivSIOp`, `MaxSIOp`, …"""
        return self._two(cls, x, y)

    def cmpf(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """Compares floats: `oeq`, `olt`, `une`, …"""
        number = arith.CmpfOp.PREDICATES.index(predicate)
        return self.emit(
            arith.CmpfOp,
            (x, y),
            like(x.type, i1),
            {"predicate": IntegerAttr(number, i64), "fastmath": EXACT},
        )

    def cmpi(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """Compares integers: `eq`, `slt`, `ult`, …"""
        number = arith.CmpiOp.PREDICATES.index(predicate)
        return self.emit(
            arith.CmpiOp, (x, y), like(x.type, i1), {"predicate": IntegerAttr(number, i64)}
        )

    def select(self, mask: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x` where the mask is set, else `y`."""
        return self.emit(arith.SelectOp, (mask, x, y), x.type)

    def cast(self, cls: type[Operation], x: SSAValue, element: Attribute) -> SSAValue:
        """A conversion of `arith` to another element type: `ExtFOp`, `SIToFPOp`, …"""
        return self.emit(cls, (x,), like(x.type, element))

    def bitcast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """The same bits as another element type of that width."""
        return self.emit(arith.BitcastOp, (x,), like(x.type, element))

    def cast_index(self, x: SSAValue, element: Attribute, *, signed: bool = True) -> SSAValue:
        """Between `index` and integers."""
        cls = arith.IndexCastOp
        if not signed and isinstance(element, IndexType):
            # Widened with zeros first: an index cast copies the sign.
            if cast(Any, element_of(x.type)).width.data < 64:
                x = self.cast(arith.ExtUIOp, x, i64)
        return self.emit(cls, (x,), like(x.type, element))

    # Vectors

    def broadcast(self, x: SSAValue, lanes: int) -> SSAValue:
        """A scalar in every lane."""
        return self.emit(xvector.BroadcastOp, (x,), vector_of(x.type, lanes))

    def steps(self, lanes: int) -> SSAValue:
        """`[0, 1, 2, …]` of index."""
        return self.emit(vector.StepOp, (), vector_of(INDEX, lanes))

    def mask(self, count: SSAValue, lanes: int) -> SSAValue:
        """Set in the lanes below `count`."""
        return self.emit(xvector.CreateMaskOp, (count,), vector_of(i1, lanes))

    def reduce(self, kind: str, x: SSAValue) -> SSAValue:
        """All lanes combined, in any order: `add`, `mul`, `maxsi`, `maximumf`, …"""
        properties: dict[str, Attribute] = {
            "kind": xvector.CombiningKindAttr(xvector.CombiningKindFlag(kind)),
            "fastmath": EXACT if isinstance(element_of(x.type), IntegerType) else REASSOCIATE,
        }
        return self.emit(xvector.ReductionOp, (x,), element_of(x.type), properties)

    def extract(self, x: SSAValue, lane: int) -> SSAValue:
        """One lane."""
        return self.emit(
            xvector.ExtractOp,
            (x,),
            element_of(x.type),
            {"static_position": DenseArrayBase.from_list(i64, [lane])},
        )

    def shuffle(self, x: SSAValue, y: SSAValue, lanes: Sequence[int]) -> SSAValue:
        """Lanes picked out of `x` and, counted on, `y`."""
        return self.emit(
            xvector.ShuffleOp,
            (x, y),
            vector_of(element_of(x.type), len(lanes)),
            {"mask": DenseArrayBase.from_list(i64, list(lanes))},
        )

    # Memory

    def load(self, source: SSAValue, indices: Sequence[Index]) -> SSAValue:
        """One element."""
        element = cast(MemRefType[Any], source.type).element_type
        return self.emit(memref.LoadOp, [source, *map(self.index, indices)], element)

    def store(self, value: SSAValue, target: SSAValue, indices: Sequence[Index]) -> None:
        """Stores one element."""
        self.effect(memref.StoreOp, [value, target, *map(self.index, indices)])

    def vector_load(
        self,
        source: SSAValue,
        indices: Sequence[Index],
        lanes: int,
        mask: SSAValue | None = None,
    ) -> SSAValue:
        """Neighbours along the last dimension; lanes whose mask is not set are zero."""
        element = cast(MemRefType[Any], source.type).element_type
        type_ = vector_of(element, lanes)
        operands = [source, *map(self.index, indices)]
        if mask is None:
            return self.emit(xvector.LoadOp, operands, type_)
        return self.emit(xvector.MaskedLoadOp, [*operands, mask, self.constant(0, type_)], type_)

    def vector_store(
        self,
        value: SSAValue,
        target: SSAValue,
        indices: Sequence[Index],
        mask: SSAValue | None = None,
        *,
        streaming: bool = False,
    ) -> None:
        """Stores neighbours along the last dimension; `streaming` ones go past the caches."""
        operands = [target, *map(self.index, indices)]
        if mask is None:
            properties: dict[str, Attribute] = {"nontemporal": _STREAMING} if streaming else {}
            self.effect(xvector.StoreOp, [value, *operands], properties)
        else:
            self.effect(xvector.MaskedStoreOp, [*operands, mask, value])

    def gather(
        self,
        source: SSAValue,
        indices: Sequence[Index],
        offsets: SSAValue,
        mask: SSAValue | None = None,
    ) -> SSAValue:
        """Elements at `indices` moved by `offsets` along the last dimension."""
        element = cast(MemRefType[Any], source.type).element_type
        lanes = lanes_of(offsets.type)
        type_ = vector_of(element, lanes)
        mask = mask or self.constant(1, vector_of(i1, lanes))
        operands = [source, *map(self.index, indices), offsets, mask, self.constant(0, type_)]
        return self.emit(vector.GatherOp, operands, type_)

    def scratch(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A buffer on the stack, 64 bytes aligned."""
        op = create_op(
            memref.AllocaOp,
            (),
            (MemRefType(element, shape),),
            {
                "alignment": IntegerAttr(64, i64),
                "operandSegmentSizes": DenseArrayBase.from_list(i32, [0, 0]),
            },
        )
        self._heads.append(op)
        return op.results[0]

    # Control

    @contextmanager
    def loop(
        self,
        lower: Index,
        upper: Index,
        step: int = 1,
        initial: Sequence[SSAValue] = (),
        *,
        parallel: bool = False,
    ) -> Generator[Any]:
        """`for (i = lower; i < upper; i += step)`.

        Gives the index, or with `initial` values a `Loop`; `parallel` marks rounds that may run
        at the same time.
        """
        types = [v.type for v in initial]
        body = Block(arg_types=[INDEX, *types])
        operands = [self.index(lower), self.index(upper), self.index(step), *initial]
        loop = Loop(body.args[0], body.args[1:])
        outer, self.block = self.block, body
        yield loop if initial else loop.index
        self.block.add_op(create_op(scf.YieldOp, loop._next))  # pyright: ignore[reportPrivateUsage]
        self.block = outer
        attributes: dict[str, Attribute] = {"mlirhlo.parallel": UnitAttr()} if parallel else {}
        op = create_op(scf.ForOp, operands, types, regions=[Region(body)], attributes=attributes)
        outer.add_op(op)
        loop.results = op.results

    @contextmanager
    def if_(self, condition: SSAValue) -> Generator[None]:
        """`if (condition) { … }`."""
        body = Block()
        outer, self.block = self.block, body
        yield
        self.block.add_op(create_op(scf.YieldOp))
        self.block = outer
        outer.add_op(create_op(scf.IfOp, [condition], regions=[Region(body), Region()]))

    @contextmanager
    def otherwise(self, condition: SSAValue, values: Sequence[SSAValue]) -> Generator[Choice]:
        """Other `values` where the condition holds: `choice.give(…)` inside, `choice.results` after."""
        choice = Choice()
        then, other = Block(), Block()
        outer, self.block = self.block, then
        yield choice
        self.block.add_op(create_op(scf.YieldOp, choice._given))  # pyright: ignore[reportPrivateUsage]
        self.block = outer
        other.add_op(create_op(scf.YieldOp, values))
        types = [v.type for v in values]
        op = create_op(scf.IfOp, [condition], types, regions=[Region(then), Region(other)])
        outer.add_op(op)
        choice.results = op.results

    def call(self, name: str, operands: Sequence[SSAValue]) -> None:
        """Calls a function without results."""
        self.effect(func.CallOp, operands, {"callee": SymbolRefAttr(name)})


_WITH_OVERFLOW: frozenset[type[Operation]] = frozenset(
    {xarith.AddiOp, xarith.SubiOp, xarith.MuliOp, xarith.ShLIOp}
)


def _wrapped(number: int, width: int) -> int:
    """An integer as a signed one of `width` bits."""
    number &= (1 << width) - 1
    return number if width == 1 or number < 1 << (width - 1) else number - (1 << width)
