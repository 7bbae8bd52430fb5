"""The stablehlo dialect: attributes, types, the table of its ops, classes made from the table."""

from xdsl.ir import Dialect

from mlirhlo.dialects.stablehlo.attributes import ATTRIBUTES
from mlirhlo.dialects.stablehlo.op_classes import TableOp, make_classes
from mlirhlo.dialects.stablehlo.rows import OpRow
from mlirhlo.dialects.stablehlo.table import ROWS
from mlirhlo.dialects.stablehlo.types import QUANT, TYPES

OP_CLASSES = make_classes(ROWS.values())
"""Every op class by its name."""

STABLEHLO = Dialect("stablehlo", list(OP_CLASSES.values()), [*ATTRIBUTES, *TYPES])

__all__ = ["OP_CLASSES", "QUANT", "ROWS", "STABLEHLO", "OpRow", "TableOp"]
