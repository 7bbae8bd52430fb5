"""Native properties: which an operation has, and their encoding.

From version 5 on properties stand in a section of their own as a list of attribute indices in the
order of their names, which are not stored; segment sizes follow. Before, they stand in the attribute
dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import BytesAttr, DenseArrayBase, i32
from xdsl.ir import Attribute
from xdsl.irdl import AttrSizedOperandSegments, AttrSizedResultSegments, IRDLOperation

from mlirhlo.dialects.stablehlo.rows import OpRow
from mlirhlo.formats.bytecode.container import Layout, Since
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats.bytecode import property_history, property_table
    from mlirhlo.formats.vhlo import table as vhlo_table


if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.formats.bytecode.codec import Source

OPERAND_SEGMENTS = "operandSegmentSizes"
RESULT_SEGMENTS = "resultSegmentSizes"
_SEGMENTS = (OPERAND_SEGMENTS, RESULT_SEGMENTS)

HIDDEN = ("llvm.", "nvvm.")
"""Dialects with properties that are no attributes; their encoding is not told by any list of names."""


@lru_cache(maxsize=4096)
def layout(name: str) -> Layout | None:
    """The properties of an operation by name, as MLIR defines it."""
    if name.startswith("vhlo."):
        return vhlo_table.property_layout(name)
    text = property_table.PROPERTIES.get(name)
    return None if text is None else Layout.parse(text)


@lru_cache(maxsize=4096)
def earlier_layouts(name: str) -> tuple[Layout, ...]:
    """What an operation had in earlier versions of MLIR, the latest first."""
    return tuple(map(Layout.parse, property_history.EARLIER.get(name, ())))


@lru_cache(maxsize=4096)
def names_of(name: str, cls: type[Operation]) -> frozenset[str]:
    """Names that are properties of an operation: by its class, else by the table."""
    names: frozenset[str] = frozenset()
    if issubclass(cls, IRDLOperation):
        definition = cls.get_irdl_definition()
        names = frozenset(definition.properties)
        for option in definition.options:
            if isinstance(option, AttrSizedOperandSegments) and option.as_property:
                names |= {OPERAND_SEGMENTS}
            if isinstance(option, AttrSizedResultSegments) and option.as_property:
                names |= {RESULT_SEGMENTS}
        return names
    known = layout(name)
    row = getattr(cls, "row", None)  # of the operations made from tables
    if isinstance(row, OpRow):
        names = frozenset(row.by_name)
    return names if known is None else names | known.names


@lru_cache(maxsize=4096)
def class_layout(cls: type[Operation]) -> Layout | None:
    """The properties of an operation by its xDSL class, for what the table does not know."""
    if not issubclass(cls, IRDLOperation):
        return None
    from xdsl.irdl import OptPropertyDef

    definition = cls.get_irdl_definition()
    fields = tuple(
        (name, not isinstance(field, OptPropertyDef))
        for name, field in sorted(definition.properties.items())
        if name not in _SEGMENTS
    )
    segments: list[tuple[str, int]] = []
    for option in definition.options:
        if isinstance(option, AttrSizedOperandSegments) and option.as_property:
            segments.append((OPERAND_SEGMENTS, len(definition.operands)))
        if isinstance(option, AttrSizedResultSegments) and option.as_property:
            segments.append((RESULT_SEGMENTS, len(definition.results)))
    return Layout(fields, tuple(segments))


def segment_sizes(sizes: list[int]) -> Attribute:
    """Sizes as `array<i32: …>`."""
    data = b"".join(size.to_bytes(4, "little") for size in sizes)
    return cast("Attribute", DenseArrayBase(i32, BytesAttr(data)))


def read(source: Source, known: Layout, version: int) -> dict[str, Attribute]:
    """Decodes the properties of one operation. Raises HLO0221."""
    found: dict[str, Attribute] = {}
    for name, needed in known.order(version):
        value = source.attribute() if needed else source.optional_attribute()
        if value is not None:
            found[name] = value
    if version >= Since.PACKED_SEGMENTS:
        for name, count in known.segments:
            sizes = [0] * count
            given = source.sparse_array()
            pairs = cast(
                "list[tuple[int, int]]",
                given if given and isinstance(given[0], tuple) else list(enumerate(given)),
            )
            for index, size in pairs:
                if index >= count or size >= 1 << 31:
                    raise source.problem(f"segment {index} of {count} has size {size}")
                sizes[index] = size
            found[name] = segment_sizes(sizes)
    if not source.cursor.done():
        raise source.problem("bytes are left over behind the properties of an operation")
    return found


def split(
    attributes: Mapping[str, Attribute], names: frozenset[str]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Properties and other attributes of a dictionary that holds both."""
    inherent: dict[str, Attribute] = {}
    others: dict[str, Attribute] = {}
    for name, value in attributes.items():
        (inherent if name in names else others)[name] = value
    return inherent, others
