"""run_hlo_module: inputs from everywhere, comparisons, and XLA's exit codes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import DATA, environment

from mlirhlo.cli.run_hlo_module import EXAMPLES, MISCOMPARED

from .conftest import Ran

Tool = Callable[..., Ran]

RUN = ("run_hlo_module", "--platform=Interpreter")
ALONE = (*RUN, "--reference_platform=")
ADD = "f32[2] add(f32[2] x, f32[2] y)"
SNAPSHOT = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.snapshot.1448476478.pb"
UNOPTIMIZED = sorted((DATA / "dumps" / "cpu").glob("*unoptimized_snapshot.pb"))
PROGRAMS = sorted(
    path for path in (DATA / "programs").glob("*/*.npz") if path.with_suffix(".hlo").exists()
)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, in0=np.array([1, 2], np.float32), in1=np.array([10, 20], np.float32))
    return path


def test_npz_in_and_out(tool: Tool, pair: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    ran = tool(*ALONE, f"--input_npz={pair}", f"--output_npz={out}", "-", stdin=ADD)
    assert (ran.code, ran.out) == (0, "")
    assert np.load(out)["out0"].tolist() == [11, 22]


def test_literals_are_printed_to_stdout(tool: Tool, pair: Path) -> None:
    ran = tool(*ALONE, f"--input_npz={pair}", "--print_literals", "-", stdin=ADD)
    assert ran.out.splitlines() == [
        "** Input %x **",
        "f32[2] {1, 2}",
        "** Input %y **",
        "f32[2] {10, 20}",
        "** Result with test runner Interpreter **",
        "f32[2] {11, 22}",
    ]


@pytest.mark.parametrize("name", ["l.pb", "l.pbtxt"])
def test_literals_file_out_and_in(name: str, tool: Tool, pair: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    tool(*RUN, f"--input_npz={pair}", f"--output_literals_file={file}", "-", stdin=ADD)
    ran = tool(*ALONE, f"--input_literals_file={file}", "--print_literals", "-", stdin=ADD)
    assert "f32[2] {11, 22}" in ran.out


@pytest.mark.parametrize("npz", PROGRAMS, ids=lambda p: p.stem)
def test_programs_give_their_stored_results(npz: Path, tool: Tool) -> None:
    ran = tool(*ALONE, f"--input_npz={npz}", npz.with_suffix(".hlo"))
    assert ran.code == 0, ran.err
    assert "0/1 runs miscompared." in ran.err


def test_snapshot_brings_inputs_and_result(tool: Tool) -> None:
    ran = tool(*RUN, SNAPSHOT)
    assert ran.code == 0, ran.err
    assert "inputs: the snapshot" in ran.err
    assert "** Results on Interpreter and the snapshot are close enough. **" in ran.err
    assert "0/2 runs miscompared." in ran.err


@pytest.mark.parametrize("path", UNOPTIMIZED, ids=lambda p: p.name.partition(".")[0])
def test_unoptimized_snapshots_bring_inputs(path: Path, tool: Tool) -> None:
    ran = tool(*ALONE, path)
    assert ran.code == 0, ran.err
    assert "inputs: the snapshot" in ran.err


def test_force_fake_data(tool: Tool) -> None:
    ran = tool(*ALONE, "--force_fake_data", SNAPSHOT)
    assert ran.code == 0, ran.err
    assert "inputs: fake data, seed 42" in ran.err


def test_fake_data_is_the_same_each_time_and_new_each_iteration(tool: Tool) -> None:
    argv = (*ALONE, "--print_literals", "--iterations=2", "-")
    first, second = tool(*argv, stdin=ADD), tool(*argv, stdin=ADD)
    assert first.out == second.out
    values = re.findall(r"Input %x \*\*\n(.*)", first.out)
    assert len(values) == 2
    assert values[0] != values[1]
    assert re.findall(r"=== Iteration \d", first.err) == ["=== Iteration 1", "=== Iteration 2"]


def test_seeds(tool: Tool) -> None:
    ran = tool(*ALONE, "--different_random_seeds", "--iterations=2", "-", stdin=ADD)
    assert re.findall(r"seed (\d+)", ran.err) == ["1", "2"]
    assert "seed 7" in tool(*ALONE, "--seed=7", "-", stdin=ADD).err
    zeros = tool(*ALONE, "--random_init_input_literals=false", "--print_literals", "-", stdin=ADD)
    assert zeros.out.count("f32[2] {0, 0}") == 3


def test_a_wrong_result_is_shown_and_ends_with_255(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez(
        file,
        in0=np.array([1, 2], np.float32),
        in1=np.array([1, 1], np.float32),
        out0=np.array([2, 4], np.float32),
    )
    ran = tool(*ALONE, f"--input_npz={file}", "-", stdin=ADD)
    assert ran.code == MISCOMPARED
    assert "1 of 2 elements differ (50 %)" in ran.err
    assert "[1] 3.0, expected 4.0" in ran.err
    assert f"** Results on Interpreter and {file} differ. **" in ran.err
    assert "1/1 runs miscompared." in ran.err
    wide = tool(*ALONE, f"--input_npz={file}", "--abs_error_bound=1", "-", stdin=ADD)
    assert wide.code == 0
    relative = tool(*ALONE, f"--input_npz={file}", "--rel_error_bound=0.3", "-", stdin=ADD)
    assert relative.code == 0


def test_partitions_run_on_simulated_devices(tool: Tool, tmp_path: Path) -> None:
    module = """HloModule m, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[2] parameter(0)
  ROOT s = f32[2] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
"""
    source, out = tmp_path / "in.npz", tmp_path / "out.npz"
    parts = {f"in0.p{p}": np.full(2, p + 1, np.float32) for p in (0, 1)}
    np.savez(source, **parts)  # type: ignore[arg-type]
    ran = tool(*ALONE, f"--input_npz={source}", f"--output_npz={out}", "-", stdin=module)
    assert ran.code == 0, ran.err
    assert [np.load(out)[f"out0.p{p}"].tolist() for p in (0, 1)] == [[3, 3], [3, 3]]


def test_manual_computations_run_on_their_partitions(tool: Tool, tmp_path: Path) -> None:
    """From before partitioning: whole arrays go in and come out, fake data or given."""
    module = """HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2]>}}

ENTRY e {
  p = f32[4] parameter(0)
  l = f32[2] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
  c = f32[2] collective-permute(l), channel_id=1, source_target_pairs={{0,1},{1,0}}
  ROOT g = f32[4] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
}
"""  # noqa: E501
    ran = tool(*ALONE, "--print_literals", "-", stdin=module)
    assert ran.code == 0, ran.err
    given, result = (
        re.findall(r"[-\d.]+(?=[,}])", line) for line in ran.out.splitlines() if "{" in line
    )
    assert result == given[2:] + given[:2]
    source, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, in0=np.arange(4, dtype=np.float32))
    ran = tool(*ALONE, f"--input_npz={source}", f"--output_npz={out}", "-", stdin=module)
    assert ran.code == 0, ran.err
    assert np.load(out)["out0"].tolist() == [2, 3, 0, 1]


def test_devices_that_only_the_groups_name(tool: Tool) -> None:
    module = """HloModule m

ENTRY e {
  r = u32[] replica-id()
  ROOT c = u32[] collective-permute(r), source_target_pairs={{0,2},{1,0},{2,1}}
}
"""
    ran = tool(*ALONE, "--print_literals", "-", stdin=module)
    assert ran.code == 0, ran.err
    assert [line.split()[-1] for line in ran.out.splitlines() if "u32" in line] == ["1", "2", "0"]


def test_passes_are_tried_against_the_reference(tool: Tool) -> None:
    path = DATA / "programs" / "fusion_chain" / "fusion_chain.hlo"
    ran = tool(*RUN, "--passes=cse,dce", path)
    assert ran.code == 0, ran.err
    assert "0/1 runs miscompared." in ran.err


def test_several_files(tool: Tool, tmp_path: Path) -> None:
    files = [tmp_path / "a.hlo", tmp_path / "b.hlo"]
    for file in files:
        file.write_text(ADD)
    ran = tool(*RUN, *files, "--input_module", files[0])
    assert ran.err.count("** Running ") == 3
    assert "0/3 runs miscompared." in ran.err


def test_trace(tool: Tool, pair: Path) -> None:
    module = "ENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n"
    module += " z = f32[2] add(x, y)\n ROOT n = f32[2] negate(z)\n}\n"
    ran = tool(*ALONE, f"--input_npz={pair}", "--trace", "-", stdin=module)
    assert "%z = add: f32[2] {11, 22}\n%n = negate: f32[2] {-11, -22}\n" in ran.err


def test_stepping(tool: Tool, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(ADD)
    answers = iter(["\n", "%x\n", "nosuch\n", "c\n"])
    monkeypatch.setattr("mlirhlo.cli.replay.progress._keyboard", lambda: lambda: next(answers))
    ran = tool(*ALONE, f"--input_npz={pair}", "--step", file)
    assert ran.code == 0
    assert ran.err.count("[Enter] next") == 4
    assert ran.err.count("f32[2] {1, 2}") == 2
    assert "no such value yet" in ran.err


def test_isolated_instructions(tool: Tool) -> None:
    path = DATA / "programs" / "fusion_chain" / "fusion_chain.cpu.after_opt.hlo"
    ran = tool(*RUN, "--isolate_instructions", path)
    assert ran.code == 0, ran.err
    assert re.search(r"\*\* Running %\S+ \(fusion\) \*\*", ran.err)


def test_elided_constants_are_refused(tool: Tool) -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT c = f32[20] constant({...})\n}\n"
    ran = tool(*ALONE, "-", stdin=text)
    assert ran.code == 1
    assert "error[HLO0301]" in ran.err
    assert "xla_dump_large_constants" in ran.err


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["-"], 2, "--platform is missing"),
        (["--platform=TPU", "-"], 2, "--platform=TPU: no such platform here"),
        (["--platform=Interpreter"], 2, "no module to run"),
        (
            ["--platform=Interpreter", "--reference_platform=TPU", "-"],
            2,
            "--reference_platform=TPU",
        ),
        (["--platform=Interpreter", "--passes=dec", "-"], 2, "did you mean 'dce'?"),
        (["--platform=Interpreter", "--iterations=x", "-"], 2, "not a whole number"),
        (["--platform=Interpreter", "--input_npz=nosuch", "-"], 1, "cannot read 'nosuch'"),
        (["--platform=Interpreter", "--input_npz=README.md", "-"], 1, "not an npz file"),
        (["--platform=Interpreter", "--input_npz=x", "a", "b"], 2, "goes with one module, 2"),
        (["--platform=Interpreter", "--input_format=hol", "-"], 2, "unknown format 'hol'"),
        (["--platform=Interpreter", "nosuch.hlo"], 1, "cannot read 'nosuch.hlo'"),
        (["--platform=Interpreter", "--iterations=0", "-"], 2, "at least 1 is wanted"),
    ],
)
def test_mistake(argv: list[str], code: int, message: str, tool: Tool) -> None:
    ran = tool("run_hlo_module", *argv, stdin=ADD)
    assert message in ran.err
    assert ran.code == code
    assert "Traceback" not in ran.err


def test_wrong_inputs_are_explained(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez(file, in0=np.zeros(2), in1=np.zeros(2))
    ran = tool(*ALONE, f"--input_npz={file}", "-", stdin=ADD)
    assert ran.code == 1
    assert "in0 is float64[2], but f32[2] is wanted" in ran.err
    assert "store f32 as numpy.float32" in ran.err


def test_flags_of_the_compiler_are_accepted(tool: Tool, pair: Path) -> None:
    flags = [
        "--run_test_hlo_passes=false",
        "--flatten_control_flow",
        "--xla_disable_all_hlo_passes",
    ]
    assert tool(*ALONE, *flags, f"--input_npz={pair}", "-", stdin=ADD).code == 0


def test_help_fits_a_screen(tool: Tool) -> None:
    text = tool("run_hlo_module", "--help").out
    assert len(text.splitlines()) <= 56
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_work(example: str) -> None:
    done = subprocess.run(
        example, shell=True, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
