"""Code for each kind of schedule."""

from mlirhlo.lowering.gpu.kinds import (
    elementwise,
    library,
    rows,
    scan,
    scatter,
    select_and_scatter,
    sort,
)

__all__ = ["elementwise", "library", "rows", "scan", "scatter", "select_and_scatter", "sort"]
