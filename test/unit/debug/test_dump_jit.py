"""Programs of `jit`: their dumps, and the switches of JAX and TensorFlow around them."""

from __future__ import annotations

import gzip
import itertools
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import mlirhlo
import mlirhlo.numpy as mnp
from mlirhlo.debug.dump import jit_dumps, sink, writer
from mlirhlo.debug.options import jax_era, process
from mlirhlo.debug.options.jax_era import JaxSettings, jax_settings
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.proto.compile_options_pb2 import CompileOptionsProto

VARIABLES = (
    "XLA_FLAGS", "JAX_DUMP_IR_TO", "JAX_DUMP_IR_MODES", "JAX_DUMP_HLO_GRAPH", "JAX_HLO_PROFILE",
    "JAX_PLATFORM_NAME", "JAX_REPLICA_COUNT", "TF_XLA_FLAGS", "TF_DUMP_GRAPH_PREFIX",
    "JAX_DUMP_HLO_UNOPTIMIZED", "JAX_DUMP_HLO_OPTIMIZED", "JAX_DUMP_HLO_PER_PASS",
    "JAX_COMPILER_DETAILED_LOGGING_MIN_OPS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(writer, "_numbers", itertools.count())
    for counter in ("_modules", "_programs", "_legacy", "_dots"):
        monkeypatch.setattr(jit_dumps, counter, itertools.count())
    monkeypatch.setattr(jit_dumps, "_graphs", {})
    monkeypatch.setattr(sink, "_told", set())
    monkeypatch.setattr(process, "_read", [])


def layer(x: mnp.Array, b: mnp.Array) -> mnp.Array:
    return mnp.sum(mnp.exp(x * 2 + b), axis=1)


ARGUMENTS = (np.ones((4, 8), np.float32), np.zeros(8, np.float32))
RESULT = np.full(4, 8 * np.exp(2), np.float32)


def run(**options: object) -> None:
    result = mlirhlo.jit(layer, **options)(*ARGUMENTS)
    np.testing.assert_allclose(np.asarray(result), RESULT, rtol=1e-6)


def names(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


INPUTS = {f"module_0000.jit_layer/{n}" for n in ("module.mlir", "compile_options.textproto",
                                                 "topology.textproto")}  # fmt: skip


def test_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    run(platform="interpreter")
    kinds = ("before_optimizations.txt", "interpreter_after_optimizations.txt", "debug_options")
    assert names(tmp_path) == {*(f"module_0000.jit_layer.{kind}" for kind in kinds), *INPUTS}
    text = (tmp_path / "module_0000.jit_layer/compile_options.textproto").read_text()
    message = text_format.Parse(text, CompileOptionsProto())
    assert message.executable_build_options.num_replicas == 1
    assert not message.executable_build_options.debug_options.xla_dump_to
    again = mlirhlo.load(tmp_path / "module_0000.jit_layer/module.mlir")
    np.testing.assert_allclose(again(*ARGUMENTS), RESULT, rtol=1e-6)


def test_machine_code(tmp_path: Path) -> None:
    run(platform="cpu", compiler_options={"xla_dump_to": str(tmp_path)})
    found = names(tmp_path)
    assert "module_0000.jit_layer.cpu_after_optimizations-buffer-assignment.txt" in found
    assert "module_0000.jit_layer.part_00.ir-no-opt.ll" in found
    assert not INPUTS & found  # only for directories that the environment names


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_snapshots(platform: str, tmp_path: Path) -> None:
    options = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_snapshots": True}
    run(platform=platform, compiler_options=options)
    (path,) = (p for p in tmp_path.iterdir() if "snapshot" in p.name)
    module = mlirhlo.load(path)
    np.testing.assert_allclose(module.expected, RESULT, rtol=1e-6)
    np.testing.assert_allclose(module(), RESULT, rtol=1e-6)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(HloError, match="No such compile option: 'xla_nosuch'"):
        run(compiler_options={"xla_nosuch": True})


def test_dump_ir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_DUMP_IR_TO", str(tmp_path))
    run()
    assert names(tmp_path) == {"jax_ir0000_jit_layer_compile.mlir"}
    module = mlirhlo.load(tmp_path / "jax_ir0000_jit_layer_compile.mlir")
    np.testing.assert_allclose(module(*ARGUMENTS), RESULT, rtol=1e-6)
    monkeypatch.setenv("JAX_DUMP_IR_MODES", "jaxpr,eqn_count_pprof,nosuch,jaxpr_html")
    run()
    stem = "jax_000000_layer"
    kinds = ("jaxpr.txt", "jaxpr.html", "eqn_count_pprof")
    assert names(tmp_path) - {"jax_ir0000_jit_layer_compile.mlir"} == {f"{stem}.{k}" for k in kinds}
    lines = (tmp_path / f"{stem}.jaxpr.txt").read_text().splitlines()
    assert lines[0] == "{ lambda ; a:f32[4,8] b:f32[8]. let"
    assert re.fullmatch(r"  in \(\w+,\) \}", lines[-1])
    assert sum(" = exponential " in line for line in lines) == 1
    profile = gzip.decompress((tmp_path / f"{stem}.eqn_count_pprof").read_bytes())
    assert b"equation_count" in profile
    assert b"exponential" in profile


def test_flags_of_2019(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path / 'xla'}")
    monkeypatch.setenv("JAX_DUMP_HLO_GRAPH", "^jit_lay")
    for kind in ("UNOPTIMIZED", "OPTIMIZED", "PER_PASS"):
        monkeypatch.setenv(f"JAX_DUMP_HLO_{kind}", str(tmp_path / "old"))
    run(platform="interpreter")
    assert "module_0000.jit_layer.before_optimizations.dot" in names(tmp_path / "xla")
    assert names(tmp_path / "old") == {
        "hlo_unoptimized/module_0000.jit_layer.hlo.pb",
        "hlo_optimized/module_0000.jit_layer.hlo.pb",
        "hlo_per_pass/module_0000.0000.jit.pipeline-start.hlo.pb",
    }
    for path in (tmp_path / "old").rglob("*.pb"):
        np.testing.assert_allclose(mlirhlo.load(path)(*ARGUMENTS), RESULT, rtol=1e-6)


def test_flags_of_2019_on_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("UNOPTIMIZED", "OPTIMIZED", "PER_PASS"):
        monkeypatch.setenv(f"JAX_DUMP_HLO_{kind}", str(tmp_path))
    run()
    opcodes = {}
    for path in tmp_path.rglob("*.pb"):
        module = mlirhlo.load(path)
        np.testing.assert_allclose(module(*ARGUMENTS), RESULT, rtol=1e-6)
        opcodes[path.parent.name, path.name] = {op.opcode.name for op in module.hlo.instructions}
    name = "module_0000.jit_layer.hlo.pb"
    assert "fusion" not in opcodes["hlo_unoptimized", name]
    assert "fusion" in opcodes["hlo_optimized", name]
    stages = sorted(file for folder, file in opcodes if folder == "hlo_per_pass")
    assert stages[0] == "module_0000.0000.cpu.pipeline-start.hlo.pb"
    assert re.fullmatch(r"module_0000\.\d{4}\.cpu\.after_fusion\.hlo\.pb", stages[-1])
    assert "fusion" in opcodes["hlo_per_pass", stages[-1]]


@pytest.mark.parametrize(("platform", "op"), [("interpreter", "exponential"), ("cpu", "fusion")])
def test_profile(
    platform: str, op: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAX_HLO_PROFILE", "1")
    with caplog.at_level(logging.INFO):
        run(platform=platform)
    assert "Execution profile for jit_layer:" in caplog.text
    assert re.search(rf"us +\d+\.\d%  %\S+ = {op}", caplog.text)


def test_a_profile_leaves_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_HLO_PROFILE", "1")
    for platform in ("interpreter", "cpu"):
        folder = tmp_path / platform
        options = {"xla_dump_to": str(folder), "xla_dump_hlo_snapshots": True}
        run(platform=platform, compiler_options=options)
        assert sum("snapshot" in path.name for path in folder.iterdir()) == 1


def test_historic_variables_are_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jax_era, "_told", set())
    for name in ("JAX_XLA_BACKEND", "JAX_BACKEND_TARGET"):
        monkeypatch.setenv(name, "xla")
    run()
    run()
    for name in ("JAX_XLA_BACKEND", "JAX_BACKEND_TARGET"):
        assert caplog.text.count(f"{name} is historic") == 1
    monkeypatch.setenv("XLA_FLAGS", "--jax_backend_target=local")
    monkeypatch.setattr(process, "_read", [])
    run()
    assert "jax_backend_target is historic" in caplog.text
    with pytest.raises(HloError, match="jax_xla_backend is historic"):
        run(compiler_options={"jax_xla_backend": "xla"})


def test_platforms_by_name_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, platform in (("CPU", "cpu"), ("Host", "cpu"), ("Interpreter", "interpreter")):
        assert mlirhlo.jit(layer, platform=name).platform == platform
    assert mlirhlo.jit(layer).platform == "cpu"
    monkeypatch.setenv("JAX_PLATFORM_NAME", "INTERPRETER")
    assert mlirhlo.jit(layer).platform == "interpreter"
    assert mlirhlo.jit(layer, platform="cpu").platform == "cpu"


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_compiled_text_is_the_platforms_module(platform: str) -> None:
    lowered = mlirhlo.jit(layer).lower(*ARGUMENTS)
    compiled = lowered.compile(platform=platform)
    assert (" fusion(" in compiled.as_text()) == (platform == "cpu")
    assert lowered.compiler_ir("hlo").as_hlo_text().startswith("HloModule jit_layer")
    texts = compiled.as_text(), compiled.as_text("stablehlo"), compiled.compiler_ir().to_string()
    for text in texts:
        np.testing.assert_allclose(mlirhlo.parse(text)(*ARGUMENTS), RESULT, rtol=1e-6)
    off = lowered.compile({"xla_disable_hlo_passes": "fusion"}, platform="cpu")
    assert " fusion(" not in off.as_text()


def test_platform_and_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORM_NAME", "Host")
    monkeypatch.setenv("JAX_REPLICA_COUNT", "2")
    function = mlirhlo.jit(layer)
    assert function.platform == "cpu"
    assert "replica_count=2" in function.lower(*ARGUMENTS).as_text()
    monkeypatch.setenv("JAX_PLATFORM_NAME", "tpu")
    with pytest.raises(ValueError, match="JAX_PLATFORM_NAME names it"):
        mlirhlo.jit(layer)


def test_small_programs_log_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"xla_dump_to": str(tmp_path)}
    mlirhlo.jit(lambda x: x + x, compiler_options=options)(np.ones(2))
    text = (tmp_path / "module_0000.jit__lambda_.debug_options").read_text()
    assert text.endswith("xla_detailed_logging: false\n")
    monkeypatch.setenv("JAX_COMPILER_DETAILED_LOGGING_MIN_OPS", "0")
    mlirhlo.jit(lambda x: x + x, compiler_options=options)(np.ones(2))
    text = (tmp_path / "module_0001.jit__lambda_.debug_options").read_text()
    assert "xla_detailed_logging" not in text


def test_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_clustering_debug")
    run()
    assert "dump location is not specified" in caplog.text
    monkeypatch.setenv("TF_DUMP_GRAPH_PREFIX", str(tmp_path))
    run()
    run()
    stems = ("before_mark_for_compilation", "mark_for_compilation")
    assert names(tmp_path) == {f"{s}{n}.pbtxt" for s in stems for n in ("", "_1")}
    text = (tmp_path / "mark_for_compilation.pbtxt").read_text()
    assert text.count('op: "Placeholder"') == 2
    assert text.count("_XlaCluster") >= 4
    assert "_XlaCluster" not in (tmp_path / "before_mark_for_compilation.pbtxt").read_text()


def test_nothing_set_is_nothing_to_do() -> None:
    assert jax_settings({"PATH": "x"}) == JaxSettings()
    assert not JaxSettings().writes


@pytest.mark.parametrize("name", ["JAX_HLO_PROFILE", "JAX_REPLICA_COUNT"])
def test_values_that_do_not_fit(name: str) -> None:
    with pytest.raises(HloError, match=f"value maybe of the variable {name}"):
        jax_settings({name: "maybe"})
