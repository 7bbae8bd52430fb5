"""Attributes of the `ptx` dialect: frozen values, in PTX syntax inside a string."""

from __future__ import annotations

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.ptx.declarations import (
    read_declaration,
    read_location,
    read_prototype,
    read_signature,
)
from mlirhlo.dialects.ptx.syntax import read_guard, read_operands
from mlirhlo.dialects.ptx.values import (
    Declaration,
    Guard,
    Operands,
    Prototype,
    Signature,
    SourceLocation,
)


@irdl_attr_definition
class OperandsAttr(TextAttr[Operands]):
    """`#ptx.operands<"%r1, [%rd2+4]">`."""

    name = "ptx.operands"
    read = read_operands


@irdl_attr_definition
class GuardAttr(TextAttr[Guard]):
    """`#ptx.guard<"@!%p1">`."""

    name = "ptx.guard"
    read = read_guard


@irdl_attr_definition
class DeclarationAttr(TextAttr[Declaration]):
    """`#ptx.declaration<".reg .b32 %r<10>;">`."""

    name = "ptx.declaration"
    read = read_declaration


@irdl_attr_definition
class SignatureAttr(TextAttr[Signature]):
    """`#ptx.signature<".visible .entry k (.param .u64 x)">`."""

    name = "ptx.signature"
    read = read_signature


@irdl_attr_definition
class PrototypeAttr(TextAttr[Prototype]):
    """`#ptx.prototype<".callprototype _ (.param .b64 _);">`."""

    name = "ptx.prototype"
    read = read_prototype


@irdl_attr_definition
class SourceLocationAttr(TextAttr[SourceLocation]):
    """`#ptx.source<".loc 1 14 0">`."""

    name = "ptx.source"
    read = read_location
