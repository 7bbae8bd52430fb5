"""Recursion on a stack of its own, as programs nest deeper than Python's.

A function that recurs is written as a generator: where it would call itself, it yields the call and is sent
what that returns.

    def depth(tree: Tree) -> Walk[int]:
        below = []
        for part in tree:
            below.append((yield depth(part)))
        return 1 + max(below, default=0)

    walked(depth(tree))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar, cast

ResultT = TypeVar("ResultT")

Walk: TypeAlias = "Generator[Generator[Any, Any, Any], Any, ResultT]"
"""A call on the stack, which returns a result in the end."""


def walked(walk: Walk[ResultT]) -> ResultT:
    """Runs a call, with all that it yields, to its result."""
    stack: list[Generator[Any, Any, Any]] = [walk]
    result: Any = None  # of the call that ended last, whatever its type
    while stack:
        try:
            inner = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
        else:
            stack.append(inner)
            result = None
    return cast(ResultT, result)
