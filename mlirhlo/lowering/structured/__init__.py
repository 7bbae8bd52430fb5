"""HLO instructions and fusions as structured kernels.

`to_structured` translates instruction by instruction; `optimize_kernel` runs the passes that hold for every target:
maps are merged into what reads them, dead ops removed. An opcode joins by a function under `@converts`
(`conversion.py`), families are files: `elementwise`, `movement`, `indexed`, `folds`, `contractions`, `ordered`,
`routines`.
"""

from collections.abc import Collection, Mapping

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.structured.between import structured_between
from mlirhlo.lowering.structured.conversion import to_structured
from mlirhlo.lowering.structured.merge_maps import merge_maps
from mlirhlo.lowering.structured.remove_dead import remove_dead

__all__ = [
    "merge_maps",
    "optimize_kernel",
    "remove_dead",
    "structured_between",
    "structured_module",
    "to_structured",
]


def optimize_kernel(kernel: KernelOp) -> None:
    """Runs the passes on one kernel."""
    remove_dead(kernel)
    merge_maps(kernel)
    remove_dead(kernel)


def structured_module(
    fused: ModuleOp,
    instructions: Mapping[str, Instruction],
    kernels: Collection[str],
    *,
    constants: bool = False,
) -> ModuleOp:
    """The stage `structured` of a planned module: the structured form of each of its `kernels`, by the name of the
    instruction that it was made for; `constants` as for `to_structured`.

    Raises `HloError` HLO079x for what has no structured form.
    """
    computations = HloModule(fused).by_name()
    ops = [
        to_structured(instructions[name], computations, name, constants=constants)
        for name in instructions
        if name in kernels
    ]
    for op in ops:
        optimize_kernel(op)
    return ModuleOp(list(ops))
