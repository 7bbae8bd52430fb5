"""Small programs of JAX with shardings, for `compare_partitioning.py`: functions, arguments, placements."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Row = tuple[str, Any, list[Any], Any, Any]


def programs() -> Iterator[Row]:
    """Name, function, arguments, shardings of arguments and of results (a tree)."""
    devices = np.array(jax.devices())
    one = Mesh(devices, ("x",))
    two = Mesh(devices.reshape(2, 4), ("a", "b"))
    four = Mesh(devices.reshape(4, 2), ("a", "b"))
    cube = Mesh(devices.reshape(2, 2, 2), ("p", "q", "r"))
    back = Mesh(devices[::-1].reshape(2, 4), ("a", "b"))

    def row(name: str, function: Any, mesh: Mesh, arguments: Any, out: Any = None) -> Row:
        random = np.random.default_rng(zlib.crc32(name.encode()))
        values: list[Any] = []
        places: list[Any] = []
        for shape, spec in arguments:
            if isinstance(shape, tuple):
                values.append(random.normal(size=shape).astype(np.float32))
            else:
                values.append(shape)
            places.append(NamedSharding(mesh, spec))
        is_spec = lambda v: isinstance(v, P)  # noqa: E731
        if out is not None:
            out = jax.tree.map(lambda s: NamedSharding(mesh, s), out, is_leaf=is_spec)
        else:
            out = NamedSharding(mesh, P())
        return name, function, values, tuple(places), out

    def keep(mesh: Mesh, x: Any, *spec: Any) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    # ------------------------------------------------------------ products
    dot = jnp.dot
    yield row("dot_rows", dot, one, [((16, 24), P("x")), ((24, 32), P())], P("x"))
    yield row("dot_columns", dot, one, [((16, 24), P()), ((24, 32), P(None, "x"))], P(None, "x"))
    yield row("dot_contracted", dot, one, [((16, 24), P(None, "x")), ((24, 32), P("x"))], P())
    yield row("dot_to_scatter", dot, one, [((16, 24), P(None, "x")), ((24, 32), P("x"))], P("x"))
    yield row("dot_gather_weights", dot, one, [((16, 24), P("x")), ((24, 32), P("x"))], P("x"))
    yield row("dot_one_side", dot, one, [((16, 24), P(None, "x")), ((24, 32), P())], P())
    yield row("dot_mixed", dot, two, [((16, 24), P("a", "b")), ((24, 32), P("b", "a"))], P("a"))
    yield row("dot_2d", dot, two, [((16, 24), P("a", "b")), ((24, 32), P("a", "b"))], P("a", "b"))
    yield row(
        "dot_3d", dot, cube, [((16, 24), P(("p", "q"), "r")), ((24, 32), P("r", "p"))], P("p", "q")
    )
    batched = lambda x, y: jnp.einsum("bik,bkj->bij", x, y)  # noqa: E731
    yield row(
        "dot_batch", batched, two, [((8, 8, 4), P("a", "b")), ((8, 4, 6), P("a"))], P("a", "b")
    )
    yield row(
        "dot_batch_moves", batched, one, [((8, 8, 4), P("x")), ((8, 4, 6), P())], P(None, "x")
    )

    # ------------------------------------------------------------ layers
    def mlp(x: Any, w1: Any, w2: Any) -> Any:
        return jnp.dot(jax.nn.gelu(jnp.dot(x, w1)), w2)

    parallel = [((16, 32), P("a")), ((32, 64), P(None, "b")), ((64, 32), P("b"))]
    yield row("mlp_tensor_parallel", mlp, two, parallel, P("a"))
    sequence = [((16, 32), P("a", "b")), ((32, 64), P("a", "b")), ((64, 32), P("b", "a"))]
    yield row("mlp_fully_sharded", mlp, two, sequence, P("a", "b"))

    def loss(x: Any, w1: Any, w2: Any) -> Any:
        return jnp.sum(mlp(x, w1, w2) ** 2)

    grads = jax.grad(loss, argnums=(1, 2))
    yield row(
        "mlp_grad_data",
        grads,
        one,
        [((16, 32), P("x")), ((32, 64), P()), ((64, 32), P())],
        (P(), P()),
    )
    yield row(
        "mlp_grad_sharded",
        grads,
        one,
        [((16, 32), P("x")), ((32, 64), P("x")), ((64, 32), P("x"))],
        (P("x"), P("x")),
    )
    yield row("mlp_grad_2d", grads, two, parallel, (P(None, "b"), P("b")))

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)

    heads = [((4, 8, 4, 8), P("a", None, "b"))] * 3
    yield row("attention_heads", attention, two, heads, P("a", None, "b"))
    rows = [((4, 8, 4, 8), P("a", "b")), ((4, 8, 4, 8), P("a")), ((4, 8, 4, 8), P("a"))]
    yield row("attention_queries", attention, two, rows, P("a", "b"))

    def norm(x: Any, g: Any) -> Any:
        mean = jnp.mean(x, -1, keepdims=True)
        scale = lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5)
        return (x - mean) * scale * g

    yield row("layer_norm_rows", norm, one, [((16, 32), P("x")), ((32,), P())], P("x"))
    yield row(
        "layer_norm_features", norm, one, [((16, 32), P(None, "x")), ((32,), P("x"))], P(None, "x")
    )
    softmax = lambda x: jax.nn.softmax(x, -1)  # noqa: E731
    yield row("softmax_features", softmax, two, [((16, 32), P("a", "b"))], P("a", "b"))
    head = lambda x: jax.nn.log_softmax(x)[:, 3]  # noqa: E731
    yield row("log_softmax_column", head, two, [((16, 32), P("a", "b"))], P("a"))

    # ------------------------------------------------------------ reductions
    yield row("sum_all", jnp.sum, two, [((16, 32), P("a", "b"))], P())
    yield row("sum_rows", lambda x: jnp.sum(x, 1), two, [((16, 32), P("a", "b"))], P("a"))
    yield row("max_scattered", lambda x: jnp.max(x, 0), one, [((16, 32), P("x"))], P("x"))
    yield row("argmax", lambda x: jnp.argmax(x, 1), one, [((16, 32), P(None, "x"))], P())
    yield row("mean_rows", lambda x: jnp.mean(x, 0), one, [((16, 6), P("x"))], P())
    yield row("cumsum_other", lambda x: jnp.cumsum(x, 1), one, [((16, 32), P("x"))], P("x"))
    yield row("cumsum_same", lambda x: jnp.cumsum(x, 0), one, [((16, 8), P("x"))], P("x"))

    # ------------------------------------------------------------ placements
    same = lambda x: x * 2  # noqa: E731
    yield row("move_dimension", same, one, [((16, 32), P("x"))], P(None, "x"))
    yield row("swap_axes", same, two, [((16, 32), P("a", "b"))], P("b", "a"))
    yield row("drop_major", same, two, [((16, 32), P(("a", "b")))], P("b"))
    yield row("drop_minor", same, two, [((16, 32), P(("a", "b")))], P("a"))
    yield row("gather_one", same, two, [((16, 32), P("a", "b"))], P(None, "b"))
    yield row("order_of_axes", same, four, [((16, 32), P(("a", "b")))], P(("b", "a")))
    yield row("transpose", jnp.transpose, two, [((16, 32), P("a", "b"))], P("a", "b"))
    reshape = lambda x: jnp.reshape(x, (32, 16))  # noqa: E731
    yield row("reshape", reshape, two, [((4, 8, 16), P("a", "b"))], P("a"))
    yield row("backwards", same, back, [((16, 32), P("a", "b"))], P("b"))

    # ------------------------------------------------------------ data movement
    yield row("slice_same", lambda x: x[:, 2:7], one, [((16, 8), P("x"))], P("x"))
    yield row("slice_cut", lambda x: x[2:10], one, [((16, 8), P("x"))], P("x"))
    yield row("shift", lambda x: jnp.roll(x, 1, 0), one, [((16, 8), P("x"))], P("x"))
    yield row("pad_cut", lambda x: jnp.pad(x, ((1, 7), (0, 0))), one, [((16, 8), P("x"))], P("x"))
    yield row(
        "concat_cut",
        lambda x, y: jnp.concatenate([x, y]),
        one,
        [((16, 8), P("x")), ((16, 8), P("x"))],
        P("x"),
    )
    yield row(
        "concat_other",
        lambda x, y: jnp.concatenate([x, y], 1),
        one,
        [((16, 8), P("x")), ((16, 8), P("x"))],
        P("x"),
    )
    yield row("flip_cut", lambda x: x[::-1], one, [((16, 8), P("x"))], P("x"))
    stencil = lambda x: x[:-2] + x[1:-1] * 2 + x[2:]  # noqa: E731
    yield row("stencil", stencil, one, [((16, 8), P("x"))])
    yield row("sort_other", lambda x: jnp.sort(x, 1), one, [((16, 32), P("x"))], P("x"))
    yield row("sort_cut", lambda x: jnp.sort(x, 0), one, [((16, 32), P("x"))], P("x"))
    yield row(
        "iota_compare",
        lambda x: jnp.where(jnp.arange(32) < 7, x, 0),
        two,
        [((16, 32), P("a", "b"))],
        P("a", "b"),
    )
    ids = np.arange(12, dtype=np.int32) * 5 % 16
    take = lambda x, i: x[i]  # noqa: E731
    yield row("embed_vocabulary", take, one, [((16, 32), P("x")), (ids, P())], P())
    yield row("embed_features", take, one, [((16, 32), P(None, "x")), (ids, P())], P(None, "x"))
    many = np.arange(16, dtype=np.int32) * 3 % 16
    yield row("embed_rows", take, two, [((16, 32), P("b")), (many, P("a"))], P("a"))
    put = lambda x, i, u: x.at[i].add(u)  # noqa: E731
    yield row("scatter_rows", put, one, [((16, 8), P("x")), (ids, P()), ((12, 8), P())], P("x"))
    yield row("scatter_updates", put, one, [((16, 8), P()), (many, P("x")), ((16, 8), P("x"))], P())
    where = np.int32(5)
    yield row(
        "dynamic_slice",
        lambda x, i: lax.dynamic_slice(x, (i, 0), (4, 8)),
        one,
        [((16, 8), P("x")), (where, P())],
        P(),
    )
    yield row(
        "dynamic_update",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
        one,
        [((16, 8), P("x")), ((4, 8), P()), (where, P())],
        P("x"),
    )

    # ------------------------------------------------------------ windows
    def conv(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    image = (8, 16, 8, 4)
    yield row("conv_batch", conv, one, [(image, P("x")), ((3, 3, 4, 8), P())], P("x"))
    yield row("conv_spatial", conv, one, [(image, P(None, "x")), ((3, 3, 4, 8), P())], P(None, "x"))
    yield row(
        "conv_features",
        conv,
        two,
        [(image, P("a")), ((3, 3, 4, 8), P(None, None, None, "b"))],
        P("a", None, None, "b"),
    )
    yield row(
        "conv_inputs",
        conv,
        four,
        [(image, P("b", None, None, "a")), ((3, 3, 4, 8), P(None, None, "a"))],
        P("b"),
    )
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # noqa: E731
    yield row("pool_spatial", pool, one, [((8, 16, 8, 4), P(None, "x"))], P(None, "x"))

    # ------------------------------------------------------------ control flow
    def layers(x: Any, w: Any) -> Any:
        return lax.scan(lambda h, each: (jnp.tanh(h @ each), None), x, w)[0]

    yield row(
        "scan_layers", layers, two, [((16, 32), P("a")), ((3, 32, 32), P(None, None, "b"))], P("a")
    )
    yield row(
        "scan_weights", layers, one, [((16, 32), P("x")), ((3, 32, 32), P(None, "x"))], P("x")
    )

    def loop(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, v: jnp.sin(v) + i, x)

    yield row("loop_elementwise", loop, two, [((16, 32), P("a", "b"))], P("a", "b"))

    def branch(x: Any, n: Any) -> Any:
        return lax.cond(n > 3, lambda v: v * 2, lambda v: jnp.sum(v, 0, keepdims=True) + v, x)

    yield row("branches", branch, one, [((16, 32), P("x")), (where, P())], P("x"))

    def constrained(x: Any, w: Any) -> Any:
        h = keep(two, x @ w, "a", "b")
        return keep(two, jnp.tanh(h), "b", "a") + 1

    yield row(
        "constraints", constrained, two, [((16, 32), P("a")), ((32, 32), P(None, "b"))], P("b", "a")
    )

    def mapped(x: Any, w: Any) -> Any:
        def body(a: Any, b: Any) -> Any:
            return lax.psum(a @ b, "b")

        return jax.shard_map(body, mesh=two, in_specs=(P("a", "b"), P("b")), out_specs=P("a"))(
            jnp.sin(x), w
        )

    yield row("shard_map", mapped, two, [((16, 32), P("a")), ((32, 8), P("b"))], P("a"))

    def half_mapped(x: Any, w: Any) -> Any:
        def body(a: Any, b: Any) -> Any:
            return jnp.tanh(a @ b)

        return jax.shard_map(
            body, mesh=two, in_specs=(P("a"), P()), out_specs=P("a"), axis_names={"a"}
        )(x, w)

    yield row(
        "shard_map_half",
        half_mapped,
        two,
        [((16, 32), P("a")), ((32, 8), P(None, "b"))],
        P("a", "b"),
    )
    key = np.array([1, 2], dtype=np.uint32)
    noise = lambda k, x: x + jax.random.normal(k, (16, 32))  # noqa: E731
    yield row("random_normal", noise, one, [(key, P()), ((16, 32), P("x"))], P("x"))
