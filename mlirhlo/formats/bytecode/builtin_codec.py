"""The builtin dialect's codec."""

from __future__ import annotations

from xdsl.ir import Attribute

from mlirhlo.formats.bytecode import builtin_attributes, builtin_types
from mlirhlo.formats.bytecode.codec import Sink, Source


class BuiltinCodec:
    """Attributes, locations and types of the builtin dialect."""

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute or location."""
        return builtin_attributes.read(source)

    def read_type(self, source: Source) -> Attribute:
        """Decodes a type."""
        return builtin_types.read(source)

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute or location."""
        return builtin_attributes.write(value, sink)

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """Encodes a type."""
        return builtin_types.write(value, sink)
