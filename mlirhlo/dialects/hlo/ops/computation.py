"""Computations: symbols that hold one block of instructions, closed by `hlo.return` of the root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.attributes.base import ints, string
from mlirhlo.dialects.hlo.ops.assembly import parse_computation, parse_operand, print_computation
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class ComputationOp(IRDLOperation):
    """A computation: `hlo.computation @add { … hlo.return %root }`.

    The order of instructions in the block is the schedule when the module is scheduled; otherwise
    it is the stored order, which printing turns into XLA's depth-first post-order.
    """

    name = "hlo.computation"

    sym_name = prop_def(StringAttr)
    is_entry = opt_prop_def(UnitAttr)
    execution_thread = opt_prop_def(StringAttr)
    """Absent for the main thread."""
    storage_order = opt_prop_def(DenseArrayBase)
    """Of a scheduled computation read from a proto: positions in the block of the instructions in
    the proto's order. Void when its length is not the number of instructions."""
    proto_id = opt_prop_def(IntegerAttr)
    proto_rest = opt_prop_def(Attribute)

    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    __hash__ = object.__hash__

    CHECK: ClassVar[Callable[[ComputationOp], None] | None] = None
    """Further rules for xDSL's tools, which raise; `analysis.within_xdsl` offers them."""

    def __init__(
        self,
        name: str,
        block: Block | None = None,
        *,
        is_entry: bool = False,
        execution_thread: str | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "sym_name": string(name),
            "is_entry": UnitAttr() if is_entry else None,
            "execution_thread": string(execution_thread) if execution_thread else None,
        }
        super().__init__(properties=properties, regions=[Region(block or Block())])

    @property
    def computation_name(self) -> str:
        """Name without `%` or `@`."""
        return cast(StringAttr, self.properties["sym_name"]).data

    @property
    def block(self) -> Block:
        """The one block."""
        return self.regions[0].block  # as `body.block`, several times as quick

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Instructions in block order, without the closing `hlo.return`."""
        op: Any = self.block.first_op
        while op is not None:
            following = op._next_op
            if type(op) is not ReturnOp:
                yield op
            op = following

    @property
    def terminator(self) -> ReturnOp:
        """The closing `hlo.return`."""
        return cast(ReturnOp, self.block.last_op)

    @property
    def root(self) -> Instruction:
        """The instruction whose result the computation gives."""
        end = self.block.last_op
        assert end is not None
        return cast(Instruction, end._operands[0].owner)

    @property
    def parameters(self) -> tuple[ParameterOp, ...]:
        """Parameters in number order."""
        found: list[ParameterOp] = []
        op = self.block.first_op
        while op is not None:
            if isinstance(op, ParameterOp):
                found.append(op)
            op = op._next_op
        return tuple(sorted(found, key=lambda op: op.parameter_number))

    @property
    def thread(self) -> str:
        """Execution thread; `main` by default."""
        return self.execution_thread.data if self.execution_thread is not None else "main"

    @property
    def thread_property(self) -> dict[str, Attribute]:
        """The property that puts another computation into the same thread; empty for `main`."""
        thread = self.execution_thread
        return {} if thread is None else {"execution_thread": thread}

    def print(self, printer: Printer) -> None:
        """Prints the custom MLIR form."""
        print_computation(self, printer)

    @classmethod
    def parse(cls, parser: Parser) -> ComputationOp:
        """Reads the custom MLIR form."""
        return parse_computation(cls, parser)

    def verify_(self) -> None:
        """The block ends in `hlo.return` and holds nothing else but instructions."""
        block = self.body.block
        if block.args:
            raise VerifyException(
                "a computation's parameters are hlo.parameter ops, not block arguments"
            )
        if not isinstance(block.last_op, ReturnOp):
            raise VerifyException("a computation ends in hlo.return")
        for op in block.ops:
            if not isinstance(op, Instruction) and op is not block.last_op:
                raise VerifyException(f"a computation holds HLO instructions only, not {op.name}")
        order = ints(self.storage_order)
        if order and sorted(order) != list(range(len(order))):
            raise VerifyException("storage_order is not a permutation")
        if ComputationOp.CHECK is not None:
            ComputationOp.CHECK(self)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Names the root of a computation: `hlo.return %root`."""

    name = "hlo.return"

    root = operand_def()

    def print(self, printer: Printer) -> None:
        """Prints the custom MLIR form."""
        printer.print_string(" ")
        printer.print_operand(self.root)

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        """Reads the custom MLIR form."""
        return cls(parse_operand(parser))

    traits = traits_def(IsTerminator(), HasParent(ComputationOp))

    def __init__(self, root: SSAValue) -> None:
        super().__init__(operands=[root])
