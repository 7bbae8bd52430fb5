"""Ops that stand for a routine as a whole: random_bits, library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.structured.base import StructuredOp, check_tensor

ALGORITHMS = ("rng_default", "rng_philox", "rng_three_fry")
"""As HLO names them."""


@irdl_op_definition
class RandomBitsOp(StructuredOp):
    """Random bits of a counter-based generator, and its next state; elements in row-major order."""

    name = "structured.random_bits"

    state = operand_def(base(TensorType))
    algorithm = prop_def(StringAttr)
    next_state = result_def(base(TensorType))
    bits = result_def(base(TensorType))

    assembly_format = (
        "$algorithm $state `:` type($state) attr-dict `->` type($next_state) `,` type($bits)"
    )
    traits = traits_def(Pure())

    def __init__(self, state: SSAValue, algorithm: str, type_: Attribute) -> None:
        super().__init__(
            operands=[state],
            result_types=[state.type, type_],
            properties={"algorithm": StringAttr(algorithm)},
        )

    def verify_(self) -> None:
        """The algorithm is one of HLO's; the state keeps its type."""
        check_tensor(self.state.type)
        check_tensor(self.bits.type)
        if self.algorithm.data not in ALGORITHMS:
            raise VerifyException(f"the algorithm is one of {', '.join(ALGORITHMS)}")
        if self.next_state.type != self.state.type:
            raise VerifyException("the next state has the type of the state")


@irdl_op_definition
class LibraryOp(StructuredOp):
    """An HLO instruction that a routine computes as a whole: fft, cholesky, custom calls.

    `opcode` and `settings` are the instruction's opcode and attributes; a tuple is its parts.
    """

    name = "structured.library"

    inputs = var_operand_def(base(TensorType))
    opcode = prop_def(StringAttr)
    settings = prop_def(DictionaryAttr)
    outputs = var_result_def(base(TensorType))

    assembly_format = (
        "$opcode `ins` `(` ($inputs^ `:` type($inputs))? `)` `settings` $settings attr-dict"
        " `->` type($outputs)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        opcode: str,
        inputs: Sequence[SSAValue],
        settings: Mapping[str, Attribute],
        types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[types],
            properties={"opcode": StringAttr(opcode), "settings": DictionaryAttr(dict(settings))},
        )

    def verify_(self) -> None:
        """The opcode is one of HLO's."""
        if self.opcode.data not in OPCODES:
            raise VerifyException(f"{self.opcode.data} is not an HLO opcode")
        for value in (*self.inputs, *self.outputs):
            check_tensor(value.type)
