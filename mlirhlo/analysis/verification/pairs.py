"""Checks of asynchronous pairs and of channels."""

from __future__ import annotations

from collections.abc import Iterable

from mlirhlo.analysis.shape_inference.base import declare
from mlirhlo.analysis.verification.report import PAIRS, Report
from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of
from mlirhlo.dialects.hlo.module import holder
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, HANDS_ON, STARTED

declare(
    "pair",
    c1="a start has one user: its done, or an update of it",
    c2="a done reads the start, or an update, of its own kind",
    c3="start and done have the same channel_id",
    c4="start and done agree whether the host takes part",
)
declare(
    "channel",
    c1="a channel of a send or recv is used by no collective",
)

_BEGIN, _GO_ON = ("async-start", "async-update"), ("async-update", "async-done")
_DONE = {start: (done,) for start, done in STARTED.items()} | dict.fromkeys(_BEGIN, _GO_ON)
_START = {done: (start,) for start, done in STARTED.items()} | dict.fromkeys(_GO_ON, _BEGIN)
_CARRIERS = HANDS_ON | CONTROL_FLOW | {"parameter"}
"""Instructions that may carry a started value into or out of a loop."""

_CHANNELS = frozenset({"send-done", "recv-done"})


def check_pair(op: Instruction, report: Report) -> None:
    """Adds to the report what is wrong between `op` and its start or its users."""
    name = op.opcode.name
    if name in _DONE:
        _check_users(op, _DONE[name], report)
    if name in _START and op.operands:
        _check_start(op, _START[name], report)


def _check_users(op: Instruction, wanted: tuple[str, ...], report: Report) -> None:
    users: dict[Instruction, None] = {}
    for use in op.results[0].uses:
        if not isinstance(use.operation, Instruction):
            if holder(op).is_entry is None:
                return  # returned: the caller holds the other half
            continue
        if use.index < len(use.operation.inputs):
            users[use.operation] = None
    if any(user.opcode.name in _CARRIERS for user in users):
        return
    matching = [user for user in users if user.opcode.name in wanted]
    if len(users) != 1 or not matching:  # pair_c1
        shown = ", ".join(f"%{u.instruction_name} ({u.opcode.name})" for u in users) or "none"
        report.add(
            PAIRS,
            "pair_c1",
            f"The {op.opcode.name} instruction requires one user, {' or '.join(wanted)}; found"
            f" {len(users)}: {shown}",
            op,
        )


def _check_start(op: Instruction, wanted: tuple[str, ...], report: Report) -> None:
    start = op.defining(0)
    if not isinstance(start, Instruction) or start.opcode.name in _CARRIERS:
        return
    if start.opcode.name not in wanted:  # pair_c2
        report.add(
            PAIRS,
            "pair_c2",
            f"The operand of a {op.opcode.name} instruction needs to be {' or '.join(wanted)},"
            f" found {start.opcode.name}",
            op,
            operand=0,
        )
        return
    for key, constraint, read in (
        ("channel_id", "pair_c3", int_of),
        ("is_host_transfer", "pair_c4", bool_of),
    ):
        mine, other = op.properties.get(key), start.properties.get(key)
        if op.opcode.name in _CHANNELS and read(mine) != read(other):  # pair_c3, pair_c4
            report.add(
                PAIRS,
                constraint,
                f"{op.opcode.name}: {key} {read(mine)} differs from the {read(other)} of its start",
                op,
                attribute=key,
                note=("the start is", start),
            )


def check_channels(instructions: Iterable[Instruction], report: Report) -> None:
    """A channel of a send or recv serves nothing else (collectives may share theirs)."""
    kinds: dict[int, tuple[str, Instruction]] = {}
    for op in instructions:
        attribute = op.properties.get("channel_id")
        if attribute is None or int_of(attribute) <= 0:
            continue
        kind = "transfer" if op.opcode.transfers else "collective"
        known, first = kinds.setdefault(int_of(attribute), (kind, op))
        if known != kind:  # channel_c1
            report.add(
                PAIRS,
                "channel_c1",
                f"{op.opcode.name}: channel {int_of(attribute)} is used for different types of"
                f" channel instructions: {first.opcode.name} and {op.opcode.name}",
                op,
                attribute="channel_id",
                note=(f"the {first.opcode.name} is", first),
            )


def check_constrained_layouts(instructions: Iterable[Instruction], report: Report) -> None:
    """All all-reduces of a module constrain their layouts, or none does."""
    first: Instruction | None = None
    for op in instructions:
        if op.opcode.name not in ("all-reduce", "all-reduce-start"):
            continue
        first = first or op
        key = "constrain_layout"
        if bool_of(op.properties.get(key)) != bool_of(first.properties.get(key)):  # module_c12
            report.add(
                PAIRS,
                "module_c12",
                "the module has a mix of layout constrained and unconstrained all-reduces",
                op,
                note=(f"another {first.opcode.name} is", first),
            )
            return
