"""The attributes of the chlo dialect."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.stablehlo.structs import EnumAttr, Ints, StructAttr, numbered


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttr):
    """`#chlo<comparison_direction LT>`."""

    name = "chlo.comparison_direction"
    cases = numbered("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttr):
    """`#chlo<comparison_type FLOAT>`."""

    name = "chlo.comparison_type"
    cases = numbered("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(EnumAttr):
    """`#chlo<precision HIGHEST>`."""

    name = "chlo.precision"
    cases = numbered("DEFAULT", "HIGH", "HIGHEST")


@dataclass(frozen=True, slots=True)
class RaggedDotDimensionNumbers:
    """Which dimensions of `ragged_dot` are batched, contracted, ragged, and which number groups."""

    lhs_batching_dimensions: Ints = ()
    rhs_batching_dimensions: Ints = ()
    lhs_contracting_dimensions: Ints = ()
    rhs_contracting_dimensions: Ints = ()
    lhs_ragged_dimensions: Ints = ()
    rhs_group_dimensions: Ints = ()


@irdl_attr_definition
class RaggedDotDimensionNumbersAttr(StructAttr[RaggedDotDimensionNumbers]):
    """`#chlo.ragged_dot<lhs_contracting_dimensions = [1], …>`."""

    name = "chlo.ragged_dot"
    value_class = RaggedDotDimensionNumbers


ATTRIBUTES: list[type[Attribute]] = [
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    PrecisionAttr,
    RaggedDotDimensionNumbersAttr,
]
"""The attributes of the chlo dialect."""
