"""Values in tuples, lists and dictionaries, as flat lists and back."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    return None if tree is None else "leaf"


def check_same(first: Any, second: Any, what: str) -> None:
    """Raises `HloError` HLO0728 when two trees are built differently."""
    if structure(first) != structure(second):
        raise bad_carry(
            f"{what} differ in their structure", "give back what was given, in the same tuples"
        )
