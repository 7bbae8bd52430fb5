"""Addresses of what generated code calls outside of itself."""

from __future__ import annotations

import re

from mlirhlo.diagnostics import error
from mlirhlo.lowering import routines
from mlirhlo.runtime import callbacks, checked, threads

_ROUTINE = re.compile(rf"@((?:{routines.LAPACK}|{routines.FFT})\w+)\(")


def externals(text: str) -> dict[str, int]:
    """By symbol, for all that LLVM assembly calls. Raises `HloError` HLO0434 for what is not there."""
    found = {**threads.externals(text), **callbacks.externals(text), **checked.externals(text)}
    for symbol in set(_ROUTINE.findall(text)):
        address = routines.address(symbol)
        if address is None:
            raise error("HLO0434", f"compiled code needs {symbol}, which this NumPy does not have")
        found[symbol] = address
    return found
