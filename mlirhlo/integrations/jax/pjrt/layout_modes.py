"""The layouts that JAX asks for of parameters and results: C's order, unless the program names another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from mlirhlo import formats
from mlirhlo.formats.proto.module_pb2 import HloModuleProto

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirhlo.formats.proto.shape_pb2 import ShapeProto

_ATTRIBUTE = "mhlo.layout_mode"
_ORDER = re.compile(r"\{([0-9,]*)")


def with_layouts(proto: bytes, program: bytes) -> bytes:
    """An HloModuleProto whose entry has these layouts; `program` is the StableHLO that it was made of.

    The conversion to HLO leaves them as shape inference finds them, transposed for the result of a transpose.
    """
    message = HloModuleProto.FromString(proto)
    entry = message.host_program_shape
    asked = _asked(program) if _ATTRIBUTE.encode() in program else ((), ())
    for shapes, modes in zip((entry.parameters, [entry.result]), asked, strict=True):
        leaves = [leaf for shape in shapes for leaf in _arrays(shape)]
        given = [*modes, *[""] * (len(leaves) - len(modes))]
        for leaf, mode in zip(leaves, given, strict=True):
            order = _ORDER.match(mode)
            rank = len(leaf.dimensions)
            wanted = [int(n) for n in order[1].split(",") if n] if order else range(rank)[::-1]
            leaf.layout.minor_to_major[:] = wanted
    return message.SerializeToString()


def _arrays(shape: ShapeProto) -> Iterator[Any]:
    if shape.tuple_shapes:
        for part in shape.tuple_shapes:
            yield from _arrays(part)
    elif shape.HasField("layout"):
        yield shape


def _asked(program: bytes) -> tuple[Sequence[str], Sequence[str]]:
    """The attribute of each parameter and result; empty where there is none."""
    from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

    module = formats.load(program).module
    function = next(op for op in module.walk() if _is_main(op))
    found: list[list[str]] = []
    for name in ("arg_attrs", "res_attrs"):
        attributes = function.properties.get(name) or function.attributes.get(name)
        modes: list[str] = []
        entries: Sequence[Attribute] = ()
        if isinstance(attributes, ArrayAttr):
            entries = cast("ArrayAttr[Attribute]", attributes).data
        for entry in entries:
            mode = entry.data.get(_ATTRIBUTE) if isinstance(entry, DictionaryAttr) else None
            modes.append(mode.data if isinstance(mode, StringAttr) else "")
        found.append(modes)
    return found[0], found[1]


def _is_main(op: Any) -> bool:
    name = op.properties.get("sym_name") or op.attributes.get("sym_name")
    return op.name == "func.func" and getattr(name, "data", None) == "main"
