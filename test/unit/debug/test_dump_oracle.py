"""The same `XLA_FLAGS` given to JAX on XLA:CPU and to us: the same kinds of files, the same grammar.

XLA runs in a child process, whose folder of dumps is then compared with ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jit_dumps import dumped

import mlirhlo

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

FLAGS = (
    "",
    "--xla_dump_hlo_pass_re=.*",
    "--xla_dump_hlo_pass_re=^cse$ --xla_dump_hlo_as_long_text=false",
    "--xla_dump_hlo_as_proto --xla_dump_hlo_as_text",
    "--xla_dump_hlo_as_proto --xla_dump_compress_protos",
    "--xla_dump_hlo_as_dot --xla_dump_hlo_as_html --xla_dump_hlo_as_url",
    "--xla_dump_hlo_snapshots",
    "--xla_dump_hlo_unoptimized_snapshots",
    "--xla_dump_hlo_unoptimized_snapshots --xla_dump_hlo_as_proto",
    "--xla_dump_hlo_unoptimized_snapshots --xla_dump_hlo_as_text",
    "--xla_dump_include_timestamp",
    "--xla_dump_hlo_to_subfolder",
    "--xla_dump_buffer_assignment_analysis=false",
    "--xla_dump_hlo_module_re=nosuch",
    "--xla_dump_large_constants --xla_dump_disable_metadata",
)


def names(folder: Path) -> set[str]:
    """Names of the files of the module `jit_mlp`; JAX compiles others around it."""
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return {name for name in found if "jit_mlp" in name}


GRAMMAR = (
    (r"(^|/)\d{16}\.", r"\1TIME."),
    (r"[^/]+_\d+/", "HOST_PID/"),
    (r"module_\d{4}", "module_ID"),
    (r"\d{4}\.[^/]*\.after_.*\.before_[^/]*?(\.\D+)$", r"STEP.PIPELINE.after_PASS.before_PASS\1"),
    (r"snapshot\.-?\d+\.", "snapshot.RUN."),
    (r"\.0\d{3}\.copy-insertion\.[\w-]+", ".STEP.PIPELINE.after_PASS.before_PASS"),
    (r"(obj-file\.)?(\w+_kernel_module|__compute_module_\w+|part_\d\d)(\.ir|\.o|-)", r"\1KERNEL\3"),
)


def kinds(found: set[str]) -> set[str]:
    """Names with what may differ replaced."""
    result: set[str] = set()
    for name in found:
        for pattern, replacement in GRAMMAR:
            name = re.sub(pattern, replacement, name)
        result.add(name)
    return result


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module as XLA got it, with its constants."""
    folder = tmp_path_factory.mktemp("program")
    dumped(folder / "theirs", "--xla_dump_hlo_as_proto")
    (path,) = (folder / "theirs").glob("*.jit_mlp.before_optimizations.hlo.pb")
    return path


@pytest.mark.parametrize("flags", FLAGS)
def test_same_kinds_of_files(flags: str, program: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    # The directory's own name must not look like part of a file's.
    out = dumped(theirs, flags)
    assert dumped(ours, flags, program).count("(4, 8)") == 1
    expected, found = kinds(names(theirs)), kinds(names(ours))
    if "module_re" in flags:
        # XLA writes what it was given even of modules that are filtered out; we do not.
        expected = {name for name in expected if not name.startswith("module_ID.jit_mlp/")}
    assert found == expected
    assert ("-->" in out) == ("url" in flags)


@pytest.mark.parametrize(
    "flags",
    ["", "--xla_dump_hlo_as_long_text=false", "--xla_dump_large_constants",
     "--xla_dump_disable_metadata", "--xla_hlo_print_inline_stack_frames"],
)  # fmt: skip
def test_before_optimizations_is_xlas_byte_for_byte(
    flags: str, program: Path, tmp_path: Path
) -> None:
    dumped(tmp_path / "theirs", flags)
    dumped(tmp_path / "ours", flags, program)
    (theirs,) = (tmp_path / "theirs").glob("*.jit_mlp.before_optimizations.txt")
    (ours,) = (tmp_path / "ours").glob("*.jit_mlp.before_optimizations.txt")
    assert _without_config(ours.read_text()) == _without_config(theirs.read_text())


def _without_config(text: str) -> str:
    """What a module's proto does not hold: JAX hands it over beside it."""
    return re.sub(r", allow_spmd_sharding_propagation_to_\w+=\{[a-z,]*\}", "", text, count=2)


def test_protos_decode_with_jaxlib(program: Path, tmp_path: Path) -> None:
    from jaxlib import _hlo

    dumped(tmp_path / "ours", "--xla_dump_hlo_as_proto --xla_dump_hlo_pass_re=.*", program)
    protos = sorted((tmp_path / "ours").glob("*.hlo.pb"))
    assert len(protos) >= 4
    for path in protos:
        from mlirhlo.formats.proto.containers_pb2 import HloProto

        module = HloProto.FromString(path.read_bytes()).hlo_module
        made = _hlo.HloModule.from_serialized_hlo_module_proto(module.SerializeToString())
        assert mlirhlo.parse(made.to_string()).name == "jit_mlp"


def test_snapshots_run_in_both(program: Path, tmp_path: Path) -> None:
    """A snapshot of XLA's replays here, and one of ours has the same inputs."""
    flags = "--xla_dump_hlo_unoptimized_snapshots"
    dumped(tmp_path / "theirs", flags)
    dumped(tmp_path / "ours", flags, program)
    theirs, ours = (
        mlirhlo.load(next((tmp_path / who).glob("*.jit_mlp.*unoptimized_snapshot.pb")))
        for who in ("theirs", "ours")
    )
    assert [a.tolist() for a in ours.arguments[0]] == [a.tolist() for a in theirs.arguments[0]]
    assert abs(ours() - theirs()).max() < 1e-6


def test_same_words_for_what_xla_refuses() -> None:
    """XLA ends the process where we warn; the words are its own."""
    environ = {**os.environ, "XLA_FLAGS": "--xla_nosuch=1 --xla_other", "JAX_PLATFORMS": "cpu"}
    program = "import jax; jax.jit(lambda x: x)(1.0)"
    died = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True,
                          text=True, timeout=120)  # fmt: skip
    from mlirhlo.debug.options import resolve

    (ours,) = resolve(environ=environ).problems
    assert died.returncode != 0
    assert ours.message in died.stderr
