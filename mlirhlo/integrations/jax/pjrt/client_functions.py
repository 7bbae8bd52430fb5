"""Functions of the interface about clients and devices that run Python."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirhlo.integrations.jax.pjrt.client import Client
from mlirhlo.integrations.jax.pjrt.handed import handed
from mlirhlo.integrations.jax.pjrt.interface import Code, structs
from mlirhlo.integrations.jax.pjrt.machine import PjrtError, machine, numbers_at, text_at
from mlirhlo.integrations.jax.pjrt.objects import address

FLOAT = 3
"""The type of a named value that is an f32."""

DEVICES_OPTION, INTERPRETER_OPTION = "num_devices", "interpreter"
"""The client's options: how many devices this process has, and whether the interpreter runs programs."""
PROCESS_OPTION, PROCESSES_OPTION = "process", "processes"
"""The number of this process, and how many there are."""

clients: dict[int, Client] = {}


def _client_create(args: Any) -> None:
    options = _named_values(args.create_options, args.num_options)
    count = options.get(DEVICES_OPTION, 1)
    if not isinstance(count, int) or count < 1:
        raise PjrtError(Code.INVALID_ARGUMENT, f"{DEVICES_OPTION}: expects a count, got {count!r}")
    process, processes = (options.get(PROCESS_OPTION, 0), options.get(PROCESSES_OPTION, 1))
    assert isinstance(process, int)
    assert isinstance(processes, int)
    interpreted = bool(options.get(INTERPRETER_OPTION))
    client = Client(count, process, processes, interpreted=interpreted)
    args.client = address(client.handle)
    clients[args.client] = client


def _named_values(start: int | None, count: int) -> dict[str, object]:
    kind = structs()["NamedValue"]
    found: dict[str, object] = {}
    for number in range(count):
        value = kind.from_address((start or 0) + number * c.sizeof(kind))
        name = text_at(value.name, value.name_size).decode()
        if value.type == 0:
            found[name] = text_at(value.value, value.value_size).decode()
        elif value.type == 2:
            found[name] = numbers_at(value.value, value.value_size)
        elif value.type == FLOAT:
            found[name] = float(np.int32(value.value & 0xFFFFFFFF).view(np.float32))
        else:
            found[name] = value.value if value.type == 1 else bool(value.value & 1)
    return found


def client_of(args: Any) -> Client:
    """The client that a call is about."""
    return clients[args.client]


def _lookup_device(args: Any) -> None:
    args.device = _device_among(client_of(args).devices, args.id)


def _lookup_addressable(args: Any) -> None:
    args.addressable_device = _device_among(client_of(args).own, args.local_hardware_id)


def _device_among(devices: Sequence[Any], number: int) -> int:
    if not 0 <= number < len(devices):
        raise PjrtError(Code.INVALID_ARGUMENT, f"no device {number}: there are {len(devices)}")
    return c.addressof(devices[number])


def _default_assignment(args: Any) -> None:
    count, most = args.num_replicas * args.num_partitions, len(client_of(args).devices)
    if count > args.default_assignment_size or count > most:
        raise PjrtError(Code.INVALID_ARGUMENT, f"{count} devices asked for, there are {most}")
    for number in range(count):
        c.c_int.from_address(args.default_assignment + 4 * number).value = number


def _device_attributes(args: Any) -> None:
    args.attributes, args.num_attributes = 0, 0
    args.device_attributes = 0
    args.attributes_deleter = c.cast(handed.free, c.c_void_p).value


def _memory_stats(args: Any) -> None:
    for field, *_ in args._fields_:
        if field.endswith("_is_set"):
            setattr(args, field, field == "peak_bytes_in_use_is_set")
    args.bytes_in_use = machine().word("in_use")
    args.peak_bytes_in_use = machine().word("peak")


FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Client_Create": _client_create,
    "Client_LookupDevice": _lookup_device,
    "Client_LookupAddressableDevice": _lookup_addressable,
    "Client_DefaultDeviceAssignment": _default_assignment,
    "Device_GetAttributes": _device_attributes,
    "Device_MemoryStats": _memory_stats,
}
