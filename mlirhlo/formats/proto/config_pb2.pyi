from google.protobuf import any_pb2 as _any_pb2
from mlirhlo.formats.proto import shape_pb2 as _shape_pb2
from mlirhlo.formats.proto import sharding_pb2 as _sharding_pb2
from mlirhlo.formats.proto import op_attributes_pb2 as _op_attributes_pb2
from mlirhlo.formats.proto import module_pb2 as _module_pb2
from mlirhlo.formats.proto import debug_options_pb2 as _debug_options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompilationEnvironmentsProto(_message.Message):
    __slots__ = ("environments",)
    ENVIRONMENTS_FIELD_NUMBER: _ClassVar[int]
    environments: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, environments: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class ShardableValueUpdatePairProto(_message.Message):
    __slots__ = ("input_parameter_number", "parameter_shape_index", "output_shape_index")
    INPUT_PARAMETER_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
    input_parameter_number: int
    parameter_shape_index: _containers.RepeatedScalarFieldContainer[int]
    output_shape_index: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, input_parameter_number: _Optional[int] = ..., parameter_shape_index: _Optional[_Iterable[int]] = ..., output_shape_index: _Optional[_Iterable[int]] = ...) -> None: ...

class DeviceHandle(_message.Message):
    __slots__ = ("handle", "device_count")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_COUNT_FIELD_NUMBER: _ClassVar[int]
    handle: int
    device_count: int
    def __init__(self, handle: _Optional[int] = ..., device_count: _Optional[int] = ...) -> None: ...

class ExecutionOptions(_message.Message):
    __slots__ = ("shape_with_output_layout", "seed", "debug_options", "device_handles", "num_replicas", "device_assignment", "alias_passthrough_params", "num_partitions", "launch_id", "use_spmd_partitioning", "deduplicate_hlo", "allow_spmd_sharding_propagation_to_output", "use_auto_spmd_partitioning", "auto_spmd_partitioning_mesh_shape", "auto_spmd_partitioning_mesh_ids", "param_requires_broadcast_via_collectives", "allow_separate_sharding_programs", "shardable_value_update_pairs", "fdo_profile", "device_memory_size", "allow_spmd_sharding_propagation_to_parameters", "use_shardy_partitioner", "exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
    class EffortLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EFFORT_UNKNOWN: _ClassVar[ExecutionOptions.EffortLevel]
        EFFORT_O0: _ClassVar[ExecutionOptions.EffortLevel]
        EFFORT_O1: _ClassVar[ExecutionOptions.EffortLevel]
        EFFORT_O2: _ClassVar[ExecutionOptions.EffortLevel]
        EFFORT_O3: _ClassVar[ExecutionOptions.EffortLevel]
    EFFORT_UNKNOWN: ExecutionOptions.EffortLevel
    EFFORT_O0: ExecutionOptions.EffortLevel
    EFFORT_O1: ExecutionOptions.EffortLevel
    EFFORT_O2: ExecutionOptions.EffortLevel
    EFFORT_O3: ExecutionOptions.EffortLevel
    SHAPE_WITH_OUTPUT_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    DEBUG_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_HANDLES_FIELD_NUMBER: _ClassVar[int]
    NUM_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ALIAS_PASSTHROUGH_PARAMS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_ID_FIELD_NUMBER: _ClassVar[int]
    USE_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATE_HLO_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    USE_AUTO_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_SHAPE_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_IDS_FIELD_NUMBER: _ClassVar[int]
    PARAM_REQUIRES_BROADCAST_VIA_COLLECTIVES_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SEPARATE_SHARDING_PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    SHARDABLE_VALUE_UPDATE_PAIRS_FIELD_NUMBER: _ClassVar[int]
    FDO_PROFILE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    USE_SHARDY_PARTITIONER_FIELD_NUMBER: _ClassVar[int]
    EXEC_TIME_OPTIMIZATION_EFFORT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_EFFORT_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_LEVEL_FIELD_NUMBER: _ClassVar[int]
    shape_with_output_layout: _shape_pb2.ShapeProto
    seed: int
    debug_options: _debug_options_pb2.DebugOptions
    device_handles: _containers.RepeatedCompositeFieldContainer[DeviceHandle]
    num_replicas: int
    device_assignment: _sharding_pb2.DeviceAssignmentProto
    alias_passthrough_params: bool
    num_partitions: int
    launch_id: int
    use_spmd_partitioning: bool
    deduplicate_hlo: bool
    allow_spmd_sharding_propagation_to_output: _containers.RepeatedScalarFieldContainer[bool]
    use_auto_spmd_partitioning: bool
    auto_spmd_partitioning_mesh_shape: _containers.RepeatedScalarFieldContainer[int]
    auto_spmd_partitioning_mesh_ids: _containers.RepeatedScalarFieldContainer[int]
    param_requires_broadcast_via_collectives: _containers.RepeatedScalarFieldContainer[bool]
    allow_separate_sharding_programs: bool
    shardable_value_update_pairs: _containers.RepeatedCompositeFieldContainer[ShardableValueUpdatePairProto]
    fdo_profile: bytes
    device_memory_size: int
    allow_spmd_sharding_propagation_to_parameters: _containers.RepeatedScalarFieldContainer[bool]
    use_shardy_partitioner: bool
    exec_time_optimization_effort: float
    memory_fitting_effort: float
    optimization_level: ExecutionOptions.EffortLevel
    memory_fitting_level: ExecutionOptions.EffortLevel
    def __init__(self, shape_with_output_layout: _Optional[_Union[_shape_pb2.ShapeProto, _Mapping]] = ..., seed: _Optional[int] = ..., debug_options: _Optional[_Union[_debug_options_pb2.DebugOptions, _Mapping]] = ..., device_handles: _Optional[_Iterable[_Union[DeviceHandle, _Mapping]]] = ..., num_replicas: _Optional[int] = ..., device_assignment: _Optional[_Union[_sharding_pb2.DeviceAssignmentProto, _Mapping]] = ..., alias_passthrough_params: _Optional[bool] = ..., num_partitions: _Optional[int] = ..., launch_id: _Optional[int] = ..., use_spmd_partitioning: _Optional[bool] = ..., deduplicate_hlo: _Optional[bool] = ..., allow_spmd_sharding_propagation_to_output: _Optional[_Iterable[bool]] = ..., use_auto_spmd_partitioning: _Optional[bool] = ..., auto_spmd_partitioning_mesh_shape: _Optional[_Iterable[int]] = ..., auto_spmd_partitioning_mesh_ids: _Optional[_Iterable[int]] = ..., param_requires_broadcast_via_collectives: _Optional[_Iterable[bool]] = ..., allow_separate_sharding_programs: _Optional[bool] = ..., shardable_value_update_pairs: _Optional[_Iterable[_Union[ShardableValueUpdatePairProto, _Mapping]]] = ..., fdo_profile: _Optional[bytes] = ..., device_memory_size: _Optional[int] = ..., allow_spmd_sharding_propagation_to_parameters: _Optional[_Iterable[bool]] = ..., use_shardy_partitioner: _Optional[bool] = ..., exec_time_optimization_effort: _Optional[float] = ..., memory_fitting_effort: _Optional[float] = ..., optimization_level: _Optional[_Union[ExecutionOptions.EffortLevel, str]] = ..., memory_fitting_level: _Optional[_Union[ExecutionOptions.EffortLevel, str]] = ...) -> None: ...

class NodeShardingConfigProto(_message.Message):
    __slots__ = ("sharding", "nodes")
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    sharding: _sharding_pb2.OpSharding
    nodes: _containers.RepeatedCompositeFieldContainer[NodeShardingConfigProto]
    def __init__(self, sharding: _Optional[_Union[_sharding_pb2.OpSharding, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[NodeShardingConfigProto, _Mapping]]] = ...) -> None: ...

class ShardingConfigProto(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeShardingConfigProto]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeShardingConfigProto, _Mapping]]] = ...) -> None: ...

class ScheduleConfigProto(_message.Message):
    __slots__ = ("sequence",)
    class Instruction(_message.Message):
        __slots__ = ("name",)
        NAME_FIELD_NUMBER: _ClassVar[int]
        name: str
        def __init__(self, name: _Optional[str] = ...) -> None: ...
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: _containers.RepeatedCompositeFieldContainer[ScheduleConfigProto.Instruction]
    def __init__(self, sequence: _Optional[_Iterable[_Union[ScheduleConfigProto.Instruction, _Mapping]]] = ...) -> None: ...

class HloModuleConfigProto(_message.Message):
    __slots__ = ("entry_computation_layout", "seed", "launch_id", "replica_count", "num_partitions", "param_requires_broadcast_via_collectives", "use_spmd_partitioning", "use_auto_spmd_partitioning", "auto_spmd_partitioning_mesh_shape", "auto_spmd_partitioning_mesh_ids", "deduplicate_hlo", "intra_op_parallelism_threads", "device_type", "debug_options", "static_device_assignment", "shardable_value_update_pairs", "alias_passthrough_params", "content_aware_computation_sorting", "fusion_config_collection", "fusion_config", "dot_config", "layout_config", "memory_space_assignment_config", "phase_ordering_config", "phase_index", "allow_spmd_sharding_propagation_to_output", "analysis_allowance_map", "matrix_unit_operand_precision", "allow_separate_sharding_programs", "fdo_profile", "device_memory_size", "allow_spmd_sharding_propagation_to_parameters", "use_shardy_partitioner", "pre_simulation_device_assignment", "exec_time_optimization_effort", "memory_fitting_effort", "sharding_config", "optimization_level", "memory_fitting_level", "schedule_config", "partition_size", "page_size_kib")
    class FusionConfigCollection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OFF: _ClassVar[HloModuleConfigProto.FusionConfigCollection]
        PER_EDGE: _ClassVar[HloModuleConfigProto.FusionConfigCollection]
        PER_NODE: _ClassVar[HloModuleConfigProto.FusionConfigCollection]
    OFF: HloModuleConfigProto.FusionConfigCollection
    PER_EDGE: HloModuleConfigProto.FusionConfigCollection
    PER_NODE: HloModuleConfigProto.FusionConfigCollection
    class BoolList(_message.Message):
        __slots__ = ("vals",)
        VALS_FIELD_NUMBER: _ClassVar[int]
        vals: _containers.RepeatedScalarFieldContainer[bool]
        def __init__(self, vals: _Optional[_Iterable[bool]] = ...) -> None: ...
    class Int64List(_message.Message):
        __slots__ = ("vals",)
        VALS_FIELD_NUMBER: _ClassVar[int]
        vals: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, vals: _Optional[_Iterable[int]] = ...) -> None: ...
    class Int64ListList(_message.Message):
        __slots__ = ("lists",)
        LISTS_FIELD_NUMBER: _ClassVar[int]
        lists: _containers.RepeatedCompositeFieldContainer[HloModuleConfigProto.Int64List]
        def __init__(self, lists: _Optional[_Iterable[_Union[HloModuleConfigProto.Int64List, _Mapping]]] = ...) -> None: ...
    class DotConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: HloModuleConfigProto.Int64List
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[HloModuleConfigProto.Int64List, _Mapping]] = ...) -> None: ...
    class AnalysisAllowanceMapEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ENTRY_COMPUTATION_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_COUNT_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PARAM_REQUIRES_BROADCAST_VIA_COLLECTIVES_FIELD_NUMBER: _ClassVar[int]
    USE_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    USE_AUTO_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_SHAPE_FIELD_NUMBER: _ClassVar[int]
    AUTO_SPMD_PARTITIONING_MESH_IDS_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATE_HLO_FIELD_NUMBER: _ClassVar[int]
    INTRA_OP_PARALLELISM_THREADS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEBUG_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    STATIC_DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    SHARDABLE_VALUE_UPDATE_PAIRS_FIELD_NUMBER: _ClassVar[int]
    ALIAS_PASSTHROUGH_PARAMS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_AWARE_COMPUTATION_SORTING_FIELD_NUMBER: _ClassVar[int]
    FUSION_CONFIG_COLLECTION_FIELD_NUMBER: _ClassVar[int]
    FUSION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DOT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SPACE_ASSIGNMENT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PHASE_ORDERING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PHASE_INDEX_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ANALYSIS_ALLOWANCE_MAP_FIELD_NUMBER: _ClassVar[int]
    MATRIX_UNIT_OPERAND_PRECISION_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SEPARATE_SHARDING_PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    FDO_PROFILE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SPMD_SHARDING_PROPAGATION_TO_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    USE_SHARDY_PARTITIONER_FIELD_NUMBER: _ClassVar[int]
    PRE_SIMULATION_DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    EXEC_TIME_OPTIMIZATION_EFFORT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_EFFORT_FIELD_NUMBER: _ClassVar[int]
    SHARDING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FITTING_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARTITION_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_KIB_FIELD_NUMBER: _ClassVar[int]
    entry_computation_layout: _shape_pb2.ProgramShapeProto
    seed: int
    launch_id: int
    replica_count: int
    num_partitions: int
    param_requires_broadcast_via_collectives: _containers.RepeatedScalarFieldContainer[bool]
    use_spmd_partitioning: bool
    use_auto_spmd_partitioning: bool
    auto_spmd_partitioning_mesh_shape: _containers.RepeatedScalarFieldContainer[int]
    auto_spmd_partitioning_mesh_ids: _containers.RepeatedScalarFieldContainer[int]
    deduplicate_hlo: bool
    intra_op_parallelism_threads: int
    device_type: str
    debug_options: _debug_options_pb2.DebugOptions
    static_device_assignment: _sharding_pb2.DeviceAssignmentProto
    shardable_value_update_pairs: _containers.RepeatedCompositeFieldContainer[ShardableValueUpdatePairProto]
    alias_passthrough_params: bool
    content_aware_computation_sorting: bool
    fusion_config_collection: HloModuleConfigProto.FusionConfigCollection
    fusion_config: _containers.RepeatedCompositeFieldContainer[HloModuleConfigProto.BoolList]
    dot_config: _containers.MessageMap[str, HloModuleConfigProto.Int64List]
    layout_config: _containers.RepeatedCompositeFieldContainer[HloModuleConfigProto.Int64ListList]
    memory_space_assignment_config: _containers.RepeatedScalarFieldContainer[int]
    phase_ordering_config: _containers.RepeatedCompositeFieldContainer[HloModuleConfigProto.BoolList]
    phase_index: int
    allow_spmd_sharding_propagation_to_output: _containers.RepeatedScalarFieldContainer[bool]
    analysis_allowance_map: _containers.ScalarMap[str, int]
    matrix_unit_operand_precision: _op_attributes_pb2.PrecisionConfig.Precision
    allow_separate_sharding_programs: bool
    fdo_profile: bytes
    device_memory_size: int
    allow_spmd_sharding_propagation_to_parameters: _containers.RepeatedScalarFieldContainer[bool]
    use_shardy_partitioner: bool
    pre_simulation_device_assignment: _sharding_pb2.DeviceAssignmentProto
    exec_time_optimization_effort: float
    memory_fitting_effort: float
    sharding_config: ShardingConfigProto
    optimization_level: ExecutionOptions.EffortLevel
    memory_fitting_level: ExecutionOptions.EffortLevel
    schedule_config: ScheduleConfigProto
    partition_size: int
    page_size_kib: int
    def __init__(self, entry_computation_layout: _Optional[_Union[_shape_pb2.ProgramShapeProto, _Mapping]] = ..., seed: _Optional[int] = ..., launch_id: _Optional[int] = ..., replica_count: _Optional[int] = ..., num_partitions: _Optional[int] = ..., param_requires_broadcast_via_collectives: _Optional[_Iterable[bool]] = ..., use_spmd_partitioning: _Optional[bool] = ..., use_auto_spmd_partitioning: _Optional[bool] = ..., auto_spmd_partitioning_mesh_shape: _Optional[_Iterable[int]] = ..., auto_spmd_partitioning_mesh_ids: _Optional[_Iterable[int]] = ..., deduplicate_hlo: _Optional[bool] = ..., intra_op_parallelism_threads: _Optional[int] = ..., device_type: _Optional[str] = ..., debug_options: _Optional[_Union[_debug_options_pb2.DebugOptions, _Mapping]] = ..., static_device_assignment: _Optional[_Union[_sharding_pb2.DeviceAssignmentProto, _Mapping]] = ..., shardable_value_update_pairs: _Optional[_Iterable[_Union[ShardableValueUpdatePairProto, _Mapping]]] = ..., alias_passthrough_params: _Optional[bool] = ..., content_aware_computation_sorting: _Optional[bool] = ..., fusion_config_collection: _Optional[_Union[HloModuleConfigProto.FusionConfigCollection, str]] = ..., fusion_config: _Optional[_Iterable[_Union[HloModuleConfigProto.BoolList, _Mapping]]] = ..., dot_config: _Optional[_Mapping[str, HloModuleConfigProto.Int64List]] = ..., layout_config: _Optional[_Iterable[_Union[HloModuleConfigProto.Int64ListList, _Mapping]]] = ..., memory_space_assignment_config: _Optional[_Iterable[int]] = ..., phase_ordering_config: _Optional[_Iterable[_Union[HloModuleConfigProto.BoolList, _Mapping]]] = ..., phase_index: _Optional[int] = ..., allow_spmd_sharding_propagation_to_output: _Optional[_Iterable[bool]] = ..., analysis_allowance_map: _Optional[_Mapping[str, int]] = ..., matrix_unit_operand_precision: _Optional[_Union[_op_attributes_pb2.PrecisionConfig.Precision, str]] = ..., allow_separate_sharding_programs: _Optional[bool] = ..., fdo_profile: _Optional[bytes] = ..., device_memory_size: _Optional[int] = ..., allow_spmd_sharding_propagation_to_parameters: _Optional[_Iterable[bool]] = ..., use_shardy_partitioner: _Optional[bool] = ..., pre_simulation_device_assignment: _Optional[_Union[_sharding_pb2.DeviceAssignmentProto, _Mapping]] = ..., exec_time_optimization_effort: _Optional[float] = ..., memory_fitting_effort: _Optional[float] = ..., sharding_config: _Optional[_Union[ShardingConfigProto, _Mapping]] = ..., optimization_level: _Optional[_Union[ExecutionOptions.EffortLevel, str]] = ..., memory_fitting_level: _Optional[_Union[ExecutionOptions.EffortLevel, str]] = ..., schedule_config: _Optional[_Union[ScheduleConfigProto, _Mapping]] = ..., partition_size: _Optional[int] = ..., page_size_kib: _Optional[int] = ...) -> None: ...

class HloModuleProtoWithConfig(_message.Message):
    __slots__ = ("hlo_module", "config")
    HLO_MODULE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    hlo_module: _module_pb2.HloModuleProto
    config: HloModuleConfigProto
    def __init__(self, hlo_module: _Optional[_Union[_module_pb2.HloModuleProto, _Mapping]] = ..., config: _Optional[_Union[HloModuleConfigProto, _Mapping]] = ...) -> None: ...

class ScheduleProto(_message.Message):
    __slots__ = ("hlo_module", "computation_schedules")
    class Instruction(_message.Message):
        __slots__ = ("id", "start_timestamp_cycles", "end_timestamp_cycles", "memory_usage_after", "peak_memory_after")
        ID_FIELD_NUMBER: _ClassVar[int]
        START_TIMESTAMP_CYCLES_FIELD_NUMBER: _ClassVar[int]
        END_TIMESTAMP_CYCLES_FIELD_NUMBER: _ClassVar[int]
        MEMORY_USAGE_AFTER_FIELD_NUMBER: _ClassVar[int]
        PEAK_MEMORY_AFTER_FIELD_NUMBER: _ClassVar[int]
        id: int
        start_timestamp_cycles: float
        end_timestamp_cycles: float
        memory_usage_after: int
        peak_memory_after: int
        def __init__(self, id: _Optional[int] = ..., start_timestamp_cycles: _Optional[float] = ..., end_timestamp_cycles: _Optional[float] = ..., memory_usage_after: _Optional[int] = ..., peak_memory_after: _Optional[int] = ...) -> None: ...
    class SchedulerStatisticsProto(_message.Message):
        __slots__ = ("all_gather_wasted_cycles", "all_reduce_wasted_cycles", "collective_broadcast_wasted_cycles", "collective_permute_wasted_cycles", "all_to_all_wasted_cycles", "ragged_all_to_all_wasted_cycles", "reduce_scatter_wasted_cycles", "send_wasted_cycles", "recv_wasted_cycles", "call_wasted_cycles", "total_wasted_cycles", "total_cycles", "memory_pressure_peak")
        ALL_GATHER_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        ALL_REDUCE_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        COLLECTIVE_BROADCAST_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        COLLECTIVE_PERMUTE_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        ALL_TO_ALL_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        RAGGED_ALL_TO_ALL_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        REDUCE_SCATTER_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        SEND_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        RECV_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        CALL_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        TOTAL_WASTED_CYCLES_FIELD_NUMBER: _ClassVar[int]
        TOTAL_CYCLES_FIELD_NUMBER: _ClassVar[int]
        MEMORY_PRESSURE_PEAK_FIELD_NUMBER: _ClassVar[int]
        all_gather_wasted_cycles: float
        all_reduce_wasted_cycles: float
        collective_broadcast_wasted_cycles: float
        collective_permute_wasted_cycles: float
        all_to_all_wasted_cycles: float
        ragged_all_to_all_wasted_cycles: float
        reduce_scatter_wasted_cycles: float
        send_wasted_cycles: float
        recv_wasted_cycles: float
        call_wasted_cycles: float
        total_wasted_cycles: float
        total_cycles: float
        memory_pressure_peak: int
        def __init__(self, all_gather_wasted_cycles: _Optional[float] = ..., all_reduce_wasted_cycles: _Optional[float] = ..., collective_broadcast_wasted_cycles: _Optional[float] = ..., collective_permute_wasted_cycles: _Optional[float] = ..., all_to_all_wasted_cycles: _Optional[float] = ..., ragged_all_to_all_wasted_cycles: _Optional[float] = ..., reduce_scatter_wasted_cycles: _Optional[float] = ..., send_wasted_cycles: _Optional[float] = ..., recv_wasted_cycles: _Optional[float] = ..., call_wasted_cycles: _Optional[float] = ..., total_wasted_cycles: _Optional[float] = ..., total_cycles: _Optional[float] = ..., memory_pressure_peak: _Optional[int] = ...) -> None: ...
    class ComputationScheduleProto(_message.Message):
        __slots__ = ("computation_id", "instructions", "scheduler_statistics", "cycles_per_microsecond")
        COMPUTATION_ID_FIELD_NUMBER: _ClassVar[int]
        INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
        SCHEDULER_STATISTICS_FIELD_NUMBER: _ClassVar[int]
        CYCLES_PER_MICROSECOND_FIELD_NUMBER: _ClassVar[int]
        computation_id: int
        instructions: _containers.RepeatedCompositeFieldContainer[ScheduleProto.Instruction]
        scheduler_statistics: ScheduleProto.SchedulerStatisticsProto
        cycles_per_microsecond: int
        def __init__(self, computation_id: _Optional[int] = ..., instructions: _Optional[_Iterable[_Union[ScheduleProto.Instruction, _Mapping]]] = ..., scheduler_statistics: _Optional[_Union[ScheduleProto.SchedulerStatisticsProto, _Mapping]] = ..., cycles_per_microsecond: _Optional[int] = ...) -> None: ...
    HLO_MODULE_FIELD_NUMBER: _ClassVar[int]
    COMPUTATION_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    hlo_module: _module_pb2.HloModuleProto
    computation_schedules: _containers.RepeatedCompositeFieldContainer[ScheduleProto.ComputationScheduleProto]
    def __init__(self, hlo_module: _Optional[_Union[_module_pb2.HloModuleProto, _Mapping]] = ..., computation_schedules: _Optional[_Iterable[_Union[ScheduleProto.ComputationScheduleProto, _Mapping]]] = ...) -> None: ...
