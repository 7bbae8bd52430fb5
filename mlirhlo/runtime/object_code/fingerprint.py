"""What a module is, in words that are quickly found: equal for equal modules, and for no others.

Everything that any pass could read is in it, names and layouts, too, but not the module's own name, nor what
only says where code came from. Words of attributes are kept on them, as they never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.table import PROVENANCE
from mlirhlo.dialects.quick import ops_of

LARGEST_CONSTANT = 1 << 20
"""Bytes of a constant in a module that is worth keeping."""
_SOURCES_OF_MODULES = frozenset(("hlo.stack_frames", "hlo.proto_id", "hlo.proto_rest"))


class _Unknown(Exception):
    """There are no words for something, or too many."""


def fingerprint(module: ModuleOp) -> str | None:
    """Words of an HLO module; None for one with large or unknown constants, or ops of other dialects."""
    numbers: dict[SSAValue, int] = {}
    block = module.regions[0].first_block
    try:
        lines = [_attributes(module.attributes, _SOURCES_OF_MODULES)]
        for computation in () if block is None else ops_of(block):
            if type(computation) is not ComputationOp:
                return None
            lines.append(_attributes(computation.properties, PROVENANCE))
            lines += [_instruction(op, numbers) for op in ops_of(computation.block)]
    except _Unknown:
        return None
    return "\n".join(lines)


def _instruction(op: Operation, numbers: dict[SSAValue, int]) -> str:
    if op.regions:
        raise _Unknown
    operands = [numbers.setdefault(value, len(numbers)) for value in op._operands]  # pyright: ignore[reportPrivateUsage]
    line = f"{op.name}{operands}{_attributes(op.properties, PROVENANCE)}"
    if op.attributes:
        line += _attributes(op.attributes, PROVENANCE)
    for value in op.results:
        number = numbers.setdefault(value, len(numbers))
        line += f"{number}{value._name!r}{_words(value._type)}"  # pyright: ignore[reportPrivateUsage]
    return line


def _attributes(attributes: Mapping[str, Attribute], left_out: frozenset[str]) -> str:
    keys = sorted(left for left in attributes if left not in left_out)
    return f"{{{','.join([f'{key!r}{_words(attributes[key])}' for key in keys])}}}"


def _words(attribute: Attribute) -> str:
    words: str | None = attribute.__dict__.get("_hlo_words")
    if words is None:
        words = f"{attribute.name}({_content(attribute)})"
        object.__setattr__(attribute, "_hlo_words", words)
    return words


def _content(attribute: Attribute) -> str:
    if isinstance(attribute, ParametrizedAttribute):
        return ",".join(map(_words, attribute.parameters))
    data = cast("Data[Any]", attribute).data
    if isinstance(attribute, LiteralAttr):
        return _literal(data)
    if isinstance(attribute, TextAttr):
        return repr(str(data))  # from which it can be read again
    if data is None or isinstance(data, str | int | float | bytes):
        return repr(data)
    if isinstance(data, Enum):
        return repr(data.name)
    if isinstance(data, tuple):
        return ",".join(map(_words, cast("tuple[Attribute, ...]", data)))
    if isinstance(data, dict):
        return _attributes(cast("dict[str, Attribute]", data), frozenset())
    raise _Unknown


def _literal(literal: Literal) -> str:
    if literal.is_elided:
        raise _Unknown
    if isinstance(literal.shape, TupleShape):
        parts = "".join(map(_literal, literal.elements))
    elif len(literal.data) > LARGEST_CONSTANT:
        raise _Unknown
    else:
        parts = hashlib.sha256(literal.data).hexdigest()
    return f"[{literal.shape}{parts}]"
