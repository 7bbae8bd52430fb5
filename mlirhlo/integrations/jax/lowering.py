"""How JAX lowers a function that is executed here, and what JAX itself dumps of it."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from mlirhlo.integrations.optional import require

_PALLAS = "jax._src.pallas.pallas_call"


def lower(traced: Any, platform: str) -> Any:
    """A traced function, lowered by JAX for a platform; empty: for the CPU, and Pallas kernels as for a TPU.

    JAX has no rule for Pallas kernels on the CPU. Those of the TPU make Mosaic kernels, which the compiler
    here takes; the rest of the program keeps the CPU's rules. Kernels with `interpret=True` are lowered
    as JAX does.
    """
    # A program that calls kernels has imported what makes them, which takes its time.
    if platform or _PALLAS not in sys.modules:
        return traced.lower(lowering_platforms=(platform or "cpu",))
    return traced.lower(lowering_platforms=("cpu",), _private_parameters=_with_kernels())


@cache
def _with_kernels() -> Any:
    """JAX's parameters of a lowering in which kernels have a rule."""
    mlir = _internal("jax._src.interpreters.mlir")
    pallas = _internal(_PALLAS)

    def rule(ctx: Any, *operands: Any, interpret: Any, **params: Any) -> Any:
        if interpret:
            return pallas._pallas_call_lowering(ctx, *operands, interpret=interpret, **params)
        mosaic = _internal("jax._src.pallas.mosaic.pallas_call_registration")
        params.pop("backend", None)
        return mosaic.pallas_call_tpu_lowering_rule(ctx, *operands, interpret=interpret, **params)

    return mlir.LoweringParameters(override_lowering_rules=((pallas.pallas_call_p, rule),))


def dump_lowered(lowered: Any) -> None:
    """Writes what `JAX_DUMP_IR_TO` asks for when JAX compiles a program: the program."""
    mlir = _internal("jax._src.interpreters.mlir")
    mlir.dump_module_to_file(lowered.compiler_ir("stablehlo"), "compile")


def _internal(name: str) -> Any:
    return require(name, "jax", "mlirhlo.jax")
