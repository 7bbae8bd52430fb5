"""What instructions need of a PTX version and an architecture, by the data of `needs.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mlirhlo.dialects.ptx.forms import Form
from mlirhlo.dialects.ptx.needs import ARCHITECTURES, NEEDS, SETS

NEWEST = (9, 5)
"""The newest version that `needs.py` knows."""


def version_of(text: str) -> tuple[int, int]:
    """(8, 0) of `8.0`."""
    major, minor = text.split(".")
    return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Target:
    """A PTX version and an architecture."""

    version: tuple[int, int]
    architecture: str
    """`90a`; empty where the module names none."""

    @staticmethod
    def of(version: tuple[int, int], targets: tuple[str, ...]) -> Target:
        """The target of a module's header."""
        names = [one.removeprefix("sm_") for one in targets if one.startswith("sm_")]
        return Target(version, names[-1] if names else "")

    @property
    def problem(self) -> str | None:
        """What is wrong with the header itself."""
        if self.version > NEWEST:
            return f"PTX {written(self.version)} is newer than PTX {written(NEWEST)}, the newest that is known"
        least = ARCHITECTURES.get(self.architecture)
        if least is not None and version_of(least) > self.version:
            return f"sm_{self.architecture} needs PTX {least}, this is PTX {written(self.version)}"
        return None if least or not self.is_new else f"sm_{self.architecture} is not known"

    @property
    def is_new(self) -> bool:
        """Whether the architecture is newer than all that are known."""
        digits = self.architecture.rstrip("af")
        return digits.isdigit() and int(digits) > max(
            int(name.rstrip("af")) for name in ARCHITECTURES
        )


def runs_on(target: str, device: str) -> bool:
    """Whether PTX for one architecture runs on a device of another, both as in `sm_90a`.

    PTX runs on later devices too; with the suffix `f` only on those of its family, with `a` only on its own.
    """
    number, own = (int(name.removeprefix("sm_").rstrip("af")) for name in (target, device))
    if target.endswith("a"):
        return number == own
    return number <= own and (not target.endswith("f") or number // 10 == own // 10)


def written(version: tuple[int, int]) -> str:
    """`8.0` of (8, 0)."""
    return ".".join(map(str, version))


@lru_cache(maxsize=4096)
def needs(form: Form, modifiers: tuple[str, ...]) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Least version, and the architectures that have an instance of a form, by their names."""
    keys = [
        form.opcode,
        *(f"{form.opcode}.{one}" for one in modifiers),
        f"{form.opcode} {form.modifiers}",
    ]
    known = [NEEDS[key] for key in keys if key in NEEDS]
    names = [set(SETS[number].split()) for _, number in known]
    have = [name for name in ARCHITECTURES if all(name in one for one in names)]
    return max([(0, 0), *(version_of(version) for version, _ in known)]), tuple(have)


def problem_of(form: Form, modifiers: tuple[str, ...], target: Target) -> str | None:
    """What a target lacks for an instance of a form; None if it has all, or is not known."""
    version, architectures = needs(form, modifiers)
    if version > target.version:
        return f"needs PTX {written(version)}, this is PTX {written(target.version)}"
    if target.architecture not in ARCHITECTURES:
        first = int(architectures[0].rstrip("af"))
        digits = target.architecture.rstrip("af")
        is_older = digits.isdigit() and int(digits) < min(first, 75)
        return (
            f"needs sm_{architectures[0]}, this is sm_{target.architecture}"
            if is_older and first > 75
            else None
        )
    if target.architecture not in architectures:
        return f"needs {_described(architectures)}, this is sm_{target.architecture}"
    return None


def _described(architectures: tuple[str, ...]) -> str:
    """`sm_90 or later`, or the architectures by name where later ones do not all have it."""
    ordered = list(ARCHITECTURES)
    first = architectures[0]
    if list(architectures) == ordered[ordered.index(first) :]:
        return f"sm_{first} or later"
    return "one of " + ", ".join(f"sm_{name}" for name in architectures)
