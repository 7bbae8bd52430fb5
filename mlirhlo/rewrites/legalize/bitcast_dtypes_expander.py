"""`bitcast_dtypes_expander`: bitcast-convert between widths by shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.ops import BitcastConvertOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_in_place
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@rule(BitcastConvertOp)
def bitcast_convert_to_narrow(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(x), narrower => convert(x >> 0, w, 2 w, …), w the narrow width"""
    operand, result = array(op.inputs[0]), array(op)
    if not _is_known(operand, result) or operand.element_type.bits <= result.element_type.bits:
        return
    wide = PRIMITIVE_TYPES[f"u{operand.element_type.bits}"]
    bits = result.element_type.bits
    narrow = PRIMITIVE_TYPES[f"u{bits}"]

    def build(graph: Graph, value: Value) -> Value:
        sizes = result.dimensions
        spread = value.broadcast_in_dim(sizes, range(value.rank)).bitcast_convert(wide)
        shifts = graph.scalar(wide, bits) * graph.iota(wide, sizes, len(sizes) - 1)
        kept = (spread >> shifts) & ((1 << bits) - 1)
        return kept.convert(narrow).bitcast_convert(result.element_type)

    expand_in_place(op, rewriter, build)


@rule(BitcastConvertOp)
def bitcast_convert_to_wide(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(x), wider => reduce_or(convert(x) << 0, w, 2 w, …), w the narrow width"""
    operand, result = array(op.inputs[0]), array(op)
    if not _is_known(operand, result) or operand.element_type.bits >= result.element_type.bits:
        return
    wide = PRIMITIVE_TYPES[f"u{result.element_type.bits}"]
    bits = operand.element_type.bits
    narrow = PRIMITIVE_TYPES[f"u{bits}"]

    def build(graph: Graph, value: Value) -> Value:
        own = value.bitcast_convert(narrow).convert(wide)
        shifts = graph.scalar(wide, bits) * graph.iota(wide, own.sizes, own.rank - 1)
        joined = (own << shifts).reduce("or", (own.rank - 1,))
        return joined.bitcast_convert(result.element_type)

    expand_in_place(op, rewriter, build)


def _is_known(*shapes: ArrayShape) -> bool:
    """Whether the types are as wide as some unsigned integer, and no size changes."""
    return not any(
        s.is_dynamic
        or s.element_type.kind not in (Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT)
        or f"u{s.element_type.bits}" not in PRIMITIVE_TYPES
        for s in shapes
    )


@dataclass(frozen=True)
class BitcastDtypesExpanderPass(ExpanderPass):
    """Writes bitcast-convert between types of different widths by shifts and masks.

    Before and after:

        %b = u32[2,2] bitcast-convert(u64[2] %x)
          =>   %b = u32[2,2] convert(and(shift-right-logical(broadcast(%x), 32 * iota), 4294967295))

    Between types of one width it stays. The first element is the low bits. Complex numbers stay, having no
    integer of their width. Source: XLA's pass.
    """

    name = "bitcast_dtypes_expander"
    rules: ClassVar[tuple[Rule, ...]] = (bitcast_convert_to_narrow, bitcast_convert_to_wide)
