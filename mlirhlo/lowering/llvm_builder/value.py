"""Values with operators, and what pointers lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    IntegerType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import integer64, integers64

if TYPE_CHECKING:
    from mlirhlo.lowering.llvm_builder.function import LlvmFunction

POINTER = xllvm.LLVMPointerType()
_NO_FLAGS = IntegerAttr(0, i32)
NO_FAST_MATH = xllvm.FastMathAttr(None)
_WRAPS = xllvm.OverflowAttr(None)
_DYNAMIC = DenseArrayBase.from_list(i32, [xllvm.GEP_USE_SSA_VAL])
_PREDICATES = {str(flag.value): flag.to_int() for flag in xllvm.ICmpPredicateFlag}
_ORDERINGS = {name: number for number, name in xllvm.ATOMIC_ORDERING_KEYWORDS.items()}


def array_of(count: int, element: Attribute) -> xllvm.LLVMArrayType:
    """The type of an array."""
    return xllvm.LLVMArrayType(IntAttr(count), element)


Operand: TypeAlias = "Value | int"
"""A number is a constant of the type of what stands beside it."""

_Class: TypeAlias = type[Operation]


class Value:
    """A value of a function, with operators that append ops to the function's current block."""

    __slots__ = ("f", "ssa")

    def __init__(self, f: LlvmFunction, ssa: SSAValue) -> None:
        self.f = f
        self.ssa = ssa

    @property
    def type(self) -> Attribute:
        """The value's type."""
        return self.ssa.type

    def _with(self, cls: _Class, other: Operand, *, wraps: bool = False) -> Value:
        properties: dict[str, Attribute] | None = {"overflowFlags": _NO_FLAGS} if wraps else None
        return self.f.emit(cls, (self, self.f.value(other, self.type)), self.type, properties)

    def __add__(self, other: Operand) -> Value:
        return self._with(xllvm.AddOp, other, wraps=True)

    def __sub__(self, other: Operand) -> Value:
        return self._with(xllvm.SubOp, other, wraps=True)

    def __mul__(self, other: Operand) -> Value:
        return self._with(xllvm.MulOp, other, wraps=True)

    def __floordiv__(self, other: Operand) -> Value:
        return self._with(xllvm.UDivOp, other)

    def __lshift__(self, other: Operand) -> Value:
        return self._with(xllvm.ShlOp, other, wraps=True)

    def __rshift__(self, other: Operand) -> Value:
        return self._with(xllvm.LShrOp, other)

    def __and__(self, other: Operand) -> Value:
        return self._with(xllvm.AndOp, other)

    def __or__(self, other: Operand) -> Value:
        return self._with(xllvm.OrOp, other)

    def __xor__(self, other: Operand) -> Value:
        return self._with(xllvm.XOrOp, other)

    def cmp(self, predicate: str, other: Operand) -> Value:
        """Compares integers or pointers: `eq`, `slt`, `ult`, …"""
        properties: dict[str, Attribute] = {"predicate": integer64(_PREDICATES[predicate])}
        return self.f.emit(llvm.ICmpOp, (self, self.f.value(other, self.type)), i1, properties)

    def select(self, then: Value, other: Operand) -> Value:
        """`then` where this bit is set, else `other`."""
        operands = (self, then, self.f.value(other, then.type))
        return self.f.emit(llvm.SelectOp, operands, then.type, {"fastmathFlags": NO_FAST_MATH})

    def to(self, type_: Attribute, *, signed: bool = False) -> Value:
        """The number as another integer or pointer; wider ones get zeros, or copies of the sign, in front."""
        if self.type == POINTER:
            return self.f.emit(xllvm.PtrToIntOp, (self,), type_)
        if type_ == POINTER:
            return self.f.emit(xllvm.IntToPtrOp, (self,), type_)
        if _width(type_) < _width(self.type):
            return self.f.emit(xllvm.TruncOp, (self,), type_, {"overflowFlags": _WRAPS})
        return self.f.emit(xllvm.SExtOp if signed else xllvm.ZExtOp, (self,), type_)

    def bitcast(self, type_: Attribute) -> Value:
        """The same bits as another type of that width."""
        return self.f.emit(xllvm.BitcastOp, (self,), type_)

    # Pointers

    def at(self, element: Attribute, index: Operand) -> Value:
        """The pointer moved by a number of elements."""
        properties: dict[str, Attribute] = {
            "elem_type": element,
            "rawConstantIndices": _DYNAMIC,
            "noWrapFlags": _NO_FLAGS,
        }
        return self.f.emit(llvm.GEPOp, (self, self.f.value(index, i64)), POINTER, properties)

    def item(self, element: Attribute, index: Operand) -> Value:
        """What an array here holds at an index."""
        return self.at(element, index).load(element)

    def field(self, type_: Attribute, offset: int) -> Value:
        """What a struct here holds at an offset in bytes."""
        return self.at(i8, offset).load(type_)

    def load(self, type_: Attribute, ordering: str = "", *, alignment: int = 0) -> Value:
        """What is there; `ordering` makes it atomic."""
        return self.f.emit(xllvm.LoadOp, (self,), type_, _access(type_, ordering, alignment))

    def store(
        self, value: Operand, ordering: str = "", *, type_: Attribute = i64, alignment: int = 0
    ) -> None:
        """Stores a value, or a number of that type; `ordering` makes it atomic."""
        value = self.f.value(value, type_)
        properties = _access(value.type, ordering, alignment)
        self.f.emit(llvm.StoreOp, (value, self), None, properties)

    def update(self, operation: str, value: Value, ordering: str) -> Value:
        """Combines what is there with a value, atomically (`add`, `sub`, `xchg`, …); what it was before."""
        number = llvm.ATOMIC_OPERATIONS.index(operation)
        properties: dict[str, Attribute] = {
            "bin_op": integer64(number),
            "ordering": integer64(_ORDERINGS[ordering]),
        }
        return self.f.emit(llvm.AtomicRMWOp, (self, value), value.type, properties)

    def replace(self, old: Value, new: Value, success: str, failure: str) -> Value:
        """Stores `new` where `old` is there, atomically; whether it was."""
        properties: dict[str, Attribute] = {
            "success_ordering": integer64(_ORDERINGS[success]),
            "failure_ordering": integer64(_ORDERINGS[failure]),
        }
        type_ = xllvm.LLVMStructType.from_type_list([old.type, i1])
        return self.f.emit(llvm.AtomicCmpXchgOp, (self, old, new), type_, properties).part(1)

    def part(self, index: int) -> Value:
        """A field of a struct that is a value."""
        type_ = cast(xllvm.LLVMStructType, self.type).types.data[index]
        return self.f.emit(xllvm.ExtractValueOp, (self,), type_, {"position": integers64(index)})


def _width(type_: Attribute) -> int:
    return cast(IntegerType, type_).width.data


def _access(type_: Attribute, ordering: str, alignment: int) -> dict[str, Attribute]:
    """Properties of a load or store; LLVM wants to know the alignment of atomic ones."""
    properties: dict[str, Attribute] = {"ordering": integer64(_ORDERINGS.get(ordering, 0))}
    if ordering:
        alignment = 8 if type_ == POINTER else _width(type_) // 8
    if alignment:
        properties["alignment"] = integer64(alignment)
    return properties
