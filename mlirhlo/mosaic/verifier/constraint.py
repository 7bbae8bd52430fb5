"""What has to hold of operations, as rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any], "str | None"]
"""What is wrong with an operation, or None."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that holds of every operation of a name."""

    number: str
    """The operation and a number: `matmul_c1`; those of GPUs begin with `gpu_`."""
    operation: str
    demands: str
    check: Check


def demand(names: str, number: int, demands: str, check: Check) -> tuple[Constraint, ...]:
    """The constraint of one number for several operations."""
    return tuple(
        Constraint(f"{_prefix(name)}{name.partition('.')[2]}_c{number}", name, demands, check)
        for name in names.split()
    )


def _prefix(name: str) -> str:
    return "gpu_" if name.startswith("mosaic_gpu.") else ""
