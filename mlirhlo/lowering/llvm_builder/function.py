"""Functions of the llvm dialect: values with operators, calls, and control flow in structured form or by jumps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import integer, integer64, integers32, integers64, string, symbol_ref
from mlirhlo.dialects.quick import add_block, append, create_op, new_block

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


VOID = xllvm.LLVMVoidType()
_CALL: Mapping[str, Attribute] = {
    "fastmathFlags": NO_FAST_MATH,
    "CConv": xllvm.CallingConventionAttr("ccc"),
    "op_bundle_sizes": integers32(),
    "TailCallKind": xllvm.TailCallKindAttr(xllvm.TailCallKind.NONE),
}


class Loop:
    """A loop: `values` at its head in each round, `results` behind it."""

    def __init__(self, f: LlvmFunction, initial: Sequence[Operand]) -> None:
        self._f = f
        values = [f.value(v) for v in initial]
        self._head = f.label(*(v.type for v in values))
        self.exit: Block | None = None
        """The block behind the loop, once something leads there."""
        f.jump(self._head, *values)
        self.values = f.place(self._head)

    @property
    def results(self) -> Sequence[Value]:
        """What the loop was left with."""
        return [] if self.exit is None else [Value(self._f, a) for a in self.exit.args]

    def next(self, *values: Operand) -> None:
        """Begins the next round with these values."""
        self._f.jump(self._head, *values)

    def leave(self, *values: Operand) -> None:
        """Ends the loop with these results."""
        self._f.jump(self._leaving(*values), *values)

    def leave_if(self, condition: Value, *values: Operand) -> None:
        """Ends the loop with these results where the condition holds."""
        self._f.jump_if(condition, self._leaving(*values), *values)

    def leave_unless(self, condition: Value, *values: Operand) -> None:
        """Ends the loop with these results where the condition does not hold."""
        self._f.jump_unless(condition, self._leaving(*values), *values)

    def _leaving(self, *values: Operand) -> Block:
        if self.exit is None:
            self.exit = self._f.label(*(self._f.value(v).type for v in values))
        return self.exit


class LlvmFunction:
    """A function under construction: ops go to the end of the current block."""

    def __init__(
        self,
        op: Operation,
        inputs: Sequence[Attribute],
        output: Attribute,
        signatures: Mapping[str, xllvm.LLVMFunctionType],
    ) -> None:
        """`signatures`: of the functions that it may call, by name."""
        self._signatures = signatures
        self._output = output
        self._region = op.regions[0]
        self._constants: dict[tuple[int | str, Attribute], Value] = {}
        self._entry = new_block(inputs)
        """Holds constants and memory on the stack."""
        add_block(self._region, self._entry)
        self.arguments: Sequence[Value] = [Value(self, a) for a in self._entry.args]
        self.block: Block | None = None
        self._first = self.label()
        self.place(self._first)

    def finish(self) -> None:
        """Ends the entry, once all constants are known."""
        append(self._entry, create_op(xllvm.BrOp, successors=[self._first]))

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        result: Attribute | None = None,
        properties: dict[str, Attribute] | None = None,
    ) -> Value:
        """Appends an op; its result, or something that may not be used where it has none."""
        return self._emit(self.block, cls, operands, result, properties)

    def _emit(
        self,
        block: Block | None,
        cls: type[Operation],
        operands: Sequence[Value],
        result: Attribute | None,
        properties: dict[str, Attribute] | None,
    ) -> Value:
        assert block is not None, "code after a jump"
        types = () if result is None else (result,)
        op: Operation = create_op(cls, [v.ssa for v in operands], types, properties)
        append(block, op)
        return Value(self, op.results[0] if op.results else _NOTHING)

    # Constants

    def value(self, operand: Operand, type_: Attribute = i64) -> Value:
        """The operand, a number as a constant of a type; 0 is the null pointer."""
        if isinstance(operand, Value):
            return operand
        known = self._constants.get((operand, type_))
        if known is None:
            if type_ == POINTER:
                assert operand == 0
                known = self._emit(self._entry, xllvm.ZeroOp, (), type_, None)
            else:
                value = integer(operand, type_)
                known = self._emit(self._entry, xllvm.ConstantOp, (), type_, {"value": value})
            self._constants[operand, type_] = known
        return known

    @property
    def null(self) -> Value:
        """The null pointer."""
        return self.value(0, POINTER)

    def address(self, name: str) -> Value:
        """The address of a global or function."""
        known = self._constants.get((name, POINTER))
        if known is None:
            properties: dict[str, Attribute] = {"global_name": symbol_ref(name)}
            known = self._emit(self._entry, xllvm.AddressOfOp, (), POINTER, properties)
            self._constants[name, POINTER] = known
        return known

    def stack(self, element: Attribute, count: int = 1, *, alignment: int = 8) -> Value:
        """Memory for elements on the stack, once for a call."""
        properties: dict[str, Attribute] = {
            "elem_type": element,
            "alignment": integer64(alignment),
        }
        return self._emit(self._entry, xllvm.AllocaOp, (self.value(count),), POINTER, properties)

    def stack_here(self, element: Attribute, count: Value) -> Value:
        """Memory for as many elements on the stack as the value says; not in loops."""
        properties: dict[str, Attribute] = {"elem_type": element, "alignment": integer64(8)}
        return self.emit(xllvm.AllocaOp, (count,), POINTER, properties)

    # Calls

    def call(self, name: str, *operands: Operand) -> Value:
        """Calls a function of the module; its result, if there is one."""
        signature = self._signatures[name]
        inputs = signature.inputs.data
        values = [self.value(v, t) for v, t in zip(operands, inputs, strict=False)]
        values += [self.value(v) for v in operands[len(inputs) :]]
        assert len(values) == len(inputs) or signature.is_variadic
        properties: dict[str, Attribute] = {"callee": symbol_ref(name)}
        if signature.is_variadic:
            properties["var_callee_type"] = signature
        return self._call(values, signature.output, properties)

    def call_pointer(
        self, callee: Value, *operands: Operand, output: Attribute | None = None
    ) -> Value:
        """Calls what a pointer leads to."""
        values = [callee, *(self.value(v) for v in operands)]
        return self._call(values, VOID if output is None else output, {})

    def _call(
        self, values: Sequence[Value], output: Attribute, properties: dict[str, Attribute]
    ) -> Value:
        properties |= _CALL
        properties["operandSegmentSizes"] = integers32(len(values), 0)
        return self.emit(xllvm.CallOp, values, None if output == VOID else output, properties)

    def intrinsic(self, name: str, *operands: Value, output: Attribute | None = None) -> Value:
        """Calls an intrinsic of LLVM's (`lowering/intrinsics.py`)."""
        properties: dict[str, Attribute] = {
            "fastmathFlags": NO_FAST_MATH,
            "intrin": string(name),
            "op_bundle_sizes": integers32(),
            "operandSegmentSizes": integers32(len(operands), 0),
        }
        return self.emit(xllvm.CallIntrinsicOp, operands, output, properties)

    def assembly(self, text: str, constraints: str, output: Attribute, *operands: Value) -> Value:
        """Instructions of the processor that have effects."""
        properties: dict[str, Attribute] = {
            "asm_string": StringAttr(text),
            "constraints": StringAttr(constraints),
            "has_side_effects": UnitAttr(),
            "tail_call_kind": _CALL["TailCallKind"],
        }
        return self.emit(xllvm.InlineAsmOp, operands, output, properties)

    # Control flow

    def label(self, *types: Attribute) -> Block:
        """A block to jump to, which `place` puts where it belongs."""
        return new_block(types)

    def place(self, label: Block, *values: Operand) -> Sequence[Value]:
        """Goes on in a block; its arguments. Code that has not ended jumps there with these values."""
        if self.block is not None:
            self.jump(label, *values)
        add_block(self._region, label)
        self.block = label
        return [Value(self, a) for a in label.args]

    def jump(self, label: Block, *values: Operand) -> None:
        """Goes on in a block with these arguments."""
        self._end(xllvm.BrOp, self._passed(label, values), [label])

    def branch(self, condition: Value, then: Block, other: Block) -> None:
        """Goes on in one of two blocks without arguments."""
        self._branch(condition, then, (), other, ())

    def jump_if(self, condition: Value, label: Block, *values: Operand) -> None:
        """Goes on in that block where the condition holds, else here."""
        here = self.label()
        self._branch(condition, label, self._passed(label, values), here, ())
        self.place(here)

    def jump_unless(self, condition: Value, label: Block, *values: Operand) -> None:
        """Goes on here where the condition holds, else in that block."""
        here = self.label()
        self._branch(condition, here, (), label, self._passed(label, values))
        self.place(here)

    def ret(self, value: Operand | None = None) -> None:
        """Ends the function."""
        self._end(xllvm.ReturnOp, () if value is None else (self.value(value, self._output),))

    def _passed(self, label: Block, values: Sequence[Operand]) -> Sequence[Value]:
        return [self.value(v, a.type) for v, a in zip(values, label.args, strict=True)]

    def _branch(
        self,
        condition: Value,
        then: Block,
        then_values: Sequence[Value],
        other: Block,
        other_values: Sequence[Value],
    ) -> None:
        sizes = integers32(1, len(then_values), len(other_values))
        operands = (condition, *then_values, *other_values)
        self._end(xllvm.CondBrOp, operands, [then, other], {"operandSegmentSizes": sizes})

    def _end(
        self,
        cls: type[Operation],
        operands: Sequence[Value],
        successors: Sequence[Block] = (),
        properties: dict[str, Attribute] | None = None,
    ) -> None:
        """Appends a terminator."""
        assert self.block is not None, "code after a jump"
        ssa = [v.ssa for v in operands]
        append(self.block, create_op(cls, ssa, (), properties, successors=successors))
        self.block = None

    @contextmanager
    def if_(self, condition: Value) -> Generator[None]:
        """Around what is done where the condition holds; it may end in a jump."""
        then, after = self.label(), self.label()
        self.branch(condition, then, after)
        self.place(then)
        yield
        self.place(after)

    @contextmanager
    def unless(self, condition: Value) -> Generator[None]:
        """Around what is done where the condition does not hold; it may end in a jump."""
        then, after = self.label(), self.label()
        self.branch(condition, after, then)
        self.place(then)
        yield
        self.place(after)

    def either(
        self, condition: Value, then: Callable[[], Operand], other: Callable[[], Operand]
    ) -> Value:
        """What one of two functions computes, which is called where it is needed; the first says the type."""
        first, second = self.label(), self.label()
        self.branch(condition, first, second)
        self.place(first)
        value = self.value(then())
        after = self.label(value.type)
        self.jump(after, value)
        self.place(second)
        self.jump(after, other())
        return self.place(after)[0]

    @contextmanager
    def loop(self, *initial: Operand) -> Generator[Loop]:
        """Around the body of a loop, whose rounds end in a jump; `initial`: values of the first round."""
        loop = Loop(self, initial)
        yield loop
        assert self.block is None, "the body of a loop ends in `next` or `leave`"
        if loop.exit is not None:
            self.place(loop.exit)

    @contextmanager
    def count(self, end: Operand) -> Generator[Value]:
        """Around what is done for each number below `end`."""
        with self.loop(0) as loop:
            (number,) = loop.values
            loop.leave_unless(number.cmp("slt", end))
            yield number
            loop.next(number + 1)


_NOTHING: SSAValue = new_block((VOID,)).args[0]
