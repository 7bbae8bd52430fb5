"""Modules of the llvm dialect: functions and globals by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    UnitAttr,
    i8,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import integer, integer32, integer64, string, symbol_ref
from mlirhlo.dialects.quick import create_op, module_of, region_of
from mlirhlo.lowering.llvm_builder.function import VOID, LlvmFunction

_LAST = 65_535
"""Priority of what runs last at the start, first at the end, as C says it."""
_C = xllvm.CallingConventionAttr("ccc")


class LlvmBuilder:
    """A module under construction: names are declared before they are used."""

    def __init__(self, passthrough: Sequence[Attribute] = ()) -> None:
        """`passthrough`: LLVM's attributes of every function."""
        self.passthrough = ArrayAttr(passthrough)
        self.signatures: dict[str, xllvm.LLVMFunctionType] = {}
        """Of all functions, by name."""
        self._ops: list[Operation] = []
        self._functions: list[LlvmFunction] = []

    def external(
        self,
        name: str,
        inputs: Sequence[Attribute] = (),
        output: Attribute = VOID,
        *,
        is_variadic: bool = False,
    ) -> None:
        """Declares a function that is defined elsewhere."""
        self._function(name, inputs, output, is_public=True, is_variadic=is_variadic)

    def function(
        self,
        name: str,
        inputs: Sequence[Attribute] = (),
        output: Attribute = VOID,
        *,
        is_public: bool = False,
    ) -> LlvmFunction:
        """Begins a function, which other modules see if it is public."""
        op = self._function(name, inputs, output, is_public=is_public)
        op.properties["passthrough"] = self.passthrough
        function = LlvmFunction(op, inputs, output, self.signatures)
        self._functions.append(function)
        return function

    def _function(
        self,
        name: str,
        inputs: Sequence[Attribute],
        output: Attribute,
        *,
        is_public: bool,
        is_variadic: bool = False,
    ) -> Operation:
        signature = xllvm.LLVMFunctionType(inputs, output, is_variadic)
        self.signatures[name] = signature
        properties: dict[str, Attribute] = {
            "sym_name": string(name),
            "function_type": signature,
            "CConv": _C,
            "linkage": xllvm.LinkageAttr("external" if is_public else "internal"),
            "visibility_": integer64(0),
        }
        op = create_op(xllvm.FuncOp, properties=properties, regions=[region_of()])
        self._ops.append(op)
        return op

    def variable(
        self,
        name: str,
        type_: Attribute,
        value: int | bytes | Sequence[int] = 0,
        *,
        alignment: int = 8,
        linkage: str = "internal",
        is_constant: bool = False,
        is_thread_local: bool = False,
    ) -> None:
        """Defines a global. `value`: what it begins as; for an array, numbers or bytes."""
        properties: dict[str, Attribute] = {
            "global_type": type_,
            "sym_name": string(name),
            "linkage": xllvm.LinkageAttr(linkage),
            "addr_space": integer32(0),
            "alignment": integer64(alignment),
        }
        if isinstance(value, bytes):
            properties["value"] = BytesAttr(value)
        elif not isinstance(value, int):
            element = cast("IntegerType", cast(xllvm.LLVMArrayType, type_).type)
            tensor = TensorType(element, [len(value)])
            properties["value"] = DenseIntOrFPElementsAttr.from_list(cast(Any, tensor), value)
        else:
            is_integer = isinstance(type_, IntegerType)
            properties["value"] = integer(value, type_) if is_integer else llvm.ZeroAttr()
        if is_constant:
            properties["constant"] = UnitAttr()
        if is_thread_local:
            properties["thread_local_"] = UnitAttr()
        self._ops.append(create_op(xllvm.GlobalOp, properties=properties, regions=[region_of()]))

    def external_variable(self, name: str, type_: Attribute = i8) -> None:
        """Declares a global that is defined elsewhere."""
        properties: dict[str, Attribute] = {
            "global_type": type_,
            "sym_name": string(name),
            "linkage": xllvm.LinkageAttr("external"),
            "addr_space": integer32(0),
        }
        self._ops.append(create_op(xllvm.GlobalOp, properties=properties, regions=[region_of()]))

    def at_exit(self, name: str) -> None:
        """Has a function run when the program ends, or the library is unloaded."""
        properties: dict[str, Attribute] = {
            "dtors": ArrayAttr([symbol_ref(name)]),
            "priorities": ArrayAttr([integer32(_LAST)]),
            "data": ArrayAttr([llvm.ZeroAttr()]),
        }
        self._ops.append(create_op(llvm.GlobalDtorsOp, properties=properties))

    def module(self) -> ModuleOp:
        """The finished module."""
        for function in self._functions:
            function.finish()
        return module_of(self._ops)
