"""What `jax.lax` does around a kernel, where Python knows all values: loops, branches, parts of arrays."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.outside.evaluate import narrow
from mlirhlo.mosaic.language.outside.parallel import axis_index, axis_size, collective
from mlirhlo.mosaic.language.tree import flatten

Body = Callable[..., Any]


def fori_loop(lower: int, upper: int, body_fun: Body, init_val: Any = None, **_: Any) -> Any:
    """`val = body_fun(i, val)` for i from lower up to, not including, upper."""
    for i in range(int(lower), int(upper)):
        init_val = body_fun(np.int32(i), init_val)
    return init_val


def while_loop(cond_fun: Body, body_fun: Body, init_val: Any) -> Any:
    """`val = body_fun(val)` while `cond_fun(val)` holds."""
    while cond_fun(init_val):
        init_val = body_fun(init_val)
    return init_val


def cond(predicate: Any, true_fun: Body, false_fun: Body, *operands: Any) -> Any:
    """What one of two functions gives for the operands."""
    return (true_fun if predicate else false_fun)(*operands)


def switch(index: Any, branches: Sequence[Body], *operands: Any) -> Any:
    """What the function of that number gives; numbers outside take the nearest."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def scan(
    f: Body,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """The last value that `f` carries, and what it gives beside for each part of `xs`, stacked."""
    del unroll
    leaves, rebuild = flatten(xs)
    count = len(leaves[0]) if leaves else length or 0
    given: list[Any] = [None] * count
    for at in reversed(range(count)) if reverse else range(count):
        init, given[at] = f(init, rebuild([leaf[at] for leaf in leaves]))
    return init, stacked(given)


def map_(f: Body, xs: Any, **_: Any) -> Any:
    """What `f` gives for each part of `xs`, stacked."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def stacked(trees: Sequence[Any], axis: int = 0) -> Any:
    """Trees of arrays as one tree, its arrays with a new dimension."""
    if not trees:
        return None
    rows = [flatten(tree)[0] for tree in trees]
    rebuild = flatten(trees[0])[1]
    return rebuild([narrow(np.stack(column, axis)) for column in zip(*rows, strict=True)])


def _begin(operand: Any, start_indices: Sequence[Any], sizes: Sequence[int]) -> list[int]:
    """Where a part of that size begins, moved into the array."""
    bounds = zip(start_indices, sizes, operand.shape, strict=True)
    return [min(max(int(start), 0), full - size) for start, size, full in bounds]


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """A part of an array."""
    starts = _begin(operand, start_indices, slice_sizes)
    parts = zip(starts, slice_sizes, strict=True)
    return operand[tuple(slice(at, at + size) for at, size in parts)]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """An array with another part."""
    starts = _begin(operand, start_indices, update.shape)
    found = np.array(operand)
    parts = zip(starts, update.shape, strict=True)
    found[tuple(slice(at, at + size) for at, size in parts)] = update
    return found


def _along(operand: Any, start: Any, axis: int) -> list[Any]:
    starts: list[Any] = [0] * operand.ndim
    starts[axis] = start
    return starts


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """A part of an array along one dimension."""
    sizes = list(operand.shape)
    sizes[axis] = slice_size
    return dynamic_slice(operand, _along(operand, start_index, axis), sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One index of a dimension."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else found.squeeze(axis)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """An array with another part along one dimension."""
    return dynamic_update_slice(operand, update, _along(operand, start_index, axis))


def psum(x: Any, axis_name: Any) -> Any:
    """The sum over the devices along an axis of the mesh."""
    return collective(x, axis_name, lambda shards: narrow(np.sum(shards, 0)))


def pmax(x: Any, axis_name: Any) -> Any:
    """The greatest over the devices along an axis of the mesh."""
    return collective(x, axis_name, lambda shards: np.max(shards, 0))


def pmin(x: Any, axis_name: Any) -> Any:
    """The least over the devices along an axis of the mesh."""
    return collective(x, axis_name, lambda shards: np.min(shards, 0))


def pmean(x: Any, axis_name: Any) -> Any:
    """The mean over the devices along an axis of the mesh."""
    return collective(x, axis_name, lambda shards: narrow(np.mean(shards, 0)))


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """What all devices along an axis of the mesh hold, stacked, or one after the other."""
    join = np.concatenate if tiled else np.stack
    return collective(x, axis_name, lambda shards: join(shards, axis))


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """What the device holds that `perm` pairs with this one as its target; zeros without one."""
    sources = {target: source for source, target in perm}
    source = sources.get(int(axis_index(axis_name)))
    return collective(
        x, axis_name, lambda shards: np.zeros_like(shards[0]) if source is None else shards[source]
    )


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, **_: Any) -> Any:
    """0, 1, 2, … along a dimension."""
    own = [-1 if dim == dimension % len(shape) else 1 for dim in range(len(shape))]
    line = np.arange(shape[dimension], dtype=dtype).reshape(own)
    return np.array(np.broadcast_to(line, tuple(shape)))


def iota(dtype: Any, size: int) -> Any:
    """0 … size - 1."""
    return np.arange(size, dtype=dtype)


ON_ARRAYS: Mapping[str, Callable[..., Any]] = {
    "all_gather": all_gather,
    "axis_index": axis_index,
    "axis_size": axis_size,
    "broadcasted_iota": broadcasted_iota,
    "cond": cond,
    "dynamic_index_in_dim": dynamic_index_in_dim,
    "dynamic_slice": dynamic_slice,
    "dynamic_slice_in_dim": dynamic_slice_in_dim,
    "dynamic_update_slice": dynamic_update_slice,
    "dynamic_update_slice_in_dim": dynamic_update_slice_in_dim,
    "fori_loop": fori_loop,
    "iota": iota,
    "map": map_,
    "optimization_barrier": lambda x: x,
    "pmax": pmax,
    "pmean": pmean,
    "pmin": pmin,
    "ppermute": ppermute,
    "psum": psum,
    "scan": scan,
    "stop_gradient": lambda x: x,
    "switch": switch,
    "while_loop": while_loop,
}
"""What stands for a function of `jax.lax` outside of kernels."""

__all__ = ["ON_ARRAYS", "stacked"]
