"""Files of protobuf messages: every encoding back and forth, damage, frames."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from google.protobuf.message import Message
from support import DATA, SHARED, needs_shared

import mlirhlo
from mlirhlo import formats
from mlirhlo.diagnostics import HloError
from mlirhlo.formats import containers
from mlirhlo.formats.containers import module_of, read, wrap, write
from mlirhlo.formats.proto.containers_pb2 import HloProto, HloSnapshot, HloUnoptimizedSnapshot
from mlirhlo.formats.proto.literal_pb2 import LiteralProto
from mlirhlo.formats.proto.module_pb2 import HloModuleProto
from mlirhlo.formats.proto.shape_pb2 import LayoutProto, PrimitiveType, ShapeProto
from mlirhlo.formats.sniff import Container, Format, Sniffed, sniff

SAMPLES = SHARED / "reference" / "dump_samples"
WITH_MODULE = [container for container in Container if container.holds_module]
ENCODINGS = (Format.PROTO, Format.PROTO_TEXT, Format.PROTO_JSON)


def array(element_type: int, *sizes: int, **data: object) -> LiteralProto:
    """An array literal with the given data field."""
    layout = LayoutProto(minor_to_major=range(len(sizes) - 1, -1, -1))
    shape = ShapeProto(element_type=element_type, dimensions=sizes, layout=layout)  # type: ignore[arg-type]
    return LiteralProto(shape=shape, **data)  # type: ignore[arg-type]


def small_module() -> HloModuleProto:
    """One parameter, negated; written out, so that no reader is needed to make it."""
    scalar = ShapeProto(element_type=PrimitiveType.F32, layout=LayoutProto())
    module = HloModuleProto(name="m", entry_computation_name="e")
    module.host_program_shape.parameters.add().CopyFrom(scalar)
    module.host_program_shape.result.CopyFrom(scalar)
    module.host_program_shape.parameter_names.append("p")
    computation = module.computations.add(name="e", root_id=1)
    computation.instructions.add(name="p", opcode="parameter", shape=scalar)
    computation.instructions.add(name="n", opcode="negate", shape=scalar, id=1, operand_ids=[0])
    return module


def snapshot(*arguments: LiteralProto) -> HloUnoptimizedSnapshot:
    """A snapshot of one partition."""
    result = HloUnoptimizedSnapshot(hlo_module=small_module())
    result.partitions.add(arguments=arguments)
    return result


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("format", ENCODINGS)
@pytest.mark.parametrize("container", WITH_MODULE)
def test_every_container_in_every_encoding(
    container: Container, format: Format, packed: bool
) -> None:
    message = wrap(small_module(), container)
    framed = container is Container.FRAMED_SNAPSHOT
    if framed:
        if format is not Format.PROTO:
            return
        message.partitions.add()  # type: ignore[attr-defined]
    elif isinstance(message, HloUnoptimizedSnapshot):
        message.partitions.add()
    elif isinstance(message, HloSnapshot):
        message.execution_platform = "CPU"
    data = write(message, format, gzip=packed, framed=framed)
    contents = read(data)
    if container is not Container.MODULE_WITH_CONFIG:  # an empty config leaves no trace
        assert contents.sniffed == Sniffed(format, packed, container)
        assert contents.message == message
    assert contents.module == small_module()
    assert write(contents.message, format, gzip=packed, framed=framed) == data


def test_unknown_fields_survive_binary_and_are_not_dropped_in_text() -> None:
    data = write(wrap(small_module())) + b"\xfa\x3f\x02hi"  # field 1023
    message = read(data).message
    assert write(message) == data
    for text in (Format.PROTO_TEXT, Format.PROTO_JSON):
        with pytest.raises(HloError) as caught:
            write(message, text)
        assert caught.value.code == "HLO0207"


def test_unknown_flags_are_no_reason_to_refuse_a_configuration() -> None:
    message = read(b"seed: 3\nlaunch_id: 1\nreplica_count: 2\nflag_of_tomorrow: 7\n").message
    assert message.seed == 3  # type: ignore[attr-defined]


def test_the_shortest_module_file() -> None:
    data = write(HloModuleProto(name="m"))
    assert sniff(data) == Sniffed(Format.PROTO, False, Container.MODULE)


# Damage ----------------------------------------------------------------------------------


def refused(data: bytes, **options: int) -> HloError:
    with pytest.raises(HloError) as caught:
        read(data, "f", **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x01\x02", b"\x7fELF\x02\x01\x01", b"# only a comment"]
)
def test_what_is_no_proto_is_refused(data: bytes) -> None:
    assert refused(data).code == "HLO0200"


def test_truncation_names_the_place() -> None:
    data = write(wrap(small_module()))
    problem = refused(data[:-2])
    assert problem.code == "HLO0201"
    assert "HloProto, byte 0: field 1 claims" in str(problem)
    inner = bytearray(data)
    # Raise the length of the name of instruction "n" beyond the end of its message.
    at = data.index(b"\x0a\x01n\x12\x06negate")
    inner[at + 1] = 100
    message = str(refused(bytes(inner)))
    assert "hlo_module" in message
    assert 'computations[0] "e".instructions[1]' in message


def test_text_in_a_string_field_must_be_utf8() -> None:
    data = write(small_module()).replace(b"\x12\x06negate", b"\x12\x06neg\xffte")
    assert "its text is not UTF-8" in str(refused(data))


def test_text_damage_has_line_and_caret() -> None:
    problem = refused(b'hlo_module {\n  name: "m"\n  nmae: "x"\n}\n')
    assert problem.code == "HLO0202"
    assert str(problem).startswith("f:3:")
    assert 'nmae: "x"' in str(problem)


def test_json_damage() -> None:
    assert refused(b'{"hlo_module": {"name": 3}}').code == "HLO0202"
    assert refused(b'{"hlo_module": {"name": "x"}').code == "HLO0202"
    assert refused(b'{"hlo_module":' * 3000 + b"}" * 3000).code == "HLO0202"


def test_gzip_damage_and_bombs() -> None:
    data = gzip.compress(write(wrap(small_module())))
    assert refused(data[:-9]).code == "HLO0203"
    assert refused(data[:10] + b"\xff" * 20).code == "HLO0203"
    bomb = gzip.compress(bytes(1 << 24))
    assert refused(bomb, limit=1 << 20).code == "HLO0203"
    assert sniff(data[:-9]) == Sniffed(Format.UNKNOWN, is_gzip=True)


def test_deep_nesting_ends_in_a_diagnostic() -> None:
    shape = b""
    for _ in range(500):
        shape = b"\x22" + _varint(len(shape)) + shape
    literal = b"\x0a" + _varint(len(shape)) + shape
    arguments = b"\x12" + _varint(len(literal)) + literal
    data = write(HloSnapshot(hlo=HloProto(hlo_module=small_module()))) + arguments
    assert refused(data).code == "HLO0201"


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


@pytest.mark.parametrize(
    "message", [HloProto(), HloSnapshot(), HloUnoptimizedSnapshot(), LiteralProto()]
)
def test_a_message_without_module(message: Message) -> None:
    with pytest.raises(HloError) as caught:
        module_of(message)
    assert caught.value.code == "HLO0204"


# Frames ----------------------------------------------------------------------------------

LITERALS = {
    "pred": (array(1, 9, preds=[1, 0, 1, 1, 0, 0, 0, 1, 1]), "8d01"),
    "s4": (array(21, 3, s4s=b"\x01\x0e\x03"), "e103"),
    "s2": (array(26, 3, s2s=b"\x01\x02\x03"), "39"),
    "u1": (array(31, 9, u1s=b"\x01\x00\x00\x00\x00\x00\x00\x00\x01"), "0101"),
    "f32": (array(11, 2, f32s=[1.0, -2.0]), "0000803f000000c0"),
    "s64": (array(5, 1, s64s=[-2]), "feffffffffffffff"),
    "f16": (array(10, 1, f16s=b"\x00\x3c"), "003c"),
    "c64": (array(15, 1, c64s=[1.0, 2.0]), "0000803f00000040"),
    "empty": (array(11, 0), ""),
}


@pytest.mark.parametrize("name", LITERALS)
def test_raw_literals_are_packed(name: str) -> None:
    literal, hexadecimal = LITERALS[name]
    data = write(snapshot(literal), framed=True)
    assert data.endswith(bytes.fromhex(hexadecimal))
    assert read(data).message == snapshot(literal)


def test_raw_tuples() -> None:
    pair = LiteralProto()
    pair.shape.element_type = PrimitiveType.TUPLE
    for literal, _ in (LITERALS["s4"], LITERALS["f32"]):
        pair.shape.tuple_shapes.append(literal.shape)
        pair.tuple_literals.append(literal)
    assert read(write(snapshot(pair, LITERALS["pred"][0]), framed=True)).message == snapshot(
        pair, LITERALS["pred"][0]
    )


def test_raw_dynamic_sizes() -> None:
    literal = array(4, 4, s32s=[1, 2, 3, 4], dynamic_sizes=[2])
    literal.shape.is_dynamic_dimension.append(True)
    assert read(write(snapshot(literal), framed=True)).message == snapshot(literal)


def test_damaged_frames() -> None:
    data = write(snapshot(LITERALS["f32"][0]), framed=True)
    for damaged in (data[:-1], data + b"x"):
        assert refused(damaged).code == "HLO0205"
    assert refused(data.replace(b"\x10\x0b\x1a\x01\x02", b"\x10\x0d\x1a\x01\x02")).code == "HLO0205"
    assert refused(data.replace(b"\x10\x0b\x1a\x01\x02", b"\x10\x0b\x1a\x01\x7f")).code == "HLO0205"


def test_data_that_fit_no_shape_cannot_be_framed() -> None:
    with pytest.raises(HloError) as caught:
        write(snapshot(array(11, 3, f32s=[1.0])), framed=True)
    assert caught.value.code == "HLO0206"


@needs_shared
def test_frames_of_xla_are_written_alike() -> None:
    path = next((SAMPLES / "cpu_snapshots").glob("delimited.*"))
    contents = read(path.read_bytes())
    assert contents.sniffed.container is Container.FRAMED_SNAPSHOT
    assert write(contents.message, framed=True) == path.read_bytes()
    plain = read(next((SAMPLES / "cpu_snapshots").glob("plain_proto.*")).read_bytes())
    assert plain.message.partitions == contents.message.partitions  # type: ignore[attr-defined]


def proto_files() -> list[Path]:
    if not SHARED.is_dir():
        return []
    found = [*SHARED.rglob("*.pb"), *SAMPLES.rglob("*.pb.gz")]
    return sorted(path for path in found if path.is_file())


@needs_shared
@pytest.mark.parametrize("path", proto_files(), ids=lambda path: path.name)
def test_binary_files_are_written_as_they_were(path: Path) -> None:
    data = path.read_bytes()
    contents = read(data, path.name)
    framed = contents.sniffed.container is Container.FRAMED_SNAPSHOT
    assert read(write(contents.message, framed=framed)).message == contents.message
    plain = containers.unwrap(data)
    assert len(write(contents.message, framed=framed)) == len(plain)


@pytest.mark.parametrize("format", ["pb", "pbtxt", "json"])
def test_buffer_assignments_stay_with_an_unchanged_module(format: str) -> None:
    """An HloProto says where values lie: kept when it is written again, dropped once the module is another."""
    path = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.cpu_after_optimizations.hlo.pb"
    original = HloProto.FromString(path.read_bytes())
    assert original.buffer_assignment.buffer_allocations
    again = formats.load(formats.to_bytes(formats.load(path).module, format))
    assert again.message == original
    module = mlirhlo.load(path).opt("call-inliner,reshape-decomposer,dce")
    module.hlo.entry.root.instruction_name = "another"
    changed = formats.load(formats.to_bytes(module.op, format)).message
    assert isinstance(changed, HloProto)
    assert not changed.HasField("buffer_assignment")
