from mlirhlo.formats.proto import shape_pb2 as _shape_pb2
from mlirhlo.formats.proto import sharding_pb2 as _sharding_pb2
from mlirhlo.formats.proto import op_attributes_pb2 as _op_attributes_pb2
from mlirhlo.formats.proto import debug_options_pb2 as _debug_options_pb2
from mlirhlo.formats.proto import config_pb2 as _config_pb2
from mlirhlo.formats.proto import gpu_target_pb2 as _gpu_target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OptionOverrideProto(_message.Message):
    __slots__ = ("string_field", "bool_field", "int_field", "double_field")
    STRING_FIELD_FIELD_NUMBER: _ClassVar[int]
    BOOL_FIELD_FIELD_NUMBER: _ClassVar[int]
    INT_FIELD_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_FIELD_FIELD_NUMBER: _ClassVar[int]
    string_field: str
    bool_field: bool
    int_field: int
    double_field: float
    def __init__(self, string_field: _Optional[str] = ..., bool_field: _Optional[bool] = ..., int_field: _Optional[int] = ..., double_field: _Optional[float] = ...) -> None: ...

class ExecutableBuildOptionsProto(_message.Message):
    __slots__ = ("device_ordinal", "result_layout", "debug_options", "num_replicas", "num_partitions", "use_spmd_partitioning", "use_auto_spmd_partitioning", "deduplicate_hlo", "device_assignment", "alias_passthrough_params", "run_backend_only", "allow_spmd_sharding_propagation_to_output", "comp_envs", "fdo_profile", "device_memory_size", "auto_spmd_partitioning_mesh_shape", "auto_spmd_partitioning_mesh_ids", "allow_spmd_sharding_propagation_to_parameters", "use_shardy_partitioner", "exec_time_optimization_effort", "memory_fitting_effort", "process_index", "process_count", "optimization_level", "memory_fitting_level", "slice_size")
    DEVICE_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    RESULT_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    DEBUG_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NUM_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    USE_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    USE_AUTO_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATE_HLO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ALIAS_PASSTHROUGH_PARAMS_FIELD_NUMBER: _ClassVar[int]
    RUN_BACKEND_ONLY_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    COMP_ENVS_FIELD_NUMBER: _ClassVar[int]
    FDO_PROFILE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_SHAPE_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_IDS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    USE_SHARDY_PARTITIONER_FIELD_NUMBER: _ClassVar[int]
    EXEC_TIME_OPTIMIZATION_EFFORT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_EFFORT_FIELD_NUMBER: _ClassVar[int]
    PROCESS_INDEX_FIELD_NUMBER: _ClassVar[int]
    PROCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SLICE_SIZE_FIELD_NUMBER: _ClassVar[int]
    device_ordinal: int
    result_layout: _shape_pb2.ShapeProto
    debug_options: _debug_options_pb2.DebugOptions
    num_replicas: int
    num_partitions: int
    use_spmd_partitioning: bool
    use_auto_spmd_partitioning: bool
    deduplicate_hlo: bool
    device_assignment: _sharding_pb2.DeviceAssignmentProto
    alias_passthrough_params: bool
    run_backend_only: bool
    allow_spmd_sharding_propagation_to_output: _containers.RepeatedScalarFieldContainer[bool]
    comp_envs: _config_pb2.CompilationEnvironmentsProto
    fdo_profile: bytes
    device_memory_size: int
    auto_spmd_partitioning_mesh_shape: _containers.RepeatedScalarFieldContainer[int]
    auto_spmd_partitioning_mesh_ids: _containers.RepeatedScalarFieldContainer[int]
    allow_spmd_sharding_propagation_to_parameters: _containers.RepeatedScalarFieldContainer[bool]
    use_shardy_partitioner: bool
    exec_time_optimization_effort: float
    memory_fitting_effort: float
    process_index: int
    process_count: int
    optimization_level: _config_pb2.ExecutionOptions.EffortLevel
    memory_fitting_level: _config_pb2.ExecutionOptions.EffortLevel
    slice_size: int
    def __init__(self, device_ordinal: _Optional[int] = ..., result_layout: _Optional[_Union[_shape_pb2.ShapeProto, _Mapping]] = ..., debug_options: _Optional[_Union[_debug_options_pb2.DebugOptions, _Mapping]] = ..., num_replicas: _Optional[int] = ..., num_partitions: _Optional[int] = ..., use_spmd_partitioning: _Optional[bool] = ..., use_auto_spmd_partitioning: _Optional[bool] = ..., deduplicate_hlo: _Optional[bool] = ..., device_assignment: _Optional[_Union[_sharding_pb2.DeviceAssignmentProto, _Mapping]] = ..., alias_passthrough_params: _Optional[bool] = ..., run_backend_only: _Optional[bool] = ..., allow_spmd_sharding_propagation_to_output: _Optional[_Iterable[bool]] = ..., comp_envs: _Optional[_Union[_config_pb2.CompilationEnvironmentsProto, _Mapping]] = ..., fdo_profile: _Optional[bytes] = ..., device_memory_size: _Optional[int] = ..., auto_spmd_partitioning_mesh_shape: _Optional[_Iterable[int]] = ..., auto_spmd_partitioning_mesh_ids: _Optional[_Iterable[int]] = ..., allow_spmd_sharding_propagation_to_parameters: _Optional[_Iterable[bool]] = ..., use_shardy_partitioner: _Optional[bool] = ..., exec_time_optimization_effort: _Optional[float] = ..., memory_fitting_effort: _Optional[float] = ..., process_index: _Optional[int] = ..., process_count: _Optional[int] = ..., optimization_level: _Optional[_Union[_config_pb2.ExecutionOptions.EffortLevel, str]] = ..., memory_fitting_level: _Optional[_Union[_config_pb2.ExecutionOptions.EffortLevel, str]] = ..., slice_size: _Optional[int] = ...) -> None: ...

class CompileOptionsProto(_message.Message):
    __slots__ = ("argument_layouts", "parameter_is_tupled_arguments", "executable_build_options", "compile_portable_executable", "profile_version", "serialized_multi_slice_config", "env_option_overrides", "target_config", "allow_in_place_mlir_modification", "matrix_unit_operand_precision", "compiler_variant")
    class EnvOptionOverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: OptionOverrideProto
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[OptionOverrideProto, _Mapping]] = ...) -> None: ...
    ARGUMENT_LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_IS_TUPLED_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    EXECUTABLE_BUILD_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    COMPILE_PORTABLE_EXECUTABLE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SERIALIZED_MULTI_SLICE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    ENV_OPTION_OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    TARGET_CONFIG_FIELD_NUMBER: _ClassVar[int]
    ALLOW_IN_PLACE_MLIR_MODIFICATION_FIELD_NUMBER: _ClassVar[int]
    MATRIX_UNIT_OPERAND_PRECISION_FIELD_NUMBER: _ClassVar[int]
    COMPILER_VARIANT_FIELD_NUMBER: _ClassVar[int]
    argument_layouts: _containers.RepeatedCompositeFieldContainer[_shape_pb2.ShapeProto]
    parameter_is_tupled_arguments: bool
    executable_build_options: ExecutableBuildOptionsProto
    compile_portable_executable: bool
    profile_version: int
    serialized_multi_slice_config: bytes
    env_option_overrides: _containers.MessageMap[str, OptionOverrideProto]
    target_config: _gpu_target_pb2.GpuTargetConfigProto
    allow_in_place_mlir_modification: bool
    matrix_unit_operand_precision: _op_attributes_pb2.PrecisionConfig.Precision
    compiler_variant: str
    def __init__(self, argument_layouts: _Optional[_Iterable[_Union[_shape_pb2.ShapeProto, _Mapping]]] = ..., parameter_is_tupled_arguments: _Optional[bool] = ..., executable_build_options: _Optional[_Union[ExecutableBuildOptionsProto, _Mapping]] = ..., compile_portable_executable: _Optional[bool] = ..., profile_version: _Optional[int] = ..., serialized_multi_slice_config: _Optional[bytes] = ..., env_option_overrides: _Optional[_Mapping[str, OptionOverrideProto]] = ..., target_config: _Optional[_Union[_gpu_target_pb2.GpuTargetConfigProto, _Mapping]] = ..., allow_in_place_mlir_modification: _Optional[bool] = ..., matrix_unit_operand_precision: _Optional[_Union[_op_attributes_pb2.PrecisionConfig.Precision, str]] = ..., compiler_variant: _Optional[str] = ...) -> None: ...
