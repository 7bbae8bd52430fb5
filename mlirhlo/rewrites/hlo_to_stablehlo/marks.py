"""Marks: what an op of StableHLO was in HLO, where that cannot be said otherwise.

A mark is a dictionary `mlirhlo.hlo` on the op: attributes of the instruction that StableHLO lacks,
spelled as in HLO text, and under `opcode` the instruction's opcode where the op is not what HLO
would make of it. An instruction that no op can stand for is a custom call of the target
`mlirhlo.hlo.<opcode>`, whose operands and results are the leaves of the instruction's; its mark is
its `backend_config` and also says `operands` and `shape`, the shapes with all tuples and layouts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape

MARK = "mlirhlo.hlo"
"""Attribute with a mark."""
TARGET_PREFIX = "mlirhlo.hlo."
"""Custom calls of these targets stand for an instruction of the opcode that follows."""
OPCODE, OPERANDS, SHAPE = "opcode", "operands", "shape"
"""Keys of a mark that are no attributes of the instruction."""
SHAPE_ATTRIBUTE = "xla_shape"
"""Attribute with the shape of the instruction in HLO text; XLA's own."""

_ELSEWHERE = frozenset({"sharding", "frontend_attributes", "metadata", "result_accuracy"})
"""Common attributes that StableHLO programs carry in other ways."""


def own_attributes(op: Instruction, said: Collection[str] | None = None) -> dict[str, Attribute]:
    """Entries for the attributes of `op`, those in `said` left out.

    With `said` None, for none of the opcode's own but for the common ones (`backend_config`, …).
    """
    found: dict[str, Attribute] = {}
    properties = op.properties
    if said is None and "backend_config" not in properties and "statistics" not in properties:
        return found
    own = {a.key for a in op.opcode.attributes} if said is None else frozenset[str]()
    for key, spec in op.opcode.specs.items():
        value = properties.get(spec.property_name)
        if value is None or key in _ELSEWHERE or key in own or spec.kind.names_computations:
            continue
        if said is None or key not in said:
            found[key] = string(spec.kind.write(value))
    return found


def marked(op: Instruction, said: Collection[str] = ()) -> DictionaryAttr:
    """The mark of an op that stands for `op` and is not what HLO would make of it."""
    return DictionaryAttr({OPCODE: string(op.opcode.name), **own_attributes(op, said)})


def with_shapes(
    mark: Mapping[str, Attribute], operands: list[Shape], shape: Shape
) -> DictionaryAttr:
    """A mark that also says the shapes of operands and result."""
    spelled = ArrayAttr([string(str(s)) for s in operands])
    return DictionaryAttr({**mark, OPERANDS: spelled, SHAPE: string(str(shape))})
