"""The client, its devices and their memories."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlirhlo.integrations.jax.pjrt.objects import address, make

PLATFORM = "cpu"
"""What programs are lowered for: JAX looks its rules up by this name, and XLA:CPU's are the ones whose calls
(LAPACK's, callbacks) this compiler knows."""

KIND = "mlirhlo"
MEMORY = "device"


@dataclass
class Client:
    """Devices of this process, all of them the CPU."""

    count: int
    process: int = 0
    interpreted: bool = False
    """Whether the interpreter runs programs."""

    @cached_property
    def version(self) -> str:
        """What `client.platform_version` says."""
        import mlirhlo

        return f"mlirhlo {mlirhlo.__version__}"

    @cached_property
    def descriptions(self) -> list[c.Structure]:
        """A description a device."""
        made: list[c.Structure] = []
        for number in range(self.count):
            name = f"MlirhloDevice(id={number})"
            made.append(
                make(
                    "DeviceDescription",
                    id=number,
                    process_index=self.process,
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
            memory_space_kind_ids=(c.c_int * 1)(0),
            num_memory_space_kind_ids=1,
        )

    @cached_property
    def devices(self) -> list[Any]:
        """The devices, each with a memory of its own."""
        made: list[Any] = []
        for number, description in enumerate(self.descriptions):
            name = f"MlirhloMemory(device={number})"
            memory: Any = make(
                "Memory", id=number, kind=MEMORY, kind_id=0, debug_string=name, to_string=name
            )
            device: Any = make(
                "Device",
                device_description=description,
                is_addressable=True,
                local_hardware_id=number,
                memories=[memory],
                memory=memory,
            )
            users = (c.c_void_p * 1)(c.addressof(device))
            memory.devices, memory.num_devices = c.addressof(users), 1
            memory.kept.append(users)
            made.append(device)
        return made

    @cached_property
    def handle(self) -> c.Structure:
        """The object that JAX holds."""
        return make(
            "Client",
            platform_name=PLATFORM,
            platform_version=self.version,
            process_index=self.process,
            devices=self.devices,
            addressable_devices=self.devices,
            addressable_memories=[device.memory for device in self.devices],
            topology=self.topology,
        )

    def device_at(self, device: int | None, memory: int | None = None) -> Any:
        """The device with this handle, or that of the memory with that one; the first for neither."""
        for one in self.devices:
            if address(one) == device or (not device and one.memory == memory):
                return one
        return self.devices[0]
