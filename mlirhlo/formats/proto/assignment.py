"""The buffer assignment that an HloProto holds beside its module.

It names instructions by id and says where their values lie, so it is true of this module only: it is
written again as long as the module encodes to the bytes it was read from, and dropped after that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

from google.protobuf.message import Message
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.formats.proto.buffer_assignment_pb2 import BufferAssignmentProto
from mlirhlo.formats.proto.containers_pb2 import HloProto, HloSnapshot
from mlirhlo.formats.proto.module_pb2 import HloModuleProto


@dataclass(frozen=True, slots=True)
class _Assigned:
    digest: bytes
    """Of the module's bytes."""
    assignment: BufferAssignmentProto


def remember_assignment(module: ModuleOp, message: Message) -> None:
    """Keeps the buffer assignment of the message that `module` was read from, if it has one."""
    proto = _hlo_proto(message)
    if proto is not None and proto.HasField("buffer_assignment"):
        kept = _Assigned(_digest(proto.hlo_module), proto.buffer_assignment)
        module.assigned_buffers = kept  # type: ignore[attr-defined]


def restore_assignment(module: ModuleOp, message: Message) -> None:
    """Puts the buffer assignment back into a message made of `module`, if that has not changed."""
    kept = cast("_Assigned | None", getattr(module, "assigned_buffers", None))
    proto = _hlo_proto(message)
    if kept is not None and proto is not None and kept.digest == _digest(proto.hlo_module):
        proto.buffer_assignment.CopyFrom(kept.assignment)


def _hlo_proto(message: Message) -> HloProto | None:
    if isinstance(message, HloSnapshot):
        return message.hlo
    return message if isinstance(message, HloProto) else None


def _digest(module: HloModuleProto) -> bytes:
    return hashlib.sha256(module.SerializeToString(deterministic=True)).digest()
