"""`tpu`: copies and semaphores, of this device and of others."""

# Lambdas that the table takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.interpreter.memory import MemRef
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means
from mlirhlo.mosaic.interpreter.world import World, amount_of

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


def _world(frame: Activation) -> World:
    world = frame.core.world
    assert world is not None
    return world


def _elsewhere(
    op: Operation, frame: Activation, device: Any, core: Any, subcore: Any
) -> int | None:
    """The core meant, None for this one: that of a device, of the same number unless it says another
    one. Refuses devices and cores that do not run.
    """
    world, first, here = _world(frame), frame.core.options.device, frame.core
    if subcore is not None and int(subcore) != 0:
        raise unfit(op, f"a TensorCore has no subcore {int(subcore)}")
    at = here.device if device is None else int(device) - first
    if not 0 <= at < world.devices:
        last = first + world.devices - 1
        raise fault(
            f"device {at + first} is none of those that run: {first} to {last}",
            "take the remainder by the number of devices, lax.rem(id, lax.axis_size(axis))",
        )
    number = here.number if core is None else int(core)
    if not 0 <= number < world.cores:
        raise fault(
            f"core {number} is none of those that run: {world.cores} of each device",
            "InterpretParams(num_cores_or_threads=…) says how many run, a core_parallel dimension too",
        )
    found = at * world.cores + number
    return None if found == here.agent else found


def _counterpart(op: Operation, frame: Activation, ref: MemRef, agent: int) -> MemRef:
    """The same part of the same allocation of another core."""
    memory = ref.memory
    if memory is None or ref.parent is not None:
        raise unfit(op, "this reference of another device cannot be found")
    theirs = _world(frame).memories.get((agent, memory.key))
    if theirs is None or theirs.base.shape != memory.base.shape:
        raise fault(
            f"device {agent // _world(frame).cores} has no {memory.name} now",
            "a barrier before the copy makes sure that the other device is in its kernel",
        )
    start = ref.array.__array_interface__["data"][0] - memory.base.__array_interface__["data"][0]
    view: Any = np.ndarray(ref.array.shape, ref.array.dtype, theirs.base, start, ref.array.strides)
    written = None
    if theirs.written is not None:
        size = max(1, theirs.base.itemsize)
        strides = tuple(stride // size for stride in ref.array.strides)
        written = np.ndarray(ref.array.shape, np.bool_, theirs.written, start // size, strides)
    return replace(ref, array=view, memory=theirs, written=written)


@means("tpu.enqueue_dma")
def enqueue_dma(op: Operation, scope: Scope) -> Run:
    """Starts a copy; of a remote one, target and target semaphore are the other device's."""

    def run(frame: Activation, *operands: Any) -> Any:
        parts: list[Any] = [*_parts(op, operands), None, None, None]
        source, sent, target, arrived, device, core, subcore = parts[:7]
        other = _elsewhere(op, frame, device, core, subcore)
        if source.array.shape != target.array.shape:
            raise fault(
                f"a copy from shape {list(source.shape)} to {list(target.shape)}",
                "slice both references alike",
            )
        if other is not None:
            target = _counterpart(op, frame, target, other)
            arrived = None if arrived is None else _counterpart(op, frame, arrived, other)
        _world(frame).start(frame.core, op, source, target, arrived, sent)
        return ()

    return run


@means("tpu.wait_dma2")
def wait_dma2(op: Operation, scope: Scope) -> Run:
    """Takes the bytes of the target from the semaphore."""

    def run(frame: Activation, *operands: Any) -> Any:
        semaphore, _, target = _parts(op, operands)[:3]
        _world(frame).take(frame.core, semaphore, amount_of(semaphore, target), op)
        return ()

    return run


@means("tpu.wait_dma")
def wait_dma(op: Operation, scope: Scope) -> Run:
    """Takes the bytes of the target from its semaphore, or of the source from the source's."""
    waits_for_target = integers_of(op, "wait_target") != (0,)
    has_segments = integers_of(op, "operandSegmentSizes") is not None

    def run(frame: Activation, *operands: Any) -> Any:
        world = _world(frame)
        if not has_segments:
            # The oldest form: semaphore and target.
            semaphore, target = operands[:2]
            world.take(frame.core, semaphore, amount_of(semaphore, target), op)
            return ()
        source, sent, target, arrived = _parts(op, operands)[:4]
        use_target = arrived is not None and (waits_for_target or sent is None)
        waited: Any = arrived if use_target else sent
        ref: Any = target if use_target else source
        world.take(frame.core, waited, amount_of(waited, ref), op)
        return ()

    return run


@means("tpu.sem_signal")
def sem_signal(op: Operation, scope: Scope) -> Run:
    """Adds to a semaphore."""

    def run(frame: Activation, *operands: Any) -> Any:
        parts: list[Any] = [*_parts(op, operands), None]
        semaphore, amount, device, core, subcore = parts[:5]
        other = _elsewhere(op, frame, device, core, subcore)
        if other is not None:
            semaphore = _counterpart(op, frame, semaphore, other)
        here = frame.core
        moment = 0.0 if here.time is None else here.time.signal(op, other is not None)
        _world(frame).signal(semaphore, int(amount), dict(here.clock), op, moment)
        here.tick()
        return ()

    return run


@means("tpu.sem_wait")
def sem_wait(op: Operation, scope: Scope) -> Run:
    """Waits until a semaphore holds as much, and takes it."""

    def run(frame: Activation, semaphore: MemRef, amount: Any) -> Any:
        _world(frame).take(frame.core, semaphore, int(amount), op)
        return ()

    return run


@means("tpu.sem_read")
def sem_read(op: Operation, scope: Scope) -> Run:
    """The value of a semaphore."""
    return lambda frame, semaphore: np.int32(_world(frame).look(frame.core, semaphore))


@means("tpu.sem_barrier")
def sem_barrier(op: Operation, scope: Scope) -> Run:
    """The barrier semaphore."""
    return lambda frame: frame.core.barrier
