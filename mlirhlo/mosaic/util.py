"""Small functions of lists that kernels of JAX use. The names are those of `jax.util`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")


class HashableFunction:
    """A function that is equal to others with the same `closure`."""

    def __init__(self, f: Callable[..., Any], closure: Hashable) -> None:
        self.f = f
        self.closure = closure

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.f(*args, **options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableFunction) and self.closure == other.closure

    def __hash__(self) -> int:
        return hash(self.closure)


def safe_zip(*lists: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The lists side by side. Raises `ValueError` where one is longer."""
    return list(zip(*lists, strict=True))


def safe_map(f: Callable[..., T], *lists: Iterable[Any]) -> list[T]:
    """What `f` gives along the lists. Raises `ValueError` where one is longer."""
    return [f(*row) for row in zip(*lists, strict=True)]


def split_list(items: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """Parts of those sizes, and the rest."""
    rest = iter(items)
    return [*(list(islice(rest, size)) for size in sizes), list(rest)]


__all__ = ["HashableFunction", "safe_map", "safe_zip", "split_list"]
