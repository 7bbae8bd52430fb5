"""The descriptor pool behind the generated `*_pb2` modules.

The messages keep XLA's own names (package `xla`), so that `google.protobuf.Any` and text format
speak of the same types as XLA's dumps do. TensorFlow and others register the very same names in
protobuf's default pool, where a second definition is an error; with a pool of our own both live in
one process. Only public runtime API is used and no version of generated code is checked, so any
protobuf runtime that the package allows can load the checked-in descriptors.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

POOL = descriptor_pool.DescriptorPool()
"""Every message of ours; also what text format and JSON need to look inside an `Any`."""

POOL.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)


def load(serialized: bytes) -> dict[str, Any]:
    """Add one serialized `FileDescriptorProto`; returns the names its module exports."""
    POOL.AddSerializedFile(serialized)
    # The name is the first field: tag 0x0a, one length byte (our paths are short), the text.
    file = POOL.FindFileByName(serialized[2 : 2 + serialized[1]].decode())
    names: dict[str, Any] = {"DESCRIPTOR": file}
    for name, message in file.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(message)
    for name, enum in file.enum_types_by_name.items():
        names[name] = enum_type_wrapper.EnumTypeWrapper(enum)
        names |= {value.name: value.number for value in enum.values}
    return names
