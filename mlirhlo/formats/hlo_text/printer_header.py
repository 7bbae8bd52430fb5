"""The first line of a module."""

from __future__ import annotations

from typing import Any, cast

from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, str_of
from mlirhlo.dialects.hlo.module import HEADER_PREFIX, HloModule
from mlirhlo.formats.hlo_text.options import PrintOptions

_NOT_IN_TEXT = frozenset(("stack_frames", "raw_attributes"))


def print_header(module: HloModule, options: PrintOptions) -> str:
    """`HloModule name, attributes`, without the line's end."""
    parts = [module.name if options.ids else ""]
    known: set[str] = set()

    def add(key: str, text: str | None) -> None:
        known.add(key)
        if text is not None:
            parts.append(f"{key}={text}")

    def value(key: str) -> None:
        attribute = module.get(key)
        add(key, None if attribute is None else str(cast(Any, attribute).data))

    def flag(key: str) -> None:
        add(key, "true" if bool_of(module.get(key)) else None)

    def count(key: str) -> None:
        number = int_of(module.get(key), 1)
        add(key, str(number) if number != 1 else None)

    flag("is_scheduled")
    value("input_output_alias")
    value("buffer_donor")
    flag("alias_passthrough_params")
    layout = str(module.program_layout) if any(True for _ in module.computations) else "{()->()}"
    add("entry_computation_layout", layout)
    value("allow_spmd_sharding_propagation_to_parameters")
    value("allow_spmd_sharding_propagation_to_output")
    count("replica_count")
    count("num_partitions")
    value("frontend_attributes")
    value("origin_recovery_table")
    # What libtpu prints and jaxlib does not know is carried through as text.
    for key in module.op.attributes:
        name = key.removeprefix(HEADER_PREFIX)
        is_ours = key.startswith(HEADER_PREFIX) and not name.startswith("proto")
        if is_ours and name not in known and name not in _NOT_IN_TEXT:
            value(name)
    raw = module.get("raw_attributes")
    if raw is not None:
        parts.append(str_of(raw))
    text = "HloModule " + ", ".join(parts)
    return text + "\n" if module.get("origin_recovery_table") is not None else text
