"""The codecs of every opcode, put together from the opcode table, `codecs.py` and `groups.py`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.attributes.base import FALSE, integer, integers, string
from mlirhlo.dialects.hlo.attributes.dimensions import Padding, PaddingAttr, Slice, SliceAttr
from mlirhlo.dialects.hlo.attributes.kinds import IntegerListsAttr
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.table import COMMON, OPCODES, AttrSpec, Opcode
from mlirhlo.formats.proto.codecs import CODECS, GROUP_FORMS, OWN_CODECS
from mlirhlo.formats.proto.context import Codec
from mlirhlo.formats.proto.groups import GROUPS, Group
from mlirhlo.formats.proto.message import text_field

_CALL_ORDER: Mapping[str, tuple[str, ...]] = {"while": ("body", "condition")}
"""Order of `called_computation_ids` where it is not that of the text."""


@dataclass(frozen=True, slots=True)
class Row:
    """What reading and writing an opcode's instructions needs."""

    opcode: Opcode
    cls: type[Instruction]
    opcode_field: bytes
    """Field 2, ready to write."""
    readers: Mapping[int, tuple[str, Codec] | Group]
    """What reads each field."""
    writers: Mapping[str, Codec]
    """What writes each property; those of groups are left out."""
    groups: tuple[Group, ...]
    calls: tuple[str, ...]
    """Properties in the order of `called_computation_ids`."""
    required: tuple[tuple[str, Attribute | None], ...]
    """Properties that must be there, and what an absent field stands for; None: it must not be."""
    unset: tuple[tuple[str, str, Attribute], ...]
    """Field, property and its value where a field at its default is not the text's default."""


@functools.lru_cache(maxsize=1024)
def row_of(opcode: str) -> Row | None:
    """The row of an opcode; None for an unknown one."""
    entry = OPCODES.get(opcode)
    if entry is None:
        return None
    groups = GROUPS.get(opcode, ())
    grouped = {key for group in groups for key in group.keys}
    specs = [*entry.attributes, *COMMON]
    keys = [s.property_name for s in specs if not s.read_only or opcode == "constant"]
    if opcode == "parameter":
        keys.append("parameter_number")
    readers: dict[int, tuple[str, Codec] | Group] = {}
    writers: dict[str, Codec] = {}
    for key in keys:
        codec = OWN_CODECS.get((opcode, key)) or CODECS.get(key)
        if key in grouped or codec is None:
            continue
        writers[key] = codec
        readers[codec.number] = key, codec
    if "replica_groups" in keys:
        writers["replica_groups"] = GROUP_FORMS[0]
        for form in GROUP_FORMS:
            readers[form.number] = "replica_groups", form
    for group in groups:
        for number in group.numbers:
            readers[number] = group
    cls = OP_CLASSES[opcode]
    return Row(
        entry,
        cls,
        text_field(2, opcode),
        readers,
        writers,
        groups,
        _CALL_ORDER.get(opcode, cls.calling_keys),
        tuple(
            (spec.property_name, _absent(spec, entry))
            for spec in entry.attributes
            if spec.required and not spec.read_only and not spec.kind.names_computations
        ),
        _UNSET.get(opcode, ()),
    )


_UNSET: Mapping[str, tuple[tuple[str, str, Attribute], ...]] = {
    "custom-call": (("custom_call_api_version", "api_version", string("API_VERSION_UNSPECIFIED")),),
    "parameter": (("parameter_number", "parameter_number", integer(0)),),
    "topk": (("largest", "largest", FALSE),),
}


_ABSENT: Mapping[str, Attribute] = {
    "fft_type": string("FFT"),
    "padding": PaddingAttr(Padding(())),
    "slice": SliceAttr(Slice(())),
}


def _absent(spec: AttrSpec, opcode: Opcode) -> Attribute | None:
    """What a required property is when its field is absent: the wire leaves out zeros."""
    if opcode.name == "rng-bit-generator" and spec.key == "algorithm":
        return string("rng_default")
    if spec.kind is k.INTEGERS:
        return integers(())
    if spec.kind is k.INTEGER_LISTS:
        return IntegerListsAttr.of(())
    if spec.kind is k.INTEGER:
        return integer(0)
    if spec.kind is k.FLOAT:
        return FloatAttr(0.0, f64)
    return _ABSENT.get(spec.property_name)
