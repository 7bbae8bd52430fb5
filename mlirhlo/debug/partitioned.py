"""A sharded module as the program of its partitions: whole arrays are cut into tiles, and joined again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from mlirhlo.debug.replay import Array, Inputs
from mlirhlo.dialects.hlo.attributes.sharding import Sharding
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape
from mlirhlo.interp.registry import Value
from mlirhlo.interp.values import arrays_of, unflatten
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.spmd.factors import leaves
from mlirhlo.rewrites.spmd.partitions import partitions_of, shardings_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Shardings = tuple[Sharding | None, ...]


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A module after partitioning, and where its arrays are."""

    module: ModuleOp
    partitions: int
    parameters: Shardings
    """Of the leaves of all parameters."""
    results: Shardings
    shape: Shape
    """Of the whole result."""

    @staticmethod
    def of(module: ModuleOp) -> Partitioned | None:
        """The partitioned form of a module of several partitions; None for one that has no shardings, is
        partitioned already, or takes or gives anything but arrays of static sizes. Raises what the passes raise.
        """
        view = HloModule(module)
        count = partitions_of(view, 0)
        shapes = [
            leaf for op in (*view.entry.parameters, view.entry.root) for leaf in leaves(op.shape)
        ]
        if count == 1 or not any(shardings_of(view)):
            return None
        if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in shapes):
            return None
        copy = module.clone()
        run_pipeline(copy, parse_pipeline("shardy-xla"))
        entry = HloModule(copy).entry
        parameters = sorted(entry.parameters, key=lambda op: op.parameter_number)
        cuts = tuple(s for op in parameters for s in shardings_of_leaves(op))
        results, shape = shardings_of_leaves(entry.root), entry.root.shape
        run_pipeline(copy, parse_pipeline("spmd-partitioning"))
        return Partitioned(copy, count, cuts, results, shape)

    def cut(self, inputs: Inputs) -> Inputs:
        """Whole arrays as the tiles of every device; those of each partition are taken as they are."""
        if len(inputs.per_device) != 1:
            return inputs
        arrays = arrays_of(cast(Value, tuple(inputs.per_device[0])))
        per_partition = [
            [_tile(a, s, p) for a, s in zip(arrays, self.parameters, strict=True)]
            for p in range(self.partitions)
        ]
        return Inputs(per_partition * inputs.replicas, inputs.replicas, self.partitions)

    def joined(self, results: Sequence[Value]) -> list[Value]:
        """For every device the whole result: of sharded arrays from the tiles of its replica, of others its own."""
        found: list[Value] = []
        for first in range(0, len(results), self.partitions):
            parts = [arrays_of(value) for value in results[first : first + self.partitions]]
            wholes = [
                None
                if s is None
                else _whole([part[k] for part in parts], s, cast(ArrayShape, leaf))
                for k, (s, leaf) in enumerate(zip(self.results, leaves(self.shape), strict=True))
            ]
            for own in parts:
                arrays = (a if w is None else w for a, w in zip(own, wholes, strict=True))
                found.append(cast(Value, unflatten(arrays, self.shape)))
        return found


def shardings_of_leaves(op: Instruction) -> Shardings:
    """The sharding of each array in the result of an instruction."""
    count = len(leaves(op.shape))
    return (None,) * count if op.sharding is None else op.sharding.expanded(count).elements


def _tile(array: Array, sharding: Sharding | None, partition: int) -> Array:
    """A partition's tile, with zeros beyond the end of the array and where the partition has nothing."""
    if sharding is None:
        return array
    tile = np.zeros(sharding.tile_sizes(array.shape), array.dtype)
    bounds = sharding.tile_bounds(array.shape, partition)
    if bounds is not None:
        part = array[tuple(slice(a, b) for a, b in bounds)]
        tile[tuple(slice(n) for n in part.shape)] = part
    return tile


def _whole(parts: Sequence[Array], sharding: Sharding, shape: ArrayShape) -> Array:
    found = np.zeros(shape.dimensions, parts[0].dtype)
    for partition, part in enumerate(parts):
        bounds = sharding.tile_bounds(shape.dimensions, partition)
        if bounds is not None:
            region = tuple(slice(a, b) for a, b in bounds)
            found[region] = part[tuple(slice(b - a) for a, b in bounds)]
    return found
