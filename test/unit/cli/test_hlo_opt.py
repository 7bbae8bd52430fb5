"""hlo-opt as its users run it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import BIN, DATA, ROOT, environment

from mlirhlo.cli.hlo_opt import EXAMPLES

from .conftest import Ran

Tool = Callable[..., Ran]

ADD = "f32[2] add(f32[2] x, f32[2] y)"
UNUSED = """HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  dead = f32[2] exponential(x)
  ROOT y = f32[2] negate(x)
}
"""
INVALID = """HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[3] negate(x)
}
"""
DUMPS = sorted((DATA / "dumps").glob("[cgt]?[uU]/*.txt"))


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: p.name)
def test_a_dump_is_printed_as_it_was(path: Path, tool: Tool) -> None:
    ran = tool("hlo_opt", path)
    assert ran.err == ""
    assert ran.code == 0
    assert ran.out == path.read_text()


@pytest.mark.parametrize("emit", ["mlir", "mlir-generic", "proto", "pbtxt", "json", "hlo"])
def test_every_format_comes_back(emit: str, tool: Tool, tmp_path: Path) -> None:
    source = DUMPS[0]
    file = tmp_path / "module"
    assert tool("hlo_opt", source, f"--emit={emit}", "-o", file).code == 0
    ran = tool("hlo_opt", file, "--emit=hlo")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == source.read_text()


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("m.mlir", b"builtin.module @m"),
        ("m.pb", b"\x0a"),
        ("m.pbtxt", b"hlo_module {"),
        ("m.json", b"{"),
        ("m.hlo", b"HloModule m"),
        ("m.txt", b"HloModule m"),
        ("m.hlo.gz", b"\x1f\x8b"),
    ],
)
def test_output_name_says_the_format(name: str, start: bytes, tool: Tool, tmp_path: Path) -> None:
    assert tool("hlo_opt", "-", "-o", tmp_path / name, stdin=UNUSED).code == 0
    assert (tmp_path / name).read_bytes().startswith(start)
    again = tool("hlo_opt", tmp_path / name, "--emit=hlo")
    assert again.out.startswith("HloModule m, ")


def test_mlir_stays_mlir(tool: Tool) -> None:
    mlir = tool("hlo_opt", "--emit=mlir", stdin=UNUSED).out
    assert tool("hlo_opt", stdin=mlir).out == mlir
    assert "hlo.negate" in mlir


@pytest.mark.parametrize(
    "spelling",
    [
        ["--passes=dce"],
        ["--passes", "dce"],
        ["-p", "dce"],
        ["-pdce"],
        ["--dce"],
        ["-dce"],
        ["--pass-pipeline=builtin.module(dce)"],
        ["--passes=cse,dce"],
        ["--passes=dce", "--platform=gpu"],
    ],
)
def test_passes(spelling: list[str], tool: Tool) -> None:
    ran = tool("hlo_opt", *spelling, stdin=UNUSED)
    assert (ran.code, ran.err) == (0, "")
    assert "negate" in ran.out
    assert "exponential" not in ran.out


def test_disabled_passes_do_not_run(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for flag in ("--xla_disable_hlo_passes=dce", "--xla_enable_hlo_passes_only=cse"):
        assert "exponential" in tool("hlo_opt", "-pdce", flag, stdin=UNUSED).out
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_all_hlo_passes")
    assert "exponential" in tool("hlo_opt", "-pdce", stdin=UNUSED).out


def test_watching_goes_to_stderr(tool: Tool) -> None:
    plain = tool("hlo_opt", "-p", "cse,dce", stdin=UNUSED)
    ran = tool("hlo_opt", "-p", "cse,dce", "--print-ir-after-all", "--timing", stdin=UNUSED)
    assert ran.out == plain.out
    assert ran.err.count("// -----// IR Dump After") == 2
    assert "HloModule m" in ran.err
    assert re.search(r"pass dce +\d+\.\d+ +\d+\.\d%", ran.err)


@pytest.mark.parametrize(
    ("flags", "headings"),
    [
        (["--print-ir-before=dce"], ["Before dce"]),
        (["--print-ir-after=cse"], ["After cse (no change)"]),
        (["--print-ir-before-all"], ["Before cse", "Before dce"]),
        (["--print-ir-before=all"], ["Before cse", "Before dce"]),
        (["--mlir-print-ir-after-all"], ["After cse (no change)", "After dce"]),
        (["--print-ir-after-change"], ["After cse (no change)", "After dce"]),
        (["--print-ir-change"], ["After cse (no change)", "After dce"]),
        (["--print-ir-before=x", "--print-ir-after=dce"], ["After dce"]),
    ],
)
def test_print_ir(flags: list[str], headings: list[str], tool: Tool) -> None:
    err = tool("hlo_opt", "-p", "cse,dce", *flags, stdin=UNUSED).err
    assert re.findall(r"IR Dump (.*?) //-----", err) == headings


def test_list_passes(tool: Tool) -> None:
    ran = tool("hlo_opt", "--list-passes")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert all(len(line.split()) > 2 and len(line) < 120 for line in lines)
    rows = json.loads(tool("hlo_opt", "--list-passes", "--json").out)
    assert {row["name"] for row in rows} >= {"cse", "dce"}
    pages = tool("hlo_opt", "--help-passes").out
    assert "    Options:" in pages


def test_switches_of_the_printer(tool: Tool) -> None:
    big = "ROOT c = s32[12] constant({1,2,3,4,5,6,7,8,9,10,11,12})"
    text = f"HloModule m\n\nENTRY e {{\n  {big}\n}}\n"
    assert "10, 11, 12" in tool("hlo_opt", stdin=text).out
    assert "{...}" in tool("hlo_opt", "--no-print-large-constants", stdin=text).out
    assert "{...}" in tool("hlo_opt", "--xla_dump_large_constants=false", stdin=text).out
    assert "{...}" in tool("hlo_opt", "--print-large-constants=false", stdin=text).out
    assert "%" not in tool("hlo_opt", "--short", stdin=text).out
    assert "%" not in tool("hlo_opt", "--no-percent", stdin=text).out
    assert "{11,0}" not in tool("hlo_opt", "--print=no-layouts", stdin=text).out
    assert "%" not in tool("hlo_opt", "--xla_dump_hlo_as_long_text=false", stdin=text).out
    assert "tmp_0" in tool("hlo_opt", "--canonical", stdin=text).out


@pytest.mark.parametrize(
    ("argv", "stdin", "code", "message"),
    [
        (["--pases=dce"], UNUSED, 2, "did you mean '--passes'?"),
        (["-p", "dec"], UNUSED, 2, "did you mean 'dce'?"),
        (["-p", "dce{"], UNUSED, 2, "HLO0400"),
        (["--dce=nonsense=1"], UNUSED, 2, "HLO0402"),
        (["--emit=foo"], UNUSED, 2, "not one of hlo"),
        (["--format=hol"], UNUSED, 2, "did you mean 'hlo'?"),
        (["--container=HloProt", "--emit=pb"], UNUSED, 2, "unknown message 'HloProt'"),
        (["--print=metadat"], UNUSED, 2, "did you mean 'metadata'?"),
        (["--platform=quantum", "-pdce"], UNUSED, 2, "provider not found"),
        (["--platform=xpu"], UNUSED, 2, "no pipeline of platform 'xpu'"),
        (["--stage=llvm"], UNUSED, 2, "has no stage 'llvm'"),
        (["--xla_fuel=dce"], UNUSED, 2, "takes PASS=NUMBER"),
        (["--explain=HLO9999"], "", 2, "no error code"),
        (["a", "b"], "", 2, "one input file is wanted, 2 given"),
        (["nosuch.hlo"], "", 1, "cannot read 'nosuch.hlo'"),
        (["README.m"], "", 1, "did you mean 'README.md'?"),
        (["README.md"], "", 1, "no format this package reads"),
        ([], "", 1, "the file is empty"),
        (["-o", "/nosuch/dir/x"], UNUSED, 1, "cannot write"),
        (["--load-pass=nosuch.py"], UNUSED, 1, "HLO0405"),
        (
            [],
            "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0\n}\n",
            1,
            "<stdin>:5:1: error[HLO00",
        ),
        ([], INVALID, 1, "<stdin>:5:"),
        (["--format=pb"], UNUSED, 1, "error[HLO02"),
        (["--no-verify", "-pdce"], "builtin.module {}", 1, "error[HLO0106]"),
        (["test/data/dumps/cpu"], "", 1, "name a file in it, such as 'test/data/dumps/cpu/"),
    ],
)
def test_mistake(
    argv: list[str],
    stdin: str,
    code: int,
    message: str,
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    ran = tool("hlo_opt", *argv, stdin=stdin)
    assert message in ran.err
    assert ran.code == code
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_verification_can_be_left_out(tool: Tool) -> None:
    for flag in ("--no-verify", "--verify=false", "--disable-verify", "--disable-verification"):
        ran = tool("hlo_opt", flag, stdin=INVALID)
        assert (ran.code, ran.err) == (0, "")
        assert "f32[3]{0} negate" in ran.out


def test_pieces_are_joined_as_in_xla(tool: Tool) -> None:
    text = f"// RUN: x\n{UNUSED}// -----\n{UNUSED}"
    ran = tool("hlo_opt", "--split-input-file", "-pdce", stdin=text)
    assert ran.code == 0
    first, second = ran.out.split("HloModule m")[1:]
    assert first.rstrip() == second.rstrip()
    mlir = tool("hlo_opt", "--split-input-file", "--emit=mlir", stdin=text).out
    assert mlir.count("// -----") == 1
    again = tool("hlo_opt", "--split-input-file", "--emit=mlir", stdin=mlir).out
    assert again == mlir


def test_errors_in_pieces_name_the_line_of_the_file(tool: Tool) -> None:
    ran = tool("hlo_opt", "--split-input-file", stdin=f"{UNUSED}// -----\n{INVALID}")
    line = UNUSED.count("\n") + 1 + 5
    assert f"<stdin>:{line}:" in ran.err
    assert ran.code == 1
    assert "negate" in ran.out, "the pieces without errors are printed"


def test_verify_diagnostics(tool: Tool) -> None:
    announced = INVALID.replace("  ROOT", "  // expected-error @+1 {{negate}}\n  ROOT")
    ran = tool("hlo_opt", "--verify-diagnostics", stdin=announced)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = tool("hlo_opt", "--verify-diagnostics", stdin=INVALID)
    assert ran.code == 1
    assert "error[HLO0505]: unexpected error[HLO01" in ran.err
    ran = tool("hlo_opt", "--verify-diagnostics", stdin=announced.replace("negate}", "nonsense}"))
    assert ran.code == 1
    assert 'expected error "nonsense" was not produced' in ran.err
    both = f"{announced}// -----\n{UNUSED}// -----\n{announced}"
    ran = tool("hlo_opt", "--verify-diagnostics", "--split-input-file", stdin=both)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("HloModule m") == 1
    only = tool("hlo_opt", "--verify-diagnostics=only-expected", stdin=INVALID)
    assert only.code == 0


PASS = '''
from dataclasses import dataclass
from mlirhlo.rewrites.passes import HloPass

@dataclass(frozen=True)
class {cls}(HloPass):
    """{doc}"""

    name = "{name}"

    def run(self, module, trace):
        {body}
'''


def pass_file(path: Path, name: str, body: str) -> Path:
    path.write_text(PASS.format(cls="MyPass", name=name, doc="Does as told.", body=body))
    return path


def test_load_pass(tool: Tool, tmp_path: Path) -> None:
    file = pass_file(
        tmp_path / "mine.py", "my-rename", 'module.entry.root.instruction_name = "z"; return True'
    )
    ran = tool("hlo_opt", f"--load-pass={file}", "-p", "my-rename", stdin=UNUSED)
    assert (ran.code, ran.err) == (0, "")
    assert "ROOT %z = " in ran.out
    assert "my-rename" in tool("hlo_opt", "--list-passes").out


def test_a_pass_that_breaks_the_module_is_named(tool: Tool, tmp_path: Path) -> None:
    body = (
        "from mlirhlo.dialects.hlo.attributes.base import integer; "
        'module.entry.parameters[0].properties["parameter_number"] = integer(7); return True'
    )
    file = pass_file(tmp_path / "bad.py", "my-breaker", body)
    ran = tool("hlo_opt", f"--load-pass={file}", "-p", "cse,my-breaker,dce", stdin=UNUSED)
    assert ran.code == 1
    assert f"{file}:" in ran.err
    assert "error[HLO0512]: the module is not valid any more after my-breaker\n" in ran.err
    ran = tool("hlo_opt", "--verify-each", "-p", "cse,my-breaker,dce", stdin=UNUSED)
    assert "error[HLO0512]: the module is not valid any more after my-breaker\n" in ran.err


def test_our_own_faults_leave_a_reproducer(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: object) -> bool:
        raise AttributeError("'str' object", arguments)

    monkeypatch.setattr("mlirhlo.rewrites.simplify.cse.CsePass.run", crash)
    ran = tool("hlo_opt", "-p", "cse", stdin=UNUSED)
    assert ran.code == 3
    assert "error[HLO0901]: hlo-opt failed at test_hlo_opt.py:" in ran.err
    assert "Traceback" not in ran.err
    found = re.search(r"\S+\.reproducer\.txt", ran.err)
    assert found is not None
    text = Path(found[0]).read_text()
    assert "// command: hlo-opt -p cse" in text
    assert "AttributeError: (\"'str' object\"" in text
    assert tool("hlo_opt", found[0], "-p", "dce").code == 0, "the reproducer is a module"
    Path(found[0]).unlink()
    with pytest.raises(AttributeError):
        tool("hlo_opt", "-p", "cse", "--debug", stdin=UNUSED)


def test_faults_of_a_loaded_pass_are_its_own(tool: Tool, tmp_path: Path) -> None:
    file = pass_file(tmp_path / "theirs.py", "their-crash", 'raise KeyError("oh")')
    ran = tool("hlo_opt", f"--load-pass={file}", "-p", "their-crash", stdin=UNUSED)
    assert ran.code == 1
    assert re.search(
        r"error\[HLO0415\]: \S+theirs\.py:\d+: the pass raised KeyError: 'oh'", ran.err
    )
    found = re.search(r"\S+\.reproducer\.txt", ran.err)
    assert found is not None
    assert "KeyError: 'oh'" in Path(found[0]).read_text()
    Path(found[0]).unlink()


def test_names_that_a_pass_file_cannot_import(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "names.py"
    file.write_text("from mlirhlo.dialects.hlo.ops import ExpOp\n")
    ran = tool("hlo_opt", f"--load-pass={file}", stdin=UNUSED)
    assert ran.code == 1
    assert "help: mlirhlo.dialects.hlo.ops has ExponentialMinusOneOp, ExponentialOp" in ran.err


def test_explain(tool: Tool) -> None:
    ran = tool("hlo_opt", "--explain", "HLO0502")
    assert ran.out.startswith("# HLO0502: ")


def test_verify_roundtrip(tool: Tool) -> None:
    for emit in ("hlo", "mlir", "proto"):
        assert tool("hlo_opt", "--verify-roundtrip", f"--emit={emit}", stdin=UNUSED).code == 0


def test_help_fits_a_screen(tool: Tool) -> None:
    text = tool("hlo_opt", "--help").out
    assert len(text.splitlines()) <= 56
    assert max(map(len, text.splitlines())) <= 100
    assert "large-constants [true]" in tool("hlo_opt", "--help-all").out


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_help_work(example: str) -> None:
    done = subprocess.run(
        example, shell=True, capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    big = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.cpu_after_optimizations.txt"
    command = f"{BIN / 'hlo-opt'} {big} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.slow
def test_the_tools_of_a_checkout_run_without_installation() -> None:
    done = subprocess.run(
        [ROOT / "tools" / "hlo-opt", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.stdout.startswith("hlo-opt of mlirhlo")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 1, "cannot write to standard output: No space left on device"),
        (">&-", 0, ""),
        ("<&- >/dev/null", 0, ""),
        ("2>&-", 0, ""),
    ],
)
def test_odd_streams(redirection: str, code: int, message: str) -> None:
    command = f"{BIN / 'hlo-opt'} {DUMPS[0]} {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert message in done.stderr
    assert "HLO0901" not in done.stderr


def test_harmless_flags_of_mlir_tools_are_accepted(tool: Tool) -> None:
    flags = ["--mlir-disable-threading", "--allow-unregistered-dialect", "--no-implicit-module"]
    assert tool("hlo_opt", *flags, stdin=UNUSED).code == 0
