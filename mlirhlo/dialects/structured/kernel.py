"""Kernels, and the ops that end kernels and bodies or stand in bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp
from mlirhlo.dialects.quick import fill_op, function_type, operands_of, region_of
from mlirhlo.dialects.structured.base import StructuredOp, check_tensor


@irdl_op_definition
class KernelOp(IRDLOperation):
    """Arrays computed from arrays: `structured.kernel @name(%x: tensor<4xf32>) -> tensor<4xf32> {…}`.

    The block's arguments are the arrays read, `structured.return` names the arrays computed.
    """

    name = "structured.kernel"

    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(
        self, name: str, block: Block, attributes: dict[str, Attribute] | None = None
    ) -> None:
        """`block` ends in `structured.return` already."""
        ending = cast(ReturnOp, block.last_op)
        inputs = [argument.type for argument in block.args]
        type_ = function_type(inputs, [v.type for v in operands_of(ending)])
        fill_op(
            self,
            properties={"sym_name": string(name), "function_type": type_},
            regions=[region_of(block)],
            attributes=dict(attributes or {}),
        )

    @property
    def kernel_name(self) -> str:
        """Name without `@`."""
        return self.sym_name.data

    @property
    def block(self) -> Block:
        """The one block."""
        return self.body.block

    @property
    def results_returned(self) -> tuple[SSAValue, ...]:
        """The arrays the kernel computes."""
        return tuple(cast(Operation, self.block.last_op).operands)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        """Reads the custom MLIR form."""
        name, inputs, outputs, region, attributes, _, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type")
        )
        return cls.create(
            properties={
                "sym_name": string(name),
                "function_type": FunctionType.from_lists(list(inputs), list(outputs)),
            },
            attributes={} if attributes is None else dict(attributes.data),
            regions=[region],
        )

    def print(self, printer: Printer) -> None:
        """Prints the custom MLIR form."""
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            reserved_attr_names=("sym_name", "function_type"),
        )

    def verify_(self) -> None:
        """The types are those of the block; it holds structured ops and constants only."""
        block = self.body.block
        ending = block.last_op
        if not isinstance(ending, ReturnOp):
            raise VerifyException("a kernel ends in structured.return")
        if tuple(block.arg_types) != self.function_type.inputs.data:
            raise VerifyException("the kernel's type does not list the types of its arguments")
        if tuple(v.type for v in ending.operands) != self.function_type.outputs.data:
            raise VerifyException("the kernel's type does not list the types it returns")
        for type_ in (*self.function_type.inputs, *self.function_type.outputs):
            check_tensor(type_)
        for op in block.ops:
            if not isinstance(op, StructuredOp | ConstantOp | ReturnOp):
                raise VerifyException(
                    f"a kernel holds structured ops and hlo.constant, not {op.name}"
                )


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a kernel: `structured.return %a, %b : tensor<4xf32>, tensor<4xi32>`."""

    name = "structured.return"

    arguments = var_operand_def(base(TensorType))

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"
    traits = traits_def(IsTerminator(), HasParent(KernelOp))

    def __init__(self, values: Sequence[SSAValue]) -> None:
        fill_op(self, values)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a body: `structured.yield %s : tensor<f32>`."""

    name = "structured.yield"

    arguments = var_operand_def(base(TensorType))

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]) -> None:
        fill_op(self, values)


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The index along one dimension of the iteration space, in a body: `structured.index 1 : tensor<i32>`."""

    name = "structured.index"

    dim = prop_def(IntegerAttr)
    result = result_def(base(TensorType))

    traits = traits_def(Pure())

    def __init__(self, dim: int, type_: Attribute) -> None:
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[type_])

    @property
    def dimension(self) -> int:
        """The dimension of the iteration space; folded dimensions follow those of the result."""
        return self.dim.value.data

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        """Reads the custom MLIR form."""
        dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(dim, parser.parse_type())
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Prints the custom MLIR form."""
        printer.print_string(f" {self.dimension}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """The result is a scalar of a signed integer type of 32 or 64 bits."""
        if self.result.type not in (TensorType(i32, []), TensorType(i64, [])):
            raise VerifyException("structured.index gives tensor<i32> or tensor<i64>")
