"""The hlo dialect: HLO as it is, one op an instruction, computations as symbols."""

from xdsl.ir import Dialect

from mlirhlo.dialects.hlo.attributes import ATTRIBUTES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import OP_CLASSES, ComputationOp, Instruction, ReturnOp
from mlirhlo.dialects.hlo.table import OPCODES, Opcode

HLO = Dialect("hlo", [*OP_CLASSES.values(), ComputationOp, ReturnOp], ATTRIBUTES)

__all__ = [
    "HLO",
    "OPCODES",
    "OP_CLASSES",
    "ComputationOp",
    "HloModule",
    "Instruction",
    "Opcode",
    "ReturnOp",
]
