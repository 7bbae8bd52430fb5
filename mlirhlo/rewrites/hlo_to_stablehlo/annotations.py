"""What any instruction may carry: shardings, frontend attributes, layouts."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DictionaryAttr, IndexType, TensorType
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.stablehlo.elements import dense
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, SHAPE_ATTRIBUTE, own_attributes
from mlirhlo.rewrites.hlo_to_stablehlo.types import has_own_layout

SHARDING = "mhlo.sharding"
FRONTEND = "mhlo.frontend_attributes"
_OWN_CONFIG = frozenset({"custom-call"})
"""Opcodes whose StableHLO op has a `backend_config` of its own."""

__all__ = ["DenseIntOrFPElementsAttr", "common_attributes", "frontend_dictionary", "order_of"]


def common_attributes(op: Instruction) -> dict[str, Attribute]:
    """Discardable attributes of the op of an instruction."""
    properties = op.properties
    found: dict[str, Attribute] = {}
    if "sharding" in properties:
        found[SHARDING] = string(str(op.sharding))
    if "frontend_attributes" in properties and op.frontend_attributes is not None:
        found[FRONTEND] = frontend_dictionary(op.frontend_attributes)
    shape = op.shape
    if isinstance(shape, ArrayShape) and has_own_layout(shape):
        assert shape.layout is not None
        found["result_layout"] = order_of(shape.layout.minor_to_major)
        found[SHAPE_ATTRIBUTE] = string(str(shape))
    if op.opcode.name not in _OWN_CONFIG and (own := own_attributes(op)):
        found[MARK] = DictionaryAttr(own)
    return found


def frontend_dictionary(value: FrontendAttributes) -> DictionaryAttr:
    """Frontend attributes as a dictionary of strings."""
    return DictionaryAttr({key: string(text) for key, text in value.entries})


def order_of(minor_to_major: tuple[int, ...]) -> Attribute:
    """`dense<[1, 0]> : tensor<2xindex>`."""
    import numpy as np

    type_: TensorType[Attribute] = TensorType(IndexType(), [len(minor_to_major)])
    return dense(np.array(minor_to_major, np.int64), type_)
