"""HLO as StableHLO, also after optimisation.

`convert_to_stablehlo` is the whole of it: computations become regions where StableHLO has regions,
and private functions where they are called or fused; tuples are taken apart. What StableHLO has no
op for becomes an op that computes the same and is marked with what it was, or a marked custom call
`@mlirhlo.hlo.<opcode>`; `marks` says how, and `stablehlo_to_hlo/marked.py` reads it back.
Source: the behaviour of jaxlib 0.10.2's translator, which tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.rewrites.hlo_to_stablehlo import convert as _convert


__all__ = ["HloLegalizeToStablehloPass", "convert_to_stablehlo"]


def convert_to_stablehlo(module: ModuleOp) -> ModuleOp:
    """A new StableHLO program, with the function `@main`, that means what the HLO `module` means.

    Arguments and results are the leaves of the entry's parameters and root, in order. Raises
    `HloError` HLO0427 for shapes that StableHLO does not have (`opaque[]`, buffers).
    """
    return _convert.convert(module)


@dataclass(frozen=True)
class HloLegalizeToStablehloPass(ModulePass):
    """
    Makes a StableHLO program of an HLO module, optimised or not.

    Before:  `hlo.computation @main`, and one computation for each region
    After:   `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>` with StableHLO ops
    Keeps: results, bit for bit. Tuples are taken apart; fusions are calls of private functions;
    what StableHLO has no op for is marked (`mlirhlo.hlo`), so that `stablehlo-legalize-to-hlo`
    makes the same instruction again.
    """

    name = "hlo-legalize-to-stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Puts the program into `op`, which keeps nothing of the HLO."""
        if any(child.name == "func.func" for child in op.ops):
            return
        replace_module(op, convert_to_stablehlo(op))


def replace_module(op: ModuleOp, made: ModuleOp) -> None:
    """Puts what `made` holds into `op`, in the place of what it held."""
    block = op.body.block
    for old in list(block.ops):
        old.detach()
        old.erase(safe_erase=False)
    for new in list(made.body.block.ops):
        new.detach()
        block.add_op(new)
    op.attributes = made.attributes
    op.properties = made.properties
