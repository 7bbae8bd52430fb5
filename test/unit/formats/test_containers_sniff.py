"""What files are, told by content."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support import SHARED, needs_shared

from mlirhlo.formats.sniff import Container, Format, Sniffed, sniff

HLO, MLIR, TEXT, JSON = Format.HLO_TEXT, Format.MLIR_TEXT, Format.PROTO_TEXT, Format.PROTO_JSON

TEXTS: list[tuple[str, Format, Container | None]] = [
    ("HloModule m\n", HLO, None),
    ("\ufeffHloModule m\n", HLO, None),
    ("// a comment\n/* and\nanother */ HloModule m", HLO, None),
    ("HloModule m, entry\0", HLO, None),
    ("ENTRY e { ROOT p = f32[] parameter(0) }", HLO, None),
    ("%sum (x: f32[], y: f32[]) -> f32[] {\n", HLO, None),
    ("region_0.3 {\n  x = f32[] parameter(0)\n", HLO, None),
    ("hlo_module {\n  x = f32[] parameter(0)\n", HLO, None),
    ("name {\n  %x = f32[] parameter(0)\n", HLO, None),
    ("f32[4] add(f32[4] x, f32[4] y)", HLO, None),
    ("ROOT %a = f32[4] add(f32[4] x, f32[4] y)", HLO, None),
    ("%a.1 = (f32[], s32[]) tuple(x, y)", HLO, None),
    ("module {\n}", MLIR, None),
    ("// RUN: hlo-opt %s\nmodule @m attributes {a} {", MLIR, None),
    ("#map = affine_map<(d0) -> (d0)>\n", MLIR, None),
    ("#loc1 = loc(unknown)", MLIR, None),
    ("!t = tensor<4xf32>", MLIR, None),
    ('"builtin.module"() ({', MLIR, None),
    ("builtin.module {\n", MLIR, None),
    ("func.func @main() {", MLIR, None),
    ("func.func private @f()", MLIR, None),
    ("hlo.computation @e {", MLIR, None),
    ("%0 = hlo.add %a, %b : tensor<4xf32>", MLIR, None),
    ("%a, %b = foo.bar %c", MLIR, None),
    ('%a = "foo.bar"()', MLIR, None),
    ('hlo_module { name: "x" }', TEXT, Container.HLO),
    ("hlo_module {}", TEXT, Container.HLO),
    ("# proto-file: x\nhlo_module {\n}\npartitions { }\n", TEXT, Container.UNOPTIMIZED_SNAPSHOT),
    ('hlo_module { name: "}" } config { seed: 1 }', TEXT, Container.MODULE_WITH_CONFIG),
    ("hlo { hlo_module { } }", TEXT, Container.SNAPSHOT),
    ('name: "m"\ncomputations { name: "c" }', TEXT, Container.MODULE),
    ("xla_dump_to: 'x'\nxla_hlo_profile: true", TEXT, Container.DEBUG_OPTIONS),
    ("canonical_module_id: 1", TEXT, Container.MODULE_METADATA),
    ('{"hloModule": {"name": "m"}}', JSON, Container.HLO),
    ('{\n "hlo_module": {}, "partitions": []}', JSON, Container.UNOPTIMIZED_SNAPSHOT),
    ('{"name": "m", "computations": [{"x": "name"}]}', JSON, Container.MODULE),
    ('{"key": 1}', JSON, None),
    ("", Format.UNKNOWN, None),
    ("12 monkeys", Format.UNKNOWN, None),
]


@pytest.mark.parametrize(("text", "format", "container"), TEXTS)
def test_texts(text: str, format: Format, container: Container | None) -> None:
    assert sniff(text.encode()) == Sniffed(format, False, container)
    assert sniff(gzip.compress(text.encode())) == Sniffed(format, True, container)


def test_bytecode() -> None:
    assert sniff(b"ML\xefR\x0dMLIR").format is Format.MLIR_BYTECODE


def corpus_files() -> list[Path]:
    if not SHARED.is_dir():
        return []
    wanted = (".hlo", ".mlir", ".pb", ".bc", ".hlo.gz", ".mlir.gz")
    return sorted(p for p in (SHARED / "corpus" / "programs").rglob("*") if p.name.endswith(wanted))


@needs_shared
def test_files_of_the_corpus() -> None:
    """Every file there is what its name says; names are true in that folder."""
    expected = {
        ".hlo": Format.HLO_TEXT,
        ".mlir": Format.MLIR_TEXT,
        ".bc": Format.MLIR_BYTECODE,
        ".pb": Format.PROTO,
    }
    wrong: list[str] = []
    for path in corpus_files():
        found = sniff(path.read_bytes())
        stem = path.name.removesuffix(".gz")
        if found.format is not expected[Path(stem).suffix] or found.is_gzip != (stem != path.name):
            wrong.append(f"{path.name}: {found}")
        kind = Container.MODULE if stem.endswith(".hlo_module.pb") else Container.HLO
        if found.format is Format.PROTO and found.container is not kind:
            wrong.append(f"{path.name}: {found}")
    assert not wrong, "\n".join(wrong)


@needs_shared
def test_truncated_protos_are_still_recognised() -> None:
    path = next(path for path in corpus_files() if path.name.endswith(".hlo.pb"))
    data = path.read_bytes()
    for cut in range(200, len(data), 97):
        assert sniff(data[:cut]).container is Container.HLO
