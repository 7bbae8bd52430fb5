"""A train step and arrays over the processes of JAX, which MPI starts; `test_jax_ranks.py` runs it.

On one process, with as many devices, the same lines are printed.
"""

from __future__ import annotations

import os
from typing import Any

import jax

if int(os.environ.get("PMI_SIZE", "1")) > 1:
    jax.distributed.initialize(cluster_detection_method="mpi4py")

import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback, multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

COUNT = len(jax.devices())


def say(name: str, value: Any) -> None:
    """A line of the first process."""
    if jax.process_index() == 0:
        print(f"{name}: {np.asarray(value).tolist()}", flush=True)


def spread(values: np.ndarray[Any, Any], mesh: Mesh, *spec: str | None) -> jax.Array:
    """A global array."""
    sharding = NamedSharding(mesh, P(*spec))
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def whole(array: jax.Array) -> Any:
    """The values of a global array, on every process."""
    return multihost_utils.process_allgather(array, tiled=True)


def loss(weights: Any, x: Any, y: Any) -> Any:
    """Of a network of two layers."""
    first, second = weights
    return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)


@jax.jit
def step(weights: Any, x: Any, y: Any) -> Any:
    """A step of gradient descent."""
    value, slopes = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, s: w - 0.1 * s, weights, slopes), value


def train(name: str, mesh: Mesh, batch: str | None, inner: str | None) -> None:
    """Ten steps, with batches or the hidden dimension over a mesh axis."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(s).astype(np.float32) for s in ((6, 16), (16, 3)))
    weights = spread(first, mesh, None, inner), spread(second, mesh, inner, None)
    x, y = (spread(rng.standard_normal((8, n)).astype(np.float32), mesh, batch) for n in (6, 3))
    for _ in range(10):
        weights, value = step(weights, x, y)
    say(f"{name} loss", whole(value)[()] if value.ndim else value.addressable_data(0))
    say(f"{name} weights", np.round(whole(weights[0]), 4)[0, :4])


def call(mesh: Mesh, x: jax.Array) -> None:
    """Callbacks on every device, and on one of them for all."""

    def tripled(v: Any) -> Any:
        return jax.pure_callback(
            lambda a: np.asarray(a) * 3, jax.ShapeDtypeStruct(v.shape, v.dtype), v
        )

    def of_each(v: Any) -> Any:
        return tripled(v) + jax.lax.psum(v, "d")

    spec = P("d")
    each = jax.jit(jax.shard_map(of_each, mesh=mesh, in_specs=spec, out_specs=spec))
    say("callbacks of each", whole(each(x)))
    say("callback of one", whole(jax.jit(lambda v: tripled(v) + v.sum())(x)))
    again = jax.jit(lambda v: jax.lax.fori_loop(0, 3, lambda _, w: tripled(w) + v, v))
    say("callbacks of a loop", whole(again(x)))
    seen = jax.jit(lambda v: io_callback(lambda a: np.asarray(a) + 1, v, v) + v)
    say("ordered callback", whole(seen(x)))


def main() -> None:
    """Prints all lines."""
    line = Mesh(np.array(jax.devices()), "d")
    x = spread(np.arange(2 * COUNT, dtype=np.float32), line, "d")
    say("devices", [COUNT, len(jax.local_devices()) * jax.process_count()])
    say("sum", jax.jit(jnp.sum)(x).addressable_data(0))
    say("reversed", whole(jax.jit(lambda v: v[::-1] * 2)(x)))
    say("local", jax.jit(lambda v: v + 1)(np.float32(1)))

    def shift(v: Any) -> Any:
        pairs = [(n, (n + 1) % COUNT) for n in range(COUNT)]
        return jax.lax.ppermute(v, "d", pairs) + jax.lax.psum(v, "d")

    shifted = jax.jit(jax.shard_map(shift, mesh=line, in_specs=P("d"), out_specs=P("d")))
    say("shifted", whole(shifted(x)))
    order = Mesh(np.array(jax.devices())[::-1], "d")
    say(
        "other order",
        whole(
            shifted(x)
            if COUNT == 1
            else jax.jit(jax.shard_map(shift, mesh=order, in_specs=P("d"), out_specs=P("d")))(
                spread(np.arange(2 * COUNT, dtype=np.float32), order, "d")
            )
        ),
    )
    call(line, x)
    train("data", line, "d", None)
    train("tensor", line, None, "d")
    say("donated", jax.jit(lambda v: v * 3, donate_argnums=0)(x).addressable_data(0))
    multihost_utils.sync_global_devices("end")


main()
