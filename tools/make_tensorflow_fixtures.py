#!/usr/bin/env python3
"""Writes the programs below test/data/tensorflow; needs TensorFlow, which nothing else does.

    python3 -m venv tf && tf/bin/pip install tensorflow-cpu -e .
    tf/bin/python tools/make_tensorflow_fixtures.py

A folder a program: what `experimental_get_compiler_ir` hands out at each stage, and `values.npz`
with the parameters of the program (`parameter0`, …) and what TensorFlow itself computed
(`result0`, …; variables that the function assigns come after its results).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

OUT = Path(__file__).resolve().parent.parent / "test" / "data" / "tensorflow"

FILES = {
    "hlo": "hlo.txt",
    "hlo_serialized": "hlo.pb",
    "optimized_hlo": "optimized_hlo.txt",
    "optimized_hlo_serialized": "optimized_hlo.pb",
    "optimized_hlo_proto_serialized": "optimized_hlo_proto.pb",
    "stablehlo": "stablehlo.mlir",
    "stablehlo_serialized": "stablehlo.mlirbc",
}
"""Stage to file."""

random = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    """Values that no sum of a few loses."""
    return random.standard_normal(shape).astype(np.float32)


def matmul_relu(x: Any, w: Any, b: Any) -> Any:
    """One dense layer."""
    return tf.nn.relu(x @ w + b)


def convolution(x: Any, k: Any) -> Any:
    """A strided convolution, then average pooling."""
    return tf.nn.avg_pool2d(tf.nn.conv2d(x, k, 2, "SAME"), 2, 1, "VALID")


def rnn(x: Any, w: Any, u: Any) -> Any:
    """A recurrent net over time: a while loop."""

    def step(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(x[:, i] @ w + h @ u)

    return tf.while_loop(lambda i, _: i < 5, step, (0, tf.zeros((2, 3))))[1]


def branches(x: Any, n: Any) -> Any:
    """A conditional, a switch, integers and comparisons."""
    y = tf.cond(n > 2, lambda: x * 2.0, lambda: tf.sort(x))
    z = tf.switch_case(n, [lambda: y, lambda: y + 1.0, lambda: tf.reverse(y, [0])])
    return {"y": z, "small": x < 0.0, "top": tf.math.top_k(x, 2).indices}


def gradient(x: Any, w: Any) -> Any:
    """A loss and its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(w)
        logits = x @ w
        labels = tf.range(4) % 3
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
    return loss, tape.gradient(loss, w)


def gather_types(x: Any, i: Any) -> Any:
    """Gather, scatter, casts and integer arithmetic."""
    taken = tf.gather(x, i)
    there = tf.tensor_scatter_nd_add(x, i[:, None], taken)
    half = tf.cast(there, tf.bfloat16) * 1.5
    return there, tf.cast(half, tf.float64), tf.bitwise.left_shift(i, 2) // 3


counter = tf.Variable(tf.range(3, dtype=tf.float32))


def variable(x: Any) -> Any:
    """Reads and assigns a variable."""
    counter.assign_add(x)
    return counter * 2.0


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul_relu": (matmul_relu, (floats(4, 3), floats(3, 5), floats(5))),
    "convolution": (convolution, (floats(1, 8, 8, 2), floats(3, 3, 2, 4))),
    "rnn": (rnn, (floats(2, 5, 4), floats(4, 3), floats(3, 3))),
    "branches": (branches, (floats(6), np.int32(1))),
    "gradient": (gradient, (floats(4, 5), floats(5, 3))),
    "gather_types": (gather_types, (floats(6, 2), np.array([4, 0, 4], np.int32))),
    "variable": (variable, (floats(3),)),
}


def write(name: str) -> None:
    """One program with everything that belongs to it."""
    function, arguments = PROGRAMS[name]
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    compiled = tf.function(function, jit_compile=True)
    tensors = [tf.constant(a) for a in arguments]
    generator = compiled.experimental_get_compiler_ir(*tensors)
    for stage, file in FILES.items():
        ir = generator(stage=stage)
        data = ir.encode() if isinstance(ir, str) else ir
        for place in (sys.prefix, str(OUT.parents[2])):
            # Where things are installed is no part of the program; the length is one of protos.
            data = data.replace(place.encode(), f"/{'_' * (len(place) - 1)}".encode())
        (folder / file).write_bytes(data)
    before = [counter.numpy()] if name == "variable" else []
    results = [r.numpy() for r in tf.nest.flatten(compiled(*tensors))]
    after = [counter.numpy()] if name == "variable" else []
    values = {f"parameter{i}": v for i, v in enumerate([*arguments, *before])}
    values |= {f"result{i}": v for i, v in enumerate([*results, *after])}
    np.savez_compressed(folder / "values.npz", allow_pickle=False, **values)


def main() -> int:
    """Writes the programs that are named, or all."""
    for name in sys.argv[1:] or PROGRAMS:
        write(name)
        print(name)
    (OUT / "VERSION").write_text(f"tensorflow {tf.__version__}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
