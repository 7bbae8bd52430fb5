"""What any op may carry: frontend attributes, shardings, the layouts of custom calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingAttr, read_sharding
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

with LATE:
    from mlirhlo.formats.proto import sharding_pb2, shardings


def spell(value: Attribute) -> str:
    """An attribute as MLIR prints it: `{k = 1 : i32, s = "x"}`."""
    if isinstance(value, DictionaryAttr):
        parts = [f"{k} = {spell(v)}" for k, v in sorted(value.data.items())]
        return "{" + ", ".join(parts) + "}"
    return str(value)


def entries_of(value: Attribute) -> dict[str, str]:
    """A dictionary attribute as frontend attributes: strings bare, others as MLIR spells them."""
    return {
        key: one.data if isinstance(one, StringAttr) else spell(one)
        for key, one in cast(DictionaryAttr, value).data.items()
    }


def frontend(body: Body, entries: Mapping[str, str]) -> None:
    """Adds frontend attributes to the instructions being emitted."""
    old = body.common.get("frontend_attributes")
    known = dict(old.data.entries) if isinstance(old, FrontendAttributesAttr) else {}
    body.common = {
        **body.common,
        "frontend_attributes": FrontendAttributesAttr(FrontendAttributes.of({**known, **entries})),
    }


def parse_sharding(text: str, op: Operation) -> Sharding:
    """A sharding spelled as in HLO, or the bytes of an OpSharding. Raises `HloError` HLO0426."""
    stripped = text.lstrip()
    try:
        if stripped.startswith("{"):
            return parse_all(text, read_sharding)
        return _from_proto(text)
    except (SyntaxProblem, ValueError) as found:
        message = found.message if isinstance(found, SyntaxProblem) else str(found)
        raise problem(
            "HLO0426",
            op,
            f"mhlo.sharding {text!r} is not a sharding: {message}",
            "shardings look like {replicated} or {devices=[2,1]<=[2]}",
        ) from None


def _from_proto(text: str) -> Sharding:
    from google.protobuf.message import DecodeError

    message = sharding_pb2.OpSharding()
    try:
        message.ParseFromString(text.encode("utf-8", "surrogateescape"))
    except (DecodeError, UnicodeEncodeError) as found:
        raise ValueError("neither text nor an OpSharding") from found
    return shardings.decode_sharding(message)


def read_common(op: Operation, body: Body) -> None:
    """Reads `mhlo.sharding` and `mhlo.frontend_attributes` of any op."""
    attributes = op.attributes
    sharding = attributes.get("mhlo.sharding")
    if isinstance(sharding, StringAttr):
        body.common = {
            **body.common,
            "sharding": ShardingAttr(parse_sharding(sharding.data, op)),
        }
    entries = attributes.get("mhlo.frontend_attributes")
    if isinstance(entries, DictionaryAttr):
        frontend(body, entries_of(entries))
