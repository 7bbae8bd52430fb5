"""HLO's protobuf messages: schema, codec to and from the hlo dialect, literals of snapshots.

    decode_module(proto)  -> ModuleOp
    encode_module(module) -> HloModuleProto

The names are loaded when first used, so that sniffing a file does not import the codec.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlirhlo.formats.proto.decode import decode_module
    from mlirhlo.formats.proto.encode import encode_module
    from mlirhlo.formats.proto.header import config_of
    from mlirhlo.formats.proto.literals import literal_to_numpy, numpy_to_literal

__all__ = ["config_of", "decode_module", "encode_module", "literal_to_numpy", "numpy_to_literal"]

_HOME = {
    "config_of": "header",
    "decode_module": "decode",
    "encode_module": "encode",
    "literal_to_numpy": "literals",
    "numpy_to_literal": "literals",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
