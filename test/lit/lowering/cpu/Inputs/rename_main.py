"""Passes for modules of any dialect."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass


def _main(module: ModuleOp) -> FuncOp:
    return next(f for f in module.ops if isinstance(f, FuncOp) and f.sym_name.data == "main")


@dataclass(frozen=True)
class RenameMainPass(ModulePass):
    """Gives `main` another name."""

    name = "rename-main"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _main(op).properties["sym_name"] = StringAttr("renamed")


@dataclass(frozen=True)
class BreakMainPass(ModulePass):
    """Takes away what ends `main`."""

    name = "break-main"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        last = _main(op).body.block.last_op
        assert last is not None
        last.detach()
