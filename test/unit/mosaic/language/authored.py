"""Small kernels in the language, each with its operands and what numpy says of them."""

from __future__ import annotations

from unit.mosaic.language import authored_elements, authored_grids, authored_programs, cases

FAMILIES = (authored_elements, authored_grids, authored_programs)
"""Loading them fills `CASES`."""
CASES = cases.CASES
