"""The client, its devices and their memories."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mlirhlo
from mlirhlo.integrations.jax.pjrt.objects import make

PLATFORMS = ("mlirhlo", "mlirhlo_interpreter")
"""The platforms: machine code, and the interpreter, which is slow and judges it."""

PLATFORM = "cpu"
"""What programs are lowered for: JAX looks its rules up by this name, and XLA:CPU's are the ones whose calls
(LAPACK's, callbacks) this compiler knows."""

KIND = "mlirhlo"
MEMORIES = ("device", "pinned_host", "unpinned_host")
"""Kinds of memory, the default first, as XLA:CPU has them; all are the machine's memory."""


@dataclass
class Client:
    """Devices of this process, all of them the CPU, and of others."""

    count: int
    """Of the devices of each process."""
    process: int = 0
    processes: int = 1
    interpreted: bool = False
    """Whether the interpreter runs programs."""
    memories: dict[int, Any] = field(default_factory=dict)
    """By a memory's handle, its device."""

    @property
    def name(self) -> str:
        """The platform's, as JAX_PLATFORMS says it."""
        return PLATFORMS[self.interpreted]

    @cached_property
    def version(self) -> str:
        """What `client.platform_version` says."""
        return f"mlirhlo {mlirhlo.__version__}"

    def process_of(self, device: int) -> int:
        """The process of a device."""
        return device // self.count

    @cached_property
    def own(self) -> list[Any]:
        """The devices of this process."""
        return [device for device in self.devices if device.is_addressable]

    @cached_property
    def descriptions(self) -> list[c.Structure]:
        """A description a device."""
        made: list[c.Structure] = []
        for number in range(self.count * self.processes):
            name = f"MlirhloDevice(id={number})"
            made.append(
                make(
                    "DeviceDescription",
                    id=number,
                    process_index=self.process_of(number),
                    device_kind=KIND,
                    debug_string=name,
                    to_string=name,
                )
            )
        return made

    @cached_property
    def topology(self) -> c.Structure:
        """The devices as a program may be compiled for."""
        return make(
            "TopologyDescription",
            platform_name=PLATFORM,
            platform_version=self.version,
            descriptions=self.descriptions,
            memory_space_kind_ids=(c.c_int * len(MEMORIES))(*range(len(MEMORIES))),
            num_memory_space_kind_ids=len(MEMORIES),
        )

    @cached_property
    def devices(self) -> list[Any]:
        """The devices of all processes, those of this one with memories of their own."""
        made: list[Any] = []
        for number, description in enumerate(self.descriptions):
            is_own = self.process_of(number) == self.process
            memories = [self._memory(number, k) for k in range(len(MEMORIES) if is_own else 0)]
            device: Any = make(
                "Device",
                device_description=description,
                is_addressable=is_own,
                local_hardware_id=number % self.count if is_own else -1,
                memories=memories,
                memory=memories[0] if is_own else 0,
            )
            users = (c.c_void_p * 1)(c.addressof(device))
            for memory in memories:
                memory.devices, memory.num_devices = c.addressof(users), 1
                memory.kept.append(users)
                self.memories[c.addressof(memory)] = device
            made.append(device)
        return made

    def _memory(self, device: int, kind: int) -> Any:
        name = f"MlirhloMemory(device={device}, kind={MEMORIES[kind]})"
        return make(
            "Memory",
            id=device * len(MEMORIES) + kind,
            kind=MEMORIES[kind],
            kind_id=kind,
            debug_string=name,
            to_string=name,
        )

    @cached_property
    def handle(self) -> c.Structure:
        """The object that JAX holds."""
        return make(
            "Client",
            platform_name=PLATFORM,
            platform_version=self.version,
            process_index=self.process,
            devices=self.devices,  # before the memories, which are made with them
            addressable_devices=self.own,
            addressable_memories=list(self.memories),
            topology=self.topology,
        )

    def chosen(self, device: int | None, memory: int | None) -> tuple[int, int]:
        """The device and memory of a new buffer by the handles that a caller gives, either of which may be null."""
        if memory:
            return c.addressof(self.memories[memory]), memory
        for one in self.own:
            if c.addressof(one) == device:
                return c.addressof(one), one.memory
        return c.addressof(self.own[0]), self.own[0].memory
