"""`fill-constants`: constants that a text leaves out get made-up values."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp.fake_data import fill_constants
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class FillConstantsPass(HloPass):
    """Gives constants whose values the text leaves out made-up ones, so that the module runs.

    Before and after:

        %c = s32[4] constant({...})                              =>   %c = s32[4] constant({1, 0, 1, 1})
        %g = f32[4,2] gather(f32[2,2] %x, %c), …                      %g = f32[4,2] gather(f32[2,2] %x, %c), …

    XLA leaves constants of more than ten elements out of its text dumps, and its own tools read them as
    arbitrary values. The values are those of fake inputs: small floats, integers of the whole type,
    but indices stay inside what they index, initial values of reductions are their identities, sort
    keys differ. What the module computes is made up, too: for shapes, speed, memory, and
    comparisons of passes and platforms with each other.

    Source: `HloParser`, which reads `{...}` as values of its own making.
    """

    name = "fill-constants"

    seed: int = 42
    """Of the values."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Fills; whether there was anything left out."""
        del trace

        return bool(fill_constants(module, self.seed))
