"""The attributes of opcodes: what a row says of one, and those that several opcodes have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.attributes.kinds import AttrKind


class Role(Enum):
    """What a property is for."""

    MEANING = "says what is computed"
    PLACEMENT = "says where, and what tools were told about it"
    PROVENANCE = "says where an instruction came from; no difference by itself"
    CONFIGURATION = "says how a back end computes it"
    ORDER = "says what runs before it"


@dataclass(frozen=True, slots=True)
class AttrSpec:
    """One attribute of an opcode."""

    key: str
    """As in HLO text."""
    kind: AttrKind
    required: bool = False
    default: str | None = None
    """Text of the default; it is dropped on reading and, unless `always`, on printing."""
    always: bool = False
    """Printed even at its default."""
    read_only: bool = False
    """Accepted and dropped."""
    newer: bool = False
    """libtpu 0.0.51 and later; jaxlib 0.10.2 does not know it."""
    role: Role = Role.MEANING

    body_key: str = ""
    """What is printed instead of the key before a computation that is written out, where it differs."""

    @property
    def property_name(self) -> str:
        """Key in `op.properties`."""
        return self.key.replace("-", "_")


def spec(
    key: str,
    kind: AttrKind,
    default: str | None = None,
    *,
    required: bool = False,
    always: bool = False,
    read_only: bool = False,
    newer: bool = False,
    role: Role = Role.MEANING,
    body_key: str = "",
) -> AttrSpec:
    """A row of an attribute."""
    return AttrSpec(key, kind, required, default, always, read_only, newer, role, body_key)


COMMON_BEFORE: tuple[AttrSpec, ...] = (
    spec("sharding", k.SHARDING, role=Role.PLACEMENT),
    spec("frontend_attributes", k.FRONTEND_ATTRIBUTES, role=Role.PLACEMENT),
)
"""Printed after the opcode's own attributes and before `control-predecessors`."""

COMMON_AFTER: tuple[AttrSpec, ...] = (
    spec("statistics", k.STATISTICS, role=Role.PROVENANCE),
    spec("result_accuracy", k.RESULT_ACCURACY),
    spec("origin", k.ORIGIN, role=Role.PROVENANCE),
    spec("metadata", k.METADATA, role=Role.PROVENANCE),
    spec("backend_config", k.BYTES, role=Role.CONFIGURATION),
)
"""Printed after `control-predecessors`. `result_accuracy` only where the row says `accuracy`."""

COMMON: tuple[AttrSpec, ...] = (*COMMON_BEFORE, *COMMON_AFTER)
"""Attributes every instruction may carry (`control-predecessors` aside, which are operands)."""

PARAMETER_REPLICATION = spec("parameter_replication", k.BOOLEANS)
"""Read on every opcode by XLA, meaningful on `parameter`."""

DIMENSIONS = spec("dimensions", k.INTEGERS, required=True)
CHANNEL = spec("channel_id", k.INTEGER)
GROUPS = spec("replica_groups", k.REPLICA_GROUPS)
CONSTRAIN = spec("constrain_layout", k.BOOLEAN, "false")
GLOBAL_IDS = spec("use_global_device_ids", k.BOOLEAN, "false")
MODE = spec("mode", k.COLLECTIVE_MODE, read_only=True)
TO_APPLY = spec("to_apply", k.COMPUTATION, required=True)
TO_APPLY_OR_CALLS = spec("to_apply", k.COMPUTATION, required=True, body_key="calls")
WINDOW = spec("window", k.WINDOW)
PRECISION = spec("operand_precision", k.PRECISIONS)
ALIASING = spec("output_to_operand_aliasing", k.OUTPUT_OPERAND_ALIASES)
HOST = spec("is_host_transfer", k.BOOLEAN, "false")
THREAD = spec("async_execution_thread", k.STRING)
DYNAMIC_ROOT = spec("has_dynamic_root", k.BOOLEAN, "false", newer=True)

ALL_GATHER = (CHANNEL, GROUPS, CONSTRAIN, DIMENSIONS, GLOBAL_IDS, MODE)
ALL_REDUCE = (CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, MODE, TO_APPLY)
PERMUTE = (
    CHANNEL,
    spec("source_target_pairs", k.INTEGER_LISTS, required=True),
    spec("slice_sizes", k.INTEGER_LISTS),
    MODE,
)
BATCH_NORM = (
    spec("epsilon", k.FLOAT, required=True),
    spec("feature_index", k.INTEGER, required=True),
)
DOT = (
    spec("lhs_batch_dims", k.INTEGERS, "{}"),
    spec("lhs_contracting_dims", k.INTEGERS, "{}", always=True),
    spec("rhs_batch_dims", k.INTEGERS, "{}"),
    spec("rhs_contracting_dims", k.INTEGERS, "{}", always=True),
)
BLOCK_SCALING = spec("block_scaling_config", k.RAW, newer=True)
