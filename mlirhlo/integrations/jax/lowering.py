"""How JAX lowers a function that is executed here, and what JAX itself dumps of it."""

from __future__ import annotations

from typing import Any

from mlirhlo.integrations.optional import require

_KERNELS = frozenset({"pallas_call", "core_map"})
"""Primitives that call a kernel written with Pallas."""


def lowering_platform_of(traced: Any) -> str:
    """The platform that JAX lowers a traced function for when the user names none.

    JAX lowers Pallas kernels to Mosaic, which the compiler here takes, for TPUs only; kernels with
    `interpret=True` are lowered anywhere.
    """
    return "tpu" if _calls_kernels(traced.jaxpr) else "cpu"


def _calls_kernels(jaxpr: Any) -> bool:
    core = require("jax.extend.core", "jax", "mlirhlo.jax")
    pending, seen = [jaxpr], set[int]()
    while pending:
        current = pending.pop()
        if isinstance(current, (tuple, list)):
            pending += current
        elif isinstance(current, core.ClosedJaxpr):
            pending.append(current.jaxpr)
        elif isinstance(current, core.Jaxpr) and id(current) not in seen:
            seen.add(id(current))
            for equation in current.eqns:
                if equation.primitive.name in _KERNELS and not equation.params.get("interpret"):
                    return True
                pending += equation.params.values()
    return False


def dump_lowered(lowered: Any) -> None:
    """Writes what `JAX_DUMP_IR_TO` asks for when JAX compiles a program: the program."""
    mlir = require("jax._src.interpreters.mlir", "jax", "mlirhlo.jax")
    mlir.dump_module_to_file(lowered.compiler_ir("stablehlo"), "compile")
