"""Every operation of the language that has code."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.lowering.mosaic_gpu import (
    barriers,
    control,
    copies,
    others,
    pointers,
    products,
    references,
    tensor_memory,
    vectors,
)
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION

OPERATIONS: Mapping[str, OPERATION] = {
    name: write
    for family in (
        barriers,
        control,
        copies,
        others,
        pointers,
        products,
        references,
        tensor_memory,
        vectors,
    )
    for name, write in family.OPERATIONS.items()
}
"""What writes each operation, by its name."""
