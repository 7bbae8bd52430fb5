"""What xDSL's own tools see of mlirhlo: the `xdsl.universe` entry point of `xdsl-opt` and `xdsl-gui`.

Each entry is a function that imports when called, so that starting xDSL's tools stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import XDSL_UNIVERSE, Universe

from mlirhlo.rewrites.registry import PassInfo, list_passes

_OWN: Mapping[str, str] = {
    "hlo": "hlo:HLO",
    "stablehlo": "stablehlo:STABLEHLO",
    "chlo": "chlo:CHLO",
    "quant": "stablehlo:QUANT",
    "sdy": "sdy:SDY",
    "tpu": "tpu:TPU",
    "mosaic_tc": "tpu:MOSAIC_TC",
    "structured": "structured:STRUCTURED",
    "amx": "amx:AMX",
    "mlirhlo": "x86:X86",
    "x86vector": "x86vector:X86Vector",
}
"""Dialects by name, as `module:dialect`; of those that this xDSL has itself, xDSL's is taken."""

_HLO = ("mlirhlo.analysis.within_xdsl:register_hlo",)
_STABLEHLO = (
    "mlirhlo.analysis.within_xdsl:register_stablehlo",
    "mlirhlo.formats.stablehlo.within_xdsl:register",
)
_OFFERED: Mapping[str, tuple[str, ...]] = {"hlo": _HLO, "stablehlo": _STABLEHLO, "chlo": _STABLEHLO}
"""What packages above the dialects offer them: constraints, and readers of pretty forms."""

_EXTENDED: Mapping[str, str] = {
    "arith": "arith:Arith",
    "gpu": "gpu:GPU",
    "llvm": "llvm:LLVM",
    "memref": "memref:MemRef",
    "vector": "vector:Vector",
}
"""xDSL's dialects with the ops and forms of MLIR that they lack, which stand in place of xDSL's."""


def _dialect(target: str) -> Callable[[], Dialect]:
    module, _, name = target.partition(":")

    def factory() -> Dialect:
        for offered in _OFFERED.get(module, ()):
            source, _, register = offered.partition(":")
            getattr(import_module(source), register)()
        found: Dialect = getattr(import_module(f"mlirhlo.dialects.{module}"), name)
        return found

    return factory


def _dialects() -> dict[str, Callable[[], Dialect]]:
    """Our dialects by name. Two universes with one name are an error, so xDSL's gives up the extended ones."""
    for name in _EXTENDED:
        XDSL_UNIVERSE.all_dialects.pop(name, None)
    ours = {name: target for name, target in _OWN.items() if name not in get_all_dialects()}
    return {name: _dialect(target) for name, target in {**ours, **_EXTENDED}.items()}


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
