from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class Backend(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNSPECIFIED_BACKEND: _ClassVar[Backend]
    CUDNN: _ClassVar[Backend]
    TRITON: _ClassVar[Backend]
    CUBLASLT: _ClassVar[Backend]
    HIPBLASLT: _ClassVar[Backend]
    MIOPEN: _ClassVar[Backend]
    CUSTOM_KERNEL: _ClassVar[Backend]
    BLOCK_LEVEL_EMITTER: _ClassVar[Backend]
    NATIVE_EMITTER: _ClassVar[Backend]
    LLVM_KERNEL_EMITTER: _ClassVar[Backend]
    CUBLASLT_FISSION: _ClassVar[Backend]
    CUSTOM_KERNEL_FISSION: _ClassVar[Backend]
    HIPBLASLT_FISSION: _ClassVar[Backend]
UNSPECIFIED_BACKEND: Backend
CUDNN: Backend
TRITON: Backend
CUBLASLT: Backend
HIPBLASLT: Backend
MIOPEN: Backend
CUSTOM_KERNEL: Backend
BLOCK_LEVEL_EMITTER: Backend
NATIVE_EMITTER: Backend
LLVM_KERNEL_EMITTER: Backend
CUBLASLT_FISSION: Backend
CUSTOM_KERNEL_FISSION: Backend
HIPBLASLT_FISSION: Backend
