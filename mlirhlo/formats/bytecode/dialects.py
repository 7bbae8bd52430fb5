"""The dialects that bytecode is read with and the codecs of those that have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation

from mlirhlo.dialects.chlo import attributes as chlo
from mlirhlo.dialects.hlo import HLO
from mlirhlo.formats.bytecode.codec import Codec
from mlirhlo.formats.stablehlo.contexts import context
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats.bytecode import builtin_codec, sdy_codec, stablehlo_codec


if TYPE_CHECKING:
    from xdsl.context import Context


def new_context() -> Context:
    """A context with our dialects and xDSL's that takes what neither knows."""
    found = context().clone()
    found.allow_unregistered = True
    if "hlo" not in found.registered_dialect_names:
        found.register_dialect("hlo", lambda: HLO)
    return found


@cache
def default_codecs() -> Mapping[str, Codec]:
    """Codecs by dialect."""
    # The vhlo room stands on this one, so that it is named here and not imported.
    vhlo: Codec = import_module("mlirhlo.formats.vhlo.codec").VhloCodec()
    return {
        "builtin": builtin_codec.BuiltinCodec(),
        "chlo": stablehlo_codec.ChloCodec(chlo.ComparisonDirectionAttr, chlo.ComparisonTypeAttr),
        "sdy": sdy_codec.SdyCodec(),
        "stablehlo": stablehlo_codec.StablehloCodec(),
        "vhlo": vhlo,
    }


@lru_cache(maxsize=4096)
def _unregistered(name: str) -> type[Operation]:
    """The class of operations of that name; one for all files, since classes are never freed."""
    return UnregisteredOp.with_name(name)


def op_classes(context: Context) -> Callable[[str], type[Operation]]:
    """The class of an operation by name; unregistered ones get one of their own."""
    registered = context.clone()
    registered.allow_unregistered = False

    def lookup(name: str) -> type[Operation]:
        return registered.get_optional_op(name) or _unregistered(name)

    return lookup
