"""A program as a front end hands it out, whatever its form, as a module of the hlo dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirhlo import Module

_BYTECODE = b"ML\xefR"
_MLIR = re.compile(r"^\s*(module\b|#\w+\s*=|func\.func\b|\"?builtin\.module)", re.MULTILINE)


def module_of(ir: str | bytes, name: str = "<program>") -> Module:
    """The module that `ir` holds: HLO text or proto, StableHLO text, bytecode or artifact.

    StableHLO is converted. Raises `HloError` as the readers and the conversion do.
    """
    from mlirhlo import Module
    from mlirhlo.formats import load

    if isinstance(ir, bytes) and ir.startswith(_BYTECODE):
        from mlirhlo.formats.vhlo import deserialize_artifact
        from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

        return Module(convert_to_hlo(deserialize_artifact(ir)))
    if isinstance(ir, str):
        if not ir.lstrip().startswith("HloModule") and _MLIR.search(ir):
            from mlirhlo.formats.stablehlo import parse_module
            from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

            return Module(convert_to_hlo(parse_module(ir, name)))
        ir = ir.encode("utf-8", "surrogateescape")
    loaded = load(ir, name=name)
    return Module(loaded.module, loaded)
