"""Code for each kind of schedule."""

from mlirhlo.lowering.gpu.kinds import (
    columns,
    elementwise,
    library,
    rows,
    scan,
    scatter,
    select_and_scatter,
    sort,
)

__all__ = [
    "columns",
    "elementwise",
    "library",
    "rows",
    "scan",
    "scatter",
    "select_and_scatter",
    "sort",
]
