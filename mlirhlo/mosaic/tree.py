"""Values in tuples, lists and dictionaries. The names are those of `jax.tree`."""

from __future__ import annotations

from builtins import all as _all
from builtins import map as _map
from collections.abc import Callable
from functools import reduce as _reduce
from typing import Any

from mlirhlo.mosaic.language.tree import (
    check_same,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    structure,
)
from mlirhlo.mosaic.language.tree import flatten as _flatten


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:  # noqa: A001  (jax's name)
    """The tree of what `f` gives for the leaves of one or more trees of the same structure.

    Raises `HloError` HLO0728 for other structures.
    """
    for other in rest:
        check_same(tree, other, "trees that are mapped together")
    leaves, rebuild = _flatten(tree)
    others = [_flatten(other)[0] for other in rest]
    return rebuild([f(*row) for row in zip(leaves, *others, strict=True)])


def leaves(tree: Any) -> list[Any]:
    """The leaves in order; None is none."""
    return _flatten(tree)[0]


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves, and what `unflatten` takes with others."""
    return _flatten(tree)


def unflatten(treedef: Callable[[list[Any]], Any], leaves: Any) -> Any:
    """Leaves in the places that `flatten` took others from."""
    return treedef(list(leaves))


def reduce(function: Callable[[Any, Any], Any], tree: Any, *initial: Any) -> Any:
    """The leaves joined from the left, after `initial` if it is given."""
    return _reduce(function, leaves(tree), *initial)


def all(tree: Any) -> bool:  # noqa: A001  (jax's name)
    """Whether all leaves, which Python knows, are true."""
    return _all(_map(bool, leaves(tree)))


tree_map, tree_leaves, tree_flatten, tree_unflatten = map, leaves, flatten, unflatten
tree_reduce = reduce

__all__ = [
    "all",
    "flatten",
    "leaves",
    "map",
    "reduce",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "structure",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_reduce",
    "tree_unflatten",
    "unflatten",
]
