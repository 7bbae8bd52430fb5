"""Attributes every instruction may carry: metadata, frontend attributes, statistics, origin, accuracy.

Source of every syntax: HLO text, "Attributes every instruction may carry".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, TypeAlias

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.syntax import (
    Cursor,
    SyntaxProblem,
    braces,
    escape,
    is_json_dictionary,
    key_text,
    quote,
)

_MAX_NESTING = 200


def format_g(value: float) -> str:
    """`%g`: 6 significant digits, as XLA prints float attributes."""
    return f"{value:g}"


# ---------------------------------------------------------------- metadata


@dataclass(frozen=True, slots=True)
class Metadata:
    """`{op_type="…" op_name="…" source_file="…" source_line=3 stack_frame_id=2}`."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: tuple[int, ...] = ()
    deduplicated_name: str = ""
    scheduling_name: str = ""
    stack_frame_id: int = 0
    """1-based row of StackFrames; 0 = none."""
    metadata_payload: str = ""
    proto_rest: str = ""
    """Fields only the proto has, serialised, as a latin-1 string; never in HLO text."""

    @property
    def is_printed(self) -> bool:
        """Whether XLA prints it at all: a lone source_line or deduplicated_name disappears."""
        return bool(
            self.op_type
            or self.op_name
            or self.source_file
            or self.scheduling_name
            or self.metadata_payload
            or self.stack_frame_id > 0
        )

    def __str__(self) -> str:
        parts = [
            f'{name}="{escape(value)}"'
            if value.__class__ is str
            else f"{name}={_number_text(value)}"
            for name, value in zip(_METADATA_FIELDS, _metadata_values(self), strict=True)
            if value
        ]
        return "{" + " ".join(parts) + "}"


def _number_text(value: int | tuple[int, ...]) -> str:
    return braces(value) if isinstance(value, tuple) else str(value)


_FORMER_METADATA_FIELDS = frozenset(
    ("preserve_layout", "size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes")
)
"""Printed by versions before 2025, read and dropped; newer XLA has them in the proto only."""

_METADATA_FIELDS: Mapping[str, object] = {f.name: f.default for f in fields(Metadata)}
_metadata_values: Callable[[Metadata], tuple[Any, ...]] = attrgetter(*_METADATA_FIELDS)

_SIMPLE_FIELDS = [key for key, default in _METADATA_FIELDS.items() if default != ()]
_NUMBERS = {key for key, default in _METADATA_FIELDS.items() if default == 0}
_PATTERNS: Mapping[object, str] = {"": r'"([^"\\]*+)"', 0: "([0-9]{1,18}+)"}
_AS_PRINTED = re.compile(
    r"\{"
    + "".join(f"(?:{k}={_PATTERNS[_METADATA_FIELDS[k]]}(?: |(?=}})))?" for k in _SIMPLE_FIELDS)
    + r"\}"
)
"""Fields in XLA's order, none without value, no escapes: nearly all metadata, read in one step."""


def _matched_metadata(match: re.Match[str]) -> Metadata:
    texts = zip(_SIMPLE_FIELDS, match.groups(), strict=True)
    values: dict[str, Any] = {key: text for key, text in texts if text is not None}
    for key in _NUMBERS:
        if key in values:
            values[key] = int(values[key])
    return Metadata(**values)


def printed_metadata(text: str, start: int) -> Metadata | None:
    """The metadata that `text` has from `start` to its end; None unless it is written as XLA prints it."""
    match = _AS_PRINTED.fullmatch(text, start)
    return None if match is None else _matched_metadata(match)


def read_metadata(cursor: Cursor) -> Metadata:
    """Reads `{key=value …}`; blanks or commas between entries. Raises `SyntaxProblem`."""
    if (match := _AS_PRINTED.match(cursor.text, cursor.skip(), cursor.end)) is not None:
        cursor.position = match.end()
        return _matched_metadata(match)
    cursor.expect("{")
    found: dict[str, object] = {}
    while not cursor.accept("}"):
        start = cursor.skip()
        key = cursor.word("a metadata field")
        if key in _FORMER_METADATA_FIELDS:
            cursor.expect("=")
            _ = cursor.boolean() if cursor.peek_word() else cursor.integer()
            cursor.accept(",")
            continue
        default = _METADATA_FIELDS.get(key)
        if default is None:
            allowed = ", ".join(sorted(_METADATA_FIELDS.keys() - {"proto_rest"}))
            raise SyntaxProblem(
                start, f'unexpected attribute "{key}". Allowed attributes: {allowed}', len(key)
            )
        if key in found:
            raise SyntaxProblem(start, f"attribute {key} already exists", len(key))
        cursor.expect("=")
        if isinstance(default, str):
            found[key] = cursor.string()
        elif isinstance(default, tuple):
            found[key] = cursor.integers()
        else:
            found[key] = cursor.integer()
        cursor.accept(",")
    return Metadata(**found)  # type: ignore[arg-type]


@irdl_attr_definition
class MetadataAttr(TextAttr[Metadata]):
    """A `Metadata`."""

    name = "hlo.metadata"
    read = read_metadata


# ---------------------------------------------------------------- frontend attributes


@dataclass(frozen=True, slots=True)
class FrontendAttributes:
    """`{key=value,…}`, sorted by key; a value that is one JSON dictionary prints bare."""

    entries: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(mapping: Mapping[str, str]) -> FrontendAttributes:
        """From a mapping."""
        return FrontendAttributes(tuple(sorted(mapping.items())))

    def __str__(self) -> str:
        parts = (
            f"{key_text(k)}={v if is_json_dictionary(v) else quote(v)}" for k, v in self.entries
        )
        return "{" + ",".join(parts) + "}"


def read_frontend_attributes(cursor: Cursor) -> FrontendAttributes:
    """Reads `{key="value",key={json}}`; the last of equal keys wins. Raises `SyntaxProblem`."""

    def entry() -> tuple[str, str]:
        key = cursor.key("an attribute name")
        cursor.expect("=")
        return key, cursor.json_dictionary() if cursor.peek("{") else cursor.string()

    return FrontendAttributes.of(dict(cursor.items("{", "}", entry)))


@irdl_attr_definition
class FrontendAttributesAttr(TextAttr[FrontendAttributes]):
    """A `FrontendAttributes`."""

    name = "hlo.frontend_attributes"
    read = read_frontend_attributes


# ---------------------------------------------------------------- statistics


@dataclass(frozen=True, slots=True)
class Statistics:
    """`{visualizing_index=0,flops=12}`."""

    visualizing_index: int = 0
    entries: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        parts = [f"visualizing_index={self.visualizing_index}"]
        parts += [f"{key_text(name)}={format_g(value)}" for name, value in self.entries]
        return "{" + ",".join(parts) + "}"


def read_statistics(cursor: Cursor) -> Statistics:
    """Reads `{visualizing_index=I,name=number,…}`. Raises `SyntaxProblem`."""

    def entry() -> tuple[str, float]:
        key = cursor.key("a statistic's name")
        cursor.expect("=")
        return key, cursor.number()

    found = cursor.items("{", "}", entry)
    if not found:
        return Statistics()
    # The first entry is the index, whatever it is called.
    return Statistics(int(found[0][1]), found[1:])


@irdl_attr_definition
class StatisticsAttr(TextAttr[Statistics]):
    """A `Statistics`."""

    name = "hlo.statistics"
    read = read_statistics


# ---------------------------------------------------------------- origin


@dataclass(frozen=True, slots=True)
class OriginalArray:
    """`"name" {i,j}`: a part of an instruction of the module the compiler was given."""

    instruction_name: str
    shape_index: tuple[int, ...] = ()

    def __str__(self) -> str:
        index = " " + braces(self.shape_index) if self.shape_index else ""
        return quote(self.instruction_name) + index


OriginTree: TypeAlias = "OriginalArray | tuple[OriginTree, ...] | None"
"""A leaf, an unknown leaf (None), or a tuple of trees."""


@dataclass(frozen=True, slots=True)
class Origin:
    """`origin={tree}`: which values of the original module this one is; or a synthetic call."""

    tree: OriginTree = None
    synthetic_call: bool = False
    call_hierarchy: str = ""
    """libtpu 0.0.51 on."""

    def __str__(self) -> str:
        if self.synthetic_call:
            return "{[synthetic_call]}"
        tail = f", {quote(self.call_hierarchy)}" if self.call_hierarchy else ""
        return "{" + _origin_text(self.tree) + tail + "}"


def _origin_text(tree: OriginTree) -> str:
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(_origin_text, tree)) + ")"
    return "{}" if tree is None else "{" + str(tree) + "}"


def read_original_array(cursor: Cursor) -> OriginalArray:
    """Reads `"name" {i,j}`. Raises `SyntaxProblem`."""
    name = cursor.string()
    return OriginalArray(name, cursor.integers() if cursor.peek("{") else ())


def read_origin(cursor: Cursor) -> Origin:
    """Reads `{tree}`, `{[synthetic_call]}` or `{}` (one unknown tuple). Raises `SyntaxProblem`."""

    def tree(depth: int) -> OriginTree:
        if depth > _MAX_NESTING:
            raise cursor.problem(f"origin nested deeper than {_MAX_NESTING}")
        if cursor.peek("("):
            return cursor.items("(", ")", lambda: tree(depth + 1))
        cursor.expect("{")
        leaf = None if cursor.peek("}") else read_original_array(cursor)
        cursor.expect("}")
        return leaf

    cursor.expect("{")
    if cursor.accept("["):
        if cursor.word() != "synthetic_call":
            raise cursor.problem("expects 'synthetic_call'")
        cursor.expect("]")
        cursor.expect("}")
        return Origin(synthetic_call=True)
    if cursor.accept("}"):
        return Origin(())
    found = tree(0)
    hierarchy = cursor.string() if cursor.accept(",") else ""
    cursor.expect("}")
    return Origin(found, call_hierarchy=hierarchy)


@irdl_attr_definition
class OriginAttr(TextAttr[Origin]):
    """An `Origin`."""

    name = "hlo.origin"
    read = read_origin


# ---------------------------------------------------------------- result accuracy


@dataclass(frozen=True, slots=True)
class ResultAccuracy:
    """`{mode=highest}` or `{tolerance={atol=x,rtol=y,ulps=n}}`."""

    mode: str = "default"
    tolerance: tuple[float, float, int] | None = None
    """Absolute, relative, and in units in the last place."""

    def __str__(self) -> str:
        if self.tolerance is None:
            return f"{{mode={self.mode}}}"
        atol, rtol, ulps = self.tolerance
        return f"{{tolerance={{atol={format_g(atol)},rtol={format_g(rtol)},ulps={ulps}}}}}"


def read_result_accuracy(cursor: Cursor) -> ResultAccuracy:
    """Reads `{mode=…}` or `{tolerance={…}}`. Raises `SyntaxProblem`."""
    cursor.expect("{")
    key = cursor.word("'mode' or 'tolerance'")
    cursor.expect("=")
    if key == "mode":
        start = cursor.skip()
        mode = cursor.word().lower()
        if mode not in ("default", "highest"):
            raise SyntaxProblem(
                start, f"accuracy mode is 'default' or 'highest', found {mode!r}", len(mode)
            )
        cursor.expect("}")
        return ResultAccuracy(mode)
    if key != "tolerance":
        raise cursor.problem("expects 'mode' or 'tolerance'")

    def entry() -> tuple[str, float]:
        name = cursor.word("atol, rtol or ulps")
        if name not in ("atol", "rtol", "ulps"):
            raise cursor.problem("expects atol, rtol or ulps")
        cursor.expect("=")
        return name, cursor.number()

    values = dict(cursor.items("{", "}", entry))
    cursor.expect("}")
    return ResultAccuracy(
        tolerance=(values.get("atol", 0.0), values.get("rtol", 0.0), int(values.get("ulps", 0)))
    )


@irdl_attr_definition
class ResultAccuracyAttr(TextAttr[ResultAccuracy]):
    """A `ResultAccuracy`."""

    name = "hlo.result_accuracy"
    read = read_result_accuracy
