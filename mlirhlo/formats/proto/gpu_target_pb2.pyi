from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CudaComputeCapabilityProto(_message.Message):
    __slots__ = ("major", "minor", "feature_extension")
    class FeatureExtension(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[CudaComputeCapabilityProto.FeatureExtension]
        NONE: _ClassVar[CudaComputeCapabilityProto.FeatureExtension]
        ACCELERATED_FEATURES: _ClassVar[CudaComputeCapabilityProto.FeatureExtension]
        FAMILY_COMPATIBLE_FEATURES: _ClassVar[CudaComputeCapabilityProto.FeatureExtension]
    UNSPECIFIED: CudaComputeCapabilityProto.FeatureExtension
    NONE: CudaComputeCapabilityProto.FeatureExtension
    ACCELERATED_FEATURES: CudaComputeCapabilityProto.FeatureExtension
    FAMILY_COMPATIBLE_FEATURES: CudaComputeCapabilityProto.FeatureExtension
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    FEATURE_EXTENSION_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    feature_extension: CudaComputeCapabilityProto.FeatureExtension
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ..., feature_extension: _Optional[_Union[CudaComputeCapabilityProto.FeatureExtension, str]] = ...) -> None: ...

class RocmComputeCapabilityProto(_message.Message):
    __slots__ = ("gcn_arch_name",)
    GCN_ARCH_NAME_FIELD_NUMBER: _ClassVar[int]
    gcn_arch_name: str
    def __init__(self, gcn_arch_name: _Optional[str] = ...) -> None: ...

class OneAPIComputeCapabilityProto(_message.Message):
    __slots__ = ("architecture", "variant")
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    architecture: str
    variant: str
    def __init__(self, architecture: _Optional[str] = ..., variant: _Optional[str] = ...) -> None: ...

class ExecutionUnitDescriptionProto(_message.Message):
    __slots__ = ("rate_infos",)
    class RateInfoProto(_message.Message):
        __slots__ = ("clock_rate_ghz", "units_per_core", "ops_per_clock")
        CLOCK_RATE_GHZ_FIELD_NUMBER: _ClassVar[int]
        UNITS_PER_CORE_FIELD_NUMBER: _ClassVar[int]
        OPS_PER_CLOCK_FIELD_NUMBER: _ClassVar[int]
        clock_rate_ghz: float
        units_per_core: int
        ops_per_clock: int
        def __init__(self, clock_rate_ghz: _Optional[float] = ..., units_per_core: _Optional[int] = ..., ops_per_clock: _Optional[int] = ...) -> None: ...
    class RateInfosEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: ExecutionUnitDescriptionProto.RateInfoProto
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[ExecutionUnitDescriptionProto.RateInfoProto, _Mapping]] = ...) -> None: ...
    RATE_INFOS_FIELD_NUMBER: _ClassVar[int]
    rate_infos: _containers.MessageMap[int, ExecutionUnitDescriptionProto.RateInfoProto]
    def __init__(self, rate_infos: _Optional[_Mapping[int, ExecutionUnitDescriptionProto.RateInfoProto]] = ...) -> None: ...

class DeviceInterconnectInfoProto(_message.Message):
    __slots__ = ("active_links", "cluster_uuid", "clique_id")
    ACTIVE_LINKS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_UUID_FIELD_NUMBER: _ClassVar[int]
    CLIQUE_ID_FIELD_NUMBER: _ClassVar[int]
    active_links: int
    cluster_uuid: str
    clique_id: str
    def __init__(self, active_links: _Optional[int] = ..., cluster_uuid: _Optional[str] = ..., clique_id: _Optional[str] = ...) -> None: ...

class GpuDeviceInfoProto(_message.Message):
    __slots__ = ("threads_per_block_limit", "threads_per_warp", "shared_memory_per_block", "shared_memory_per_core", "threads_per_core_limit", "core_count", "fpus_per_core", "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z", "memory_bandwidth", "l2_cache_size", "clock_rate_ghz", "device_memory_size", "shared_memory_per_block_optin", "cuda_compute_capability", "rocm_compute_capability", "oneapi_compute_capability", "registers_per_core_limit", "registers_per_block_limit", "scalar_unit_description", "matrix_unit_description", "driver_version", "kernel_mode_driver_version", "runtime_version", "compile_time_toolkit_version", "dnn_version", "cub_version", "device_interconnect_info", "device_vendor", "platform_version", "pci_bus_id", "name", "model_str", "numa_node", "thread_dim_limit_x", "thread_dim_limit_y", "thread_dim_limit_z", "device_address_bits", "pcie_bandwidth", "ecc_enabled")
    THREADS_PER_BLOCK_LIMIT_FIELD_NUMBER: _ClassVar[int]
    THREADS_PER_WARP_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_PER_CORE_FIELD_NUMBER: _ClassVar[int]
    THREADS_PER_CORE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CORE_COUNT_FIELD_NUMBER: _ClassVar[int]
    FPUS_PER_CORE_FIELD_NUMBER: _ClassVar[int]
    BLOCK_DIM_LIMIT_X_FIELD_NUMBER: _ClassVar[int]
    BLOCK_DIM_LIMIT_Y_FIELD_NUMBER: _ClassVar[int]
    BLOCK_DIM_LIMIT_Z_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BANDWIDTH_FIELD_NUMBER: _ClassVar[int]
    L2_CACHE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CLOCK_RATE_GHZ_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_PER_BLOCK_OPTIN_FIELD_NUMBER: _ClassVar[int]
    CUDA_COMPUTE_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    ROCM_COMPUTE_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    ONEAPI_COMPUTE_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_PER_CORE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_PER_BLOCK_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SCALAR_UNIT_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MATRIX_UNIT_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    KERNEL_MODE_DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMPILE_TIME_TOOLKIT_VERSION_FIELD_NUMBER: _ClassVar[int]
    DNN_VERSION_FIELD_NUMBER: _ClassVar[int]
    CUB_VERSION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_INTERCONNECT_INFO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_VENDOR_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_VERSION_FIELD_NUMBER: _ClassVar[int]
    PCI_BUS_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_STR_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    THREAD_DIM_LIMIT_X_FIELD_NUMBER: _ClassVar[int]
    THREAD_DIM_LIMIT_Y_FIELD_NUMBER: _ClassVar[int]
    THREAD_DIM_LIMIT_Z_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ADDRESS_BITS_FIELD_NUMBER: _ClassVar[int]
    PCIE_BANDWIDTH_FIELD_NUMBER: _ClassVar[int]
    ECC_ENABLED_FIELD_NUMBER: _ClassVar[int]
    threads_per_block_limit: int
    threads_per_warp: int
    shared_memory_per_block: int
    shared_memory_per_core: int
    threads_per_core_limit: int
    core_count: int
    fpus_per_core: int
    block_dim_limit_x: int
    block_dim_limit_y: int
    block_dim_limit_z: int
    memory_bandwidth: int
    l2_cache_size: int
    clock_rate_ghz: float
    device_memory_size: int
    shared_memory_per_block_optin: int
    cuda_compute_capability: CudaComputeCapabilityProto
    rocm_compute_capability: RocmComputeCapabilityProto
    oneapi_compute_capability: OneAPIComputeCapabilityProto
    registers_per_core_limit: int
    registers_per_block_limit: int
    scalar_unit_description: ExecutionUnitDescriptionProto
    matrix_unit_description: ExecutionUnitDescriptionProto
    driver_version: str
    kernel_mode_driver_version: str
    runtime_version: str
    compile_time_toolkit_version: str
    dnn_version: str
    cub_version: str
    device_interconnect_info: DeviceInterconnectInfoProto
    device_vendor: str
    platform_version: str
    pci_bus_id: str
    name: str
    model_str: str
    numa_node: int
    thread_dim_limit_x: int
    thread_dim_limit_y: int
    thread_dim_limit_z: int
    device_address_bits: int
    pcie_bandwidth: int
    ecc_enabled: bool
    def __init__(self, threads_per_block_limit: _Optional[int] = ..., threads_per_warp: _Optional[int] = ..., shared_memory_per_block: _Optional[int] = ..., shared_memory_per_core: _Optional[int] = ..., threads_per_core_limit: _Optional[int] = ..., core_count: _Optional[int] = ..., fpus_per_core: _Optional[int] = ..., block_dim_limit_x: _Optional[int] = ..., block_dim_limit_y: _Optional[int] = ..., block_dim_limit_z: _Optional[int] = ..., memory_bandwidth: _Optional[int] = ..., l2_cache_size: _Optional[int] = ..., clock_rate_ghz: _Optional[float] = ..., device_memory_size: _Optional[int] = ..., shared_memory_per_block_optin: _Optional[int] = ..., cuda_compute_capability: _Optional[_Union[CudaComputeCapabilityProto, _Mapping]] = ..., rocm_compute_capability: _Optional[_Union[RocmComputeCapabilityProto, _Mapping]] = ..., oneapi_compute_capability: _Optional[_Union[OneAPIComputeCapabilityProto, _Mapping]] = ..., registers_per_core_limit: _Optional[int] = ..., registers_per_block_limit: _Optional[int] = ..., scalar_unit_description: _Optional[_Union[ExecutionUnitDescriptionProto, _Mapping]] = ..., matrix_unit_description: _Optional[_Union[ExecutionUnitDescriptionProto, _Mapping]] = ..., driver_version: _Optional[str] = ..., kernel_mode_driver_version: _Optional[str] = ..., runtime_version: _Optional[str] = ..., compile_time_toolkit_version: _Optional[str] = ..., dnn_version: _Optional[str] = ..., cub_version: _Optional[str] = ..., device_interconnect_info: _Optional[_Union[DeviceInterconnectInfoProto, _Mapping]] = ..., device_vendor: _Optional[str] = ..., platform_version: _Optional[str] = ..., pci_bus_id: _Optional[str] = ..., name: _Optional[str] = ..., model_str: _Optional[str] = ..., numa_node: _Optional[int] = ..., thread_dim_limit_x: _Optional[int] = ..., thread_dim_limit_y: _Optional[int] = ..., thread_dim_limit_z: _Optional[int] = ..., device_address_bits: _Optional[int] = ..., pcie_bandwidth: _Optional[int] = ..., ecc_enabled: _Optional[bool] = ...) -> None: ...

class DnnVersionInfoProto(_message.Message):
    __slots__ = ("major", "minor", "patch")
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    patch: int
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ..., patch: _Optional[int] = ...) -> None: ...

class RuntimeVersionProto(_message.Message):
    __slots__ = ("major", "minor", "patch")
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    patch: int
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ..., patch: _Optional[int] = ...) -> None: ...

class GpuTargetConfigProto(_message.Message):
    __slots__ = ("gpu_device_info", "platform_name", "dnn_version_info", "device_description_str", "runtime_version")
    GPU_DEVICE_INFO_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_NAME_FIELD_NUMBER: _ClassVar[int]
    DNN_VERSION_INFO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_DESCRIPTION_STR_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSION_FIELD_NUMBER: _ClassVar[int]
    gpu_device_info: GpuDeviceInfoProto
    platform_name: str
    dnn_version_info: DnnVersionInfoProto
    device_description_str: str
    runtime_version: RuntimeVersionProto
    def __init__(self, gpu_device_info: _Optional[_Union[GpuDeviceInfoProto, _Mapping]] = ..., platform_name: _Optional[str] = ..., dnn_version_info: _Optional[_Union[DnnVersionInfoProto, _Mapping]] = ..., device_description_str: _Optional[str] = ..., runtime_version: _Optional[_Union[RuntimeVersionProto, _Mapping]] = ...) -> None: ...
