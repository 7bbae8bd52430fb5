"""`hlo-verifier`: the verifier as a pass."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class HloVerifierPass(HloPass):
    """Checks the module, and stops the pipeline when it is not sound.

    Before and after:

        %s = f32[4] add(%a, %b)  with %b of f32[5]      =>   error[HLO0102]

    Nothing is changed. Every constraint that is broken is reported, with its place.
    Source: reference of the passes, "HloVerifier".
    """

    name = "hlo-verifier"

    layout_sensitive: bool = False
    """Holds layouts of values that are passed through, as after layout assignment."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """False. Raises `HloError` with all that is wrong."""
        del trace
        problems = verify_module(module.op, layout_sensitive=self.layout_sensitive)
        if problems:
            raise HloError(*problems)
        return False
