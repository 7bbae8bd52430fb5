"""The schedule of an op: which launch computes it, in what shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType

SCHEDULE = "structured.schedule"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Fields of the attribute `structured.schedule`; those of no effect on a kind are 0."""

    launch: int
    """Number of the launch; smaller ones come first."""
    kind: str
    """How the work is divided among threads: see `lowering/gpu`, one file a kind."""
    threads: int = 0
    """Threads of a block."""
    vector: int = 0
    """Neighbours that a thread computes at once."""
    row_threads: int = 0
    """Threads that fold one row together."""
    parts: int = 0
    """Blocks that share a row or column."""
    dimension: int = 0
    """The dimension along which what is transposed lies together in memory."""
    rows: int = 0
    """Rows of a product that a block computes."""
    columns: int = 0
    """Columns of a product that a block computes."""
    terms: int = 0
    """Terms of a product that are in shared memory at once, in each stage."""
    stages: int = 0
    """Buffers of such terms: so many, but one, are on their way while a block multiplies."""
    warps_down: int = 0
    """Warps that share the rows of a block; the others stand beside them."""
    format: str = ""
    """What factors are rounded to for the matrix units, if that is not their type: `tf32`."""

    def attribute(self) -> DictionaryAttr:
        """As it stands on an op."""
        return DictionaryAttr(
            {
                field.name: StringAttr(value) if isinstance(value, str) else IntegerAttr(value, i64)
                for field in fields(self)
                if (value := getattr(self, field.name)) or field.name == "launch"
            }
        )


def element_of(value: SSAValue) -> PrimitiveType:
    """Element type of a tensor."""
    return BY_MLIR[cast(Any, value.type).element_type]


def schedule_of(op: Operation) -> Schedule | None:
    """What the attribute of an op says. Raises `HloError` HLO0806 for one that is not a schedule."""
    attribute = op.attributes.get(SCHEDULE)
    if attribute is None:
        return None
    known = {field.name for field in fields(Schedule)}
    entries: Mapping[str, Attribute] = (
        attribute.data if isinstance(attribute, DictionaryAttr) else {}
    )
    if not {"launch", "kind"} <= set(entries) <= known:
        raise error("HLO0806", f"`{attribute}` on `{op.name}` is not a schedule")
    values: dict[str, Any] = {}
    for key, value in entries.items():
        if isinstance(value, StringAttr) is not (key in ("kind", "format")):
            raise error("HLO0806", f"`{key}` of the schedule of `{op.name}` is `{value}`")
        values[key] = value.data if isinstance(value, StringAttr) else cast(Any, value).value.data
    return Schedule(**values)
