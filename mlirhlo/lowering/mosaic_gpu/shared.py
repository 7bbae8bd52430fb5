"""What the operations of a kernel share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation

from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.lowering.mosaic_gpu.writer import Writer


def parts_of(w: Writer, op: Operation) -> dict[str, tuple[Any, ...]]:
    """What the operands of an operation have become, by their names."""
    row = ROWS[op.name]
    found = groups(op, row, row.operands, tuple(op.operands))
    return {name: tuple(w.values[v] for v in values) for name, values in found.items()}


OPERATION = Callable[[Writer, Operation], Sequence[Any]]
"""What writes an operation."""
