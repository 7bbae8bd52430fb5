"""All families of rules, which register themselves when they are imported, and their run over a program."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mlirhlo.rewrites.stablehlo_simplify import (
    arithmetic,
    control,
    folding,
    indexing,
    movement,
)
from mlirhlo.rewrites.stablehlo_simplify.driver import ISOLATED, Simplifier

FAMILIES = (folding, arithmetic, movement, indexing, control)


def simplify_program(module: ModuleOp) -> bool:
    """Simplifies every function of `module`, in place; whether anything changed."""
    changed = False
    for op in list(module.walk()):
        if op.parent is None:
            continue
        if (isinstance(op, FuncOp) or op.name in ISOLATED) and op.regions[0].blocks:
            changed = Simplifier(op.regions[0].block).run() or changed
    return changed
