"""Modules compiled for several devices of this process: whole arrays in, whole arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.debug.partitioned import Partitioned
from mlirhlo.debug.replay import Inputs
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp.device_counts import device_counts
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.values import for_user, value_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.shapes import Shape
    from mlirhlo.runtime.executable import Executable


class ShardedExecutable:
    """Code of a module on several devices, each of which runs on a thread of its own."""

    def __init__(
        self,
        executable: Executable,
        replicas: int,
        partitions: int,
        tiles: Partitioned | None,
        shapes: Sequence[Shape],
    ) -> None:
        """`executable`: the code of one device; `tiles`: how whole arrays are cut, where they are; `shapes`: theirs."""
        self.executable = executable
        self.replicas, self.partitions = replicas, partitions
        self._tiles = tiles
        self._shapes = shapes

    def __repr__(self) -> str:
        return f"<mlirhlo.ShardedExecutable: {self.replicas} x {self.partitions} devices>"

    def __call__(self, *arguments: object) -> Any:
        """The whole result, of replica 0: sharded arrays are cut into tiles, and joined from them.

        A module that was partitioned before gets the same arguments on every device, and gives what the first
        one computes. Errors as of `Executable`.
        """
        if self._tiles is None:
            return self.on_devices(arguments)[0]
        if len(arguments) != len(self._shapes):
            raise error("HLO0303", f"expects {len(self._shapes)} arguments, got {len(arguments)}")
        values = [
            value_from(argument, shape, f"parameter {number}")
            for number, (argument, shape) in enumerate(zip(arguments, self._shapes, strict=True))
        ]
        inputs = self._tiles.cut(Inputs([values], self.replicas, self.partitions))
        return for_user(self._tiles.joined(self.on_devices(*inputs.per_device))[0])

    def on_devices(self, *per_device: Sequence[object]) -> list[Any]:
        """Results by device, replicas major, of the arguments (tiles) of each device; one list stands for all.

        Raises `HloError` HLO0353 for another number of lists, otherwise as `Executable`.
        """
        machine = Machine(self.replicas, self.partitions)
        if len(per_device) not in (1, machine.device_count):
            raise error(
                "HLO0353",
                f"the module runs on {machine.device_count} devices, inputs are given for {len(per_device)}",
            )
        return self.executable.run_devices(machine, per_device)


def compile_sharded(
    module: ModuleOp, devices: int, compile_one: Callable[[ModuleOp], Executable]
) -> ShardedExecutable:
    """A module on `devices` devices: partitioned, where it is sharded. The module stays as it is.

    Raises `HloError` HLO0353 where it is for another number of devices, and what the passes and `compile_one` raise.
    """
    module = module.clone()
    view = HloModule(module)
    replicas = view.replica_count
    if view.get("num_partitions") is None and devices % replicas == 0 and devices > replicas:
        view.set("num_partitions", integer(devices // replicas))
    counts = device_counts(view)
    if counts.replicas * counts.partitions != devices:
        raise error(
            "HLO0353",
            f"the module is for {counts.replicas} replicas and {counts.partitions} partitions,"
            f" not for {devices} devices",
        )
    parameters = sorted(view.entry.parameters, key=lambda op: op.parameter_number)
    shapes = [op.shape for op in parameters]
    tiles = Partitioned.of(module)
    executable = compile_one(module if tiles is None else tiles.module)
    return ShardedExecutable(executable, counts.replicas, counts.partitions, tiles, shapes)
