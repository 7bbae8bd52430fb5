"""The dialect for an xDSL context."""

from __future__ import annotations

from xdsl.ir import Dialect

from mlirhlo.dialects.mosaic_gpu.attributes import ATTRIBUTES
from mlirhlo.dialects.tpu.op_classes import CLASSES

MOSAIC_GPU = Dialect(
    "mosaic_gpu",
    [cls for name, cls in CLASSES.items() if name.startswith("mosaic_gpu.")],
    list(ATTRIBUTES),
)
"""The dialect: every op, attribute and type."""
