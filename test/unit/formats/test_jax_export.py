"""What `jax.export` writes."""

from __future__ import annotations

import pytest
from support import DATA

from mlirhlo import formats
from mlirhlo.diagnostics import HloError
from mlirhlo.formats import jax_export, vhlo
from mlirhlo.formats.flatbuffer import BadBuffer, Table
from mlirhlo.formats.sniff import Format, sniff

FILES = {
    name: (DATA / "bytecode" / f"jax_export_{name}.bin").read_bytes()
    for name in ("oldest", "newest")
}


@pytest.mark.parametrize("name", FILES)
def test_fields(name: str) -> None:
    found = jax_export.read_jax_export(FILES[name])
    assert found.function_name == "function"
    assert found.platforms == ("cpu", "tpu")
    assert list(map(str, found.in_avals)) == ["float32[3,4]", "float32[4,2]", "int8[3]"]
    assert list(map(str, found.out_avals)) == ["float32[3,2]", "int32[]"]
    assert found.nr_devices == 1
    assert found.module_kept_var_idx == (0, 1)
    assert found.calling_convention_version == {"oldest": 9, "newest": 10}[name]
    assert found.vjp is not None
    assert found.vjp.vjp is None
    assert len(found.vjp.in_avals) == 5
    assert {op.name for op in found.module().walk()} >= {"stablehlo.sine", "stablehlo.dot_general"}


@pytest.mark.parametrize("name", FILES)
def test_loading(name: str) -> None:
    assert sniff(FILES[name]).format is Format.JAX_EXPORT
    loaded = formats.load(FILES[name])
    assert str(loaded.module) == str(jax_export.read_jax_export(FILES[name]).module())


def test_another_module_in_its_place() -> None:
    data = FILES["newest"]
    artifact = vhlo.serialize_artifact(formats.load(data).module, "minimum")
    replaced = jax_export.replace_module(data, artifact)
    found = jax_export.read_jax_export(replaced)
    assert found.module_bytes == artifact
    assert found.in_avals == jax_export.read_jax_export(data).in_avals
    assert str(formats.load(replaced).module) == str(formats.load(data).module)


def test_damage_names_the_byte() -> None:
    data = bytearray(FILES["newest"])
    start = int.from_bytes(data[:4], "little")
    data[start : start + 4] = b"\xff\xff\xff\x7f"
    with pytest.raises(HloError, match=r"byte .*not a valid exported JAX function") as caught:
        jax_export.read_jax_export(bytes(data))
    assert caught.value.code == "HLO0235"
    assert not jax_export.is_jax_export(bytes(data))
    assert not jax_export.is_jax_export(b"")
    with pytest.raises(BadBuffer):
        Table.root(b"\x04\0\0\0").number(0, 4)
