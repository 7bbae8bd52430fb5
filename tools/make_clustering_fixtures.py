#!/usr/bin/env python3
"""Writes test/data/tensorflow_clustering; needs TensorFlow, which nothing else does.

    python3 -m venv tf && tf/bin/pip install tensorflow-cpu -e .
    tf/bin/python tools/make_clustering_fixtures.py

A program: the graph that TensorFlow's auto-clustering got (`NAME.pb`), the clusters that it made
of it under each text of TF_XLA_FLAGS (`NAME.json`), and the clusters that it compiled after nodes left them
(`NAME.final.json`). A program runs in a process of its own, for each
text of flags, since TensorFlow reads them once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "test" / "data" / "tensorflow_clustering"

ON = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
FLAGS = (
    ON,
    f"{ON} --tf_xla_min_cluster_size=1",
    f"{ON} --tf_xla_min_cluster_size=2 --tf_xla_ops_to_cluster=PW,RED",
    "--tf_xla_auto_jit=0",
)


def programs(tf: Any) -> dict[str, Callable[[], object]]:
    """Programs by name; each is traced and run once."""
    x = tf.random.uniform((4, 4))
    variable = tf.Variable(tf.ones((4, 4)))
    counter = tf.Variable(0, dtype=tf.int64)

    def loop(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            x = tf.sin(x @ x) * 2.0 + 1.0
            tf.print("iteration", i)
            return i + 1, tf.nn.relu(x) - 0.5

        x = tf.while_loop(lambda i, _: i < 5, body, (tf.constant(0), x))[1]
        return tf.exp(x) + tf.cos(x) * 3.0 - tf.tanh(x)

    def branches(x: Any, p: Any) -> Any:
        y = tf.nn.softmax(x @ x) * 2.0
        y = tf.cond(
            p, lambda: tf.sin(y) + tf.cos(y) * 2.0 - 1.0, lambda: tf.nn.relu(y) * 3.0 + tf.tanh(y)
        )
        return y * 2.0 + tf.reduce_sum(y) - tf.reduce_mean(y), tf.strings.as_string(y)

    def variables(x: Any) -> Any:
        y = variable @ x + 1.0
        variable.assign(tf.sin(y) * tf.cos(y) - 2.0)
        z = variable.read_value() * 3.0 + x
        variable.assign_add(z @ z)
        counter.assign_add(1)
        w = variable @ x - tf.cast(counter, tf.float32)
        tf.debugging.assert_greater(tf.reduce_sum(w * w), -1.0)
        return tf.nn.relu(w) + tf.sin(w) * tf.exp(-w)

    def sizes(x: Any, n: Any) -> Any:
        unique, _ = tf.unique(tf.cast(tf.reshape(x, [-1]) * 3.0, tf.int32))
        t = tf.transpose(tf.tile(tf.reshape(x, [n, -1]), [2, n])) * 2.0 + 1.0
        text = tf.strings.join([tf.strings.as_string(tf.reduce_sum(t)), "!"])
        masked = tf.boolean_mask(x, x > 0.5)
        return unique, tf.reduce_sum(masked) + tf.reduce_mean(t), text, tf.where(x > 0.3)

    def around(x: Any) -> Any:
        y = tf.sin(x @ x) * 2.0 + 1.0
        tf.print("sum", tf.reduce_sum(y))
        z = tf.exp(y)
        return tf.reduce_mean(z), tf.strings.as_string(z)

    def digits() -> None:
        import keras  # pyright: ignore[reportMissingImports]
        import numpy as np

        layers = keras.layers
        model = keras.Sequential(
            [layers.Input((8, 8)), layers.Flatten(), layers.Dense(16, activation="relu"),
             layers.Dropout(0.2), layers.Dense(10)]
        )  # fmt: skip
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer="adam", loss=loss, metrics=["accuracy"], jit_compile=False)
        model.fit(np.ones((32, 8, 8), np.float32), np.zeros(32), batch_size=32, verbose=0)

    def slices(x: Any, n: Any) -> Any:
        y = tf.sin(x) * 2.0 + 1.0
        a = tf.slice(y, tf.stack([n + 1, n * 2]), [2, -1])
        b = tf.slice(y, [n, 0], [1, 2])
        c = tf.slice(tf.reshape(y, [-1]), tf.cast([n], tf.int64), [-1])
        d = tf.slice(y, [n, 0], [n, 2])
        size = tf.cast(tf.shape(y)[0] * 2, tf.float32)
        t = tf.reshape(tf.tile(y, tf.stack([n + 1, tf.size(y) // 8])), [-1])
        points = tf.linspace(tf.reduce_sum(y), 3.0, n + 2)
        tf.print(tf.linspace(tf.reduce_sum(y), 4.0, 3))
        text = tf.strings.as_string(tf.shape(t)), tf.strings.as_string(tf.rank(c))
        shape = tf.broadcast_dynamic_shape(tf.shape(y), tf.stack([n, 4]))
        tf.print(shape)
        return (
            tf.exp(a) + tf.reduce_sum(b) * tf.reduce_mean(c) + size,
            d * 2.0,
            points,
            text,
            tf.zeros(shape),
        )

    def run(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
        return lambda: tf.function(function)(*arguments)

    return {
        "loop": run(loop, x),
        "branches": run(branches, x, tf.constant(True)),
        "variables": run(variables, x),
        "sizes": run(sizes, x, tf.constant(2)),
        "around": run(around, x),
        "slices": run(slices, x, tf.constant(1)),
        "digits": digits,
    }


NAMES = ("loop", "branches", "variables", "sizes", "around", "slices", "digits")


def dumps(name: str, flags: str) -> tuple[bytes, dict[str, list[str]], dict[str, list[str]]]:
    """The largest graph that the program gave, its clusters, and those that were compiled."""
    from mlirhlo.integrations.tensorflow.clustering.graph import read_graph
    from mlirhlo.integrations.tensorflow.clustering.marking import mark

    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "TF_XLA_FLAGS": f"{flags} --tf_xla_clustering_debug",
            "TF_DUMP_GRAPH_PREFIX": folder, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_CPP_VMODULE": "encapsulate_subgraphs_pass=1",
        }  # fmt: skip
        subprocess.run([sys.executable, __file__, "--run", name], env=environment, check=True)
        paths = list(Path(folder).glob("before_mark_for_compilation*.pbtxt"))
        if not paths:
            return b"", {}, {}
        before = max(paths, key=lambda path: path.stat().st_size)
        after = before.with_name(before.name.removeprefix("before_"))
        graph = read_graph(before).definition
        clusters = {name: [*nodes] for name, nodes in mark(read_graph(after)).clusters.items()}
        # The dumps are numbered by pass: the last form of the graph is the one with most of its nodes.
        names = {node.name for node in graph.node}
        forms = [read_graph(path) for path in Path(folder).glob("encapsulate_subgraphs_before*")]
        form = max(forms, key=lambda one: len(names & {node.name for node in one.nodes}))
        final = {name: [*nodes] for name, nodes in mark(form).clusters.items()}
        return graph.SerializeToString(deterministic=True), clusters, final


def main() -> int:
    """Writes all fixtures; with `--run NAME` runs one program."""
    if sys.argv[1:2] == ["--run"]:
        import tensorflow as tf

        programs(tf)[sys.argv[2]]()
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        graph, expected, compiled = b"", dict[str, Any](), dict[str, Any]()
        for flags in FLAGS:
            this, clusters, final = dumps(name, flags)
            graph = graph or this
            if this in (graph, b""):
                expected[flags], compiled[flags] = sorted(clusters.values()), sorted(final.values())
            else:
                expected[flags] = None
        (OUT / f"{name}.pb").write_bytes(graph)
        (OUT / f"{name}.json").write_text(json.dumps(expected, indent=1) + "\n")
        (OUT / f"{name}.final.json").write_text(json.dumps(compiled, indent=1) + "\n")
        print(name, len(graph), {flags: len(c or []) for flags, c in expected.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
