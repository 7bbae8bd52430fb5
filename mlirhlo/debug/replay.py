"""Running a module once on all of its devices, with inputs from wherever they come.

A module that is partitioned already takes one set of inputs per partition. One that only says how
it is to be partitioned takes the whole arrays: every device runs it on them, and the custom calls
that cut and join shards do so by the device's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp.device_counts import device_counts
from mlirhlo.interp.engine import Hook, Interpreter
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.registry import Value
from mlirhlo.interp.values import arrays_of, value_of_literal

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.literal import Literal
    from mlirhlo.formats.arrays import Archive

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


_MARKERS = ("Sharding", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier")
"""Custom calls about sharding that give back their input on every device."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run is given."""

    per_device: Sequence[Sequence[object]]
    """Parameters, or all their leaves, for each device; one entry stands for all."""
    replicas: int = 1
    partitions: int = 1
    is_whole: bool = False
    """Whether every partition gets the whole arrays, and gives the whole results."""


def inputs_from_archive(
    module: ModuleOp, archive: Archive, replicas: int = 0, partitions: int = 0
) -> Inputs:
    """Inputs out of an npz file. Numbers of devices that are 0 come from module and file.

    Raises `HloError` HLO0506 when neither the whole arrays nor the parts fit the parameters.
    """
    view = HloModule(module)
    shapes = [parameter.shape for parameter in view.entry.parameters]
    counts = device_counts(view)
    replicas = replicas or counts.replicas
    partitions = partitions or max(counts.partitions, archive.partitions)
    if partitions == 1:
        return Inputs([archive.leaves("in", shapes, None)], replicas)
    whole, parts = archive.fits("in", shapes, None), archive.fits("in", shapes, 0)
    if whole and (not parts or view.num_partitions == 1):
        if not depends_on_device(module):
            partitions = 1
        return Inputs([archive.leaves("in", shapes, None)], replicas, partitions, is_whole=True)
    per_partition = [archive.leaves("in", shapes, p) for p in range(partitions)]
    return Inputs(per_partition * replicas, replicas, partitions)


def inputs_from_literals(
    module: ModuleOp,
    arguments: Sequence[Sequence[Literal]],
    replicas: int = 0,
    partitions: int = 0,
) -> Inputs:
    """Inputs out of a snapshot: one set per partition, or one for all.

    Raises `HloError` HLO0301 for an elided literal, HLO0353 for a wrong number of sets.
    """
    sets = [[value_of_literal(literal) for literal in one] for one in arguments]
    return inputs_from_values(module, sets, replicas, partitions)


def inputs_from_values(
    module: ModuleOp, sets: Sequence[Sequence[object]], replicas: int = 0, partitions: int = 0
) -> Inputs:
    """Inputs at hand: one set per partition, or one for all. Numbers that are 0 come from the module.

    Raises `HloError` HLO0353 for a wrong number of sets.
    """
    counts = device_counts(HloModule(module))
    replicas = replicas or counts.replicas
    partitions = partitions or max(counts.partitions, len(sets))
    if len(sets) not in (1, partitions):
        raise error("HLO0353", f"{len(sets)} sets of arguments for {partitions} partitions")
    if len(sets) == 1:
        return Inputs(sets, replicas, partitions, is_whole=counts.is_unpartitioned)
    return Inputs([*sets] * replicas, replicas, partitions)


def depends_on_device(module: ModuleOp) -> bool:
    """Whether devices may compute different things from the same inputs."""
    for op in HloModule(module).instructions:
        opcode = op.opcode
        if opcode.collective or opcode.transfers:
            return True
        target = getattr(op, "custom_call_target", None)
        if target is not None and ("sdy" in target or "SPMD" in target):
            if target not in _MARKERS:
                return True
    return False


def run(
    module: ModuleOp, inputs: Inputs, *, seed: int = 42, hook: Hook | None = None
) -> list[Value]:
    """The result on every device, by global device number. Raises what the interpreter raises."""
    machine = Machine(inputs.replicas, inputs.partitions, seed=seed)
    if len(inputs.per_device) not in (1, machine.device_count):
        raise error(
            "HLO0353",
            f"the module runs on {machine.replicas} × {machine.partitions} devices,"
            f" inputs are given for {len(inputs.per_device)}",
        )
    interpreter = Interpreter(module, machine, hook)

    def program(replica: int, partition: int) -> Value:
        device = machine.device(replica, partition)
        given = inputs.per_device[device if len(inputs.per_device) > 1 else 0]
        return interpreter.run(given, replica=replica, partition=partition)

    return machine.run_devices(program)


def arrays_per_partition(inputs: Inputs, results: Sequence[Value]) -> list[list[Array]]:
    """Arrays to store of a run: of replica 0, one list per partition, or the whole ones."""
    count = 1 if inputs.is_whole else inputs.partitions
    return [arrays_of(value) for value in results[:count]]
