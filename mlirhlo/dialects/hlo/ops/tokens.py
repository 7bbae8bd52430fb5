"""Tokens, asynchronous pairs, host transfers and domains."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliases
from mlirhlo.dialects.hlo.attributes.kinds import Domain
from mlirhlo.dialects.hlo.ops.base import (
    Accessor,
    Instruction,
    Unary,
    bool_property,
    computation_property,
    instruction,
    optional_int_property,
    str_property,
    value_property,
)
from mlirhlo.dialects.hlo.types import shape_of


@instruction("add-dependency")
class AddDependencyOp(Unary):
    """Its first operand, after its second."""

    @property
    def token(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("after-all")
class AfterAllOp(Instruction):
    """A token after all its operands."""


@instruction("async-done")
class AsyncDoneOp(Unary):
    """Result of an asynchronous computation."""

    async_execution_thread = str_property()


@instruction("async-start")
class AsyncStartOp(Instruction):
    """Starts a computation that runs aside."""

    async_execution_thread = str_property()
    output_to_operand_aliasing = value_property(OutputOperandAliases)
    calls = computation_property()


@instruction("async-update")
class AsyncUpdateOp(Unary):
    """An asynchronous computation going on."""

    async_execution_thread = str_property()


@instruction("copy-start")
class CopyStartOp(Unary):
    """Starts a copy that runs aside."""

    cross_program_prefetch_index = optional_int_property()


@instruction("domain")
class DomainOp(Unary):
    """Its operand, between two shardings."""

    domain = value_property(Domain)


@instruction("infeed")
class InfeedOp(Instruction):
    """A value from the host's queue, and a token."""

    infeed_config = str_property()

    @property
    def token(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("outfeed")
class OutfeedOp(Unary):
    """Puts a value into the host's queue."""

    outfeed_shape = Accessor(lambda a: None if a is None else shape_of(a))
    outfeed_config = str_property()

    @property
    def token(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("recv")
class RecvOp(Instruction):
    """Starts receiving from a channel."""

    channel_id = optional_int_property()
    is_host_transfer = bool_property()

    @property
    def token(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("recv-done")
class RecvDoneOp(Unary):
    """Received data, and a token."""

    channel_id = optional_int_property()
    is_host_transfer = bool_property()


@instruction("send")
class SendOp(Unary):
    """Starts sending to a channel."""

    channel_id = optional_int_property()
    is_host_transfer = bool_property()

    @property
    def token(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("send-done")
class SendDoneOp(Unary):
    """A token after the send."""

    channel_id = optional_int_property()
    is_host_transfer = bool_property()
