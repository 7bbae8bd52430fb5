"""Reads MLIR text: modules of computations line by line, anything else by xDSL's parser.

What the printer wrote is recognised by one regex a line, every distinct attribute and type parsed
once by xDSL. The first line that is not recognised hands the whole text to xDSL's parser, which
also words every syntax error.
"""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

from mlirhlo.diagnostics import Diagnostic, HloError, SourceText
from mlirhlo.dialects.hlo import HLO
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import append, create, paused_gc
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import set_source
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops import OP_CLASSES, ComputationOp, Instruction, ReturnOp
from mlirhlo.dialects.hlo.ops.assembly import CONTROL_PREDECESSORS, LITERAL, PARAMETER_NUMBER
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.formats.mlir.checks import check_computation, check_header, check_properties
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects import structured


_VALUE = r"%[A-Za-z0-9_$.\-]+"
_VALUES = rf"{_VALUE}(?:, {_VALUE})*"
_IN_STRING = r"[^\"\\]*+(?:\\.[^\"\\]*+)*+"
"""Runs, not characters: Python's matcher remembers every turn of a group, 800 bytes each."""
_INSTRUCTION = re.compile(
    rf"    %([A-Za-z0-9_$.\-]+) = (hlo\.[a-z_]+)(?: ([0-9]+))?(?: \"({_IN_STRING})\")?"
    rf"(?: ({_VALUES}))?(?: after ({_VALUES}))?(?: (\{{.*\}}))? : (.+)"
)
_COMPUTATION = re.compile(
    r"  hlo\.computation( entry)? @([A-Za-z_][A-Za-z0-9_$.]*|\"(?:[^\"\\])*\")(?: attributes (\{.*\}))? \{"
)
_RETURN = re.compile(rf"    hlo\.return ({_VALUE})")
_TOP_LEVEL = re.compile(f'"{_IN_STRING}"|' + r"[\[({<]|->|[\])}>]|,")
_CLASSES = {cls.name: cls for cls in OP_CLASSES.values()}
_XDSL_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
_MAX_NESTING = 400
"""Deepest nesting of brackets given to xDSL's recursive parser."""


def context() -> Context:
    """A context that knows the hlo and structured dialects and xDSL's own."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(HLO)
    ctx.register_dialect("structured", _structured)
    for name, factory in get_all_dialects().items():
        if name not in ("builtin", "hlo", "structured"):
            ctx.register_dialect(name, factory)
    return ctx


def _structured() -> Dialect:
    return structured.STRUCTURED


class MlirLexer(MLIRLexer):
    """xDSL's lexer with a string pattern that takes linear time where a string is never closed."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class MlirParser(Parser):
    """xDSL's parser, which keeps exact instruction names and any bytes in strings."""

    def __init__(self, ctx: Context, text: str, name: str = "<unknown>") -> None:
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(MlirLexer(Input(text, name)))

    def _register_ssa_definition(self, name: str, values: Any, span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for value in cast("tuple[SSAValue, ...]", tuple(values)):
            if isinstance(value.owner, Instruction):
                value.owner.instruction_name = None if name.isdigit() else legal_name(name)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as problem:
            # The token has been taken already; the message belongs to it.
            at = self.lexer.input.content.rfind(name, 0, self.pos)
            self.raise_error(str(problem.args[-1]), max(at, 0), max(at, 0) + len(name))

    def parse_optional_str_literal(self) -> str | None:
        """A string literal; bytes that are not UTF-8 become surrogate escapes."""
        token = self._parse_optional_token(MLIRTokenKind.STRING_LIT)
        if token is None:
            token = self._parse_optional_token(MLIRTokenKind.BYTES_LIT)
        if token is None:
            return None
        whole, begin, end = token.span.input.content, token.span.start + 1, token.span.end - 1
        if whole.find("\\", begin, end) < 0:
            return whole[begin:end]
        return StringLiteral.from_span(token.span).bytes_contents.decode("utf-8", "surrogateescape")


def parse_module(text: str, file: str = "<string>", first_line: int = 1) -> ModuleOp:
    """The module that `text` spells. Raises `HloError` HLO0060 (syntax), HLO0061 (too deep)."""
    source = SourceText(file, text, first_line)
    ctx = context()
    with paused_gc():
        module = _Reader(ctx, source).read()
        if module is not None:
            return module
        _check_depth(source)
        parser: MlirParser | None = None
        try:
            parser = MlirParser(ctx, text, file)
            module = parser.parse_module()
        except ParseError as problem:
            raise _syntax_error(source, problem) from None
        except _XDSL_FAILURES as problem:
            # xDSL's attributes raise what they like on values they do not take.
            place = source.place(parser.pos if parser is not None else 0)
            message = str(problem) or type(problem).__name__
            raise HloError(Diagnostic("HLO0060", f"cannot read this: {message}", place)) from None
        except VerifyException as problem:
            raise HloError(
                Diagnostic("HLO0062", f"not a valid attribute or type: {problem}", source.place(0))
            ) from None
        except RecursionError:
            raise _too_deep(source, 0) from None
        _check(module, source)
    return module


def _check(module: ModuleOp, source: SourceText) -> None:
    """What the line reader takes for granted: well-formed ops, definitions before uses."""
    try:
        check_header(module)
        module.verify()
        for op in module.walk():
            if isinstance(op, ComputationOp):
                check_computation(op)
            elif isinstance(op, Instruction):
                check_properties(type(op), op.properties)
    except VerifyException as problem:
        message = str(problem).strip().splitlines()[-1]
        place = source.place(_offset_of_invalid(module, source.text))
        raise HloError(Diagnostic("HLO0062", message, place)) from None


def _offset_of_invalid(module: ModuleOp, text: str) -> int:
    """Where the kernel begins that does not verify; 0 for other modules."""
    offset = -1
    for op in module.ops:
        if op.name == "structured.kernel":
            offset = text.find(op.name, offset + 1)
            try:
                op.verify()
            except VerifyException:
                return max(offset, 0)
    return 0


def _syntax_error(source: SourceText, problem: ParseError) -> HloError:
    span = problem.span
    message = problem.args[-1] if problem.args else str(problem)
    text = str(message).strip().splitlines()
    place = source.place(span.start, max(1, span.end - span.start))
    return HloError(Diagnostic("HLO0060", text[-1] if text else "syntax error", place))


def _too_deep(source: SourceText, offset: int) -> HloError:
    return HloError(
        Diagnostic("HLO0061", f"brackets nested deeper than {_MAX_NESTING}", source.place(offset))
    )


_BRACKETS = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|//[^\n]*|[(\[{<]|->|[)\]}>]')


def _check_depth(source: SourceText) -> None:
    depth = 0
    for match in _BRACKETS.finditer(source.text):
        token = match.group()
        if token in "([{<":
            depth += 1
            if depth > _MAX_NESTING:
                raise _too_deep(source, match.start())
        elif token in ")]}>":
            depth = max(0, depth - 1)


class _NotRecognised(Exception):
    """The text is not in the printer's own form; xDSL's parser takes over."""


def _end_of_line(text: str, offset: int) -> int:
    """Of the line at an offset. Raises `_NotRecognised` behind the last one."""
    if offset > len(text):
        raise _NotRecognised
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


class _Reader:
    def __init__(self, ctx: Context, source: SourceText) -> None:
        self._ctx, self._source = ctx, source
        self._attributes: dict[str, Attribute] = {}
        self._dictionaries: dict[str, dict[str, Attribute]] = {}
        self._types: dict[str, Attribute] = {}
        self._checked: set[tuple[type[Instruction], str]] = set()

    def read(self) -> ModuleOp | None:
        """The module, or None when a line is not recognised."""
        try:
            return self._module()
        except (_NotRecognised, ParseError, SyntaxProblem, VerifyException, *_XDSL_FAILURES):
            return None
        except RecursionError:
            return None

    def _module(self) -> ModuleOp:
        # Lines are not cut out of the text: one may hold a large constant.
        text = self._source.text
        end = _end_of_line(text, 0)
        if not text.startswith("builtin.module") or not text.endswith("{", 0, end):
            raise _NotRecognised
        module = MlirParser(self._ctx, text[:end] + "}").parse_module()
        check_header(module)
        block = module.body.block
        offset = end + 1
        while not text.startswith("}", offset) or _end_of_line(text, offset) != offset + 1:
            offset = self._computation(text, offset, block)
        if text[offset + 1 :].strip():
            raise _NotRecognised
        return module

    def _computation(self, text: str, offset: int, into: Block) -> int:
        """Reads the computation at an offset; where its last line ends."""
        end = _end_of_line(text, offset)
        match = _COMPUTATION.fullmatch(text, offset, end)
        if match is None:
            raise _NotRecognised
        entry, quoted, attributes = match.groups()
        name = quoted.strip('"')
        if legal_name(name) != name:
            raise _NotRecognised
        properties: dict[str, Attribute] = {"sym_name": string(name)}
        if entry:
            properties["is_entry"] = UnitAttr()
        others: dict[str, Attribute] = {}
        if attributes:
            own = ComputationOp.get_irdl_definition().properties
            for key, value in self._dictionary(attributes).items():
                (properties if key in own else others)[key] = value
        block = Block()
        values: dict[str, SSAValue] = {}
        while True:
            offset = end + 1
            end = _end_of_line(text, offset)
            found = _INSTRUCTION.fullmatch(text, offset, end)
            if found is None:
                break
            op = self._instruction(found, values)
            set_source(op, self._source, offset + 4)
            append(block, op)
        returned = _RETURN.fullmatch(text, offset, end)
        if returned is None or not text.startswith("\n  }\n", end):
            raise _NotRecognised
        root = values.get(returned.group(1)[1:])
        if root is None:
            raise _NotRecognised
        block.add_op(ReturnOp(root))
        into.add_op(
            ComputationOp.create(properties=properties, attributes=others, regions=[Region(block)])
        )
        return end + len("\n  }\n")

    def _instruction(self, match: re.Match[str], values: dict[str, SSAValue]) -> Instruction:
        # All but the literal, which may be long.
        name, op_name, number, operands, control, braces, type_text = match.group(
            1, 2, 3, 5, 6, 7, 8
        )
        cls = _CLASSES.get(op_name)
        if cls is None or name in values or (number and op_name != "hlo.parameter"):
            raise _NotRecognised
        result_type = self._types.get(type_text)
        if result_type is None:
            result_type = self._types[type_text] = self._parser(type_text).parse_type()
            shape_of(result_type)
        inputs: list[SSAValue] = []
        try:
            if operands:
                inputs = [values[v[1:]] for v in operands.split(", ")]
            if control:
                after = [values[v[1:]] for v in control.split(", ")]
                inputs += after
        except KeyError:
            raise _NotRecognised from None
        properties: dict[str, Attribute] = {}
        if braces:
            properties.update(self._dictionary(braces))
            if (cls, braces) not in self._checked:
                check_properties(cls, properties)
                self._checked.add((cls, braces))
        if control:
            properties[CONTROL_PREDECESSORS] = integer(control.count(",") + 1)
        if number:
            properties[PARAMETER_NUMBER] = integer(int(number))
        begin, end = match.span(4)
        if begin >= 0:
            if op_name != "hlo.constant" or match.string.find("\\", begin, end) >= 0:
                raise _NotRecognised
            literal = Literal.from_text(shape_of(result_type), match.string, begin, end)
            properties[LITERAL] = LiteralAttr(literal)
        own = None if name.isdigit() else name if "$" not in name else legal_name(name)
        op = create(cls, inputs, result_type, properties, own)
        values[name] = op.results[0]
        return op

    def _parser(self, text: str) -> MlirParser:
        return MlirParser(self._ctx, text)

    def _dictionary(self, text: str) -> dict[str, Attribute]:
        known = self._dictionaries.get(text)
        if known is None:
            known = {}
            for entry in _split(text[1:-1]):
                key, equals, value = entry.partition(" = ")
                if key in known:
                    raise _NotRecognised
                known[key] = self._attribute(value) if equals else UnitAttr()
            if len(text) < 4096:
                self._dictionaries[text] = known
        return known

    def _attribute(self, text: str) -> Attribute:
        known = self._attributes.get(text)
        if known is None:
            parser = self._parser(text)
            known = parser.parse_attribute()
            if parser.pos != len(text) and text[parser.pos :].strip():
                raise _NotRecognised
            self._attributes[text] = known
        return known


def _split(text: str) -> list[str]:
    pieces: list[str] = []
    depth = start = 0
    for match in _TOP_LEVEL.finditer(text):
        token = match.group()
        if token in "[({<":
            depth += 1
        elif token in "])}>":
            depth -= 1
        elif token == "," and depth == 0:
            pieces.append(text[start : match.start()].strip())
            start = match.end()
    if text[start:].strip():
        pieces.append(text[start:].strip())
    return pieces
