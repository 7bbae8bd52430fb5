"""Chips as data: a TOML file each, whose facts cite public sources.

chip("h100").matrix["bf16"]      # 989.4e12 operations a second
chip("./mine.toml")              # a file of one's own; `base` names the chip that it differs from
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from typing import Any, Literal, TypeAlias, cast

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.model import LAUNCH_NS

with LATE:
    from mlirhlo.mosaic import chips


Topology: TypeAlias = Literal["ring", "torus", "switch"]
TOPOLOGIES: tuple[Topology, ...] = ("ring", "torus", "switch")
_MAX_BASES = 8
_TERA, _GIGA, _KILO = 1e12, 1e9, 1e3


@dataclass(frozen=True, slots=True)
class Link:
    """How chips are joined."""

    topology: Topology
    bandwidth: float
    """Bytes a second that one link moves in one direction; with a switch, all that a chip sends."""
    latency_ns: float
    """Of one hop."""
    mesh: tuple[int, ...] = ()
    """Chips along each axis of a torus."""


@dataclass(frozen=True, slots=True)
class Chip:
    """What a chip can do; rates are operations and bytes a second."""

    name: str
    description: str
    sources: tuple[str, ...]
    memory_bandwidth: float
    memory_bytes: float
    vector: Mapping[str, float]
    """Of arithmetic on elements, by element type."""
    matrix: Mapping[str, float]
    """Of products of matrices and convolutions, by element type."""
    link: Link
    launch_ns: float = 0.0
    """What each kernel takes beside its work."""
    transcendental_operations: float = 20.0
    """Operations that an elementary function counts as."""
    nanoseconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Measured costs of a unit of each kind of work (`mlirhlo.debug.cost.kernels`), where there are any."""

    def vector_rate(self, element: str) -> float:
        """Operations a second on elements of a type."""
        return _rate(self.vector, element)

    def matrix_rate(self, element: str) -> float:
        """Operations a second in products of a type."""
        return _rate(self.matrix, element)


_WIDER: Mapping[str, Sequence[str]] = {
    "f4": ("f4", "f8"), "f8": ("f8", "bf16"), "s4": ("s4", "s8"), "u4": ("s4", "s8"), "u8": ("s8",),
    "bf16": ("bf16", "f16"), "f16": ("f16", "bf16"), "c128": ("f64",), "s64": ("s64", "f64"), "u64": ("s64", "f64"),
}  # fmt: skip
"""Types whose rate a type has, by the start of its name; after them that of f32."""


def _rate(rates: Mapping[str, float], element: str) -> float:
    if element in rates:
        return rates[element]
    names = next((names for start, names in _WIDER.items() if element.startswith(start)), ())
    return next((rates[name] for name in names if name in rates), rates["f32"])


def chip_names() -> tuple[str, ...]:
    """Chips that are described here."""
    folder = resources.files("mlirhlo.debug.cost") / "chips"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir()))


def chip(name: str) -> Chip:
    """The chip of a name, or of a file. Raises `HloError` HLO0870."""
    return _chip(os.path.basename(name).removesuffix(".toml"), _table(name, 0), name)


def _table(name: str, depth: int) -> dict[str, Any]:
    """The tables of a chip, over those of its base."""
    if name.partition(":")[0] in ("gpu", "tpu"):
        return _described_elsewhere(name)
    table = _read(name)
    if "base" not in table:
        return table
    if depth > _MAX_BASES:
        raise error("HLO0870", f"{name}: the chips that it is based on have no end")
    merged = _table(str(table.pop("base")), depth + 1)
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = {**merged[key], **cast("dict[str, Any]", value)}
        else:
            merged[key] = value
    return merged


def _read(name: str) -> dict[str, Any]:
    names = chip_names()
    if name in names:
        text = (resources.files("mlirhlo.debug.cost") / "chips" / f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as problem:
            raise error("HLO0870", f"cannot read '{name}': {problem}") from None
    else:
        near = get_close_matches(name.lower(), names, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        known = f"{hint}there are {', '.join(names)}, and files FILE.toml"
        raise error("HLO0870", f"no chip is named '{name}'", help=known)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise error("HLO0870", f"{name}: {problem}") from None


def _described_elsewhere(name: str) -> dict[str, Any]:
    """What the compiler for GPUs and the kernel language know of a chip."""
    kind, _, model = name.partition(":")
    if kind == "gpu":
        gpu = device(model)
        lanes = gpu.core_count * gpu.fpus_per_core
        return {
            "launch": LAUNCH_NS / _KILO,
            "memory": {
                "bandwidth": gpu.memory_bandwidth / _GIGA,
                "capacity": gpu.device_memory_size / _GIGA,
            },
            "vector": {"f32": 2 * lanes * gpu.clock_rate_ghz / _KILO},
        }

    tpu = chips.get_tpu_info(model)
    cores = tpu.chip_version.num_physical_tensor_cores_per_chip
    rates = {
        "bf16": tpu.bf16_ops_per_second,
        "f32": tpu.bf16_ops_per_second,  # one pass in bf16, unless more precision is asked for
        "s8": tpu.int8_ops_per_second or tpu.bf16_ops_per_second,
        "f8": tpu.fp8_ops_per_second or tpu.bf16_ops_per_second,
        "s4": tpu.int4_ops_per_second,
    }
    return {
        "memory": {
            "bandwidth": tpu.mem_bw_bytes_per_second * cores / _GIGA,
            "capacity": tpu.hbm_capacity_bytes * cores / _GIGA,
        },
        "matrix": {key: rate * cores / _TERA for key, rate in rates.items() if rate},
    }


_KEYS = ("description", "sources", "launch", "transcendental_operations")
_TABLES = ("memory", "vector", "matrix", "link", "nanoseconds")


def _chip(name: str, table: Mapping[str, Any], file: str) -> Chip:
    unknown = [key for key in table if key not in (*_KEYS, *_TABLES)]
    if unknown:
        keys = f"keys are base, {', '.join((*_KEYS, *_TABLES))}"
        raise error("HLO0870", f"{file}: unknown key '{unknown[0]}'", help=keys)
    try:
        memory, link = table["memory"], table["link"]
        vector = _rates(table["vector"], _TERA)
        made = Chip(
            name,
            str(table.get("description", name)),
            tuple(map(str, table.get("sources", ()))),
            _positive(memory["bandwidth"]) * _GIGA,
            _positive(memory["capacity"]) * _GIGA,
            vector,
            {**vector, **_rates(table.get("matrix", {}), _TERA)},
            Link(
                link["topology"],
                _positive(link["bandwidth"]) * _GIGA,
                float(link["latency"]) * _KILO,
                tuple(int(_positive(n)) for n in link.get("mesh", ())),
            ),
            float(table.get("launch", 0)) * _KILO,
            float(table.get("transcendental_operations", 20)),
            {key: float(value) for key, value in table.get("nanoseconds", {}).items()},
        )
        if "f32" not in vector:
            raise KeyError("vector.f32")
    except KeyError as problem:
        missing = str(problem).strip("'")
        raise error("HLO0870", f"{file}: the description has no '{missing}'") from None
    except (TypeError, ValueError, AttributeError) as problem:
        raise error("HLO0870", f"{file}: {problem}") from None
    if made.link.topology not in TOPOLOGIES:
        raise error(
            "HLO0870",
            f"{file}: no topology is named '{made.link.topology}'",
            help=f"there are {', '.join(TOPOLOGIES)}",
        )
    return made


def _rates(table: Mapping[str, Any], unit: float) -> dict[str, float]:
    return {key: _positive(value) * unit for key, value in table.items()}


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{value} is no positive number")
    return number
