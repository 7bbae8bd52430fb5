"""The same answers about MLIR text: StableHLO, kernels of the `tpu` dialect, our MLIR form of HLO.

The text is taken apart by tokens, without its dialects: what is defined where, which regions enclose a position. So an
answer comes also for a text that cannot be read at the moment, and for operations that nobody knows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mlirhlo.analysis.cost.visitor import size_bytes
from mlirhlo.debug.editor import features
from mlirhlo.debug.editor.document import Document, Span
from mlirhlo.debug.editor.features import (
    Completion,
    Mend,
    Symbol,
    checked_name,
    named_in,
    pattern_of,
)
from mlirhlo.diagnostics import Diagnostic
from mlirhlo.dialects.chlo.table import ROWS as CHLO
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.stablehlo.table import ROWS as STABLEHLO
from mlirhlo.dialects.tpu.table import ROWS as TPU

TOKEN_PATTERNS: Mapping[str, str] = {
    "comment": r"//.*",
    "string": r"\"(?:[^\"\\]|\\.)*\"",
    "type": r"\b(?:tensor|vector|memref|tuple)(?=<)|!\w[\w.]*",
    "function": r"\b[a-z_]\w*(?:\.[a-z_][\w-]*)+",
    "property": r"\b[a-z_]\w*(?= ?=[^=])|[#^][A-Za-z_][\w.]*",
    "keyword": r"\b(?:module|public|private|attributes|return|true|false|unit|loc|dense|entry)\b",
    "variable": r"[%@][\w$.-]+",
    "number": r"-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b",
}
"""By kind of semantic token, in the order in which they are tried."""
_TOKEN = pattern_of(TOKEN_PATTERNS)
_SCAN = re.compile(
    r'(?P<comment>//.*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<name>[%@][\w$.-]+)|(?P<mark>[{}()])'
)
_RESULTS = re.compile(r"\s*%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=(?!=)")
_SYMBOL = re.compile(r'\s*"?(?:\w+\.)*(?:module|func|computation|mesh|global)"?\s+(?:\w+\s+)*$')
_OPERATION = re.compile(r'(?:=\s*|^\s*)"?(?P<name>[a-z_]\w*(?:\.[a-z_][\w-]*)+)')
_TENSOR = re.compile(r"tensor<(?P<sizes>(?:\d+x)*)(?P<element>[a-z]\w*)")
_LOCATION = re.compile(r'loc\("(?P<file>[^"]+)":(?P<line>\d+)')
_NAME = re.compile(r"[%@][\w$.-]+")


@dataclass(slots=True)
class _Region:
    """What stands between two braces."""

    first: int
    last: int
    parent: int
    """Index of the region around it; -1 for the whole text."""


@dataclass(slots=True)
class _Definition:
    """A value, or a symbol."""

    name: str
    """With `%` or `@`."""
    span: Span
    region: int
    is_argument: bool = False
    """Of a region, rather than a result."""
    uses: list[Span] = field(default_factory=list[Span])


@dataclass(slots=True)
class _Names:
    """Regions, definitions in the order of the text, and what each name of it stands for."""

    regions: list[_Region] = field(default_factory=list[_Region])
    definitions: list[_Definition] = field(default_factory=list[_Definition])
    at: dict[Span, _Definition] = field(default_factory=dict[Span, _Definition])

    def is_within(self, region: int, outer: int) -> bool:
        """Whether a region is another one, or lies in it."""
        while region != outer and region >= 0:
            region = self.regions[region].parent
        return region == outer

    def region_at(self, line: int) -> int:
        """The innermost region around the start of a line."""
        inside = [k for k, r in enumerate(self.regions) if r.first < line <= r.last]
        return max(inside, key=lambda k: self.regions[k].first, default=-1)


@lru_cache(maxsize=4)
def _names_of(text: str) -> _Names:
    """Definitions and uses of a text; a use is of the last definition before it in a region around it."""
    names, known = _Names(), dict[str, list[_Definition]]()
    symbols: list[tuple[str, Span]] = []
    region, depth = -1, 0
    for number, line in enumerate(text.split("\n")):
        results = _RESULTS.match(line)
        results_end = results.end() if results else 0
        opened, defined = len(names.regions), len(names.definitions)
        for match in _SCAN.finditer(line):
            token = match[0]
            if token == "{":
                names.regions.append(_Region(number, number, region))
                region = len(names.regions) - 1
            elif token == "}" and region >= 0:
                names.regions[region].last = number
                region = names.regions[region].parent
            elif match.lastgroup == "mark":
                depth += {"(": 1, ")": -1}.get(token, 0)
            elif match.lastgroup == "name":
                span = Span(number, match.start(), match.end())
                if token[0] == "@":
                    if _SYMBOL.fullmatch(line[: match.start()]):
                        _define(names, known, token, span, region)
                    else:
                        symbols.append((token, span))
                elif match.start() < results_end:
                    _define(names, known, token, span, region)
                elif _is_argument(line, match, depth):
                    _define(names, known, token, span, region, is_argument=True)
                else:
                    _use(names, known, token, span, region)
        if len(names.regions) > opened and region >= opened:
            _move_arguments(names, names.definitions[defined:], region)
    for token, span in symbols:  # functions stand in any order
        _use(names, known, token, span, None)
    for open_region in names.regions:
        open_region.last = max(open_region.last, open_region.first)
    return names


def _move_arguments(names: _Names, definitions: Sequence[_Definition], region: int) -> None:
    """Arguments on the line that begins a region belong to it."""
    for definition in definitions:
        if definition.is_argument and definition.region == names.regions[region].parent:
            definition.region = region


def _is_argument(line: str, match: re.Match[str], depth: int) -> bool:
    """Whether a name is an argument of a region: `(%x: T`, `(%x = %y`, `(%x, %y) in (`."""
    before, after = line[: match.start()].rstrip(), line[match.end() :].lstrip()
    if after.startswith("=") and not after.startswith("=="):
        return True
    if depth <= 0 or not before.endswith(("(", ",")):
        return False
    return after.startswith(":") or bool(re.match(r"[^()]*\)\s*in\b", after))


def _define(
    names: _Names,
    known: dict[str, list[_Definition]],
    token: str,
    span: Span,
    region: int,
    *,
    is_argument: bool = False,
) -> None:
    definition = _Definition(token, span, region, is_argument)
    names.definitions.append(definition)
    names.at[span] = definition
    known.setdefault(token, []).append(definition)


def _use(
    names: _Names,
    known: dict[str, list[_Definition]],
    token: str,
    span: Span,
    region: int | None,
) -> None:
    for definition in reversed(known.get(token, ())):
        if region is None or names.is_within(region, definition.region):
            definition.uses.append(span)
            names.at[span] = definition
            return


def _word_at(document: Document, line: int, column: int) -> Span | None:
    if line >= len(document.lines):
        return None
    for match in _NAME.finditer(document.lines[line].text):
        if match.start() <= column <= match.end():
            return Span(line, match.start(), match.end())
    return None


def _definition_at(document: Document, line: int, column: int) -> _Definition | None:
    span = _word_at(document, line, column)
    return None if span is None else _names_of(document.text).at.get(span)


# ---------------------------------------------------------------- names


def definition(document: Document, line: int, column: int) -> Span | None:
    """Where the value or symbol at a position is defined."""
    known = _definition_at(document, line, column)
    return None if known is None else known.span


def references(document: Document, line: int, column: int) -> list[Span]:
    """Where the value or symbol at a position is named, its definition first."""
    known = _definition_at(document, line, column)
    return [] if known is None else [known.span, *known.uses]


def rename(document: Document, line: int, column: int, name: str) -> list[tuple[Span, str]]:
    """Edits that give the value or symbol at a position another name. Raises `HloError` HLO0879."""
    known = _definition_at(document, line, column)
    if known is None:
        return []
    new = known.name[0] + checked_name(name.lstrip("%@"))
    taken = next((d for d in _names_of(document.text).definitions if d.name == new), None)
    if taken is not None and taken is not known:
        checked_name(new, taken.span.line + 1)
    return [(span, new) for span in (known.span, *known.uses)]


# ---------------------------------------------------------------- hover and completion


def hover(document: Document, line: int, column: int) -> str | None:
    """What is known of a position, as Markdown."""
    known = _definition_at(document, line, column)
    if known is not None:
        text = document.lines[known.span.line].text
        lines = [f"```mlir\n{text.strip()[:400]}\n```"]
        if known.name[0] == "%" and (size := _size(_type_of(known, text))):
            lines.append(size)
        if source := _LOCATION.search(text):
            lines.append(f"from `{source['file']}:{source['line']}`")
        count = len(known.uses)
        return "\n\n".join([*lines, f"{count} {'use' if count == 1 else 'uses'}"])
    text = document.lines[line].text if line < len(document.lines) else ""
    operation = _OPERATION.search(text)
    if operation is None or not operation.start("name") <= column <= operation.end("name"):
        return None
    return _page(operation["name"])


def _type_of(known: _Definition, text: str) -> str:
    """The type that a line gives a value: behind its name, or at the end."""
    behind = text[known.span.end :]
    if behind.lstrip().startswith(":") and not _RESULTS.match(text):
        return behind.lstrip(": ").split(",")[0].split(" {")[0].rstrip(" )")
    if "->" in behind:
        return behind.rpartition("->")[2].strip()
    return behind.rpartition(" : ")[2].partition(" loc(")[0].strip()


def _size(text: str) -> str:
    match = _TENSOR.match(text)
    if match is None or "?" in text:
        return ""
    name = {"i1": "pred"}.get(match["element"], re.sub(r"^i(?=\d)", "s", match["element"]))
    if name not in PRIMITIVE_TYPES:
        return ""
    sizes = tuple(int(size) for size in match["sizes"].split("x") if size)
    return f"{size_bytes(ArrayShape(PRIMITIVE_TYPES[name], sizes)):,} bytes"


def _page(name: str) -> str | None:
    """What an operation takes, and what its opcode computes where there is one."""
    dialect, _, rest = name.partition(".")
    opcode = OPCODES.get(rest.replace("_", "-"))
    lines = [f"**{name}**" + (f": {opcode.summary}" if opcode and dialect != "tpu" else "")]
    if signature := _signature(name):
        lines.append(signature)
    return "\n\n".join(lines) if len(lines) > 1 or opcode else None


def _signature(name: str) -> str:
    """Names of an operation's operands and attributes, where its dialect is known."""
    if (row := STABLEHLO.get(name) or CHLO.get(name)) is not None:
        operands, attributes = [o.name for o in row.operands], [p.name for p in row.properties]
    elif (kernel := TPU.get(name)) is not None:
        operands, attributes = (
            [o.name for o in kernel.operands],
            [a.name for a in kernel.attributes],
        )
    else:
        return ""
    lists = {"operands": operands, "attributes": attributes}
    parts = [
        f"{what}: {', '.join(f'`{n}`' for n in names)}" for what, names in lists.items() if names
    ]
    return "; ".join(parts)


def completions(document: Document, line: int, column: int) -> list[Completion]:
    """What may stand at a position."""
    text = document.lines[line].text[:column] if line < len(document.lines) else ""
    names = _names_of(document.text)
    if re.search(r"@[\w$.-]*$", text):
        symbols = [d for d in names.definitions if d.name[0] == "@"]
        return [Completion(d.name, "symbol", "computation") for d in symbols]
    if re.search(r"[(,\s]%?[\w$.-]*$", text) and _OPERATION.search(text):
        return _values(document, names, line, text)
    if re.search(r"(?:=\s*|^\s*)\"?[a-z_][\w.]*$|=\s*$", text):
        hlo = (
            [f"hlo.{key.replace('-', '_')}" for key in OPCODES]
            if "hlo.computation" in document.text
            else []
        )
        tables = {**STABLEHLO, **CHLO, **TPU} if not hlo else {}
        return [Completion(name, _page(name) or name, "opcode") for name in (*hlo, *tables)]
    return []


def _values(document: Document, names: _Names, line: int, text: str) -> list[Completion]:
    """Values that can be read on a line, the nearest first; those of the type of the operand before come first."""
    region = names.region_at(line)
    visible: dict[str, str] = {}
    for known in reversed(names.definitions):
        if (
            known.name[0] == "%"
            and known.span.line < line
            and names.is_within(region, known.region)
        ):
            type_ = _type_of(known, document.lines[known.span.line].text)
            visible.setdefault(known.name, type_)
    operation = _OPERATION.search(text)
    before = _NAME.findall(text[operation.end() :]) if operation else []
    expected = visible.get(before[0], "") if before else ""
    ordered = sorted(visible, key=lambda name: visible[name] != expected)
    return [Completion(name, visible[name], "operand") for name in ordered]


# ---------------------------------------------------------------- structure


def folds(document: Document) -> list[tuple[int, int]]:
    """First and last lines of regions."""
    return [(r.first, r.last) for r in _names_of(document.text).regions if r.last > r.first]


def outline(document: Document) -> list[Symbol]:
    """Functions and computations with the values in them."""
    names = _names_of(document.text)
    symbols = [d for d in names.definitions if d.name[0] == "@"]
    regions = {r.first: (k, r) for k, r in reversed(list(enumerate(names.regions)))}
    lines = [d.span.line for d in names.definitions]
    outlined: list[Symbol] = []
    for symbol in symbols:
        text = document.lines[symbol.span.line].text
        _, region = regions.get(
            symbol.span.line, (-1, _Region(symbol.span.line, symbol.span.line, -1))
        )
        if "module" in text.split("@")[0]:
            continue
        last = max((r.last for r in names.regions if r.first == region.first), default=region.last)
        inside = names.definitions[bisect_left(lines, region.first) : bisect_right(lines, last)]
        values = tuple(_value_symbol(document, d) for d in inside if d.name[0] == "%")
        outlined.append(Symbol(symbol.name, text.split("@")[0].strip(), region.first, last, values))
    return outlined


def _value_symbol(document: Document, known: _Definition) -> Symbol:
    text = document.lines[known.span.line].text
    operation = _OPERATION.search(text)
    detail = f"{operation['name'] if operation else ''} {_type_of(known, text)}".strip()
    return Symbol(known.name, detail[:120], known.span.line, known.span.line)


def inlay_shapes(document: Document, first: int, last: int) -> list[tuple[int, int, str]]:
    """None: the text says the types of operands."""
    return []


def mends(document: Document, diagnostic: Diagnostic) -> list[Mend]:
    """Changes that a diagnostic names: another name."""
    at = diagnostic.place
    if at is None or not 0 < at.line <= len(document.lines):
        return []
    text, start = document.lines[at.line - 1].text, max(at.column - 1, 0)
    word = re.compile(r"[%@]?[\w$.-]+").match(text, start)
    if word is None:
        return []
    sign = word[0][0] if word[0][0] in "%@" else ""
    span = Span(at.line - 1, word.start(), word.end())
    return [
        Mend(f"change to {sign}{name}", span, sign + name.lstrip("%@"))
        for name in named_in(diagnostic)
    ]


def tokens(document: Document, first: int = 0, last: int | None = None) -> list[int]:
    """Semantic tokens of lines, five numbers each, as the protocol has them."""
    return features.tokens(document, first, last, _TOKEN)


__all__: Sequence[str] = (
    "completions",
    "definition",
    "folds",
    "hover",
    "inlay_shapes",
    "mends",
    "outline",
    "references",
    "rename",
    "tokens",
)
