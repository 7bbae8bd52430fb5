"""Callbacks of a program into Python: `jax.pure_callback`, `jax.debug.print` and their kin.

The program names a callback by its number among those that JAX keeps beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import error

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.machine import Machine
    from mlirhlo.interp.registry import Meaning

_TARGETS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


def machine_with(callbacks: Sequence[Callable[..., Any]]) -> Machine | None:
    """A device on which the program's callbacks have their meaning; None without callbacks."""
    if not callbacks:
        return None
    from mlirhlo.interp.machine import Machine

    return Machine(custom_calls=meanings(callbacks))


def meanings(callbacks: Sequence[Callable[..., Any]]) -> dict[str, Meaning]:
    """What the custom calls mean that name these callbacks by number."""
    return dict.fromkeys(_TARGETS, _meaning(callbacks))


def _meaning(callbacks: Sequence[Callable[..., Any]]) -> Meaning:
    def call(op: Instruction, inputs: Sequence[Any], frame: object) -> Any:
        """Raises `HloError` HLO0610 when the callback does, or there is none of the number."""
        from mlirhlo.interp.custom_calls.options import options_of

        number = int(options_of(op).get("index", -1))
        if not 0 <= number < len(callbacks):
            raise error("HLO0610", f"%{op.instruction_name}: there is no callback {number}")
        try:
            results: Any = callbacks[number](*inputs)
        except Exception as problem:  # whatever the user's function raises
            raise error(
                "HLO0610",
                f"%{op.instruction_name}: the callback raised {type(problem).__name__}: {problem}",
            ) from problem
        return _as_shaped(op, () if results is None else tuple(results))

    return call


def _as_shaped(op: Instruction, results: tuple[Any, ...]) -> Any:
    """Results as arrays of the types that the instruction declares."""
    import numpy as np

    from mlirhlo.dialects.hlo.shapes import TupleShape
    from mlirhlo.interp.values import value_from

    shape = op.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    what = f"result of the callback %{op.instruction_name}"
    values = tuple(
        value_from(np.asarray(value), part, what)
        for value, part in zip(results, parts, strict=True)
    )
    return values if isinstance(shape, TupleShape) else values[0]
