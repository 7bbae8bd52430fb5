"""Files are written whole or not at all, by every tool."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from support import DATA

from mlirhlo.cli import hlo_dump, mosaic_run, run_hlo_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.files import whole_file, write_file


def left_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def broken_off(path: Path, problem: BaseException) -> None:
    with whole_file(str(path)) as file:
        file.write(b"half")
        raise problem


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_full_disk_changes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "old").write_bytes(b"before")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(HloError, match=r"HLO0503.*No space left"):
        broken_off(tmp_path / name, full)
    assert left_in(tmp_path) == {"old": b"before"}


def test_an_interrupt_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        broken_off(tmp_path / "old", KeyboardInterrupt())
    assert left_in(tmp_path) == {"old": b"before"}


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "old"
    file.write_bytes(b"before")
    file.chmod(0o640)
    write_file(str(file), b"after")
    assert left_in(tmp_path) == {"old": b"after"}
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_file(str(tmp_path / "link"), b"content")
    assert (tmp_path / "link").is_symlink()
    assert left_in(tmp_path) == {"link": b"content", "target": b"content"}


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null/x", "/proc/missing/x", "a\0b", "."])
def test_what_the_system_refuses(path: str) -> None:
    with pytest.raises(HloError, match="cannot write") as caught:
        write_file(path, b"content")
    assert caught.value.code == "HLO0503"


MODULE = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n"
KERNEL = """\
func.func @main(%x: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}
"""


def test_tools_name_the_file_they_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, kernel = tmp_path / "m.hlo", tmp_path / "k.mlir"
    module.write_text(MODULE)
    kernel.write_text(KERNEL)
    assert run_hlo_module.main(["--platform=CPU", f"{module}", "--profile=/dev/full"]) == 1
    assert "cannot write '/dev/full'" in capsys.readouterr().err
    assert mosaic_run.main([f"{kernel}", "-o", "/dev/full"]) == 1
    assert "cannot write '/dev/full'" in capsys.readouterr().err
    missing = tmp_path / "missing" / "t.json"
    assert mosaic_run.main([f"{kernel}", f"--timeline={missing}"]) == 1
    assert f"error[HLO0503]: cannot write '{missing}'" in capsys.readouterr().err
    assert hlo_dump.main(["pack", f"{DATA / 'dumps/cpu'}", "-o", "/dev/full"]) == 1
    assert "cannot write '/dev/full'" in capsys.readouterr().err


def test_results_of_a_kernel_lie_where_they_were_wanted(tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text(KERNEL)
    assert mosaic_run.main([str(tmp_path / "k.mlir"), "-o", str(tmp_path / "out")]) == 0
    assert sorted(left_in(tmp_path)) == ["k.mlir", "out"]
