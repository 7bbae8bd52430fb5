"""Which arguments of a function are values, and which were fixed when it was traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StaticArguments:
    """Positions (negative ones count from the last given) and names of what is no value."""

    positions: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        function: Callable[..., object],
        argnums: int | Sequence[int] | None,
        argnames: str | Iterable[str] | None,
    ) -> StaticArguments:
        """As JAX reads the two options: where one is missing, it follows from the other."""
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return cls(frozenset(numbers), frozenset(names))
        either = [
            (i, p.name) for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        if argnums is None:
            numbers = tuple(i for i, name in either if name in names)
        elif argnames is None:
            names = tuple(name for i, name in either if i in numbers)
        return cls(frozenset(numbers), frozenset(names))

    def has(self, position: int, count: int) -> bool:
        """Whether argument `position` of `count` is static."""
        return position in self.positions or position - count in self.positions

    def dynamic(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments that are values."""
        positional = tuple(a for i, a in enumerate(args) if not self.has(i, len(args)))
        return positional, {k: v for k, v in kwargs.items() if k not in self.names}
