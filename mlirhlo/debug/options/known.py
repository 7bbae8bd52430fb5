"""Every flag that XLA knows: fields of `DebugOptions`, rows of `xla_flags.tsv`, the TPU compiler's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.debug.options.fields import ALIASES, flag_fields, info_of
from mlirhlo.debug.options.values import Value, from_text

OTHER_COMPILERS = ("xla_tpu_", "xla_jf_", "xla_mosaic_", "xla_sc_", "xla_msa_", "xla_lhs_")
"""Prefixes of flags of the TPU compiler, which are no fields of XLA's DebugOptions."""

FUEL = "xla_fuel"
"""`--xla_fuel=PASS=N` is a flag, but no field either."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field of XLA's DebugOptions."""

    name: str
    type: str
    default: Value | None
    """None for messages, whose value is kept as text."""


@functools.cache
def xla_rows() -> Mapping[str, Row]:
    """All fields of XLA's message by name, in the order in which dumps list them."""
    from importlib import resources

    table = resources.files("mlirhlo.debug.options") / "xla_flags.tsv"
    rows: dict[str, Row] = {}
    for line in table.read_text().splitlines():
        if not line.startswith("#"):
            name, kind, text = line.split("\t")
            rows[name] = Row(name, kind, None if kind == "message" else from_text(text, kind))
    return rows


def type_of(name: str) -> str | None:
    """Type of a flag by the name of today; None for one that nobody knows."""
    member = flag_fields().get(name)
    if member is not None:
        return info_of(member).type
    row = xla_rows().get(name)
    return None if row is None else row.type


def is_of_other_compiler(name: str) -> bool:
    """Whether it is the TPU compiler's."""
    return name.startswith(OTHER_COMPILERS)


def nearest(name: str) -> str | None:
    """The known flag that is spelled most like `name`."""
    from difflib import get_close_matches

    known = [
        *(n for n, member in flag_fields().items() if info_of(member).is_flag),
        *xla_rows(),
        *ALIASES,
        FUEL,
    ]
    near = get_close_matches(name.lower().replace("-", "_"), known, n=1)
    return near[0] if near else None
