"""`tpu`: copies and semaphores. A copy is made when it is started."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.interpreter.memory import MemRef
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.problems import fault, stuck, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _parts(op: Operation, operands: Sequence[Any]) -> list[Any]:
    """One operand a segment, None for those left out."""
    sizes = integers_of(op, "operandSegmentSizes")
    if sizes is None:
        raise unfit(op, "operandSegmentSizes are missing")
    if sum(sizes) != len(operands):
        raise unfit(op, f"operandSegmentSizes {list(sizes)} of {len(operands)} operands")
    rest = iter(operands)
    return [next(rest) if size else None for size in sizes]


def _bytes(ref: MemRef) -> int:
    return ref.array.size * width_of(ref.dtype) // 8


def _amount(semaphore: MemRef, target: MemRef) -> int:
    """What the end of a copy adds: its bytes, or one to a semaphore that counts."""
    return 1 if semaphore.element == "tpu.semaphore" else _bytes(target)


def _add(semaphore: MemRef, amount: int) -> None:
    semaphore.array[...] += amount


def _take(semaphore: MemRef, amount: int, what: str) -> None:
    if semaphore.array.size != 1:
        raise fault(f"a wait for {semaphore.array.size} semaphores at once")
    value = int(semaphore.array.reshape(-1)[0])
    if value < amount:
        raise stuck(f"{what} needs {amount} of a semaphore that holds {value}: it waits forever")
    semaphore.array[...] -= amount


def _here(op: Operation, frame: Activation, device: Any, *cores: Any) -> None:
    """Refuses other devices and cores than the one that runs."""
    if device is not None and int(device) != frame.core.options.device:
        raise unfit(op, f"device {int(device)} is another one; one device is run at a time")
    for core in cores:
        if core is not None and int(core) != 0:
            raise unfit(op, f"core {int(core)} is another one; one core is run")


@means("tpu.enqueue_dma")
def enqueue_dma(op: Operation, scope: Scope) -> Run:
    """Copies at once, and tells the semaphores."""

    def run(frame: Activation, *operands: Any) -> Any:
        parts: list[Any] = [*_parts(op, operands), None, None, None]
        source, sent, target, arrived, device, core, subcore = parts[:7]
        _here(op, frame, device, core, subcore)
        if source.array.shape != target.array.shape:
            raise fault(
                f"a copy from shape {list(source.shape)} to {list(target.shape)}",
                "slice both references alike",
            )
        target.write(..., np.array(source.read()))
        if sent is not None:
            _add(sent, _amount(sent, source))
        if arrived is not None:
            _add(arrived, _amount(arrived, target))
        return ()

    return run


@means("tpu.wait_dma2")
def wait_dma2(op: Operation, scope: Scope) -> Run:
    """Takes the bytes of the target from the semaphore."""

    def run(frame: Activation, *operands: Any) -> Any:
        semaphore, _, target = _parts(op, operands)[:3]
        _take(semaphore, _amount(semaphore, target), "the wait")
        return ()

    return run


@means("tpu.wait_dma")
def wait_dma(op: Operation, scope: Scope) -> Run:
    """Takes the bytes of the target from its semaphore, or of the source from the source's."""
    waits_for_target = integers_of(op, "wait_target") != (0,)
    has_segments = integers_of(op, "operandSegmentSizes") is not None

    def run(frame: Activation, *operands: Any) -> Any:
        if not has_segments:
            # The oldest form: semaphore and target.
            semaphore, target = operands[:2]
            _take(semaphore, _amount(semaphore, target), "the wait")
            return ()
        source, sent, target, arrived = _parts(op, operands)[:4]
        use_target = arrived is not None and (waits_for_target or sent is None)
        waited: Any = arrived if use_target else sent
        ref: Any = target if use_target else source
        _take(waited, _amount(waited, ref), "the wait")
        return ()

    return run


@means("tpu.sem_signal")
def sem_signal(op: Operation, scope: Scope) -> Run:
    """Adds to a semaphore."""

    def run(frame: Activation, *operands: Any) -> Any:
        parts: list[Any] = [*_parts(op, operands), None]
        semaphore, amount, device, core, subcore = parts[:5]
        _here(op, frame, device, core, subcore)
        _add(semaphore, int(amount))
        return ()

    return run


@means("tpu.sem_wait")
def sem_wait(op: Operation, scope: Scope) -> Run:
    """Takes from a semaphore, which has to hold as much."""

    def run(frame: Activation, semaphore: MemRef, amount: Any) -> Any:
        _take(semaphore, int(amount), "the wait")
        return ()

    return run


@means("tpu.sem_read")
def sem_read(op: Operation, scope: Scope) -> Run:
    """The value of a semaphore."""
    return lambda frame, semaphore: np.int32(semaphore.array.reshape(-1)[0])


@means("tpu.sem_barrier")
def sem_barrier(op: Operation, scope: Scope) -> Run:
    """The barrier semaphore."""
    return lambda frame: frame.core.barrier
