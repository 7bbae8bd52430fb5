"""Which buffer each instruction's result lies in, for the colours of a page.

A slot is a place in an allocation: instructions of one slot share the memory, one after the other or in
place. Source: `mlirhlo.analysis.buffer_assignment`.
"""

from __future__ import annotations

import re

from mlirhlo.analysis.buffer_assignment import assign_buffers
from mlirhlo.analysis.dataflow import Value
from mlirhlo.debug.graph.model import Graph
from mlirhlo.diagnostics import HloError

_KIND = re.compile(r".*?(?=,? shape)")


def write_memory(graph: Graph) -> dict[str, object]:
    """`slots`, each a text, the bytes reserved and the offset; `of`, the slot of an instruction by name.

    Both are empty for a module that has no whole meaning, which is still worth looking at. What fusions and
    functions of elements do inside has no memory; a tuple's slot is its table of pointers.
    """
    try:
        assignment = assign_buffers(graph.module)
    except (HloError, ValueError, KeyError):
        return {"slots": [], "of": {}}
    slots: list[tuple[str, int, int]] = []
    slot_of: dict[Value, int] = {}
    for number, allocation in enumerate(assignment.allocations):
        if allocation.kind == "thread-local":
            continue
        # With a shape of thousands of elements behind it, which is not copied for each of them.
        kind = _KIND.match(allocation.kind)
        places: dict[int, int] = {}
        for placed in allocation.buffers:
            slot = places.setdefault(placed.offset, len(slots))
            if slot == len(slots):
                text = f"allocation {number}: {kind[0] if kind else allocation.kind}"
                slots.append((text, 0, placed.offset))
            text, size, offset = slots[slot]
            slots[slot] = (text, max(size, placed.bytes), offset)
            slot_of.update(dict.fromkeys(placed.values, slot))
    aliases = assignment.aliases
    of: dict[str, int] = {}
    for node in graph.nodes:
        buffer = None if graph.is_fused(node) else aliases.buffer_of.get((node.op, ()))
        if buffer is not None and (value := aliases.buffers[buffer][0]) in slot_of:
            of[node.name] = slot_of[value]
    return {"slots": slots, "of": of}
