"""Where ops go, numbers, and arithmetic on indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import memref
from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.interned import each, integer64, integers32, number
from mlirhlo.dialects.quick import append, create_op
from mlirhlo.lowering.builder.types import (
    INDEX,
    NO_OVERFLOW,
    WITH_OVERFLOW,
    Index,
    element_of,
    memref_of,
    vector_of,
)


class BlockBuilder:
    """Appends ops to a block; constants stand once at the head of the function."""

    def __init__(self, body: Block) -> None:
        self._body = body
        self.block = body
        """Where ops go."""
        self.nesting = 0
        """Elements that are being emitted, each for the one before it."""
        self._constants: dict[tuple[str, int], SSAValue] = {}
        """By what Python writes, and the identity of their types, which live as long as they do."""
        self._floats: dict[SSAValue, float] = {}
        """What constants of floats are."""
        self._tables: dict[tuple[tuple[float, ...], Attribute], SSAValue] = {}
        self._heads: list[Operation] = []
        """Ops at the head of the function."""
        self._scratch: list[Operation] = self._heads
        """Where buffers on the stack go: the head of the function, or of the parallel loop."""

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Appends an op of one result and gives it."""
        op = create_op(cls, operands, (result_type,), properties)
        append(self.block, op)
        (result,) = op.results
        return result

    def effect(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        properties: dict[str, Attribute] | None = None,
    ) -> None:
        """Appends an op without results."""
        append(self.block, create_op(cls, operands, (), properties))

    # Constants

    def constant(self, value: float | int | bool, type_: Attribute) -> SSAValue:
        """A number as a scalar or in every lane, at the head of the function."""
        key = (repr(value), id(type_))
        found = self._constants.get(key)
        if found is None:
            element = element_of(type_)
            if type(element) is IndexType:
                text = repr(int(value))
            elif type(element) is IntegerType:
                text = repr(_wrapped(int(value), cast(Any, element).width.data))
            else:
                text = repr(float(value))
            attribute = cast(Attribute, number(text, type_))
            op = create_op(xarith.ConstantOp, (), (type_,), {"value": attribute})
            self._heads.append(op)
            (found,) = op.results
            self._constants[key] = found
            if isinstance(value, float):
                self._floats[found] = value
        return found

    def lanes(self, numbers: Sequence[float], type_: Attribute) -> SSAValue:
        """A vector of these numbers, at the head of the function."""
        texts = tuple(map(repr, numbers))
        key = (" ".join(texts), id(type_))
        found = self._constants.get(key)
        if found is None:
            op = create_op(xarith.ConstantOp, (), (type_,), {"value": each(texts, type_)})
            self._heads.append(op)
            (found,) = op.results
            self._constants[key] = found
        return found

    def table(self, numbers: Sequence[float], element: Attribute) -> SSAValue:
        """A buffer that holds these numbers, filled at the head of the function."""
        key = (tuple(numbers), element)
        found = self._tables.get(key)
        if found is None:
            lanes = 8
            padded = [*numbers, *[0.0] * (-len(numbers) % lanes)]
            found = self._tables[key] = _alloca([len(padded)], element, self._heads)
            type_ = vector_of(element, lanes)
            for at in range(0, len(padded), lanes):
                row = DenseIntOrFPElementsAttr.from_list(cast(Any, type_), padded[at : at + lanes])
                constant = create_op(xarith.ConstantOp, (), (type_,), {"value": row})
                place = self.index(at)
                store = create_op(xvector.StoreOp, (constant.results[0], found, place))
                self._heads += [constant, store]
        return found

    def scratch(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A buffer on the stack, 64 bytes aligned; in a parallel loop each round has its own."""
        return _alloca(shape, element, self._scratch)

    def index(self, value: Index) -> SSAValue:
        """An index as a value."""
        return self.constant(value, INDEX) if isinstance(value, int) else value

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

    def xor(self, lhs: Index, rhs: Index) -> Index:
        """`lhs ^ rhs`."""
        if isinstance(lhs, int):
            lhs, rhs = rhs, lhs
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs ^ rhs
        return lhs if rhs == 0 else self._integer(xarith.XOrIOp, lhs, rhs)

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

    def minimum(self, lhs: Index, rhs: Index) -> Index:
        """The lesser of indices that are not negative."""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return min(lhs, rhs)
        return self._integer(xarith.MinUIOp, lhs, rhs)

    def _integer(self, cls: type[Operation], lhs: Index, rhs: Index) -> SSAValue:
        properties: dict[str, Attribute] | None = None
        if cls in WITH_OVERFLOW:
            properties = {"overflowFlags": NO_OVERFLOW}
        return self.emit(cls, [self.index(lhs), self.index(rhs)], INDEX, properties)


def _alloca(shape: Sequence[int], element: Attribute, heads: list[Operation]) -> SSAValue:
    op = create_op(
        memref.AllocaOp,
        (),
        (memref_of(element, *shape),),
        {
            "alignment": integer64(64),
            "operandSegmentSizes": integers32(0, 0),
        },
    )
    heads.append(op)
    return op.results[0]


def _wrapped(number: int, width: int) -> int:
    """An integer as a signed one of `width` bits."""
    number &= (1 << width) - 1
    return number if width == 1 or number < 1 << (width - 1) else number - (1 << width)
