from mlirhlo.formats.proto import shape_pb2 as _shape_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LiteralProto(_message.Message):
    __slots__ = ("shape", "preds", "u8s", "s32s", "s64s", "u32s", "u64s", "f32s", "f64s", "tuple_literals", "f16s", "c64s", "bf16s", "sparse_indices", "s8s", "u16s", "s16s", "c128s", "f8e5m2s", "f8e4m3fns", "s4s", "u4s", "f8e4m3b11fnuzs", "f8e5m2fnuzs", "f8e4m3fnuzs", "s2s", "u2s", "f8e4m3s", "f8e3m4s", "s1s", "u1s", "f4e2m1fns", "f8e8m0fnus", "dynamic_sizes", "f6e3m2fns", "f6e2m3fns")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    PREDS_FIELD_NUMBER: _ClassVar[int]
    U8S_FIELD_NUMBER: _ClassVar[int]
    S32S_FIELD_NUMBER: _ClassVar[int]
    S64S_FIELD_NUMBER: _ClassVar[int]
    U32S_FIELD_NUMBER: _ClassVar[int]
    U64S_FIELD_NUMBER: _ClassVar[int]
    F32S_FIELD_NUMBER: _ClassVar[int]
    F64S_FIELD_NUMBER: _ClassVar[int]
    TUPLE_LITERALS_FIELD_NUMBER: _ClassVar[int]
    F16S_FIELD_NUMBER: _ClassVar[int]
    C64S_FIELD_NUMBER: _ClassVar[int]
    BF16S_FIELD_NUMBER: _ClassVar[int]
    SPARSE_INDICES_FIELD_NUMBER: _ClassVar[int]
    S8S_FIELD_NUMBER: _ClassVar[int]
    U16S_FIELD_NUMBER: _ClassVar[int]
    S16S_FIELD_NUMBER: _ClassVar[int]
    C128S_FIELD_NUMBER: _ClassVar[int]
    F8E5M2S_FIELD_NUMBER: _ClassVar[int]
    F8E4M3FNS_FIELD_NUMBER: _ClassVar[int]
    S4S_FIELD_NUMBER: _ClassVar[int]
    U4S_FIELD_NUMBER: _ClassVar[int]
    F8E4M3B11FNUZS_FIELD_NUMBER: _ClassVar[int]
    F8E5M2FNUZS_FIELD_NUMBER: _ClassVar[int]
    F8E4M3FNUZS_FIELD_NUMBER: _ClassVar[int]
    S2S_FIELD_NUMBER: _ClassVar[int]
    U2S_FIELD_NUMBER: _ClassVar[int]
    F8E4M3S_FIELD_NUMBER: _ClassVar[int]
    F8E3M4S_FIELD_NUMBER: _ClassVar[int]
    S1S_FIELD_NUMBER: _ClassVar[int]
    U1S_FIELD_NUMBER: _ClassVar[int]
    F4E2M1FNS_FIELD_NUMBER: _ClassVar[int]
    F8E8M0FNUS_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_SIZES_FIELD_NUMBER: _ClassVar[int]
    F6E3M2FNS_FIELD_NUMBER: _ClassVar[int]
    F6E2M3FNS_FIELD_NUMBER: _ClassVar[int]
    shape: _shape_pb2.ShapeProto
    preds: _containers.RepeatedScalarFieldContainer[bool]
    u8s: bytes
    s32s: _containers.RepeatedScalarFieldContainer[int]
    s64s: _containers.RepeatedScalarFieldContainer[int]
    u32s: _containers.RepeatedScalarFieldContainer[int]
    u64s: _containers.RepeatedScalarFieldContainer[int]
    f32s: _containers.RepeatedScalarFieldContainer[float]
    f64s: _containers.RepeatedScalarFieldContainer[float]
    tuple_literals: _containers.RepeatedCompositeFieldContainer[LiteralProto]
    f16s: bytes
    c64s: _containers.RepeatedScalarFieldContainer[float]
    bf16s: bytes
    sparse_indices: _containers.RepeatedScalarFieldContainer[int]
    s8s: bytes
    u16s: bytes
    s16s: bytes
    c128s: _containers.RepeatedScalarFieldContainer[float]
    f8e5m2s: bytes
    f8e4m3fns: bytes
    s4s: bytes
    u4s: bytes
    f8e4m3b11fnuzs: bytes
    f8e5m2fnuzs: bytes
    f8e4m3fnuzs: bytes
    s2s: bytes
    u2s: bytes
    f8e4m3s: bytes
    f8e3m4s: bytes
    s1s: bytes
    u1s: bytes
    f4e2m1fns: bytes
    f8e8m0fnus: bytes
    dynamic_sizes: _containers.RepeatedScalarFieldContainer[int]
    f6e3m2fns: bytes
    f6e2m3fns: bytes
    def __init__(self, shape: _Optional[_Union[_shape_pb2.ShapeProto, _Mapping]] = ..., preds: _Optional[_Iterable[bool]] = ..., u8s: _Optional[bytes] = ..., s32s: _Optional[_Iterable[int]] = ..., s64s: _Optional[_Iterable[int]] = ..., u32s: _Optional[_Iterable[int]] = ..., u64s: _Optional[_Iterable[int]] = ..., f32s: _Optional[_Iterable[float]] = ..., f64s: _Optional[_Iterable[float]] = ..., tuple_literals: _Optional[_Iterable[_Union[LiteralProto, _Mapping]]] = ..., f16s: _Optional[bytes] = ..., c64s: _Optional[_Iterable[float]] = ..., bf16s: _Optional[bytes] = ..., sparse_indices: _Optional[_Iterable[int]] = ..., s8s: _Optional[bytes] = ..., u16s: _Optional[bytes] = ..., s16s: _Optional[bytes] = ..., c128s: _Optional[_Iterable[float]] = ..., f8e5m2s: _Optional[bytes] = ..., f8e4m3fns: _Optional[bytes] = ..., s4s: _Optional[bytes] = ..., u4s: _Optional[bytes] = ..., f8e4m3b11fnuzs: _Optional[bytes] = ..., f8e5m2fnuzs: _Optional[bytes] = ..., f8e4m3fnuzs: _Optional[bytes] = ..., s2s: _Optional[bytes] = ..., u2s: _Optional[bytes] = ..., f8e4m3s: _Optional[bytes] = ..., f8e3m4s: _Optional[bytes] = ..., s1s: _Optional[bytes] = ..., u1s: _Optional[bytes] = ..., f4e2m1fns: _Optional[bytes] = ..., f8e8m0fnus: _Optional[bytes] = ..., dynamic_sizes: _Optional[_Iterable[int]] = ..., f6e3m2fns: _Optional[bytes] = ..., f6e2m3fns: _Optional[bytes] = ...) -> None: ...
