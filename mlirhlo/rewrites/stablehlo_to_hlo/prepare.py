"""What is done to a program before it is spelled as HLO."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp


def prepared(module: ModuleOp, *, simplify: bool = True) -> ModuleOp:
    """A copy of `module` in which every op has an HLO form. Raises `HloError` HLO0423, HLO0425."""
    from mlirhlo.rewrites.chlo_expansion import expand_chlo

    copy = module.clone()
    expand_chlo(copy)
    if simplify:
        from mlirhlo.rewrites.stablehlo_simplify import simplify_program

        simplify_program(copy)
    return copy
