"""Metadata, frontend attributes, statistics, origins and accuracies, to and from their messages.

Functions named `x_of` read a message's bytes, functions named `x_bytes` write them. Source: HLO
protobuf reference, "Metadata and tracking".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributes,
    FrontendAttributesAttr,
    Metadata,
    Origin,
    OriginalArray,
    OriginTree,
    ResultAccuracy,
    Statistics,
)
from mlirhlo.dialects.hlo.shapes import Shape, leaves
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    double_field,
    join,
    number_field,
    numbers_field,
    split,
    text_field,
    to_text,
)
from mlirhlo.formats.proto.metadata_pb2 import (
    FrontendAttributes as FrontendAttributesProto,
)
from mlirhlo.formats.proto.metadata_pb2 import (
    OpMetadata,
    OriginalArrayProto,
    OriginalValueProto,
    Payload,
    StatisticsViz,
)
from mlirhlo.formats.proto.op_attributes_pb2 import ResultAccuracy as ResultAccuracyProto

# Metadata ---------------------------------------------------------------------------------

_PAYLOAD = 20
_METADATA_FIELDS: Mapping[int, str] = {
    1: "op_type",
    2: "op_name",
    3: "source_file",
    4: "source_line",
    5: "profile_type",
    12: "deduplicated_name",
    15: "stack_frame_id",
    16: "scheduling_name",
    17: "source_end_line",
    18: "source_column",
    19: "source_end_column",
    _PAYLOAD: "metadata_payload",
}
"""Fields of OpMetadata that HLO text has, too; all others go to `proto_rest`."""


def metadata_of(proto: OpMetadata, payloads: Sequence[bytes], *, may_be_newer: bool) -> Metadata:
    """Metadata of a message; `payloads` is the module's table.

    Unknown fields are looked for only where the file `may_be_newer`. Raises `DecodeProblem` HLO0216 for a
    payload that the table lacks.
    """
    rest: dict[int, bytes] = {}
    if (
        may_be_newer
        or proto.size_of_generated_code_in_bytes
        or proto.size_of_memory_working_set_in_bytes
        or proto.HasField("profile_info")
    ):
        chunks = split(proto.SerializeToString(deterministic=True))
        rest = {number: c for number, c in chunks.items() if number not in _METADATA_FIELDS}
    payload = ""
    if proto.HasField("metadata_payload"):
        payload = to_text(payload_of(proto.metadata_payload, payloads))
    return Metadata(
        op_type=proto.op_type,
        op_name=proto.op_name,
        source_file=proto.source_file,
        source_line=proto.source_line,
        source_end_line=proto.source_end_line,
        source_column=proto.source_column,
        source_end_column=proto.source_end_column,
        profile_type=tuple(proto.profile_type),
        deduplicated_name=proto.deduplicated_name,
        scheduling_name=proto.scheduling_name,
        stack_frame_id=proto.stack_frame_id,
        metadata_payload=payload,
        proto_rest=join(rest).decode("latin-1"),
    )


def payload_of(payload: Payload, payloads: Sequence[bytes]) -> bytes:
    """Bytes of a payload, given inline or by table. Raises `DecodeProblem` HLO0216."""
    if payload.WhichOneof("payload_source") != "id":
        return payload.value
    if not 0 <= payload.id < len(payloads):
        raise DecodeProblem(
            "HLO0216", f"payload {payload.id} is not one of the module's {len(payloads)}"
        )
    return payloads[payload.id]


def metadata_bytes(metadata: Metadata, payload_id: Callable[[str], int]) -> bytes:
    """A serialised OpMetadata; `payload_id` gives the place of a payload in the module's table."""
    chunks: dict[int, bytes] = {}
    for number, name in _METADATA_FIELDS.items():
        value: str | int | tuple[int, ...] = getattr(metadata, name)
        if not value:
            continue
        if number == _PAYLOAD:
            # The id is a member of a oneof: written even when it is 0.
            payload = Payload(id=payload_id(metadata.metadata_payload))
            chunks[number] = bytes_field(number, payload.SerializeToString())
        elif isinstance(value, str):
            chunks[number] = text_field(number, value)
        elif isinstance(value, int):
            chunks[number] = number_field(number, value)
        else:
            chunks[number] = numbers_field(number, value)
    if metadata.proto_rest:
        chunks = {**split(metadata.proto_rest.encode("latin-1")), **chunks}
    return join(chunks)


# Frontend attributes ----------------------------------------------------------------------


def frontend_attributes_of(data: bytes) -> FrontendAttributesAttr | None:
    """The attribute of a serialised message; None for an empty one."""
    entries = FrontendAttributesProto.FromString(data).map
    return FrontendAttributesAttr(FrontendAttributes.of(dict(entries))) if entries else None


def frontend_attributes_bytes(attributes: FrontendAttributes) -> bytes:
    """A serialised FrontendAttributes; map entries have both fields, empty or not."""
    pairs = sorted(
        (key.encode("utf-8", "surrogateescape"), value) for key, value in attributes.entries
    )
    return b"".join(
        bytes_field(
            1, bytes_field(1, key) + bytes_field(2, value.encode("utf-8", "surrogateescape"))
        )
        for key, value in pairs
    )


# Statistics, accuracy ---------------------------------------------------------------------


def statistics_of(data: bytes) -> Statistics | None:
    """Statistics of a serialised StatisticsViz; None when it has none."""
    proto = StatisticsViz.FromString(data)
    if not proto.statistics:
        return None
    entries = tuple((entry.stat_name, entry.stat_val) for entry in proto.statistics)
    return Statistics(proto.stat_index_to_visualize, entries)


def statistics_bytes(statistics: Statistics) -> bytes:
    """A serialised StatisticsViz."""
    entries = [
        bytes_field(2, text_field(1, name) + double_field(2, value))
        for name, value in statistics.entries
    ]
    return number_field(1, statistics.visualizing_index) + b"".join(entries)


def accuracy_of(data: bytes) -> ResultAccuracy | None:
    """Accuracy of a serialised ResultAccuracy; None for the default. Raises `DecodeProblem`."""
    proto = ResultAccuracyProto.FromString(data)
    if proto.WhichOneof("specs") == "tolerance":
        tolerance = proto.tolerance
        return ResultAccuracy(tolerance=(tolerance.atol, tolerance.rtol, tolerance.ulps))
    if proto.mode == ResultAccuracyProto.HIGHEST:
        return ResultAccuracy("highest")
    if proto.mode != ResultAccuracyProto.DEFAULT:
        raise DecodeProblem("HLO0215", f"result_accuracy: {int(proto.mode)} is not a mode")
    return None


def accuracy_bytes(accuracy: ResultAccuracy) -> bytes | None:
    """A serialised ResultAccuracy; None for the default, which is not written."""
    if accuracy.tolerance is not None:
        atol, rtol, ulps = accuracy.tolerance
        return bytes_field(2, double_field(1, atol) + double_field(2, rtol) + number_field(3, ulps))
    return number_field(1, 1) if accuracy.mode == "highest" else None


# Origin -----------------------------------------------------------------------------------


def origin_of(data: bytes, shape: Shape) -> Origin:
    """The origin in a serialised OriginalValueProto of an instruction of `shape`.

    Raises `DecodeProblem` HLO0215 when its leaves make no tree.
    """
    proto = OriginalValueProto.FromString(data)
    if proto.is_synthetic_call:
        return Origin(synthetic_call=True, call_hierarchy=proto.call_hierarchy)
    found: dict[tuple[int, ...], OriginalArray | None] = {}
    for element in proto.elements:
        known = element.HasField("original_array")
        leaf = original_array_of(element.original_array) if known else None
        found[tuple(element.shape_index)] = leaf
    wanted = dict.fromkeys(index for index, _ in leaves(shape))
    # Empty tuples inside a tuple have no leaf: only the shape knows of them.
    tree = _tree_of_shape(shape, found, ()) if wanted.keys() == found.keys() else _tree(found, 0)
    return Origin(tree, call_hierarchy=proto.call_hierarchy)


def original_array_of(proto: OriginalArrayProto) -> OriginalArray:
    """The array a message names."""
    return OriginalArray(proto.instruction_name, tuple(proto.shape_index))


def _tree_of_shape(
    shape: Shape, found: Mapping[tuple[int, ...], OriginalArray | None], index: tuple[int, ...]
) -> OriginTree:
    elements: tuple[Shape, ...] | None = getattr(shape, "elements", None)
    if elements is None:
        return found[index]
    return tuple(_tree_of_shape(e, found, (*index, i)) for i, e in enumerate(elements))


def _tree(found: Mapping[tuple[int, ...], OriginalArray | None], depth: int) -> OriginTree:
    if not found:
        return ()
    if len(found) == 1 and () in found:
        return found[()]
    children: dict[int, dict[tuple[int, ...], OriginalArray | None]] = {}
    for index, leaf in found.items():
        if not index:
            raise DecodeProblem("HLO0215", "original_value: a leaf stands above other leaves")
        children.setdefault(index[0], {})[index[1:]] = leaf
    if sorted(children) != list(range(len(children))):
        raise DecodeProblem("HLO0215", "original_value: its leaves leave out a tuple element")
    return tuple(_tree(children[position], depth + 1) for position in range(len(children)))


def origin_bytes(origin: Origin) -> bytes:
    """A serialised OriginalValueProto."""
    parts: list[bytes] = []
    if not origin.synthetic_call:
        _origin_elements(origin.tree, (), parts)
    parts.append(number_field(2, int(origin.synthetic_call)))
    parts.append(text_field(3, origin.call_hierarchy))
    return b"".join(parts)


def _origin_elements(tree: OriginTree, index: tuple[int, ...], parts: list[bytes]) -> None:
    if isinstance(tree, tuple):
        for position, part in enumerate(tree):
            _origin_elements(part, (*index, position), parts)
        return
    element = numbers_field(1, index)
    if tree is not None:
        element += bytes_field(2, original_array_bytes(tree))
    parts.append(bytes_field(1, element))


def original_array_bytes(array: OriginalArray) -> bytes:
    """A serialised OriginalArrayProto."""
    return text_field(1, array.instruction_name) + numbers_field(2, array.shape_index)
