"""Versions of StableHLO, and what each brought to portable artifacts.

Source: StableHLO's compatibility page and the version log of the VHLO dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlirhlo.diagnostics import error


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A StableHLO version; only major and minor numbers change what artifacts may hold."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def opset(self) -> Version:
        """The version without its patch number."""
        return Version(self.major, self.minor)


CURRENT = Version(1, 17, 0)
"""The newest version that is read and written."""
MINIMUM = Version(0, 9, 0)
"""The oldest one: the first with a promise of compatibility."""
MIXED = Version(1, 11, 0)
"""From here on operations of other dialects may stand in an artifact."""

_BYTECODE = (
    (Version(0, 10), 0),
    (Version(0, 12), 1),
    (Version(0, 14), 3),
    (Version(0, 15), 4),
)
"""Versions of bytecode before each version; 6 since then."""

_TEXT = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_PRODUCER = re.compile(r"StableHLO_v(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def parse_version(text: str) -> Version:
    """Reads `1.2.3`, `current` or `minimum`. Raises `HloError` HLO0230."""
    if text == "current":
        return CURRENT
    if text == "minimum":
        return MINIMUM
    match = _TEXT.fullmatch(text)
    if match is None:
        raise error(
            "HLO0230",
            f"'{text}' is no StableHLO version",
            help="write major.minor.patch as in '1.2.3', 'current' or 'minimum'",
        )
    version = Version(int(match[1]), int(match[2]), int(match[3]))
    if version.opset < MINIMUM or version.opset > CURRENT:
        raise error(
            "HLO0230",
            f"StableHLO {version} cannot be written, only {MINIMUM} to {CURRENT}",
            help=f"target {CURRENT if version > CURRENT else MINIMUM}",
        )
    return version


def version_of_producer(producer: str) -> Version | None:
    """The version in `StableHLO_v1.2.3`; None for other producers."""
    match = _PRODUCER.fullmatch(producer)
    return None if match is None else Version(int(match[1]), int(match[2]), int(match[3]))


def bytecode_version(version: Version) -> int:
    """The version of the bytecode container that artifacts of a version have."""
    for before, number in _BYTECODE:
        if version < before:
            return number
    return 6
