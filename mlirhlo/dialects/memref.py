"""xDSL's memref dialect with the op it lacks, under its MLIR name.

Source: MLIR's memref dialect.
"""

from __future__ import annotations

from xdsl.dialects import memref as xmemref
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)
from xdsl.irdl import (
    base as instance_of,
)


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Asks for an element to be brought into the caches; an address out of bounds does nothing."""

    name = "memref.prefetch"
    memref = operand_def(instance_of(MemRefType))
    indices = var_operand_def(IndexType)
    is_write = prop_def(BoolAttr, prop_name="isWrite")
    locality = prop_def(IntegerAttr, prop_name="localityHint")
    """0: not needed again, to 3: kept in all caches."""
    is_data_cache = prop_def(BoolAttr, prop_name="isDataCache")


MemRef = Dialect(
    "memref", [*xmemref.MemRef.operations, PrefetchOp], list(xmemref.MemRef.attributes)
)
"""The dialect to register in place of xDSL's."""
