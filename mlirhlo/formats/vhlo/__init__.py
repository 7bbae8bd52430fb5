"""VHLO, the versioned form of StableHLO, and the portable artifacts made of it."""

from mlirhlo.formats.vhlo.artifacts import (
    artifact_version,
    deserialize_artifact,
    serialize_artifact,
)
from mlirhlo.formats.vhlo.versions import CURRENT, MINIMUM, Version, parse_version

__all__ = [
    "CURRENT",
    "MINIMUM",
    "Version",
    "artifact_version",
    "deserialize_artifact",
    "parse_version",
    "serialize_artifact",
]
