"""What operations affect, for xDSL's passes: the traits of an operation follow from a column of its row."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum

from xdsl.ir import Operation
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    OpTrait,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)

NOTHING: Set[EffectInstance] = frozenset()
WRITES: Set[EffectInstance] = frozenset({EffectInstance(MemoryEffectKind.WRITE)})


class Effect(Enum):
    """What an operation affects beside its results."""

    NONE = "nothing: it is merged with its like, moved, and removed where nobody reads it"
    READ = "nothing, but it sees what others write"
    WRITE = "something: it stays where it is"
    NESTED = "what the operations in its regions do"
    BY_INSTANCE = "what its properties say, or the computations that it calls do"


TRAITS: Mapping[Effect, tuple[OpTrait, ...]] = {
    Effect.NONE: (Pure(),),
    Effect.READ: (MemoryReadEffect(),),
    Effect.WRITE: (MemoryWriteEffect(),),
    Effect.NESTED: (RecursiveMemoryEffect(), RecursivelySpeculatable()),
}
"""Traits of the effects that all operations of a name share."""


class FlaggedEffects(MemoryEffect):
    """A custom call: an effect where `has_side_effect` says so."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """As the flag says."""
        flag = op.properties.get("has_side_effect")
        return WRITES if flag is not None and getattr(flag, "value").data else NOTHING  # noqa: B009
