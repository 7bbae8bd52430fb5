"""Stages of kernels inside programs: who writes them, and what they are called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ROOT

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.cli import hlo_opt, run_hlo_module
from mlirhlo.debug.index.names import parse_name
from mlirhlo.debug.options import process
from mlirhlo.mosaic.pipeline import STAGES

HLO = ROOT / "test" / "lit" / "cli" / "Inputs" / "kernel_call.hlo"
NAME = re.compile(r"\d{19}-\d{4}-mosaic-dump-(\w+)-(original|post-[\w-]+)\.txt")


def stages(folder: Path) -> list[tuple[str, str]]:
    matches = [NAME.fullmatch(path.name) for path in sorted(folder.iterdir())]
    assert all(matches)
    return [(match[1], match[2]) for match in matches if match]


def program(times: int = 1) -> str:
    """StableHLO as JAX has it: the kernel's module has no name, the call has."""

    def twice(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + x_ref[...]

    x = np.zeros((8, 128), np.float32)
    text = pl.kernel_call(twice, x).lower(x).to_stablehlo()
    line = next(line for line in text.split("\n") if "custom_call" in line)
    more = "".join(
        "\n" + line.replace("%0 =", f"%{n} =").replace("(%arg0)", f"(%{n - 1})")
        for n in range(1, times)
    )
    return text.replace(line, line + more).replace("return %0", f"return %{times - 1}")


WHOLE = ["original", *(f"post-{stage.name}" for stage in STAGES)]


def test_hlo_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hlo_opt.main([str(HLO), f"--xla_mosaic_dump_to={tmp_path / 'd'}"]) == 0
    assert stages(tmp_path / "d") == [("double", stage) for stage in WHOLE]
    capsys.readouterr()


@pytest.mark.parametrize("variable", ["XLA_FLAGS", "LIBTPU_INIT_ARGS"])
def test_run_hlo_module(
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, f"--xla_mosaic_dump_to={tmp_path / 'd'}")
    file = tmp_path / "p.mlir"
    file.write_text(program())
    assert run_hlo_module.main([str(file), "--platform=interpreter", "--reference_platform="]) == 0
    assert {name for name, _ in stages(tmp_path / "d")} == {"twice"}
    capsys.readouterr()


@pytest.mark.filterwarnings("ignore:.*HLO0438")
def test_each_call_is_a_context(tmp_path: Path) -> None:
    options = {"xla_mosaic_dump_to": str(tmp_path / "d")}
    mlirhlo.compile(mlirhlo.parse(program(times=2)), options=options)
    assert stages(tmp_path / "d") == [("twice", stage) for stage in WHOLE] * 2
    moments = {path.name.split("-")[0] for path in (tmp_path / "d").iterdir()}
    assert len(moments) == 2


def test_without_the_flag_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = re.sub(r'("body": ?")', r"\1AAAA", HLO.read_text())
    (tmp_path / "broken.hlo").write_text(broken)
    assert hlo_opt.main(["broken.hlo", "-o", "out.hlo"]) == 0
    assert hlo_opt.main(["broken.hlo", "-o", "out.hlo", "--xla_mosaic_dump_to=d"]) == 1
    assert not (tmp_path / "d").exists()


def test_names_with_dashes_are_told_from_stages() -> None:
    found = parse_name("1795191111665530234-0013-mosaic-dump-my-op-post-x-failed.txt")
    assert (found.module_name, found.after) == ("my-op", "post-x-failed")
    found = parse_name("1795191111665530234-0001-mosaic-dump-anonymous-original.txt")
    assert (found.module_name, found.after) == ("anonymous", "original")


def test_stablehlo_given_to_hlo_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.mlir"
    file.write_text(program())
    for form in ("", "--emit=hlo"):
        folder = tmp_path / f"d{form}"
        options = [
            f"--xla_mosaic_dump_to={folder}",
            f"--xla_dump_to={folder}/xla",
            *filter(None, [form]),
        ]
        assert hlo_opt.main([str(file), *options]) == 0
        found = [path for path in folder.iterdir() if path.is_file()]
        names = [NAME.fullmatch(path.name) for path in found]
        assert {name and name[1] for name in names} == {"twice"}
        assert any((folder / "xla").glob("*before_optimizations.txt"))
    capsys.readouterr()


@pytest.mark.parametrize("variable", ["XLA_FLAGS", "LIBTPU_INIT_ARGS"])
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_kernels_called_from_python(
    variable: str, platform: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_read", [])
    monkeypatch.setenv(variable, f"--xla_mosaic_dump_to={tmp_path / 'd'}")

    def thrice(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 3

    x = np.ones((8, 128), np.float32)
    call = pl.kernel_call(thrice, x, platform=platform)
    for _ in range(2):
        np.testing.assert_array_equal(call(x), 3 * x)
    assert stages(tmp_path / "d") == [("thrice", stage) for stage in WHOLE]


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_pallas_kernels_in_functions_of_jax(platform: str, tmp_path: Path) -> None:
    import jax
    from jax.experimental import pallas

    from mlirhlo.jax import jit

    def thrice(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 3

    def f(x: Any) -> Any:
        return pallas.pallas_call(thrice, out_shape=jax.typeof(x), name="thrice")(x + 1)

    x = np.ones((8, 128), np.float32)
    options = {"xla_mosaic_dump_to": str(tmp_path / "d")}
    for g in (f, jax.jit(f), lambda x: jax.lax.fori_loop(0, 1, lambda i, y: f(y), x)):
        jitted = jit(g, platform=platform, compiler_options=options)
        np.testing.assert_array_equal(jitted(x), 6 * x)
    assert {stage for _, stage in stages(tmp_path / "d")} == set(WHOLE)
