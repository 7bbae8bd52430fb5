"""Instructions that one routine computes as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.random import RngBitGeneratorOp
from mlirhlo.dialects.hlo.table import ANNOTATIONS
from mlirhlo.dialects.structured import LibraryOp, RandomBitsOp
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    no_form,
    parts_of,
    tensor,
)


@converts("rng-bit-generator")
def convert_random_bits(kernel: Kernel, op: RngBitGeneratorOp) -> Sequence[SSAValue]:
    """Bits in logical order; the state may be left out of the result."""
    parts = parts_of(op.shape)
    bits = parts[-1]
    state = kernel.row_major(op.operand)
    made = RandomBitsOp(state, op.algorithm, tensor(bits.element_type, bits.dimensions))
    results = list(kernel.add(made))
    results[-1] = kernel.laid_out(results[-1], bits)
    return results[-len(parts) :]


@converts(
    "batch-norm-grad",
    "batch-norm-inference",
    "batch-norm-training",
    "cholesky",
    "custom-call",
    "fft",
    "triangular-solve",
)
def convert_routine(kernel: Kernel, op: Instruction) -> Sequence[SSAValue]:
    """A routine on arrays whose logical dimensions are in order."""
    if op.called_computations:
        raise no_form(op, "it calls a computation")
    inputs = [
        kernel.row_major(value) if len(kernel.values[value]) == 1 else None for value in op.inputs
    ]
    if op.has_side_effect or None in inputs:
        raise no_form(op, "it has side effects or reads tuples")
    settings = {
        key: value
        for key, value in op.properties.items()
        if key not in ANNOTATIONS or (key == "backend_config" and op.opcode.name == "custom-call")
    }
    parts = parts_of(op.shape)
    made = LibraryOp(
        op.opcode.name,
        [value for value in inputs if value is not None],
        settings,
        [tensor(part.element_type, part.dimensions) for part in parts],
    )
    return [
        kernel.laid_out(value, part) for value, part in zip(kernel.add(made), parts, strict=True)
    ]
