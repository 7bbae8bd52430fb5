"""What holds for the front ends alike: platforms, options, dumps, sizes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DATA

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.debug.dump import sink
from mlirhlo.debug.options import process
from mlirhlo.diagnostics import HloError
from mlirhlo.integrations.ir import executor_of

X = np.linspace(0, 2, 12, dtype=np.float32).reshape(3, 4)

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed"
)


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(process, "_read", [])
    monkeypatch.setattr(sink, "_told", set())


def of_ours(**options: Any) -> Callable[[], Any]:
    return lambda: mlirhlo.jit(lambda x: hnp.sum(hnp.exp(x) * 2), **renamed(options))(X)


def of_jax(**options: Any) -> Callable[[], Any]:
    import jax.numpy as jnp

    from mlirhlo.jax import jit

    return lambda: jit(lambda x: jnp.sum(jnp.exp(x) * 2), **renamed(options))(X)


def of_torch(**options: Any) -> Callable[[], Any]:
    from mlirhlo.torch import load

    return lambda: load(DATA / "torch" / "linear_relu", **options)(X[:2, :3])


def of_tensorflow(**options: Any) -> Callable[[], Any]:
    import tensorflow as tf  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import jit

    return lambda: jit(lambda x: tf.reduce_sum(tf.exp(x) * 2), **options)(tf.constant(X))


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    return {{"options": "compiler_options"}.get(name, name): v for name, v in options.items()}


FRONT_ENDS = [
    of_ours,
    pytest.param(of_jax, marks=pytest.mark.oracle),
    of_torch,
    pytest.param(of_tensorflow, marks=needs_tensorflow),
]
every_front_end = pytest.mark.parametrize("front_end", FRONT_ENDS)


def leaves(value: Any) -> list[np.ndarray]:
    parts = value if isinstance(value, (tuple, list)) else [value]
    return [np.asarray(part) for part in parts]


@pytest.mark.slow  # imports JAX
@every_front_end
def test_platforms_agree(front_end: Any) -> None:
    wants = leaves(front_end(platform="Interpreter")())
    for platform in ("cpu", "CPU", None):
        for got, want in zip(leaves(front_end(platform=platform)()), wants, strict=True):
            np.testing.assert_allclose(got, want, 1e-5)
    with pytest.raises(HloError, match="unknown platform 'nosuch'") as caught:
        front_end(platform="nosuch")()
    assert caught.value.code in ("HLO0601", "HLO0623")


@pytest.mark.oracle
@every_front_end
def test_the_real_xla_by_name(front_end: Any) -> None:
    wants = leaves(front_end(platform="cpu")())
    for got, want in zip(leaves(front_end(platform="xla")()), wants, strict=True):
        np.testing.assert_allclose(got, want, 1e-5)


@every_front_end
@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_flags_and_options_dump(
    front_end: Any, platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path / 'flags'}")
    front_end(platform=platform)()
    after = "*cpu_after_opt*.txt" if platform == "cpu" else "*interpreter_after_opt*.txt"
    for kind in ("*before_optimizations.txt", after, "*/module.mlir"):
        assert list((tmp_path / "flags").glob(kind)), kind
    front_end(platform=platform, options={"xla_dump_to": str(tmp_path / "options")})()
    assert list((tmp_path / "options").glob("*before_optimizations.txt"))
    with pytest.raises(HloError) as caught:
        front_end(platform=platform, options={"xla_no_such_flag": True})()
    assert caught.value.code in ("HLO0524", "HLO0602")


@every_front_end
def test_variables_of_jax(
    front_end: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv("JAX_DUMP_HLO_OPTIMIZED", str(tmp_path))
    monkeypatch.setenv("JAX_HLO_PROFILE", "1")
    front_end()()
    assert list((tmp_path / "hlo_optimized").glob("*.hlo.pb"))
    assert "Execution profile for" in caplog.text
    monkeypatch.setenv("JAX_PLATFORM_NAME", "nosuch")
    with pytest.raises(HloError, match="unknown platform 'nosuch'"):
        front_end()()


@pytest.mark.oracle
@every_front_end
def test_what_the_real_xla_does_not_obey_is_told_once(
    front_end: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    for kind in ("UNOPTIMIZED", "OPTIMIZED", "PER_PASS"):
        monkeypatch.setenv(f"JAX_DUMP_HLO_{kind}", str(tmp_path))
    monkeypatch.setenv("JAX_HLO_PROFILE", "1")
    run = front_end(platform="XLA")
    run()
    run()
    assert {path.name for path in tmp_path.iterdir()} == {"hlo_unoptimized", "hlo_optimized"}
    for name in ("JAX_DUMP_HLO_PER_PASS", "JAX_HLO_PROFILE"):
        assert caplog.text.count(f"{name} has no effect") == 1


DYNAMIC = {
    "one": "ROOT d = s32[<=4] set-dimension-size(x, n), dimensions={0}",
    "in a tuple": "d = s32[<=4] set-dimension-size(x, n), dimensions={0}\n"
    "  ROOT t = (s32[<=4], (s32[4])) tuple(d, u)",
    "computed with": "d = s32[<=4] set-dimension-size(x, n), dimensions={0}\n"
    "  ROOT a = s32[<=4] add(d, d)",
}


@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", DYNAMIC)
def test_arrays_of_dynamic_size_have_their_real_size(name: str, platform: str) -> None:
    module = mlirhlo.parse(
        "HloModule m\n\nENTRY e {\n  x = s32[4] parameter(0)\n  n = s32[] parameter(1)\n"
        f"  u = (s32[4]) tuple(x)\n  {DYNAMIC[name]}\n}}\n"
    )
    run = executor_of(module, platform)
    x = np.arange(1, 5, dtype=np.int32)
    for size in (4, 2, 0):
        found = run([x, np.int32(size)])
        array = found[0] if name == "in a tuple" else found
        want = 2 * x[:size] if name == "computed with" else x[:size]
        assert type(array) is np.ndarray
        np.testing.assert_array_equal(array, want, strict=True)


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_tensorflows_functions_of_dynamic_size(platform: str) -> None:
    import tensorflow as tf  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import jit

    x = tf.constant([3, 1, 3, 7, 1])
    for function in (
        tf.unique,
        lambda x: tf.where(x > 2),
        lambda x: {"mask": tf.boolean_mask(x, x > 2), "all": x},
    ):
        theirs = tf.function(function)(x)
        tf.nest.map_structure(
            lambda a, b: np.testing.assert_array_equal(a, b.numpy(), strict=True),
            jit(function, platform=platform)(x),
            theirs,
        )


@needs_tensorflow
@pytest.mark.slow
def test_tensorflow_catches_what_cannot_be_compiled() -> None:
    import tensorflow as tf  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import jit

    for call in (jit(tf.strings.as_string), jit(tf.strings.as_string).lower(X).ir):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            call(X) if isinstance(call, type(jit(abs))) else call()
        assert isinstance(caught.value, HloError)
        assert caught.value.code == "HLO0607"
        assert "AsString" in caught.value.message
        assert str(caught.value).startswith("error[HLO0607]")
    with pytest.raises(HloError, match="takes no options"):
        jit(abs, platform="XLA", options={"xla_dump_to": "d"})


@needs_tensorflow
@pytest.mark.slow
def test_a_signature_of_open_sizes() -> None:
    import tensorflow as tf  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import jit

    spec = tf.TensorSpec([None], tf.float32)
    jitted = jit(tf.function(lambda x: x * 2, jit_compile=True, input_signature=[spec]))
    for count in (3, 4, 3):
        np.testing.assert_array_equal(jitted(tf.ones(count)), np.full(count, 2, np.float32))


@needs_tensorflow
@pytest.mark.slow
def test_keras_models_train_as_with_tensorflows_compiler() -> None:
    import keras  # pyright: ignore[reportMissingImports]

    from mlirhlo.tensorflow import compile_model

    generator = np.random.default_rng(0)
    x, y = generator.random((20, 4), np.float32), generator.random((20, 3), np.float32)

    def model() -> Any:
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])

    def trained(one: Any) -> tuple[Any, ...]:
        history = one.fit(x, y, batch_size=8, epochs=2, verbose=0, shuffle=False).history
        return history["loss"], one.evaluate(x, y, verbose=0), one.predict(x, verbose=0)

    theirs = model()
    theirs.compile(optimizer="adam", loss="mse", jit_compile=True)
    ours = compile_model(model(), optimizer="adam", loss="mse")
    assert ours.train_step.settings.platform == "cpu"
    for mine, other in zip(trained(ours), trained(theirs), strict=True):
        np.testing.assert_allclose(mine, other, 1e-5)
