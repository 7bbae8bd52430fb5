"""What several devices do together, and random numbers."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.table.attributes import (
    ALL_GATHER,
    ALL_REDUCE,
    CHANNEL,
    CONSTRAIN,
    DIMENSIONS,
    DYNAMIC_ROOT,
    GLOBAL_IDS,
    GROUPS,
    MODE,
    PERMUTE,
    TO_APPLY_OR_CALLS,
    spec,
)
from mlirhlo.dialects.hlo.table.columns import Arity, Calls, Layouts, Memory, Movement, Opcode

RANDOM_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "rng",
        Arity.ANY,
        (spec("distribution", k.DISTRIBUTION, required=True),),
        side_effect=True,
        varies=True,
        work="random",
        summary="random numbers between or around its operands",
    ),
    Opcode(
        "rng-bit-generator",
        1,
        (spec("algorithm", k.RNG_ALGORITHM, required=True),),
        work="random",
        summary="new state and random bits",
    ),
    Opcode(
        "rng-get-and-update-state",
        0,
        (spec("delta", k.INTEGER, required=True),),
        side_effect=True,
        varies=True,
        work="random",
        summary="the module's random state, moved on by delta",
    ),
)


def _memory(name: str) -> Memory:
    if not name.endswith(("-start", "-done")):
        return Memory.OWN
    return Memory.UPDATED if "reduce" in name else Memory.PASSED


COLLECTIVE_ROWS: tuple[Opcode, ...] = tuple(
    Opcode(
        name,
        arity,
        attributes,
        infers=infers,
        collective=True,
        movement=None if "reduce" in name or arity == 0 else Movement.EXCHANGE,
        calls=Calls.ELEMENTS if "reduce" in name and not name.endswith("-done") else None,
        memory=_memory(name),
        layouts=Layouts.FREE if arity == 0 else Layouts.ALIKE,
        newer=newer,
        summary=summary,
    )
    for name, arity, attributes, infers, newer, summary in (
        ("all-gather", Arity.ANY, ALL_GATHER, False, False, "operands of a group concatenated"),
        ("all-gather-done", 1, (), False, False, "result of all-gather-start"),
        ("all-gather-start", Arity.ANY, ALL_GATHER, False, False, "starts an all-gather"),
        (
            "all-reduce",
            Arity.ANY,
            ALL_REDUCE,
            False,
            False,
            "operands of a group reduced, for each",
        ),
        ("all-reduce-done", 1, (), False, False, "result of all-reduce-start"),
        ("all-reduce-start", Arity.ANY, ALL_REDUCE, False, False, "starts an all-reduce"),
        (
            "all-to-all",
            Arity.ANY,
            (CHANNEL, GROUPS, CONSTRAIN, spec("dimensions", k.INTEGERS), MODE),
            False,
            False,
            "part i of every member's operand goes to member i",
        ),
        (
            "collective-broadcast",
            Arity.ANY,
            (CHANNEL, GROUPS, MODE, DYNAMIC_ROOT),
            False,
            False,
            "the first member's operand, for each of its group",
        ),
        (
            "collective-permute",
            Arity.ANY,
            PERMUTE,
            False,
            False,
            "operands sent from source to target; zeros elsewhere",
        ),
        ("collective-permute-done", 1, (), False, False, "result of collective-permute-start"),
        (
            "collective-permute-start",
            Arity.ANY,
            PERMUTE,
            False,
            False,
            "starts a collective-permute",
        ),
        (
            "collective-reduce",
            Arity.ANY,
            (CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, MODE, DYNAMIC_ROOT, TO_APPLY_OR_CALLS),
            False,
            True,
            "operands of a group reduced, for one member",
        ),
        ("partition-id", 0, (), True, False, "number of this partition, u32[]"),
        (
            "ragged-all-to-all",
            Arity.ANY,
            (CHANNEL, GROUPS, spec("dimensions", k.INTEGERS, read_only=True), MODE),
            False,
            False,
            "slices of different sizes exchanged within a group",
        ),
        (
            "reduce-scatter",
            Arity.ANY,
            (CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, DIMENSIONS, MODE, TO_APPLY_OR_CALLS),
            False,
            False,
            "operands of a group reduced, each member keeping its part",
        ),
        ("replica-id", 0, (), True, False, "number of this replica, u32[]"),
    )
)
