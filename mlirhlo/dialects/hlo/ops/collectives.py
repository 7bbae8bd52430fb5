"""Instructions that exchange data between devices."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.ops.base import (
    Instruction,
    bool_property,
    computation_property,
    instruction,
    integer_lists_property,
    ints_property,
    optional_int_property,
    value_property,
)


@instruction("all-gather")
class AllGatherOp(Instruction):
    """Operands of a group concatenated."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    dimensions = ints_property()
    use_global_device_ids = bool_property()


@instruction("all-gather-start")
class AllGatherStartOp(Instruction):
    """Starts an all-gather."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    dimensions = ints_property()
    use_global_device_ids = bool_property()


@instruction("all-reduce")
class AllReduceOp(Instruction):
    """Operands of a group reduced, for each."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    use_global_device_ids = bool_property()
    to_apply = computation_property()


@instruction("all-reduce-start")
class AllReduceStartOp(Instruction):
    """Starts an all-reduce."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    use_global_device_ids = bool_property()
    to_apply = computation_property()


@instruction("all-to-all")
class AllToAllOp(Instruction):
    """Part i of every member's operand goes to member i."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    dimensions = ints_property()


@instruction("collective-broadcast")
class CollectiveBroadcastOp(Instruction):
    """The first member's operand, for each of its group."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    has_dynamic_root = bool_property()


@instruction("collective-permute")
class CollectivePermuteOp(Instruction):
    """Operands sent from source to target; zeros elsewhere."""

    channel_id = optional_int_property()
    source_target_pairs = integer_lists_property()
    slice_sizes = integer_lists_property()


@instruction("collective-permute-start")
class CollectivePermuteStartOp(Instruction):
    """Starts a collective-permute."""

    channel_id = optional_int_property()
    source_target_pairs = integer_lists_property()
    slice_sizes = integer_lists_property()


@instruction("collective-reduce")
class CollectiveReduceOp(Instruction):
    """Operands of a group reduced, for one member."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    use_global_device_ids = bool_property()
    has_dynamic_root = bool_property()
    to_apply = computation_property()


@instruction("partition-id")
class PartitionIdOp(Instruction):
    """Number of this partition, u32[]."""


@instruction("ragged-all-to-all")
class RaggedAllToAllOp(Instruction):
    """Slices of different sizes exchanged within a group."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)


@instruction("reduce-scatter")
class ReduceScatterOp(Instruction):
    """Operands of a group reduced, each member keeping its part."""

    channel_id = optional_int_property()
    replica_groups = value_property(ReplicaGroups)
    constrain_layout = bool_property()
    use_global_device_ids = bool_property()
    dimensions = ints_property()
    to_apply = computation_property()


@instruction("replica-id")
class ReplicaIdOp(Instruction):
    """Number of this replica, u32[]."""
