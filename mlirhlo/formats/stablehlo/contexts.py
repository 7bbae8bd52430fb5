"""The dialects that programs are read with."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from mlirhlo.dialects.chlo import CHLO
from mlirhlo.dialects.stablehlo import QUANT, STABLEHLO
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects import check, mhlo, sdy


@cache
def context() -> Context:
    """A context with ours, Shardy's and xDSL's own dialects; loaded when first used."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(STABLEHLO)
    ctx.load_dialect(CHLO)
    ctx.load_dialect(QUANT)
    ours = {"builtin", "stablehlo", "chlo", "quant", "mhlo", "sdy", "check", "interpreter"}
    ctx.register_dialect("mhlo", _mhlo)
    ctx.register_dialect("sdy", _sdy)
    ctx.register_dialect("check", _check)
    ctx.register_dialect("interpreter", _interpreter)
    for name, factory in get_all_dialects().items():
        if name not in ours:
            ctx.register_dialect(name, factory)
    return ctx


def _mhlo() -> Dialect:
    return mhlo.MHLO


def _sdy() -> Dialect:
    return sdy.SDY


def _check() -> Dialect:
    return check.CHECK


def _interpreter() -> Dialect:
    return check.INTERPRETER
