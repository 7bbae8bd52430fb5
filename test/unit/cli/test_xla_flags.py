"""XLA's flags of a tool: where they come from, and how what is wrong with them is told."""

from __future__ import annotations

import pytest
from support import DATA

from mlirhlo.cli.report import UsageError
from mlirhlo.cli.xla_flags import read_flags
from mlirhlo.diagnostics import HloError


@pytest.fixture(autouse=True)
def _no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("LIBTPU_INIT_ARGS", raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("xla_dump_hlo_as_text", "maybe"),
        ("xla_dump_hlo_as_text", ""),
        ("xla_backend_optimization_level", "x"),
        ("xla_backend_optimization_level", "99999999999"),
        ("xla_fuel", "dce"),
    ],
)
def test_bad_value_is_the_command_lines_fault(name: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_flags([(name, value)])
    assert caught.value.code == "HLO0520"
    assert f"Couldn't interpret value {value} for flag {name}." in str(caught.value)


def test_unknown_flag_warns_and_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    read_flags([("xla_dump_too", "x")])
    err = capsys.readouterr().err
    assert "warning[HLO0510]: Unknown flag: --xla_dump_too=x" in err
    assert "did you mean '--xla_dump_to'?" in err


def test_flags_without_effect_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    read_flags([("xla_tpu_anything", "1"), ("xla_gpu_autotune_level", "1")])
    err = capsys.readouterr().err
    expected = "remark[HLO0523]: without effect here: --xla_tpu_anything, --xla_gpu_autotune_level"
    assert err.strip() == expected


def test_command_line_wins_over_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=variable")
    assert read_flags([("xla_dump_to", "line")]).options.xla_dump_to == "line"


def test_unreadable_file_of_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"{tmp_path}/nosuch")
    with pytest.raises(UsageError, match="Could not open file") as caught:
        read_flags([])
    assert caught.value.code == "HLO0521"


def test_file_of_options_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    path = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.debug_options"
    flags = read_flags([("debug_options_file", str(path))])
    assert "xla_dump_to" in flags.given
    assert flags.options.xla_dump_to != "x"
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    assert read_flags([("debug_options_file", str(path))]).options.xla_dump_to == "x"
    with pytest.raises(HloError, match="HLO0503"):
        read_flags([("debug_options_file", "nosuch")])
