"""The `tpu` dialect of Mosaic kernels: attributes, types, and a row for every op.

`TPU` and `MOSAIC_TC` are the dialects of attributes and types for an xDSL context. `ROWS` has a row
for every op of the dialect, and of the other dialects that kernels are written in.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from mlirhlo.dialects.tpu.attributes import (
    ENUMS,
    DotDimensionNumbersAttr,
    ElementWindowAttr,
    MemorySpaceAttr,
    TiledLayoutAttr,
    TpuVectorLayoutAttr,
    VectorLayoutAttr,
)
from mlirhlo.dialects.tpu.op_classes import CLASSES, KernelOp
from mlirhlo.dialects.tpu.rows import Inherent, Row, Slot
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.dialects.tpu.types import DmaSemaphoreType, Float8ExmyType, SemaphoreType

TPU = Dialect(
    "tpu",
    [cls for name, cls in CLASSES.items() if name.startswith("tpu.")],
    [
        *ENUMS.values(),
        MemorySpaceAttr,
        TiledLayoutAttr,
        DotDimensionNumbersAttr,
        ElementWindowAttr,
        TpuVectorLayoutAttr,
        SemaphoreType,
        DmaSemaphoreType,
        Float8ExmyType,
    ],
)
"""The dialect: every op, attribute and type."""

MOSAIC_TC = Dialect("mosaic_tc", [CLASSES["mosaic_tc.relayout"]], [VectorLayoutAttr])
"""What the compiler's own passes add on TensorCores."""

__all__ = ["CLASSES", "MOSAIC_TC", "ROWS", "TPU", "Inherent", "KernelOp", "Row", "Slot"]
