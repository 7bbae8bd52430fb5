"""An order in which groups can run, kept while they grow: fusing must not close a cycle.

Pearce and Kelly's way of keeping a topological order: what has to move is only what lies between
the two ends. Searches are bounded, so that fusion as a whole stays linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.groups import Group

Neighbours: TypeAlias = "Callable[[Group], Iterable[Group]]"


def reached(starts: Iterable[Group], target: Group, after: Neighbours) -> list[Group] | None:
    """Groups that run after one of `starts` and before `target` in the present order, these included.

    None when `target` depends on one of them, or when there are too many to tell.
    """
    found: dict[Group, None] = {}
    stack = [g for g in starts if g.order < target.order]
    while stack:
        group = stack.pop()
        if group in found:
            continue
        found[group] = None
        if len(found) > cost.SEARCH_LIMIT:
            return None
        for following in after(group):
            if following is target:
                return None
            if following.order < target.order:
                stack.append(following)
    return list(found)


def move_behind(group: Group, behind: list[Group], before: Neighbours) -> bool:
    """Puts `group` before all of `behind`, which do not depend on it reaching them; keeps the rest
    valid. False, with nothing changed, when too many groups would move.

    What `group` itself depends on moves along.
    """
    if not behind:
        return True
    least = min(g.order for g in behind)
    needed: dict[Group, None] = {}
    stack = [group]
    while stack:
        current = stack.pop()
        if current in needed:
            continue
        needed[current] = None
        if len(needed) > cost.SEARCH_LIMIT:
            return False
        stack += [g for g in before(current) if g.order > least]
    first = sorted(needed, key=_place)
    last = sorted(behind, key=_place)
    places = sorted(g.order for g in (*first, *last))
    for each, place in zip((*first, *last), places, strict=True):
        each.order = place
    return True


def _place(group: Group) -> float:
    return group.order
