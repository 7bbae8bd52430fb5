"""`spmd-partitioning`: one program for all devices, on tiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.attributes.base import int_of, integer
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.spmd.counted_indices import count_as_batches
from mlirhlo.rewrites.spmd.emit import Computations
from mlirhlo.rewrites.spmd.grid import Grids
from mlirhlo.rewrites.spmd.partitioner import Partitioner
from mlirhlo.rewrites.spmd.partitions import partitions_of, shardings_of
from mlirhlo.rewrites.spmd.tiles import (
    local_index,
    local_linear,
    local_moves,
    local_random,
    local_reduce,
)
from mlirhlo.rewrites.spmd.tiles.local import Windows

HANDLING = (local_index, local_linear, local_moves, local_random, local_reduce)
"""Imported for the handlers they register."""


@dataclass(frozen=True)
class SpmdPartitioningPass(HloPass):
    """Makes of a module with shardings the program of one partition.

    Before and after, on 4 partitions:

        %x = f32[8,6] parameter(0), sharding={devices=[1,4]<=[4]}
        %w = f32[6,5] parameter(1), sharding={devices=[4,1]<=[4]}
        %d = f32[8,5] dot(%x, %w), …                     =>   %dot = f32[8,5] dot(%x, %w)   of f32[8,2] and f32[2,5]
                                                              %sum = f32[8,5] all-reduce(%dot), …

    Arrays become tiles, of sizes rounded up; what the last tiles have too much is masked where it would count.
    For each instruction the cheapest of several ways is taken, by the bytes that devices send to each other and by
    the work they do; what has no way of its own is done on whole arrays and sliced. Resharding is by the cheapest
    collectives: slices, all-gathers, all-to-alls, collective-permutes, reduce-scatters. Computations that are
    called become one for each call. Gathers and scatters whose indices count along a dimension (`x[arange(n), i]`)
    have it as a batch. With `threshold_for_windowed_einsum_mib` large all-gathers before dots and
    reduce-scatters behind them become loops that multiply one tile while another is on its way. A module for one
    partition, and one that is partitioned already (its entry's name ends in `_spmd`), stays. Run
    `sharding-propagation` (or `shardy-xla`) before: values without a sharding are put where that costs least, loops'
    and branches' are whole.
    Source: reference of the passes, "SPMD partitioner".
    """

    name = "spmd-partitioning"
    exact = False

    num_partitions: int = 0
    """Partitions; 0: as many as the module's header says."""
    threshold_for_windowed_einsum_mib: int | None = None
    """Size from which on an operand that would be gathered for a dot, or a result that would be reduced and
    scattered behind it, goes around the devices tile by tile; none: never, as on XLA's platforms."""
    unroll_windowed_einsum: bool = False
    """Two steps of a windowed einsum in one turn of its loop."""
    bidirectional_windowed_einsum: bool = False
    """Tiles go around both ways, in half as many steps; for even numbers of tiles."""
    choose_faster_windowed_einsum_over_mem: bool = False
    """Where two collectives of a dot could be windowed: that which sends more, not that which takes more memory."""
    skip_checking_windowed_einsum_users: bool = False
    """Also operands that other dots read, which else share what is gathered once."""
    enable_windowed_einsum_for_all_gather: bool = True
    """All-gathers of operands may be windowed."""
    enable_windowed_einsum_for_reduce_scatter: bool = True
    """Reduce-scatters of results may be windowed."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Partitions; whether there was more than one partition."""
        del trace
        count = partitions_of(module, self.num_partitions)
        if count == 1:
            return False
        with paused_gc():
            if count_as_batches(module):
                module = module.afresh()
            _partition(module, count, self._windows)
        return True

    @property
    def _windows(self) -> Windows:
        return Windows(
            self.threshold_for_windowed_einsum_mib,
            self.unroll_windowed_einsum,
            self.bidirectional_windowed_einsum,
            self.choose_faster_windowed_einsum_over_mem,
            self.skip_checking_windowed_einsum_users,
            self.enable_windowed_einsum_for_all_gather,
            self.enable_windowed_einsum_for_reduce_scatter,
        )


def _partition(module: HloModule, count: int, windows: Windows) -> None:
    grids = Grids(count, shardings_of(module))
    channels = [int_of(op.properties.get("channel_id")) for op in module.instructions]
    names = NameUniquer(c.computation_name for c in module.computations)
    added = Computations(module.replica_count, count, names, max(channels, default=0))
    old_entry = module.entry
    entry = Partitioner(module, grids, added, windows).entry()
    block = module.op.body.block
    for computation in (*added.added, entry):
        block.insert_op_before(computation, old_entry)
    block.erase_op(old_entry)
    _drop_unread(module)
    module.set("num_partitions", integer(count))
    if module.get("entry_computation_layout") is not None:
        module.set_program_layout(*_localised(module))


def _localised(module: HloModule) -> tuple[tuple[Shape, ...], Shape]:
    """The signature of the entry in the layouts the header gave."""
    old, new = module.program_layout, module.entry_signature
    parameters = zip(old.parameters, new.parameters, strict=True)
    return tuple(_laid_out(a, b) for a, b in parameters), _laid_out(old.result, new.result)


def _laid_out(old: Shape, new: Shape) -> Shape:
    if isinstance(old, TupleShape) and isinstance(new, TupleShape):
        pairs = zip(old.elements, new.elements, strict=True)
        return TupleShape(tuple(_laid_out(a, b) for a, b in pairs))
    if isinstance(old, ArrayShape) and isinstance(new, ArrayShape):
        return new.with_layout(old.layout)
    return new


def _drop_unread(module: HloModule) -> None:
    """Computations that nothing calls any more go."""
    by_name = module.by_name()
    kept: set[str] = set()
    stack: list[ComputationOp] = [module.entry]
    while stack:
        for op in stack.pop().instructions:
            for name in op.called_computations:
                if name not in kept:
                    kept.add(name)
                    stack.append(by_name[name])
    for name, computation in by_name.items():
        if name not in kept and computation.is_entry is None:
            module.op.body.block.erase_op(computation)
