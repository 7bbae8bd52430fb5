"""Whether a module is still the same: what its text depends on, gathered faster than it is printed.

Passes say themselves whether they changed something; a dump is what finds out when one is wrong, so
that it looks at the module instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def state_of(module: ModuleOp) -> list[object]:
    """Operations, operands, types, names and properties in order; equal lists print the same text.

    The list keeps what it names alive, so that nothing new can be taken for something old.
    """
    found: list[object] = [*module.attributes.items(), *module.properties.items()]
    for computation in module.ops:
        found += computation, computation.properties.copy()
        for region in computation.regions:
            for block in region.blocks:
                op = block.first_op
                while op is not None:
                    # Operands are a tuple, new for every change; only properties have to be copied.
                    found += op, op._operands, op.properties.copy()  # pyright: ignore[reportPrivateUsage]
                    for value in op.results:
                        found += value._type, value._name  # pyright: ignore[reportPrivateUsage]
                    op = op._next_op  # pyright: ignore[reportPrivateUsage]
    return found
