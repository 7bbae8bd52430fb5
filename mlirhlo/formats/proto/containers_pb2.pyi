from google.protobuf import any_pb2 as _any_pb2
from mlirhlo.formats.proto import module_pb2 as _module_pb2
from mlirhlo.formats.proto import literal_pb2 as _literal_pb2
from mlirhlo.formats.proto import buffer_assignment_pb2 as _buffer_assignment_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HloProto(_message.Message):
    __slots__ = ("hlo_module", "buffer_assignment")
    HLO_MODULE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    hlo_module: _module_pb2.HloModuleProto
    buffer_assignment: _buffer_assignment_pb2.BufferAssignmentProto
    def __init__(self, hlo_module: _Optional[_Union[_module_pb2.HloModuleProto, _Mapping]] = ..., buffer_assignment: _Optional[_Union[_buffer_assignment_pb2.BufferAssignmentProto, _Mapping]] = ...) -> None: ...

class HloSnapshot(_message.Message):
    __slots__ = ("hlo", "arguments", "result", "execution_platform")
    HLO_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_PLATFORM_FIELD_NUMBER: _ClassVar[int]
    hlo: HloProto
    arguments: _containers.RepeatedCompositeFieldContainer[_literal_pb2.LiteralProto]
    result: _literal_pb2.LiteralProto
    execution_platform: str
    def __init__(self, hlo: _Optional[_Union[HloProto, _Mapping]] = ..., arguments: _Optional[_Iterable[_Union[_literal_pb2.LiteralProto, _Mapping]]] = ..., result: _Optional[_Union[_literal_pb2.LiteralProto, _Mapping]] = ..., execution_platform: _Optional[str] = ...) -> None: ...

class HloInputs(_message.Message):
    __slots__ = ("arguments", "arguments_descriptors")
    class LiteralDescriptor(_message.Message):
        __slots__ = ("version", "argument_size_bytes")
        VERSION_FIELD_NUMBER: _ClassVar[int]
        ARGUMENT_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        version: int
        argument_size_bytes: int
        def __init__(self, version: _Optional[int] = ..., argument_size_bytes: _Optional[int] = ...) -> None: ...
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DESCRIPTORS_FIELD_NUMBER: _ClassVar[int]
    arguments: _containers.RepeatedCompositeFieldContainer[_literal_pb2.LiteralProto]
    arguments_descriptors: _containers.RepeatedCompositeFieldContainer[HloInputs.LiteralDescriptor]
    def __init__(self, arguments: _Optional[_Iterable[_Union[_literal_pb2.LiteralProto, _Mapping]]] = ..., arguments_descriptors: _Optional[_Iterable[_Union[HloInputs.LiteralDescriptor, _Mapping]]] = ...) -> None: ...

class HloUnoptimizedSnapshot(_message.Message):
    __slots__ = ("hlo_module", "partitions", "version")
    HLO_MODULE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    hlo_module: _module_pb2.HloModuleProto
    partitions: _containers.RepeatedCompositeFieldContainer[HloInputs]
    version: int
    def __init__(self, hlo_module: _Optional[_Union[_module_pb2.HloModuleProto, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[HloInputs, _Mapping]]] = ..., version: _Optional[int] = ...) -> None: ...

class HloModuleGroupProto(_message.Message):
    __slots__ = ("name", "hlo_modules")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HLO_MODULES_FIELD_NUMBER: _ClassVar[int]
    name: str
    hlo_modules: _containers.RepeatedCompositeFieldContainer[_module_pb2.HloModuleProto]
    def __init__(self, name: _Optional[str] = ..., hlo_modules: _Optional[_Iterable[_Union[_module_pb2.HloModuleProto, _Mapping]]] = ...) -> None: ...

class KeyValueMetric(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class HloPassMetadata(_message.Message):
    __slots__ = ("pass_id", "pass_name", "pipeline_name", "dump_filenames", "module_changed", "module_id", "module_group_module_ids", "start_timestamp_usec", "end_timestamp_usec", "custom_metadata", "kv_metrics")
    PASS_ID_FIELD_NUMBER: _ClassVar[int]
    PASS_NAME_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_NAME_FIELD_NUMBER: _ClassVar[int]
    DUMP_FILENAMES_FIELD_NUMBER: _ClassVar[int]
    MODULE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MODULE_ID_FIELD_NUMBER: _ClassVar[int]
    MODULE_GROUP_MODULE_IDS_FIELD_NUMBER: _ClassVar[int]
    START_TIMESTAMP_USEC_FIELD_NUMBER: _ClassVar[int]
    END_TIMESTAMP_USEC_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_METADATA_FIELD_NUMBER: _ClassVar[int]
    KV_METRICS_FIELD_NUMBER: _ClassVar[int]
    pass_id: int
    pass_name: str
    pipeline_name: str
    dump_filenames: _containers.RepeatedScalarFieldContainer[str]
    module_changed: bool
    module_id: int
    module_group_module_ids: _containers.RepeatedScalarFieldContainer[int]
    start_timestamp_usec: int
    end_timestamp_usec: int
    custom_metadata: _any_pb2.Any
    kv_metrics: _containers.RepeatedCompositeFieldContainer[KeyValueMetric]
    def __init__(self, pass_id: _Optional[int] = ..., pass_name: _Optional[str] = ..., pipeline_name: _Optional[str] = ..., dump_filenames: _Optional[_Iterable[str]] = ..., module_changed: _Optional[bool] = ..., module_id: _Optional[int] = ..., module_group_module_ids: _Optional[_Iterable[int]] = ..., start_timestamp_usec: _Optional[int] = ..., end_timestamp_usec: _Optional[int] = ..., custom_metadata: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., kv_metrics: _Optional[_Iterable[_Union[KeyValueMetric, _Mapping]]] = ...) -> None: ...

class HloModuleMetadataProto(_message.Message):
    __slots__ = ("canonical_module_id", "module_group_name", "original_module_id", "partitioned_module_ids", "pass_metadata")
    CANONICAL_MODULE_ID_FIELD_NUMBER: _ClassVar[int]
    MODULE_GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_MODULE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONED_MODULE_IDS_FIELD_NUMBER: _ClassVar[int]
    PASS_METADATA_FIELD_NUMBER: _ClassVar[int]
    canonical_module_id: int
    module_group_name: str
    original_module_id: int
    partitioned_module_ids: _containers.RepeatedScalarFieldContainer[int]
    pass_metadata: _containers.RepeatedCompositeFieldContainer[HloPassMetadata]
    def __init__(self, canonical_module_id: _Optional[int] = ..., module_group_name: _Optional[str] = ..., original_module_id: _Optional[int] = ..., partitioned_module_ids: _Optional[_Iterable[int]] = ..., pass_metadata: _Optional[_Iterable[_Union[HloPassMetadata, _Mapping]]] = ...) -> None: ...

class RunHloModuleIterationLiterals(_message.Message):
    __slots__ = ("arguments", "result", "reference_result")
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_RESULT_FIELD_NUMBER: _ClassVar[int]
    arguments: _containers.RepeatedCompositeFieldContainer[_literal_pb2.LiteralProto]
    result: _literal_pb2.LiteralProto
    reference_result: _literal_pb2.LiteralProto
    def __init__(self, arguments: _Optional[_Iterable[_Union[_literal_pb2.LiteralProto, _Mapping]]] = ..., result: _Optional[_Union[_literal_pb2.LiteralProto, _Mapping]] = ..., reference_result: _Optional[_Union[_literal_pb2.LiteralProto, _Mapping]] = ...) -> None: ...

class RunHloModuleLiterals(_message.Message):
    __slots__ = ("iterations",)
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    iterations: _containers.RepeatedCompositeFieldContainer[RunHloModuleIterationLiterals]
    def __init__(self, iterations: _Optional[_Iterable[_Union[RunHloModuleIterationLiterals, _Mapping]]] = ...) -> None: ...
