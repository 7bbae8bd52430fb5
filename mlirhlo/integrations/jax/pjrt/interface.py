"""PJRT's C interface as a table: every function with the fields of its arguments, as structs of ctypes.

A function takes one pointer, to a struct whose first fields are `struct_size`, the bytes that the caller knows of,
and `extension_start`; it returns an error, or null. `FUNCTIONS` has a row a function, in the order of the interface's
own struct.

Source: facts of `xla/pjrt/c/pjrt_c_api.h`, version 0.114.
"""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator
from enum import IntEnum
from functools import cache, lru_cache

VERSION = (0, 100)
"""What is announced: callers of later versions expect tables of functions inside of handles."""

_KINDS = {
    "p": c.c_void_p,
    "z": c.c_size_t,
    "i": c.c_int,
    "l": c.c_int64,
    "b": c.c_bool,
}

FUNCTIONS = """
Error_Destroy error:p
Error_Message error:p message:p message_size:z
Error_GetCode error:p code:i
Plugin_Initialize
Plugin_Attributes attributes:p num_attributes:z
Event_Destroy event:p
Event_IsReady event:p is_ready:b
Event_Error event:p
Event_Await event:p
Event_OnReady event:p callback:p user_arg:p
Client_Create create_options:p num_options:z kv_get_callback:p kv_get_user_arg:p kv_put_callback:p
    kv_put_user_arg:p client:p kv_try_get_callback:p kv_try_get_user_arg:p
Client_Destroy client:p
Client_PlatformName client:p platform_name:p platform_name_size:z
Client_ProcessIndex client:p process_index:i
Client_PlatformVersion client:p platform_version:p platform_version_size:z
Client_Devices client:p devices:p num_devices:z
Client_AddressableDevices client:p addressable_devices:p num_addressable_devices:z
Client_LookupDevice client:p id:i device:p
Client_LookupAddressableDevice client:p local_hardware_id:i addressable_device:p
Client_AddressableMemories client:p addressable_memories:p num_addressable_memories:z
Client_Compile client:p program:p compile_options:p compile_options_size:z executable:p
Client_DefaultDeviceAssignment client:p num_replicas:i num_partitions:i default_assignment_size:z
    default_assignment:p
Client_BufferFromHostBuffer client:p data:p type:i dims:p num_dims:z byte_strides:p num_byte_strides:z
    host_buffer_semantics:i device:p memory:p device_layout:p done_with_host_buffer:p buffer:p
DeviceDescription_Id device_description:p id:i
DeviceDescription_ProcessIndex device_description:p process_index:i
DeviceDescription_Attributes device_description:p num_attributes:z attributes:p
DeviceDescription_Kind device_description:p device_kind:p device_kind_size:z
DeviceDescription_DebugString device_description:p debug_string:p debug_string_size:z
DeviceDescription_ToString device_description:p to_string:p to_string_size:z
Device_GetDescription device:p device_description:p
Device_IsAddressable device:p is_addressable:b
Device_LocalHardwareId device:p local_hardware_id:i
Device_AddressableMemories device:p memories:p num_memories:z
Device_DefaultMemory device:p memory:p
Device_MemoryStats device:p bytes_in_use:l peak_bytes_in_use:l peak_bytes_in_use_is_set:b num_allocs:l
    num_allocs_is_set:b largest_alloc_size:l largest_alloc_size_is_set:b bytes_limit:l bytes_limit_is_set:b
    bytes_reserved:l bytes_reserved_is_set:b peak_bytes_reserved:l peak_bytes_reserved_is_set:b
    bytes_reservable_limit:l bytes_reservable_limit_is_set:b largest_free_block_bytes:l
    largest_free_block_bytes_is_set:b pool_bytes:l pool_bytes_is_set:b peak_pool_bytes:l
    peak_pool_bytes_is_set:b peak_allocated_bytes:l peak_allocated_bytes_is_set:b
Memory_Id memory:p id:i
Memory_Kind memory:p kind:p kind_size:z
Memory_DebugString memory:p debug_string:p debug_string_size:z
Memory_ToString memory:p to_string:p to_string_size:z
Memory_AddressableByDevices memory:p devices:p num_devices:z
Executable_Destroy executable:p
Executable_Name executable:p executable_name:p executable_name_size:z
Executable_NumReplicas executable:p num_replicas:z
Executable_NumPartitions executable:p num_partitions:z
Executable_NumOutputs executable:p num_outputs:z
Executable_SizeOfGeneratedCodeInBytes executable:p size_in_bytes:l
Executable_GetCostAnalysis executable:p num_properties:z properties:p
Executable_OutputMemoryKinds executable:p num_outputs:z memory_kinds:p memory_kind_sizes:p
Executable_OptimizedProgram executable:p program:p
Executable_Serialize executable:p serialized_bytes:p serialized_bytes_size:z serialized_executable:p
    serialized_executable_deleter:p
LoadedExecutable_Destroy executable:p
LoadedExecutable_GetExecutable loaded_executable:p executable:p
LoadedExecutable_AddressableDevices executable:p addressable_devices:p num_addressable_devices:z
LoadedExecutable_Delete executable:p
LoadedExecutable_IsDeleted executable:p is_deleted:b
LoadedExecutable_Execute executable:p options:p argument_lists:p num_devices:z num_args:z output_lists:p
    device_complete_events:p execute_device:p
Executable_DeserializeAndLoad client:p serialized_executable:p serialized_executable_size:z
    loaded_executable:p overridden_serialized_compile_options:p overridden_serialized_compile_options_size:z
    load_options:p
LoadedExecutable_Fingerprint executable:p executable_fingerprint:p executable_fingerprint_size:z
Buffer_Destroy buffer:p
Buffer_ElementType buffer:p type:i
Buffer_Dimensions buffer:p dims:p num_dims:z
Buffer_UnpaddedDimensions buffer:p unpadded_dims:p num_dims:z
Buffer_DynamicDimensionIndices buffer:p dynamic_dim_indices:p num_dynamic_dims:z
Buffer_GetMemoryLayout buffer:p layout_size:z layout_extension:p tiled_size:z tiled_extension:p
    minor_to_major:p minor_to_major_size:z tile_dims:p tile_dim_sizes:p num_tiles:z layout_type:i
Buffer_OnDeviceSizeInBytes buffer:p on_device_size_in_bytes:z
Buffer_Device buffer:p device:p
Buffer_Memory buffer:p memory:p
Buffer_Delete buffer:p
Buffer_IsDeleted buffer:p is_deleted:b
Buffer_CopyToDevice buffer:p dst_device:p dst_buffer:p
Buffer_ToHostBuffer src:p host_layout:p dst:p dst_size:z event:p
Buffer_IsOnCpu buffer:p is_on_cpu:b
Buffer_ReadyEvent buffer:p event:p
Buffer_UnsafePointer buffer:p buffer_pointer:z
Buffer_IncreaseExternalReferenceCount buffer:p
Buffer_DecreaseExternalReferenceCount buffer:p
Buffer_OpaqueDeviceMemoryDataPointer buffer:p device_memory_ptr:p
CopyToDeviceStream_Destroy stream:p
CopyToDeviceStream_AddChunk stream:p chunk:p transfer_complete:p
CopyToDeviceStream_TotalBytes stream:p total_bytes:l
CopyToDeviceStream_GranuleSize stream:p granule_size_in_bytes:l
CopyToDeviceStream_CurrentBytes stream:p current_bytes:l
TopologyDescription_Create topology_name:p topology_name_size:z create_options:p num_options:z topology:p
TopologyDescription_Destroy topology:p
TopologyDescription_PlatformName topology:p platform_name:p platform_name_size:z
TopologyDescription_PlatformVersion topology:p platform_version:p platform_version_size:z
TopologyDescription_GetDeviceDescriptions topology:p descriptions:p num_descriptions:z
TopologyDescription_Serialize topology:p serialized_bytes:p serialized_bytes_size:z serialized_topology:p
    serialized_topology_deleter:p
TopologyDescription_Attributes topology:p attributes:p num_attributes:z
Compile topology:p program:p compile_options:p compile_options_size:z client:p executable:p
Executable_OutputElementTypes executable:p output_types:p num_output_types:z
Executable_OutputDimensions executable:p num_outputs:z dims:p dim_sizes:p
Buffer_CopyToMemory buffer:p dst_memory:p dst_buffer:p
Client_CreateViewOfDeviceBuffer client:p device_buffer_ptr:p dims:p num_dims:z element_type:i layout:p
    device:p on_delete_callback:p on_delete_callback_arg:p stream:l buffer:p memory:p
Executable_Fingerprint executable:p executable_fingerprint:p executable_fingerprint_size:z
Client_TopologyDescription client:p topology:p
Executable_GetCompiledMemoryStats executable:p generated_code_size_in_bytes:l argument_size_in_bytes:l
    output_size_in_bytes:l alias_size_in_bytes:l temp_size_in_bytes:l host_generated_code_size_in_bytes:l
    host_argument_size_in_bytes:l host_output_size_in_bytes:l host_alias_size_in_bytes:l
    host_temp_size_in_bytes:l peak_memory_in_bytes:l total_size_in_bytes:l total_allocation_bytes:l
    indefinite_allocations:l peak_unpadded_heap_bytes:l
Memory_Kind_Id memory:p kind_id:i
ExecuteContext_Create context:p
ExecuteContext_Destroy context:p
Buffer_CopyRawToHost buffer:p dst:p offset:l transfer_size:l event:p
AsyncHostToDeviceTransferManager_Destroy transfer_manager:p
AsyncHostToDeviceTransferManager_TransferData transfer_manager:p buffer_index:i data:p offset:l
    transfer_size:l is_last_transfer:b done_with_h2d_transfer:p
Client_CreateBuffersForAsyncHostToDevice client:p shape_specs:p num_shape_specs:z device_layouts:p
    num_device_layouts:z memory:p transfer_manager:p
AsyncHostToDeviceTransferManager_RetrieveBuffer transfer_manager:p buffer_index:i buffer_out:p
AsyncHostToDeviceTransferManager_Device transfer_manager:p device_out:p
AsyncHostToDeviceTransferManager_BufferCount transfer_manager:p buffer_count:z
AsyncHostToDeviceTransferManager_BufferSize transfer_manager:p buffer_index:i buffer_size:z
AsyncHostToDeviceTransferManager_SetBufferError transfer_manager:p buffer_index:i error_code:i
    error_message:p error_message_size:z
AsyncHostToDeviceTransferManager_AddMetadata transfer_manager:p transfer_metadata:p num_metadata:z
Client_DmaMap client:p data:p size:z
Client_DmaUnmap client:p data:p
Client_CreateUninitializedBuffer client:p shape_dims:p shape_num_dims:z shape_element_type:i shape_layout:p
    device:p memory:p buffer:p
Client_UpdateGlobalProcessInfo client:p process_infos:p num_process_infos:z
TopologyDescription_Deserialize serialized_topology:p serialized_topology_size:z topology:p
Client_CreateAliasBuffer client:p memory:p shape_dims:p shape_num_dims:z shape_element_type:i shape_layout:p
    alias_buffer:p fulfill_alias_buffer_cb:p
Client_FulfillAliasBuffer client:p buffer:p status_code:i error_message:p error_message_size:z
    fulfill_alias_buffer_cb:p
LoadedExecutable_GetDeviceAssignment executable:p serialized_bytes:p serialized_bytes_size:z
    serialized_device_assignment:p serialized_device_assignment_deleter:p
Client_CreateErrorBuffer client:p error_code:i error_message:p error_message_size:z shape_dims:p
    shape_num_dims:z shape_element_type:i shape_layout:p memory:p buffer:p payload:p num_payload:z
AsyncHostToDeviceTransferManager_TransferLiteral transfer_manager:p buffer_index:i data:p shape_dims:p
    shape_num_dims:z shape_element_type:i shape_layout:p done_with_h2d_transfer:p
Buffer_CopyRawToHostFuture buffer:p offset:l transfer_size:l event:p callback_data:p future_ready_callback:p
Device_PoisonExecution device:p launch_id:i error_code:i error_message:p error_message_size:z poisoned:b
    payload:p num_payload:z
Device_CreateAsyncTrackingEvent device:p description:p description_size:z event:p
AsyncTrackingEvent_Destroy event:p
Executable_GetCompileOptions executable:p serialized_bytes:p serialized_bytes_size:z
    serialized_compile_options:p serialized_compile_options_deleter:p
Buffer_DonateWithControlDependency buffer:p callback_data:p dependency_ready_callback:p out_buffer:p
Event_Create event:p
Event_Set event:p error_code:i error_message:p error_message_size:z
Device_GetAttributes device:p attributes:p num_attributes:z device_attributes:p attributes_deleter:p
Client_Load client:p executable:p compile_options:p compile_options_size:z loaded_executable:p
LoadedExecutable_AddressableDeviceLogicalIds executable:p addressable_device_logical_ids:p
    num_addressable_device_logical_ids:z
Buffer_Bitcast buffer:p element_type:i dims:p num_dims:z device_layout:p out_buffer:p
Error_ForEachPayload error:p visitor:p user_arg:p
TopologyDescription_Fingerprint topology:p fingerprint:l
Executable_ParameterMemoryKinds executable:p num_parameters:z memory_kinds:p memory_kind_sizes:p
Device_ClearMemoryStats device:p
TopologyDescription_MakeCanonicalShapeForMemorySpace topology:p memory_space_kind_id:i dims:p num_dims:z
    element_type:i layout:p serialized_shape:p serialized_shape_size:z serialized_shape_deleter:p
TopologyDescription_GetMemorySpaceKindIds topology:p memory_space_kind_ids:p num_memory_space_kind_ids:z
"""

STRUCTS = """
Api_Version major_version:i minor_version:i
NamedValue name:p name_size:z type:i value:l value_size:z
Program code:p code_size:z format:p format_size:z
ExecuteOptions send_callbacks:p recv_callbacks:p num_send_ops:z num_recv_ops:z launch_id:i
    non_donatable_input_indices:p num_non_donatable_input_indices:z context:p call_location:p num_tasks:z
    task_ids:p incarnation_ids:p
MemoryLayout tiled_size:z tiled_extension:p minor_to_major:p minor_to_major_size:z tile_dims:p
    tile_dim_sizes:p num_tiles:z type:i
"""
"""Structs that arguments point to; a layout is one of tiles (type 0) or of strides (type 1)."""


EXTENSIONS: dict[str, tuple[int, str]] = {
    "Layouts": (
        4,
        """
MemoryLayout_Destroy layout:p
MemoryLayout_Serialize layout:p serialized_bytes:p serialized_bytes_size:z serialized_layout:p
    serialized_layout_deleter:p
Client_GetDefaultLayout client:p type:i dims:p num_dims:z layout:p
Buffer_MemoryLayout buffer:p layout:p
Topology_GetDefaultLayout topology_description:p type:i dims:p num_dims:z layout:p
Executable_GetOutputLayouts executable:p num_outputs:z layouts:p
Executable_GetParameterLayouts executable:p num_parameters:z layouts:p
""",
    ),
    "FFI": (
        5,
        """
Type_Register type_name:p type_name_size:z type_id:l type_info:p
UserData_Add context:p type_id:l data:p
Register_Handler struct_size:z target_name:p target_name_size:z handler:p platform_name:p
    platform_name_size:z traits:i
""",
    ),
}
"""Extensions: their number, and their functions in order. Arguments that spell `struct_size` out have only this head.

Source: facts of `pjrt_c_api_layouts_extension.h` and `pjrt_c_api_ffi_extension.h` beside the interface."""


class Code(IntEnum):
    """Codes of errors."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13


ELEMENT_TYPES = (
    None, "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16", "c64", "c128",
    "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s4", "u4", "token", "s2", "u2", "f8e4m3",
    "f8e3m4", "f8e8m0fnu", "f4e2m1fn", "s1", "u1",
)  # fmt: skip
"""Types of elements by the interface's number; None for what there is no type for."""


def rows(table: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Name and fields (name, kind) of each row of a table."""
    for line in table.strip().replace("\n    ", " ").splitlines():
        name, *fields = line.split()
        yield name, [(field, kind) for field, _, kind in (f.partition(":") for f in fields)]


def struct(name: str, fields: list[tuple[str, str]], *, headed: bool = True) -> type[c.Structure]:
    """A struct of ctypes; `headed`: with the two fields that the interface's structs begin with."""
    head = [("struct_size", "z"), ("extension_start", "p")] if headed else []
    typed = [(field, _KINDS[kind]) for field, kind in (*head, *fields)]
    return type(name, (c.Structure,), {"_fields_": typed})


@cache
def arguments() -> dict[str, type[c.Structure]]:
    """The struct of each function's arguments, by the function's name, in the interface's order."""
    return {name: struct(f"{name}_Args", fields) for name, fields in rows(FUNCTIONS)}


@lru_cache(maxsize=1024)
def extension_arguments(extension: str) -> dict[str, type[c.Structure]]:
    """The same for an extension's functions."""
    return {
        name: struct(f"{extension}_{name}_Args", fields, headed=fields[0][0] != "struct_size")
        for name, fields in rows(EXTENSIONS[extension][1])
    }


@cache
def all_arguments() -> dict[str, type[c.Structure]]:
    """Those of the interface, and of its extensions with the extension's name in front."""
    made = dict(arguments())
    for extension in EXTENSIONS:
        for name, kind in extension_arguments(extension).items():
            made[f"{extension}_{name}"] = kind
    return made


@lru_cache(maxsize=1024)
def extension_struct(extension: str) -> type[c.Structure]:
    """The struct of an extension's functions, behind the head of every extension."""
    functions = [(name, "p") for name in extension_arguments(extension)]
    head = [("struct_size", "z"), ("type", "i"), ("next", "p")]
    return struct(extension, head + functions, headed=False)


@cache
def structs() -> dict[str, type[c.Structure]]:
    """The structs of `STRUCTS`, by name."""
    return {name: struct(name, fields) for name, fields in rows(STRUCTS)}


@cache
def api_struct() -> type[c.Structure]:
    """The struct of all functions, as the interface hands it out."""
    functions = [(name, "p") for name in arguments()]
    version = [("version_size", "z"), ("version_extension", "p"), ("major", "i"), ("minor", "i")]
    return struct("Api", version + functions)
