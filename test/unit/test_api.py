"""The public face: load, parse, call, transform, save."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import DATA

import mlirhlo
from mlirhlo.diagnostics import HloError, explain

ADD = "f32[2] add(f32[2] x, f32[2] y)"
SNAPSHOT = DATA / "dumps" / "cpu" / "module_0000.jit_mlp.snapshot.1448476478.pb"
UNUSED = """HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  unused = f32[2] exponential(x)
  ROOT y = (f32[2], f32[2]) tuple(x, x)
}
"""


def test_a_module_is_a_function() -> None:
    result = mlirhlo.parse(ADD)([1, 2], np.array([10, 20], np.float32))
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float32
    assert result.tolist() == [11, 22]


def test_tuples_and_scalars() -> None:
    first, second = mlirhlo.parse(UNUSED)([1, 2])
    assert first.tolist() == second.tolist() == [1, 2]
    assert mlirhlo.parse("f32[] negate(f32[] x)")(2.0) == -2


def test_narrow_types() -> None:
    x = np.array([1.5], ml_dtypes.bfloat16)
    assert mlirhlo.parse("bf16[1] negate(bf16[1] x)")(x).dtype == ml_dtypes.bfloat16


class Exporter:
    """An array of another library: all it has is DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack_in_and_out() -> None:
    x = Exporter(np.array([1, 2], np.float32))
    result = mlirhlo.parse(ADD)(x, x)
    assert np.from_dlpack(result).tolist() == [2, 4]


def test_snapshots_bring_their_arguments() -> None:
    module = mlirhlo.load(SNAPSHOT)
    np.testing.assert_allclose(module(), module.expected, rtol=1e-3, atol=1e-3)
    assert len(module.arguments) == 1
    assert len(module.arguments[0]) == len(list(module.hlo.entry.parameters))


def test_every_source(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(UNUSED)
    with path.open("rb") as file:
        sources = (path, str(path), path.read_bytes(), file)
        assert {mlirhlo.load(source).name for source in sources} == {"m"}


def test_text_of_every_kind_is_parsed() -> None:
    module = mlirhlo.parse(UNUSED)
    for kind in ("hlo", "mlir", "mlir-generic", "pbtxt", "json"):
        assert str(mlirhlo.parse(module.as_text(kind))) == str(module)


@pytest.mark.parametrize("name", ["a.hlo", "a.mlir", "a.pb", "a.pbtxt", "a.json", "a.hlo.gz"])
def test_saving_and_loading(name: str, tmp_path: Path) -> None:
    module = mlirhlo.parse(UNUSED)
    module.save(tmp_path / name)
    assert str(mlirhlo.load(tmp_path / name)) == str(module)


def test_passes() -> None:
    module = mlirhlo.parse(UNUSED)
    assert mlirhlo.opt(module, "dce") is module
    assert "exponential" not in str(module)
    assert "exponential" not in str(mlirhlo.opt(mlirhlo.parse(UNUSED).op, "dce"))
    with pytest.raises(HloError, match="did you mean 'dce'"):
        module.opt("dec")


def test_run() -> None:
    assert mlirhlo.run(ADD.encode(), [1, 1], [2, 2]).tolist() == [3, 3]
    assert mlirhlo.run(mlirhlo.parse(ADD), [1, 1], [2, 2]).tolist() == [3, 3]


def test_hook() -> None:
    seen = list[str]()
    mlirhlo.parse(UNUSED).run([1, 2], hook=lambda op, inputs, value: seen.append(op.opcode.name))
    assert seen[-1] == "tuple"


def test_verify() -> None:
    mlirhlo.parse(UNUSED).verify()
    wrong = mlirhlo.parse("f32[3] add(f32[2] x, f32[2] y)")
    assert wrong.problems()
    with pytest.raises(HloError, match="HLO01"):
        wrong.verify()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2],), "takes 2 parameters, 1 given"),
        (([1, 2], [1, 2, 3]), r"f32\[2\]"),
        ((["a", "b"], [1, 2]), "HLO0303"),
    ],
)
def test_wrong_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(HloError, match=message):
        mlirhlo.parse(ADD)(*arguments)


def test_unknown_file_and_format() -> None:
    with pytest.raises(HloError, match="HLO0503"):
        mlirhlo.load("nosuch.hlo")
    with pytest.raises(HloError, match="HLO0502"):
        mlirhlo.load(ADD.encode(), "nosuch")
    with pytest.raises(HloError, match="HLO0502"):
        mlirhlo.parse(ADD).as_text("nosuch")


def test_repr() -> None:
    assert repr(mlirhlo.parse(UNUSED)) == "<mlirhlo.Module 'm': 3 instructions>"


def test_devices() -> None:
    text = """HloModule m, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[] parameter(0)
  ROOT s = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
"""
    module = mlirhlo.parse(text)
    assert [float(r) for r in module.on_devices([1.0], [2.0])] == [3, 3]
    assert [float(r) for r in module.on_devices([4.0])] == [8, 8]
    with pytest.raises(HloError, match="HLO0353"):
        module.on_devices([1.0], [2.0], [3.0])


UNPARTITIONED = """HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=3]>}}

ENTRY e {
  p = f32[6] parameter(0)
  l = f32[2] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
  i = u32[] partition-id()
  f = f32[] convert(i)
  b = f32[2] broadcast(f), dimensions={}
  n = f32[2] add(l, b)
  ROOT g = f32[6] custom-call(n), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
}
"""  # noqa: E501
"""A `shard_map` from before partitioning: the header says nothing of its three partitions."""


def test_devices_of_manual_computations() -> None:
    module = mlirhlo.parse(UNPARTITIONED)
    results = module.on_devices([[0.0] * 6])
    assert [r.tolist() for r in results] == [[0, 0, 1, 1, 2, 2]] * 3
    assert module([10.0] * 6).tolist() == [10, 10, 11, 11, 12, 12]


def test_custom_calls_get_a_meaning_from_python() -> None:
    mlirhlo.register_custom_call("test.twice", lambda op, inputs, frame: inputs[0] * 2)
    call = 'custom-call(x), custom_call_target="test.twice"'
    module = mlirhlo.parse(f"ENTRY e {{ x = f32[2] parameter(0)  ROOT y = f32[2] {call} }}")
    assert module([1, 2]).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: mlirhlo.load(None),
            "load: expects a path, bytes or an open binary file, got None",
        ),
        (lambda: mlirhlo.load(io.StringIO(ADD)), "open the file with mode 'rb'"),
        (lambda: mlirhlo.run(3), "load: expects a path, bytes or an open binary file, got int"),
        (lambda: mlirhlo.compile([ADD]), "load: expects .* got list"),
        (lambda: mlirhlo.parse(ADD.encode()), "mlirhlo.load reads bytes and files"),
        (lambda: mlirhlo.opt("m.hlo", "cse"), "expects a builtin.module, got str"),
        (
            lambda: mlirhlo.parse(ADD).opt(["cse", "dce"]),
            'passes: expects a string, got list\nhelp: write "cse',
        ),
        (lambda: mlirhlo.parse(ADD).save(None), "save: expects a path, got None"),
        (
            lambda: mlirhlo.parse(ADD).run([1, 2], [3, 4], hook=1),
            "hook: expects a function, got int",
        ),
        (
            lambda: mlirhlo.parse(ADD).on_devices(np.zeros(2), np.zeros(2)),
            "lists of arguments, one for each",
        ),
        (
            lambda: mlirhlo.parse(ADD).on_devices([[1, 2], [3, 4]], replicas=-1),
            "numbers of devices",
        ),
        (
            lambda: mlirhlo.compile(mlirhlo.parse(ADD), level=7),
            "level: expects a number from 0 to 3",
        ),
        (
            lambda: mlirhlo.compile(mlirhlo.parse(ADD), options="xla_dump_to=d"),
            "a dict of XLA's flags",
        ),
        (lambda: mlirhlo.register_custom_call(len, "f"), "target: expects the name"),
        (lambda: mlirhlo.register_custom_call("f", "g"), "function: expects a function of"),
        (lambda: explain(102), "explain: expects a code such as 'HLO0102', got int"),
    ],
)
def test_arguments_of_wrong_types(call: Callable[[], object], said: str) -> None:
    with pytest.raises(HloError, match=said) as caught:
        call()
    assert caught.value.code == "HLO0508"
    assert isinstance(caught.value, TypeError)


def test_wrong_names_in_place_of_formats_and_platforms() -> None:
    module = mlirhlo.parse(ADD)
    for wrong in (None, 3, {}):
        with pytest.raises(HloError, match="unknown format"):
            module.as_text(wrong)
    with pytest.raises(HloError, match="nothing compiles for platform None"):
        mlirhlo.compile(module, None)
    with pytest.raises(HloError, match="parse reads a text"):
        mlirhlo.load("HloModule m\n\nENTRY e {}")


def test_bytes_of_any_kind_are_read() -> None:
    for source in (bytearray(ADD.encode()), memoryview(ADD.encode()), io.BytesIO(ADD.encode())):
        assert mlirhlo.load(source)([1, 2], [3, 4]).tolist() == [4, 6]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        np.array([1, None], object),
        np.array(["a", "b"]),
        np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
        np.zeros(2, [("field", "f4")]),
    ],
    ids=lambda wrong: str(getattr(wrong, "dtype", wrong)),
)
@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_no_number_is_no_argument(wrong: object, compiled: bool) -> None:
    module = mlirhlo.parse("f32[] negate(f32[] x)" if wrong is None else ADD)
    function = mlirhlo.compile(module) if compiled else module
    with pytest.raises(HloError, match="parameter 0") as caught:
        function(*[wrong] * (1 if wrong is None else 2))
    assert caught.value.code == "HLO0303"


SHARED = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  b = f32[2,2] reshape(x)
  ROOT t = (f32[4], f32[4], f32[2,2], f32[4]) tuple(x, x, b, c)
}
"""


@pytest.mark.parametrize("on_devices", [False, True])
def test_results_are_the_callers_own(on_devices: bool) -> None:
    module, x = mlirhlo.parse(SHARED), np.zeros(4, np.float32)
    results = module.on_devices([x], replicas=2) if on_devices else [module(x)]
    arrays = [array for result in results for array in result]
    for value, array in enumerate(arrays, 5):
        array[...] = value
    assert [set(array.ravel().tolist()) for array in arrays] == [
        {v} for v in range(5, 5 + len(arrays))
    ]
    assert not x.any(), "inputs stay"
    assert module(x)[3].tolist() == [1, 2, 3, 4], "constants too"


def test_modules_are_copied_and_pickled_and_machine_code_is_not() -> None:
    module = mlirhlo.parse(UNUSED)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert other.opt("dce").as_text() != module.as_text()
        assert mlirhlo.compile(other)([1, 2])[0].tolist() == [1, 2]
    executable = mlirhlo.compile(module)
    assert repr(executable) == "<mlirhlo.Executable: (f32[2]) -> (f32[2], f32[2])>"
    assert copy.copy(executable) is copy.deepcopy(executable) is executable
    with pytest.raises(HloError, match="pickle the module") as caught:
        pickle.dumps(executable)
    assert caught.value.code == "HLO0508"


def test_a_name_of_a_file_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(ADD)
    with pytest.raises(HloError, match="this is the name of a file") as caught:
        mlirhlo.parse(str(tmp_path / "m.hlo"))
    assert caught.value.code == "HLO0200"


def test_what_the_verifier_says_of_a_module_that_cannot_be_compiled() -> None:
    text = "ENTRY e { p = f32[4,2] parameter(0) ROOT t = f32[2,4] transpose(p), dimensions={1,5} }"
    with pytest.raises(HloError, match="transpose_c2"):
        mlirhlo.compile(mlirhlo.parse(text), cached=False)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("dims = [1, 0]", "dims = [1, 7]", "transpose_c2"),
        ("{}", '{mhlo.layout_mode = "{0,!}"}', "is no layout"),
    ],
)
def test_what_is_said_of_stablehlo_that_breaks_constraints(
    before: str, after: str, said: str
) -> None:
    text = """func.func @main(%a: tensor<4x2xf32> {}) -> tensor<2x4xf32> {
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  return %t : tensor<2x4xf32>
}"""
    assert mlirhlo.parse(text).problems() == []
    with pytest.raises(HloError, match=said):
        mlirhlo.parse(text.replace(before, after))
