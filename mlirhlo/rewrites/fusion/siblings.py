"""Groups that read the same array become one, so that it is read once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.graph import FREE, Node
from mlirhlo.rewrites.fusion.groups import Group, Kind
from mlirhlo.rewrites.fusion.joining import Refusal
from mlirhlo.rewrites.fusion.order import move_behind, reached

Neighbours: TypeAlias = "Callable[[Group], Iterable[Group]]"
Said: TypeAlias = "Callable[[Node, Group, Refusal], None]"

MOST_READERS = 16
"""Of an array; more are not compared with each other."""


def merge_siblings(
    nodes: Sequence[Node],
    readers: Callable[[Node], list[Group]],
    after: Neighbours,
    before: Neighbours,
    take: Callable[[Group, Group], None],
    said: Said,
) -> None:
    """Merges groups that walk alike and read the same large array.

    `readers` gives the groups that read a value, `after` and `before` a group's neighbours, `take`
    puts all of its second group into its first; `said` is told what is not done.
    """
    for node in nodes:
        if node.role in FREE or node.size_bytes < cost.SMALLEST_SHARED_BYTES:
            continue
        found = readers(node)
        if not 1 < len(found) <= MOST_READERS:
            continue
        alike: dict[Hashable, list[Group]] = {}
        for group in sorted(found, key=lambda group: group.order):
            key = _walk(group)
            if key is not None:
                alike.setdefault(key, []).append(group)
        for groups in alike.values():
            last = groups[-1]
            for group in reversed(groups[:-1]):
                refusal = _refusal(group, last) or _behind(group, last, after, before)
                if refusal is None:
                    take(last, group)
                else:
                    said(node, group, refusal)


def _walk(group: Group) -> Hashable:
    """Equal for groups that one kernel can compute; None for those that stay on their own."""
    form, first = group.form, group.outputs[0]
    if first.has_control or first.barrier is not None or first.shape is None:
        return None
    match form.kind:
        case Kind.LOOP if form.is_simple:
            return (form.kind, form.space)
        case Kind.ROW:
            return (form.kind, form.rows)
        case Kind.COLUMN if form.fold is not None:
            return (form.kind, form.fold.space, form.fold.dimensions)
        case _:
            return None


def _refusal(a: Group, b: Group) -> Refusal | None:
    if len(a.outputs) + len(b.outputs) > cost.MOST_OUTPUTS:
        return Refusal("outputs", f"the fusions write {len(a.outputs) + len(b.outputs)} arrays")
    inputs = {**a.inputs, **b.inputs}
    if len(inputs) > cost.MOST_INPUTS:
        return Refusal("inputs", f"the fusions read {len(inputs)} arrays")
    if a.code + b.code > cost.LARGEST_GROUP:
        return Refusal("size", "the fusion would have too many instructions")
    shared = sum(node.size_bytes for node in a.inputs if node in b.inputs)
    moved = min(_traffic(a), _traffic(b))
    if 4 * shared < moved:
        return Refusal("shared", f"of {moved} bytes they share {shared}")
    return None


def _traffic(group: Group) -> int:
    return sum(node.size_bytes for node in (*group.inputs, *group.outputs))


def _behind(a: Group, b: Group, after: Neighbours, before: Neighbours) -> Refusal | None:
    """Makes room for `a` where `b` runs: all that needs `a` runs after `b` then."""
    following = list(after(a))
    if b in following:
        return Refusal("cycle", "one reads what the other writes")
    behind = reached(following, b, after)
    if behind is None or not move_behind(b, behind, before):
        return Refusal("cycle", "one depends on the other, or they are far from each other")
    return None
