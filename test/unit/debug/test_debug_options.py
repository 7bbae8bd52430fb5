"""`DebugOptions`: the table of flags, their syntax, and the order of their sources."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from google.protobuf import text_format

from mlirhlo.debug.options import DebugOptions, process, process_flags, resolve
from mlirhlo.debug.options.fields import flag_fields, info_of
from mlirhlo.debug.options.known import xla_rows
from mlirhlo.debug.options.tokens import tokenize
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.proto.debug_options_pb2 import DebugOptions as Message


def variable(text: str) -> dict[str, str]:
    return {"XLA_FLAGS": text}


# ---------------------------------------------------------------- table


def test_every_field_of_xla_is_known_with_its_type() -> None:
    fields = Message.DESCRIPTOR.fields_by_name
    assert set(xla_rows()) == set(fields)
    scalars = {
        "bool": "TYPE_BOOL", "int32": "TYPE_INT32", "int64": "TYPE_INT64",
        "string": "TYPE_STRING", "enum": "TYPE_ENUM", "float": "TYPE_FLOAT",
    }  # fmt: skip
    for name, row in xla_rows().items():
        if row.type in scalars:
            assert fields[name].type == getattr(type(fields[name]), scalars[row.type]), name


def test_defaults_of_the_dataclass_are_xlas() -> None:
    for name, member in flag_fields().items():
        row = xla_rows().get(name)
        if row is not None:
            assert (member.default, info_of(member).type) == (row.default, row.type), name


def test_every_dump_flag_has_help_and_type() -> None:
    for member in flag_fields().values():
        info = info_of(member)
        assert info.help.endswith(".")
        assert info.type in ("bool", "int32", "int64", "string", "string[]", "map")
    dumps = {n for n in xla_rows() if n.startswith("xla_dump_") or "_dump_" in n}
    assert dumps <= set(flag_fields())


@pytest.mark.oracle
@pytest.mark.slow
def test_defaults_are_those_of_jaxlib(tmp_path: object) -> None:
    program = "import jax; jax.jit(lambda x: x)(1.0)"
    environ = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={tmp_path}", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], env=environ, check=True, timeout=120)
    (path, *_) = sorted(f"{d}/{f}" for d, _, fs in os.walk(str(tmp_path)) for f in fs
                        if f == "compile_options.textproto")  # fmt: skip
    with open(path) as file:
        text = file.read()
    inner = text[text.index("  debug_options {\n") + 18 :].split("\n  }\n", 1)[0]
    message = text_format.Parse(inner, Message(), allow_unknown_field=True)
    changed = {"xla_dump_to", "xla_cpu_enable_fast_min_max", "xla_detailed_logging"}
    for member, value in message.ListFields():
        row = xla_rows()[member.name]
        if member.name in changed or row.type not in ("bool", "int32", "int64", "string"):
            continue
        assert value == row.default, member.name


# ---------------------------------------------------------------- syntax


@pytest.mark.parametrize(
    ("text", "flags", "stop"),
    [
        ("--a=b", [("a", "b")], ""),
        ("  --a='x y' --b", [("a", "x y"), ("b", None)], ""),
        (r'--a="x\"y\\z"', [("a", r'x"y\z')], ""),
        (r"--a='x\y'", [("a", r"x\y")], ""),
        ("--a\n\t--b=x\r\n", [("a", None), ("b", "x")], ""),
        ("--a=x garbage --b=y", [("a", "x")], "garbage"),
        ("--a=x # --b=y", [("a", "x")], "#"),
        ("--a= --b", [("a", ""), ("b", None)], ""),
        ("--a='open --b", [("a", "open --b")], ""),
        ("--a='q'--b=c", [("a", "q"), ("b", "c")], ""),
        ("--a=x'y z", [("a", "x'y")], "z"),
        ("--a b", [("a", None)], "b"),
        ("--", [("", None)], ""),
        ("", [], ""),
    ],
)
def test_tokens(text: str, flags: list[tuple[str, str | None]], stop: str) -> None:
    found = tokenize(text)
    assert [(t.name, t.value) for t in found.flags] == flags
    assert found.stopped_at == stop


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("--xla_dump_hlo_as_dot", True),
        ("--xla_dump_hlo_as_dot=TRUE", True),
        ("--xla_dump_hlo_as_dot=1", True),
        ("--xla_dump_hlo_as_dot=False", False),
        ("--xla_dump_hlo_as_dot=0", False),
    ],
)
def test_booleans(text: str, value: bool) -> None:
    assert resolve(environ=variable(text)).options.xla_dump_hlo_as_dot is value


@pytest.mark.parametrize("text", ["t", "yes", "on", "2", ""])
def test_what_is_no_boolean(text: str) -> None:
    with pytest.raises(HloError, match=f"value {text} for flag xla_dump_hlo_as_dot in XLA_FLAGS"):
        resolve(environ=variable(f"--xla_dump_hlo_as_dot={text}"))


@pytest.mark.parametrize("text", ["0x10", "1 ", "1.0", "2147483648", "--", ""])
def test_what_is_no_int32(text: str) -> None:
    with pytest.raises(HloError, match="HLO0520"):
        resolve(environ=variable(f"--xla_dump_max_hlo_modules='{text}'"))


def test_numbers_and_lists() -> None:
    flags = resolve(
        environ=variable(
            "--xla_dump_max_hlo_modules=007 --xla_disable_hlo_passes=cse,dce"
            " --xla_disable_hlo_passes=algsimp --xla_gpu_auto_spmd_partitioning_memory_budget_ratio=2e0"
        )
    )
    assert flags.options.xla_dump_max_hlo_modules == 7
    assert flags.options.xla_disable_hlo_passes == ("cse", "dce", "algsimp")
    assert flags.given["xla_gpu_auto_spmd_partitioning_memory_budget_ratio"] == 2.0


def test_last_one_wins() -> None:
    flags = resolve(environ=variable("--xla_dump_to=x --xla_dump_to=y"))
    assert flags.options.xla_dump_to == "y"


def test_the_variable_may_name_a_file(tmp_path: object) -> None:
    path = f"{tmp_path}/flags"
    with open(path, "w") as file:
        file.write("--xla_dump_to=d\n--xla_dump_hlo_as_dot\n# comment\n--xla_dump_hlo_as_html\n")
    flags = resolve(environ=variable(path))
    assert flags.options == DebugOptions(xla_dump_to="d", xla_dump_hlo_as_dot=True)
    assert [p.code for p in flags.problems] == ["HLO0522"]
    assert "--xla_dump_hlo_as_html is lost" in flags.problems[0].message
    # The whole value is the name: nothing is trimmed.
    with pytest.raises(HloError, match=f'Could not open file "{path} "') as caught:
        resolve(environ=variable(path + " "))
    assert "because it did not start with a" in str(caught.value)


# ---------------------------------------------------------------- unknown and idle flags


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--xla_nosuch=1", "Unknown flag in XLA_FLAGS: --xla_nosuch=1"),
        ("--xla_nosuch=1 --xla_other", "Unknown flags in XLA_FLAGS: --xla_nosuch=1 --xla_other"),
        ("-xla_dump_to=d", "Unknown flag in XLA_FLAGS: -xla_dump_to=d"),
        ("--xla-dump-to=d", "Unknown flag in XLA_FLAGS: --xla-dump-to=d"),
        ("--XLA_DUMP_TO=d", "Unknown flag in XLA_FLAGS: --XLA_DUMP_TO=d"),
        ("--noxla_dump_hlo_as_dot", "Unknown flag in XLA_FLAGS: --noxla_dump_hlo_as_dot"),
        ("--xla_enable_dumping=false", "Unknown flag in XLA_FLAGS: --xla_enable_dumping=false"),
    ],
)
def test_unknown_flags_in_xlas_words(text: str, message: str) -> None:
    flags = resolve(environ=variable(text))
    assert flags.options == DebugOptions()
    assert [(p.code, p.message) for p in flags.problems] == [("HLO0510", message)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("--xla_dump_too=d", "did you mean '--xla_dump_to'?"),
        ("--xla-dump-to=d", "did you mean '--xla_dump_to'?"),
        ("--xla_generate_hlo_graph=.*", "today: --xla_dump_hlo_as_dot"),
        ("--xla_enable_dumping", "an option of compile()"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    (problem,) = resolve(environ=variable(text)).problems
    assert problem.help is not None
    assert hint in problem.help


def test_flags_of_other_backends_are_known_and_told_once() -> None:
    text = "--xla_gpu_autotune_level=2 --xla_cpu_enable_fast_math --xla_tpu_x=1 --xla_dump_to=d"
    (problem,) = resolve(environ=variable(text)).problems
    expected = "--xla_gpu_autotune_level, --xla_cpu_enable_fast_math, --xla_tpu_x"
    assert problem.message == f"without effect here: {expected}"


def test_old_names_of_the_same() -> None:
    flags = resolve(environ=variable("--xla_gpu_dump_hlo_unoptimized_snapshots"))
    assert flags.options.xla_dump_hlo_unoptimized_snapshots


# ---------------------------------------------------------------- sources


def test_order_of_sources() -> None:
    flags = resolve(
        [("xla_dump_hlo_pass_re", "line")],
        environ={
            "XLA_FLAGS": "--xla_dump_to=v --xla_dump_hlo_pass_re=v --xla_mosaic_dump_to=v",
            "LIBTPU_INIT_ARGS": "--xla_mosaic_dump_to=tpu",
        },
    )
    options = flags.options
    assert (options.xla_dump_to, options.xla_dump_hlo_pass_re) == ("v", "line")
    assert options.xla_mosaic_dump_to == "tpu"
    under = flags.with_compile_options({"xla_dump_to": "dict", "xla_enable_dumping": False})
    assert under.options.xla_dump_to == "dict"
    assert not under.options.xla_enable_dumping
    assert under.options.xla_mosaic_dump_to == "tpu"
    assert flags.options.xla_dump_to == "v"


def test_mosaic_flags_are_taken_from_xla_flags_too() -> None:
    flags = resolve(environ=variable("--xla_mosaic_dump_to=k"))
    assert flags.options.xla_mosaic_dump_to == "k"
    assert not flags.problems


def test_dump_flags_do_not_belong_into_libtpus_variable() -> None:
    flags = resolve(environ={"LIBTPU_INIT_ARGS": "--xla_dump_to=d"})
    assert not flags.options.xla_dump_to
    assert flags.problems[0].message == (
        "Unknown command line flag 'xla_dump_to'. Did you mean: xla_jf_dump_to ?"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("xla_nosuch", True, "No such compile option: 'xla_nosuch'"),
        (
            "xla_dump_hlo_as_dot",
            "maybe",
            "While setting option xla_dump_hlo_as_dot, 'maybe' is not a valid bool value.",
        ),
        ("xla_dump_hlo_as_dot", 1, "'1' is not a valid bool value."),
        ("xla_dump_hlo_as_dot", "true", "'true' is not a valid bool value."),
        ("xla_dump_max_hlo_modules", "x", "'x' is not a valid int32 value."),
        ("xla_dump_max_hlo_modules", True, "'True' is not a valid int32 value."),
        ("xla_dump_to", 3, "'3' is not a valid string value."),
    ],
)
def test_compile_options_that_do_not_fit(name: str, value: object, message: str) -> None:
    with pytest.raises(HloError) as caught:
        resolve(environ={}).with_compile_options({name: value})
    assert caught.value.code == "HLO0524"
    assert message in str(caught.value)


def test_compile_options() -> None:
    flags = resolve(environ={}).with_compile_options(
        {
            "xla_dump_hlo_as_dot": "True",
            "xla_dump_max_hlo_modules": "3",
            "xla_disable_hlo_passes": "a,b",
            "xla_gpu_autotune_level": 2,
        }
    )
    assert flags.options.xla_dump_hlo_as_dot
    assert flags.options.xla_dump_max_hlo_modules == 3
    assert flags.options.xla_disable_hlo_passes == ("a", "b")
    assert [p.code for p in flags.problems] == ["HLO0523"]


def test_what_differs_from_the_defaults_in_xlas_order() -> None:
    flags = resolve(
        [
            ("xla_dump_hlo_as_text", None),
            ("xla_dump_to", "d"),
            ("xla_dump_hlo_as_dot", "false"),
            ("xla_disable_hlo_passes", "b,a"),
            ("xla_cpu_enable_fast_min_max", "false"),
            ("xla_backend_extra_options", "k=v"),
        ],
        environ={},
    )
    assert flags.non_defaults() == (
        'xla_cpu_enable_fast_min_max: false\nxla_disable_hlo_passes: "a"\n'
        'xla_disable_hlo_passes: "b"\nxla_dump_to: "d"\nxla_dump_hlo_as_text: true\n'
        'xla_backend_extra_options: {\n  key: "k"\n  value: "v"\n}\n'
    )


# ---------------------------------------------------------------- once per process


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("LIBTPU_INIT_ARGS", raising=False)
    monkeypatch.setattr(process, "_read", [])
    monkeypatch.setattr(process, "_told", set())
    return monkeypatch


def test_the_environment_is_read_once(
    fresh_process: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh_process.setenv("XLA_FLAGS", "--xla_dump_to=first")
    assert process_flags().options.xla_dump_to == "first"
    fresh_process.setenv("XLA_FLAGS", "--xla_dump_to=second")
    assert process_flags().options.xla_dump_to == "first"
    assert process_flags().options.xla_dump_to == "first"
    assert caplog.text.count("XLA_FLAGS has changed since it was read") == 1


def test_xla_flags_reset_reads_it_every_time(fresh_process: pytest.MonkeyPatch) -> None:
    fresh_process.setenv("XLA_FLAGS", "--xla_dump_to=first --xla_flags_reset")
    assert process_flags().options.xla_dump_to == "first"
    fresh_process.setenv("XLA_FLAGS", "--xla_dump_to=second --xla_flags_reset")
    assert process_flags().options.xla_dump_to == "second"
