"""What VHLO says with an attribute of its own and StableHLO with a plain one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.stablehlo.structs import EnumAttr, numbered


@irdl_attr_definition
class ApiVersionAttr(EnumAttr):
    """`#vhlo<api_version API_VERSION_TYPED_FFI>`; in StableHLO an `i32`."""

    name = "vhlo.api_version"
    cases: ClassVar[Mapping[str, int]] = numbered(
        "API_VERSION_UNSPECIFIED",
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    )
