"""What follows the operands of an instruction, as text; each attribute value is formatted once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.base import str_of
from mlirhlo.dialects.hlo.attributes.header import StackFrames
from mlirhlo.dialects.hlo.attributes.sharding import Sharding
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.syntax import is_json_dictionary, quote
from mlirhlo.dialects.hlo.table import COMMON_AFTER, COMMON_BEFORE, AttrSpec, Opcode
from mlirhlo.formats.hlo_text.options import PrintOptions

Writer = Callable[[Attribute], str]
"""From an attribute to `, key=text`, or nothing."""

_CONFIGS = ("infeed_config", "outfeed_config")
_MAIN_THREAD = "main"


class AttributeWriter:
    """Writes attributes under one set of options; holds the texts of values met before."""

    def __init__(self, options: PrintOptions, frames: StackFrames | None = None) -> None:
        self.options, self.frames = options, frames
        self.before = self._common(COMMON_BEFORE)
        self.after = self._common(COMMON_AFTER)
        self.common = frozenset(key for key, _ in (*self.before, *self.after))
        """Properties that any instruction may have and that are shown."""
        self._rows: dict[str, list[tuple[AttrSpec, str, Writer | None]]] = {}

    # -------------------------------------------------------------- rows

    def row(self, opcode: Opcode) -> list[tuple[AttrSpec, str, Writer | None]]:
        """Attributes of an opcode in print order: spec, property name, writer.

        Those that name computations have no writer: the caller prints them.
        """
        row = self._rows.get(opcode.name)
        if row is None:
            row = self._rows[opcode.name] = [
                (
                    spec,
                    spec.property_name,
                    None if spec.kind.names_computations else self._writer(spec),
                )
                for spec in opcode.attributes
                if self._is_shown(opcode, spec)
            ]
        return row

    def _is_shown(self, opcode: Opcode, spec: AttrSpec) -> bool:
        options = self.options
        if spec.read_only:
            return False
        if spec.key == "async_execution_thread" and opcode.name != "async-start":
            return False  # only the start says it
        if not options.extra_attributes:
            return spec.kind.names_computations or spec.key == "is_composite"
        if spec.key == "channel_id":
            return options.channel_ids
        return options.infeed_outfeed_config or spec.key not in _CONFIGS

    def _common(self, specs: tuple[AttrSpec, ...]) -> list[tuple[str, Writer]]:
        options = self.options
        hidden = {
            key
            for key, shown in (
                ("sharding", options.sharding),
                ("frontend_attributes", options.frontend_attributes),
                ("origin", options.origin),
                ("metadata", options.metadata),
                ("backend_config", options.backend_config),
            )
            if not shown
        }
        return [(s.property_name, self._writer(s)) for s in specs if s.key not in hidden]

    def _writer(self, spec: AttrSpec) -> Writer:
        prefix = f", {spec.key}="
        special: Mapping[str, Callable[[Attribute], str | None]] = {
            "metadata": self._metadata,
            "sharding": self._sharding,
            "backend_config": self._backend_config,
            "replica_groups": self._replica_groups,
            "async_execution_thread": self._thread,
            "statistics": self._statistics,
            "domain": self._domain,
        }
        write = special.get(spec.key, spec.kind.write)
        known: dict[int, str] = {}

        def cached(attribute: Attribute) -> str:
            text = known.get(id(attribute))
            if text is None:
                value = write(attribute)
                text = known[id(attribute)] = "" if value is None else prefix + value
            return text

        return cached

    # -------------------------------------------------------------- values

    def _metadata(self, attribute: Attribute) -> str | None:
        metadata: Metadata = cast(Any, attribute).data
        if not metadata.is_printed:
            return None
        if self.options.metadata_only_op_name:
            return f"{{op_name={quote(metadata.op_name)}}}" if metadata.op_name else None
        if self.options.inline_stack_frames and metadata.stack_frame_id > 0:
            metadata = self._inlined(metadata)
        return str(replace(metadata, proto_rest="") if metadata.proto_rest else metadata)

    def _inlined(self, metadata: Metadata) -> Metadata:
        frames, number = self.frames, metadata.stack_frame_id
        if frames is None or number > len(frames.stack_frames):
            return metadata
        place = frames.stack_frames[number - 1].file_location_id
        if not 0 < place <= len(frames.file_locations):
            return metadata
        row = frames.file_locations[place - 1]
        name = row.file_name_id
        return replace(
            metadata,
            source_file=frames.file_names[name - 1] if 0 < name <= len(frames.file_names) else "",
            source_line=row.line,
            source_column=row.column,
            stack_frame_id=0,
        )

    def _sharding(self, attribute: Attribute) -> str:
        sharding: Sharding = cast(Any, attribute).data
        return sharding.to_text(self.options.metadata)

    def _domain(self, attribute: Attribute) -> str:
        domain: k.Domain = cast(Any, attribute).data
        sides = (domain.entry.to_text(False), domain.exit.to_text(False))
        return f'{{kind="sharding", entry={sides[0]}, exit={sides[1]}}}'

    def _backend_config(self, attribute: Attribute) -> str | None:
        text = str_of(attribute)
        if not text:
            return None
        if not is_json_dictionary(text):
            return quote(text)
        if self.options.sorted_backend_config:
            try:
                return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
            except ValueError:
                return text
        return text

    def _replica_groups(self, attribute: Attribute) -> str:
        groups: Any = cast(Any, attribute).data
        return str(groups.expanded() if self.options.full_replica_groups else groups)

    def _thread(self, attribute: Attribute) -> str | None:
        name = str_of(attribute)
        return quote(name) if name and name != _MAIN_THREAD else None

    def _statistics(self, attribute: Attribute) -> str | None:
        statistics: Any = cast(Any, attribute).data
        return str(statistics) if statistics.entries else None


def default_text(op: Instruction, spec: AttrSpec) -> str:
    """Text of an absent attribute that XLA prints all the same; empty for others."""
    if spec.key == "outfeed_shape":
        return f", {spec.key}={op.input_shapes[0]}" if op.inputs else ""
    if spec.always and spec.default is not None:
        return f", {spec.key}={spec.default}"
    if spec.required and spec.kind is k.INTEGERS:
        return f", {spec.key}={{}}"
    return ""
