"""Structured attributes of the hlo dialect."""

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonorsAttr,
    InputOutputAliasesAttr,
    OutputOperandAliasesAttr,
)
from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributesAttr,
    MetadataAttr,
    OriginAttr,
    ResultAccuracyAttr,
    StatisticsAttr,
)
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbersAttr,
    PaddingAttr,
    SliceAttr,
    SparsityConfigAttr,
    WindowAttr,
)
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.header import (
    BooleansAttr,
    ProgramLayoutAttr,
    RawTextAttr,
    StackFramesAttr,
)
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.literal import LiteralAttr
from mlirhlo.dialects.hlo.types import BufferType, LayoutAttr, OpaqueType, TokenType

ATTRIBUTES: list[type[Attribute]] = [
    BooleansAttr,
    BufferDonorsAttr,
    BufferType,
    ConvolutionDimensionNumbersAttr,
    FrontendAttributesAttr,
    InputOutputAliasesAttr,
    LayoutAttr,
    LiteralAttr,
    MetadataAttr,
    OpaqueType,
    OriginAttr,
    OutputOperandAliasesAttr,
    PaddingAttr,
    ProgramLayoutAttr,
    RawTextAttr,
    ReplicaGroupsAttr,
    ResultAccuracyAttr,
    ShardingAttr,
    SliceAttr,
    SparsityConfigAttr,
    StackFramesAttr,
    StatisticsAttr,
    TokenType,
    WindowAttr,
    kinds.DomainAttr,
    kinds.IntegerListsAttr,
]
"""Every attribute and type class of the dialect."""
