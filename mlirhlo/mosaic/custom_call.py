"""What a `tpu_custom_call` in a program computes: its kernel, run in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import options_of, unfit
from mlirhlo.mosaic.decode import config_of, read_kernel
from mlirhlo.mosaic.interpreter import Kernel, Options

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp
    from mlirhlo.interp.registry import Frame, Value


@lru_cache(maxsize=64)
def _kernel(body: bytes, name: str, scratch: int) -> Kernel:
    return Kernel(read_kernel(body, f"<kernel {name}>"), scratch)


def tpu_custom_call(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The kernel's results.

    Raises `HloError` HLO0355 for operands and results that are no arrays, HLO0700 for a kernel that
    cannot be read or does not fit, HLO0701 to HLO0703 for what its operations cannot do.
    """
    name = op.instruction_name or "kernel"
    config = config_of(options_of(op), name)
    shape = op.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    arrays = [part for part in parts if isinstance(part, ArrayShape)]
    if len(arrays) != len(parts):
        raise unfit(op, f"a kernel cannot give {shape}")
    kernel = _kernel(config.body, name, config.internal_scratch_in_bytes)
    outputs = [(part.dimensions, part.element_type.dtype) for part in arrays]
    machine, aliases = frame.machine, aliases_of(op)
    device = machine.device(frame.replica, frame.partition)
    if config.has_communication and machine.device_count > 1:
        results = _run_together(op, kernel, inputs, outputs, aliases, frame)
    else:
        results = kernel.run(inputs, outputs, aliases=aliases, options=Options(device=device))
    return tuple(results) if isinstance(shape, TupleShape) else results[0]


def _run_together(
    op: CustomCallOp,
    kernel: Kernel,
    inputs: Sequence[Any],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
    aliases: Mapping[int, int],
    frame: Frame,
) -> Sequence[Any]:
    """The results of this device, of a kernel that sends to others: they meet, and the first runs it
    for all of them."""
    machine, name = frame.machine, f"kernel %{op.instruction_name}"
    device, everyone = machine.device(frame.replica, frame.partition), range(machine.device_count)

    def met(what: str, value: Any) -> Sequence[Any]:
        return machine.exchange(device, ("kernel", what, op), tuple(everyone), value, name)

    operands, found = met("operands", tuple(inputs)), None
    if device == 0:
        found = kernel.run_on(operands, outputs, aliases=aliases, options=Options())
    results: Sequence[Any] = met("results", found)[0][device]
    return results


def aliases_of(op: CustomCallOp) -> dict[int, int]:
    """By the number of a result, the operand whose memory it takes."""
    found: dict[int, int] = {}
    stated = op.output_to_operand_aliasing
    for alias in stated.entries if stated is not None else ():
        number = alias.output_index[0] if alias.output_index else 0
        found[number] = alias.operand_number
    return found
