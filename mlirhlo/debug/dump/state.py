"""Whether a module is still the same: what its text depends on, gathered faster than it is printed.

Passes say themselves whether they changed something; a dump is what finds out when one is wrong, so
that it looks at the module instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.hlo.ops.base import Instruction

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def state_of(module: ModuleOp) -> list[object]:
    """Operations, operands, types, names and properties in order; equal lists print the same text.

    The list keeps what it names alive, so that nothing new can be taken for something old.
    """
    found: list[object] = [*module.attributes.items(), *module.properties.items()]
    add, extend = found.append, found.extend
    for computation in module.ops:
        add(computation)
        extend(computation.properties.items())
        for region in computation.regions:
            for block in region.blocks:
                for op in block.ops:
                    add(op)
                    extend(op.operands)
                    extend(op.properties.values())
                    extend(op.properties)
                    for value in op.results:
                        add(value.type)
                    if isinstance(op, Instruction):
                        add(op.instruction_name)
    return found
