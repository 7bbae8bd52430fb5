"""What xDSL's own tools see of mlirhlo: the `xdsl.universe` entry point of `xdsl-opt` and `xdsl-gui`.

Each entry is a function that imports when called, so that starting xDSL's tools stays quick.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from mlirhlo.rewrites.registry import PassInfo, list_passes


def _hlo() -> Dialect:
    from mlirhlo.dialects.hlo import HLO

    return HLO


def _stablehlo() -> Dialect:
    from mlirhlo.dialects.stablehlo import STABLEHLO

    return STABLEHLO


def _chlo() -> Dialect:
    from mlirhlo.dialects.chlo import CHLO

    return CHLO


def _quant() -> Dialect:
    from mlirhlo.dialects.stablehlo import QUANT

    return QUANT


def _sdy() -> Dialect:
    from mlirhlo.dialects.sdy import SDY

    return SDY


def _structured() -> Dialect:
    from mlirhlo.dialects.structured import STRUCTURED

    return STRUCTURED


def _dialects() -> dict[str, Callable[[], Dialect]]:
    """Our dialects by name, but for those that this xDSL has itself, where a clash is an error."""
    ours = {
        "hlo": _hlo,
        "stablehlo": _stablehlo,
        "chlo": _chlo,
        "quant": _quant,
        "sdy": _sdy,
        "structured": _structured,
    }
    taken = get_all_dialects()
    return {name: factory for name, factory in ours.items() if name not in taken}


def _under(name: str, info: PassInfo) -> Callable[[], type[ModulePass]]:
    def factory() -> type[ModulePass]:
        cls = info.factory()
        return cls if name == cls.name else type(cls.__name__, (cls,), {"name": name})

    return factory


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Our passes by name; those whose name is also one of xDSL's, where a clash is an error, get
    `hlo-` in front: `hlo-cse`, `hlo-dce`."""
    taken = get_all_passes()
    names = {name: f"hlo-{name}" if name in taken else name for name in list_passes()}
    return {names[name]: _under(names[name], info) for name, info in list_passes().items()}


UNIVERSE = Universe(all_dialects=_dialects(), all_passes=_passes())
"""The dialects and passes of this project."""
