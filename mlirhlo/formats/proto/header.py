"""Everything of HloModuleProto and HloComputationProto that is not an instruction.

Some header attributes of HLO text (partition counts, propagation flags, …) have no field in
HloModuleProto; XLA keeps them in HloModuleConfigProto. So that a module survives the way through a plain
module message, `module_chunks` puts them into the module's `backend_config` (JSON, key `mlirhlo`),
a field that jaxlib's XLA passes over. Source: HLO protobuf reference, "HloModuleProto".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from google.protobuf.message import DecodeError
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonors,
    BufferDonorsAttr,
    InputOutputAlias,
    InputOutputAliases,
    InputOutputAliasesAttr,
)
from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import TRUE, boolean, integer, str_of, string
from mlirhlo.dialects.hlo.attributes.header import (
    Booleans,
    BooleansAttr,
    FileLocation,
    RawText,
    RawTextAttr,
    StackFrame,
    StackFrames,
    StackFramesAttr,
)
from mlirhlo.dialects.hlo.module import HEADER_CLASSES, HEADER_PREFIX, HloModule
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.formats.proto.annotations import frontend_attributes_bytes, frontend_attributes_of
from mlirhlo.formats.proto.config_pb2 import HloModuleConfigProto
from mlirhlo.formats.proto.context import Context
from mlirhlo.formats.proto.files.wire import VARINT
from mlirhlo.formats.proto.message import (
    bytes_field,
    join,
    number_field,
    numbers_field,
    tag,
    text_field,
    varint,
)
from mlirhlo.formats.proto.module_pb2 import (
    HloBufferDonorProto,
    HloInputOutputAliasProto,
    HloModuleProto,
    StackFrameIndexProto,
)
from mlirhlo.formats.proto.recovery import Decode, Encode, recovery_bytes, recovery_of
from mlirhlo.formats.proto.shapes import decode_program_shape, program_shape_bytes

_PAYLOADS = "proto_payloads"
"""Header attribute: the table of payloads, in base64."""
_PRIVATE = "mlirhlo"
"""Key of our own data in the module's backend_config."""

# Reading ----------------------------------------------------------------------------------


def read_header(module: HloModule, proto: HloModuleProto, context: Context, decode: Decode) -> None:
    """Sets the header attributes, after all instructions were read. Raises `DecodeProblem`."""
    if proto.HasField("schedule"):
        module.set("is_scheduled", TRUE)
    if proto.input_output_alias.entries:
        module.set("input_output_alias", InputOutputAliasesAttr(_aliases(proto.input_output_alias)))
    if proto.buffer_donor.entries:
        module.set("buffer_donor", BufferDonorsAttr(_donors(proto.buffer_donor)))
    if proto.HasField("host_program_shape"):
        parameters, result = decode_program_shape(proto.host_program_shape)
        module.set_program_layout(parameters, result)
    data = proto.frontend_attributes.SerializeToString(deterministic=True)
    module.set("frontend_attributes", frontend_attributes_of(data))
    if proto.HasField("stack_frame_index"):
        module.set("stack_frames", StackFramesAttr(_stack_frames(proto.stack_frame_index)))
    if proto.HasField("original_value_recovery_table"):
        table = recovery_of(proto.original_value_recovery_table, decode)
        module.set("origin_recovery_table", RawTextAttr(RawText(table)))
    if context.payloads:
        # With those that stood inline: they have a number, too, when they are written again.
        entries = [string(base64.b64encode(payload).decode()) for payload in context.payloads]
        module.set(_PAYLOADS, ArrayAttr(entries))
    if proto.backend_config:
        _read_private(module, proto.backend_config)


def _aliases(proto: HloInputOutputAliasProto) -> InputOutputAliases:
    return InputOutputAliases(
        tuple(
            InputOutputAlias(
                tuple(entry.output_shape_index),
                entry.parameter_number,
                tuple(entry.parameter_shape_index),
                "must-alias" if entry.kind == 2 else "may-alias",
            )
            for entry in proto.entries
        )
    )


def _donors(proto: HloBufferDonorProto) -> BufferDonors:
    return BufferDonors(
        tuple((e.parameter_number, tuple(e.parameter_shape_index)) for e in proto.entries)
    )


def _stack_frames(proto: StackFrameIndexProto) -> StackFrames:
    return StackFrames(
        tuple(proto.file_names),
        tuple(proto.function_names),
        tuple(
            FileLocation(
                row.file_name_id,
                row.function_name_id,
                row.line,
                row.end_line,
                row.column,
                row.end_column,
            )
            for row in proto.file_locations
        ),
        tuple(StackFrame(row.file_location_id, row.parent_frame_id) for row in proto.stack_frames),
    )


def payload_context(module: HloModule) -> Context:
    """A context with the table of payloads that the module was read with."""
    table = module.get(_PAYLOADS)
    entries = cast("ArrayAttr[Attribute]", table).data if table is not None else ()
    return Context.of([base64.b64decode(str_of(entry)) for entry in entries])


# Configuration ----------------------------------------------------------------------------

_COUNTS = ("replica_count", "num_partitions")
_FLAGS = ("alias_passthrough_params",)
_LISTS = (
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)


def read_config(module: HloModule, config: HloModuleConfigProto) -> None:
    """Sets the header attributes that XLA keeps in the configuration; absent at their defaults."""
    for key in _COUNTS:
        count = getattr(config, key)
        module.set(key, integer(count) if count > 1 else None)
    for key in _FLAGS:
        module.set(key, boolean(True) if getattr(config, key) else None)
    for key in _LISTS:
        flags = tuple(getattr(config, key))
        module.set(key, BooleansAttr(Booleans(flags)) if flags and flags != (False,) else None)


def config_of(module: HloModule) -> HloModuleConfigProto:
    """The header attributes as a configuration, with the program layout."""
    config = HloModuleConfigProto(
        replica_count=module.replica_count,
        num_partitions=module.num_partitions,
        use_spmd_partitioning=module.num_partitions > 1,
        alias_passthrough_params=module.alias_passthrough_params,
    )
    for key, value in zip(
        _LISTS,
        (module.allow_propagation_to_parameters, module.allow_propagation_to_output),
        strict=True,
    ):
        getattr(config, key).extend(value.values if value is not None else ())
    layout = module.program_layout
    config.entry_computation_layout.ParseFromString(
        program_shape_bytes(layout.parameters, layout.result, ("",) * len(layout.parameters))
    )
    return config


_IN_PROTO = frozenset(
    {
        "is_scheduled",
        "input_output_alias",
        "buffer_donor",
        "entry_computation_layout",
        "frontend_attributes",
        "stack_frames",
        "origin_recovery_table",
    }
)


def _private(module: HloModule) -> bytes:
    """Header attributes that HloModuleProto has no field for, as JSON; empty for none."""
    found: dict[str, Any] = {}
    for name, attribute in module.op.attributes.items():
        key = name.removeprefix(HEADER_PREFIX)
        if key == name or key in _IN_PROTO or key.startswith("proto"):
            continue
        match attribute:
            case BooleansAttr():
                found[key] = list(attribute.data.values)
            case RawTextAttr():
                found[key] = {"text": attribute.data.text}
            case _:
                value = getattr(attribute, "value", None)
                found[key] = value.data if value is not None else str_of(attribute)
    if not found:
        return b""
    return json.dumps({_PRIVATE: found}, separators=(",", ":"), sort_keys=True).encode()


def _read_private(module: HloModule, data: bytes) -> None:
    try:
        found = json.loads(data)[_PRIVATE]
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # a compiler's own configuration
    if not isinstance(found, dict):
        return
    for key, value in cast("dict[str, Any]", found).items():
        attribute: Attribute | None = None
        match value:
            case list():
                flags = tuple(bool(flag) for flag in cast("list[Any]", value))
                attribute = BooleansAttr(Booleans(flags))
            case {"text": str(text)}:
                attribute = RawTextAttr(RawText(text))
            case str():
                attribute = string(value)
            case int():
                attribute = boolean(value != 0) if key in _FLAGS else integer(value)
            case _:
                pass
        wanted = StringAttr if key == "raw_attributes" else HEADER_CLASSES.get(key, RawTextAttr)
        if isinstance(attribute, wanted):  # else somebody else's file, or a damaged one
            module.set(key, attribute)


# Writing ----------------------------------------------------------------------------------


def module_head(
    module: HloModule,
    context: Context,
    computation_ids: Mapping[str, int],
    sequences: Mapping[int, Sequence[bytes]],
    encode: Encode,
    *,
    keep_config: bool = True,
) -> bytes:
    """The serialised module without its computations.

    `sequences` holds the instruction ids, as varints, of every computation that a schedule
    orders, by id.
    """
    entry = module.entry
    layout = module.program_layout
    names = tuple(f"p{number}" for number in range(len(layout.parameters)))
    chunks = {
        1: text_field(1, module.name),
        2: text_field(2, entry.computation_name),
        4: bytes_field(4, program_shape_bytes(layout.parameters, layout.result, names)),
        6: number_field(6, computation_ids[entry.computation_name]),
        8: bytes_field(8, _alias_bytes(module.input_output_alias)),
        18: bytes_field(18, _donor_bytes(module.buffer_donor)),
    }
    if module.is_scheduled:
        chunks[7] = bytes_field(7, _schedule_bytes(sequences))
    frames = module.stack_frames
    if frames is not None:
        chunks[17] = bytes_field(17, _stack_frame_bytes(frames))
    attributes = module.get("frontend_attributes")
    data = b""
    if attributes is not None:
        data = frontend_attributes_bytes(cast(FrontendAttributesAttr, attributes).data)
    chunks[19] = bytes_field(19, data)
    table = module.get("origin_recovery_table")
    if table is not None:
        chunks[20] = bytes_field(20, recovery_bytes(cast(RawTextAttr, table).data.text, encode))
    chunks[22] = b"".join(bytes_field(22, payload) for payload in context.payloads)
    if keep_config and (private := _private(module)):
        chunks[25] = bytes_field(25, private)
    # The runtime has its own idea of the order of map entries.
    return canonical(join(chunks))


def canonical(head: bytes) -> bytes:
    """A serialised HloModuleProto as the runtime writes it.

    Raises `HloError` HLO0208 for a string that is not UTF-8, all that can be wrong in what we write.
    """
    try:
        return HloModuleProto.FromString(head).SerializeToString(deterministic=True)
    except DecodeError:
        raise error(
            "HLO0208", "the module has a name or attribute that is not UTF-8 text"
        ) from None


def computation_chunks(
    computation: ComputationOp, number: int, root_id: bytes, *, is_fused: bool
) -> dict[int, bytes]:
    """A computation's fields but for its instructions, by number."""
    parameters = computation.parameters
    names = tuple(p.instruction_name or "parameter" for p in parameters)
    shape = program_shape_bytes(tuple(p.shape for p in parameters), computation.root.shape, names)
    thread = computation.execution_thread
    chunks = {
        1: text_field(1, computation.computation_name),
        4: bytes_field(4, shape),
        5: number_field(5, number),
        6: tag(6, VARINT) + root_id if root_id != b"\0" else b"",
        7: number_field(7, int(is_fused)),
        8: text_field(8, "" if thread is None else thread.data),
    }
    return {number: chunk for number, chunk in chunks.items() if chunk}


def _schedule_bytes(sequences: Mapping[int, Sequence[bytes]]) -> bytes:
    # The key of a map entry is written even when it is 0.
    return b"".join(
        bytes_field(
            1,
            tag(1, VARINT) + varint(key) + bytes_field(2, bytes_field(1, b"".join(sequences[key]))),
        )
        for key in sorted(sequences)
    )


def _alias_bytes(aliases: InputOutputAliases | None) -> bytes:
    return b"".join(
        bytes_field(
            1,
            numbers_field(1, entry.output_index)
            + number_field(2, entry.parameter_number)
            + numbers_field(3, entry.parameter_index)
            + number_field(4, 2 if entry.kind == "must-alias" else 1),
        )
        for entry in (aliases.entries if aliases is not None else ())
    )


def _donor_bytes(donors: BufferDonors | None) -> bytes:
    return b"".join(
        bytes_field(1, number_field(1, number) + numbers_field(2, index))
        for number, index in (donors.entries if donors is not None else ())
    )


def _stack_frame_bytes(frames: StackFrames) -> bytes:
    parts = [bytes_field(1, name.encode("utf-8", "replace")) for name in frames.file_names]
    parts += [bytes_field(2, name.encode("utf-8", "replace")) for name in frames.function_names]
    parts += [
        bytes_field(
            3,
            number_field(1, row.file_name_id)
            + number_field(2, row.function_name_id)
            + number_field(3, row.line)
            + number_field(4, row.column)
            + number_field(5, row.end_line)
            + number_field(6, row.end_column),
        )
        for row in frames.file_locations
    ]
    parts += [
        bytes_field(
            4, number_field(1, frame.file_location_id) + number_field(2, frame.parent_frame_id)
        )
        for frame in frames.stack_frames
    ]
    return b"".join(parts)
