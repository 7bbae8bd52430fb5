"""Values in tuples, lists and dictionaries, as flat lists and back."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from mlirhlo.mosaic.language.faults import bad_carry


class Node:
    """Something with values in it, which a tree has in its place."""

    __slots__ = ()

    def parts(self) -> list[Any]:
        """The values."""
        raise NotImplementedError

    def with_parts(self, parts: list[Any]) -> Any:
        """The same with others in their places."""
        raise NotImplementedError


_REGISTERED: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""Classes of trees of the user's: what takes one apart, into values and what is constant, and what joins them."""


def register_pytree_node(
    nodetype: type, flatten_func: Callable[..., Any], unflatten_func: Callable[..., Any]
) -> None:
    """Makes a class one of trees: `flatten_func` gives values and a constant, `unflatten_func` takes the constant
    and values.
    """
    _REGISTERED[nodetype] = flatten_func, unflatten_func


def register_pytree_node_class(cls: Any) -> Any:
    """Decorator: the class has `tree_flatten` and `tree_unflatten`."""
    register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: Any,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] = (),
    **_: Any,
) -> Any:
    """Makes a dataclass one of trees: `data_fields`, all but `meta_fields`, are values, others constant."""
    names = [field.name for field in fields(nodetype) if field.init]
    static = [n for n in names if n in meta_fields or _is_static(nodetype, n)]
    data = [n for n in names if n not in static] if data_fields is None else list(data_fields)

    def take(tree: Any) -> tuple[list[Any], list[Any]]:
        return [getattr(tree, name) for name in data], [getattr(tree, name) for name in static]

    def join(constant: Sequence[Any], values: Sequence[Any]) -> Any:
        named = zip((*data, *static), (*values, *constant), strict=True)
        return nodetype(**dict(named))

    register_pytree_node(nodetype, take, join)
    return nodetype


def _is_static(cls: Any, name: str) -> bool:
    return any(field.name == name and field.metadata.get("static") for field in fields(cls))


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves in order, and what puts others in their places."""
    leaves: list[Any] = []
    rebuild = _walk(tree, leaves)

    def unflatten(values: list[Any]) -> Any:
        return rebuild(iter(values))

    return leaves, unflatten


def _walk(tree: Any, leaves: list[Any]) -> Callable[[Any], Any]:
    if tree is None:
        return lambda _: None
    if isinstance(tree, Mapping):
        parts = {key: _walk(tree[key], leaves) for key in sorted(tree)}
        return lambda values: {key: part(values) for key, part in parts.items()}
    if isinstance(tree, tuple | list):
        items: Any = tree
        made = [_walk(item, leaves) for item in items]
        if hasattr(items, "_fields"):
            cls: Any = type(items)
            return lambda values: cls(*[part(values) for part in made])
        kind: Any = type(items)
        return lambda values: kind([part(values) for part in made])
    if isinstance(tree, Node):
        inner = _walk(tree.parts(), leaves)
        return lambda values: tree.with_parts(inner(values))
    if type(tree) in _REGISTERED:
        take, join = _REGISTERED[type(tree)]
        values_of, constant = take(tree)
        whole = _walk(list(values_of), leaves)
        return lambda values: join(constant, tuple(whole(values)))
    leaves.append(tree)
    return next


def structure(tree: Any) -> Any:
    """The tree with all leaves alike, for comparison."""
    if isinstance(tree, Mapping):
        return {key: structure(item) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        items: Any = tree
        return (type(items).__name__, [structure(item) for item in items])
    if isinstance(tree, Node):
        return (type(tree).__name__, structure(tree.parts()))
    if type(tree) in _REGISTERED:
        values, constant = _REGISTERED[type(tree)][0](tree)
        return (type(tree).__name__, structure(list(values)), repr(constant))
    return None if tree is None else "leaf"


def check_same(first: Any, second: Any, what: str) -> None:
    """Raises `HloError` HLO0728 when two trees are built differently."""
    if structure(first) != structure(second):
        raise bad_carry(
            f"{what} differ in their structure", "give back what was given, in the same tuples"
        )
