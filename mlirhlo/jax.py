"""JAX's programs, run and rewritten here; needs JAX (`pip install 'mlirhlo[jax]'`).

    >>> from mlirhlo.jax import capture, jit, register_pass
    >>> jit(lambda x: x * 2)(3.0)
    array(6., dtype=float32)

`docs/integrations.md` shows all of it. Importing this module without JAX raises `HloError` HLO0600.
"""

from __future__ import annotations

from mlirhlo.integrations.computation import XlaComputation
from mlirhlo.integrations.jax.compiled import Compiled, Lowered, MemoryStats, Traced
from mlirhlo.integrations.jax.functions import JittedFunction, jit
from mlirhlo.integrations.jax.hook import PassRun, PassWarning
from mlirhlo.integrations.jax.stages import Capture, PassStage, capture
from mlirhlo.integrations.jax.transforms import RegisteredPass, register_pass, registered_passes
from mlirhlo.integrations.optional import require

require("jax", "jax", "mlirhlo.jax")

__all__ = [
    "Capture",
    "Compiled",
    "JittedFunction",
    "Lowered",
    "MemoryStats",
    "PassRun",
    "PassStage",
    "PassWarning",
    "RegisteredPass",
    "Traced",
    "XlaComputation",
    "capture",
    "jit",
    "register_pass",
    "registered_passes",
]
