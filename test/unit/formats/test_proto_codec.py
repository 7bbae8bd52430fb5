"""The way between protos and the dialect: exact both ways, and as XLA does it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import Message
from support import DATA, HLO_PROTOS, SHARED, needs_shared, one_in, sampled
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import parse_shape
from mlirhlo.formats import containers
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.formats.proto import (
    config_of,
    decode_module,
    encode_module,
    literal_to_numpy,
    numpy_to_literal,
)
from mlirhlo.formats.proto.module_pb2 import HloInstructionProto, HloModuleProto

EVERY_OPCODE = Path(__file__).parent / "proto_inputs" / "every_opcode.hlo"


def written(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def proto_of(text: str) -> HloModuleProto:
    return encode_module(parse_module(text))


def find(module: HloModuleProto, name: str) -> HloInstructionProto:
    return next(i for c in module.computations for i in c.instructions if i.name == name)


def op_named(module: ModuleOp, name: str) -> Any:
    return next(op for op in HloModule(module).instructions if op.instruction_name == name)


NEGATE = "ENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}"

# Exactness ---------------------------------------------------------------------------------


def proto_files() -> list[Path]:
    found = [*HLO_PROTOS, *SHARED.rglob("*.pb"), *SHARED.rglob("*.pb.gz")]
    return sorted(path for path in found if "memory-usage" not in path.name)


@pytest.mark.parametrize("path", proto_files(), ids=lambda path: path.name)
def test_files_are_decoded_and_encoded_to_the_same_message(path: Path) -> None:
    proto = containers.read(path.read_bytes(), path.name).module
    module = decode_module(proto)
    assert encode_module(module) == proto
    assert written(encode_module(module)) == written(proto)
    module.verify()


def texts() -> list[Path]:
    folders = [DATA, SHARED / "corpus" / "programs"]
    return [EVERY_OPCODE, *sorted(p for folder in folders for p in folder.rglob("*.hlo"))]


def there_and_back(text: str) -> tuple[str, str]:
    """Text printed before and after the way through a proto."""
    module = parse_module(text)
    proto = HloModuleProto.FromString(written(encode_module(module)))
    return print_module(module), print_module(decode_module(proto))


def test_text_of_every_opcode_survives() -> None:
    before, after = there_and_back(EVERY_OPCODE.read_text())
    assert after == before


@pytest.mark.slow
@sampled(20)
def test_texts_survive(every: int) -> None:
    wrong: list[str] = []
    for path in one_in(every, texts()):
        before, after = there_and_back(path.read_text())
        if before != after:
            wrong.append(path.name)
    assert not wrong


def test_unknown_fields_survive_everywhere() -> None:
    proto = proto_of(NEGATE)
    unknown = b"\xfa\x3f\x02hi"  # field 1023
    proto.computations[0].instructions[1].MergeFromString(unknown)
    proto.computations[0].instructions[0].metadata.MergeFromString(unknown)
    proto.computations[0].instructions[0].shape.layout.MergeFromString(unknown)
    proto.computations[0].MergeFromString(unknown)
    proto.MergeFromString(unknown)
    assert written(proto).count(unknown) == 5
    assert written(encode_module(decode_module(proto))) == written(proto)


def test_unknown_fields_of_metadata_are_no_text() -> None:
    proto = proto_of(NEGATE.replace("negate(p)", 'negate(p), metadata={op_name="n"}'))
    proto.computations[0].instructions[1].metadata.MergeFromString(b"\x30\x79")  # a former field
    module = decode_module(proto)
    assert 'metadata={op_name="n"}' in print_module(module)
    assert written(encode_module(module)) == written(proto)


def test_spellings_of_defaults_survive() -> None:
    proto = proto_of(NEGATE)
    parameter, negate = proto.computations[0].instructions
    parameter.ClearField("metadata")
    parameter.shape.layout.tail_padding_alignment_in_elements = 0
    negate.shape.ClearField("is_dynamic_dimension")
    negate.ClearField("statistics_viz")
    proto.ClearField("buffer_donor")
    proto.computations[0].ClearField("program_shape")
    proto.id = 77
    module = decode_module(proto)
    assert encode_module(module) == proto
    assert print_module(module) == print_module(parse_module(NEGATE))


def test_a_changed_fact_is_not_overruled_by_what_was_kept() -> None:
    proto = proto_of(NEGATE)
    for instruction in proto.computations[0].instructions:
        instruction.shape.ClearField("is_dynamic_dimension")
        instruction.MergeFromString(b"\xfa\x3f\x02hi")
    module = decode_module(proto)
    negate = op_named(module, "n")
    wide = build.make("negate", negate.inputs, parse_shape("f32[4]{0:S(1)}"), negate.properties)
    wide.instruction_name = "n"
    block = negate.parent
    assert block is not None
    block.insert_op_before(wide, negate)
    negate.results[0].replace_all_uses_with(wide.results[0])
    negate.detach()
    found = find(encode_module(module), "n")
    assert found.shape.layout.memory_space == 1
    assert list(found.shape.is_dynamic_dimension) == [False]  # the old shape did not come back
    assert b"\xfa\x3f\x02hi" in written(found)  # what nobody changed stays
    assert not find(encode_module(module), "p").shape.is_dynamic_dimension


# Ids and orders ----------------------------------------------------------------------------


def test_ids_survive_and_new_instructions_get_free_ones() -> None:
    proto = proto_of(NEGATE)
    computation = proto.computations[0]
    computation.id = 5
    for instruction, number in zip(computation.instructions, (40, 7), strict=True):
        instruction.id = 5 << 32 | number
    computation.instructions[1].operand_ids[:] = [5 << 32 | 40]
    computation.root_id, proto.entry_computation_id = 5 << 32 | 7, 5
    module = decode_module(proto)
    assert encode_module(module) == proto
    parameter = op_named(module, "p")
    new = build.make("abs", [parameter], parameter.shape)
    block = parameter.parent
    assert block is not None
    block.insert_op_after(new, parameter)
    changed = encode_module(module)
    ids = [i.id for i in changed.computations[0].instructions]
    assert len(set(ids)) == 3
    assert {5 << 32 | 40, 5 << 32 | 7} < set(ids)
    assert {number >> 32 for number in ids} == {5}
    assert [i.name for i in changed.computations[0].instructions if i.opcode == "abs"] == ["abs"]


def test_old_ids_without_upper_half() -> None:
    proto = proto_of(NEGATE)
    parameter, negate = proto.computations[0].instructions
    proto.computations[0].id = proto.entry_computation_id = 9
    parameter.id, negate.id = 3, 4
    negate.operand_ids[:] = [3]
    proto.computations[0].root_id = 4
    assert encode_module(decode_module(proto)) == proto


def test_a_schedule_is_the_block_order_and_the_stored_order_is_kept() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  b = f32[4] cosine(p)
  a = f32[4] negate(p)
  ROOT s = f32[4] add(a, b)
}"""
    proto = proto_of(text)
    stored = [i.name for i in proto.computations[0].instructions]
    assert stored == ["p", "a", "b", "s"]  # XLA's depth-first order
    assert list(proto.schedule.sequences[0].instruction_ids) == [0, 1, 2, 3]
    module = decode_module(proto)
    assert [op.instruction_name for op in HloModule(module).instructions] == ["p", "b", "a", "s"]
    assert encode_module(module) == proto
    # Another legal order than XLA's comes back, too.
    instructions = list(proto.computations[0].instructions)
    del proto.computations[0].instructions[:]
    proto.computations[0].instructions.extend([instructions[k] for k in (0, 2, 1, 3)])
    assert encode_module(decode_module(proto)) == proto


def test_an_empty_sequence_orders_nothing() -> None:
    # libtpu writes one for each fused computation.
    proto = proto_of(NEGATE)
    proto.schedule.sequences[proto.computations[0].id].SetInParent()
    assert encode_module(decode_module(proto)) == proto


def test_header_attributes_without_a_field_travel_in_the_backend_config() -> None:
    text = (
        "HloModule m, alias_passthrough_params=true,"
        " entry_computation_layout={(f32[4]{0})->f32[4]{0}},"
        " allow_spmd_sharding_propagation_to_output={true,false},"
        " replica_count=2, num_partitions=4\n\n" + NEGATE
    )
    module = parse_module(text)
    again = decode_module(encode_module(module))
    assert print_module(again) == print_module(module)
    assert not encode_module(module, keep_config=False).backend_config
    config = config_of(HloModule(module))
    assert (config.replica_count, config.num_partitions) == (2, 4)
    plain = encode_module(module, keep_config=False)
    assert print_module(decode_module(plain, config=config)) == print_module(module)


def test_payload_tables() -> None:
    proto = proto_of(NEGATE)
    proto.payloads.extend([b"unused", b"one\xff"])
    parameter, negate = proto.computations[0].instructions
    parameter.metadata.op_name = "x"
    parameter.metadata.metadata_payload.id = 1
    negate.metadata.metadata_payload.value = b"inline"
    negate.backend_config_payload.id = 0
    module = decode_module(proto)
    assert op_named(module, "p").metadata.metadata_payload == "one\udcff"
    assert op_named(module, "n").backend_config == "unused"
    assert encode_module(module) == proto


def test_elided_constants_have_no_data() -> None:
    text = "ENTRY e {\n  ROOT c = f32[100] constant({...})\n}"
    proto = proto_of(text)
    assert not find(proto, "c").literal.f32s
    assert op_named(decode_module(proto), "c").literal.is_elided


# Older forms -------------------------------------------------------------------------------


def test_old_replica_groups() -> None:
    text = """add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(p), channel_id=3, replica_groups={{0,2},{1,3}}, to_apply=add
}"""
    wanted = print_module(parse_module(text))
    before = proto_of(text)
    reduce = find(before, "r")
    reduce.ClearField("replica_group_list")
    reduce.ClearField("channel_id")
    reduce.all_reduce_id = 3
    for group in ([0, 2], [1, 3]):
        reduce.replica_groups.add(replica_ids=group)
    module = decode_module(before)
    assert print_module(module) == wanted
    assert encode_module(module) == before
    iota = proto_of(text)
    inner = find(iota, "r").collective_device_list
    inner.Clear()
    inner.iota_replica_group_list.num_replica_groups = 2
    inner.iota_replica_group_list.num_devices_per_group = 2
    inner.iota_replica_group_list.iota_reshape_dims.extend([2, 2])
    inner.iota_replica_group_list.iota_transpose_perm.extend([1, 0])
    module = decode_module(iota)
    assert "replica_groups=[2,2]<=[2,2]T(1,0)" in print_module(module)
    assert encode_module(module) == iota


def test_old_comparisons_and_prefetches() -> None:
    text = """ENTRY e {
  p = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[]) copy-start(p), cross_program_prefetch_index=0
  d = f32[4] copy-done(s)
  ROOT c = pred[4] compare(d, d), direction=LT
}"""
    proto = proto_of(text)
    wanted = print_module(parse_module(text))
    find(proto, "c").ClearField("comparison_type")
    find(proto, "s").ClearField("cross_program_prefetch_index")
    find(proto, "s").is_cross_program_prefetch = True
    module = decode_module(proto)
    assert print_module(module) == wanted
    assert encode_module(module) == proto


# Newer producers ---------------------------------------------------------------------------


def test_fields_of_newer_producers() -> None:
    proto = proto_of(
        "ENTRY e {\n  p = f32[4] parameter(0)\n  ROOT c = pred[4] compare(p, p), direction=LT\n}"
    )
    find(proto, "c").comparison_order = "TOTAL"
    proto.backend_config = b'{"theirs":1}'
    proto.computations[0].backend_config = b"x"
    proto.debug_attributes.add().original_array.instruction_name = "q"
    module = decode_module(proto)
    assert "order=TOTAL" in print_module(module)
    assert encode_module(module) == proto


def test_block_scaling_travels_as_text() -> None:
    proto = proto_of(
        "ENTRY e {\n  p = f32[4,4] parameter(0)\n  ROOT d = f32[4,4] dot(p, p),"
        " lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}"
    )
    scaling = find(proto, "d").block_scaling_config
    scaling.lhs.scale_idx = 2
    scaling.lhs.steps.extend([1, 32])
    module = decode_module(proto)
    text = print_module(module)
    assert "block_scaling_config={lhs={scale_idx=2 steps={1,32}}}" in text
    assert find(encode_module(parse_module(text)), "d").block_scaling_config == scaling


# What cannot be ----------------------------------------------------------------------------

MODULE = """add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[] parameter(1)
  k = f32[4] constant({1,2,3,4})
  n = f32[4] negate(p)
  c = pred[4] compare(p, n), direction=LT
  ROOT r = f32[] reduce(n, q), dimensions={0}, to_apply=add
}"""


def broken(name: str, change: str) -> HloModuleProto:
    """The module with statements run on the instruction `i` called `name`, or on module `m`."""
    proto = proto_of(MODULE)
    exec(change, {"m": proto, "i": find(proto, name)})
    return proto


TOO_MANY_DEVICES = """
i.sharding.type = 3
i.sharding.tile_assignment_dimensions.append(1 << 40)
i.sharding.iota_reshape_dims.append(1 << 40)
"""

WRONG = [
    ("n", "i.opcode = 'foo'", "HLO0211", "e.n: error[HLO0211]: unknown opcode: foo"),
    ("n", "i.ClearField('shape')", "HLO0213", "negate has no shape"),
    ("n", "i.shape.element_type = 99", "HLO0213", "99 is not an element type"),
    ("n", "i.shape.dimensions[0] = -4", "HLO0213", "negative size -4"),
    ("n", "i.shape.dimensions.extend([1 << 62, 9])", "HLO0213", "dynamic marks"),
    ("n", "i.shape.layout.minor_to_major[0] = 3", "HLO0213", "is not a permutation"),
    ("n", "i.shape.layout.minor_to_major.append(1)", "HLO0213", "a layout of 2 dimensions"),
    ("n", "i.operand_ids[0] = 77", "HLO0212", "77 is not an earlier instruction"),
    ("n", "i.operand_ids[0] = i.id", "HLO0212", "is not an earlier instruction"),
    ("n", "i.control_predecessor_ids.append(77)", "HLO0212", "77 is not an earlier instruction"),
    ("n", "i.id = m.computations[1].instructions[0].id", "HLO0212", "two instructions have the id"),
    ("r", "i.called_computation_ids[0] = 9", "HLO0212", "called computation 9"),
    ("r", "i.called_computation_ids[0] = 1", "HLO0212", "called computation 1"),
    ("r", "del i.called_computation_ids[:]", "HLO0215", "reduce calls 1 computations, found 0"),
    ("q", "i.parameter_number = 0", "HLO0214", "parameter numbers are 0, 0"),
    ("q", "i.parameter_number = 5", "HLO0214", "they must be 0 to 1"),
    ("k", "i.literal.f32s.append(5)", "HLO0206", "5 f32 elements in a literal of 4"),
    (
        "k",
        "i.ClearField('literal')",
        "HLO0206",
        "e.k: error[HLO0206]: a constant without a literal",
    ),
    ("k", "i.literal.ClearField('shape')", "HLO0206", "a literal without a shape"),
    ("c", "i.comparison_direction = 'XX'", "HLO0215", "'XX' is not one of EQ"),
    ("c", "i.comparison_direction = ''", "HLO0215", "attribute direction is expected"),
    ("n", "i.sharding.type = 42", "HLO0215", "sharding: 42 is not a type"),
    ("n", "i.sharding.type = 3", "HLO0215", "tile dimensions are positive"),
    (
        "n",
        TOO_MANY_DEVICES,
        "HLO0215",
        "devices are too many",
    ),
    (
        "n",
        "i.metadata.metadata_payload.id = 4",
        "HLO0216",
        "payload 4 is not one of the module's 0",
    ),
    ("n", "m.entry_computation_id = 9", "HLO0212", "the entry's id 9"),
    ("n", "m.computations[1].root_id = 99", "HLO0212", "the root's id 99"),
    ("n", "m.computations[1].id = 0", "HLO0212", "two computations have the id 0"),
    ("n", "m.computations[1].id = -1", "HLO0212", "-1 is no id"),
    ("n", "m.computations.reverse()", "HLO0212", "is not an earlier computation"),
    ("n", "m.schedule.sequences[1].instruction_ids.append(0)", "HLO0217", "orders 1 of 6"),
    ("n", "del m.computations[:]", "HLO0212", "no computation has the entry's id"),
]


@pytest.mark.parametrize(("name", "change", "code", "message"), WRONG, ids=lambda v: str(v)[:40])
def test_what_cannot_be_is_named(name: str, change: str, code: str, message: str) -> None:
    with pytest.raises(HloError) as caught:
        decode_module(broken(name, change), "m.pb")
    assert caught.value.code == code
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.pb: ")


def test_huge_sizes_are_refused_before_they_cost_anything() -> None:
    proto = proto_of(NEGATE)
    for instruction in proto.computations[0].instructions:
        instruction.shape.dimensions[0] = (1 << 63) - 1
    with pytest.raises(HloError) as caught:
        decode_module(proto)
    assert caught.value.code == "HLO0213"


def test_names_are_made_legal_and_written_back() -> None:
    proto = proto_of(NEGATE)
    find(proto, "p").name = "a b"
    find(proto, "n").name = ""
    proto.computations[0].name = "x y"
    module = decode_module(proto)
    assert "%a_b" in print_module(module)
    assert encode_module(module) == proto
    assert parse_module(print_module(module)) is not None


def test_what_a_proto_cannot_say() -> None:
    module = parse_module(NEGATE)
    op_named(module, "n").properties["raw_attributes"] = string("foo=1")
    with pytest.raises(HloError) as caught:
        encode_module(module)
    assert caught.value.code == "HLO0208"
    assert "n: error" in str(caught.value)


def test_a_damaged_rest_is_passed_over() -> None:
    module = parse_module(NEGATE)
    for text in ("!", base64.b64encode(b"\x0a\x50").decode()):
        op_named(module, "n").properties["proto_rest"] = string(text)
        assert encode_module(module) == proto_of(NEGATE)


# Snapshots ---------------------------------------------------------------------------------


@needs_shared
def test_literals_of_snapshots_are_numpy_arrays() -> None:
    path = next((SHARED / "reference/dump_samples/cpu_snapshots").glob("*.snapshot.*"))
    snapshot = containers.read(path.read_bytes(), path.name).message
    arguments = [literal_to_numpy(literal) for literal in snapshot.arguments]  # type: ignore[attr-defined]
    assert [type(a) for a in arguments] == [np.ndarray] * len(arguments)
    for literal, value in zip(snapshot.arguments, arguments, strict=True):  # type: ignore[attr-defined]
        again = numpy_to_literal(value)
        assert np.array_equal(literal_to_numpy(again), value)
        assert again == literal


def test_literals_in_another_layout_and_with_dynamic_sizes() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    literal = numpy_to_literal(values, parse_shape("f32[2,3]{0,1}"))
    assert list(literal.f32s) == [0, 3, 1, 4, 2, 5]
    assert np.array_equal(literal_to_numpy(literal), values)
    literal.dynamic_sizes.extend([2, 2])
    assert np.array_equal(literal_to_numpy(literal), values[:, :2])
    pair = numpy_to_literal((values, np.array(3, np.int8)))
    found = literal_to_numpy(pair)
    assert isinstance(found, tuple)
    assert np.array_equal(found[0], values)
    with pytest.raises(TypeError):
        numpy_to_literal(np.array(["text"]))


def test_configuration_beside_the_module() -> None:
    from mlirhlo import formats

    module = parse_module("HloModule m, replica_count=2\n\n" + NEGATE)
    data = formats.to_bytes(module, "pb", container="HloModuleProtoWithConfig")
    contents = containers.read(data)
    assert contents.config is not None
    assert contents.config.replica_count == 2
    contents.module.ClearField("backend_config")
    again = formats.load(written(contents.message)).module
    assert print_module(again) == print_module(module)


def test_errors_name_the_file_and_the_instruction() -> None:
    from mlirhlo import formats

    data = written(broken("n", "i.opcode = 'foo'"))
    with pytest.raises(HloError) as caught:
        formats.load(data, name="my.pb")
    assert str(caught.value).startswith("my.pb: e.n: error[HLO0211]: unknown opcode: foo")


def test_known_numbers_of_another_wire_type_survive() -> None:
    proto = proto_of(NEGATE)
    proto.computations[0].MergeFromString(b"\x10\x07")  # field 2 as a number
    proto.MergeFromString(b"\x18\x07")  # field 3 as a number
    proto.computations[0].instructions[1].MergeFromString(b"\x38\x07")  # field 7 as a number
    assert written(encode_module(decode_module(proto))) == written(proto)
