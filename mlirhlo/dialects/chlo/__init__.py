"""The chlo dialect: operations above StableHLO that are expanded to it."""

from xdsl.ir import Dialect

from mlirhlo.dialects.chlo.attributes import ATTRIBUTES
from mlirhlo.dialects.chlo.table import ROWS
from mlirhlo.dialects.stablehlo.op_classes import make_classes

OP_CLASSES = make_classes(ROWS.values())
"""Every op class by its name."""

CHLO = Dialect("chlo", list(OP_CLASSES.values()), ATTRIBUTES)

__all__ = ["CHLO", "OP_CLASSES", "ROWS"]
