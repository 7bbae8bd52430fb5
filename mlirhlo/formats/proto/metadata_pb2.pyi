from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProfileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INVALID: _ClassVar[ProfileType]
    WINDOW: _ClassVar[ProfileType]
    FLAG: _ClassVar[ProfileType]
    INTEGER: _ClassVar[ProfileType]

class ProfileSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROFILE_SOURCE_UNKNOWN_SOURCE: _ClassVar[ProfileSource]
    PROFILE_SOURCE_EMBEDDED: _ClassVar[ProfileSource]
    PROFILE_SOURCE_REMOTE: _ClassVar[ProfileSource]

class CompilationEvent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPILATION_EVENT_UNKNOWN_EVENT: _ClassVar[CompilationEvent]
    COMPILATION_EVENT_FIRST_COMPILATION: _ClassVar[CompilationEvent]
    COMPILATION_EVENT_RECOMPILATION: _ClassVar[CompilationEvent]

class ProfileGenerationStrategy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROFILE_GENERATION_STRATEGY_UNKNOWN: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_GA: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_FANTA: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_CFO: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_EXHAUSTIVE: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_LCM_GNN: _ClassVar[ProfileGenerationStrategy]
    PROFILE_GENERATION_STRATEGY_LCM_MOE: _ClassVar[ProfileGenerationStrategy]
INVALID: ProfileType
WINDOW: ProfileType
FLAG: ProfileType
INTEGER: ProfileType
PROFILE_SOURCE_UNKNOWN_SOURCE: ProfileSource
PROFILE_SOURCE_EMBEDDED: ProfileSource
PROFILE_SOURCE_REMOTE: ProfileSource
COMPILATION_EVENT_UNKNOWN_EVENT: CompilationEvent
COMPILATION_EVENT_FIRST_COMPILATION: CompilationEvent
COMPILATION_EVENT_RECOMPILATION: CompilationEvent
PROFILE_GENERATION_STRATEGY_UNKNOWN: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_GA: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_FANTA: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_CFO: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_EXHAUSTIVE: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_LCM_GNN: ProfileGenerationStrategy
PROFILE_GENERATION_STRATEGY_LCM_MOE: ProfileGenerationStrategy

class Payload(_message.Message):
    __slots__ = ("value", "id")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    id: int
    def __init__(self, value: _Optional[bytes] = ..., id: _Optional[int] = ...) -> None: ...

class OpMetadata(_message.Message):
    __slots__ = ("op_type", "op_name", "source_file", "source_line", "profile_type", "size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes", "profile_info", "deduplicated_name", "stack_frame_id", "scheduling_name", "source_end_line", "source_column", "source_end_column", "metadata_payload")
    class ProfileInfo(_message.Message):
        __slots__ = ("profile_type", "relative_speedup", "profile_source", "compilation_event", "profile_generation_strategy")
        PROFILE_TYPE_FIELD_NUMBER: _ClassVar[int]
        RELATIVE_SPEEDUP_FIELD_NUMBER: _ClassVar[int]
        PROFILE_SOURCE_FIELD_NUMBER: _ClassVar[int]
        COMPILATION_EVENT_FIELD_NUMBER: _ClassVar[int]
        PROFILE_GENERATION_STRATEGY_FIELD_NUMBER: _ClassVar[int]
        profile_type: _containers.RepeatedScalarFieldContainer[ProfileType]
        relative_speedup: float
        profile_source: ProfileSource
        compilation_event: CompilationEvent
        profile_generation_strategy: ProfileGenerationStrategy
        def __init__(self, profile_type: _Optional[_Iterable[_Union[ProfileType, str]]] = ..., relative_speedup: _Optional[float] = ..., profile_source: _Optional[_Union[ProfileSource, str]] = ..., compilation_event: _Optional[_Union[CompilationEvent, str]] = ..., profile_generation_strategy: _Optional[_Union[ProfileGenerationStrategy, str]] = ...) -> None: ...
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    OP_NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FILE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LINE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_OF_GENERATED_CODE_IN_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIZE_OF_MEMORY_WORKING_SET_IN_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROFILE_INFO_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATED_NAME_FIELD_NUMBER: _ClassVar[int]
    STACK_FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULING_NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_LINE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_COLUMN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_COLUMN_FIELD_NUMBER: _ClassVar[int]
    METADATA_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    op_type: str
    op_name: str
    source_file: str
    source_line: int
    profile_type: _containers.RepeatedScalarFieldContainer[ProfileType]
    size_of_generated_code_in_bytes: int
    size_of_memory_working_set_in_bytes: int
    profile_info: OpMetadata.ProfileInfo
    deduplicated_name: str
    stack_frame_id: int
    scheduling_name: str
    source_end_line: int
    source_column: int
    source_end_column: int
    metadata_payload: Payload
    def __init__(self, op_type: _Optional[str] = ..., op_name: _Optional[str] = ..., source_file: _Optional[str] = ..., source_line: _Optional[int] = ..., profile_type: _Optional[_Iterable[_Union[ProfileType, str]]] = ..., size_of_generated_code_in_bytes: _Optional[int] = ..., size_of_memory_working_set_in_bytes: _Optional[int] = ..., profile_info: _Optional[_Union[OpMetadata.ProfileInfo, _Mapping]] = ..., deduplicated_name: _Optional[str] = ..., stack_frame_id: _Optional[int] = ..., scheduling_name: _Optional[str] = ..., source_end_line: _Optional[int] = ..., source_column: _Optional[int] = ..., source_end_column: _Optional[int] = ..., metadata_payload: _Optional[_Union[Payload, _Mapping]] = ...) -> None: ...

class FrontendAttributes(_message.Message):
    __slots__ = ("map",)
    class MapEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MAP_FIELD_NUMBER: _ClassVar[int]
    map: _containers.ScalarMap[str, str]
    def __init__(self, map: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Statistic(_message.Message):
    __slots__ = ("stat_name", "stat_val")
    STAT_NAME_FIELD_NUMBER: _ClassVar[int]
    STAT_VAL_FIELD_NUMBER: _ClassVar[int]
    stat_name: str
    stat_val: float
    def __init__(self, stat_name: _Optional[str] = ..., stat_val: _Optional[float] = ...) -> None: ...

class StatisticsViz(_message.Message):
    __slots__ = ("stat_index_to_visualize", "statistics")
    STAT_INDEX_TO_VISUALIZE_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    stat_index_to_visualize: int
    statistics: _containers.RepeatedCompositeFieldContainer[Statistic]
    def __init__(self, stat_index_to_visualize: _Optional[int] = ..., statistics: _Optional[_Iterable[_Union[Statistic, _Mapping]]] = ...) -> None: ...

class OriginalArrayProto(_message.Message):
    __slots__ = ("instruction_name", "shape_index")
    INSTRUCTION_NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
    instruction_name: str
    shape_index: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, instruction_name: _Optional[str] = ..., shape_index: _Optional[_Iterable[int]] = ...) -> None: ...

class OriginalValueElementProto(_message.Message):
    __slots__ = ("shape_index", "original_array")
    SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_ARRAY_FIELD_NUMBER: _ClassVar[int]
    shape_index: _containers.RepeatedScalarFieldContainer[int]
    original_array: OriginalArrayProto
    def __init__(self, shape_index: _Optional[_Iterable[int]] = ..., original_array: _Optional[_Union[OriginalArrayProto, _Mapping]] = ...) -> None: ...

class OriginalValueProto(_message.Message):
    __slots__ = ("elements", "is_synthetic_call", "call_hierarchy")
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    IS_SYNTHETIC_CALL_FIELD_NUMBER: _ClassVar[int]
    CALL_HIERARCHY_FIELD_NUMBER: _ClassVar[int]
    elements: _containers.RepeatedCompositeFieldContainer[OriginalValueElementProto]
    is_synthetic_call: bool
    call_hierarchy: str
    def __init__(self, elements: _Optional[_Iterable[_Union[OriginalValueElementProto, _Mapping]]] = ..., is_synthetic_call: _Optional[bool] = ..., call_hierarchy: _Optional[str] = ...) -> None: ...

class DebugAttributesProto(_message.Message):
    __slots__ = ("log_mode", "callback_id", "op_id", "partitioned", "operands_sharding", "x64_config")
    class LogMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[DebugAttributesProto.LogMode]
        DEFAULT: _ClassVar[DebugAttributesProto.LogMode]
        FUSION_DEBUGGER: _ClassVar[DebugAttributesProto.LogMode]
        NO_FUSION: _ClassVar[DebugAttributesProto.LogMode]
        GUARANTEED: _ClassVar[DebugAttributesProto.LogMode]
    NONE: DebugAttributesProto.LogMode
    DEFAULT: DebugAttributesProto.LogMode
    FUSION_DEBUGGER: DebugAttributesProto.LogMode
    NO_FUSION: DebugAttributesProto.LogMode
    GUARANTEED: DebugAttributesProto.LogMode
    LOG_MODE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_ID_FIELD_NUMBER: _ClassVar[int]
    OP_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONED_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_SHARDING_FIELD_NUMBER: _ClassVar[int]
    X64_CONFIG_FIELD_NUMBER: _ClassVar[int]
    log_mode: DebugAttributesProto.LogMode
    callback_id: int
    op_id: int
    partitioned: bool
    operands_sharding: str
    x64_config: X64ConfigProto
    def __init__(self, log_mode: _Optional[_Union[DebugAttributesProto.LogMode, str]] = ..., callback_id: _Optional[int] = ..., op_id: _Optional[int] = ..., partitioned: _Optional[bool] = ..., operands_sharding: _Optional[str] = ..., x64_config: _Optional[_Union[X64ConfigProto, _Mapping]] = ...) -> None: ...

class X64ConfigProto(_message.Message):
    __slots__ = ("xprecision_64bit_fragment", "original_log_instruction_name", "xprecision_64bit_original_type")
    XPRECISION_64BIT_FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_LOG_INSTRUCTION_NAME_FIELD_NUMBER: _ClassVar[int]
    XPRECISION_64BIT_ORIGINAL_TYPE_FIELD_NUMBER: _ClassVar[int]
    xprecision_64bit_fragment: str
    original_log_instruction_name: str
    xprecision_64bit_original_type: str
    def __init__(self, xprecision_64bit_fragment: _Optional[str] = ..., original_log_instruction_name: _Optional[str] = ..., xprecision_64bit_original_type: _Optional[str] = ...) -> None: ...

class DebugAttributeTableEntryProto(_message.Message):
    __slots__ = ("original_array", "debug_attributes")
    ORIGINAL_ARRAY_FIELD_NUMBER: _ClassVar[int]
    DEBUG_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    original_array: OriginalArrayProto
    debug_attributes: _containers.RepeatedCompositeFieldContainer[DebugAttributesProto]
    def __init__(self, original_array: _Optional[_Union[OriginalArrayProto, _Mapping]] = ..., debug_attributes: _Optional[_Iterable[_Union[DebugAttributesProto, _Mapping]]] = ...) -> None: ...
