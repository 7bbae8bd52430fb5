"""MLIR bytecode: every version of the container, what it keeps, and what it refuses."""

from __future__ import annotations

import pytest
from support import DATA
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation

from mlirhlo import formats
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.formats import bytecode
from mlirhlo.formats.bytecode.cursor import Cursor, Emitter
from mlirhlo.formats.bytecode.properties import Layout, layout, segment_sizes
from mlirhlo.formats.bytecode.property_history import EARLIER
from mlirhlo.formats.bytecode.property_table import PROPERTIES
from mlirhlo.formats.bytecode.resources import Resource
from mlirhlo.formats.bytecode.use_lists import UseListOrder, UseLists

SMALL = {n: (DATA / "bytecode" / f"small_v{n}.mlirbc").read_bytes() for n in range(7)}


def named(module: ModuleOp, name: str) -> Operation:
    """The first operation of that name that no dialect knows."""
    return next(
        op for op in module.walk() if isinstance(op, UnregisteredOp) and op.op_name.data == name
    )


def shown(module: ModuleOp) -> str:
    """The module with the location of each operation and block argument."""
    places = [str(op.location) for op in module.walk()]
    for op in module.walk():
        for region in op.regions:
            places += [str(a.location) for block in region.blocks for a in block.args]
    return str(module) + "\n" + "\n".join(places)


@pytest.mark.parametrize("version", SMALL)
def test_every_version_of_mlir_reads_the_same(version: int) -> None:
    assert shown(bytecode.read_module(SMALL[version])) == shown(bytecode.read_module(SMALL[6]))


def test_a_module_reads_as_it_was_written_down() -> None:
    module = bytecode.read_module(SMALL[6])
    text = str(module)
    assert '"x.y"(' in text
    assert "#x.attr<[1, 2]>" in text
    assert "dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>" in text
    assert 'a.list = [1 : i8, -2.500000e+00 : f32, "x", @s, unit, tensor<?x2xf16>]' in text
    names = [op.name for op in module.walk()]
    assert names[:4] == ["builtin.module", "func.func", "stablehlo.constant", "stablehlo.add"]
    constant = next(op for op in module.walk() if op.name == "stablehlo.constant")
    assert isinstance(constant.properties["value"], DenseAttr)
    assert str(constant.location) == 'loc("f.py":3:4 to 5:6)'
    add = next(op for op in module.walk() if op.name == "stablehlo.add")
    assert list(add.attributes) == ["n"]
    assert str(add.location) == 'loc("name"("f.py":1:2))'


@pytest.mark.parametrize("version", range(7))
def test_what_is_written_is_read(version: int) -> None:
    module = bytecode.read_module(SMALL[6])
    data = bytecode.write_module(module, version, "somebody")
    found_version, producer, _ = bytecode.read_head(data)
    assert (found_version, producer) == (version, "somebody")
    assert shown(bytecode.read_module(data)) == shown(module)


def test_an_operation_alone_gets_a_module() -> None:
    module = bytecode.read_module(SMALL[6])
    function = module.body.block.first_op
    assert function is not None
    assert str(bytecode.read_module(bytecode.write_module(function))) == str(
        ModuleOp([function.clone()])
    )


def test_a_newer_version_is_refused() -> None:
    data = bytearray(SMALL[6])
    data[4] = 99 << 1 | 1
    with pytest.raises(HloError, match="bytecode version 99 of producer 'MLIR") as caught:
        bytecode.read_module(bytes(data))
    assert caught.value.code == "HLO0222"
    with pytest.raises(HloError, match="bytecode version 7 is not written"):
        bytecode.write_module(ModuleOp([]), 7)


def test_text_is_no_bytecode() -> None:
    with pytest.raises(HloError) as caught:
        bytecode.read_module(b"module {}")
    assert caught.value.code == "HLO0220"


@pytest.mark.parametrize("size", [5, 40, 100, 300, 590])
def test_a_cut_off_file_names_the_byte(size: int) -> None:
    with pytest.raises(HloError, match=r"<bytecode>: byte \d+ \(0x[0-9a-f]+\): error") as caught:
        bytecode.read_module(SMALL[6][:size])
    assert caught.value.code == "HLO0221"


@pytest.mark.parametrize(
    "value", [0, 1, 127, 128, 16383, 1 << 20, (1 << 56) - 1, 1 << 56, 2**64 - 1]
)
def test_integers(value: int) -> None:
    out = Emitter()
    out.varint(value)
    for signed in (value >> 1, -(value >> 1)):
        out.signed(signed)
    cursor = Cursor(bytes(out.data), "f")
    assert cursor.varint() == value
    assert cursor.signed() == value >> 1
    assert cursor.signed() == -(value >> 1)
    assert cursor.done()


def test_values_used_before_their_definition() -> None:
    module = bytecode.read_module(SMALL[6])
    region = named(module, "x.y").regions[0]
    first, second = region.blocks
    assert first.last_op is not None
    assert list(first.last_op.successors) == [second]
    # The end uses the argument of the first block; swapped, the use comes first.
    region.detach_block(first)
    region.add_block(first)
    again = bytecode.read_module(bytecode.write_module(module))
    op = named(again, "x.y")
    swapped = list(op.regions[0].blocks)
    assert swapped[0].last_op is not None
    assert swapped[0].last_op.operands[0] is swapped[1].args[0]


def test_an_order_of_uses_is_applied() -> None:
    module = bytecode.read_module(SMALL[6])
    value = next(op for op in module.walk() if op.name == "stablehlo.add").results[0]
    before = [(use.operation.name, use.index) for use in value.uses]
    assert len(before) == 3
    cursor = Cursor(b"", "f")
    lists = UseLists()
    lists.add([value], [UseListOrder(0, (1, 2, 0), False, 0, cursor)])
    lists.apply()
    after = [(use.operation.name, use.index) for use in value.uses]
    assert after == [before[2], before[0], before[1]]
    lists = UseLists()
    lists.add([value], [UseListOrder(0, (0, 1, 1, 0), True, 0, cursor)])
    lists.apply()
    assert [(use.operation.name, use.index) for use in value.uses] == [after[1], after[0], after[2]]
    lists.add([value], [UseListOrder(0, (0, 0, 0), False, 7, cursor)])
    with pytest.raises(HloError, match=r"byte 7 .*the order of 3 uses is not one"):
        lists.apply()


def test_resources_are_kept() -> None:
    from xdsl.dialects.builtin import DenseResourceAttr, TensorType, i32

    module = ModuleOp([])
    module.attributes["a.b"] = DenseResourceAttr.from_params("blob", TensorType(i32, [2]))
    resources = [
        Resource("tool", "flag", True, 1, True),
        Resource("tool", "word", "text", 1, True),
        Resource("builtin", "blob", b"12345678", 8),
    ]
    data = bytecode.write_module(module, resources=resources)
    assert bytecode.resources_of(data) == tuple(resources)
    assert "dense_resource<blob> : tensor<2xi32>" in str(bytecode.read_module(data))


def test_layouts_of_properties() -> None:
    parsed = Layout.parse("b? a operandSegments=3")
    assert parsed.fields == (("a", True), ("b", False))
    assert parsed.segments == (("operandSegmentSizes", 3),)
    assert str(segment_sizes([1, 0, 2])) == "array<i32: 1, 0, 2>"


CALLS = """
func.func private @g(%x: i32 {a.b = "c"}) -> i32 { func.return %x : i32 }
func.func @f(%x: i32) -> i32 {
  %0 = func.call @g(%x) : (i32) -> i32
  cf.cond_br %c, ^a, ^b(%0 : i32)
^a:
  func.return %x : i32
^b(%y: i32):
  func.return %y : i32
}
""".replace("cf.cond_br", "%c = arith.constant true\n  cf.cond_br")


@pytest.mark.parametrize("version", [5, 6])
def test_properties_that_operations_had_earlier(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = formats.load(CALLS.encode(), "mlir").module
    now = bytecode.write_module(module, version)
    with monkeypatch.context() as patched:
        for name, texts in EARLIER.items():
            patched.setitem(PROPERTIES, name, texts[-1])
        layout.cache_clear()
        earlier = bytecode.write_module(module, version)
    layout.cache_clear()
    assert earlier != now
    assert str(bytecode.read_module(earlier)) == str(bytecode.read_module(now))


def test_damage_is_told_as_of_the_layout_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    module = formats.load(CALLS.encode(), "mlir").module
    with monkeypatch.context() as patched:
        patched.setitem(PROPERTIES, "func.call", "a? callee b? c? no_inline? res_attrs?")
        layout.cache_clear()
        data = bytecode.write_module(module)
    layout.cache_clear()
    with pytest.raises(HloError, match="left over behind the properties"):
        bytecode.read_module(data)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_segment_sizes(version: int) -> None:
    from xdsl.dialects.builtin import i32
    from xdsl.dialects.memref import AllocOp

    module = ModuleOp([AllocOp.get(i32, 8, [4])])
    again = bytecode.read_module(bytecode.write_module(module, version))
    assert str(again) == str(module)


def test_a_missing_property_is_named() -> None:
    module = bytecode.read_module(SMALL[6])
    constant = next(op for op in module.walk() if op.name == "stablehlo.constant")
    del constant.properties["value"]
    with pytest.raises(HloError, match=r"'stablehlo.constant' .* lacks the property 'value'"):
        bytecode.write_module(module)


def test_deep_attributes_are_no_matter_of_the_stack() -> None:
    from xdsl.dialects.builtin import ArrayAttr, UnitAttr
    from xdsl.ir import Attribute

    value: Attribute = UnitAttr()
    for _ in range(100):
        value = ArrayAttr([value])
    module = ModuleOp([])
    module.attributes["a.b"] = value
    data = bytecode.write_module(module)
    assert bytecode.read_module(data).attributes["a.b"] == value
    for _ in range(60):
        value = ArrayAttr([value])
    module.attributes["a.b"] = value
    data = bytecode.write_module(module)
    with pytest.raises(HloError, match="nested deeper than 150") as caught:
        bytecode.read_module(data)
    assert caught.value.code == "HLO0223"


def test_sharing_does_not_unfold_without_end() -> None:
    """Each array holds the one before twice: few bytes, and more parts than could be visited."""
    from xdsl.context import Context

    from mlirhlo.formats.bytecode.builtin_codec import BuiltinCodec
    from mlirhlo.formats.bytecode.container import Container, Entry
    from mlirhlo.formats.bytecode.entries import Entries
    from mlirhlo.formats.bytecode.text import AttributeText

    out = Emitter()
    table = [Entry("builtin", True, 0, 1)]
    out.varint(7)
    for index in range(60):
        begin = len(out.data)
        for number in (0, 2, index, index):
            out.varint(number)
        table.append(Entry("builtin", True, begin, len(out.data)))
    data = bytes(out.data)
    container = Container(data, "f", 6, "", (), (), (), tuple(table), (), (), {})
    entries = Entries(container, {"builtin": BuiltinCodec()}, AttributeText(Context()))
    assert entries.attribute(10, Cursor(data, "f"))
    with pytest.raises(HloError, match="unfolds to more than") as caught:
        entries.attribute(60, Cursor(data, "f"))
    assert caught.value.code == "HLO0223"
