"""Reads PTX text.

One loop over the statements, linear in the text. Instructions, of which large kernels have 100,000, are matched by
one regular expression and their operands cut at commas; declarations and operands are read by the dialect, which
also reads them in MLIR text. The grammar of record, `grammar.lark`, is not run when a file is read: tests hold
this reader against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.diagnostics import Diagnostic, HloError, SourceText
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem
from mlirhlo.dialects.ptx.attributes import (
    DeclarationAttr,
    GuardAttr,
    OperandsAttr,
    PrototypeAttr,
    SignatureAttr,
    SourceLocationAttr,
)
from mlirhlo.dialects.ptx.declarations import (
    LINKAGES,
    SPACES,
    peek_directive,
    read_declaration,
    read_integer,
    read_location,
    read_prototype,
    read_signature,
    read_string,
    read_strings,
    take_directive,
)
from mlirhlo.dialects.ptx.ops import (
    AliasOp,
    FileOp,
    FunctionOp,
    InstructionOp,
    LabelOp,
    LocOp,
    ModuleOp,
    PragmaOp,
    PrototypeOp,
    ScopeOp,
    SectionOp,
    TargetsOp,
    VariableOp,
)
from mlirhlo.dialects.ptx.syntax import IDENTIFIER, operand, read_name, read_operands
from mlirhlo.dialects.ptx.values import Guard, Operand, Operands, Vector
from mlirhlo.dialects.quick import (
    MAX_REGION_DEPTH,
    append,
    create_op,
    file_location,
    new_block,
    region_of,
)

T = TypeVar("T")

_COMMENT_TEXT = r"//[^\n]*+|/\*(?>[^*]+|\*(?!/))*+\*/"
_HEAD = r"(?:@\s*(!?)\s*([\w$%]++)\s*)?([a-z]\w*+(?:(?:\.|::)\w++)*+)(?:\s++|(?=[;\[{(]))"
_INSTRUCTION = re.compile(rf"{_HEAD}([^;/\"]*+);")
"""An instruction of the common form; comments and divisions are for `_STATEMENT`."""
_STATEMENT = re.compile(rf"(?>[^;/]+|{_COMMENT_TEXT}|/)*+;")
_ANY_INSTRUCTION = re.compile(rf"{_HEAD}([^;]*+);")
_LABEL = re.compile(rf"({IDENTIFIER.pattern})\s*:(?!:)")
_PIECE = re.compile(r"(?>[^,\[\]{}()]+|\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\))+")
_SECTION = re.compile(r"\.section\s+([.\w$]+)\s*\{([^}]*)\}")
_VERSION = re.compile(r"\s*([0-9]+)\.([0-9]+)")
_TARGET = re.compile(r"\s*(\w+(?:\s*,\s*\w+)*)")
_COMMENT = re.compile(_COMMENT_TEXT)
_SPACE = re.compile(rf"(?>\s+|{_COMMENT_TEXT})*+")
_SPACED_MODIFIER = re.compile(r"\.(\w+(?:::\w+)*)\s*")


def parse_ptx(text: str, file: str = "<string>") -> ModuleOp:
    """The `ptx.module` of a text. Raises `HloError` HLO0760 with the place of what cannot be read."""
    reader = _Reader(text, file)
    try:
        with paused_gc():
            return reader.module()
    except SyntaxProblem as problem:
        raise HloError(_diagnostic(problem, SourceText(file, text))) from None
    except RecursionError:
        too_deep = SyntaxProblem(reader.position, "parentheses or braces are nested too deep")
        raise HloError(_diagnostic(too_deep, SourceText(file, text))) from None


def _diagnostic(problem: SyntaxProblem, source: SourceText) -> Diagnostic:
    offset = min(problem.offset, len(source.text.rstrip()))
    return Diagnostic("HLO0760", problem.message, source.place(offset, problem.length))


def split_operands(text: str) -> tuple[Operand, ...] | None:
    """Operands by their texts between commas; None where that is not enough to read them."""
    if "[" not in text and "{" not in text and "(" not in text:
        pieces = text.split(",")
    else:
        pieces = _PIECE.findall(text)
        if len("".join(pieces)) + len(pieces) - 1 != len(text):
            return None
    found: list[Operand] = []
    for piece in pieces:
        piece = piece.strip()
        if piece[:1] == "{" and piece.count("{") == 1:
            inner = [operand(part.strip()) for part in piece[1:-1].split(",")]
            found.append(Vector(tuple(inner)))
        else:
            found.append(operand(piece))
    return tuple(found)


class _Reader:
    """The text, how far it was read, and the open scopes."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.position = text, 0
        self.file = StringAttr(file)
        self.line, self.counted = IntAttr(1), 0
        self.line_start = 0
        self.strings: dict[str, StringAttr] = {}
        self.guards: dict[str, GuardAttr] = {}

    # ------------------------------------------------------------------ small things

    def string(self, text: str) -> StringAttr:
        """An interned string."""
        known = self.strings.get(text)
        if known is None:
            known = self.strings[text] = StringAttr(text)
        return known

    def skip(self) -> int:
        """Skips white space and comments."""
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        return self.position

    def fail(self, message: str, offset: int | None = None, length: int = 1) -> NoReturn:
        """Raises a `SyntaxProblem`."""
        raise SyntaxProblem(self.position if offset is None else offset, message, length)

    def read(self, rule: Callable[[Cursor], T]) -> T:
        """What the dialect reads at the position."""
        cursor = Cursor(self.text, self.position)
        value = rule(cursor)
        self.position = cursor.position
        return value

    def located(self, op: Operation, start: int) -> Operation:
        """`op` with its place in the text."""
        lines = self.text.count("\n", self.counted, start)
        if lines:
            self.line = IntAttr(self.line.data + lines)
            self.line_start = self.text.rfind("\n", self.counted, start) + 1
        self.counted = start
        op.location = file_location(self.file, self.line, IntAttr(start - self.line_start + 1))
        return op

    # ------------------------------------------------------------------ modules

    def module(self) -> ModuleOp:
        """The whole text."""
        properties = self.header()
        block = new_block()
        while self.skip() < len(self.text):
            start = self.position
            append(block, self.located(self.module_statement(start), start))
        return create_op(ModuleOp, properties=properties, regions=[region_of(block)])

    def header(self) -> dict[str, Attribute]:
        """`.version`, `.target`, `.address_size`."""
        properties: dict[str, Attribute] = {}
        for name, pattern in (("version", _VERSION), ("target", _TARGET)):
            start = self.skip()
            cursor = Cursor(self.text, start)
            if not take_directive(cursor, name):
                self.fail(f"expects .{name}: PTX begins with .version and .target")
            match = pattern.match(self.text, cursor.position)
            if match is None:
                self.fail(f"expects the value of .{name}", cursor.position)
            self.position = match.end()
            parts = [part.strip() for part in match.group().split(",")]
            properties[name] = StringAttr(", ".join(parts))
        self.skip()
        cursor = Cursor(self.text, self.position)
        if take_directive(cursor, "address_size"):
            properties["address_size"] = IntegerAttr(read_integer(cursor), i64)
            self.position = cursor.position
        return properties

    def module_statement(self, start: int) -> Operation:
        """One variable, function or directive of a module."""
        cursor = Cursor(self.text, start)
        while (name := take_directive(cursor, *LINKAGES)) is not None:
            pass
        name = peek_directive(cursor)
        if name in ("entry", "func"):
            return self.function()
        if name == "alias":
            return self.alias()
        if name in SPACES:
            return self.variable()
        return self.directive(name)

    def function(self) -> FunctionOp:
        """A function with its body, or its declaration."""
        signature = self.read(read_signature)
        properties: dict[str, Attribute] = {"signature": SignatureAttr(signature)}
        self.skip()
        if self.text.startswith(";", self.position):
            self.position += 1
            return create_op(FunctionOp, properties=properties, regions=[region_of()])
        if not self.text.startswith("{", self.position):
            self.fail(f"expects '{{' or ';' after the head of {signature.name!r}")
        function = create_op(FunctionOp, properties=properties, regions=[region_of(new_block())])
        self.body(function)
        return function

    def variable(self) -> VariableOp:
        """A declaration."""
        declaration = self.read(read_declaration)
        return create_op(VariableOp, properties={"declaration": DeclarationAttr(declaration)})

    def alias(self) -> AliasOp:
        """`.alias f, g;`."""
        cursor = Cursor(self.text, self.position)
        take_directive(cursor, "alias")
        alias = read_name(cursor)
        cursor.expect(",")
        aliasee = read_name(cursor)
        cursor.expect(";")
        self.position = cursor.position
        names = {"alias": self.string(alias), "aliasee": self.string(aliasee)}
        return create_op(AliasOp, properties={**names})

    def directive(self, name: str | None) -> Operation:
        """A directive that may stand in modules and in bodies."""
        cursor = Cursor(self.text, self.position)
        op: Operation
        match name:
            case "file":
                take_directive(cursor, name)
                number, path = read_integer(cursor), read_string(cursor)
                facts: list[IntegerAttr] = []
                while cursor.accept(","):
                    facts.append(IntegerAttr(read_integer(cursor), i64))
                properties: dict[str, Attribute] = {
                    "number": IntegerAttr(number, i64),
                    "path": self.string(path),
                    "facts": ArrayAttr(facts),
                }
                op = create_op(FileOp, properties=properties)
            case "pragma":
                take_directive(cursor, name)
                strings = ArrayAttr([StringAttr(text) for text in read_strings(cursor)])
                cursor.expect(";")
                op = create_op(PragmaOp, properties={"strings": strings})
            case "section":
                return self.section()
            case "loc":
                source = SourceLocationAttr(read_location(cursor))
                op = create_op(LocOp, properties={"source": source})
            case None:
                self.fail("expects a variable, function or directive")
            case _:
                self.fail(f"unknown directive '.{name}'", length=len(name) + 1)
        self.position = cursor.position
        return op

    def section(self) -> SectionOp:
        """`.section .debug_str { … }`, its contents as they are."""
        match = _SECTION.match(self.text, self.position)
        if match is None:
            self.fail("expects .section NAME { … }")
        self.position = match.end()
        lines = [line.strip() for line in match.group(2).split("\n")]
        contents = "\n".join(filter(None, lines))
        properties = {"section": StringAttr(match.group(1)), "contents": StringAttr(contents)}
        return create_op(SectionOp, properties={**properties})

    # ------------------------------------------------------------------ bodies

    def body(self, function: FunctionOp) -> None:
        """All statements up to the brace that ends the function."""
        text, opened = self.text, self.position
        self.position += 1
        scopes = [function.regions[0].block]
        while True:
            start = self.skip()
            match = _INSTRUCTION.match(text, start)
            if match is not None and not match.group(4).startswith(":"):
                self.position = match.end()
                op = self.instruction(match)
            elif text.startswith("}", start):
                self.position += 1
                scopes.pop()
                if not scopes:
                    return
                continue
            elif text.startswith("{", start):
                if len(scopes) >= MAX_REGION_DEPTH:
                    self.fail(f"scopes are nested deeper than {MAX_REGION_DEPTH}")
                self.position += 1
                block = new_block()
                op = create_op(ScopeOp, regions=[region_of(block)])
                append(scopes[-1], self.located(op, start))
                scopes.append(block)
                continue
            elif start >= len(text):
                self.fail("the function's '{' is not closed", opened)
            else:
                op = self.body_statement(start)
            append(scopes[-1], self.located(op, start))

    def body_statement(self, start: int) -> Operation:
        """What is no instruction of the common form."""
        label = _LABEL.match(self.text, start)
        if label is not None:
            self.position = label.end()
            return create_op(LabelOp, properties={"label": self.string(label.group(1))})
        if not self.text.startswith(".", start):
            return self.odd_instruction(start)
        cursor = Cursor(self.text, start)
        while take_directive(cursor, *LINKAGES) is not None:
            pass
        match peek_directive(cursor):
            case "branchtargets" | "calltargets" as keyword:
                return self.targets(keyword)
            case "callprototype":
                prototype = PrototypeAttr(self.read(read_prototype))
                return create_op(PrototypeOp, properties={"prototype": prototype})
            case name if name in SPACES:
                return self.variable()
            case name:
                return self.directive(name)

    def targets(self, keyword: str) -> TargetsOp:
        """`.branchtargets L1, L2;`."""
        cursor = Cursor(self.text, self.position)
        take_directive(cursor, keyword)
        names = [self.string(read_name(cursor))]
        while cursor.accept(","):
            names.append(self.string(read_name(cursor)))
        cursor.expect(";")
        self.position = cursor.position
        properties = {"keyword": self.string(keyword), "names": ArrayAttr(names)}
        return create_op(TargetsOp, properties={**properties})

    def odd_instruction(self, start: int) -> Operation:
        """An instruction with comments or divisions in it, or a text that is none."""
        statement = _STATEMENT.match(self.text, start)
        if statement is None:
            self.fail("expects an instruction that ends in ';'", start)
        # Comments become blanks of their length, so that offsets stay.
        plain = _COMMENT.sub(lambda found: " " * len(found.group()), statement.group())
        match = _ANY_INSTRUCTION.fullmatch(plain)
        if match is None:
            word = plain.split()[0][:30]
            self.fail(f"expects an instruction, label or directive, found {word!r}", start)
        self.position = statement.end()
        return self.instruction(match, start)

    def instruction(self, match: re.Match[str], base: int = 0) -> Operation:
        """The op of a match; `base` is the offset of the matched text."""
        negated, guard, mnemonic, text = match.groups()
        while text.startswith("."):
            modifier = _SPACED_MODIFIER.match(text)
            if modifier is None:
                self.fail("expects a modifier", base + match.start(4))
            mnemonic, text = f"{mnemonic}.{modifier.group(1)}", text[modifier.end() :]
        properties: dict[str, Attribute] = {"mnemonic": self.string(mnemonic)}
        if guard is not None:
            known = self.guards.get(negated + guard)
            if known is None:
                known = self.guards[negated + guard] = GuardAttr(Guard(guard, bool(negated)))
            properties["guard"] = known
        text = text.strip()
        try:
            operands = split_operands(text) if text else ()
        except SyntaxProblem:
            operands = None
        if operands is None:
            end = base + match.end() - 1
            cursor = Cursor(match.string, match.end(4) - len(match.group(4)), match.end(4))
            cursor.position += len(match.group(4).rstrip()) - len(text) if text else 0
            try:
                operands = read_operands(cursor).parts
                cursor.expect_end()
            except SyntaxProblem as problem:
                offset = min(base + problem.offset, end)
                raise SyntaxProblem(offset, f"{mnemonic}: {problem.message}") from None
        properties["arguments"] = OperandsAttr(Operands(operands))
        return create_op(InstructionOp, properties=properties)
