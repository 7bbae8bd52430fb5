"""Our schema against the one inside jaxlib; the generated files against their sources."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import mmap
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from support import ROOT

FOLDER = ROOT / "mlirhlo" / "formats" / "proto"
STEMS = sorted(path.stem for path in FOLDER.glob("*.proto"))

NEWER = {
    "HloInstructionProto": {100, 101, 102, 103},
    "HloComputationProto": {9},
    "HloModuleProto": {24, 25},
    "SparsityConfig.TensorSparsityConfig": {5},
    "NamedShardingProto": {8},
    "OriginalValueProto": {3},
    "HloModuleConfigProto": {43},
    "CollectiveDeviceListProto": {2},
}
"""Fields that jaxlib does not have: of newer producers, and one that was withdrawn."""

LEFT_OUT = {"GpuTargetConfigProto": {6}}
"""Fields of jaxlib's that we keep as unknown ones."""


def messages(
    found: list[descriptor_pb2.DescriptorProto], prefix: str
) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    """Every message below `found` with its full name."""
    for message in found:
        yield prefix + message.name, message
        yield from messages(list(message.nested_type), f"{prefix}{message.name}.")


def ours() -> dict[str, descriptor_pb2.DescriptorProto]:
    """Our messages by full name."""
    result: dict[str, descriptor_pb2.DescriptorProto] = {}
    for stem in STEMS:
        module = importlib.import_module(f"mlirhlo.formats.proto.{stem}_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        result.update(messages(list(file.message_type), f"{file.package}."))
    return result


@functools.cache
def theirs() -> dict[str, descriptor_pb2.DescriptorProto]:
    """XLA's messages by full name, from the descriptors embedded in jaxlib."""
    spec = importlib.util.find_spec("jaxlib")
    assert spec is not None
    assert spec.origin is not None
    result: dict[str, descriptor_pb2.DescriptorProto] = {}
    with (Path(spec.origin).parent / "libjax_common.so").open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        for match in re.finditer(rb"\x0a[\x05-\x7f]xla/[a-z_/]+\.proto[\x12\x1a]", data):
            file = _file_at(data, match.start())
            if file is not None:
                result.update(messages(list(file.message_type), f"{file.package}."))
    return result


def _file_at(data: mmap.mmap, start: int) -> descriptor_pb2.FileDescriptorProto | None:
    """The FileDescriptorProto whose bytes begin at `start`; its end is where its fields stop."""
    position = start
    while True:
        tag = data[position]
        if tag & 7 != 2 or not 1 <= tag >> 3 <= 14 or (tag >> 3 == 1 and position != start):
            break
        length, shift, at = 0, 0, position + 1
        while True:
            byte = data[at]
            length |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        position = at + length
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(data[start:position])
    except Exception:  # noqa: BLE001 - the bytes only looked like a descriptor
        return None


def facts(
    message: descriptor_pb2.DescriptorProto, field: descriptor_pb2.FieldDescriptorProto
) -> tuple[object, ...]:
    """What must agree of a field."""
    oneof = ""
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = message.oneof_decl[field.oneof_index].name
    return (field.name, field.type, field.label, field.type_name, field.proto3_optional, oneof)


def test_generated_files_are_current() -> None:
    if importlib.util.find_spec("grpc_tools") is None:
        pytest.skip("grpcio-tools missing: pip install 'mlirhlo[dev]'")
    done = subprocess.run(
        [sys.executable, "tools/generate_protos.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_default_pool_stays_untouched() -> None:
    """Another package may define `xla.HloProto` in the same process."""
    from google.protobuf import descriptor_pool

    importlib.import_module("mlirhlo.formats.proto.containers_pb2")
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("xla.HloProto")


@pytest.mark.oracle
@pytest.mark.slow
def test_fields_agree_with_jaxlib() -> None:
    wrong: list[str] = []
    compared = 0
    for name, message in ours().items():
        short = name.removeprefix("xla.").removeprefix("stream_executor.")
        other = theirs().get(name)
        if other is None:
            continue
        mine = {field.number: facts(message, field) for field in message.field}
        want = {field.number: facts(other, field) for field in other.field}
        compared += len(want)
        for number in sorted(mine.keys() | want.keys()):
            if number in NEWER.get(short, ()) or number in LEFT_OUT.get(short, ()):
                continue
            if mine.get(number) != want.get(number):
                wrong.append(f"{name}.{number}: ours {mine.get(number)}, jaxlib {want.get(number)}")
    assert not wrong, "\n".join(wrong)
    assert compared > 900
