"""Op classes made from the rows; where xDSL has a class for an op, it is xDSL's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, cast

from xdsl.ir import Operation, OpTraits, SSAValue
from xdsl.traits import IsTerminator, OpTrait

from mlirhlo.dialects.effects import TRAITS
from mlirhlo.dialects.tpu.rows import Row, Slot
from mlirhlo.dialects.tpu.table import ROWS

SEGMENTS = "operandSegmentSizes"


class KernelOp(Operation):
    """An op described by a row; entries of the row are its fields (`op.base`, `op.sublane_mask`)."""

    row: ClassVar[Row]
    traits: ClassVar[OpTraits] = OpTraits(lambda: ())

    def __getattr__(self, name: str) -> Any:
        row = type(self).row
        if not name.startswith("_"):
            if name in row.by_name:
                return self.properties.get(name)
            for group, values in ((row.operands, self.operands), (row.results, self.results)):
                for slot in group:
                    if slot.name == name:
                        found = groups(self, row, group, cast("tuple[SSAValue, ...]", values))[name]
                        return found if slot.is_variadic else (found[0] if found else None)
        raise AttributeError(f"{row.name} has no '{name}'")


def groups(
    op: Operation, row: Row, slots: tuple[Slot, ...], values: tuple[SSAValue, ...]
) -> dict[str, tuple[SSAValue, ...]]:
    """The values of each entry by its name."""
    sizes = row.sizes(slots, len(values))
    if row.has_segments and slots is row.operands:
        stated: Any = op.properties.get(SEGMENTS) or op.attributes.get(SEGMENTS)
        if stated is not None:
            sizes = [int(size) for size in stated.get_values()]
    found: dict[str, tuple[SSAValue, ...]] = {}
    begin = 0
    for slot, size in zip(slots, sizes, strict=False):
        found[slot.name] = tuple(values[begin : begin + size])
        begin += size
    return found


def _class_name(op_name: str) -> str:
    dialect, _, rest = op_name.partition(".")
    words = rest.split("_") if dialect == "tpu" else op_name.replace(".", "_").split("_")
    return "".join(word.capitalize() for word in words) + "Op"


_OURS = ("tpu.", "mosaic_tc.", "mosaic_sc.", "sc_tpu.", "llo.", "mosaic_gpu.")


def _make(row: Row) -> type[KernelOp]:
    ends: tuple[OpTrait, ...] = (IsTerminator(),) if row.is_terminator else ()
    effects = TRAITS[row.effect] if row.name.startswith(_OURS) else ()
    traits = OpTraits(lambda: (*ends, *effects))
    fields = {
        "__doc__": f"`{row.name}`, as its row in the table says.",
        "__module__": __name__,
        "name": row.name,
        "row": row,
        "traits": traits,
    }
    return type(_class_name(row.name), (KernelOp,), fields)


CLASSES: Mapping[str, type[KernelOp]] = {
    name: _make(row) for name, row in ROWS.items() if name.startswith(_OURS)
}
"""The classes of the ops of Mosaic's own dialects, by the ops' names."""


def class_of(name: str) -> type[Operation] | None:
    """The class of an op that has a row; None for others."""
    own = CLASSES.get(name)
    if own is not None:
        return own
    return _class_of_row(name) if name in ROWS else None


@lru_cache(maxsize=len(ROWS))  # never more: an op has one class
def _class_of_row(name: str) -> type[Operation]:
    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects

    dialect = name.partition(".")[0]
    factory = get_all_dialects().get(dialect)
    if factory is not None:
        context = Context()
        context.load_dialect(factory())
        found = context.get_optional_op(name)
        if found is not None:
            return found
    return _make(ROWS[name])


def attribute_names(op: Operation) -> frozenset[str]:
    """Names of the attributes that belong to an op."""
    row = ROWS.get(op.name)
    return _inherent(row.name) if row is not None else frozenset()


@lru_cache(maxsize=1024)
def _inherent(name: str) -> frozenset[str]:
    row = ROWS[name]
    extra = {SEGMENTS} if row.has_segments else set[str]()
    return frozenset({attribute.name for attribute in row.attributes} | extra)


__all__ = ["CLASSES", "SEGMENTS", "KernelOp", "attribute_names", "class_of", "groups"]
