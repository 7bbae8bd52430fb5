"""custom-call: meanings by target, in a registry that anyone may add to.

`register_custom_call("My.Kernel", function)` gives a target its meaning for the whole process;
`Machine(custom_calls={…})` for one machine. `options_of(op)` reads the call's `backend_config`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.interp.registry import Array, Frame, Meaning, Program, Run, Value, prepares
from mlirhlo.interp.values import describe

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

__all__ = [
    "CUSTOM_CALLS",
    "LATE_CUSTOM_CALLS",
    "computes",
    "meaning_of",
    "options_of",
    "register_custom_call",
    "unfit",
]

F = TypeVar("F", bound=Callable[..., Any])

CUSTOM_CALLS: dict[str, Meaning] = {}
"""Meaning of every known custom-call target."""

_PYTHON_CALLBACKS = (
    "xla_python",
    "xla_ffi_python",
    "xla_ffi_partitioned_python",
    "xla_buffer_python",
)
"""Beginnings of the targets that hold a pointer into the process that compiled the module."""


_KERNELS: Mapping[str, str] = {
    **dict.fromkeys(
        ("triton_kernel_call", "triton_kernel_call_ffi"),
        "a kernel that Triton compiled for one kind of GPU, in an opaque message",
    ),
    **dict.fromkeys(
        ("__gpu$xla.gpu.triton", "xla.gpu.triton"), "a kernel written in Triton's own MLIR dialect"
    ),
    "mosaic_gpu": "a Mosaic kernel for NVIDIA GPUs, of a JAX before mosaic_gpu_v2",
}
"""What targets run whose meaning is a program for a device."""


LATE_CUSTOM_CALLS: dict[str, str] = {
    "mosaic_gpu_v2": "mlirhlo.mosaic.gpu.custom_call:mosaic_gpu_call",
    "tpu_custom_call": "mlirhlo.mosaic.custom_call:tpu_custom_call",
}
"""Meanings that rooms above this one give, as `module:function`; imported at the first call."""


def register_custom_call(target: str, function: Meaning) -> None:
    """Gives `target` its meaning: `function(op, inputs, frame)` returns the result.

    `inputs` are numpy arrays in logical order (tuples of them for tuples); the result has to fit
    `op.shape`. `options_of(op)` decodes the `backend_config`. A second registration replaces the
    first.
    """
    CUSTOM_CALLS[target] = function


def computes(*targets: str) -> Callable[[F], F]:
    """Decorator: `register_custom_call` for several targets."""

    def register(function: F) -> F:
        for target in targets:
            register_custom_call(target, function)
        return function

    return register


def meaning_of(target: str) -> Meaning | None:
    """The meaning of a target for the whole process; None when nobody has given it one."""
    found = CUSTOM_CALLS.get(target)
    if found is None and target in LATE_CUSTOM_CALLS:
        module, _, function = LATE_CUSTOM_CALLS[target].partition(":")
        found = CUSTOM_CALLS[target] = getattr(import_module(module), function)
    return found


def unfit(op: CustomCallOp, problem: str) -> HloError:
    """The error for a call of a known target whose options or operands have no meaning here."""
    return error(
        "HLO0355",
        f"custom-call %{op.instruction_name} ({op.custom_call_target}): {problem}",
        help="run the module from before the pass that made the call, or register a meaning for it",
    )


def _unknown(op: CustomCallOp) -> HloError:
    target = op.custom_call_target
    help_ = (
        "give it a meaning with mlirhlo.interp.custom_calls.register_custom_call, or run the module "
        "from before the pass that made the call"
    )
    message = f"custom-call %{op.instruction_name}: the target {target!r} has no meaning here"
    kind = _KERNELS.get(target)
    if kind is not None:
        message += f"; it runs {kind}"
        help_ = (
            "give the kernel a meaning in numpy with mlirhlo.interp.custom_calls.register_custom_call, or "
            "make the program without it (for Pallas, pallas_call(..., interpret=True))"
        )
    if target.startswith(_PYTHON_CALLBACKS):
        message += "; it calls into the Python process that compiled the module"
        help_ = "remove the callback (jax.pure_callback, jax.debug.print, …) from the program"
    return HloError(Diagnostic("HLO0350", message, help=help_))


@prepares("custom-call")
def custom_call(op: CustomCallOp, program: Program) -> Run:
    """What the target computes. Raises `HloError` HLO0350 when nobody has said what that is."""
    target = op.custom_call_target

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        meaning = frame.machine.custom_calls.get(target) or meaning_of(target)
        if meaning is None:
            raise _unknown(op)
        value: Any = meaning(op, inputs, frame)
        if not isinstance(value, Generator) and not _fits(value, op.shape):
            raise unfit(op, f"it gives {describe(value)}, which is not {op.shape}")
        return cast(Value, value)

    return run


def _fits(value: Any, shape: Shape) -> bool:
    """Whether a value has the structure, the element types and the sizes of a shape."""
    if isinstance(value, tuple) or isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or not isinstance(shape, TupleShape):
            return False
        values = cast("tuple[Any, ...]", value)
        return len(values) == len(shape.elements) and all(map(_fits, values, shape.elements))
    if not isinstance(shape, ArrayShape) or not isinstance(value, (np.ndarray, np.generic)):
        return True
    array = cast(Array, value)
    return array.dtype == shape.element_type.dtype and (
        shape.is_dynamic or array.shape == shape.dimensions
    )
