"""A pass outside of the package: what `--load-pass` is for."""

from dataclasses import dataclass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.elementwise import NegateOp
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class DoubleNegatePass(HloPass):
    """Replace the negation of a negation by its operand."""

    name = "double-negate"

    def run(self, module: HloModule, trace: Trace) -> bool:
        changed = False
        for op in list(module.instructions):
            if isinstance(op, NegateOp) and isinstance(op.inputs[0].owner, NegateOp):
                op.output.replace_all_uses_with(op.inputs[0].owner.inputs[0])
                changed = True
        return changed
