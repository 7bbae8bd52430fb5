"""`structured-dce`: ops whose results nothing reads, and inputs that a body does not use, are removed."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.dialects.quick import erase
from mlirhlo.dialects.structured import KernelOp, MapOp, ReturnOp
from mlirhlo.dialects.structured.base import maps_attribute


@dataclass(frozen=True)
class StructuredDcePass(ModulePass):
    """Removes ops of kernels that nothing reads, and inputs of maps that bodies do not use.

    Before:  `%e = structured.map ins(%x) {exp}`, `structured.return %y`
    After:   `structured.return %y`
    Keeps: results, bit for bit. Needs: nothing to have run.
    """

    name = "structured-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                remove_dead(kernel)


def remove_dead(kernel: KernelOp) -> bool:
    """Removes what is dead in a kernel; whether there was anything."""
    changed = False
    for op in reversed(list(kernel.block.ops)):
        if isinstance(op, ReturnOp):
            continue
        if not any(result.first_use for result in op.results):
            kernel.block.erase_op(op)
            changed = True
        elif isinstance(op, MapOp):
            changed |= _drop_unused_inputs(op)
    return changed


def _drop_unused_inputs(op: MapOp) -> bool:
    block = op.body.block
    for inner in reversed(list(block.ops)):
        if inner is not block.last_op and not any(result.first_use for result in inner.results):
            erase(inner)
    used = [argument.first_use is not None for argument in block.args]
    if all(used):
        return False
    for argument in [a for a, is_used in zip(block.args, used, strict=True) if not is_used]:
        block.erase_arg(argument)
    maps = [m for m, is_used in zip(op.index_maps, used, strict=True) if is_used]
    op.operands = [v for v, is_used in zip(op.inputs, used, strict=True) if is_used]
    op.properties["maps"] = maps_attribute(maps)
    return True
