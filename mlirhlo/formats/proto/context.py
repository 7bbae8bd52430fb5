"""What the codecs of a module share: tables, memories, and the shape of a codec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.ir import Attribute, SSAValue

import mlirhlo.formats.proto.annotations as annotated
from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, default_layout
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.proto.message import bytes_field, to_text
from mlirhlo.formats.proto.shapes import shape_bytes, shape_of_bytes


@dataclass(slots=True)
class Context:
    """What codecs need of the module around an instruction, and what they remember."""

    payloads: list[bytes] = field(default_factory=list[bytes])
    """The module's table of payloads; grows while encoding."""
    may_be_newer: bool = True
    """Whether there may be fields that the schema lacks."""
    payload_ids: dict[str, int] = field(default_factory=dict[str, int])
    decoded: dict[tuple[int, bytes], tuple[Attribute | None, bool]] = field(
        default_factory=dict[tuple[int, bytes], "tuple[Attribute | None, bool]"]
    )
    """Attributes of messages seen before, by identity of the codec and bytes; whether they are written so."""
    shapes: dict[bytes, tuple[Shape, Attribute, bool]] = field(
        default_factory=dict[bytes, tuple[Shape, Attribute, bool]]
    )
    """Shapes seen before, by bytes."""
    encoded: dict[tuple[int, int], tuple[Attribute, bytes]] = field(
        default_factory=dict[tuple[int, int], tuple[Attribute, bytes]]
    )
    """Fields written before, by field and identity; the attribute is kept alive."""

    @staticmethod
    def of(payloads: Sequence[bytes]) -> Context:
        """A context that starts with a table."""
        context = Context(list(payloads))
        for place, payload in enumerate(payloads):
            context.payload_ids.setdefault(to_text(payload), place)
        return context

    def shape(self, data: bytes) -> tuple[Shape, Attribute, bool]:
        """Shape and type of a serialised ShapeProto, and whether it is written so."""
        known = self.shapes.get(data)
        if known is None:
            shape = shape_of_bytes(data)
            known = self.shapes[data] = shape, type_of(shape), shape_bytes(shape) == data
        return known

    def shape_field(self, type_: Attribute) -> bytes:
        """Field 3 of an instruction for the type of its result."""
        known = self.encoded.get((3, id(type_)))
        if known is None:
            shape = shape_of(type_)
            if isinstance(shape, ArrayShape) and shape.layout is None:
                # XLA refuses a constant whose literal has a layout while its shape has none.
                shape = shape.with_layout(default_layout(shape.rank))
            data = bytes_field(3, shape_bytes(shape))
            known = self.encoded[3, id(type_)] = type_, data
        return known[1]

    def payload_id(self, payload: str) -> int:
        """Place of a payload in the table; it is added when new."""
        found = self.payload_ids.get(payload)
        if found is None:
            found = self.payload_ids[payload] = len(self.payloads)
            self.payloads.append(payload.encode("utf-8", "surrogateescape"))
        return found

    def metadata_bytes(self, metadata: Metadata) -> bytes:
        """A serialised OpMetadata."""
        return annotated.metadata_bytes(metadata, self.payload_id)


@dataclass(slots=True)
class Place:
    """What a property's meaning may depend on."""

    shape: Shape
    """Shape of the result."""
    operands: Sequence[SSAValue]

    @property
    def operand_shapes(self) -> list[Shape]:
        """Shapes of the operands."""
        return [shape_of(value.type) for value in self.operands]


class Codec(Protocol):
    """One property in one field."""

    @property
    def number(self) -> int:
        """Field of HloInstructionProto."""
        ...

    @property
    def is_message(self) -> bool:
        """Whether the value is a message, which is remembered by its bytes."""
        ...

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        """The attribute of a field that is present; None for a default that text does not say.

        Raises `DecodeProblem`.
        """
        ...

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        """The field with its tag; empty where the wire says nothing."""
        ...
