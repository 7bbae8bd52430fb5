"""Where the ops of a function go, and arithmetic on its indices.

A sum, product or address is computed once, as far out of loops and branches as what it is made of allows, and
constants come last: the elements `i`, `i + 16` and `i + 32` of a row are one address and two offsets of it, which
the processor adds by itself. LLVM gets less to read that way, and needs no loop-strength reduction.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import integer
from mlirhlo.dialects.quick import (
    add_block,
    append,
    create_op,
    insert_before_last,
    new_block,
    region_of,
)

OpT = TypeVar("OpT", bound=Operation)

POINTER = xllvm.LLVMPointerType()


@functools.lru_cache(maxsize=1024)
def pointer_in(space: int) -> xllvm.LLVMPointerType:
    """The type of pointers into an address space."""
    return xllvm.LLVMPointerType(IntAttr(space)) if space else POINTER


_NO_FLAGS = IntegerAttr(0, i32)
_DYNAMIC = DenseArrayBase.from_list(i32, [xllvm.GEP_USE_SSA_VAL])


class IndexBuilder:
    """Appends ops to the current block of a function whose control flow is structured."""

    def __init__(self, index: IntegerType = i64) -> None:
        self.index = index
        """What `index` is."""
        self.body = region_of()
        self.entry: Block
        """Holds constants and allocas, in front of all others."""
        self.first: Block
        """Where the entry jumps to."""
        self.block: Block
        """Where ops go."""
        self.known: dict[SSAValue, int] = {}
        """Integers that are constants, by their value in the llvm dialect."""
        self._integers: dict[int, SSAValue] = {}
        self._others: dict[int, dict[int, SSAValue]] = {}
        """Those of other types, by the numbers of the types."""
        self._around: list[Block] = []
        """Blocks that the loops and branches around the current block were entered from."""
        self._depths: dict[int, int] = {}
        """In how many loops and branches a block stands, by its identity; where not in none."""
        self._found: list[dict[tuple[object, ...], SSAValue]] = [{}]
        """What was computed in each of them, by the op, the identities of operands, and the type."""
        self._kinds: dict[int, tuple[Attribute, int]] = {}
        """Numbers of types by their identity, and what has it."""
        self._equal: dict[Attribute, tuple[Attribute, int]] = {}
        self._bit = self.kind(i1)
        self._sums: dict[SSAValue, tuple[SSAValue, int]] = {}
        """Sums of a value and a constant."""

    def begin(self, inputs: Sequence[Attribute]) -> Sequence[SSAValue]:
        """Starts a function with a body; its arguments."""
        self.entry = new_block(inputs)
        add_block(self.body, self.entry)
        self.block = self.first = self.add_block()
        return self.entry.args

    def add_block(self, types: Sequence[Attribute] = ()) -> Block:
        """A new block at the end of the function; the current one stays."""
        block = new_block(types)
        add_block(self.body, block)
        return block

    def enter(self, block: Block) -> None:
        """Goes on in a loop or branch that the current block, which has ended, leads to."""
        self._around.append(self.block)
        self._found.append({})
        self.go_on(block)

    def leave(self, block: Block) -> None:
        """Goes on after the loop or branch."""
        self._around.pop()
        self._found.pop()
        self.go_on(block)

    def go_on(self, block: Block) -> None:
        """Goes on in a block that stands in the same loops and branches."""
        self._depths[id(block)] = len(self._around)
        self.block = block

    def remove_unread(self) -> None:
        """Takes out sums whose parts alone were read."""
        for value in reversed(self._sums):
            if value.first_use is None and isinstance(value, OpResult):
                value.op.detach()
                value.op.erase()

    def emit(
        self,
        cls: type[OpT],
        operands: Sequence[SSAValue],
        result_type: Attribute | None = None,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Appends an op; its result, or (for one without) something nobody may use."""
        if result_type is None:
            append(self.block, create_op(cls, operands, (), properties))
            return _NOTHING
        op: Operation = create_op(cls, operands, (result_type,), properties)
        append(self.block, op)
        (result,) = op.results
        return result

    def constant(self, number: int, type_: Attribute | None = None) -> SSAValue:
        """An integer constant, one for a function; an index unless its type is given."""
        index = self.index
        if type_ is None:
            type_ = index
        known = self._integers if type_ is index else self._others.setdefault(self.kind(type_), {})
        value = known.get(number)
        if value is None:
            op = create_op(xllvm.ConstantOp, (), (type_,), {"value": integer(number, type_)})
            append(self.entry, op)
            (value,) = op.results
            known[number] = value
            if type_ is index or type_ == index:
                self.known[value] = number
        return value

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`lhs + rhs` of indices, folded where both are known."""
        if lhs in self.known:
            lhs, rhs = rhs, lhs
        base, number = self._sums.get(lhs, (lhs, 0))
        if (known := self.known.get(rhs)) is None:
            other, more = self._sums.get(rhs, (rhs, 0))
            base = self._once(xllvm.AddOp, base, other, self.index, {"overflowFlags": _NO_FLAGS})
            return self._plus(base, number + more)
        if (first := self.known.get(lhs)) is not None:
            return self.constant(first + known)
        return self._plus(base, number + known)

    def times(self, value: SSAValue, factor: int) -> SSAValue:
        """`value * factor` of indices, folded where it is known."""
        known = self.known.get(value)
        if known is not None:
            return self.constant(known * factor)
        if factor == 1:
            return value
        if factor == 0:
            return self.constant(0)
        base, number = self._sums.get(value, (value, 0))
        properties: dict[str, Attribute] = {"overflowFlags": _NO_FLAGS}
        power = factor.bit_length() - 1
        if factor == 1 << power:
            base = self._once(xllvm.ShlOp, base, self.constant(power), self.index, properties)
        else:
            base = self._once(xllvm.MulOp, base, self.constant(factor), self.index, properties)
        return self._plus(base, number * factor)

    def offset(self, pointer: SSAValue, elements: SSAValue, element: Attribute) -> SSAValue:
        """`pointer` moved by a number of elements."""
        return self.moved(pointer, (elements,), element)

    def moved(self, pointer: SSAValue, offsets: Iterable[SSAValue], element: Attribute) -> SSAValue:
        """`pointer` moved by numbers of elements: by those that change seldom first, by constants last."""
        constant = 0
        terms: list[tuple[int, SSAValue]] = []
        for value in offsets:
            known = self.known.get(value)
            if known is None:
                value, known = self._sums.get(value, (value, 0))
                terms.append((self._depth(value), value))
            constant += known
        if terms and self.kind(element) == self._bit:
            raise error("HLO0431", "memory holds no single bits: use i8")
        if len(terms) > 1:
            terms.sort(key=lambda term: term[0])
        for _, group in groupby(terms, key=lambda term: term[0]):
            (_, total), *rest = group
            for _, value in rest:
                total = self.add(total, value)
            pointer = self._address(pointer, total, element)
        return self._address(pointer, self.constant(constant), element) if constant else pointer

    def _address(self, pointer: SSAValue, elements: SSAValue, element: Attribute) -> SSAValue:
        """Not `inbounds`: parts of a sum may lead out of the buffer and back."""
        properties: dict[str, Attribute] = {
            "elem_type": element,
            "rawConstantIndices": _DYNAMIC,
            "noWrapFlags": _NO_FLAGS,
        }
        return self._once(llvm.GEPOp, pointer, elements, pointer.type, properties)

    def _plus(self, value: SSAValue, number: int) -> SSAValue:
        if number == 0:
            return value
        properties: dict[str, Attribute] = {"overflowFlags": _NO_FLAGS}
        total = self._once(xllvm.AddOp, value, self.constant(number), self.index, properties)
        self._sums[total] = value, number
        return total

    def _once(
        self,
        cls: type[Operation],
        lhs: SSAValue,
        rhs: SSAValue,
        type_: Attribute,
        properties: dict[str, Attribute],
    ) -> SSAValue:
        """The op where its operands are known first; the one that is there already, if there is."""
        # What a loop yields is read after it too.
        depth = min(max(self._depth(lhs), self._depth(rhs)), len(self._around))
        found = self._found[depth]
        element = properties.get("elem_type")
        key = (cls, id(lhs), id(rhs), None if element is None else self.kind(element))
        value = found.get(key)
        if value is None:
            op = create_op(cls, (lhs, rhs), (type_,), properties)
            if depth == len(self._around):
                append(self.block, op)
            else:
                insert_before_last(self._around[depth], op)
            (value,) = op.results
            found[key] = value
        return value

    def kind(self, element: Attribute) -> int:
        """Equal for equal types: they are hashed once for each object there is of them."""
        found = self._kinds.get(id(element))
        if found is None:
            _, kind = self._equal.setdefault(element, (element, len(self._equal)))
            found = self._kinds[id(element)] = element, kind
        return found[1]

    def _depth(self, value: SSAValue) -> int:
        home = value.op.parent if type(value) is OpResult else cast(BlockArgument, value).block
        return self._depths.get(id(home), 0)


_NOTHING = Block(arg_types=[FunctionType.from_lists([], [])]).args[0]
