"""Bytecode and portable artifacts, judged by jaxlib's MLIR and StableHLO."""

from __future__ import annotations

import base64
import io
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import mlir_oracle
import pytest
from support import CORPUS, DATA, SHARED, needs_shared

from mlirhlo.diagnostics import HloError
from mlirhlo.formats import bytecode, jax_export, stablehlo, vhlo

pytestmark = pytest.mark.oracle

VERSIONS = ("1.17.0", "1.10.0", "1.4.0", "1.0.0", "0.19.0", "0.9.0")
LARGEST = int(os.environ.get("MLIRHLO_LARGEST", "60000"))
"""Characters of the largest programs of the corpus that are taken."""


NOT_UPGRADED = {"scatter_zoo.stablehlo.mlir"}
"""StableHLO does not upgrade `sine_v1` in the region of a `scatter_v1` and fails on it; it writes
`sine_v2` there even for 0.9.0, which did not have it."""


def programs() -> list[Path]:
    found = sorted(CORPUS.glob("programs/*/*.stablehlo.mlir"))
    return [path for path in found if path.stat().st_size <= LARGEST]


@pytest.mark.parametrize("version", range(7))
def test_mlir_reads_what_is_written(version: int) -> None:
    data = (DATA / "bytecode" / "small_v6.mlirbc").read_bytes()
    module = bytecode.read_module(data)
    written = bytecode.write_module(module, version)
    assert mlir_oracle.printed(written) == mlir_oracle.printed(data)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_each_operation_for_each_version(version: str) -> None:
    """Ours of what StableHLO read, and of what we read, is what StableHLO writes; and so are refusals."""
    refused = 0
    for name, text in mlir_oracle.functions().items():
        theirs = mlir_oracle.artifact(text, version)
        module = bytecode.read_module(mlir_oracle.bytecode(text))
        if theirs is None:
            refused += 1
            with pytest.raises(HloError) as caught:
                vhlo.serialize_artifact(module, version)
            assert caught.value.code == "HLO0233", name
            continue
        want = mlir_oracle.deserialized(theirs)
        assert mlir_oracle.deserialized(vhlo.serialize_artifact(module, version)) == want, name
        again = vhlo.deserialize_artifact(theirs)
        assert mlir_oracle.deserialized(vhlo.serialize_artifact(again, version)) == want, name
    assert (refused > 0) == (version != VERSIONS[0])


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_the_corpus_as_artifacts(version: str) -> None:
    """What StableHLO serialises is read as it reads it, and what we serialise it reads."""
    count = 0
    for path in programs():
        theirs = mlir_oracle.artifact(path.read_text(), version)
        if theirs is None:
            with pytest.raises(HloError):
                vhlo.serialize_artifact(stablehlo.parse_module(path.read_text()), version)
            continue
        want = mlir_oracle.deserialized(theirs)
        module = vhlo.deserialize_artifact(theirs, path.name)
        assert stablehlo.print_module(module).strip() == want.strip(), path.name
        ours = vhlo.serialize_artifact(module, version)
        if version == VERSIONS[-1] and path.name in NOT_UPGRADED:
            continue
        assert mlir_oracle.deserialized(ours) == want, path.name
        count += 1
    assert count > 60


@needs_shared
@pytest.mark.slow
def test_the_corpus_as_bytecode() -> None:
    """Text by way of MLIR's bytecode is the text; so is text by way of ours."""
    count = 0
    for path in programs():
        text = path.read_text()
        if "#loc" in text:
            continue
        data = mlir_oracle.bytecode(text, count % 7)
        module = bytecode.read_module(data, path.name)
        assert stablehlo.print_module(module) == text, path.name
        written = bytecode.write_module(stablehlo.parse_module(text, path.name), count % 7)
        assert str(mlir_oracle.parse(written)).strip() == text.strip(), path.name
        count += 1
    assert count > 80


def kernels() -> Iterator[tuple[str, bytes]]:
    """The Mosaic kernels of the corpus and the reference."""
    folders = (CORPUS / "programs", SHARED / "reference" / "mosaic_samples")
    body = re.compile(r'(?:\\22|\\?")body(?:\\22|\\?"):\s*(?:\\22|\\?")([A-Za-z0-9+/=]+)')
    for folder in folders:
        for path in sorted(folder.rglob("*.mlir")):
            for match in body.finditer(path.read_text(errors="replace")):
                data = base64.b64decode(match[1])
                if data.startswith(bytecode.MAGIC):
                    yield path.name, data


@needs_shared
@pytest.mark.parametrize("version", [0, 3, 6])
def test_mosaic_kernels(version: int) -> None:
    """Kernels in the stable form read, and MLIR reads what is written of them."""
    count = 0
    for name, data in kernels():
        module = bytecode.read_module(data, name)
        names = [str(op.attributes["op_name__"]) for op in list(module.walk())[1:]]
        assert all(name.startswith('"stable_mosaic.') for name in names)
        written = bytecode.write_module(module, version)
        assert mlir_oracle.printed(written) == mlir_oracle.printed(data), name
        count += 1
    assert count >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oldest", "newest"])
@pytest.mark.parametrize("version", ["current", "1.0.0", "minimum"])
def test_jax_runs_ours(name: str, version: str) -> None:
    pytest.importorskip("flatbuffers")
    import numpy as np
    from jax import export

    data = (DATA / "bytecode" / f"jax_export_{name}.bin").read_bytes()
    module = jax_export.read_jax_export(data).module()
    replaced = jax_export.replace_module(data, vhlo.serialize_artifact(module, version))
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    y = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = export.deserialize(bytearray(replaced)).call(x, y, np.zeros(3, np.int8))
    np.testing.assert_allclose(found["a"], np.sin(x) @ y, rtol=1e-5)
    assert int(found["b"]) == 6


@pytest.mark.parametrize("count", [3, 4])
def test_orders_of_uses(count: int) -> None:
    """Uses are listed in the order that MLIR has them in, for results and block arguments."""
    results = "".join(
        f'  %d{i} = "d.d"() : () -> i1\n  %e{i} = "d.e"() : () -> i2\n' for i in range(count)
    )
    uses = "".join(f'  "u.u{i}"(%d{i}, %e{i}) : (i1, i2) -> ()\n' for i in range(count))
    text = f'"x.m"() ({{\n^bb0(%a: i1, %b: i8):\n  %x:2 = "w.x"() : () -> (i8, i2)\n{results}{uses}}}) : () -> ()'
    for order in itertools.permutations(range(count)):
        theirs = mlir_oracle.parse(text)
        block = next(iter(theirs.body.operations)).regions[0].blocks[0]
        operations = list(block.operations)
        argument, result = block.arguments[0], operations[0].results[1]
        for index in order:
            operations[1 + 2 * index].results[0].replace_all_uses_with(argument)
            operations[2 + 2 * index].results[0].replace_all_uses_with(result)
        out = io.BytesIO()
        with theirs.context:
            theirs.operation.write_bytecode(out)
        ours = bytecode.read_module(out.getvalue()).body.block.first_op
        assert ours is not None
        inside = ours.regions[0].block
        first = inside.first_op
        assert first is not None
        pairs = ((inside.args[0], argument), (first.results[1], result))
        for mine, their in pairs:
            found = [str(use.operation.attributes["op_name__"]) for use in mine.uses]
            assert found == [f'"{use.owner.name}"' for use in their.uses], order


SIGNED = [f"i{width}" for width in (1, 2, 4, 8, 16, 32, 64)]
UNSIGNED = [f"ui{width}" for width in (2, 4, 8, 16, 32, 64)]
FLOATS = [
    *("f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ"),
    *("f8E4M3B11FNUZ", "f8E3M4", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
]


@pytest.mark.parametrize("element", [*SIGNED, *UNSIGNED, *FLOATS, "complex<f32>", "complex<f64>"])
def test_constants_of_each_element_type(element: str) -> None:
    """Some elements, a splat, many (printed in hexadecimal), one and none, all four ways."""
    one, other = ("1.0", "2.0") if element in FLOATS else ("1", "0")
    if element == "i1":
        one, other = "true", "false"
    elif element.startswith("complex"):
        one, other = "(1.0, 2.0)", "(0.0, -2.0)"
    constants = {
        2: f"[{one}, {other}]",
        5: other,
        140: f"[{', '.join([one, other] * 70)}]",
        0: "",
    }
    lines = [
        f"  %c{n} = stablehlo.constant dense<{v}> : tensor<{n}x{element}>"
        for n, v in constants.items()
    ]
    lines.append(f"  %c = stablehlo.constant dense<{one}> : tensor<{element}>")
    types = ", ".join([f"tensor<{n}x{element}>" for n in constants] + [f"tensor<{element}>"])
    names = ", ".join([f"%c{n}" for n in constants] + ["%c"])
    body = "\n".join(lines)
    text = f"func.func @main() -> ({types}) {{\n{body}\n  return {names} : {types}\n}}"
    theirs = mlir_oracle.artifact(text, "1.17.0")
    assert theirs is not None
    want = mlir_oracle.deserialized(theirs).strip()
    module = vhlo.deserialize_artifact(theirs)
    assert stablehlo.print_module(module).strip() == want
    assert mlir_oracle.deserialized(vhlo.serialize_artifact(module)).strip() == want
    module = bytecode.read_module(mlir_oracle.bytecode(text))
    assert stablehlo.print_module(module).strip() == want
    assert str(mlir_oracle.parse(bytecode.write_module(module))).strip() == want


@pytest.mark.parametrize("source", [3, 6])
@pytest.mark.parametrize("part", range(4))
def test_native_properties_of_other_dialects(part: int, source: int) -> None:
    """Operations of arith, cf, chlo, func, gpu, math, memref, scf, sdy and vector, by all versions."""
    text = (DATA / "bytecode" / "dialects.mlir").read_text().split("// -----")[part]
    data = mlir_oracle.bytecode(text, source)
    want = mlir_oracle.printed(data)
    module = bytecode.read_module(data)
    for version in (0, 4, 5, 6):
        assert mlir_oracle.printed(bytecode.write_module(module, version)) == want
