"""`vmap` and `vectorize`: functions along a dimension of their operands, one part after the other."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.shapes import stack
from mlirhlo.mosaic.language.outside.host import stacked
from mlirhlo.mosaic.language.trace import is_tracing
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, **_: Any) -> Any:
    """`fun` for each part of its operands along a dimension, the results stacked: in a kernel written out, on
    arrays in a loop. None among `in_axes` is for what all parts share.

    Raises `HloError` HLO0721 for operands of different sizes along their dimensions.
    """

    def run(*args: Any, **options: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
        leaves, rebuild = flatten((args, options))
        of_leaves = [
            *(axis for arg, one in zip(args, axes, strict=True) for axis in _axes(one, arg)),
            *(0 for _ in flatten(options)[0]),
        ]
        sizes = {
            leaf.shape[axis]
            for leaf, axis in zip(leaves, of_leaves, strict=True)
            if axis is not None
        }
        if len(sizes) != 1:
            raise bad_shape(
                f"vmap along dimensions of sizes {sorted(sizes)}", "it takes parts of one number"
            )
        results: list[Any] = []
        for at in range(sizes.pop()):
            parts = [_part(leaf, ax, at) for leaf, ax in zip(leaves, of_leaves, strict=True)]
            given, named = rebuild(parts)
            results.append(fun(*given, **named))
        return _stacked(results, out_axes)

    return run


def _axes(axis: Any, tree: Any) -> list[int | None]:
    """The mapped dimension of each leaf."""
    if axis is None or isinstance(axis, int):
        return [axis] * len(flatten(tree)[0])
    if isinstance(axis, Mapping):
        return [one for key in sorted(axis) for one in _axes(axis[key], tree[key])]
    return [one for part, a in zip(tree, axis, strict=True) for one in _axes(a, part)]


def _part(leaf: Any, axis: int | None, at: int) -> Any:
    if axis is None:
        return leaf
    return leaf[(slice(None),) * (axis % leaf.ndim) + (at,)]


def _stacked(results: Sequence[Any], axis: Any) -> Any:
    if isinstance(axis, tuple | list):
        columns = zip(*results, strict=True)
        return tuple(_stacked(column, one) for column, one in zip(columns, axis, strict=True))
    if not is_tracing():
        return stacked(results, axis)
    rebuild = flatten(results[0])[1]
    rows = [flatten(result)[0] for result in results]
    return rebuild([stack(list(column), axis) for column in zip(*rows, strict=True)])


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Any:
    """`pyfunc` over leading dimensions, which are broadcast together; without `signature` it is elementwise, and
    called once.
    """

    def run(*args: Any) -> Any:
        given = [arg if isinstance(arg, Value) else np.asarray(arg) for arg in args]
        own = _ranks(signature, len(args))
        if signature is None or excluded:
            return pyfunc(*args)
        lead = np.broadcast_shapes(
            *(arg.shape[: arg.ndim - rank] for arg, rank in zip(given, own, strict=True))
        )
        function = pyfunc
        for dim in reversed(range(len(lead))):
            after = len(lead) - dim
            axes = [
                0 if arg.ndim - rank >= after and arg.shape[arg.ndim - rank - after] != 1 else None
                for arg, rank in zip(given, own, strict=True)
            ]
            function = partial(_along, function, axes, lead[dim], after, own)
        return function(*given)

    return run


def _along(
    function: Callable[..., Any],
    axes: Sequence[int | None],
    size: int,
    after: int,
    own: Sequence[int],
    *given: Any,
) -> Any:
    """`function` over the first of `after` leading dimensions; operands without it, or with one of size one, are
    shared.
    """
    kept = [
        arg[0] if axis is None and arg.ndim - rank >= after else arg
        for arg, axis, rank in zip(given, axes, own, strict=True)
    ]
    if all(axis is None for axis in axes):
        return _stacked([function(*kept)] * size, 0)
    return vmap(function, list(axes))(*kept)


def _ranks(signature: str | None, count: int) -> list[int]:
    """How many dimensions of each operand are the function's own."""
    if signature is None:
        return [0] * count
    groups = re.findall(r"\(([^)]*)\)", signature.partition("->")[0])
    return [len([name for name in group.split(",") if name.strip()]) for group in groups]


__all__ = ["vectorize", "vmap"]
