"""What the reader knows of each opcode, and how one attribute value becomes a property.

Everything comes from the opcode table; here are only the rules of loading: defaults are dropped,
empty values that XLA does not keep disappear. Frame numbers without a row stay: pieces of a module
are dumped without the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributesAttr,
    MetadataAttr,
    ResultAccuracyAttr,
    StatisticsAttr,
)
from mlirhlo.dialects.hlo.attributes.base import str_of
from mlirhlo.dialects.hlo.attributes.dimensions import WindowAttr
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.hlo.syntax import Cursor
from mlirhlo.dialects.hlo.table import OPCODES, Arity, AttrSpec
from mlirhlo.formats.hlo_text.reader_checks import CHECKS, OPTIONAL_AFTER_ALL
from mlirhlo.formats.hlo_text.reader_state import OpcodeInfo

CONTROL = "control-predecessors"


@lru_cache(maxsize=4096)
def opcode_info(opcode: str) -> OpcodeInfo | None:
    """The reader's view of an opcode; None for an unknown one."""
    row = OPCODES.get(opcode)
    if row is None:
        return None
    required = tuple(
        spec.key
        for spec in row.attributes
        if spec.required and (opcode, spec.key) not in OPTIONAL_AFTER_ALL
    )
    arity = row.arity if isinstance(row.arity, int) else -1
    check = CHECKS.get(opcode)
    if check is None and isinstance(row.arity, Arity):
        check = CHECKS.get(row.arity)
    return OpcodeInfo(row, OP_CLASSES[opcode], row.specs, required, arity, check)


@lru_cache(maxsize=4096)
def _default(spec: AttrSpec) -> Attribute | None:
    return None if spec.default is None else spec.kind.read(Cursor(spec.default))


def keeps_for_check(spec: AttrSpec) -> bool:
    """Whether a value that is read but never stored is still shown to the opcode's check."""
    return spec.read_only and spec.kind.names_computations


def settle(spec: AttrSpec, value: Attribute) -> Attribute | None:
    """The property that `value` is loaded as; None when it says nothing."""
    if spec.read_only and not keeps_for_check(spec):
        return None
    if spec.default is not None:
        return None if value == _default(spec) else value
    normalise = _NORMALISE.get(spec.kind.name)
    return value if normalise is None else normalise(value)


def _metadata(value: Attribute) -> Attribute | None:
    data = cast(MetadataAttr, value).data
    if data.stack_frame_id < 0:
        data = replace(data, stack_frame_id=0)
        return MetadataAttr(data)
    return value


def _frontend_attributes(value: Attribute) -> Attribute | None:
    return value if cast(FrontendAttributesAttr, value).data.entries else None


def _statistics(value: Attribute) -> Attribute | None:
    return value if cast(StatisticsAttr, value).data.entries else None


def _accuracy(value: Attribute) -> Attribute | None:
    data = cast(ResultAccuracyAttr, value).data
    return None if data.mode == "default" and data.tolerance is None else value


def _window(value: Attribute) -> Attribute | None:
    return value if cast(WindowAttr, value).data.dimensions else None


def _precisions(value: Attribute) -> Attribute | None:
    words = cast("ArrayAttr[Attribute]", value).data
    return None if all(str_of(word) == "default" for word in words) else value


def _bytes(value: Attribute) -> Attribute | None:
    return value if str_of(value) else None


_NORMALISE: Mapping[str, Callable[[Attribute], Attribute | None]] = {
    kinds.METADATA.name: _metadata,
    kinds.FRONTEND_ATTRIBUTES.name: _frontend_attributes,
    kinds.STATISTICS.name: _statistics,
    kinds.RESULT_ACCURACY.name: _accuracy,
    kinds.WINDOW.name: _window,
    kinds.PRECISIONS.name: _precisions,
    kinds.BYTES.name: _bytes,
}
