"""Functions of machine code in the making, with the fields of C's structs."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from mlirhlo.integrations.jax.pjrt.code import Code

POINTER, BYTE, INT, WORD, VOID = (
    ir.PointerType(),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.VoidType(),
)
NULL = ir.Constant(POINTER, None)
_TYPES = {1: BYTE, 4: INT, 8: WORD}

Value = Any
"""A value of llvmlite's, which has no types."""


def untyped(pointer: Value) -> Value:
    """The value with the type that all pointers have; llvmlite still gives new memory pointers of a type."""
    pointer.type = POINTER
    return pointer


class Emitter:
    """One function in the making; structs are those of the tables."""

    def __init__(self, code: Code, name: str, result: Any, *parameters: Any) -> None:
        self.code = code
        self.function = ir.Function(code.module, ir.FunctionType(result, parameters), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.parameters = self.function.args

    def _field(self, kind: type[c.Structure], pointer: Value, field: str) -> tuple[Value, Any]:
        """Address and type of a field; pointers are words."""
        descriptor = getattr(kind, field)
        at = self.b.gep(pointer, [WORD(descriptor.offset)], source_etype=BYTE)
        return at, _TYPES[descriptor.size]

    def load(self, kind: type[c.Structure], pointer: Value, field: str) -> Value:
        """A field as an integer."""
        at, type_ = self._field(kind, pointer, field)
        return self.b.load(at, typ=type_)

    def pointer(self, kind: type[c.Structure], pointer: Value, field: str) -> Value:
        """A field as a pointer."""
        return self.b.inttoptr(self.load(kind, pointer, field), POINTER)

    def store(self, kind: type[c.Structure], pointer: Value, field: str, value: Value) -> None:
        """Sets a field to an integer or a pointer."""
        at, type_ = self._field(kind, pointer, field)
        if value.type == POINTER:
            value = self.b.ptrtoint(value, WORD)
        elif value.type != type_:
            value = self.b.zext(value, type_)
        self.b.store(value, at)

    def word_at(self, pointer: Value, index: Value) -> Value:
        """Address of a word of an array."""
        return self.b.gep(pointer, [index], source_etype=WORD)

    def item(self, pointer: Value, index: Value) -> Value:
        """A word of an array."""
        return self.b.load(self.word_at(pointer, index), typ=WORD)

    def item_pointer(self, pointer: Value, index: Value) -> Value:
        """A pointer of an array."""
        return self.b.load(self.word_at(pointer, index), typ=POINTER)

    @contextmanager
    def loop(self, count: Value) -> Generator[Value]:
        """A body for each number below `count`."""
        counter = self.variable()
        self.b.store(WORD(0), counter)
        head, body, out = (self.function.append_basic_block() for _ in range(3))
        self.b.branch(head)
        self.b.position_at_end(head)
        index = self.b.load(counter, typ=WORD)
        self.b.cbranch(self.b.icmp_unsigned("<", index, count), body, out)
        self.b.position_at_end(body)
        yield index
        self.b.store(self.b.add(index, WORD(1)), counter)
        self.b.branch(head)
        self.b.position_at_end(out)

    def array(self, words: Value) -> Value:
        """An array of words on the stack; not in loops."""
        return untyped(self.b.alloca(WORD, size=words))

    def variable(self) -> Value:
        """A word on the stack."""
        with self.b.goto_entry_block():
            return untyped(self.b.alloca(WORD))

    def call(self, name: str, *values: Value) -> Value:
        """Calls a function of this module or of `_EXTERNALS`."""
        return self.b.call(self.code.callee(name), values)

    def return_if(self, condition: Value, value: Callable[[], Value]) -> None:
        """Ends the function there."""
        with self.b.if_then(condition):
            self.b.ret(value())

    def atomic_add(self, kind: type[c.Structure], pointer: Value, field: str, value: int) -> Value:
        """Adds to a counter; its value before."""
        at, _ = self._field(kind, pointer, field)
        return self.b.atomic_rmw("add", at, WORD(value & (1 << 64) - 1), "seq_cst")


@dataclass(frozen=True)
class _Callee:
    """A pointer with the type of the function there, which llvmlite reads off what is called."""

    pointer: Value
    function_type: Any

    def get_reference(self) -> str:
        """As an operand."""
        return str(self.pointer.get_reference())


def call_pointer(e: Emitter, kind: Any, pointer: Value, values: list[Value]) -> Value:
    """Calls through a pointer."""
    return e.b.call(_Callee(pointer, kind), values)
