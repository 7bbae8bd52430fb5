"""HLO instructions and fusions as structured kernels.

`to_structured` translates instruction by instruction; `optimize_kernel` runs the passes that hold for every target:
maps are merged into what reads them, dead ops removed. An opcode joins by a function under `@converts`
(`conversion.py`), families are files: `elementwise`, `movement`, `indexed`, `folds`, `contractions`, `ordered`,
`routines`.
"""

from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.structured.conversion import to_structured
from mlirhlo.lowering.structured.merge_maps import merge_maps
from mlirhlo.lowering.structured.remove_dead import remove_dead

__all__ = ["merge_maps", "optimize_kernel", "remove_dead", "to_structured"]


def optimize_kernel(kernel: KernelOp) -> None:
    """Runs the passes on one kernel."""
    remove_dead(kernel)
    merge_maps(kernel)
    remove_dead(kernel)
