"""Pieces of instruction lines that were seen before: types, attributes, whole attribute lists.

A dump of 100,000 instructions has some hundred shapes and some thousand attributes, so the quick
way of reading looks pieces up by their text. A piece that the quick way cannot cut or read is
`None`: the general way then reads the instruction and says what is wrong, if anything is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.attributes.annotations import MetadataAttr, printed_metadata
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, parse_shape
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem
from mlirhlo.dialects.hlo.table import COMMON, AttrSpec, DeclaredShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.hlo_text.reader_attributes import (
    CONTROL,
    keeps_for_check,
    opcode_info,
    settle,
)
from mlirhlo.formats.hlo_text.reader_state import ModuleState, OpcodeInfo

_STRING = r'"(?>[^"\\\r\n]+|\\.)*+"'
_COMMENT = r"/\*[^*/\r\n]*+\*/"


def _braces(depth: int) -> str:
    inner = "|" + _braces(depth - 1) if depth else ""
    return rf'\{{(?>[^{{}}"/\r\n]+|{_STRING}|{_COMMENT}{inner})*+\}}'


def _parentheses(depth: int) -> str:
    inner = "|" + _parentheses(depth - 1) if depth else ""
    return rf'\((?>[^()"\r\n]+{inner})*+\)'


_BRACES = _braces(7)
ATTRIBUTE = re.compile(
    rf", ([A-Za-z_][A-Za-z0-9_.\-]*+)=(?:({_BRACES})(?=,|$)|((?>[^,{{}}\"'()\[\]/\r\n]+|{_STRING}|'[^'\\\r\n]*+'"
    rf"|{_BRACES}|\[[^\[\]{{}}\"\r\n]*+\]|{_parentheses(2)})++))"
)
"""One attribute, cut at top-level commas: key, value in one pair of braces, or any other value."""

_INDEX_COMMENT = re.compile(r"/\*index=[0-9]+\*/")
_TYPED_OPERAND = re.compile(
    r"(?:([^%,(][^%, ]*+|\([^%]*\)) )?(%[A-Za-z_][A-Za-z0-9_.\-]*+)(?:, |$)"
)

MEMO_CHARACTERS = 512
"""Longest attribute list that is remembered as a whole; single values are up to four times that."""

_LONG_STRING = 256

Properties = dict[str, Attribute]


class OpcodePieces:
    """One opcode while one module is read."""

    __slots__ = (
        "arity",
        "check",
        "cls",
        "info",
        "lists",
        "name",
        "readers",
        "redeclares",
        "required",
    )

    def __init__(self, info: OpcodeInfo, common: Mapping[str, tuple[AttrSpec, Memo]]) -> None:
        self.info = info
        self.name = info.row.name
        self.cls, self.arity, self.check = info.cls, info.arity, info.check
        self.required = frozenset(info.required)
        self.redeclares = info.row.declared_shape is not DeclaredShape.KEPT
        """Whether a declared shape may be replaced."""
        self.lists: dict[str, Properties] = {}
        """Properties by attribute list."""
        self.readers: dict[str, tuple[AttrSpec, Memo]] = {
            key: common.get(key) or (spec, {}) for key, spec in info.specs.items()
        }


Memo = dict[str, tuple[Attribute | None]]
"""Property by value text; a memoised None is a value that is dropped."""


class Pieces:
    """All pieces of one module."""

    def __init__(self, state: ModuleState) -> None:
        self.state = state
        self.types: dict[str, Attribute] = {}
        self.opcodes: dict[str, OpcodePieces] = {}
        self.tails: dict[str, Properties] = {}
        """Properties by attribute list from `metadata=` on, which no opcode has for itself."""
        self.literals: dict[tuple[str, str], tuple[Attribute, Attribute]] = {}
        self._common: dict[str, tuple[AttrSpec, Memo]] = {spec.key: (spec, {}) for spec in COMMON}

    def opcode(self, name: str) -> OpcodePieces | None:
        """Pieces of an opcode; None when it is unknown."""
        info = opcode_info(name)
        if info is None:
            return None
        found = self.opcodes[name] = OpcodePieces(info, self._common)
        return found

    def type(self, text: str) -> Attribute | None:
        """The type that `text` spells."""
        if "//" in text:
            return None
        try:
            found = type_of(self._shape(text))
        except SyntaxProblem:
            return None
        self.types[text] = found
        return found

    def _shape(self, text: str) -> ArrayShape | TupleShape:
        return cast("ArrayShape | TupleShape", parse_shape(text))

    def constant(
        self, shape: str, type_: Attribute, text: str
    ) -> tuple[Attribute, Attribute] | None:
        """Type and value of a constant; the type has lost its dynamic marks."""
        key = (shape, text)
        found = self.literals.get(key)
        if found is None:
            if "//" in text:
                return None
            try:
                literal = Literal.from_text(shape_of(type_), text)
            except SyntaxProblem:
                return None
            found = (type_of(literal.shape), LiteralAttr(literal))
            if len(text) <= 64:
                self.literals[key] = found
        return found

    def operands(self, text: str, values: Mapping[str, SSAValue]) -> list[SSAValue] | None:
        """Operands written in any way but the common one: index comments, shapes, names without `%`."""
        if "/" in text:
            text = _INDEX_COMMENT.sub("", text)
            if "/" in text:
                return None
        if "%" not in text:
            try:
                return [values["%" + name] for name in text.split(", ")]
            except KeyError:
                return None
        if text[0] == "%":
            try:
                return [values[name] for name in text.split(", ")]
            except KeyError:
                return None
        found: list[SSAValue] = []
        position = 0
        while position < len(text):
            match = _TYPED_OPERAND.match(text, position)
            if match is None or match[2] not in values:
                return None
            value = values[match[2]]
            # A shape that is written differently may still be compatible: the general way knows.
            if match[1] is not None and self.types.get(match[1]) is not value.type:
                return None
            found.append(value)
            position = match.end()
        return found if text[-2:] != ", " else None

    def properties(
        self, opcode: OpcodePieces, text: str, values: Mapping[str, SSAValue]
    ) -> tuple[Properties, list[SSAValue]] | None:
        """Fresh properties, and control predecessors, of an attribute list `, key=value, …`."""
        at = text.find(", metadata={")
        head, tail = (text, "") if at < 0 else (text[:at], text[at:])
        control: list[SSAValue] = []
        found = opcode.lists.get(head)
        if found is None:
            if (cut := self._cut(opcode, head, values)) is None:
                return None
            found, control, keys = cut
            if not opcode.required <= keys:
                return None
            if len(head) <= MEMO_CHARACTERS and not control:
                opcode.lists[head] = found
        if not tail:
            return found.copy(), control
        rest = self.tails.get(tail)
        if rest is None and (metadata := printed_metadata(tail, len(", metadata="))) is not None:
            rest = cast(Properties, {"metadata": MetadataAttr(metadata)})
            if len(tail) <= MEMO_CHARACTERS:
                self.tails[tail] = rest
        if rest is None:
            if (cut := self._cut(opcode, tail, values)) is None:
                return None
            rest, more, keys = cut
            if more:
                return None
            # The memo holds for every opcode, so only what every opcode takes may be in it.
            if len(tail) <= MEMO_CHARACTERS and keys <= self._common.keys() - {"result_accuracy"}:
                self.tails[tail] = rest
        merged = {**found, **rest}
        return (merged, control) if len(merged) == len(found) + len(rest) else None

    def _cut(
        self, opcode: OpcodePieces, text: str, values: Mapping[str, SSAValue]
    ) -> tuple[Properties, list[SSAValue], set[str]] | None:
        found: Properties = {}
        control: list[SSAValue] = []
        keys: set[str] = set()
        length = 0
        for key, braces, other in ATTRIBUTE.findall(text):
            value = braces or other
            length += len(key) + len(value) + 3
            if key in keys:
                return None
            keys.add(key)
            reader = opcode.readers.get(key)
            if reader is None:
                if key != CONTROL or not (named := self.operands(value[1:-1], values)):
                    return None
                control = list(dict.fromkeys(named))
                found[CONTROL_PREDECESSORS] = integer(len(control))
                continue
            spec, memo = reader
            known = memo.get(value)
            if known is None:
                try:
                    known = (self._read(spec, value, bool(braces)),)
                except (SyntaxProblem, KeyError):
                    return None
                if len(value) <= 4 * MEMO_CHARACTERS:
                    memo[value] = known
            if known[0] is not None:
                found[spec.property_name] = known[0]
        return (found, control, keys) if length == len(text) else None

    def _read(self, spec: AttrSpec, value: str, is_braces: bool) -> Attribute | None:
        kind = spec.kind
        if kind.names_computations:
            return self._computations(spec, value)
        if kind is kinds.BYTES and is_braces and "/*" not in value:
            # Cut as a JSON dictionary is: by braces and double-quoted strings alone.
            return StringAttr(value) if len(value) > _LONG_STRING else string(value)
        cursor = Cursor(value)
        read = kind.read(cursor)
        cursor.expect_end()
        return settle(spec, read)

    def _computations(self, spec: AttrSpec, value: str) -> Attribute | None:
        """Raises `KeyError` for what is not a name, or a list of names, of known computations."""
        if spec.read_only and not keeps_for_check(spec):
            return None
        symbols = self.state.symbols
        if value[0] != "{":
            symbol = symbols[value[1:] if value[0] == "%" else value]
            return ArrayAttr([symbol]) if spec.kind is kinds.COMPUTATIONS else symbol
        if spec.kind is not kinds.COMPUTATIONS:
            raise KeyError(value)
        names = value[1:-1].split(", ") if len(value) > 2 else []
        return ArrayAttr([symbols[n[1:] if n[:1] == "%" else n] for n in names])
