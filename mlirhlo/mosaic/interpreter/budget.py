"""Whether a kernel fits into the memories of a generation, before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.importing import LATE
from mlirhlo.mosaic.interpreter.problems import place_of

with LATE:
    from mlirhlo.mosaic.target import budget, generations


if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.mosaic.interpreter.core import Options


def check_budget(kernel: Operation, options: Options) -> None:
    """Raises `HloError` HLO0735 with the table of who uses what, when that is more than there is."""
    target = generations.generation_of(options.target)
    limit = options.vmem_limit_bytes or target.scoped_vmem_bytes
    use = budget.memory_use(kernel)
    for refusal in budget.over_budget(use, target, limit):
        raise HloError(
            Diagnostic(
                "HLO0735",
                f"{refusal.problem}\n{use.table(target)}",
                place_of(kernel),
                help=refusal.help,
            )
        )
