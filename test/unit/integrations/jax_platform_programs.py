"""Programs of JAX on the platform that JAX_PLATFORMS names, a line a value; test_jax_platform.py runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
TYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
)
NARROW = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4")


def values() -> Iterator[tuple[str, Any]]:
    """Name and result of each program."""
    for name in (*TYPES, *NARROW):
        yield name, jnp.asarray(np.arange(6).reshape(2, 3).astype(jnp.dtype(name))).T
    yield "scalars", jax.jit(lambda a, b: a * b + 1)(2, 3.0)
    yield "empty", jax.jit(lambda x: (x + 1, x.sum()))(jnp.zeros((0, 3)))
    yield "grad", jax.grad(lambda x: jnp.tanh(x @ X.T).sum())(X)
    yield "loop", lax.fori_loop(0, 10, lambda i, x: x * 1.5 + i, jnp.asarray(X))
    yield "scan", lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), X)
    yield "cond", [lax.cond(p, jnp.sin, jnp.cos, X) for p in (True, False)]
    yield "sort", jnp.sort(X, axis=0)[::-1]
    yield "svd", jnp.linalg.svd(X, compute_uv=False)
    yield "eigh", jnp.linalg.eigvalsh(X @ X.T)
    yield "fft", jnp.fft.fft(X)
    yield "random", jax.random.uniform(jax.random.key(3), (3,))
    yield "keys", jax.random.key_data(jax.random.split(jax.random.key(1)))
    yield "vmap", jax.vmap(lambda r: r / r.sum())(X)
    yield "gather", jnp.asarray(X)[jnp.array([2, 0]), jnp.array([1, 3])]
    yield "scatter", jnp.asarray(X).at[jnp.array([0, 0])].add(1.0)
    turned = jax.jit(lambda x: x.T)(X)
    yield "transposed", (turned, jax.jit(lambda x: x + 1)(turned))
    columns = Format(Layout((1, 0)), jnp.asarray(X).sharding)
    by_columns = jax.jit(lambda x: x * 2, out_shardings=columns)(X)
    added = jax.jit(lambda x: x + 1, in_shardings=columns)(by_columns)
    yield "layouts", (by_columns, by_columns.format.layout.major_to_minor, added, by_columns + 1)
    yield "reversed", jnp.asarray(X[::-1, ::2])


def buffers() -> Iterator[tuple[str, Any]]:
    """Donation, deletion, views."""
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    given = jnp.arange(4.0)
    address = given.unsafe_buffer_pointer()
    result = add(given)
    yield "donated", (given.is_deleted(), result.unsafe_buffer_pointer() == address, result)
    held = jnp.arange(4.0)
    view = np.asarray(held)
    yield "donated beside a view", (add(held), view)
    gone = jnp.ones(3)
    gone.delete()
    yield "deleted", _raised(lambda: gone + 1)
    yield "dlpack", np.from_dlpack(jnp.arange(3.0))
    yield "dlpack in", jnp.from_dlpack(np.arange(3, dtype=np.float32))
    moved = jax.device_put(jnp.arange(3.0), jax.devices()[1])
    yield "moved", ([d.id for d in moved.devices()], moved)


def callbacks() -> Iterator[tuple[str, Any]]:
    """Python called by programs."""
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    yield "pure", jax.jit(lambda x: jax.pure_callback(np.sin, shape, x) * 2)(X)
    seen: list[Any] = []
    note = partial(jax.experimental.io_callback, lambda x: seen.append(float(x)), None)

    @jax.jit
    def ordered(x: Any) -> Any:
        note(x, ordered=True)
        note(x + 1, ordered=True)
        return x * 2

    yield "ordered", (ordered(1.0), jax.effects_barrier(), seen)
    jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(v.tolist()), x))(X[0])
    jax.effects_barrier()
    yield "debug", seen


def programs() -> Iterator[tuple[str, Any]]:
    """Executables as objects."""
    lowered = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(X)
    compiled = lowered.compile()
    yield "as_text", "HloModule" in (compiled.as_text() or "")
    yield "flops", compiled.cost_analysis().get("flops", 0) > 0
    yield "bytes", compiled.memory_analysis().argument_size_in_bytes
    restored = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=jax.devices()[:1]
    )
    yield "restored", restored(X)
    exported = jax.export.export(jax.jit(jnp.cos))(X)
    yield "exported", jax.export.deserialize(exported.serialize()).call(X)
    bad = {"xla_no_such_option": 1}
    yield "option", bool(_raised(lambda: lowered.compile(compiler_options=bad)))


def devices() -> Iterator[tuple[str, Any]]:
    """Sharded programs."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    x = jax.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("a", "b")))
    y = jax.jit(lambda x: jnp.tanh(x) @ x.T)(x)
    yield "product", (y, y.sharding.shard_shape(y.shape))
    w = NamedSharding(mesh, P(None, "b"))
    z = jax.jit(lambda x: jnp.cumsum(x, 0), out_shardings=w)(x)
    yield "resharded", (z, [s.data.shape for s in z.addressable_shards])

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", None))
    def sums(block: Any) -> Any:
        return lax.all_gather(block * lax.psum(block, "a"), "b", axis=1, tiled=True)

    yield "shard_map", _raised(lambda: sums(x)) or sums(x)
    yield "pmap", jax.pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")(np.arange(4.0) + 1)
    index = jax.shard_map(
        lambda: jnp.float32(lax.axis_index(("a", "b")))[None],
        mesh=mesh,
        in_specs=(),
        out_specs=P(("a", "b")),
    )
    yield "index", (jax.jit(index)(), jax.jit(index)().sharding.spec)
    seen: list[float] = []
    note = partial(jax.experimental.io_callback, lambda v: seen.append(float(v.sum())), None)
    for ordered in (False, True):
        jax.jit(lambda v, ordered=ordered: (note(v, ordered=ordered), v + 1)[1])(x)
    jax.effects_barrier()
    yield "calls of one device", seen
    yield "constraint", jax.jit(lambda x: lax.with_sharding_constraint(x * 2, w).sum())(x)


def _raised(action: Callable[[], Any]) -> str:
    try:
        action()
    except Exception as problem:  # noqa: BLE001 - its type is what is compared
        return type(problem).__name__
    return ""


def main() -> None:
    """Prints what the groups that are named yield."""
    groups = (values, buffers, callbacks, programs, devices)
    for group in groups:
        if group.__name__ in sys.argv[1:]:
            for name, value in group():
                leaves = jax.tree.map(lambda v: np.asarray(v).tolist(), value)
                print(f"{group.__name__} {name}: {leaves}")


if __name__ == "__main__":
    main()
