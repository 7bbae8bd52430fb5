"""Answers about HLO text: hover, definition, references, completion, outline, tokens, hints, mends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlirhlo.analysis.cost import analyse
from mlirhlo.analysis.cost.visitor import size_bytes
from mlirhlo.debug.editor.document import Block, Document, Line, Span, source_of
from mlirhlo.debug.trials.conditions import load_module
from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves, parse_shape
from mlirhlo.dialects.hlo.table import OPCODES

TOKEN_TYPES = ("keyword", "variable", "type", "function", "property", "number", "string", "comment")
"""Kinds of semantic tokens, which numbers in `tokens` stand for."""
TOKEN_PATTERNS: Mapping[str, str] = {
    "comment": r"/\*.*?\*/|//.*",
    "string": r"\"(?:[^\"\\]|\\.)*\"",
    "property": r"\b[a-z][\w-]*(?==)",
    "type": r"\b(?:" + "|".join(sorted(PRIMITIVE_TYPES, key=len, reverse=True)) + r")(?=\[)",
    "keyword": r"\b(?:HloModule|ENTRY|ROOT|true|false)\b",
    "function": r"\b[a-z][\w-]*(?=\()",
    "variable": r"%[\w.-]+",
    "number": r"-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b",
}
"""By kind, the first that matches; the grammar for editors has the same (`tools/editor_grammar.py`)."""


def pattern_of(patterns: Mapping[str, str]) -> re.Pattern[str]:
    """One pattern with a group for each kind."""
    return re.compile("|".join(f"(?P<{kind}>{text})" for kind, text in patterns.items()))


_TOKEN = pattern_of(TOKEN_PATTERNS)
_GIVES = re.compile(r"the declared shape is .*?, but [\w-]+ of these operands gives (?P<shape>\S+)")
_INSTEAD = re.compile(r"did you mean '(?P<name>[^']+)'")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A computation in the outline, with its instructions."""

    name: str
    detail: str
    first: int
    last: int
    children: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class Mend:
    """A change of text that a diagnostic names."""

    title: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A name that can stand at a position."""

    label: str
    detail: str
    kind: str
    """`opcode`, `attribute`, `operand` or `computation`."""


# ---------------------------------------------------------------- names


def definition(document: Document, line: int, column: int) -> Span | None:
    """Where what is named at a position is defined."""
    word = document.word_at(line, column)
    if word is None:
        return None
    block = document.block_at(line)
    if block is not None and word[0] in block.names and not _is_called(document, line, word[0]):
        return _name_of(block, block.names[word[0]])
    called = document.computation(word[0])
    return None if called is None else _header_of(called)


def references(document: Document, line: int, column: int) -> list[Span]:
    """Every place that names what a position does, the definition first."""
    word = document.word_at(line, column)
    found = definition(document, line, column)
    if word is None or found is None:
        return []
    block = document.block_at(found.line)
    if block is not None and found.line != block.start:
        lines = [block.names[word[0]], *block.users.get(word[0], ())]
        numbers: Sequence[int] = sorted({block.start + at for at in lines})
        others = [
            block.start + at for at, x in enumerate(block.lines) if "control-predecessors" in x.text
        ]
        numbers = sorted({*numbers, *others})
    else:
        numbers = [at for at, text in enumerate(document.lines) if word[0] in text.text]
    spans = [span for at in numbers for span in _mentions(document, at, word[0])]
    return [found, *(span for span in spans if span != found)]


def _mentions(document: Document, line: int, name: str) -> Iterator[Span]:
    pattern = rf"(?<![\w.%-])%?{re.escape(name)}(?![\w.-])"
    for match in re.finditer(pattern, blanked(document.lines[line].text)):
        after = document.lines[line].text[match.end() : match.end() + 1]
        if after not in ("(", "=") or match[0].startswith("%"):
            yield Span(line, match.start(), match.end())


def blanked(text: str) -> str:
    """A line without the contents of strings, column by column."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + " " * (len(m[0]) - 2) + '"', text)


def checked_name(name: str, taken_line: int = 0) -> str:
    """A name that an editor asks for. Raises `HloError` HLO0879 where it is none, or taken on a line."""
    if taken_line:
        raise error("HLO0879", f"'{name}' is defined on line {taken_line}")
    if not re.fullmatch(r"[\w$.-]+", name, re.ASCII):
        raise error("HLO0879", f"'{name}' is no name", help="names have letters, digits and _ . -")
    return name


def rename(document: Document, line: int, column: int, name: str) -> list[tuple[Span, str]]:
    """Edits that give what a position names another name. Raises `HloError` HLO0879."""
    edits: list[tuple[Span, str]] = []
    name = checked_name(name.lstrip("%"))
    if taken := _taken(document, line, column, name):
        checked_name(name, taken)
    for span in references(document, line, column):
        old = document.lines[span.line].text[span.start : span.end]
        edits.append((span, ("%" if old.startswith("%") else "") + name.lstrip("%")))
    return edits


def _taken(document: Document, line: int, column: int, name: str) -> int:
    """The line, from 1, where what a position names would meet another of its name; 0 for none."""
    own = definition(document, line, column)
    if own is None:
        return 0
    block = document.block_at(own.line)
    if block is not None and own.line != block.start:
        other = block.start + block.names[name] if name in block.names else own.line
    else:
        called = document.computation(name)
        other = own.line if called is None else called.start
    return 0 if other == own.line else other + 1


def _name_of(block: Block, at: int) -> Span:
    match = block.lines[at].match
    assert match is not None
    return Span(block.start + at, *match.span("name"))


def _header_of(block: Block) -> Span:
    assert block.first.header is not None
    return Span(block.start, *block.first.header.span("name"))


def _is_called(document: Document, line: int, name: str) -> bool:
    return name in document.lines[line].called


# ---------------------------------------------------------------- hover


def hover(document: Document, line: int, column: int) -> str | None:
    """What is known of a position, as Markdown."""
    word = document.word_at(line, column)
    if word is None:
        return None
    name, span = word
    text = document.lines[line]
    if text.match is not None and span.start == text.match.start("opcode"):
        return _opcode_page(name)
    block = document.block_at(line)
    if block is not None and name in block.names and not _is_called(document, line, name):
        return _instruction_page(block, block.lines[block.names[name]])
    called = document.computation(name)
    if called is not None:
        count = sum(1 for _ in called.instructions())
        return f"```hlo\n{called.first.text.strip()}\n```\n{count} instructions"
    return _opcode_page(name) if name in OPCODES else None


def _opcode_page(name: str) -> str | None:
    opcode = OPCODES.get(name)
    if opcode is None:
        return None
    attributes = ", ".join(f"`{spec.key}`" for spec in opcode.attributes)
    lines = [f"**{name}**: {opcode.summary}"]
    if attributes:
        lines.append(f"attributes: {attributes}")
    return "\n\n".join(lines)


def _instruction_page(block: Block, line: Line) -> str:
    assert line.match is not None
    lines = [f"```hlo\n{line.text.strip()[:400]}\n```", *_figures(block, line)]
    if source := source_of(line.text):
        lines.append(f"from `{source[0]}:{source[1]}`")
    users = len(block.users.get(line.name, ()))
    lines.append(f"{users} {'user' if users == 1 else 'users'}")
    return "\n\n".join(lines)


def _figures(block: Block, line: Line) -> list[str]:
    """Bytes of the result, layout, and cost where it follows from the line alone."""
    assert line.match is not None
    try:
        shape = parse_shape(line.match["shape"])
    except (HloError, ValueError):
        return []
    arrays = [leaf for _, leaf in leaves(shape)]
    found = [f"{sum(map(size_bytes, arrays)):,} bytes"]
    if isinstance(shape, ArrayShape) and shape.layout is not None:
        found.append(f"minor to major {{{','.join(map(str, shape.layout.minor_to_major))}}}")
    return [", ".join([*found, *_cost(block, line)])]


def _cost(block: Block, line: Line) -> list[str]:
    if line.called or any(name not in block.names for name, _ in line.operands):
        return []
    try:
        costs = analyse(load_module(line_module(block, line), "line.hlo"))
    except (HloError, ValueError, KeyError):
        return []
    return [f"{costs.flops:,.0f} operations", f"{costs.bytes_accessed:,.0f} bytes accessed"]


def line_module(block: Block, line: Line) -> str:
    """A module of one instruction, whose operands are parameters."""
    rows = ["HloModule line", "", "ENTRY line.entry {"]
    for number, name in enumerate(dict.fromkeys(name for name, _ in line.operands)):
        match = block.lines[block.names[name]].match
        assert match is not None
        rows.append(f"  {match['name']} = {match['shape']} parameter({number})")
    text = line.text if "ROOT" in line.text else "  ROOT " + line.text.strip()
    return "\n".join([*rows, text, "}", ""])


# ---------------------------------------------------------------- completion


def completions(document: Document, line: int, column: int) -> list[Completion]:
    """What may stand at a position."""
    text = document.lines[line].text[:column] if line < len(document.lines) else ""
    block = document.block_at(line)
    if re.search(r"\b(?:to_apply|calls|body|condition|select|scatter)=%?[\w.-]*$", text):
        return [Completion(b.name, b.first.text.strip(), "computation") for b in document.blocks]
    opened = re.search(r"\b([a-z][\w-]*)\(([^()]*)$", text)
    if opened and opened[1] in OPCODES and block is not None:
        return _operands(block, line, opened[2])
    closed = re.search(r"\b([a-z][\w-]*)\([^()]*\)[^()]*,\s*[\w-]*$", text)
    if closed and closed[1] in OPCODES:
        return [
            Completion(f"{key}=", "attribute of " + closed[1], "attribute")
            for key in OPCODES[closed[1]].specs
            if f"{key}=" not in text
        ]
    if re.search(r"=\s*\S+\s+[a-z-]*$", text):
        return [Completion(name, OPCODES[name].summary, "opcode") for name in OPCODES]
    return []


def _operands(block: Block, line: int, before: str) -> list[Completion]:
    """Names above a line; those of the shape of the operand before, or of the line, come first."""
    above = [x for at, x in block.instructions() if at < line]
    shapes = {x.name: x.match["shape"] for x in above if x.match}
    names = re.findall(r"[\w.-]+", before)
    wanted = shapes.get(names[0], "") if names else ""
    if not wanted and line - block.start < len(block.lines):
        match = block.lines[line - block.start].match
        wanted = match["shape"] if match is not None else ""
    above.reverse()  # of one shape, the nearest first
    above.sort(key=lambda x: shapes[x.name].split("{")[0] != wanted.split("{")[0])
    return [Completion(x.match["name"], shapes[x.name], "operand") for x in above if x.match]


# ---------------------------------------------------------------- structure


def outline(document: Document) -> list[Symbol]:
    """Computations with their instructions."""
    found: list[Symbol] = []
    for block in document.blocks:
        children = tuple(
            Symbol(line.name, f"{line.match['shape']} {line.match['opcode']}", at, at)
            for at, line in block.instructions()
            if line.match
        )
        detail = "ENTRY" if block.is_entry else ""
        last = block.start + len(block.lines) - 1
        found.append(Symbol(block.name, detail, block.start, last, children))
    return found


def folds(document: Document) -> list[tuple[int, int]]:
    """First and last lines of computations."""
    return [(block.start, block.start + len(block.lines) - 1) for block in document.blocks]


def tokens(
    document: Document,
    first: int = 0,
    last: int | None = None,
    pattern: re.Pattern[str] = _TOKEN,
) -> list[int]:
    """Semantic tokens of lines, five numbers each, as the protocol has them. `pattern`: a group for each kind."""
    data: list[int] = []
    at_line, at_column = 0, 0
    for number, line in enumerate(document.lines[first:last], first):
        for match in pattern.finditer(line.text):
            kind = match.lastgroup or ""
            delta = number - at_line
            start = match.start() - (0 if delta else at_column)
            data += (delta, start, len(match[0]), TOKEN_TYPES.index(kind), 0)
            at_line, at_column = number, match.start()
    return data


def inlay_shapes(document: Document, first: int, last: int) -> list[tuple[int, int, str]]:
    """Line, column and shape behind each operand whose shape the text does not show."""
    found: list[tuple[int, int, str]] = []
    for number in range(first, min(last + 1, len(document.lines))):
        block = document.block_at(number)
        line = document.lines[number]
        for name, column in line.operands if block is not None else ():
            match = block.lines[block.names[name]].match if block and name in block.names else None
            if match is not None:
                end = column + len(name) + (line.text[column] == "%")
                found.append((number, end, f": {match['shape'].split('{')[0]}"))
    return found


# ---------------------------------------------------------------- mends


def mends(document: Document, diagnostic: Diagnostic) -> list[Mend]:
    """Changes that a diagnostic names: another name, the shape that operands give."""
    place = diagnostic.place
    if place is None or not 0 < place.line <= len(document.lines):
        return []
    at, line = place.line - 1, document.lines[place.line - 1]
    found: list[Mend] = []
    if (gives := _GIVES.search(diagnostic.message)) and line.match is not None:
        span = Span(at, *line.match.span("shape"))
        found.append(Mend(f"declare {gives['shape']}", span, gives["shape"]))
    word = document.word_at(at, max(place.column - 1, 0))
    if word is None:
        return found
    sign = "%" if line.text[word[1].start] == "%" else ""
    texts = [sign + name.lstrip("%") for name in named_in(diagnostic)]
    return [*found, *(Mend(f"change to {text}", word[1], text) for text in texts)]


def named_in(diagnostic: Diagnostic) -> list[str]:
    """Names that a diagnostic says may be meant."""
    text = f"{diagnostic.message} {diagnostic.help or ''}"
    return [match["name"] for match in _INSTEAD.finditer(text)]
