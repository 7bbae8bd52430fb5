"""Flags in, exact names of files out, for the CPU compiler; and what is inside of them."""

from __future__ import annotations

import base64
import functools
import gzip
import itertools
import json
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import numpy as np
import pytest

import mlirhlo
from mlirhlo.debug.dump import observe, writer
from mlirhlo.debug.dump.settings import as_expression
from mlirhlo.debug.dump.unmatched import Unmatched
from mlirhlo.debug.options import process, resolve
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.proto.buffer_assignment_pb2 import MemoryUsageReportProto
from mlirhlo.formats.proto.containers_pb2 import HloProto
from mlirhlo.lowering.cpu import pipeline
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import run_pipeline

TEXT = """\
HloModule m, entry_computation_layout={(f32[4,8]{1,0}, f32[8]{0})->f32[4]{0}}

%add_f32 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[4,8], y: f32[8]) -> f32[4] {
  %x = f32[4,8]{1,0} parameter(0), metadata={op_name="x"}
  %y = f32[8]{0} parameter(1)
  %wide = f32[4,8]{1,0} broadcast(%y), dimensions={1}, metadata={op_name="jit(f)/add"}
  %sum = f32[4,8]{1,0} add(%x, %wide)
  %zero = f32[] constant(0)
  %rows = f32[4]{0} reduce(%sum, %zero), dimensions={1}, to_apply=%add_f32
  %table = f32[12]{0} constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  %part = f32[4]{0} slice(%table), slice={[0:4]}
  ROOT %out = f32[4]{0} multiply(%rows, %part)
}

"""

REPORTS = {
    f"cpu_after_optimizations{report}.txt"
    for report in ("", "-buffer-assignment", "-buffer-assignment-values", "-live-range",
                   "-memory-usage-report")
}  # fmt: skip
CODE = {"part_00.ir-no-opt.ll", "part_00.ir-with-opt.ll", "obj-file.part_00.o"}
OPTIONS = {"debug_options"}
DEFAULT = {"before_optimizations.txt", *REPORTS, *CODE, *OPTIONS}
"""Files of one module for `--xla_dump_to` alone, without `module_0000.m.` in front."""


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids start at 0, no flags are read yet, nothing was told."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(writer, "_numbers", itertools.count())
    monkeypatch.setattr(writer, "_dumped", set())
    monkeypatch.setattr("mlirhlo.debug.dump.sink._told", set())
    monkeypatch.setattr(process, "_read", [])


def dump(flags: dict[str, object], runs: int = 0, text: str = TEXT) -> None:
    executable = mlirhlo.compile(mlirhlo.parse(text), cached=False, options=flags)
    for _ in range(runs):
        executable(np.ones((4, 8), np.float32), np.ones(8, np.float32))


def names(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def own(found: set[str]) -> set[str]:
    """Names without `module_0000.m.`."""
    return {name.removeprefix("module_0000.m.") for name in found}


@functools.cache
def passes() -> list[tuple[str, bool]]:
    """Passes of the CPU pipeline on this module, and whether each reports a change."""
    found: list[tuple[str, bool]] = []

    class Watch:
        def started(self, pipeline: object, passes: object, module: object) -> None:
            pass

        def before(self, pass_: object, module: object) -> None:
            pass

        def after(self, pass_: object, module: object, changed: bool, seconds: float) -> None:
            found.append((pass_.name, changed))

    pipeline.optimize(mlirhlo.parse(TEXT).op, [Watch()])
    return found


def boundaries(changed_only: bool, around: str = "") -> set[str]:
    """Per-pass files of the CPU pipeline; `around` one pass only."""
    all_names = ["pipeline-start", *(name for name, _ in passes()), "pipeline-end"]
    changed = [True, *(did for _, did in passes())]
    pairs = [
        (after, before)
        for (after, before), did in zip(itertools.pairwise(all_names), changed, strict=True)
        if (did or not changed_only) and (not around or around in (after, before))
    ]
    return {
        f"{step:04d}.{pipeline.NAME}.after_{a}.before_{b}.txt" for step, (a, b) in enumerate(pairs)
    }


ROWS: dict[str, tuple[dict[str, object], set[str] | Callable[[], set[str]]]] = {
    "directory": ({}, DEFAULT),
    "text is the default": ({"xla_dump_hlo_as_text": False}, DEFAULT),
    "text": ({"xla_dump_hlo_as_text": True}, DEFAULT),
    "short text": ({"xla_dump_hlo_as_long_text": False}, DEFAULT),
    "proto": (
        {"xla_dump_hlo_as_proto": True},
        {"before_optimizations.hlo.pb", "cpu_after_optimizations.hlo.pb",
         "cpu_after_optimizations-memory-usage-report.pb", *CODE, *OPTIONS},
    ),
    "compressed": (
        {"xla_dump_hlo_as_proto": True, "xla_dump_compress_protos": True},
        {"before_optimizations.hlo.pb.gz", "cpu_after_optimizations.hlo.pb.gz",
         "cpu_after_optimizations-memory-usage-report.pb.gz", *CODE, *OPTIONS},
    ),
    "dot": (
        {"xla_dump_hlo_as_dot": True},
        {"before_optimizations.dot", "cpu_after_optimizations.dot", *CODE, *OPTIONS},
    ),
    "html": (
        {"xla_dump_hlo_as_html": True},
        {"before_optimizations.html", "cpu_after_optimizations.html",
         "cpu_after_optimizations.top_level.html", *CODE, *OPTIONS},
    ),
    "url": (
        {"xla_dump_hlo_as_url": True},
        {"before_optimizations.url", "cpu_after_optimizations.url", *CODE, *OPTIONS},
    ),
    "no analysis": (
        {"xla_dump_buffer_assignment_analysis": False},
        DEFAULT - {"cpu_after_optimizations-buffer-assignment-values.txt",
                   "cpu_after_optimizations-live-range.txt"},
    ),
    "large constants": ({"xla_dump_large_constants": True}, DEFAULT),
    "no metadata": ({"xla_dump_disable_metadata": True}, DEFAULT),
    "module matches": ({"xla_dump_hlo_module_re": "^m$"}, DEFAULT),
    "module does not match": ({"xla_dump_hlo_module_re": "other"}, set()),
    "bad expression": ({"xla_dump_hlo_module_re": "("}, set()),
    "every pass that changes": ({"xla_dump_hlo_pass_re": ".*"}, lambda: {*DEFAULT, *boundaries(True)}),
    "every pass": ({"xla_dump_hlo_pass_re": ".+"}, lambda: {*DEFAULT, *boundaries(False)}),
    "one pass": (
        {"xla_dump_hlo_pass_re": "^cse$"},
        lambda: {*DEFAULT, *boundaries(False, "cse")},
    ),
    "the start": (
        {"xla_dump_hlo_pass_re": "pipeline-start"},
        lambda: {*DEFAULT, *boundaries(False, "pipeline-start")},
    ),
    "another pipeline": (
        {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_pipeline_re": "nosuch"},
        DEFAULT,
    ),
    "a pipeline alone": ({"xla_dump_hlo_pipeline_re": "cpu"}, DEFAULT),
    "emitters": (
        {"xla_dump_emitter_re": ".*"},
        {*DEFAULT, "part_00-pre-optimization.mlir", "part_00-post-lowering.mlir", "part_00.s",
         "thunk_sequence.txt"},
    ),
    "metadata of passes": (
        {"xla_dump_module_metadata": True}, {*DEFAULT, "module_0000.metadata.textproto"}
    ),
    "fusions": (
        {"xla_dump_fusion_visualization": True}, {*DEFAULT, "main.module_0000.m._fusion.html"}
    ),
    "disabled": ({"xla_enable_dumping": False}, set()),
    "no config on the CPU": ({"xla_dump_full_hlo_config": True}, DEFAULT),
    "no such scheduler": ({"xla_dump_latency_hiding_schedule": True}, DEFAULT),
    "no passes": (
        {"xla_disable_all_hlo_passes": True, "xla_dump_hlo_pass_re": ".*"},
        {*DEFAULT, "0000.cpu.after_pipeline-start.before_pipeline-end.txt"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_names(row: str, tmp_path: Path) -> None:
    flags, expected = ROWS[row]
    dump({"xla_dump_to": str(tmp_path), **flags})
    assert own(names(tmp_path)) == (expected() if callable(expected) else expected)


def test_snapshots_are_a_format(tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path), "xla_dump_hlo_snapshots": True}, runs=2)
    found = own(names(tmp_path))
    snapshots = {name for name in found if re.fullmatch(r"snapshot\.-?\d+\.pb", name)}
    assert len(snapshots) == 2
    assert found - snapshots == {*CODE, *OPTIONS}
    for name in snapshots:
        module = mlirhlo.load(tmp_path / f"module_0000.m.{name}")
        np.testing.assert_array_equal(module(), module.expected)


@pytest.mark.parametrize(
    ("flags", "ending"),
    [({}, "pb"), ({"xla_dump_hlo_as_proto": True}, "pb"), ({"xla_dump_hlo_as_text": True}, "txt")],
)
def test_unoptimized_snapshots_stand_alone(
    flags: dict[str, object], ending: str, tmp_path: Path
) -> None:
    wanted = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_unoptimized_snapshots": True}
    dump({**wanted, **flags, "xla_dump_hlo_pass_re": ".*"}, runs=2)
    expected = {f"execution_{n:04d}.hlo_unoptimized_snapshot.{ending}" for n in range(2)}
    assert own(names(tmp_path)) == expected
    for name in expected:
        module = mlirhlo.load(tmp_path / f"module_0000.m.{name}")
        assert [a.shape for a in module.arguments[0]] == [(4, 8), (8,)]
        np.testing.assert_allclose(module(), [0, 16, 32, 48])


def test_timestamps_stand_before_hlo_files_only(tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path), "xla_dump_include_timestamp": True})
    stamped = {n for n in names(tmp_path) if re.match(r"\d{16}\.module_0000\.m\.", n)}
    assert {n.split(".", 3)[3] for n in stamped} == {"before_optimizations.txt", *REPORTS}
    assert len({n.split(".")[0] for n in stamped}) == 1
    assert own(names(tmp_path) - stamped) == {*CODE, *OPTIONS}


def test_subfolder(tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path), "xla_dump_hlo_to_subfolder": True})
    folder = tmp_path / "m" / f"{socket.gethostname()}_{os.getpid()}"
    assert own(names(folder)) == DEFAULT
    assert len(names(tmp_path)) == len(DEFAULT)


def test_limit_of_modules_is_exact(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        dump({"xla_dump_to": str(tmp_path), "xla_dump_max_hlo_modules": 2})
    ids = {name[:11] for name in names(tmp_path)}
    assert ids == {"module_0000", "module_0001"}
    assert len(names(tmp_path)) == 2 * len(DEFAULT)
    assert caplog.text.count("Have already dumped 2 modules, more than the limit of 2") == 1


def test_inputs_when_the_environment_names_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    mlirhlo.compile(mlirhlo.parse(TEXT), cached=False)
    inputs = {f"module_0000.m/{n}" for n in ("module.mlir", "compile_options.textproto",
                                             "topology.textproto")}  # fmt: skip
    assert own(names(tmp_path)) == {*DEFAULT, *inputs}
    assert "xla_dump_to" not in (tmp_path / "module_0000.m/compile_options.textproto").read_text()
    again = mlirhlo.load(tmp_path / "module_0000.m" / "module.mlir")
    given = (np.ones((4, 8), np.float32), np.ones(8, np.float32))
    np.testing.assert_array_equal(again(*given), mlirhlo.parse(TEXT)(*given))


# ---------------------------------------------------------------- contents


def test_every_text_parses_back(tmp_path: Path) -> None:
    for number, flags in enumerate(({}, {"xla_dump_hlo_as_long_text": False},
                                    {"xla_dump_large_constants": True},
                                    {"xla_dump_disable_metadata": True},
                                    {"xla_hlo_print_inline_stack_frames": True})):  # fmt: skip
        folder = tmp_path / str(number)
        dump({"xla_dump_to": str(folder), "xla_dump_hlo_pass_re": ".+", **flags})
        texts = [
            p for p in folder.iterdir() if re.search(r"(tions|start|before_\S+)\.txt$", p.name)
        ]
        assert len(texts) >= len(boundaries(False)) + 2
        for path in texts:
            module = mlirhlo.load(path)
            assert module.name == "m"
            assert not module.problems()


def test_before_optimizations_is_the_module_as_it_came(tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path), "xla_dump_large_constants": True})
    assert (tmp_path / "module_0000.m.before_optimizations.txt").read_text() == TEXT
    dump({"xla_dump_to": str(tmp_path / "short")})
    text = (tmp_path / "short" / "module_0001.m.before_optimizations.txt").read_text()
    assert text == TEXT.replace("{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}", "{...}")


def test_protos_are_what_the_texts_say(tmp_path: Path) -> None:
    flags = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_proto": True}
    dump({**flags, "xla_dump_hlo_as_text": True, "xla_dump_compress_protos": True})
    stem = tmp_path / "module_0000.m.cpu_after_optimizations"
    proto = HloProto.FromString(gzip.decompress(Path(f"{stem}.hlo.pb.gz").read_bytes()))
    total = sum(a.size for a in proto.buffer_assignment.buffer_allocations)
    report = MemoryUsageReportProto.FromString(
        gzip.decompress(Path(f"{stem}-memory-usage-report.pb.gz").read_bytes())
    )
    (space,) = report.memory_space_allocation_entries
    assert space.total_bytes == total == sum(e.size for e in space.allocation_entries)
    ids = {i.id for c in proto.hlo_module.computations for i in c.instructions}
    for buffer in proto.buffer_assignment.logical_buffers:
        assert buffer.defined_at.instruction_id in ids
    plain = mlirhlo.load(f"{stem}.hlo.pb.gz").as_text()
    assert mlirhlo.load(f"{stem}.txt").name in plain


ALLOCATION = re.compile(
    r"allocation (\d+): size (\d+)"
    r"(?:, parameter \d+, shape \|[^|]*\| at ShapeIndex \{[\d,]*\})?"
    r"(?:, output shape is \|[^|]*\|)?(, constant)?(, maybe-live-out)?(, preallocated-temp)?:"
)
VALUE = re.compile(
    r" value: <(\d+) (\S+?)(?:\{[\d,]*\})?(?: \(phi\))? @0> \(size=(\d+),offset=(\d+)\): .+"
)


LOOP = """\
HloModule loop

body {
  p = (s32[], f32[64], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[64] get-tuple-element(p), index=1
  w = f32[64] multiply(v, v)
  t = f32[8,8] get-tuple-element(p), index=2
  u = f32[8,8] dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[64], f32[8,8]) tuple(next, w, u)
}

condition {
  p = (s32[], f32[64], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[64] parameter(0)
  y = f32[8,8] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[64], f32[8,8]) tuple(zero, x, y)
  l = (s32[], f32[64], f32[8,8]) while(s), condition=condition, body=body
  a = f32[64] get-tuple-element(l), index=1
  b = f32[8,8] get-tuple-element(l), index=2
  f = f32[64] reshape(b)
  big = f32[64] sort(f), dimensions={0}, to_apply=less
  ROOT out = (f32[64], f32[64], f32[8,8]) tuple(a, big, y)
}
"""
LESS = """\
HloModule loop

less {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT l = pred[] compare(p, q), direction=LT
}
"""


@pytest.mark.parametrize("text", [TEXT, LOOP.replace("HloModule loop\n", LESS)])
def test_buffer_assignment_adds_up(text: str, tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path)}, text=text)
    found = {p.name.split("cpu_after_optimizations")[1]: p.read_text()
             for p in tmp_path.glob("*cpu_after_optimizations-*.txt")}  # fmt: skip
    sizes: list[int] = []
    held: set[str] = set()
    first, *lines = found["-buffer-assignment.txt"].splitlines()
    assert first == "BufferAssignment:"
    for line in lines:
        if match := ALLOCATION.fullmatch(line):
            assert int(match[1]) == len(sizes)
            sizes.append(int(match[2]))
        else:
            value = VALUE.fullmatch(line)
            assert value, line
            assert int(value[4]) + int(value[3]) <= sizes[-1], line
            held.add(value[1])
    total = sum(sizes)
    values = found["-buffer-assignment-values.txt"]
    assert values.startswith(f"\nTotal bytes used: {total} (")
    assert set(re.findall(r"^<(\d+) ", values, re.MULTILINE)) == held
    assert values.count(" positions:\n") == values.count(" uses:\n") == len(held)
    assert f"Total bytes: {total} (" in found["-memory-usage-report.txt"]
    live = found["-live-range.txt"]
    assert live.startswith("HloLiveRange (max ")
    alive = re.findall(r"^    \S+: (\d+) bytes \(cumulative: (\d+) bytes\)$", live, re.MULTILINE)
    assert [int(c) for _, c in alive] == list(itertools.accumulate(int(s) for s, _ in alive))
    last = int(live.split("(max ")[1].split(")")[0])
    spans = re.findall(r"^    (\S+)\{[\d,]*\}:(\d+)-(\d+)$", live, re.MULTILINE)
    assert len(spans) == len(held)
    assert all(int(start) <= int(end) <= last for _, start, end in spans)


def test_metadata_has_every_pass(tmp_path: Path) -> None:
    flags = {"xla_dump_to": str(tmp_path), "xla_dump_module_metadata": True}
    dump({**flags, "xla_dump_hlo_pass_re": "^cse$"})
    text = (tmp_path / "module_0000.metadata.textproto").read_text()
    names_ = re.findall(r'pass_name: "(.*)"', text)
    assert names_ == ["pipeline-start", *(name for name, _ in passes())]
    assert text.count("dump_filenames: ") == 2


@dataclass(frozen=True)
class SilentPass(HloPass):
    """Changes the module and says it has not."""

    name = "silent"

    def run(self, module: HloModule, trace: Trace) -> bool:
        next(iter(module.entry.instructions)).instruction_name = "renamed"
        return False


def test_what_a_pass_hides_is_shown_at_every_boundary(tmp_path: Path) -> None:
    """Texts are printed again only for modules that differ, which passes do not decide."""
    flags = resolve(environ={}).with_compile_options(
        {"xla_dump_to": str(tmp_path), "xla_dump_hlo_pass_re": ".+"}
    )
    module = mlirhlo.parse(TEXT).op
    dump = observe(module, flags)
    run_pipeline(module, [SilentPass(), SilentPass()], dump.passes())
    start, changed, same = (p.read_text() for p in sorted(tmp_path.glob("*transforms*")))
    assert "%x = " in start
    assert "%renamed = " in changed
    assert changed == same


def test_options_are_written_as_they_are(tmp_path: Path) -> None:
    dump({"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True})
    text = (tmp_path / "module_0000.m.debug_options").read_text()
    assert text == f'xla_dump_to: "{tmp_path}"\nxla_dump_hlo_as_text: true\n'


# ---------------------------------------------------------------- standard output


def test_stdout(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    dump({"xla_dump_hlo_as_text": True})
    out = capsys.readouterr().out
    begun = re.findall(r"^\*\*\* Begin (.*) \*\*\*$", out, re.MULTILINE)
    assert begun == re.findall(r"^\*\*\* End (.*) \*\*\*$", out, re.MULTILINE)
    assert own(set(begun)) == DEFAULT - OPTIONS - {"obj-file.part_00.o"}
    refused = "Refusing to write module_0000.m.debug_options to stdout. Pass --xla_dump_to=<path>"
    assert refused in caplog.text


def test_a_directory_called_dash_is_stdout(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dump({"xla_dump_to": "-"})
    assert "*** Begin module_0000.m.before_optimizations.txt ***" in capsys.readouterr().out
    assert not names(tmp_path)


def test_url_alone_says_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    dump({"xla_dump_hlo_as_url": True})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" --> ")[0] for line in lines] == [
        "module_0000.m.before_optimizations", "module_0000.m.cpu_after_optimizations",
    ]  # fmt: skip


def test_addresses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"xla_dump_to": str(tmp_path / "a b"), "xla_dump_hlo_as_url": True}
    dump(flags)
    assert capsys.readouterr().out.count(" --> data:text/html") == 2
    dump({**flags, "xla_dump_hlo_as_html": True})
    (line, _) = capsys.readouterr().out.splitlines()
    url = line.split(" --> ")[1]
    assert url == (tmp_path / "a b" / "module_0001.m.before_optimizations.html").as_uri()
    assert Path(url2pathname(urlparse(url).path)).exists()
    monkeypatch.setenv("MLIRHLO_GRAPHVIZ_SERVER", "https://graphs.test/#")
    dump(flags)
    assert capsys.readouterr().out.count(" --> https://graphs.test/#digraph%20G") == 2


@pytest.mark.parametrize(
    "flags",
    [{"xla_dump_hlo_pass_re": ".*"}, {"xla_dump_include_timestamp": True}, {"xla_dump_hlo_module_re": "m"}],
)  # fmt: skip
def test_filters_alone_write_nothing_and_that_is_said(
    flags: dict[str, object], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    dump(flags)
    assert not names(tmp_path)
    assert not capsys.readouterr().out
    assert caplog.text.count("without a place for dumps: nothing is written") == 1


def test_sponge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_UNDECLARED_OUTPUTS_DIR", str(tmp_path))
    dump({"xla_dump_to": "Sponge"})
    assert own(names(tmp_path)) == DEFAULT


def test_steps_of_fusion(tmp_path: Path) -> None:
    """The page's slider shows the module before, after each instruction that was fused, and at the end."""
    dump({"xla_dump_to": str(tmp_path), "xla_dump_fusion_visualization": True})
    [page] = tmp_path.glob("*_fusion.html")
    found = re.search(r'id="data">([^<]+)<', page.read_text())
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found[1])))
    labels = [stage["label"] for stage in data["stages"]]
    count = len(labels) - 2
    assert count > 1
    fused = [f"{step} of {count} fused" for step in range(1, count + 1)]
    assert labels == ["before fusion", *fused, "the module"]


def test_assembly_as_llvm_leaves_it(tmp_path: Path) -> None:
    """The optimised assembly is LLVM's own, and still the same functions."""
    dump({"xla_dump_to": str(tmp_path)})
    before, after = (
        (tmp_path / f"module_0000.m.part_00.ir-{how}-opt.ll").read_text() for how in ("no", "with")
    )
    assert after != before
    defined = [
        set(re.findall(r"^define .*?@([\w.]+)\(", text, re.MULTILINE)) for text in (before, after)
    ]
    assert "main" in " ".join(defined[1])
    assert defined[1] <= defined[0]
    assert "; ModuleID" in after


@pytest.mark.parametrize("expression", ["another", "an_*", "m"])
def test_an_expression_that_matches_no_module_is_told(
    expression: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the end of the process, once, with the names there were."""
    unmatched = Unmatched()
    monkeypatch.setattr(writer, "UNMATCHED", unmatched)
    for _ in range(2):
        dump({"xla_dump_to": str(tmp_path), "xla_dump_hlo_module_re": expression})
    unmatched.report()
    told = [record.getMessage() for record in caplog.records if "HLO0525" in record.getMessage()]
    assert len(told) == (expression != "m")
    for message in told:
        assert f"--xla_dump_hlo_module_re={expression} matches no module" in message
        assert message.endswith("modules were: m")
        assert ("an_.*" in message) == ("*" in expression)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [("*While*", ".*While.*"), ("jit_*", "jit_.*"), (".*", None), ("a(b)*", None), ("a[", None)],
)
def test_file_patterns_are_explained(pattern: str, meant: str | None) -> None:
    assert as_expression(pattern) == meant
