"""Reads StableHLO programs: MLIR text of the stablehlo, chlo, sdy and func dialects, and others.

Most lines of a program have been read before, but for their operands: what is left of a line
without its values is looked up, and only the first of its kind is taken apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from mlirhlo.diagnostics import Diagnostic, HloError, SourceText
from mlirhlo.dialects.hlo.build import append, paused_gc
from mlirhlo.dialects.hlo.syntax import WINDOW
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, create_op
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.formats.stablehlo.contexts import context
from mlirhlo.formats.stablehlo.foreign import Bridge
from mlirhlo.formats.stablehlo.reader_ops import OpReader
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, SYNTAX, TOO_DEEP, UNKNOWN

_ALIAS = re.compile(r"^([#!][A-Za-z_][A-Za-z0-9_$.\-]*)[ \t]*=[ \t]*", re.MULTILINE)
_LINE = re.compile(
    r"[ \t\r\n]*(?:(%[A-Za-z0-9_$.\-]+)(?::([0-9]{1,4}))? = )?"
    r"((?:\"[a-z_]+\.[a-z_0-9\-]+\"|[a-z_][a-z_0-9]*(?:\.[a-z_0-9\-]+)?)[^\n]*)\n(?![ \t\r\n]*(?:loc\b|[,:{\-]))"
)
_USE = re.compile(r"%([A-Za-z0-9_$.\-]+)(?:#([0-9]{1,4}))?")
_LOC = re.compile(r" loc\((#[A-Za-z0-9_$.]+|unknown)\)\Z")
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*|->|[(\[{<]|[)\]}>]')
_MAX_NESTING = 2 * MAX_REGION_DEPTH + 50
_MAX_TEMPLATE = 1000
"""Longest line that is remembered."""
_MAX_TEMPLATES = 20000


@dataclass(frozen=True, slots=True)
class _LineForm:
    """What is known of a line that has been read, but for its values."""

    cls: type[Operation]
    operand_types: tuple[Attribute, ...]
    result_types: tuple[Attribute, ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]


class Reader(OpReader):
    """A reader of one text."""

    def __init__(self, source: SourceText, ctx: Context) -> None:
        super().__init__(source, ctx)
        self.spelled: dict[str, Attribute] = {}
        self.blocks = {}
        self.awaited = {}
        self.forward = {}
        self.defined = []
        self.early = []
        self.dialects = []
        self.bridge: Bridge | None = None
        self.aliases: dict[str, Attribute | None] = {}
        self.alias_places: dict[str, int] = {}
        for match in _ALIAS.finditer(source.text):
            self.alias_places.setdefault(match[1], match.end())
        self.has_aliases = bool(self.alias_places)
        self.resources = ""
        # By the dialect whose name may be left out: `return` is not the same everywhere.
        self._forms: dict[str, dict[str, _LineForm]] = {}
        self._unknown: set[str] = set()

    def program(self) -> ModuleOp:
        """The whole text as a module; ops outside of one are put into one."""
        self.dialects.append("builtin")
        ops: list[Operation] = []
        start = self.skip()
        while not self.at_end():
            if self.at("#") or self.at("!"):
                self._alias_definition()
            elif self.at("{-#"):
                end = self.text.find("#-}", self.pos)
                if end < 0:
                    self.fail("this section of resources does not end")
                self.resources = self.text[self.pos : end + 3]
                self.pos = end + 3
            else:
                op = self.optional_operation()
                if op is None:
                    self.expected("an operation")
                ops.append(op)
        self.check_forward()
        if len(ops) == 1 and isinstance(ops[0], ModuleOp):
            module = ops[0]
        else:
            if not ops:
                self.fail("there is no operation in this text", start)
            module = create_op(ModuleOp, (), (), {}, regions=[_region_of(ops)])
        if self.resources:
            module.resources = self.resources  # type: ignore[attr-defined]
        return module

    def _alias_definition(self) -> None:
        start = self.pos
        self.pos += 1
        name = self.text[start] + self.suffix()
        self.need("=")
        if self.aliases.get(name) is not None:
            before = self.pos
            self._skip_value(name, before)
            return
        self.aliases[name] = None
        self.alias_value(name)

    def _skip_value(self, name: str, before: int) -> None:
        """Goes past the value of an alias that has been read already."""
        known = self.aliases[name]
        if name[0] == "!":
            self.type()
        else:
            self.attribute()
        self.aliases[name] = known
        assert self.pos > before

    # ------------------------------------------------------------ lines

    def read_lines(self, block: Block) -> bool:
        """Reads lines of forms that have been read before; whether the region ends."""
        text, values = self.text, self.values
        forms = self._forms.setdefault(self.dialects[-1], {})
        match_line = _LINE.match
        source = self.source
        defined = self.defined
        forward = self.forward
        while True:
            match = match_line(text, self.pos)
            # A long line holds a large constant: it is read without being copied.
            if match is None or match.end() - match.start() > WINDOW:
                return False
            body = match[3]
            location: Attribute | None = None
            if body[-1] == ")" and (found := _LOC.search(body)) is not None:
                body = body[: found.start()]
                location = self._line_location(found[1])
            # Text, name, index, text, name, …; the index of a plain use is None.
            parts = cast("list[Any]", _USE.split(body))
            key = "%".join(parts[::3])
            form = forms.get(key)
            if form is None:
                if not self._learn(block, match, key, parts, location):
                    return False
                continue
            operands: list[Any] = []
            types = form.operand_types
            position = 0
            try:
                for number in range(1, len(parts), 3):
                    index = parts[number + 1]
                    value = values[parts[number]][0 if index is None else int(index)]
                    type_ = types[position]
                    if value.type is not type_ and value.type != type_:
                        return False
                    operands.append(value)
                    position += 1
            except (KeyError, IndexError):
                return False
            name = cast("str | None", match[1])
            if name is not None:
                name = name[1:]
                count = int(match[2] or 1)
                if name in values or name in forward or count != len(form.result_types):
                    return False
            op = create_op(
                form.cls,
                operands,
                form.result_types,
                dict(form.properties),
                attributes=dict(form.attributes),
            )
            if location is not None:
                op.location = cast(Any, location)
            op.text_source = (source, match.start(3))  # type: ignore[attr-defined]
            append(block, op)
            if name is not None:
                values[name] = tuple(op.results)
                defined.append(name)
            self.pos = match.end()

    def _learn(
        self,
        block: Block,
        match: re.Match[str],
        key: str,
        parts: list[Any],
        location: Attribute | None,
    ) -> bool:
        """Reads a line in full and remembers its form, if it ends where the line does."""
        if key in self._unknown:
            return False
        op = self.optional_operation()
        if op is None:
            return False
        append(block, op)
        stopped, self.pos = self.pos, match.end() - 1
        if stopped != self.pos and stopped != self.skip():
            self.pos = stopped
            self._unknown.add(key)
            return True
        names = parts[1::3]
        if (
            op.regions
            or op.successors
            or len(names) != len(op.operands)
            or len(key) > _MAX_TEMPLATE
            # The same value twice may hide that a form shows operands in another order.
            or (
                not isinstance(op, TableOp)
                and len({*zip(names, parts[2::3], strict=True)}) < len(names)
            )
            or (location is None and op.location is not _UNKNOWN)
            or not all(
                self._means(name, index, operand)
                for name, index, operand in zip(names, parts[2::3], op.operands, strict=True)
            )
        ):
            return True
        forms = self._forms[self.dialects[-1]]
        if len(forms) < _MAX_TEMPLATES:
            forms[key] = _LineForm(
                type(op),
                tuple(v.type for v in op.operands),
                tuple(v.type for v in op.results),
                dict(op.properties),
                dict(op.attributes),
            )
        return True

    def _means(self, name: str, index: str | None, operand: SSAValue) -> bool:
        """Whether a use in the text is this operand."""
        known = self.values.get(name)
        return known is not None and known[0 if index is None else int(index)] is operand

    def _line_location(self, name: str) -> Attribute | None:
        if name == "unknown":
            return cast(Attribute, _UNKNOWN)
        return self.alias(name, self.pos)


_UNKNOWN: Any = UNKNOWN_LOC


def _region_of(ops: list[Operation]) -> Any:
    from xdsl.ir import Region

    block = Block()
    for op in ops:
        append(block, op)
    return Region(block)


def parse_module(text: str, file: str = "<string>", first_line: int = 1) -> ModuleOp:
    """The program that `text` spells, in pretty or generic form.

    Raises `HloError`: HLO0030 syntax, HLO0031 unknown names, HLO0032 parts that do not go together,
    HLO0033 nesting too deep, HLO0036 constants.
    """
    return read_program(Reader(SourceText(file, text, first_line), context()))


def read_program(reader: Reader) -> ModuleOp:
    """The module a reader's text spells; whatever goes wrong becomes `HloError` with a place."""
    source = reader.source
    with paused_gc():
        _check_characters(source)
        _check_nesting(source)
        try:
            return reader.program()
        except HloError as problem:
            raise problem.at(source.place(reader.pos)) from None
        except VerifyException as problem:
            lines = str(problem).strip().splitlines()
            raise HloError(
                Diagnostic(BAD_VALUE, lines[-1] if lines else "", source.place(reader.pos))
            ) from None
        except ParseError as problem:
            place = source.place(problem.span.start, problem.span.end - problem.span.start)
            raise HloError(Diagnostic(SYNTAX, str(problem.args[-1]), place)) from None
        except _FAILURES as problem:
            # xDSL's attributes raise what they like on values they do not take.
            message = f"cannot read this: {problem or type(problem).__name__}"
            raise HloError(Diagnostic(SYNTAX, message, source.place(reader.pos))) from None
        except RecursionError:
            raise _too_deep(source, reader.pos) from None
        except (OverflowError, MemoryError) as problem:
            message = f"a number here is too large: {problem}"
            raise HloError(Diagnostic(BAD_VALUE, message, source.place(reader.pos))) from None


def _too_deep(source: SourceText, offset: int) -> HloError:
    message = f"brackets nested deeper than {_MAX_NESTING}"
    return HloError(Diagnostic(TOO_DEEP, message, source.place(offset), help=REGION_DEPTH_HELP))


_FAILURES = (
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)


def _check_characters(source: SourceText) -> None:
    """Bytes that are not UTF-8 come as surrogate escapes; other lone surrogates are no text."""
    if source.text.isascii():
        return
    try:
        source.text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        place = source.place(problem.start)
        raise HloError(Diagnostic(SYNTAX, "this character is no Unicode text", place)) from None


def _check_nesting(source: SourceText) -> None:
    depth = 0
    for match in _BRACKET.finditer(source.text):
        token = match[0]
        if token in "([{<":
            depth += 1
            if depth > _MAX_NESTING:
                raise _too_deep(source, match.start())
        elif token in ")]}>":
            depth = max(0, depth - 1)


__all__ = ["UNKNOWN", "Reader", "parse_module", "read_program"]
