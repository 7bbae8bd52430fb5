"""Initial values of reductions that change nothing."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import Instruction, ReduceOp, ReduceWindowOp, TupleOp
from mlirhlo.rewrites.algsimp.common import element, splat_of
from mlirhlo.rewrites.algsimp.mapping import COMMUTATIVE
from mlirhlo.rewrites.algsimp.minmax import is_end
from mlirhlo.rewrites.rules import Rewriter


def starts_neutral(op: ReduceOp | ReduceWindowOp, rewriter: Rewriter) -> bool:
    """Whether each initial value is a constant that leaves what it is combined with as it is.

    XLA takes it for granted; where it does not hold, the initial value counts as often as it is combined.
    """
    computation = rewriter.computation(op.to_apply)
    if computation is None:
        return False
    root, parameters = computation.root, {p.parameter_number: p for p in computation.parameters}
    results = root.inputs if isinstance(root, TupleOp) else (root.output,)
    count = len(op.inputs) // 2
    return len(results) == count and all(
        isinstance(combined := result.owner, Instruction)
        and combined.opcode.name in COMMUTATIVE
        and {*combined.inputs} == {parameters[number].output, parameters[number + count].output}
        and _is_neutral(combined.opcode.name, op.inputs[count + number])
        for number, result in enumerate(results)
    )


def _is_neutral(opcode: str, value: SSAValue) -> bool:
    number = splat_of(value)
    match opcode:
        case _ if number is None:
            return False
        case "add" | "or" | "xor":
            return bool(number == 0)
        case "multiply":
            return bool(number == 1)
        case "and":
            type_ = element(value)
            return number is True or number == (-1 if type_.is_signed else (1 << type_.bits) - 1)
        case _:
            return is_end(value, opcode == "minimum")
