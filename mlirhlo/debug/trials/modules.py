"""Modules of texts, held against the verifier, with arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import HloError
from mlirhlo.formats import load
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import verifier
    from mlirhlo.interp import fake_data
    from mlirhlo.rewrites import stablehlo_to_hlo


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def load_module(text: str, name: str) -> ModuleOp:
    """The module of a text; StableHLO programs as HLO. Raises `HloError`."""
    module = load(text.encode("utf-8", "surrogateescape"), name=name).module
    if any(op.name == "func.func" for op in module.ops):
        return stablehlo_to_hlo.convert_to_hlo(module, with_device_counts=True)
    return module


def verify(module: ModuleOp, name: str) -> None:
    """Raises `HloError` with what the verifier says."""
    if problems := verifier.verify_module(module, file=name):
        raise HloError(*problems)


def fake_arguments(module: ModuleOp, seed: int, *, large: bool = False) -> list[Any]:
    """Made-up arguments of the entry."""
    return fake_data.make_fake_arguments(module, seed, large)
