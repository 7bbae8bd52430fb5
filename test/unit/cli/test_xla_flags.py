"""XLA's flags: names, types and the variable's own syntax."""

from __future__ import annotations

import pytest
from support import DATA

from mlirhlo.cli.report import UsageError
from mlirhlo.cli.xla_flags import read_flags
from mlirhlo.diagnostics import HloError


@pytest.fixture(autouse=True)
def _no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def test_types() -> None:
    flags = read_flags(
        [
            ("xla_dump_to", "d"),
            ("xla_dump_hlo_as_text", None),
            ("xla_dump_hlo_as_proto", "false"),
            ("xla_backend_optimization_level", "2"),
            ("xla_disable_hlo_passes", "cse,dce"),
            ("xla_disable_hlo_passes", "algsimp"),
            ("xla_gpu_enable_command_buffer", "FUSION"),
            ("xla_fuel", "dce=3"),
        ]
    )
    assert flags.debug_options.xla_dump_to == "d"
    assert flags.is_set("xla_dump_hlo_as_text")
    assert not flags.is_set("xla_dump_hlo_as_proto")
    assert flags.debug_options.xla_backend_optimization_level == 2
    assert flags.disabled_passes == {"cse", "dce", "algsimp"}
    assert flags.fuel == {"dce": 3}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("xla_dump_hlo_as_text", "maybe", "couldn't interpret value 'maybe'"),
        ("xla_dump_hlo_as_text", "", "couldn't interpret value ''"),
        ("xla_backend_optimization_level", "x", "couldn't interpret"),
        ("xla_backend_optimization_level", "99999999999", "out of range"),
        ("xla_fuel", "dce", "not PASS=NUMBER"),
    ],
)
def test_bad_value(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_flags([(name, value)])
    assert message in str(caught.value)


def test_unknown_flag_warns_and_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    read_flags([("xla_dump_too", "x"), ("xla_tpu_anything", "1")])
    err = capsys.readouterr().err
    assert "warning[HLO0510]: unknown flag '--xla_dump_too' has no effect" in err
    assert "did you mean '--xla_dump_to'?" in err
    assert "xla_tpu" not in err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("--xla_dump_to=d", "d"),
        ("  --xla_dump_to='a b' --xla_dump_hlo_as_text", "a b"),
        (r'--xla_dump_to="a\"b"', 'a"b'),
        ("--xla_dump_hlo_as_text\n\t--xla_dump_to=x", "x"),
        ("--xla_dump_to=x garbage --xla_dump_to=y", "x"),
        ("--xla_dump_to=x --xla_dump_to=y", "y"),
        ("--xla_dump_to=", ""),
    ],
)
def test_variable(text: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", text)
    assert read_flags([]).debug_options.xla_dump_to == value


def test_command_line_wins_over_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=variable")
    assert read_flags([("xla_dump_to", "line")]).debug_options.xla_dump_to == "line"


def test_variable_may_name_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    path = f"{tmp_path}/flags"
    with open(path, "w") as file:
        file.write("--xla_dump_to=d\n")
    monkeypatch.setenv("XLA_FLAGS", path)
    assert read_flags([]).debug_options.xla_dump_to == "d"
    monkeypatch.setenv("XLA_FLAGS", path + "x")
    with pytest.raises(UsageError, match="could not open file"):
        read_flags([])


def test_file_of_options_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    path = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.debug_options"
    flags = read_flags([("debug_options_file", str(path))])
    assert "xla_dump_to" in flags.given
    assert flags.debug_options.xla_dump_to != "x"
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    assert read_flags([("debug_options_file", str(path))]).debug_options.xla_dump_to == "x"
    with pytest.raises(HloError, match="HLO0503"):
        read_flags([("debug_options_file", "nosuch")])
