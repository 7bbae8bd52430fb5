"""`tpu`: where a kernel runs, promises, random numbers, marks and messages."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.dialects.tpu.attributes import TiledLayoutAttr
from mlirhlo.dialects.tpu.values import SCRATCH
from mlirhlo.mosaic.attributes import integer_of, name_of, string_of
from mlirhlo.mosaic.interpreter.memory import MemRef, dtype_in, memory_space, shape_of
from mlirhlo.mosaic.interpreter.problems import fault
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


@means("tpu.iteration_bound")
def iteration_bound(op: Operation, scope: Scope) -> Run:
    """The size of a dimension of the grid."""
    dim = integer_of(op, "dim")

    def run(frame: Activation) -> Any:
        if dim >= len(frame.core.bounds):
            raise fault(f"the grid has no dimension {dim}")
        return np.int32(frame.core.bounds[dim])

    return run


@means("tpu.device_id")
def device_id(op: Operation, scope: Scope) -> Run:
    """The logical number of the device."""
    return lambda frame: np.int32(frame.core.options.device + frame.core.device)


@means("tpu.core_id", "tpu.subcore_id", "llo.core_index")
def core_id(op: Operation, scope: Scope) -> Run:
    """The number of the core on its device; a TensorCore has one subcore."""
    is_core = name_of(op) != "tpu.subcore_id"
    return lambda frame: np.int32(frame.core.number if is_core else 0)


@means("tpu.assume_multiple")
def assume_multiple(op: Operation, scope: Scope) -> Run:
    """The value. Raises `HloError` HLO0702 when it breaks its promise."""
    multiple = integer_of(op, "multiple", 1)

    def run(frame: Activation, value: Any) -> Any:
        if int(value) % multiple:
            raise fault(
                f"{int(value)} is promised to be a multiple of {multiple}",
                "give pl.multiple_of a number that divides the index",
            )
        return value

    return run


@means("tpu.log_buffer")
def log_buffer(op: Operation, scope: Scope) -> Run:
    """Writes the tag with what the memory holds."""
    tag = string_of(op, "tag") or ""

    def run(frame: Activation, ref: MemRef) -> Any:
        frame.core.options.log(f"{tag}{np.array2string(ref.array)}")
        return ()

    return run


@means("tpu.delay", "tpu.trace_start", "tpu.trace_stop", "tpu.barrier")
def nothing(op: Operation, scope: Scope) -> Run:
    """Nothing that shows in a result."""
    return lambda frame, *operands: ()


@means("tpu.log")
def log(op: Operation, scope: Scope) -> Run:
    """Writes the tag with the values behind it, or where it says `$0`, `$1`, …."""
    tag, formatted = string_of(op, "tag") or "", integer_of(op, "formatted")

    def run(frame: Activation, *values: Any) -> Any:
        text = tag
        if formatted:
            # From the last one, so that $1 is not found in $10.
            for number, value in reversed(list(enumerate(values))):
                text = text.replace(f"${number}", str(value))
        else:
            text = " ".join([tag, *(str(value) for value in values)])
        frame.core.options.log(text)
        return ()

    return run


@means("tpu.trace_value")
def trace_value(op: Operation, scope: Scope) -> Run:
    """Writes the label and the value."""
    label = string_of(op, "label") or ""

    def run(frame: Activation, value: Any) -> Any:
        frame.core.options.log(f"{label} {value}")
        return ()

    return run


@means("tpu.prng_set_seed_32")
def prng_set_seed(op: Operation, scope: Scope) -> Run:
    """Starts the generator with these numbers."""

    def run(frame: Activation, *seeds: Any) -> Any:
        frame.core.set_seed(tuple(int(seed) for seed in seeds))
        return ()

    return run


@means("tpu.prng_random_bits")
def prng_random_bits(op: Operation, scope: Scope) -> Run:
    """Random words. The hardware's sequence is not specified; ours depends on the seed alone."""
    shape = shape_of(op.results[0].type)
    return lambda frame: frame.core.random_bits(shape)


@means("tpu.internal_scratch")
def internal_scratch(op: Operation, scope: Scope) -> Run:
    """Memory behind the kernel's own, as large as the call's configuration says.

    The compiler has some for itself, which it lays out at once.
    """
    type_ = op.results[0].type
    shape, dtype = shape_of(type_), dtype_in(type_)
    layout: Any = getattr(type_, "layout", None)
    is_compilers = shape == SCRATCH and isinstance(layout, TiledLayoutAttr)

    def run(frame: Activation) -> Any:
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        whole = np.full(size, 0xA5, np.uint8) if is_compilers else frame.core.internal_scratch
        if size > whole.size:
            raise fault(
                f"internal scratch of {size} bytes; the call has {whole.size}",
                "raise internal_scratch_in_bytes",
            )
        return MemRef(whole[:size].view(dtype).reshape(shape), memory_space(type_))

    return run
