"""VHLO and portable artifacts without the judge: versions, upgrades, refusals."""

from __future__ import annotations

import re

import pytest
from support import DATA
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirhlo import formats
from mlirhlo.diagnostics import HloError
from mlirhlo.formats import bytecode, vhlo
from mlirhlo.formats.vhlo.table import vhlo_ops
from mlirhlo.formats.vhlo.versions import CURRENT, MINIMUM, Version, bytecode_version

FILES = {
    path.stem.removeprefix("ops_"): path.read_bytes()
    for path in sorted((DATA / "bytecode").glob("ops_*.mlirbc"))
}
NEWEST = str(CURRENT)


def functions(module: ModuleOp) -> dict[str, str]:
    """The text of each function by name."""
    found: dict[str, str] = {}
    for op in module.body.block.ops:
        name = op.properties["sym_name"]
        assert isinstance(name, StringAttr)
        found[name.data] = str(op)
    return found


@pytest.mark.parametrize("version", FILES)
def test_artifacts_of_all_versions_mean_the_same(version: str) -> None:
    module = vhlo.deserialize_artifact(FILES[version])
    newest = functions(vhlo.deserialize_artifact(FILES[NEWEST]))
    own = functions(module)
    assert len(own) > 80
    assert {name: newest[name] for name in own} == own
    assert "vhlo" not in str(module)


@pytest.mark.parametrize("version", FILES)
def test_artifacts_are_written_for_their_versions(version: str) -> None:
    module = vhlo.deserialize_artifact(FILES[version])
    data = vhlo.serialize_artifact(module, version)
    head = bytecode.read_head(data)
    assert head[:2] == (
        bytecode_version(Version(*map(int, version.split(".")))),
        f"StableHLO_v{version}",
    )
    assert str(vhlo.artifact_version(data)) == version
    assert functions(vhlo.deserialize_artifact(data)) == functions(module)


def test_the_newest_artifact_has_all_operations() -> None:
    module = vhlo.deserialize_artifact(FILES[NEWEST])
    there = {op.name.partition(".")[2] for op in module.walk()}
    assert {op.opcode for op in vhlo_ops().values()} - there == {
        "cross-replica-sum",  # no version of jaxlib that is tested with has it
        "uniform_dequantize",  # needs the quant dialect, which JAX does not load
        "uniform_quantize",
    }


def test_versions() -> None:
    assert vhlo.parse_version("current") == CURRENT
    assert vhlo.parse_version("minimum") == MINIMUM == Version(0, 9, 0)
    assert vhlo.parse_version("1.4.9").opset == Version(1, 4)
    for text in ("0.8.0", "99.0.0", "1.2", "new"):
        with pytest.raises(HloError) as caught:
            vhlo.parse_version(text)
        assert caught.value.code == "HLO0230"


REFUSED = [
    ("composite", "0.18.0", "'stablehlo.composite' came with 0.19.0"),
    ("collectives", "0.15.0", "'stablehlo.collective_broadcast' came with 0.16.0"),
    ("async", "1.14.0", "'stablehlo.async_start' came with 1.15.0"),
    ("control", "1.8.0", "'result_accuracy' came with 1.9.0"),
    ("custom_call_typed", "1.2.0", "a dictionary as backend_config came with 1.3.0"),
    ("dot", "1.5.0", "came with 1.6.0"),
    ("variadic", "1.4.0", "more than one operand came with 1.5.0"),
    ("promoting", "0.16.0", "reducing in another element type came with 0.17.0"),
    ("send_pairs", "1.11.0", "'source_target_pairs' came with 1.12.0"),
    ("rng", "1.3.0", "'stablehlo.tan' came with 1.4.0"),
    ("constants", "1.1.0", "'i2' came with 1.2.0"),
    ("constants", "1.7.0", "'f4E2M1FN' came with 1.8.0"),
    ("buffer", "1.12.0", "'memref<4xf32>' came with 1.13.0"),
    ("collectives", "1.15.0", "came with 1.16.0"),
]


@pytest.mark.parametrize(("name", "version", "message"), REFUSED)
def test_a_version_gap_is_named(name: str, version: str, message: str) -> None:
    module = vhlo.deserialize_artifact(FILES[NEWEST])
    for op in list(module.body.block.ops):
        if op.properties["sym_name"] not in (StringAttr(name), StringAttr("callee")):
            op.detach()
    with pytest.raises(HloError) as caught:
        vhlo.serialize_artifact(module, version)
    assert caught.value.code == "HLO0233"
    text = str(caught.value)
    assert message in text
    assert f"StableHLO {version}" in text
    match = re.search(r"target (\d+\.\d+\.\d+) or newer", text)
    assert match is not None
    assert vhlo.parse_version(match[1]) > vhlo.parse_version(version)


def test_an_operation_of_the_future_is_named() -> None:
    data = FILES[NEWEST].replace(b"floor_v1", b"fleer_v7").replace(b"v1.17.0", b"v9.42.0")
    with pytest.raises(HloError) as caught:
        vhlo.deserialize_artifact(data, "m.mlirbc")
    assert caught.value.code == "HLO0231"
    text = str(caught.value)
    assert "'vhlo.fleer_v7' is not known: the artifact is of StableHLO 9.42.0" in text
    assert text.startswith("m.mlirbc: byte ")
    assert f"target version {CURRENT} or older" in text


def test_an_artifact_from_before_the_promise() -> None:
    data = FILES["0.9.0"].replace(b"StableHLO_v0.9.0", b"StableHLO_v0.3.0")
    with pytest.raises(HloError, match=r"kept readable from 0.9.0 on"):
        vhlo.deserialize_artifact(data)


def test_other_dialects_between() -> None:
    module = vhlo.deserialize_artifact(FILES["0.9.0"])
    add = next(op for op in module.walk() if op.name == "stablehlo.floor")
    block = add.parent_block()
    assert block is not None
    from xdsl.dialects.builtin import UnregisteredOp

    other = UnregisteredOp.with_name("x.y").create(
        operands=[add.results[0]], result_types=[add.results[0].type]
    )
    block.insert_op_after(other, add)
    add.results[0].replace_uses_with_if(other.results[0], lambda use: use.operation is not other)
    before = str(module)
    again = vhlo.deserialize_artifact(vhlo.serialize_artifact(module))
    assert str(again) == before == str(module)
    with pytest.raises(HloError, match=r"'x.y' is no StableHLO operation") as caught:
        vhlo.serialize_artifact(module, "1.10.0")
    assert caught.value.code == "HLO0233"


def test_a_property_that_is_missing() -> None:
    module = vhlo.deserialize_artifact(FILES[NEWEST])
    op = next(op for op in module.walk() if op.name == "stablehlo.transpose")
    del op.properties["permutation"]
    with pytest.raises(HloError, match=r"the property 'permutation' is missing") as caught:
        vhlo.serialize_artifact(module)
    assert caught.value.code == "HLO0234"


def test_formats_load_and_write_artifacts(tmp_path: object) -> None:
    module = formats.load(FILES["1.0.0"]).module
    assert str(module) == str(vhlo.deserialize_artifact(FILES["1.0.0"]))
    data = formats.to_bytes(module, "artifact")
    assert vhlo.artifact_version(data) == CURRENT
    assert str(formats.load(data).module) == str(module)
    plain = formats.to_bytes(module, "mlirbc")
    assert vhlo.artifact_version(plain) is None
    assert str(formats.load(plain).module) == str(module)


def test_quantized_types() -> None:
    from mlirhlo.formats import stablehlo

    one = "tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>"
    scales = "{1.000000e+00,2.000000e+00:7,2.500000e-01}"
    by_axis = f"tensor<2x3x!quant.uniform<u8<1:200>:f32:1, {scales}>>"
    text = f"""module {{
  func.func @main(%arg0: {one}, %arg1: tensor<2x3xf32>) -> {by_axis} {{
    %0 = stablehlo.uniform_dequantize %arg0 : ({one}) -> tensor<2xf32>
    %1 = stablehlo.uniform_quantize %arg1 : (tensor<2x3xf32>) -> {by_axis}
    return %1 : {by_axis}
  }}
}}
"""
    module = stablehlo.parse_module(text)
    data = vhlo.serialize_artifact(module)
    assert b"quant.uniform" not in data  # a binary encoding, as all of VHLO's
    assert stablehlo.print_module(vhlo.deserialize_artifact(data)) == stablehlo.print_module(module)
    with pytest.raises(HloError, match=r"came with 0\.18\.0"):
        vhlo.serialize_artifact(module, "0.17.0")
