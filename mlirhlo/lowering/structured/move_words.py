"""`structured-move-words`: numbers that a kernel only moves are moved as integers of their width.

    map(%x : 40x64xbf16) by (d0, d1) -> (d1, d0)   =>   map(%x : 40x64xui16) by (d0, d1) -> (d1, d0)

Parts of complex numbers that are loaded one by one take two gathers, and twice the shuffles of a transpose. A single
bf16 is loaded by LLVM 22 as an f32 that is rounded, which loses subnormals. Integers of four or two bits have a byte
each; cut to their width and widened again between two shuffles, LLVM 22 selects instructions for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.quick import retype
from mlirhlo.dialects.structured import AssembleOp, GatherOp, KernelOp, MapOp, ReturnOp
from mlirhlo.dialects.structured.base import passes_through
from mlirhlo.lowering.hlo_to_loops.words import WORDS


@dataclass(frozen=True)
class StructuredMoveWordsPass(ModulePass):
    """Moves c64, bf16 and integers under a byte as integers of their width in memory.

    Before:  `%r = structured.map ins(%x : tensor<4x8xbf16>) … {^bb0(%a): yield %a} …`
    After:   `%r = structured.map ins(%x : tensor<4x8xui16>) … {^bb0(%a): yield %a} …`
    Keeps: all arrays, bit for bit. Needs: nothing to have run; leaves kernels alone that compute something of such
    numbers, or hold other ops than map, assemble and gather.
    """

    name = "structured-move-words"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                move_words(kernel)


def move_words(kernel: KernelOp) -> bool:
    """Gives a kernel's arrays the types of words; whether there are any to move so."""
    ops = list(kernel.block.ops)
    values = [*kernel.block.args, *(r for op in ops for r in op.results)]
    if not any(_word(v) for v in values) or not all(map(_only_moves, ops)):
        return False
    for op in ops:
        if isinstance(op, MapOp):
            values += op.body.block.args
        elif isinstance(op, ConstantOp) and (word := _word(op.output)) is not None:
            shape = ArrayShape(word, cast(ArrayShape, op.shape).dimensions)
            assert op.literal is not None
            literal = Literal.from_array(shape, op.literal.array.view(word.dtype))
            op.properties["literal"] = LiteralAttr(literal)
    for value in values:
        word = _word(value)
        if word is not None and word.mlir is not None:
            type_ = cast("TensorType[Attribute]", value.type)
            retype(value, TensorType(word.mlir, type_.get_shape()))
    ending = cast(Operation, kernel.block.last_op)
    kernel.properties["function_type"] = FunctionType.from_lists(
        [v.type for v in kernel.block.args], [v.type for v in ending.operands]
    )
    return True


def _word(value: SSAValue) -> PrimitiveType | None:
    type_ = cast("TensorType[Attribute]", value.type)
    return WORDS.get(BY_MLIR[type_.element_type])


def _only_moves(op: Operation) -> bool:
    if isinstance(op, MapOp):
        inner = (v for i in op.body.block.ops for v in (*i.operands, *i.results))
        return passes_through(op.body) or not any(_word(v) for v in inner)
    if isinstance(op, ConstantOp):
        return op.literal is not None and not op.literal.is_elided
    indices = op.indices if isinstance(op, AssembleOp | GatherOp) else ()
    return isinstance(op, AssembleOp | GatherOp | ReturnOp) and not any(map(_word, indices))
