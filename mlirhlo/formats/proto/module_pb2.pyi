from mlirhlo.formats.proto import shape_pb2 as _shape_pb2
from mlirhlo.formats.proto import literal_pb2 as _literal_pb2
from mlirhlo.formats.proto import metadata_pb2 as _metadata_pb2
from mlirhlo.formats.proto import sharding_pb2 as _sharding_pb2
from mlirhlo.formats.proto import op_attributes_pb2 as _op_attributes_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CustomCallSchedule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCHEDULE_NONE: _ClassVar[CustomCallSchedule]
    SCHEDULE_LATEST: _ClassVar[CustomCallSchedule]
    SCHEDULE_EARLIEST: _ClassVar[CustomCallSchedule]

class CustomCallApiVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    API_VERSION_UNSPECIFIED: _ClassVar[CustomCallApiVersion]
    API_VERSION_ORIGINAL: _ClassVar[CustomCallApiVersion]
    API_VERSION_STATUS_RETURNING: _ClassVar[CustomCallApiVersion]
    API_VERSION_STATUS_RETURNING_UNIFIED: _ClassVar[CustomCallApiVersion]
    API_VERSION_TYPED_FFI: _ClassVar[CustomCallApiVersion]

class TriState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRI_STATE_UNSPECIFIED: _ClassVar[TriState]
    TRI_STATE_TRUE: _ClassVar[TriState]
    TRI_STATE_FALSE: _ClassVar[TriState]

class ConvolutionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVOLUTION_KIND_UNSET: _ClassVar[ConvolutionKind]
    CONVOLUTION_KIND_FPROP: _ClassVar[ConvolutionKind]
    CONVOLUTION_KIND_DGRAD: _ClassVar[ConvolutionKind]
    CONVOLUTION_KIND_WGRAD: _ClassVar[ConvolutionKind]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNDEFINED_ALIAS: _ClassVar[Kind]
    MAY_ALIAS: _ClassVar[Kind]
    MUST_ALIAS: _ClassVar[Kind]
SCHEDULE_NONE: CustomCallSchedule
SCHEDULE_LATEST: CustomCallSchedule
SCHEDULE_EARLIEST: CustomCallSchedule
API_VERSION_UNSPECIFIED: CustomCallApiVersion
API_VERSION_ORIGINAL: CustomCallApiVersion
API_VERSION_STATUS_RETURNING: CustomCallApiVersion
API_VERSION_STATUS_RETURNING_UNIFIED: CustomCallApiVersion
API_VERSION_TYPED_FFI: CustomCallApiVersion
TRI_STATE_UNSPECIFIED: TriState
TRI_STATE_TRUE: TriState
TRI_STATE_FALSE: TriState
CONVOLUTION_KIND_UNSET: ConvolutionKind
CONVOLUTION_KIND_FPROP: ConvolutionKind
CONVOLUTION_KIND_DGRAD: ConvolutionKind
CONVOLUTION_KIND_WGRAD: ConvolutionKind
UNDEFINED_ALIAS: Kind
MAY_ALIAS: Kind
MUST_ALIAS: Kind

class HloInstructionProto(_message.Message):
    __slots__ = ("name", "opcode", "shape", "metadata", "literal", "parameter_number", "fusion_kind", "tuple_index", "dimensions", "window", "convolution_dimension_numbers", "slice_dimensions", "exponent_bits", "mantissa_bits", "dynamic_slice_sizes", "padding_config", "outfeed_config", "distribution", "epsilon", "feature_index", "channel_id", "infeed_config", "custom_call_target", "outfeed_shape", "dot_dimension_numbers", "fft_type", "fft_length", "gather_dimension_numbers", "gather_slice_sizes", "id", "operand_ids", "control_predecessor_ids", "called_computation_ids", "sharding", "backend_config", "all_reduce_id", "is_host_transfer", "scatter_dimension_numbers", "replica_groups", "feature_group_count", "precision_config", "source_target_pairs", "domain_entry_sharding", "domain_exit_sharding", "constrain_layout", "operand_shapes_with_layout", "batch_group_count", "triangular_solve_options", "is_stable", "parameter_replication", "cholesky_options", "comparison_direction", "custom_call_has_side_effect", "delta", "indices_are_sorted", "frontend_attributes", "unique_indices", "rng_algorithm", "use_global_device_ids", "comparison_type", "is_cross_program_prefetch", "output_operand_aliasing", "padding_type", "custom_call_schedule", "custom_call_api_version", "async_execution_thread", "cross_program_prefetch_index", "k", "statistics_viz", "largest", "collective_device_list", "iota_collective_device_list", "mesh_axes_replica_group_list", "original_value", "is_composite", "ragged_dot_dimension_numbers", "result_accuracy", "is_reverse", "num_carries", "is_associative", "conv_kind", "sparsity_config", "backend_config_payload", "has_dynamic_root", "block_scaling_config", "comparison_order", "shuffle_mode")
    class SliceDimensions(_message.Message):
        __slots__ = ("start", "limit", "stride")
        START_FIELD_NUMBER: _ClassVar[int]
        LIMIT_FIELD_NUMBER: _ClassVar[int]
        STRIDE_FIELD_NUMBER: _ClassVar[int]
        start: int
        limit: int
        stride: int
        def __init__(self, start: _Optional[int] = ..., limit: _Optional[int] = ..., stride: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPCODE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_NUMBER_FIELD_NUMBER: _ClassVar[int]
    FUSION_KIND_FIELD_NUMBER: _ClassVar[int]
    TUPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    CONVOLUTION_DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    SLICE_DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    EXPONENT_BITS_FIELD_NUMBER: _ClassVar[int]
    MANTISSA_BITS_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_SLICE_SIZES_FIELD_NUMBER: _ClassVar[int]
    PADDING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    OUTFEED_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    FEATURE_INDEX_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    INFEED_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CALL_TARGET_FIELD_NUMBER: _ClassVar[int]
    OUTFEED_SHAPE_FIELD_NUMBER: _ClassVar[int]
    DOT_DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    FFT_TYPE_FIELD_NUMBER: _ClassVar[int]
    FFT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    GATHER_DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    GATHER_SLICE_SIZES_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    OPERAND_IDS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PREDECESSOR_IDS_FIELD_NUMBER: _ClassVar[int]
    CALLED_COMPUTATION_IDS_FIELD_NUMBER: _ClassVar[int]
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CONFIG_FIELD_NUMBER: _ClassVar[int]
    ALL_REDUCE_ID_FIELD_NUMBER: _ClassVar[int]
    IS_HOST_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    SCATTER_DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    REPLICA_GROUPS_FIELD_NUMBER: _ClassVar[int]
    FEATURE_GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    PRECISION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TARGET_PAIRS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_ENTRY_SHARDING_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_EXIT_SHARDING_FIELD_NUMBER: _ClassVar[int]
    CONSTRAIN_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    OPERAND_SHAPES_WITH_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    BATCH_GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRIANGULAR_SOLVE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    IS_STABLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_REPLICATION_FIELD_NUMBER: _ClassVar[int]
    CHOLESKY_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_DIRECTION_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CALL_HAS_SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    INDICES_ARE_SORTED_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_INDICES_FIELD_NUMBER: _ClassVar[int]
    RNG_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    USE_GLOBAL_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_TYPE_FIELD_NUMBER: _ClassVar[int]
    IS_CROSS_PROGRAM_PREFETCH_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OPERAND_ALIASING_FIELD_NUMBER: _ClassVar[int]
    PADDING_TYPE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CALL_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CALL_API_VERSION_FIELD_NUMBER: _ClassVar[int]
    ASYNC_EXECUTION_THREAD_FIELD_NUMBER: _ClassVar[int]
    CROSS_PROGRAM_PREFETCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_VIZ_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    COLLECTIVE_DEVICE_LIST_FIELD_NUMBER: _ClassVar[int]
    IOTA_COLLECTIVE_DEVICE_LIST_FIELD_NUMBER: _ClassVar[int]
    MESH_AXES_REPLICA_GROUP_LIST_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_COMPOSITE_FIELD_NUMBER: _ClassVar[int]
    RAGGED_DOT_DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    RESULT_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    IS_REVERSE_FIELD_NUMBER: _ClassVar[int]
    NUM_CARRIES_FIELD_NUMBER: _ClassVar[int]
    IS_ASSOCIATIVE_FIELD_NUMBER: _ClassVar[int]
    CONV_KIND_FIELD_NUMBER: _ClassVar[int]
    SPARSITY_CONFIG_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CONFIG_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    HAS_DYNAMIC_ROOT_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SCALING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_ORDER_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    opcode: str
    shape: _shape_pb2.ShapeProto
    metadata: _metadata_pb2.OpMetadata
    literal: _literal_pb2.LiteralProto
    parameter_number: int
    fusion_kind: str
    tuple_index: int
    dimensions: _containers.RepeatedScalarFieldContainer[int]
    window: _op_attributes_pb2.Window
    convolution_dimension_numbers: _op_attributes_pb2.ConvolutionDimensionNumbers
    slice_dimensions: _containers.RepeatedCompositeFieldContainer[HloInstructionProto.SliceDimensions]
    exponent_bits: int
    mantissa_bits: int
    dynamic_slice_sizes: _containers.RepeatedScalarFieldContainer[int]
    padding_config: _op_attributes_pb2.PaddingConfig
    outfeed_config: bytes
    distribution: _op_attributes_pb2.RandomDistribution
    epsilon: float
    feature_index: int
    channel_id: int
    infeed_config: bytes
    custom_call_target: str
    outfeed_shape: _shape_pb2.ShapeProto
    dot_dimension_numbers: _op_attributes_pb2.DotDimensionNumbers
    fft_type: _op_attributes_pb2.FftType
    fft_length: _containers.RepeatedScalarFieldContainer[int]
    gather_dimension_numbers: _op_attributes_pb2.GatherDimensionNumbers
    gather_slice_sizes: _containers.RepeatedScalarFieldContainer[int]
    id: int
    operand_ids: _containers.RepeatedScalarFieldContainer[int]
    control_predecessor_ids: _containers.RepeatedScalarFieldContainer[int]
    called_computation_ids: _containers.RepeatedScalarFieldContainer[int]
    sharding: _sharding_pb2.OpSharding
    backend_config: bytes
    all_reduce_id: int
    is_host_transfer: bool
    scatter_dimension_numbers: _op_attributes_pb2.ScatterDimensionNumbers
    replica_groups: _containers.RepeatedCompositeFieldContainer[_sharding_pb2.ReplicaGroup]
    feature_group_count: int
    precision_config: _op_attributes_pb2.PrecisionConfig
    source_target_pairs: _containers.RepeatedCompositeFieldContainer[_sharding_pb2.SourceTarget]
    domain_entry_sharding: _sharding_pb2.OpSharding
    domain_exit_sharding: _sharding_pb2.OpSharding
    constrain_layout: bool
    operand_shapes_with_layout: _containers.RepeatedCompositeFieldContainer[_shape_pb2.ShapeProto]
    batch_group_count: int
    triangular_solve_options: _op_attributes_pb2.TriangularSolveOptions
    is_stable: bool
    parameter_replication: _sharding_pb2.ParameterReplication
    cholesky_options: _op_attributes_pb2.CholeskyOptions
    comparison_direction: str
    custom_call_has_side_effect: bool
    delta: int
    indices_are_sorted: bool
    frontend_attributes: _metadata_pb2.FrontendAttributes
    unique_indices: bool
    rng_algorithm: _op_attributes_pb2.RandomAlgorithm
    use_global_device_ids: bool
    comparison_type: str
    is_cross_program_prefetch: bool
    output_operand_aliasing: _containers.RepeatedCompositeFieldContainer[_op_attributes_pb2.OutputOperandAliasing]
    padding_type: _op_attributes_pb2.PaddingType
    custom_call_schedule: CustomCallSchedule
    custom_call_api_version: CustomCallApiVersion
    async_execution_thread: str
    cross_program_prefetch_index: int
    k: int
    statistics_viz: _metadata_pb2.StatisticsViz
    largest: bool
    collective_device_list: _sharding_pb2.CollectiveDeviceListProto
    iota_collective_device_list: _sharding_pb2.IotaReplicaGroupListProto
    mesh_axes_replica_group_list: _sharding_pb2.MeshAxesReplicaGroupListProto
    original_value: _metadata_pb2.OriginalValueProto
    is_composite: bool
    ragged_dot_dimension_numbers: _op_attributes_pb2.RaggedDotDimensionNumbers
    result_accuracy: _op_attributes_pb2.ResultAccuracy
    is_reverse: bool
    num_carries: int
    is_associative: TriState
    conv_kind: ConvolutionKind
    sparsity_config: _op_attributes_pb2.SparsityConfig
    backend_config_payload: _metadata_pb2.Payload
    has_dynamic_root: bool
    block_scaling_config: _op_attributes_pb2.BlockScalingConfig
    comparison_order: str
    shuffle_mode: _op_attributes_pb2.ShuffleMode
    def __init__(self, name: _Optional[str] = ..., opcode: _Optional[str] = ..., shape: _Optional[_Union[_shape_pb2.ShapeProto, _Mapping]] = ..., metadata: _Optional[_Union[_metadata_pb2.OpMetadata, _Mapping]] = ..., literal: _Optional[_Union[_literal_pb2.LiteralProto, _Mapping]] = ..., parameter_number: _Optional[int] = ..., fusion_kind: _Optional[str] = ..., tuple_index: _Optional[int] = ..., dimensions: _Optional[_Iterable[int]] = ..., window: _Optional[_Union[_op_attributes_pb2.Window, _Mapping]] = ..., convolution_dimension_numbers: _Optional[_Union[_op_attributes_pb2.ConvolutionDimensionNumbers, _Mapping]] = ..., slice_dimensions: _Optional[_Iterable[_Union[HloInstructionProto.SliceDimensions, _Mapping]]] = ..., exponent_bits: _Optional[int] = ..., mantissa_bits: _Optional[int] = ..., dynamic_slice_sizes: _Optional[_Iterable[int]] = ..., padding_config: _Optional[_Union[_op_attributes_pb2.PaddingConfig, _Mapping]] = ..., outfeed_config: _Optional[bytes] = ..., distribution: _Optional[_Union[_op_attributes_pb2.RandomDistribution, str]] = ..., epsilon: _Optional[float] = ..., feature_index: _Optional[int] = ..., channel_id: _Optional[int] = ..., infeed_config: _Optional[bytes] = ..., custom_call_target: _Optional[str] = ..., outfeed_shape: _Optional[_Union[_shape_pb2.ShapeProto, _Mapping]] = ..., dot_dimension_numbers: _Optional[_Union[_op_attributes_pb2.DotDimensionNumbers, _Mapping]] = ..., fft_type: _Optional[_Union[_op_attributes_pb2.FftType, str]] = ..., fft_length: _Optional[_Iterable[int]] = ..., gather_dimension_numbers: _Optional[_Union[_op_attributes_pb2.GatherDimensionNumbers, _Mapping]] = ..., gather_slice_sizes: _Optional[_Iterable[int]] = ..., id: _Optional[int] = ..., operand_ids: _Optional[_Iterable[int]] = ..., control_predecessor_ids: _Optional[_Iterable[int]] = ..., called_computation_ids: _Optional[_Iterable[int]] = ..., sharding: _Optional[_Union[_sharding_pb2.OpSharding, _Mapping]] = ..., backend_config: _Optional[bytes] = ..., all_reduce_id: _Optional[int] = ..., is_host_transfer: _Optional[bool] = ..., scatter_dimension_numbers: _Optional[_Union[_op_attributes_pb2.ScatterDimensionNumbers, _Mapping]] = ..., replica_groups: _Optional[_Iterable[_Union[_sharding_pb2.ReplicaGroup, _Mapping]]] = ..., feature_group_count: _Optional[int] = ..., precision_config: _Optional[_Union[_op_attributes_pb2.PrecisionConfig, _Mapping]] = ..., source_target_pairs: _Optional[_Iterable[_Union[_sharding_pb2.SourceTarget, _Mapping]]] = ..., domain_entry_sharding: _Optional[_Union[_sharding_pb2.OpSharding, _Mapping]] = ..., domain_exit_sharding: _Optional[_Union[_sharding_pb2.OpSharding, _Mapping]] = ..., constrain_layout: _Optional[bool] = ..., operand_shapes_with_layout: _Optional[_Iterable[_Union[_shape_pb2.ShapeProto, _Mapping]]] = ..., batch_group_count: _Optional[int] = ..., triangular_solve_options: _Optional[_Union[_op_attributes_pb2.TriangularSolveOptions, _Mapping]] = ..., is_stable: _Optional[bool] = ..., parameter_replication: _Optional[_Union[_sharding_pb2.ParameterReplication, _Mapping]] = ..., cholesky_options: _Optional[_Union[_op_attributes_pb2.CholeskyOptions, _Mapping]] = ..., comparison_direction: _Optional[str] = ..., custom_call_has_side_effect: _Optional[bool] = ..., delta: _Optional[int] = ..., indices_are_sorted: _Optional[bool] = ..., frontend_attributes: _Optional[_Union[_metadata_pb2.FrontendAttributes, _Mapping]] = ..., unique_indices: _Optional[bool] = ..., rng_algorithm: _Optional[_Union[_op_attributes_pb2.RandomAlgorithm, str]] = ..., use_global_device_ids: _Optional[bool] = ..., comparison_type: _Optional[str] = ..., is_cross_program_prefetch: _Optional[bool] = ..., output_operand_aliasing: _Optional[_Iterable[_Union[_op_attributes_pb2.OutputOperandAliasing, _Mapping]]] = ..., padding_type: _Optional[_Union[_op_attributes_pb2.PaddingType, str]] = ..., custom_call_schedule: _Optional[_Union[CustomCallSchedule, str]] = ..., custom_call_api_version: _Optional[_Union[CustomCallApiVersion, str]] = ..., async_execution_thread: _Optional[str] = ..., cross_program_prefetch_index: _Optional[int] = ..., k: _Optional[int] = ..., statistics_viz: _Optional[_Union[_metadata_pb2.StatisticsViz, _Mapping]] = ..., largest: _Optional[bool] = ..., collective_device_list: _Optional[_Union[_sharding_pb2.CollectiveDeviceListProto, _Mapping]] = ..., iota_collective_device_list: _Optional[_Union[_sharding_pb2.IotaReplicaGroupListProto, _Mapping]] = ..., mesh_axes_replica_group_list: _Optional[_Union[_sharding_pb2.MeshAxesReplicaGroupListProto, _Mapping]] = ..., original_value: _Optional[_Union[_metadata_pb2.OriginalValueProto, _Mapping]] = ..., is_composite: _Optional[bool] = ..., ragged_dot_dimension_numbers: _Optional[_Union[_op_attributes_pb2.RaggedDotDimensionNumbers, _Mapping]] = ..., result_accuracy: _Optional[_Union[_op_attributes_pb2.ResultAccuracy, _Mapping]] = ..., is_reverse: _Optional[bool] = ..., num_carries: _Optional[int] = ..., is_associative: _Optional[_Union[TriState, str]] = ..., conv_kind: _Optional[_Union[ConvolutionKind, str]] = ..., sparsity_config: _Optional[_Union[_op_attributes_pb2.SparsityConfig, _Mapping]] = ..., backend_config_payload: _Optional[_Union[_metadata_pb2.Payload, _Mapping]] = ..., has_dynamic_root: _Optional[bool] = ..., block_scaling_config: _Optional[_Union[_op_attributes_pb2.BlockScalingConfig, _Mapping]] = ..., comparison_order: _Optional[str] = ..., shuffle_mode: _Optional[_Union[_op_attributes_pb2.ShuffleMode, _Mapping]] = ...) -> None: ...

class HloComputationProto(_message.Message):
    __slots__ = ("name", "instructions", "program_shape", "id", "root_id", "is_fusion_computation", "execution_thread", "backend_config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_ID_FIELD_NUMBER: _ClassVar[int]
    IS_FUSION_COMPUTATION_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_THREAD_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    instructions: _containers.RepeatedCompositeFieldContainer[HloInstructionProto]
    program_shape: _shape_pb2.ProgramShapeProto
    id: int
    root_id: int
    is_fusion_computation: bool
    execution_thread: str
    backend_config: bytes
    def __init__(self, name: _Optional[str] = ..., instructions: _Optional[_Iterable[_Union[HloInstructionProto, _Mapping]]] = ..., program_shape: _Optional[_Union[_shape_pb2.ProgramShapeProto, _Mapping]] = ..., id: _Optional[int] = ..., root_id: _Optional[int] = ..., is_fusion_computation: _Optional[bool] = ..., execution_thread: _Optional[str] = ..., backend_config: _Optional[bytes] = ...) -> None: ...

class HloScheduleProto(_message.Message):
    __slots__ = ("sequences",)
    class InstructionSequence(_message.Message):
        __slots__ = ("instruction_ids",)
        INSTRUCTION_IDS_FIELD_NUMBER: _ClassVar[int]
        instruction_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, instruction_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    class SequencesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: HloScheduleProto.InstructionSequence
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[HloScheduleProto.InstructionSequence, _Mapping]] = ...) -> None: ...
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    sequences: _containers.MessageMap[int, HloScheduleProto.InstructionSequence]
    def __init__(self, sequences: _Optional[_Mapping[int, HloScheduleProto.InstructionSequence]] = ...) -> None: ...

class HloInputOutputAliasProto(_message.Message):
    __slots__ = ("entries",)
    class AliasEntryProto(_message.Message):
        __slots__ = ("output_shape_index", "parameter_number", "parameter_shape_index", "kind")
        OUTPUT_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
        PARAMETER_NUMBER_FIELD_NUMBER: _ClassVar[int]
        PARAMETER_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
        KIND_FIELD_NUMBER: _ClassVar[int]
        output_shape_index: _containers.RepeatedScalarFieldContainer[int]
        parameter_number: int
        parameter_shape_index: _containers.RepeatedScalarFieldContainer[int]
        kind: Kind
        def __init__(self, output_shape_index: _Optional[_Iterable[int]] = ..., parameter_number: _Optional[int] = ..., parameter_shape_index: _Optional[_Iterable[int]] = ..., kind: _Optional[_Union[Kind, str]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[HloInputOutputAliasProto.AliasEntryProto]
    def __init__(self, entries: _Optional[_Iterable[_Union[HloInputOutputAliasProto.AliasEntryProto, _Mapping]]] = ...) -> None: ...

class HloBufferDonorProto(_message.Message):
    __slots__ = ("entries",)
    class BufferDonorEntryProto(_message.Message):
        __slots__ = ("parameter_number", "parameter_shape_index")
        PARAMETER_NUMBER_FIELD_NUMBER: _ClassVar[int]
        PARAMETER_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
        parameter_number: int
        parameter_shape_index: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, parameter_number: _Optional[int] = ..., parameter_shape_index: _Optional[_Iterable[int]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[HloBufferDonorProto.BufferDonorEntryProto]
    def __init__(self, entries: _Optional[_Iterable[_Union[HloBufferDonorProto.BufferDonorEntryProto, _Mapping]]] = ...) -> None: ...

class CrossProgramPrefetch(_message.Message):
    __slots__ = ("parameter", "index", "offset")
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    parameter: int
    index: _containers.RepeatedScalarFieldContainer[int]
    offset: int
    def __init__(self, parameter: _Optional[int] = ..., index: _Optional[_Iterable[int]] = ..., offset: _Optional[int] = ...) -> None: ...

class StackFrameIndexProto(_message.Message):
    __slots__ = ("file_names", "function_names", "file_locations", "stack_frames")
    class FileLocation(_message.Message):
        __slots__ = ("file_name_id", "function_name_id", "line", "column", "end_line", "end_column")
        FILE_NAME_ID_FIELD_NUMBER: _ClassVar[int]
        FUNCTION_NAME_ID_FIELD_NUMBER: _ClassVar[int]
        LINE_FIELD_NUMBER: _ClassVar[int]
        COLUMN_FIELD_NUMBER: _ClassVar[int]
        END_LINE_FIELD_NUMBER: _ClassVar[int]
        END_COLUMN_FIELD_NUMBER: _ClassVar[int]
        file_name_id: int
        function_name_id: int
        line: int
        column: int
        end_line: int
        end_column: int
        def __init__(self, file_name_id: _Optional[int] = ..., function_name_id: _Optional[int] = ..., line: _Optional[int] = ..., column: _Optional[int] = ..., end_line: _Optional[int] = ..., end_column: _Optional[int] = ...) -> None: ...
    class StackFrame(_message.Message):
        __slots__ = ("file_location_id", "parent_frame_id")
        FILE_LOCATION_ID_FIELD_NUMBER: _ClassVar[int]
        PARENT_FRAME_ID_FIELD_NUMBER: _ClassVar[int]
        file_location_id: int
        parent_frame_id: int
        def __init__(self, file_location_id: _Optional[int] = ..., parent_frame_id: _Optional[int] = ...) -> None: ...
    FILE_NAMES_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_NAMES_FIELD_NUMBER: _ClassVar[int]
    FILE_LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    STACK_FRAMES_FIELD_NUMBER: _ClassVar[int]
    file_names: _containers.RepeatedScalarFieldContainer[str]
    function_names: _containers.RepeatedScalarFieldContainer[str]
    file_locations: _containers.RepeatedCompositeFieldContainer[StackFrameIndexProto.FileLocation]
    stack_frames: _containers.RepeatedCompositeFieldContainer[StackFrameIndexProto.StackFrame]
    def __init__(self, file_names: _Optional[_Iterable[str]] = ..., function_names: _Optional[_Iterable[str]] = ..., file_locations: _Optional[_Iterable[_Union[StackFrameIndexProto.FileLocation, _Mapping]]] = ..., stack_frames: _Optional[_Iterable[_Union[StackFrameIndexProto.StackFrame, _Mapping]]] = ...) -> None: ...

class OriginalValueRecoveryTableProto(_message.Message):
    __slots__ = ("entries",)
    class Entry(_message.Message):
        __slots__ = ("old_original_array", "new_original_array", "recovery_module")
        OLD_ORIGINAL_ARRAY_FIELD_NUMBER: _ClassVar[int]
        NEW_ORIGINAL_ARRAY_FIELD_NUMBER: _ClassVar[int]
        RECOVERY_MODULE_FIELD_NUMBER: _ClassVar[int]
        old_original_array: _metadata_pb2.OriginalArrayProto
        new_original_array: _metadata_pb2.OriginalArrayProto
        recovery_module: HloModuleProto
        def __init__(self, old_original_array: _Optional[_Union[_metadata_pb2.OriginalArrayProto, _Mapping]] = ..., new_original_array: _Optional[_Union[_metadata_pb2.OriginalArrayProto, _Mapping]] = ..., recovery_module: _Optional[_Union[HloModuleProto, _Mapping]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[OriginalValueRecoveryTableProto.Entry]
    def __init__(self, entries: _Optional[_Iterable[_Union[OriginalValueRecoveryTableProto.Entry, _Mapping]]] = ...) -> None: ...

class HloModuleProto(_message.Message):
    __slots__ = ("name", "entry_computation_name", "computations", "host_program_shape", "id", "entry_computation_id", "schedule", "input_output_alias", "cross_program_prefetches", "is_dynamic", "spmd_output_sharding", "profile_info", "spmd_parameters_shardings", "device_assignment", "use_auto_spmd_partitioning", "stack_frame_index", "buffer_donor", "frontend_attributes", "original_value_recovery_table", "device_type", "payloads", "pjrt_id", "debug_attributes", "backend_config")
    class ProfileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        INVALID: _ClassVar[HloModuleProto.ProfileType]
        FLAG: _ClassVar[HloModuleProto.ProfileType]
        FUSION: _ClassVar[HloModuleProto.ProfileType]
        LAYOUT: _ClassVar[HloModuleProto.ProfileType]
        DOT: _ClassVar[HloModuleProto.ProfileType]
        FLAGNET: _ClassVar[HloModuleProto.ProfileType]
        SHARDING: _ClassVar[HloModuleProto.ProfileType]
        SCHEDULE: _ClassVar[HloModuleProto.ProfileType]
    INVALID: HloModuleProto.ProfileType
    FLAG: HloModuleProto.ProfileType
    FUSION: HloModuleProto.ProfileType
    LAYOUT: HloModuleProto.ProfileType
    DOT: HloModuleProto.ProfileType
    FLAGNET: HloModuleProto.ProfileType
    SHARDING: HloModuleProto.ProfileType
    SCHEDULE: HloModuleProto.ProfileType
    class ProfileInfo(_message.Message):
        __slots__ = ("profile_type", "relative_speedup", "profile_source", "compilation_event", "fingerprint", "profile_generation_strategy", "original_changelist", "changelist")
        PROFILE_TYPE_FIELD_NUMBER: _ClassVar[int]
        RELATIVE_SPEEDUP_FIELD_NUMBER: _ClassVar[int]
        PROFILE_SOURCE_FIELD_NUMBER: _ClassVar[int]
        COMPILATION_EVENT_FIELD_NUMBER: _ClassVar[int]
        FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
        PROFILE_GENERATION_STRATEGY_FIELD_NUMBER: _ClassVar[int]
        ORIGINAL_CHANGELIST_FIELD_NUMBER: _ClassVar[int]
        CHANGELIST_FIELD_NUMBER: _ClassVar[int]
        profile_type: HloModuleProto.ProfileType
        relative_speedup: float
        profile_source: _metadata_pb2.ProfileSource
        compilation_event: _metadata_pb2.CompilationEvent
        fingerprint: str
        profile_generation_strategy: _metadata_pb2.ProfileGenerationStrategy
        original_changelist: int
        changelist: int
        def __init__(self, profile_type: _Optional[_Union[HloModuleProto.ProfileType, str]] = ..., relative_speedup: _Optional[float] = ..., profile_source: _Optional[_Union[_metadata_pb2.ProfileSource, str]] = ..., compilation_event: _Optional[_Union[_metadata_pb2.CompilationEvent, str]] = ..., fingerprint: _Optional[str] = ..., profile_generation_strategy: _Optional[_Union[_metadata_pb2.ProfileGenerationStrategy, str]] = ..., original_changelist: _Optional[int] = ..., changelist: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COMPUTATION_NAME_FIELD_NUMBER: _ClassVar[int]
    COMPUTATIONS_FIELD_NUMBER: _ClassVar[int]
    HOST_PROGRAM_SHAPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COMPUTATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    INPUT_OUTPUT_ALIAS_FIELD_NUMBER: _ClassVar[int]
    CROSS_PROGRAM_PREFETCHES_FIELD_NUMBER: _ClassVar[int]
    IS_DYNAMIC_FIELD_NUMBER: _ClassVar[int]
    SPMD_OUTPUT_SHARDING_FIELD_NUMBER: _ClassVar[int]
    PROFILE_INFO_FIELD_NUMBER: _ClassVar[int]
    SPMD_PARAMETERS_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    USE_AUTO_SPMD_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    STACK_FRAME_INDEX_FIELD_NUMBER: _ClassVar[int]
    BUFFER_DONOR_FIELD_NUMBER: _ClassVar[int]
    FRONTEND_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_VALUE_RECOVERY_TABLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    PJRT_ID_FIELD_NUMBER: _ClassVar[int]
    DEBUG_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    entry_computation_name: str
    computations: _containers.RepeatedCompositeFieldContainer[HloComputationProto]
    host_program_shape: _shape_pb2.ProgramShapeProto
    id: int
    entry_computation_id: int
    schedule: HloScheduleProto
    input_output_alias: HloInputOutputAliasProto
    cross_program_prefetches: _containers.RepeatedCompositeFieldContainer[CrossProgramPrefetch]
    is_dynamic: bool
    spmd_output_sharding: _sharding_pb2.OpSharding
    profile_info: _containers.RepeatedCompositeFieldContainer[HloModuleProto.ProfileInfo]
    spmd_parameters_shardings: _containers.RepeatedCompositeFieldContainer[_sharding_pb2.OpSharding]
    device_assignment: _sharding_pb2.DeviceAssignmentProto
    use_auto_spmd_partitioning: bool
    stack_frame_index: StackFrameIndexProto
    buffer_donor: HloBufferDonorProto
    frontend_attributes: _metadata_pb2.FrontendAttributes
    original_value_recovery_table: OriginalValueRecoveryTableProto
    device_type: str
    payloads: _containers.RepeatedScalarFieldContainer[bytes]
    pjrt_id: int
    debug_attributes: _containers.RepeatedCompositeFieldContainer[_metadata_pb2.DebugAttributeTableEntryProto]
    backend_config: bytes
    def __init__(self, name: _Optional[str] = ..., entry_computation_name: _Optional[str] = ..., computations: _Optional[_Iterable[_Union[HloComputationProto, _Mapping]]] = ..., host_program_shape: _Optional[_Union[_shape_pb2.ProgramShapeProto, _Mapping]] = ..., id: _Optional[int] = ..., entry_computation_id: _Optional[int] = ..., schedule: _Optional[_Union[HloScheduleProto, _Mapping]] = ..., input_output_alias: _Optional[_Union[HloInputOutputAliasProto, _Mapping]] = ..., cross_program_prefetches: _Optional[_Iterable[_Union[CrossProgramPrefetch, _Mapping]]] = ..., is_dynamic: _Optional[bool] = ..., spmd_output_sharding: _Optional[_Union[_sharding_pb2.OpSharding, _Mapping]] = ..., profile_info: _Optional[_Iterable[_Union[HloModuleProto.ProfileInfo, _Mapping]]] = ..., spmd_parameters_shardings: _Optional[_Iterable[_Union[_sharding_pb2.OpSharding, _Mapping]]] = ..., device_assignment: _Optional[_Union[_sharding_pb2.DeviceAssignmentProto, _Mapping]] = ..., use_auto_spmd_partitioning: _Optional[bool] = ..., stack_frame_index: _Optional[_Union[StackFrameIndexProto, _Mapping]] = ..., buffer_donor: _Optional[_Union[HloBufferDonorProto, _Mapping]] = ..., frontend_attributes: _Optional[_Union[_metadata_pb2.FrontendAttributes, _Mapping]] = ..., original_value_recovery_table: _Optional[_Union[OriginalValueRecoveryTableProto, _Mapping]] = ..., device_type: _Optional[str] = ..., payloads: _Optional[_Iterable[bytes]] = ..., pjrt_id: _Optional[int] = ..., debug_attributes: _Optional[_Iterable[_Union[_metadata_pb2.DebugAttributeTableEntryProto, _Mapping]]] = ..., backend_config: _Optional[bytes] = ...) -> None: ...
