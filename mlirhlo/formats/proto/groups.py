"""Fields of HloInstructionProto that hold several properties, or that XLA always writes.

A `Group` belongs to some opcodes. It reads its fields into properties (leaving out defaults, as the
text reader does) and writes them whether or not a property is set. Source: HLO protobuf
reference, tables 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import (
    TRUE,
    bool_of,
    int_of,
    integer,
    integers,
    ints,
    str_of,
    string,
)
from mlirhlo.dialects.hlo.attributes.kinds import Domain, DomainAttr
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape
from mlirhlo.formats.proto.codecs import OWN_CODECS, shapes_field
from mlirhlo.formats.proto.context import Context, Place
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    number_field,
    numbers_field,
    text_field,
)
from mlirhlo.formats.proto.shardings import decode_sharding, sharding_bytes
from mlirhlo.formats.proto.words import DOT_ALGORITHMS, PRECISIONS, TRANSPOSES

Properties = dict[str, Attribute]
Chunk = tuple[int, bytes]
"""A field of the instruction: number, and bytes with tag."""


class Group(Protocol):
    """Some fields of some opcodes."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Fields that `decode` takes."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Properties that `encode` writes."""
        ...

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        """Sets properties from a field that is present. Raises `DecodeProblem`."""
        ...

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        """The fields, present whether or not a property is set."""
        ...


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Lists of dimensions in a nested message; empty lists are the default."""

    number: int
    lists: Mapping[int, str]
    """Property of each repeated field of the message."""
    optional: Mapping[int, str] = field(default_factory=dict[int, str])
    """The same for lists that HLO text leaves out when empty; the others it prints as `{}`."""
    scalar: tuple[int, str] | None = None
    """Field and property of its one plain integer."""

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.number,)

    @property
    def keys(self) -> tuple[str, ...]:
        scalar = () if self.scalar is None else (self.scalar[1],)
        return (*self.lists.values(), *self.optional.values(), *scalar)

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        fields = value.DESCRIPTOR.fields_by_number
        for position, key in self.lists.items():
            properties[key] = integers(tuple(getattr(value, fields[position].name)))
        for position, key in self.optional.items():
            if found := tuple(getattr(value, fields[position].name)):
                properties[key] = integers(found)
        if self.scalar is not None:
            properties[self.scalar[1]] = integer(getattr(value, fields[self.scalar[0]].name))

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        lists = {**self.lists, **self.optional}
        parts = {n: numbers_field(n, ints(op.properties.get(key))) for n, key in lists.items()}
        if self.scalar is not None:
            number, key = self.scalar
            parts[number] = number_field(number, int_of(op.properties.get(key)))
        data = b"".join([parts[number] for number in sorted(parts)])
        return ((self.number, bytes_field(self.number, data)),)


_DOT_LISTS = {
    1: "lhs_contracting_dims",
    2: "rhs_contracting_dims",
    3: "lhs_batch_dims",
    4: "rhs_batch_dims",
}
_DOT = Dimensions(30, {}, _DOT_LISTS)


@dataclass(frozen=True, slots=True)
class RaggedDimensions:
    """Dot dimensions inside the message of a ragged-dot."""

    numbers: tuple[int, ...] = (90,)
    keys: tuple[str, ...] = (*_DOT_LISTS.values(), "lhs_ragged_dims", "rhs_group_dims")

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        _DOT.decode(30, value.dot_dimension_numbers, properties, context, place)
        for key, found in (
            ("lhs_ragged_dims", value.lhs_ragged_dimensions),
            ("rhs_group_dims", value.rhs_group_dimensions),
        ):
            if found:
                properties[key] = integers(tuple(found))

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        dot = [numbers_field(n, ints(op.properties.get(key))) for n, key in _DOT_LISTS.items()]
        data = bytes_field(1, b"".join(dot))
        data += numbers_field(2, ints(op.properties.get("lhs_ragged_dims")))
        data += numbers_field(3, ints(op.properties.get("rhs_group_dims")))
        return ((90, bytes_field(90, data)),)


@dataclass(frozen=True, slots=True)
class Precision:
    """One precision per operand, `default` spelled out; the algorithm of a dot."""

    operands: int | None = 2
    """How many are written when none is set; None: one an operand."""
    has_algorithm: bool = False
    numbers: tuple[int, ...] = (51,)

    @property
    def keys(self) -> tuple[str, ...]:
        return ("operand_precision", "algorithm") if self.has_algorithm else ("operand_precision",)

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        found = [PRECISIONS.word(precision) for precision in value.operand_precision]
        if any(word != "default" for word in found):
            properties["operand_precision"] = ArrayAttr([string(word) for word in found])
        if self.has_algorithm and value.algorithm:
            properties["algorithm"] = string(DOT_ALGORITHMS.word(value.algorithm))

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        given = op.properties.get("operand_precision")
        if given is None:
            count = len(op.inputs) if self.operands is None else self.operands
            numbers = [0] * count
        else:
            words = cast("ArrayAttr[Attribute]", given).data
            numbers = [PRECISIONS.number(str_of(word)) for word in words]
        data = numbers_field(1, numbers)
        if self.has_algorithm:
            algorithm = str_of(op.properties.get("algorithm"), "unset")
            data += number_field(2, DOT_ALGORITHMS.number(algorithm))
        return ((51, bytes_field(51, data)),)


@dataclass(frozen=True, slots=True)
class TriangularSolve:
    """The options of a triangular-solve."""

    numbers: tuple[int, ...] = (59,)
    keys: tuple[str, ...] = ("left_side", "lower", "unit_diagonal", "transpose_a")

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        for key in self.keys[:3]:
            if getattr(value, key):
                properties[key] = TRUE
        properties["transpose_a"] = string(TRANSPOSES.word(value.transpose_a))

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        flags = [bool_of(op.properties.get(key)) for key in self.keys[:3]]
        data = b"".join([number_field(n, int(flag)) for n, flag in enumerate(flags, 1)])
        word = str_of(op.properties.get("transpose_a"), "NO_TRANSPOSE")
        data += number_field(4, TRANSPOSES.number(word))
        return ((59, bytes_field(59, data)),)


@dataclass(frozen=True, slots=True)
class Cholesky:
    """The options of a cholesky."""

    numbers: tuple[int, ...] = (62,)
    keys: tuple[str, ...] = ("lower",)

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        if value.lower:
            properties["lower"] = TRUE

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        return ((62, bytes_field(62, number_field(1, int(bool_of(op.properties.get("lower")))))),)


@dataclass(frozen=True, slots=True)
class DomainShardings:
    """Both sides of a domain. The proto's entry is the operand's side, the text's the user's."""

    numbers: tuple[int, ...] = (54, 55)
    keys: tuple[str, ...] = ("domain",)

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        sharding = decode_sharding(value, context.payloads)
        known = properties.get("domain")
        other = cast(DomainAttr, known).data if known is not None else Domain(sharding, sharding)
        domain = Domain(other.entry, sharding) if number == 54 else Domain(sharding, other.exit)
        properties["domain"] = DomainAttr(domain)

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        domain = cast(DomainAttr, op.properties["domain"]).data
        exit_ = sharding_bytes(domain.exit, context.metadata_bytes)
        entry = sharding_bytes(domain.entry, context.metadata_bytes)
        return ((54, bytes_field(54, exit_)), (55, bytes_field(55, entry)))


def default_comparison(shape: Shape) -> str:
    """The comparison type that follows from the operands."""
    if not isinstance(shape, ArrayShape):
        return "UNSIGNED"
    type_ = shape.element_type
    if type_.is_float or type_.is_complex:
        return "FLOAT"
    return "SIGNED" if type_.is_signed else "UNSIGNED"


_COMPARISONS = frozenset({"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"})
_DIRECTIONS = frozenset({"EQ", "NE", "GE", "GT", "LE", "LT"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Direction, type and order of a compare; older producers leave the type empty."""

    numbers: tuple[int, ...] = (63, 72, 102)
    keys: tuple[str, ...] = ("direction", "type", "order")

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        if number == 63:
            _one_of("comparison_direction", value, _DIRECTIONS)
            properties["direction"] = string(value)
        elif number == 72:
            _one_of("comparison_type", value, _COMPARISONS)
            shapes = place.operand_shapes
            if value != (default_comparison(shapes[0]) if shapes else ""):
                properties["type"] = string(value)
        else:
            _one_of("comparison_order", value, frozenset({"PARTIAL", "TOTAL"}))
            if value != "PARTIAL":
                properties["order"] = string(value)

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        shapes = op.input_shapes
        default = default_comparison(shapes[0]) if shapes else "FLOAT"
        return (
            (63, text_field(63, str_of(op.properties.get("direction")))),
            (72, text_field(72, str_of(op.properties.get("type"), default))),
            (102, text_field(102, str_of(op.properties.get("order")))),
        )


def _one_of(what: str, word: str, allowed: frozenset[str]) -> None:
    if word not in allowed:
        words = ", ".join(sorted(allowed))
        raise DecodeProblem("HLO0215", f"{what}: {word!r} is not one of {words}")


@dataclass(frozen=True, slots=True)
class Always:
    """Plain fields that are written at their text default, which the wire does not have."""

    fields: tuple[tuple[int, str, int], ...]
    """Number, property, and the value when the property is not set."""
    empty: tuple[tuple[int, str], ...] = ()
    """Number and property of messages that are present though empty."""
    numbers: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        """Codecs read these fields."""

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        given = op.properties
        chunks = [(n, number_field(n, value)) for n, key, value in self.fields if key not in given]
        chunks += [(n, bytes_field(n, b"")) for n, key in self.empty if key not in given]
        return chunks


@dataclass(frozen=True, slots=True)
class LayoutConstraints:
    """Operand layouts of a custom-call: a flag and a list."""

    numbers: tuple[int, ...] = (56, 57)
    keys: tuple[str, ...] = ("operand_layout_constraints",)

    def decode(
        self, number: int, value: Any, properties: Properties, context: Context, place: Place
    ) -> None:
        if number == 56:
            properties.setdefault("operand_layout_constraints", ArrayAttr([]))
            return
        codec = OWN_CODECS["custom-call", "operand_layout_constraints"]
        found = codec.decode(value, context, place)
        if found is not None:
            properties["operand_layout_constraints"] = found

    def encode(self, op: Instruction, context: Context) -> Sequence[Chunk]:
        shapes = op.properties.get("operand_layout_constraints")
        if shapes is None:
            return ()
        return ((56, number_field(56, 1)), (57, shapes_field(57, shapes)))


_COUNTS = ((50, "feature_group_count", 1), (58, "batch_group_count", 1))
_WINDOW = Always((), ((15, "window"),))
_GROUPS = Always((), ((87, "replica_groups"),))

GROUPS: Mapping[str, tuple[Group, ...]] = {
    "all-gather": (_GROUPS,),
    "all-gather-start": (_GROUPS,),
    "all-reduce": (_GROUPS,),
    "all-reduce-start": (_GROUPS,),
    "all-to-all": (_GROUPS,),
    "cholesky": (Cholesky(),),
    "collective-broadcast": (_GROUPS,),
    "collective-reduce": (_GROUPS,),
    "compare": (Comparison(),),
    "convolution": (Precision(None), Always(_COUNTS, ((15, "window"), (98, "sparsity_config")))),
    "custom-call": (
        Precision(None),
        Always((*_COUNTS, (77, "api_version", 1))),
        LayoutConstraints(),
    ),
    "domain": (DomainShardings(),),
    "dot": (_DOT, Precision(has_algorithm=True)),
    "gather": (
        Dimensions(
            33,
            {1: "offset_dims", 2: "collapsed_slice_dims", 3: "start_index_map"},
            {5: "operand_batching_dims", 6: "start_indices_batching_dims"},
            (4, "index_vector_dim"),
        ),
    ),
    "ragged-all-to-all": (_GROUPS,),
    "ragged-dot": (RaggedDimensions(), Precision()),
    "reduce-scatter": (_GROUPS,),
    "reduce-window": (_WINDOW,),
    "scaled-dot": (_DOT, Precision()),
    "scan": (Always(((96, "is_associative", 2),)),),
    "scatter": (
        Dimensions(
            48,
            {1: "update_window_dims", 2: "inserted_window_dims", 3: "scatter_dims_to_operand_dims"},
            {5: "input_batching_dims", 6: "scatter_indices_batching_dims"},
            (4, "index_vector_dim"),
        ),
    ),
    "select-and-scatter": (_WINDOW,),
    "topk": (Always(((85, "largest", 1),)),),
    "triangular-solve": (TriangularSolve(),),
}
"""The groups of every opcode that has some."""
