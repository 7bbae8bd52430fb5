"""What is computed from one output of rows alone, and is all that reads it, is written instead of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.graph import Node
from mlirhlo.rewrites.fusion.groups import Group, Kind


def merge_followers(
    nodes: Sequence[Node],
    readers: Callable[[Node], list[Group]],
    owners: Mapping[Node, Sequence[Group]],
    take: Callable[[Group, Group], None],
) -> None:
    """Rows that write x, and a loop over x that gives f(x): rows that write f(x).

    Planning takes instructions from the last to the first, so that x, which rows need too, became an
    output of theirs. `readers` gives the groups that read a value, `owners` those that compute it,
    `take` puts all of its second group into its first. The order of groups stays.
    """
    for node in nodes:
        rows = owners[node][0]
        if rows.form.kind is not Kind.ROW or node not in rows.outputs or node.is_root:
            continue
        found = readers(node)
        if len(found) != 1 or not _follows(found[0], rows, node):
            continue
        take(rows, found[0])
        rows.outputs.remove(node)


def _follows(group: Group, rows: Group, node: Node) -> bool:
    """Whether a group computes each element of its one output from the element of `node` there."""
    form, first = group.form, group.outputs[0]
    return (
        form.kind is Kind.LOOP
        and form.is_simple
        and form.space == rows.form.space == node.space
        and len(group.outputs) == 1
        and all(read is node or not read.operands for read in group.inputs)
        and not first.has_control
        and first.barrier == rows.outputs[0].barrier
        and first.shape is not None
        and group.code + rows.code <= cost.LARGEST_GROUP
    )
