"""How one property of an instruction stands in one field of HloInstructionProto.

`CODECS` is keyed by property name; where two opcodes use a name differently, by opcode and name.
Properties that share a message are in `groups.py`. Attributes and defaults are the opcode
table's. Source: HLO protobuf reference, "HloInstructionProto", tables 6.1 and 6.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from google.protobuf.message import Message
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, f64
from xdsl.ir import Attribute

import mlirhlo.formats.proto.annotations as annotated
from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliasesAttr
from mlirhlo.dialects.hlo.attributes.annotations import (
    Metadata,
    MetadataAttr,
    OriginAttr,
    ResultAccuracyAttr,
    StatisticsAttr,
)
from mlirhlo.dialects.hlo.attributes.base import (
    bool_of,
    boolean,
    int_of,
    integer,
    integers,
    ints,
    str_of,
    string,
)
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbersAttr,
    PaddingAttr,
    SliceAttr,
    SparsityConfigAttr,
    WindowAttr,
)
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.header import Booleans, BooleansAttr, RawTextAttr
from mlirhlo.dialects.hlo.attributes.kinds import (
    COMPARISON_ORDER,
    COMPARISON_TYPE,
    FUSION_KIND,
    AttrKind,
    IntegerListsAttr,
)
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.literal import LiteralAttr
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.proto import dimensions, shardings
from mlirhlo.formats.proto.context import Codec, Context, Place
from mlirhlo.formats.proto.files.wire import VARINT
from mlirhlo.formats.proto.literals import decode_literal, encode_literal
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    float_field,
    number_field,
    numbers_field,
    tag,
    text_field,
    to_text,
    varint,
)
from mlirhlo.formats.proto.module_pb2 import TriState
from mlirhlo.formats.proto.op_attributes_pb2 import BlockScalingConfig, ShuffleMode
from mlirhlo.formats.proto.raw import fill, raw_of
from mlirhlo.formats.proto.shapes import shape_bytes, shape_of_bytes
from mlirhlo.formats.proto.words import (
    API_VERSIONS,
    CONVOLUTION_KINDS,
    DISTRIBUTIONS,
    FFT_TYPES,
    PADDING_TYPES,
    RNG_ALGORITHMS,
    SCHEDULES,
    Words,
)


@dataclass(frozen=True, slots=True)
class Simple:
    """A codec of two functions that need nothing but the value."""

    number: int
    read: Callable[[Any], Attribute | None]
    write: Callable[[int, Attribute], bytes]
    is_message: bool = False

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        """As `Codec`."""
        return self.read(value)

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        """As `Codec`."""
        return self.write(self.number, attribute)


def _integer(number: int) -> Simple:
    return Simple(number, integer, lambda n, a: number_field(n, int_of(a)))


def _boolean(number: int) -> Simple:
    return Simple(number, boolean, lambda n, a: number_field(n, int(bool_of(a))))


def _count(number: int) -> Simple:
    """An integer that is 1 by default."""
    return Simple(
        number, lambda v: integer(v) if v != 1 else None, lambda n, a: number_field(n, int_of(a))
    )


def _string(number: int) -> Simple:
    return Simple(number, string, lambda n, a: text_field(n, str_of(a)))


def _one_of(number: int, kind: AttrKind) -> Simple:
    """A string that is one of the words of a kind."""

    @lru_cache(maxsize=1024)
    def read(value: str) -> Attribute:
        try:
            return parse_all(value, kind.read)
        except SyntaxProblem as problem:
            raise DecodeProblem("HLO0215", problem.message) from None

    return Simple(number, read, lambda n, a: text_field(n, str_of(a)))


def _bytes(number: int) -> Simple:
    return Simple(number, lambda v: string(to_text(v)), lambda n, a: text_field(n, str_of(a)))


def _integers(number: int) -> Simple:
    return Simple(number, lambda v: integers(tuple(v)), lambda n, a: numbers_field(n, ints(a)))


def _only_integer(number: int) -> Simple:
    """An integer property in a repeated field."""

    def read(values: Sequence[int]) -> Attribute:
        if len(values) != 1:
            raise DecodeProblem("HLO0215", f"dimensions: expects one, found {len(values)}")
        return integer(values[0])

    return Simple(number, read, lambda n, a: numbers_field(n, [int_of(a)]))


def _word(number: int, words: Words, default: str = "") -> Simple:
    def read(value: int) -> Attribute | None:
        word = words.word(value)
        return None if word == default else string(word)

    return Simple(number, read, lambda n, a: number_field(n, words.number(str_of(a))))


def _message(
    number: int, read: Callable[[bytes], Attribute | None], write: Callable[[Any], bytes]
) -> Simple:
    """A nested message: `read` gets its bytes, `write` the attribute's value."""
    return Simple(
        number,
        lambda value: read(value.SerializeToString(deterministic=True)),
        lambda n, a: bytes_field(n, write(cast(Any, a).data)),
        is_message=True,
    )


def _raw(number: int, cls: type[Message]) -> Simple:
    def write(n: int, attribute: Attribute) -> bytes:
        message = cls()
        fill(message, cast(Any, attribute).data, message.DESCRIPTOR.name)
        return bytes_field(n, message.SerializeToString(deterministic=True))

    return Simple(number, lambda value: RawTextAttr(raw_of(value)), write, is_message=True)


def _decode_epsilon(value: float) -> Attribute:
    return FloatAttr(value, f64)


def _encode_epsilon(number: int, attribute: Attribute) -> bytes:
    value = float(cast("FloatAttr[Any]", attribute).value.data)
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return float_field(number, packed)


def _decode_optional_window(data: bytes) -> WindowAttr:
    return WindowAttr(dimensions.window_of(data))


def _decode_window(data: bytes) -> WindowAttr | None:
    window = _decode_optional_window(data)
    return window if window.data.dimensions else None


def _decode_sparsity(data: bytes) -> Attribute | None:
    found = dimensions.sparsity_of(data)
    return None if found is None else SparsityConfigAttr(found)


def _decode_statistics(data: bytes) -> Attribute | None:
    found = annotated.statistics_of(data)
    return None if found is None else StatisticsAttr(found)


def _decode_accuracy(data: bytes) -> Attribute | None:
    found = annotated.accuracy_of(data)
    return None if found is None else ResultAccuracyAttr(found)


def _encode_accuracy(number: int, attribute: Attribute) -> bytes:
    data = annotated.accuracy_bytes(cast(ResultAccuracyAttr, attribute).data)
    return b"" if data is None else bytes_field(number, data)


def _decode_pairs(pairs: Any) -> Attribute:
    return IntegerListsAttr.of(tuple((pair.source, pair.target) for pair in pairs))


def _encode_pairs(number: int, attribute: Attribute) -> bytes:
    pairs = cast(IntegerListsAttr, attribute).data
    return b"".join(
        bytes_field(number, number_field(1, source) + number_field(2, target))
        for source, target in pairs
    )


def _decode_replication(value: Any) -> Attribute | None:
    flags = tuple(value.replicated_at_leaf_buffers)
    return BooleansAttr(Booleans(flags)) if flags else None


def _encode_replication(number: int, attribute: Attribute) -> bytes:
    flags = cast(BooleansAttr, attribute).data.values
    return bytes_field(number, numbers_field(1, map(int, flags)))


def _decode_associative(value: int) -> Attribute | None:
    return boolean(True) if value == TriState.TRI_STATE_TRUE else None


def _encode_associative(number: int, attribute: Attribute) -> bytes:
    yes = bool_of(attribute)
    return number_field(number, TriState.TRI_STATE_TRUE if yes else TriState.TRI_STATE_FALSE)


def _groups(number: int, read: Callable[[bytes], Any]) -> Simple:
    def write(_: int, attribute: Attribute) -> bytes:
        return bytes_field(*shardings.groups_field(cast(ReplicaGroupsAttr, attribute).data))

    return Simple(
        number,
        lambda value: ReplicaGroupsAttr(read(value.SerializeToString(deterministic=True))),
        write,
        is_message=True,
    )


_NO_METADATA = Metadata()


@dataclass(frozen=True, slots=True)
class _Metadata:
    number: int = 7
    is_message: bool = True

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        metadata = annotated.metadata_of(value, context.payloads, may_be_newer=context.may_be_newer)
        return None if metadata == _NO_METADATA else MetadataAttr(metadata)

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        return bytes_field(7, context.metadata_bytes(cast(MetadataAttr, attribute).data))


@dataclass(frozen=True, slots=True)
class _Sharding:
    number: int = 40
    is_message: bool = True

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        return ShardingAttr(shardings.decode_sharding(value, context.payloads))

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        sharding = cast(ShardingAttr, attribute).data
        return bytes_field(self.number, shardings.sharding_bytes(sharding, context.metadata_bytes))


@dataclass(frozen=True, slots=True)
class _Origin:
    number: int = 88
    is_message: bool = False
    """Its tree depends on the shape, too."""

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        data = value.SerializeToString(deterministic=True)
        return OriginAttr(annotated.origin_of(data, place.shape))

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        return bytes_field(88, annotated.origin_bytes(cast(OriginAttr, attribute).data))


@dataclass(frozen=True, slots=True)
class _SliceSizes:
    """`slice_sizes` of a collective-permute: lists of one size per dimension, flattened."""

    number: int = 20
    is_message: bool = False

    def decode(self, value: Any, context: Context, place: Place) -> Attribute | None:
        sizes = list(value)
        first = place.operand_shapes[0] if place.operand_shapes else place.shape
        parts = getattr(first, "elements", (first,))
        ranks = [max(1, getattr(part, "rank", 1)) for part in parts] or [1]
        lists: list[tuple[int, ...]] = []
        while sizes:
            rank = ranks[len(lists) % len(ranks)]
            lists.append(tuple(sizes[:rank]))
            del sizes[:rank]
        return IntegerListsAttr.of(tuple(lists))

    def encode(self, attribute: Attribute, context: Context) -> bytes:
        lists = cast(IntegerListsAttr, attribute).data
        return numbers_field(20, [size for sizes in lists for size in sizes])


def _decode_shapes(protos: Any) -> Attribute:
    shapes = [shape_of_bytes(proto.SerializeToString(deterministic=True)) for proto in protos]
    return ArrayAttr([type_of(shape) for shape in shapes])


def shapes_field(number: int, attribute: Attribute) -> bytes:
    """The repeated field of a list of shapes."""
    types = cast("ArrayAttr[Attribute]", attribute).data
    return b"".join(bytes_field(number, shape_bytes(shape_of(type_))) for type_ in types)


GROUP_FORMS: tuple[Simple, ...] = (
    _groups(shardings.LISTS, shardings.groups_of_lists),
    _groups(shardings.IOTA, shardings.groups_of_iota),
    _groups(shardings.MESH, shardings.groups_of_mesh),
)
"""The three fields of `replica_groups`; each writes whatever form it is given."""

CODECS: Mapping[str, Codec] = {
    "api_version": _word(77, API_VERSIONS, "API_VERSION_ORIGINAL"),
    "async_execution_thread": _string(79),
    "backend_config": _bytes(43),
    "batch_group_count": _count(58),
    "block_scaling_config": _raw(101, BlockScalingConfig),
    "channel_id": _integer(26),
    "constrain_layout": _boolean(56),
    "convolution_kind": _word(97, CONVOLUTION_KINDS, "unset"),
    # A member of a oneof: written even when it is 0.
    "cross_program_prefetch_index": Simple(
        80, integer, lambda n, a: tag(n, VARINT) + varint(int_of(a))
    ),
    "custom_call_has_side_effect": _boolean(65),
    "custom_call_target": _string(28),
    "delta": _integer(66),
    "dim_labels": _message(
        16,
        lambda data: ConvolutionDimensionNumbersAttr(dimensions.convolution_of(data)),
        dimensions.convolution_bytes,
    ),
    "dimensions": _integers(14),
    "direction": _string(63),
    "distribution": _word(23, DISTRIBUTIONS),
    "dynamic_slice_sizes": _integers(20),
    "epsilon": Simple(24, _decode_epsilon, _encode_epsilon),
    "exponent_bits": _integer(18),
    "feature_group_count": _count(50),
    "feature_index": _integer(25),
    "fft_length": _integers(32),
    "fft_type": _word(31, FFT_TYPES),
    "frontend_attributes": _message(
        68, annotated.frontend_attributes_of, annotated.frontend_attributes_bytes
    ),
    "has_dynamic_root": _boolean(100),
    "index": _integer(13),
    "indices_are_sorted": _boolean(67),
    "infeed_config": _bytes(27),
    "inferred_dimension": _only_integer(14),
    "iota_dimension": _only_integer(14),
    "is_associative": Simple(96, _decode_associative, _encode_associative),
    "is_composite": _boolean(89),
    "is_host_transfer": _boolean(47),
    "is_reverse": _boolean(94),
    "is_stable": _boolean(60),
    "k": _integer(81),
    "kind": _one_of(11, FUSION_KIND),
    "largest": Simple(85, lambda _: None, lambda n, a: number_field(n, int(bool_of(a)))),
    "literal": Simple(
        8,
        lambda value: LiteralAttr(decode_literal(value)),
        lambda n, a: bytes_field(
            n,
            encode_literal(cast(LiteralAttr, a).data).SerializeToString(deterministic=True),
        ),
        is_message=True,
    ),
    "mantissa_bits": _integer(19),
    "metadata": _Metadata(),
    "mode": _raw(103, ShuffleMode),
    "num_carries": _integer(95),
    "order": _one_of(102, COMPARISON_ORDER),
    "origin": _Origin(),
    "outfeed_config": _bytes(22),
    "outfeed_shape": Simple(
        29,
        lambda value: type_of(shape_of_bytes(value.SerializeToString(deterministic=True))),
        lambda n, a: bytes_field(n, shape_bytes(shape_of(a))),
        is_message=True,
    ),
    "output_to_operand_aliasing": Simple(
        74,
        lambda value: OutputOperandAliasesAttr(dimensions.aliases_of(value)),
        lambda n, a: dimensions.alias_fields(n, cast(OutputOperandAliasesAttr, a).data),
    ),
    "padding": _message(
        21, lambda data: PaddingAttr(dimensions.padding_of(data)), dimensions.padding_bytes
    ),
    "padding_type": _word(75, PADDING_TYPES),
    "parameter_number": _integer(9),
    "parameter_replication": Simple(61, _decode_replication, _encode_replication),
    "result_accuracy": Simple(
        91,
        lambda value: _decode_accuracy(value.SerializeToString(deterministic=True)),
        _encode_accuracy,
        is_message=True,
    ),
    "schedule": _word(76, SCHEDULES, "SCHEDULE_NONE"),
    "sharding": _Sharding(),
    "slice": Simple(
        17,
        lambda value: SliceAttr(dimensions.slice_of(value)),
        lambda n, a: dimensions.slice_fields(n, cast(SliceAttr, a).data),
    ),
    "slice_sizes": _integers(34),
    "source_target_pairs": Simple(52, _decode_pairs, _encode_pairs),
    "sparsity_config": _message(98, _decode_sparsity, dimensions.sparsity_bytes),
    "statistics": _message(82, _decode_statistics, annotated.statistics_bytes),
    "type": _one_of(72, COMPARISON_TYPE),
    "unique_indices": _boolean(69),
    "use_global_device_ids": _boolean(71),
    "window": _message(15, _decode_window, dimensions.window_bytes),
}
"""Plain properties by name."""

_OPERAND_SHAPES = Simple(57, _decode_shapes, shapes_field)

OWN_CODECS: Mapping[tuple[str, str], Codec] = {
    ("collective-permute", "slice_sizes"): _SliceSizes(),
    ("collective-permute-start", "slice_sizes"): _SliceSizes(),
    ("custom-call", "operand_layout_constraints"): _OPERAND_SHAPES,
    ("custom-call", "window"): _message(15, _decode_optional_window, dimensions.window_bytes),
    ("rng-bit-generator", "algorithm"): _word(70, RNG_ALGORITHMS),
}
"""Properties whose field depends on the opcode."""
