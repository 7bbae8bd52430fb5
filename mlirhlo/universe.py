"""What xDSL's own tools see of mlirhlo: the `xdsl.universe` entry point of `xdsl-opt` and `xdsl-gui`."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe


def _hlo() -> Dialect:
    from mlirhlo.dialects.hlo import HLO

    return HLO


UNIVERSE = Universe(all_dialects={"hlo": _hlo})
"""Each entry is a function that imports when called, so that starting xDSL's tools stays quick."""
