"""Code for each kind of schedule."""

from mlirhlo.lowering.gpu.kinds import (
    columns,
    contraction,
    elementwise,
    flat_columns,
    library,
    rows,
    scan,
    scatter,
    select_and_scatter,
    sort,
    staged_elements,
    staged_rows,
    staged_scan,
    transpose,
    update,
)

__all__ = [
    "columns",
    "contraction",
    "elementwise",
    "flat_columns",
    "library",
    "rows",
    "scan",
    "scatter",
    "select_and_scatter",
    "sort",
    "staged_elements",
    "staged_rows",
    "staged_scan",
    "transpose",
    "update",
]
