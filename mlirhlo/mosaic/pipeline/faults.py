"""What a stage says of an operation that it cannot take further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.places import source_place

if TYPE_CHECKING:
    from xdsl.ir import Operation


def cannot(op: Operation, what: str, mend: str | None = None) -> HloError:
    """HLO0753 at the operation's line: what it cannot be laid out as, and the mend."""
    return error(
        "HLO0753",
        f"{name_of(op)}: {what}",
        source_place(op),
        help=mend or "run the kernel on the simulator as it is, or write it with whole registers",
    )
