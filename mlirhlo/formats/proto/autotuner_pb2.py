"""Generated from autotuner.proto by tools/generate_protos.py; do not edit."""

from mlirhlo.formats.proto._pool import load

globals().update(
    load(
        b'\n%mlirhlo/formats/proto/'
        b'autotuner.proto\x12\rxla.aut'
        b'otuner*\x83\x02\n\x07Backend\x12\x17\n\x13UN'
        b'SPECIFIED_BACKEND\x10\x00\x12\t\n\x05C'
        b'UDNN\x10\x01\x12\n\n\x06TRITON\x10\x02\x12\x0c\n\x08CU'
        b'BLASLT\x10\x04\x12\r\n\tHIPBLASLT\x10\x06\x12'
        b'\n\n\x06MIOPEN\x10\x07\x12\x11\n\rCUSTOM_KE'
        b'RNEL\x10\x08\x12\x17\n\x13BLOCK_LEVEL_EM'
        b'ITTER\x10\t\x12\x12\n\x0eNATIVE_EMITTE'
        b'R\x10\n\x12\x17\n\x13LLVM_KERNEL_EMITT'
        b'ER\x10\x0b\x12\x14\n\x10CUBLASLT_FISSION'
        b'\x10\r\x12\x19\n\x15CUSTOM_KERNEL_FISS'
        b'ION\x10\x0e\x12\x15\n\x11HIPBLASLT_FISSI'
        b'ON\x10\x10b\x06proto3'
    )
)
