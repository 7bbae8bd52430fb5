"""The opcode table: one row an opcode, read by every tool.

Columns follow HLO text, "Opcodes": operand count, attributes in print order, whether a written
shape may be left out, elementwise or not, side effects, cost. The rule that infers a result's
shape and the function that gives an opcode its meaning are registered under the opcode's name in
`mlirhlo.analysis` and `mlirhlo.interp`; tests hold that each row has both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlirhlo.dialects.hlo.table.attributes import (
    COMMON,
    COMMON_AFTER,
    COMMON_BEFORE,
    AttrSpec,
    Role,
)
from mlirhlo.dialects.hlo.table.collectives import COLLECTIVE_ROWS, RANDOM_ROWS
from mlirhlo.dialects.hlo.table.columns import (
    PLAIN_NS,
    Arity,
    Calls,
    DeclaredShape,
    Extreme,
    Layouts,
    Memory,
    Movement,
    Opcode,
    Types,
)
from mlirhlo.dialects.hlo.table.control_flow import CONTROL_FLOW_ROWS
from mlirhlo.dialects.hlo.table.data_movement import DATA_MOVEMENT_ROWS
from mlirhlo.dialects.hlo.table.elementwise import ELEMENTWISE_ROWS
from mlirhlo.dialects.hlo.table.linear_algebra import LINEAR_ALGEBRA_ROWS
from mlirhlo.dialects.hlo.table.reductions import REDUCTION_ROWS
from mlirhlo.dialects.hlo.table.tokens import TOKEN_ROWS

__all__ = [
    "ANNOTATIONS",
    "COMMON",
    "COMMON_AFTER",
    "COMMON_BEFORE",
    "CONTROL_FLOW",
    "CONTROL_PREDECESSORS",
    "ELEMENTWISE_ROWS",
    "HANDS_ON",
    "LINEAR_ALGEBRA_ROWS",
    "OPCODES",
    "PLAIN_NS",
    "PROVENANCE",
    "REDUCTION_ROWS",
    "STARTED",
    "UNWRITTEN",
    "Arity",
    "AttrSpec",
    "Calls",
    "DeclaredShape",
    "Extreme",
    "Layouts",
    "Memory",
    "Movement",
    "Opcode",
    "Role",
    "Types",
    "opcodes",
    "properties_of",
]

OPCODES: Mapping[str, Opcode] = {
    row.name: row
    for rows in (
        ELEMENTWISE_ROWS,
        DATA_MOVEMENT_ROWS,
        REDUCTION_ROWS,
        LINEAR_ALGEBRA_ROWS,
        CONTROL_FLOW_ROWS,
        TOKEN_ROWS,
        RANDOM_ROWS,
        COLLECTIVE_ROWS,
    )
    for row in rows
}
"""Every opcode by its name in HLO text."""


def opcodes(holds: Callable[[Opcode], bool]) -> frozenset[str]:
    """The names of the opcodes whose rows have some property: computed once, where a module asks for it."""
    return frozenset(row.name for row in OPCODES.values() if holds(row))


CONTROL_FLOW = opcodes(lambda row: row.calls is Calls.CONTROL)
"""Opcodes that run computations whole, on their operands."""
HANDS_ON = opcodes(lambda row: row.movement is Movement.VALUE)
"""Opcodes whose result is, in parts, what their operands are."""


STARTED: Mapping[str, str] = {
    start: name
    for name in OPCODES
    if name.endswith("-done")
    for start in (name[:-5] + "-start", name[:-5])
    if start in OPCODES and (start.endswith("-start") or name[:-5] + "-start" not in OPCODES)
}
"""What ends each opcode that begins something: `copy-start` is ended by `copy-done`, `send` by `send-done`."""

CONTROL_PREDECESSORS = "control_predecessors"
"""Property with the number of trailing operands that are control predecessors."""
UNWRITTEN: Mapping[str, Role] = {
    CONTROL_PREDECESSORS: Role.ORDER,
    "proto_id": Role.PROVENANCE,
    "proto_rest": Role.PROVENANCE,
    "raw_attributes": Role.CONFIGURATION,
}
"""Properties that every instruction may have and that text writes in ways of their own. `proto_id`: id in the proto it
was read from; `proto_rest`: fields nothing else holds, serialised; `raw_attributes`: unknown attributes carried through
as text."""


def properties_of(*roles: Role) -> frozenset[str]:
    """The properties that every instruction may have, of some roles."""
    written = {spec.property_name: spec.role for spec in COMMON}
    return frozenset(name for name, role in {**written, **UNWRITTEN}.items() if role in roles)


PROVENANCE = properties_of(Role.PROVENANCE)
ANNOTATIONS = properties_of(*set(Role) - {Role.MEANING})
"""Properties that no value depends on."""
