"""What is known of TensorFlow's operations: `ops.toml` (from its registries) and `facts.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Argument:
    """An input or output of an operation: its types by attribute, or one fixed type."""

    name: str
    number: str
    """The attribute that says how many there are; empty for one."""
    kind: str
    """The attribute of the type; `=float` is a type; `*Tin` an attribute with a list of types."""

    @classmethod
    def parse(cls, text: str) -> Argument:
        """Reads `values:N*T`."""
        name, _, kind = text.partition(":")
        number, star, rest = kind.partition("*")
        return cls(name, number, rest) if star and number else cls(name, "", kind)


@dataclass(frozen=True, slots=True)
class Op:
    """An operation that XLA has a kernel for."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    types: Mapping[str, frozenset[str]]
    """The element types that the kernel takes, by attribute."""
    is_stateful: bool


@dataclass(frozen=True, slots=True)
class HostMemory:
    """An operation whose kernel on CPUs has arguments or results in host memory."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    names: frozenset[str]


@dataclass(frozen=True)
class Table:
    """All operations with kernels of XLA's on CPUs, and what else clustering knows of operations."""

    ops: Mapping[str, Op]
    references: frozenset[str]
    """Operations with a result that is a reference to a variable of TensorFlow 1."""
    xla_only: frozenset[str]
    """Operations that TensorFlow itself cannot run on CPUs."""
    excluded: Mapping[str, str]
    """Operations that are never clustered, with the reason."""
    resources: Mapping[str, str]
    """`read`, `write` or `modify`: what an operation does to its variable."""
    constant_inputs: Mapping[str, frozenset[str]]
    """Names of the inputs whose values are needed while compiling."""
    host_memory: Mapping[str, HostMemory]
    groups: Mapping[str, frozenset[str]]
    """Operations by the names that `--tf_xla_ops_to_cluster` takes."""


@cache
def table() -> Table:
    """The table, read once."""
    folder = Path(__file__).parent
    rows = tomllib.loads((folder / "ops.toml").read_text())
    facts = tomllib.loads((folder / "facts.toml").read_text())
    sets = {name: frozenset(types.split()) for name, types in rows["sets"].items()}
    groups = {name: frozenset(ops.split()) for name, ops in facts["groups"].items()}
    groups["FUSIBLE"] = frozenset().union(*groups.values())
    constant: dict[str, set[str]] = {}
    for name, ops in facts["constant_inputs"].items():
        for op in ops.split():
            constant.setdefault(op, set()).add(name)
    return Table(
        {name: _op(row, sets) for name, row in rows["ops"].items()},
        frozenset(rows["references"]),
        frozenset(rows["xla_only"]),
        _by_op(facts["excluded"]),
        _by_op(facts["resources"]),
        {op: frozenset(names) for op, names in constant.items()},
        {
            name: HostMemory(
                _arguments(row["in"]), _arguments(row["out"]), frozenset(row["host"].split())
            )
            for name, row in rows["host_memory"].items()
        },
        groups,
    )


def _op(row: Mapping[str, Any], sets: Mapping[str, frozenset[str]]) -> Op:
    return Op(
        _arguments(row["in"]),
        _arguments(row["out"]),
        {name: sets[key] for name, key in row["types"].items()},
        row.get("stateful", False),
    )


def _arguments(text: str) -> tuple[Argument, ...]:
    return tuple(map(Argument.parse, text.split()))


def _by_op(names: Mapping[str, str]) -> dict[str, str]:
    return {op: key for key, ops in names.items() for op in ops.split()}
