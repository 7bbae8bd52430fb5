"""Meshes of devices and how arrays are split on them. The names are those of `jax.sharding`."""

from __future__ import annotations

from mlirhlo.mosaic.language.outside.parallel import Mesh, NamedSharding, PartitionSpec

__all__ = ["Mesh", "NamedSharding", "PartitionSpec"]
