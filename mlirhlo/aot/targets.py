"""What code is made for ahead of time: triples, and levels of x86-64 processors."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from mlirhlo.diagnostics import HloError, error
from mlirhlo.lowering import target as targets
from mlirhlo.lowering.target import AVX2, AVX512, Target
from mlirhlo.runtime import jit
from mlirhlo.runtime.jit import Cpu

HOST = "x86_64-unknown-linux-gnu"
"""The triple that is compiled for unless another one is named."""

TRIPLES = (
    HOST,
    "x86_64-pc-windows-msvc",
    "x86_64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "arm64-apple-darwin",
    "riscv64-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
    "loongarch64-unknown-linux-gnu",
    "wasm64-unknown-unknown",
)
"""Triples with addresses of 64 bits and little-endian numbers, which generated code counts on."""

_V2 = frozenset({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"})
_V3 = _V2 | AVX2.features | {"bmi", "bmi2", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | AVX512.features | {"avx512cd"}
_LEVELS = {
    "x86-64-v2": Target(16, 16, _V2),
    "x86-64-v3": replace(AVX2, features=_V3),
    "x86-64-v4": replace(AVX512, features=_V4),
}
NATIVE = "native"
"""The processor of this machine."""
DEFAULT_MARCH = "x86-64-v3"


@dataclass(frozen=True, slots=True)
class Variant:
    """A processor that code is made for."""

    name: str
    cpu: Cpu
    target: Target
    level: int
    """Of x86-64 that the processor has to have: 2, 3 or 4; 0 where nothing is checked."""

    @property
    def attributes(self) -> dict[str, str]:
        """Function attributes that choose the processor."""
        return {
            "prefer-vector-width": "512",
            "target-cpu": self.cpu.name,
            "target-features": self.cpu.features,
        }


def available_triples() -> tuple[str, ...]:
    """The triples of `TRIPLES` that this LLVM has a code generator for."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_all_targets()
    found: list[str] = []
    for triple in TRIPLES:
        try:
            llvm.Target.from_triple(triple)
        except RuntimeError:
            continue
        found.append(triple)
    return tuple(found)


def check_triple(triple: str) -> None:
    """Raises `HloError` HLO0841 for a triple without a code generator."""
    known = available_triples()
    if triple not in known:
        near = get_close_matches(triple, known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise error(
            "HLO0841",
            f"nothing is compiled ahead of time for the target '{triple}'",
            help=f"{hint}hlo-aot --list-targets shows all",
        )


def variants(triple: str, march: Sequence[str]) -> list[Variant]:
    """The processors of a target, the most capable first. Raises `HloError` HLO0841."""
    check_triple(triple)
    if not triple.startswith("x86_64"):
        if march:
            raise error(
                "HLO0841",
                f"--march={','.join(march)}: levels are those of x86-64, not of {triple}",
                help="leave --march out: the code is for the least processor of the target",
            )
        return [Variant("generic", Cpu("generic", "", triple), Target(16, 32), 0)]
    made = [_variant(triple, name) for name in dict.fromkeys(march or (DEFAULT_MARCH,))]
    return sorted(made, key=lambda v: (-v.level, v.name != NATIVE))


def _variant(triple: str, name: str) -> Variant:
    if name == NATIVE:
        return _native(triple)
    target = _LEVELS.get(name)
    if target is None:
        raise _unknown(name)
    features = ",".join(f"+{feature}" for feature in sorted(target.features))
    return Variant(name, Cpu(name, features, triple), target, int(name[-1]))


def _native(triple: str) -> Variant:
    if platform.machine() != "x86_64":
        raise error(
            "HLO0841",
            "--march=native: this machine is no x86-64",
            help=f"choose one of {', '.join(_LEVELS)}",
        )
    # Tile registers have to be requested from the system by every process.
    host, cpu = targets.host(), jit.host()
    features = frozenset(f for f in host.features if not f.startswith("amx"))
    spelled = ",".join(f for f in cpu.features.split(",") if not f.startswith("+amx"))
    levels = [int(n[-1]) for n, level in _LEVELS.items() if level.features <= features]
    target = replace(host, features=features)
    return Variant(NATIVE, Cpu(cpu.name, spelled, triple), target, max(levels, default=0))


def _unknown(name: str) -> HloError:
    names = [*_LEVELS, NATIVE]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return error(
        "HLO0841", f"unknown processor '--march={name}'", help=f"{hint}there are {', '.join(names)}"
    )
