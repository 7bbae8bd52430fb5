"""Devices of nodes, by their names: `/job:localhost/replica:0/task:0/device:GPU:0`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TYPE = re.compile(r"(?:^|/|device:)(?P<type>[A-Za-z_]+):(?:\d+|\*)$")


def device_type(name: str) -> str:
    """`CPU`, `GPU`, `TPU`, …; a node without a device is the CPU's."""
    match = _TYPE.search(name)
    return match["type"].upper() if match else "CPU"


def device_for(names: Iterable[str]) -> str | None:
    """The device that a cluster with nodes of these devices runs on: a GPU before the CPU; None for mixtures."""
    by_type: dict[str, set[str]] = {}
    for name in names:
        by_type.setdefault(device_type(name), set()).add(name)
    if any(len(same) > 1 for same in by_type.values()):
        return None
    others = by_type.keys() - {"CPU", "GPU"}
    if others and (len(others) > 1 or len(by_type) > 1):
        return None
    for kind in (*others, "GPU", "CPU"):
        if kind in by_type:
            return next(iter(by_type[kind]))
    return None
