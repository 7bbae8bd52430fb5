"""The structs behind JAX's handles, in memory of ours.

What a function of the interface hands out has the name of a field here, so that such a function copies fields (`code`).
A loaded executable and its executable are one struct with a count of references.
"""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from functools import cache
from typing import Any

from mlirhlo.integrations.jax.pjrt.interface import rows, struct

OBJECTS = """
Error message:p message_size:z code:i
Client platform_name:p platform_name_size:z platform_version:p platform_version_size:z process_index:i
    devices:p num_devices:z addressable_devices:p num_addressable_devices:z addressable_memories:p
    num_addressable_memories:z topology:p
TopologyDescription platform_name:p platform_name_size:z platform_version:p platform_version_size:z
    descriptions:p num_descriptions:z attributes:p num_attributes:z fingerprint:l
    memory_space_kind_ids:p num_memory_space_kind_ids:z
DeviceDescription id:i process_index:i attributes:p num_attributes:z device_kind:p device_kind_size:z
    debug_string:p debug_string_size:z to_string:p to_string_size:z
Device device_description:p is_addressable:b local_hardware_id:i memories:p num_memories:z memory:p
Memory id:i kind:p kind_size:z kind_id:i debug_string:p debug_string_size:z to_string:p to_string_size:z
    devices:p num_devices:z
Executable references:l next:p descriptor:p worlds:p templates:p template_sizes:p expected_bytes:p num_parameters:z
    is_donated:p executable_name:p executable_name_size:z num_replicas:z num_partitions:z num_outputs:z
    size_in_bytes:l memory_kinds:p memory_kind_sizes:p executable_fingerprint:p
    executable_fingerprint_size:z addressable_devices:p num_addressable_devices:z is_deleted:b
    output_types:p num_output_types:z dims:p dim_sizes:p addressable_device_logical_ids:p
    num_addressable_device_logical_ids:z generated_code_size_in_bytes:l
    argument_size_in_bytes:l output_size_in_bytes:l alias_size_in_bytes:l temp_size_in_bytes:l
    host_generated_code_size_in_bytes:l host_argument_size_in_bytes:l host_output_size_in_bytes:l
    host_alias_size_in_bytes:l host_temp_size_in_bytes:l peak_memory_in_bytes:l total_size_in_bytes:l
    total_allocation_bytes:l indefinite_allocations:l peak_unpadded_heap_bytes:l
Storage references:l data:p bytes:z deleter:p deleter_arg:p
Buffer storage:p buffer_pointer:p on_device_size_in_bytes:z type:i is_deleted:b is_on_cpu:b dims:p num_dims:z
    unpadded_dims:p dynamic_dim_indices:p num_dynamic_dims:z device:p memory:p device_memory_ptr:p
    layout_size:z layout_extension:p tiled_size:z tiled_extension:p minor_to_major:p minor_to_major_size:z
    tile_dims:p tile_dim_sizes:p num_tiles:z layout_type:i
"""
"""Fields of an executable in front of its name are the compiler's own: `descriptor`, what `runtime.calls` makes of a
signature, null where a call runs Python; `worlds`, the list of those where its devices meet, null where they never do;
a template for each result, device by device, from which its buffer is copied.

A buffer's dimensions lie behind its struct, then its dimensions from minor to major. A storage is the memory of one
or more buffers: its references, and who frees it (null: the pool of `runtime.pool_ir`)."""


@cache
def objects() -> dict[str, type[c.Structure]]:
    """The structs, by name."""
    return {name: struct(name, fields, headed=False) for name, fields in rows(OBJECTS)}


def make(name: str, **fields: Any) -> c.Structure:
    """An object with these fields; a str becomes bytes beside their count (`…_size`), a sequence of ints or of
    objects an array beside its length (`num_…`). What it points to lives as long as it does."""
    made = objects()[name]()
    kept: list[Any] = []
    known = {field[0] for field in objects()[name]._fields_}
    for field, value in fields.items():
        if isinstance(value, (str, bytes)):
            data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            text = c.create_string_buffer(data)
            kept.append(text)
            setattr(made, field, c.addressof(text))
            setattr(made, f"{field}_size", len(data))
        elif isinstance(value, (list, tuple)):
            array = array_of(value)
            kept.append((array, value))
            setattr(made, field, c.addressof(array))
            if f"num_{field}" in known:
                setattr(made, f"num_{field}", len(value))
        else:
            kept.append(value)
            setattr(made, field, address(value))
    made.kept = kept
    return made


def address(value: Any) -> Any:
    """A number as it is; of an object of ctypes its address."""
    return c.addressof(value) if isinstance(value, (c.Structure, c.Array)) else value


def array_of(values: Sequence[Any], kind: Any = c.c_int64) -> Any:
    """An array of numbers or addresses; never of no bytes, so that its address is one."""
    return (kind * max(len(values), 1))(*map(address, values))
