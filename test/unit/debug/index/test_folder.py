"""Folders of dumps: modules, the likely program, changes of passes, searching, packing, reports."""

import gzip
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from support import DATA

from mlirhlo.cli.hlo_dump import main
from mlirhlo.debug.index import read_folder
from mlirhlo.debug.index.changes import changes
from mlirhlo.debug.index.find import find, mode_of
from mlirhlo.debug.index.pack import pack
from mlirhlo.debug.index.report import print_report
from mlirhlo.debug.match import opcode_of
from mlirhlo.diagnostics import HloError

DUMPS = DATA / "dumps"
TEXT = "ENTRY e {{\n  a = f32[2] parameter(0)\n  ROOT {name} = f32[2] {opcode}(a)\n}}\n"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_modules_of_real_dumps() -> None:
    rows = {(m.directory, m.label): m for m in read_folder(str(DUMPS)).modules}
    cpu = rows["cpu", "module_0000.jit_mlp"]
    assert (cpu.platform, cpu.passes, cpu.instructions) == ("CPU", 2, 47)
    assert rows["gpu", "module_0001.jit_mlp"].platform == "GPU"
    assert rows["tpu", "module_0000.jit_mlp"].platform == "TPU"
    assert rows["tpu", "module_0000.jit_mlp"].instructions == 49


def test_every_listing_is_grouped(tmp_path: Path) -> None:
    """Files of the listings, empty: every one that names a module lands in it."""
    for listing in (DUMPS / "listings").glob("*.names.txt"):
        folder = tmp_path / listing.name
        for line in listing.read_text().split("\n"):
            if line.strip():
                write(folder, {line.split()[-1]: ""})
        dump = read_folder(str(folder))
        assert not dump.others, listing.name
        names = {module.name for module in dump.modules if module.module_id is not None}
        assert len(names) <= 2, (listing.name, names)


def test_timestamps_part_runs_of_one_program(tmp_path: Path) -> None:
    for time in (1795191395212060, 1795191395299999):
        write(
            tmp_path,
            {f"{time}.module_0000.f.before_optimizations.txt": TEXT.format(name="b", opcode="abs")},
        )
    write(tmp_path, {"module_0000.f.k_kernel_module.ir-no-opt.ll": ""})
    dump = read_folder(str(tmp_path))
    assert [(m.timestamp_us, len(m.files)) for m in dump.modules] == [
        (1795191395212060, 1),
        (1795191395299999, 2),
    ]


def test_numbers_at_the_end_of_names(tmp_path: Path) -> None:
    """`SyncTensorsGraph.4`, and two clients that both count from 0."""
    names = ("graph.4", "graph", "a_inference_f__.558")
    for name in names:
        write(
            tmp_path,
            {
                f"module_0000.{name}.before_optimizations.txt": "",
                f"module_0000.{name}.ir-no-opt.ll": "",
                f"module_0000.{name}.o": "",
            },
        )
    write(tmp_path, {"module_0000.graph.1.ir-with-opt.ll": ""})  # number 1 of the one without
    modules = read_folder(str(tmp_path)).modules
    assert {module.name: len(module.files) for module in modules} == {
        "graph": 4,
        "graph.4": 3,
        "a_inference_f__.558": 3,
    }
    assert {module.name: module.platform for module in modules}["graph.4"] == "CPU"


def test_compile_inputs_belong_to_their_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "module_0000.f.before_optimizations.txt": "",
            "module_0000.f/module.mlir": "",
            "module_0000.f/topology.pb": "",
        },
    )
    (module,) = read_folder(str(tmp_path)).modules
    assert sorted(file.name.kind for file in module.files) == ["before", "inputs", "inputs"]


def test_long_names_that_were_dropped_join_their_module(tmp_path: Path) -> None:
    name = "f" * 200
    write(
        tmp_path,
        {
            f"module_0003.{name}.before_optimizations.txt": "",
            "module_0003.cpu_after_optimizations-live-range.txt": "",
        },
    )
    (module,) = read_folder(str(tmp_path)).modules
    assert (module.name, len(module.files), module.platform) == (name, 2, "CPU")


def test_numbered_kernels_belong_to_their_module(tmp_path: Path) -> None:
    names = (
        "f.wrapped_scatter.1.ir-no-opt.ll",
        "f.wrapped_scatter.ir-no-opt.ll",
        "f.2.ir-no-opt.ll",
    )
    write(tmp_path, {f"module_0003.{name}": "" for name in names})
    write(tmp_path, {"module_0003.f.before_optimizations.txt": ""})
    (module,) = read_folder(str(tmp_path)).modules
    assert (module.name, len(module.files)) == ("f", 4)


def test_the_largest_module_is_likely_the_program(tmp_path: Path) -> None:
    big = "ENTRY e {\n" + "".join(f"  a{i} = f32[] constant(1)\n" for i in range(90)) + "}\n"
    small = TEXT.format(name="b", opcode="abs") + "#" * 9999
    write(tmp_path, {"module_0000.jit_convert_element_type.before_optimizations.txt": small})
    write(tmp_path, {"module_0004.jit_step.before_optimizations.txt": big})
    main_module = read_folder(str(tmp_path)).main
    assert main_module is not None
    assert (main_module[0].name, main_module[1]) == (
        "jit_step",
        "most instructions: 90, the next has 2",
    )


@pytest.mark.parametrize("wanted", ["4", "module_0004", "jit_step", "module_0004.jit_step", "step"])
def test_modules_by_any_name(tmp_path: Path, wanted: str) -> None:
    write(
        tmp_path,
        {
            "module_0000.jit_f.before_optimizations.txt": "",
            "module_0004.jit_step.before_optimizations.txt": "",
        },
    )
    assert read_folder(str(tmp_path)).find(wanted).name == "jit_step"


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(HloError, match="HLO0544"):
        read_folder(str(DUMPS / "nowhere"))
    with pytest.raises(HloError, match="HLO0544"):
        read_folder(str(DUMPS)).find("nope")


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "dump", {"module_0000.f.before_optimizations.txt": ""})
    (tmp_path / "dump/loop").symlink_to(tmp_path / "dump")
    (tmp_path / "dump/module_0001.g.before_optimizations.txt").symlink_to("/etc/passwd")
    dump = read_folder(str(tmp_path / "dump"))
    assert [m.name for m in dump.modules] == ["f"]


# ---------------------------------------------------------------- passes


def test_changes_of_a_real_dump() -> None:
    module = read_folder(str(DUMPS / "cpu")).find("")
    rows = {change.name: change for change in changes(module)}
    fusion = rows["fusion"]
    assert (fusion.step, fusion.instructions) == (1, 47)
    assert dict(fusion.opcodes)["fusion"] == 4
    assert not rows["before_optimizations"].has_changed


def steps(tmp_path: Path, *texts: str | bytes, extension: str = ".txt") -> Path:
    for number, text in enumerate(texts):
        write(tmp_path, {f"module_0000.f.{number:04d}.p.after_q{number}.before_r{extension}": text})
    return tmp_path


def test_added_removed_changed(tmp_path: Path) -> None:
    one, two, three = (
        TEXT.format(name="b", opcode="abs"),
        TEXT.format(name="b", opcode="negate"),
        TEXT.format(name="c", opcode="negate"),
    )
    module = read_folder(str(steps(tmp_path, one, one, two, three))).find("")
    assert [(c.added, c.removed, c.changed, c.moved) for c in changes(module)] == [
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 1),
    ]


def test_metadata_is_no_change(tmp_path: Path) -> None:
    one = TEXT.format(name="b", opcode="abs")
    module = read_folder(
        str(steps(tmp_path, one, one.replace("abs(a)", 'abs(a), metadata={op_name="x"}')))
    ).find("")
    assert not any(change.has_changed for change in changes(module))


def test_compressed_and_binary_forms(tmp_path: Path) -> None:
    proto = (DUMPS / "cpu/module_0000.jit_mlp.before_optimizations.hlo.pb").read_bytes()
    write(
        tmp_path,
        {
            "module_0000.f.0000.p.after_a.before_b.hlo.pb": proto,
            "module_0000.f.0001.p.after_b.before_c.hlo.pb.gz": gzip.compress(proto),
        },
    )
    rows = list(changes(read_folder(str(tmp_path)).find("")))
    assert [(row.instructions, row.has_changed) for row in rows] == [(38, False), (38, False)]


def test_damaged_files_are_noted_and_passed_over(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "module_0000.f.0000.p.after_a.before_b.hlo.pb": b"\xff" * 40,
            "module_0000.f.0001.p.after_b.before_c.txt.gz": b"\x1f\x8bjunk",
        },
    )
    rows = list(changes(read_folder(str(tmp_path)).find("")))
    assert rows[0].instructions is None
    assert rows[0].note
    assert rows[1].instructions == 0


def test_graphs_alone_are_compared_by_their_nodes(tmp_path: Path) -> None:
    node = "1 [label=<<b>{}</b><br/>f32[]>, shape=rect];\n"
    module = read_folder(
        str(steps(tmp_path, node.format("a"), node.format("b"), extension=".dot"))
    ).find("")
    assert [(c.added, c.removed, c.moved) for c in changes(module)] == [(0, 0, 0), (0, 0, 1)]


def test_stages_of_a_kernel_are_compared(tmp_path: Path) -> None:
    body = "module {{\n  func.func @k() {{\n    %0 = arith.{} %1, %2 : f32\n  }}\n}}\n"
    stages = {"0001": "original", "0002": "post-canonicalize"}
    for (step, stage), opcode in zip(stages.items(), ("addf", "mulf"), strict=True):
        name = f"1795192028328795832-{step}-mosaic-dump-anonymous-{stage}.txt"
        write(tmp_path, {name: body.format(opcode)})
    (kernel,) = read_folder(str(tmp_path)).modules
    assert (kernel.name, kernel.platform, kernel.instructions) == ("anonymous", "TPU", 1)
    assert [(c.name, c.changed) for c in changes(kernel)] == [
        ("original", 0),
        ("post-canonicalize", 1),
    ]


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("f32[4]{0} add(%a, %b)", "add"),
        ("(f32[4]{0:T(8)}, (s32[], u8[2])) while(%a), condition=%c", "while"),
        ("f32[] get-tuple-element(%t), index=0", "get-tuple-element"),
        ('"tpu.matmul"(%3, %4) : (vector<8x8xf32>) -> vector<8x8xf32>', "tpu.matmul"),
        ("arith.addf %0, %1 : vector<8xf32>", "arith.addf"),
        ("garbage", "?"),
    ],
)
def test_opcode_of_a_line(text: str, opcode: str) -> None:
    assert opcode_of(text) == opcode


# ---------------------------------------------------------------- searching


@pytest.mark.parametrize(
    ("query", "mode"), [("dot", "op"), ("model.py:12", "source"), ("metadata", "text")]
)
def test_what_a_query_means(query: str, mode: str) -> None:
    assert mode_of(query) == mode


def hits(folder: Path, query: str, mode: str = "", **options: bool) -> list[str]:
    return [
        hit.text for hit in find(read_folder(str(folder)), query, mode or mode_of(query), **options)
    ]


def test_opcodes_are_found_and_not_their_names() -> None:
    found = hits(DUMPS / "cpu", "dot")
    assert len(found) == 2
    assert all(" dot(" in line for line in found)


@pytest.mark.parametrize("folder", ["cpu", "gpu"])
def test_source_lines_are_found_through_the_frame_tables(folder: str) -> None:
    found = hits(DUMPS / folder, "sample_mlp.py:14")
    assert any("exponential(" in line for line in found)
    assert not any(" dot(" in line for line in found)
    assert not hits(DUMPS / folder, "sample_mlp.py:999")


def test_inline_sources_are_found(tmp_path: Path) -> None:
    shutil.copy(
        DUMPS / "cpu_text_variants/inline_stack_frames.before_optimizations.txt",
        tmp_path / "module_0000.f.before_optimizations.txt",
    )
    assert any("dot(" in line for line in hits(tmp_path, "sample_mlp.py:13"))


def test_all_files_and_regular_expressions() -> None:
    few = hits(DUMPS / "cpu", "^ENTRY", "regex")
    assert len(few) == 2
    assert len(hits(DUMPS / "cpu", "ENTRY", "text", all_files=True)) > 2


# ---------------------------------------------------------------- packing and reporting

HOSTILE = ("<script>alert(1)</script>", "a b\nc", "\u202e", "x'\"&;$(id)", "-rf", "n" * 200)


def hostile(folder: Path) -> Path:
    for number, name in enumerate(HOSTILE):
        file = f"module_{number:04d}.{name.replace('/', '_')}.before_optimizations.txt"
        (folder / file).write_text(TEXT.format(name="b", opcode="abs"))
    (folder / os.fsdecode(b"module_0099.\xff\xfe.before_optimizations.txt")).write_text("")
    return folder


def test_an_archive_has_what_a_bug_report_needs(tmp_path: Path) -> None:
    module = read_folder(str(DUMPS / "cpu")).find("")
    members = pack(module, str(tmp_path / "x.tar.gz"))
    with tarfile.open(tmp_path / "x.tar.gz") as archive:
        assert archive.getnames() == members
        about = json.load(archive.extractfile("module_0000.jit_mlp/about.json"))
    names = {Path(member).name for member in members}
    assert "module_0000.jit_mlp.before_optimizations.txt" in names
    assert "module_0000.jit_mlp.cpu_after_optimizations.txt" in names
    assert "module_0000.jit_mlp.debug_options" in names
    assert not any("snapshot" in name or "after_fusion" in name for name in names), (
        "inputs are private"
    )
    assert about["platform"] == "CPU"
    assert "mlirhlo" in about["packed_with"]
    with_all = pack(module, str(tmp_path / "y.tar.gz"), with_passes=True, with_data=True)
    assert any("snapshot" in member for member in with_all)
    assert any("after_fusion" in member for member in with_all)


def test_hostile_names_stay_in_the_archive(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for module in read_folder(str(hostile(tmp_path / "in"))).modules:
        pack(module, str(tmp_path / "x.tar.gz"))
        with tarfile.open(tmp_path / "x.tar.gz") as archive:
            for name in archive.getnames():
                assert not name.startswith(("/", ".."))
                assert "/../" not in name


def test_the_report_shows_names_as_text(tmp_path: Path) -> None:
    page = print_report(read_folder(str(hostile(tmp_path))))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;_script&gt;" in page
    assert "default-src 'none'" in page
    assert "\u202e" not in page
    page.encode()


def test_the_report_names_changes_and_files() -> None:
    page = print_report(read_folder(str(DUMPS / "cpu")))
    assert "the module as the compiler was given it" in page
    assert 'href="./module_0000.jit_mlp.before_optimizations.txt"' in page
    assert "+4 fusion" in page


# ---------------------------------------------------------------- the tool


def test_ls_prints_hostile_names_on_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ls", str(hostile(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    assert len(out.strip().split("\n")) == len(HOSTILE) + 1 + 2
    assert main(["ls", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["modules"]) == len(HOSTILE) + 1


@pytest.mark.slow
def test_thousands_of_files(tmp_path: Path) -> None:
    text = TEXT.format(name="b", opcode="abs")
    for number in range(300):
        for step in range(20):
            (
                tmp_path / f"module_{number:04d}.f{number}.{step:04d}.p.after_q.before_r.txt"
            ).write_text(text)
    dump = read_folder(str(tmp_path))
    assert len(dump.modules) == 300
    assert dump.main is not None
    assert sum(module.passes for module in dump.modules) == 6000
