"""Functions of TensorFlow under auto-clustering, against TensorFlow; skipped where that is not installed."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

tf: Any = pytest.importorskip("tensorflow", reason="needs TensorFlow (pip install tensorflow-cpu)")

from mlirhlo.tensorflow import auto_cluster, compile_model  # noqa: E402

pytestmark = [pytest.mark.slow]


def printing(x: Any, y: Any) -> Any:
    """Clusters around a print and strings."""
    a = tf.sin(tf.nn.relu(x @ y) + 1.0) * 2.0
    tf.print("sum", tf.reduce_sum(a))
    b = tf.exp(a)
    return {
        "mean": tf.reduce_mean(b),
        "text": tf.strings.join([tf.strings.as_string(b > 1.0), "!"]),
    }


def sizes(x: Any, n: Any) -> Any:
    """Results whose sizes depend on values."""
    unique, at = tf.unique(tf.cast(tf.reshape(x, [-1]) * 3.0, tf.int32))
    t = tf.transpose(tf.tile(tf.reshape(x, [n, -1]), [2, n])) * 2.0 + 1.0
    t = tf.gather(t, at % tf.shape(t)[0])
    return unique, tf.reduce_sum(tf.boolean_mask(x, x > 0.5)), tf.where(x > 0.3), t[1:3]


def loops(x: Any) -> Any:
    """A loop that compiles, and one that prints."""

    def step(i: Any, x: Any) -> Any:
        tf.print(i)
        return i + 1, tf.sin(x) + 1.0

    x = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, tf.tanh(x @ x / 4.0)), (0, x))[1]
    return tf.exp(-tf.while_loop(lambda i, _: i < 3, step, (0, x))[1]) * 2.0 - 1.0


def same(ours: Any, theirs: Any) -> None:
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        assert a.dtype == b.dtype
        if a.dtype.is_floating:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6, atol=2e-6)
        else:
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def random(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(len(shape)).random(shape, np.float32))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (printing, (random(3, 4), random(4, 2))),
        (sizes, (random(4, 4), tf.constant(2))),
        (loops, (random(4, 4),)),
        (tf.function(printing), (random(2, 2), random(2, 2))),
    ],
    ids=["printing", "sizes", "loops", "traced"],
)
def test_results_are_those_of_tensorflow(function: Any, arguments: tuple[Any, ...]) -> None:
    clustered = auto_cluster(function, flags="--tf_xla_min_cluster_size=2")
    assert clustered.trace(*arguments).marking.clusters
    same(clustered(*arguments), tf.function(function)(*arguments))


def test_values_that_are_compiled_in_compile_again() -> None:
    clustered = auto_cluster(sizes)
    for n in (2, 4, 2):
        same(clustered(random(4, 4), tf.constant(n)), sizes(random(4, 4), tf.constant(n)))


def test_variables() -> None:
    weights, count = tf.Variable(tf.ones((4, 4))), tf.Variable(0, dtype=tf.int64)

    def update(x: Any) -> Any:
        weights.assign(tf.sin(weights @ x / 4.0 + 1.0))
        z = weights.read_value() * 3.0 + x
        weights.assign_add(z / 10.0)
        count.assign_add(1)
        w = weights @ x / 4.0 - tf.cast(count, tf.float32)
        tf.debugging.assert_greater(tf.reduce_sum(w * w), -1.0)
        return tf.nn.relu(w) + tf.sin(w)

    results: list[Any] = []
    for function in (auto_cluster(update), tf.function(update)):
        weights.assign(tf.ones((4, 4)))
        count.assign(0)
        results.append(
            [
                function(random(4, 4)),
                function(random(4, 4)),
                weights.read_value(),
                count.read_value(),
            ]
        )
    same(*results)


def test_new_shapes_compile_again_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mlirhlo.clustering")

    def function(x: Any) -> Any:
        return tf.exp(tf.sin(x @ x) * 2.0 + 1.0) - x

    clustered = auto_cluster(function, experimental_relax_shapes=True)
    for n in (2, 3, 4, 3):
        same(clustered(random(n, n)), function(random(n, n)))
    assert "compiled for (float32[4, 4]), program 2" in caplog.text
    assert caplog.text.count("compiled for") == 3, (
        "one for the first trace, two for the relaxed one"
    )


def test_what_refuses_is_left_to_tensorflow(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> bytes:
        raise ValueError("no")

    monkeypatch.setattr("mlirhlo.integrations.tensorflow.clustered.compiler_ir", refuse)
    clustered = auto_cluster(printing)
    same(clustered(random(2, 2), random(2, 2)), printing(random(2, 2), random(2, 2)))
    assert "left to TensorFlow" in caplog.text


def test_mnist() -> None:
    keras = pytest.importorskip("keras")
    layers = keras.layers
    generator = np.random.default_rng(0)
    x, y = generator.random((70, 28, 28), np.float32), np.arange(70) % 10
    settings = {
        "optimizer": "adam",
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "metrics": ["accuracy"],
    }
    results: list[Any] = []
    for is_ours in (True, False):
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [
                layers.Input((28, 28)),
                layers.Flatten(),
                layers.Dense(32, activation="relu"),
                layers.Dense(10),
            ]
        )
        if is_ours:
            compile_model(model, **settings, auto_jit=True)
        else:
            model.compile(**settings, jit_compile=False)
        history = model.fit(x, y, batch_size=32, epochs=2, shuffle=False, verbose=0).history
        results.append(
            [*history["loss"], *model.evaluate(x, y, verbose=0), model.predict(x, verbose=0).sum()]
        )
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)
