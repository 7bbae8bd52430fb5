"""HLO as StableHLO, also after optimisation.

`convert_to_stablehlo` is the whole of it: computations become regions where StableHLO has regions,
and private functions where they are called or fused; tuples are taken apart. What StableHLO has no
op for becomes an op that computes the same and is marked with what it was, or a marked custom call
`@mlirhlo.hlo.<opcode>`; `marks` says how, and `stablehlo_to_hlo/marked.py` reads it back.
Source: the behaviour of jaxlib 0.10.2's translator, which tests compare with.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

__all__ = ["convert_to_stablehlo"]


def convert_to_stablehlo(module: ModuleOp) -> ModuleOp:
    """A new StableHLO program, with the function `@main`, that means what the HLO `module` means.

    Arguments and results are the leaves of the entry's parameters and root, in order. Raises
    `HloError` HLO0427 for shapes that StableHLO does not have (`opaque[]`, buffers).
    """
    from mlirhlo.rewrites.hlo_to_stablehlo.convert import convert

    return convert(module)
