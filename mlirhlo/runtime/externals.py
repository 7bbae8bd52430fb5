"""Addresses of what generated code calls outside of itself."""

from __future__ import annotations

import re

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE
from mlirhlo.lowering import routines
from mlirhlo.runtime import calls, threads

with LATE:
    from mlirhlo.runtime import callbacks, checked, mpi


_OURS = re.compile(r"@(mlirhlo_\w+)\(")


def externals(text: str) -> dict[str, int]:
    """By symbol, for all that LLVM assembly calls. Raises `HloError` HLO0434 for what is not there."""
    found = threads.externals(text) | calls.externals(text)
    others = set(_OURS.findall(text)) - found.keys()
    of_libraries = [s for s in others if s.startswith((routines.LAPACK, routines.FFT))]
    if of_libraries:
        threads.limit_libraries()
    for symbol in of_libraries:
        address = routines.address(symbol)
        if address is None:
            raise error("HLO0434", f"compiled code needs {symbol}, which this NumPy does not have")
        found[symbol] = address
    if others - found.keys():
        # What calls into Python, or meets other devices; few modules do.

        found |= callbacks.externals(text) | checked.externals(text) | mpi.externals(text)
    return found
