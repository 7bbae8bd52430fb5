"""Constraints of kernels, numbered by operation: what has to hold whatever the target.

`CONSTRAINTS` has a row for each: its number, what it demands, and the check, which gives what is wrong
with an operation, or None. `verify_kernel` raises at the first operation that breaks one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.places import source_place
from mlirhlo.mosaic.verifier import (
    arithmetic,
    functions,
    gpu,
    memory,
    references,
    regions,
    vectors,
)
from mlirhlo.mosaic.verifier.constraint import Constraint

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["CONSTRAINTS", "Constraint", "verify_kernel"]


def verify_kernel(module: ModuleOp) -> None:
    """Checks every operation. Raises `HloError` HLO0737 with the number of the constraint."""
    for op in module.walk():
        for constraint in CONSTRAINTS.get(name_of(op), ()):
            problem = constraint.check(op)
            if problem is not None:
                raise error(
                    "HLO0737",
                    f"{name_of(op)}: {problem} ({constraint.number})",
                    source_place(op),
                    help=constraint.demands,
                )


def _by_operation() -> Mapping[str, tuple[Constraint, ...]]:
    found: dict[str, tuple[Constraint, ...]] = {}
    for family in (memory, vectors, arithmetic, references, regions, functions, gpu):
        for row in family.ROWS:
            found[row.operation] = (*found.get(row.operation, ()), row)
    return found


CONSTRAINTS = _by_operation()
"""The constraints by the name of the operation, in the order they are checked."""
