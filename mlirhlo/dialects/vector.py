"""xDSL's vector dialect with the ops it lacks, under their MLIR names.

Source: MLIR's vector dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl import (
    base as instance_of,
)
from xdsl.traits import Pure


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Lane l is `base` at `indices`, the last one moved by `offsets[l]`, where the mask is set."""

    name = "vector.gather"
    T: ClassVar = VarConstraint("T", instance_of(VectorType))
    base = operand_def(instance_of(MemRefType))
    indices = var_operand_def(IndexType)
    offsets = operand_def(instance_of(VectorType))
    mask = operand_def(instance_of(VectorType))
    pass_thru = operand_def(T)
    result = result_def(T)
    assembly_format = (
        "$base `[` $indices `]` `[` $offsets `]` `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($offsets) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Stores lane l at `indices`, the last one moved by `offsets[l]`, where the mask is set.

    Lanes that meet are stored in their order.
    """

    name = "vector.scatter"
    base = operand_def(instance_of(MemRefType))
    indices = var_operand_def(IndexType)
    offsets = operand_def(instance_of(VectorType))
    mask = operand_def(instance_of(VectorType))
    value = operand_def(instance_of(VectorType))
    assembly_format = (
        "$base `[` $indices `]` `[` $offsets `]` `,` $mask `,` $value attr-dict `:` "
        "type($base) `,` type($offsets) `,` type($mask) `,` type($value)"
    )


@irdl_op_definition
class StepOp(IRDLOperation):
    """`[0, 1, 2, …]`."""

    name = "vector.step"
    result = result_def(instance_of(VectorType))
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"


_OWN = (GatherOp, ScatterOp, StepOp)
_NAMES = {op.name for op in _OWN}

Vector = Dialect(
    "vector",
    [*(op for op in xvector.Vector.operations if op.name not in _NAMES), *_OWN],
    list(xvector.Vector.attributes),
)
"""The dialect to register in place of xDSL's."""
