"""Programs that TensorFlow handed out, at every stage, run here to what TensorFlow computed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DATA

from mlirhlo.diagnostics import HloError

PROGRAMS = sorted(path for path in (DATA / "tensorflow").iterdir() if path.is_dir())
FILES = [
    "hlo.txt",
    "hlo.pb",
    "optimized_hlo.txt",
    "optimized_hlo.pb",
    "optimized_hlo_proto.pb",
    "stablehlo.mlir",
    "stablehlo.mlirbc",
]

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed"
)


def read(folder: Path, file: str) -> str | bytes:
    data = (folder / file).read_bytes()
    return data.decode() if file.endswith((".txt", ".mlir")) else data


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("folder", PROGRAMS, ids=lambda p: p.name)
def test_program(folder: Path, file: str) -> None:
    from mlirhlo.tensorflow import load

    values = np.load(folder / "values.npz")
    module = load(read(folder, file))
    if file == "optimized_hlo_proto.pb":
        # TensorFlow leaves out the values of all constants at this stage, and each has some.
        with pytest.raises(HloError, match="HLO0301"):
            module(*parameters(values))
        return
    result = module(*parameters(values))
    results = result if isinstance(result, tuple) else (result,)
    expected = [values[f"result{i}"] for i in range(len(results))]
    assert f"result{len(results)}" not in values
    for mine, theirs in zip(results, expected, strict=True):
        assert mine.shape == theirs.shape
        # numpy's file format has no bfloat16.
        np.testing.assert_allclose(np.asarray(mine, np.float64), theirs, 2e-5, 1e-5)


def parameters(values: Any) -> list[Any]:
    return [values[f"parameter{i}"] for i in range(sum(n.startswith("par") for n in values))]


def test_without_tensorflow() -> None:
    script = (
        "import sys; sys.modules['tensorflow'] = None; import mlirhlo.tensorflow as t;"
        "print(t.load('f32[] add(f32[] a, f32[] b)')(1, 2)); t.jit(abs)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "3.0\n"
    assert "error[HLO0600]: mlirhlo.tensorflow needs tensorflow, which is not" in done.stderr
    assert "help: pip install 'mlirhlo[tensorflow]'" in done.stderr


def test_parameters_are_found_among_the_inputs() -> None:
    from mlirhlo.dialects.hlo.shapes import parse_shape
    from mlirhlo.integrations.tensorflow.matching import parameters_for

    shapes = [parse_shape("f32[4]{0}"), parse_shape("f32[]")]
    vector, scalar, sizes = ("float32", (4,)), ("float32", ()), ("int32", (2,))
    assert parameters_for(shapes, [vector, sizes, scalar]) == (0, 2)
    assert parameters_for(shapes, [("float32", (None,)), ("float32", None)]) == (0, 1)
    with pytest.raises(HloError, match="their types do not say which"):
        parameters_for(shapes, [vector, vector, scalar])
    with pytest.raises(HloError, match="are not among the function's inputs"):
        parameters_for(shapes, [vector, sizes])


@needs_tensorflow
@pytest.mark.slow
def test_live() -> None:
    import tensorflow as tf  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import STAGES, jit

    state = tf.Variable([1.0, 2.0])
    weights = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    @tf.function(jit_compile=True)
    def f(x: Any, shape: Any, k: int = 3) -> Any:
        state.assign_add(x)
        y = tf.reshape(tf.linalg.matvec(weights, x) * k, shape)
        return {"y": y, "z": [state * 2.0, tf.reduce_sum(x)], "n": 3, "none": None}

    x, shape = tf.constant([1.0, -1.0]), tf.constant([2, 1])
    before = state.numpy()
    ours = jit(f)(x, shape)
    after = state.numpy()
    np.testing.assert_array_equal(after, before + x)
    state.assign(before)
    theirs = f(x, shape)
    tf.nest.map_structure(
        lambda a, b: None if a is None else np.testing.assert_allclose(a, b, 1e-6), ours, theirs
    )
    # The shape is compiled in, so another one is another program.
    assert jit(f)(x, tf.constant([1, 2]))["y"].shape == (1, 2)
    program = jit(f).lower(x, shape, k=2)
    for stage in STAGES:
        # Without values of constants; with mhlo.copy.
        if stage == "optimized_hlo_proto_serialized" or "stablehlo" in stage:
            assert program.ir(stage)
            continue
        module = program.compiler_ir(stage)
        state.assign(before)
        parts = module(*program.arguments(x, shape, k=2))
        np.testing.assert_allclose(np.ravel(parts[1]), np.ravel(f(x, shape, k=2)["y"]), 1e-6)
    with pytest.raises(HloError, match="did you mean 'stablehlo'"):
        program.as_text("stablehl")
    with pytest.raises(HloError, match="AsString") as caught:
        jit(tf.strings.as_string)(x)
    assert caught.value.code == "HLO0607"
    with pytest.raises(HloError, match="mark it by"):
        jit(tf.function(lambda x: x))(x)
