"""Every spelling of an option that users of XLA, MLIR and xDSL type."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mlirhlo.cli.options import flag, help_text, parse, split_commas
from mlirhlo.cli.report import UsageError


@dataclass
class Options:
    output: str = flag("-", "o", help="where to write", group="Output", metavar="FILE")
    passes: tuple[str, ...] = flag((), "p", help="what to run", metavar="a,b")
    abs_error_bound: float = flag(1e-3, "abs_error_bound", help="bound")
    iterations: int = flag(1, help="runs", least=1)
    seed: int = flag(0, help="any")
    verify: bool = flag(True, help="check")
    debug: bool = flag(False, help="traceback")
    emit: str | None = flag(None, "t", help="format", choices=("hlo", "mlir"))
    reference_platform: str = flag("default", help="compare with", rare=True)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--output=x", "output", "x"),
        ("--output x", "output", "x"),
        ("-o x", "output", "x"),
        ("-ox", "output", "x"),
        ("-o=x", "output", "x"),
        ("-o -", "output", "-"),
        ("-output=x", "output", "x"),
        ("-p a,b{c=1,d=2} -p d", "passes", ("a", "b{c=1,d=2}", "d")),
        ("--abs_error_bound=1e-2", "abs_error_bound", 0.01),
        ("--abs-error-bound 2", "abs_error_bound", 2.0),
        ("--iterations=3", "iterations", 3),
        ("--no-verify", "verify", False),
        ("--noverify", "verify", False),
        ("--verify=false", "verify", False),
        ("--verify=TRUE", "verify", True),
        ("--debug", "debug", True),
        ("--debug=0", "debug", False),
        ("-t mlir", "emit", "mlir"),
        ("--reference_platform=", "reference_platform", ""),
        ("--output=a=b", "output", "a=b"),
        ("--iterations=1 --iterations=2", "iterations", 2),
    ],
)
def test_spelling(line: str, field: str, value: object) -> None:
    parsed = parse(Options, line.split(" "))
    assert getattr(parsed.options, field) == value
    assert parsed.files == []


def test_files_and_xla_flags_are_kept_apart() -> None:
    argv = ["a.hlo", "--xla_dump_to=d", "--debug", "-", "--xla-cpu-fast", "--", "--b"]
    parsed = parse(Options, argv)
    assert parsed.files == ["a.hlo", "-", "--b"]
    assert parsed.xla == [("xla_dump_to", "d"), ("xla_cpu_fast", None)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--pases=a", "did you mean '--passes'?"),
        ("-pases=a", "did you mean '--passes'?"),
        ("--iterations=x", "not a whole number"),
        ("--abs_error_bound=x", "not a number"),
        ("--verify=maybe", "not true or false"),
        ("--output", "needs a value"),
        ("--output --debug", "needs a value"),
        ("--emit=mlri", "did you mean 'mlir'?"),
        ("--nonsense", "--help shows the options"),
        ("--nodebugg", "unknown option '--nodebugg'"),
    ],
)
def test_mistake(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(Options, line.split(" "))
    assert message in str(caught.value)
    assert caught.value.code == "HLO0502"


def test_other_options_may_be_taken() -> None:
    taken = list[tuple[str, str | None]]()

    def other(options: Options, name: str, value: str | None) -> bool:
        del options
        taken.append((name, value))
        return name == "cse"

    parse(Options, ["--cse", "--cse=x=1"], other)
    assert taken == [("cse", None), ("cse", "x=1")]
    with pytest.raises(UsageError):
        parse(Options, ["--dce"], other)


def test_commas_inside_braces_do_not_divide() -> None:
    assert split_commas("a{b=1,2},c(d,e), ,f") == ["a{b=1,2}", "c(d,e)", "f"]


def test_help_groups_and_shows_defaults() -> None:
    text = help_text(Options, "purpose", "tool FILE", ["tool x"])
    assert text.startswith("purpose\n\nusage: tool FILE\n\nexamples:\n  tool x\n")
    assert "-o, --output=FILE" in text
    assert "[-]" in text
    assert "[0.001]" in text
    assert "reference" not in text
    assert "reference" in help_text(Options, "p", "u", [], everything=True)


def test_numbers_have_limits() -> None:
    assert parse(Options, ["--seed=-1"]).options.seed == -1
    for wrong, said in (
        ("--iterations=0", "--iterations=0: at least 1 is wanted"),
        ("--iterations=-7", "--iterations=-7: at least 1 is wanted"),
        ("--seed=99999999999999999999", "--seed=99999999999999999999: more than 64 bits hold"),
    ):
        with pytest.raises(UsageError, match=said):
            parse(Options, [wrong])
