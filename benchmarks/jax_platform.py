"""Programs of JAX on this compiler as a platform, in turns with XLA:CPU in one process.

    python benchmarks/jax_platform.py --rounds 15

A row a program: the first call (trace and compile) and a steady call of each platform in ms, and XLA's time over ours.
First calls are of programs that no cache has seen.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

os.environ["JAX_PLATFORMS"] = "mlirhlo,cpu"
os.environ.setdefault("MLIRHLO_CACHE_DIR", "")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RNG = np.random.default_rng(0)


def _normal(*shape: int, scale: float = 0.1) -> Any:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def _sgd(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(weights: Any, *data: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *data)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, slopes), value

    return step


def _mlp(weights: Any, x: Any, y: Any) -> Any:
    for w, b in weights[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = weights[-1]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w + b) * y, -1))


def _cnn(weights: Any, x: Any, y: Any) -> Any:
    for k in weights[:-1]:
        x = jax.nn.relu(
            lax.conv_general_dilated(
                x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        )
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x.mean((1, 2)) @ weights[-1]) * y, -1))


def _block(x: Any, w: dict[str, Any]) -> Any:
    def norm(v: Any, g: Any) -> Any:
        return g * (v - v.mean(-1, keepdims=True)) * lax.rsqrt(v.var(-1, keepdims=True) + 1e-5)

    h = norm(x, w["g1"])
    q, k, v = (jnp.einsum("bsd,dhk->bhsk", h, w[n]) for n in "qkv")
    scores = jnp.einsum("bhsk,bhtk->bhst", q, k) / math.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    a = jnp.einsum("bhst,bhtk->bshk", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
    x = x + jnp.einsum("bshk,hkd->bsd", a, w["o"])
    return x + jax.nn.gelu(norm(x, w["g2"]) @ w["up"]) @ w["down"]


def _transformer(weights: Any, tokens: Any) -> Any:
    x = weights["embed"][tokens]
    for w in weights["blocks"]:
        x = _block(x, w)
    logits = jax.nn.log_softmax(x[:, :-1] @ weights["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def _transformer_weights(layers: int, d: int = 64, heads: int = 4, words: int = 256) -> Any:
    block = {n: _normal(d, heads, d // heads) for n in "qkv"}
    block |= {
        "o": _normal(heads, d // heads, d),
        "up": _normal(d, 4 * d),
        "down": _normal(4 * d, d),
    }
    block |= {"g1": np.ones(d, np.float32), "g2": np.ones(d, np.float32)}
    return {"embed": _normal(words, d), "blocks": [block] * layers}


def _rnn(w: Any, x: Any) -> Any:
    def cell(h: Any, v: Any) -> Any:
        h = jnp.tanh(h @ w[0] + v @ w[1])
        return h, h.sum()

    return lax.scan(cell, jnp.zeros((x.shape[1], w[0].shape[0])), x)


def _bodies(position: Any, velocity: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        p, v = state
        apart = p[None] - p[:, None]
        pull = apart / (jnp.sum(apart**2, -1, keepdims=True) + 0.1) ** 1.5
        v = v + 0.001 * pull.sum(1)
        return p + 0.001 * v, v

    return lax.fori_loop(0, 20, step, (position, velocity))


def _filter(signal: Any) -> Any:
    spectrum = jnp.fft.rfft(signal)
    low = jnp.arange(spectrum.shape[-1]) < 100
    return jnp.fft.irfft(spectrum * low)


def _metropolis(key: Any, x: Any) -> Any:
    def step(state: Any, key: Any) -> Any:
        here, chance = jax.random.split(key)
        moved = state + 0.1 * jax.random.normal(here, state.shape)
        taken = jnp.log(jax.random.uniform(chance, state.shape)) < (state**2 - moved**2) / 2
        return jnp.where(taken, moved, state), taken.mean()

    return lax.scan(step, x, jax.random.split(key, 50))


def _sample(key: Any, logits: Any) -> Any:
    best, index = lax.top_k(logits, 40)
    chosen = jax.random.categorical(key, best)
    return jnp.take_along_axis(index, chosen[:, None], -1)


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Function and arguments of each row."""
    sizes = (784, 256, 256, 10)
    mlp = [(_normal(a, b), np.zeros(b, np.float32)) for a, b in pairwise(sizes)]
    hot = np.eye(10, dtype=np.float32)[RNG.integers(0, 10, 128)]
    cnn = [_normal(3, 3, 3, 32), _normal(3, 3, 32, 64), _normal(64, 10)]
    tokens = RNG.integers(0, 256, (4, 64)).astype(np.int32)
    key = np.asarray(jax.random.PRNGKey(0))
    return {
        "empty": (lambda x: x, (np.float32(1),)),
        "add": (lambda x: x + 1, (_normal(8, 8),)),
        "mlp train": (_sgd(_mlp), (mlp, _normal(128, 784), hot)),
        "cnn train": (_sgd(_cnn), (cnn, _normal(32, 32, 32, 3), hot[:32])),
        "transformer 2": (_sgd(_transformer), (_transformer_weights(2), tokens)),
        "transformer 12": (_sgd(_transformer), (_transformer_weights(12), tokens)),
        "rnn": (_rnn, ((_normal(128, 128), _normal(64, 128)), _normal(50, 16, 64))),
        "bodies": (_bodies, (_normal(128, 3, scale=1), _normal(128, 3))),
        "fft filter": (_filter, (_normal(64, 4096),)),
        "metropolis": (_metropolis, (key, _normal(4096))),
        "sample": (_sample, (key, _normal(16, 32000))),
    }


def _measure(function: Callable[..., Any], arguments: Any, rounds: int) -> dict[str, list[float]]:
    """First call and best steady call in seconds, by platform, in turns."""
    found: dict[str, list[float]] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for platform in ("mlirhlo", "cpu"):
        device = jax.devices(platform)[0]
        given = jax.device_put(arguments, device)
        jitted = jax.jit(partial(function))
        started = time.perf_counter()
        jax.block_until_ready(jitted(*given))
        found[platform] = [time.perf_counter() - started, math.inf]
        calls[platform] = partial(jitted, *given)
    for _ in range(rounds):
        for platform, call in calls.items():
            count = max(1, min(1000, int(0.02 / max(found[platform][1], 1e-6))))
            started = time.perf_counter()
            result = None
            for _ in range(count):
                result = call()
            jax.block_until_ready(result)
            found[platform][1] = min(found[platform][1], (time.perf_counter() - started) / count)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=15, help="turns of each platform (default 15)"
    )
    parser.add_argument("--only", default="", help="programs whose names contain this")
    arguments = parser.parse_args()
    print(f"{'':16}{'first':>9}{'XLA':>9}{'ratio':>7}{'steady':>10}{'XLA':>10}{'ratio':>7}")
    ratios: list[float] = []
    for name, (function, given) in programs().items():
        if arguments.only not in name:
            continue
        found = _measure(function, given, arguments.rounds)
        ours, xla = found["mlirhlo"], found["cpu"]
        ratios.append(xla[1] / ours[1])
        print(
            f"{name:16}{ours[0] * 1e3:9.0f}{xla[0] * 1e3:9.0f}{xla[0] / ours[0]:7.2f}"
            f"{ours[1] * 1e3:10.4f}{xla[1] * 1e3:10.4f}{ratios[-1]:7.2f}",
            flush=True,
        )
    print(
        f"geometric mean of steady calls: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"
    )


if __name__ == "__main__":
    main()
