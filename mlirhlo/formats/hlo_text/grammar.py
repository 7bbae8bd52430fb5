"""The grammar of record, run by Lark: what tests hold the reader against.

`grammar.lark` says everything about the form of HLO text; types, reserved words and attribute keys
are filled in from the dialect's tables, so that a new row needs no second entry. Nothing here runs
when a file is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, TypeGuard

from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.attributes.kinds import AttrKind
from mlirhlo.dialects.hlo.table import COMMON, OPCODES
from mlirhlo.formats.hlo_text.lexer import RESERVED, TYPE_WORDS
from mlirhlo.formats.hlo_text.reader_attribute_lists import FORMER_KEYS

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

STARTS = ("module", "computations", "single", "shape", "literal", "attribute", "sharding")

_BY_KIND: dict[str, tuple[AttrKind, ...]] = {
    "INTEGERS_KEY": (kinds.INTEGERS,),
    "INTEGER_LISTS_KEY": (kinds.INTEGER_LISTS,),
    "INTEGER_KEY": (kinds.INTEGER,),
    "BOOLEAN_KEY": (kinds.BOOLEAN,),
    "BOOLEANS_KEY": (kinds.BOOLEANS,),
    "NUMBER_KEY": (kinds.FLOAT,),
    "STRING_KEY": (kinds.STRING,),
    "BYTES_KEY": (kinds.BYTES,),
    "RAW_KEY": (kinds.RAW,),
    "CALLEE_KEY": (kinds.COMPUTATION,),
    "CALLEES_KEY": (kinds.COMPUTATIONS,),
    "PRECISIONS_KEY": (kinds.PRECISIONS,),
    "SHAPE_KEY": (kinds.SHAPE,),
    "SHAPES_KEY": (kinds.SHAPES,),
    "WINDOW_KEY": (kinds.WINDOW, kinds.OPTIONAL_WINDOW),
    "PADDING_KEY": (kinds.PADDING,),
    "SLICE_KEY": (kinds.SLICE,),
    "LABELS_KEY": (kinds.DIM_LABELS,),
    "SPARSITY_KEY": (kinds.SPARSITY_CONFIG,),
    "GROUPS_KEY": (kinds.REPLICA_GROUPS,),
    "SHARDING_KEY": (kinds.SHARDING,),
    "DOMAIN_KEY": (kinds.DOMAIN,),
    "ALIASING_KEY": (kinds.OUTPUT_OPERAND_ALIASES,),
    "LITERAL_KEY": (kinds.LITERAL,),
    "METADATA_KEY": (kinds.METADATA,),
    "FRONTEND_KEY": (kinds.FRONTEND_ATTRIBUTES,),
    "STATISTICS_KEY": (kinds.STATISTICS,),
    "ORIGIN_KEY": (kinds.ORIGIN,),
    "ACCURACY_KEY": (kinds.RESULT_ACCURACY,),
}
"""Terminal for the keys whose values are of these kinds; all other kinds are words."""

_BLANK = r"(?:[ \t\r\n]|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/[^\r\n]*)*"
"""White space and comments, for looking ahead over them."""

_MODE = "mode"
"""Key whose value is a word or raw text, depending on the opcode."""


def _keys_by_terminal() -> dict[str, list[str]]:
    terminal_of = {kind.name: name for name, kinds_ in _BY_KIND.items() for kind in kinds_}
    found: dict[str, set[str]] = {"MODE_KEY": {_MODE}, "WORD_KEY": set()}
    specs = [*COMMON, *(spec for row in OPCODES.values() for spec in row.attributes)]
    for spec in specs:
        if spec.key != _MODE:
            found.setdefault(terminal_of.get(spec.kind.name, "WORD_KEY"), set()).add(spec.key)
    for former, key in FORMER_KEYS.items():
        found[next(name for name, keys in found.items() if key in keys)].add(former)
    return {name: sorted(keys) for name, keys in sorted(found.items())}


@lru_cache(maxsize=1)
def grammar_text() -> str:
    """`grammar.lark` with the tables filled in."""
    text = (resources.files("mlirhlo.formats.hlo_text") / "grammar.lark").read_text()
    keys = [f"{name}: /(?:{'|'.join(keys)})=/" for name, keys in _keys_by_terminal().items()]
    return (
        text.replace("@BLANK@", _BLANK)
        .replace("@TYPES@", "|".join(sorted(TYPE_WORDS, key=len, reverse=True)))
        .replace("@RESERVED@", "|".join(sorted(RESERVED, key=len, reverse=True)))
        .replace("@KEYS@", "\n".join(keys))
    )


@lru_cache(maxsize=1)
def grammar() -> Lark:
    """The parser; building it takes a fraction of a second."""
    from lark import Lark

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="contextual",
        start=list(STARTS),
        propagate_positions=True,
        maybe_placeholders=True,
    )


# ---------------------------------------------------------------- what a text says


@dataclass(frozen=True, slots=True)
class InstructionRecord:
    """One instruction as it is written."""

    name: str
    """Empty for a nested one."""
    is_root: bool
    opcode: str
    shape: str | None
    operands: tuple[str | InstructionRecord, ...]
    """Names; records of nested instructions."""
    value: str
    """Text in the parentheses of a parameter or constant."""
    attributes: dict[str, str]
    """Text of every value, by key."""
    bodies: tuple[tuple[InstructionRecord, ...], ...] = ()
    """Inline computations among the attributes."""


@dataclass(frozen=True, slots=True)
class ComputationRecord:
    """One computation as it is written."""

    name: str
    is_entry: bool
    instructions: tuple[InstructionRecord, ...]
    thread: str = ""


@dataclass(frozen=True, slots=True)
class ModuleRecord:
    """One file as it is written."""

    name: str
    header: tuple[str, ...]
    """Header attributes present."""
    computations: tuple[ComputationRecord, ...] = field(default=())


def parse_records(text: str) -> ModuleRecord:
    """What a module says, by the grammar alone. Raises `lark.exceptions.LarkError`."""
    tree = grammar().parse(text, start="module")  # pyright: ignore[reportUnknownMemberType]
    name = ""
    header: list[str] = []
    computations: list[ComputationRecord] = []
    for child in tree.children:
        if not _is_tree(child):
            name = str(child)
        elif _rule(child) in ("computation", "nameless"):
            computations.append(_computation(child, text))
        elif _rule(child) != "tables":
            header.append(_rule(child))
    return ModuleRecord(name.removeprefix("%"), tuple(header), tuple(computations))


def _is_tree(child: object) -> TypeGuard[Tree[Token]]:
    from lark import Tree

    return isinstance(child, Tree)


def _is_token(child: object) -> TypeGuard[Token]:
    from lark import Token

    return isinstance(child, Token)


def _rule(tree: Tree[Token]) -> str:
    return str(tree.data)


def _trees(tree: Tree[Token], *names: str) -> Iterator[Tree[Token]]:
    for child in tree.children:
        if _is_tree(child) and _rule(child) in names:
            yield child


def _tokens(tree: Tree[Token]) -> dict[str, str]:
    return {child.type: str(child) for child in tree.children if _is_token(child)}


def _bare(name: str) -> str:
    return name.removeprefix("%").removesuffix(":")


def _computation(tree: Tree[Token], text: str) -> ComputationRecord:
    tokens = _tokens(tree)
    (body,) = _trees(tree, "body")
    thread = tokens.get("STRING", '""')[1:-1]
    return ComputationRecord(
        _bare(tokens.get("NAME", "")), "ENTRY" in tokens, _body(body, text), thread
    )


def _body(tree: Tree[Token], text: str) -> tuple[InstructionRecord, ...]:
    return tuple(_instruction(child, text) for child in _trees(tree, "instruction"))


def _instruction(tree: Tree[Token], text: str) -> InstructionRecord:
    tokens = _tokens(tree)
    (rhs,) = _trees(tree, "right_hand_side")
    return _right_hand_side(rhs, text, _bare(tokens["NAME"]), "ROOT" in tokens)


def _right_hand_side(tree: Tree[Token], text: str, name: str, is_root: bool) -> InstructionRecord:
    tokens = _tokens(tree)
    opcode = tokens.get("OPCODE") or tokens.get("PARAMETER") or tokens["CONSTANT"]
    shape = next((_slice(t, text) for t in _trees(tree, "shape", "buffer")), None)
    operands: list[str | InstructionRecord] = []
    for group in _trees(tree, "operands"):
        for operand in _trees(group, "operand", "nested"):
            if _rule(operand) == "operand":
                operands.append(_bare(_tokens(operand)["NAME"]))
            else:
                operands.append(_right_hand_side(operand, text, "", False))
    value = tokens.get("INT", "")
    for literal in _trees(tree, "literal", "parts"):
        value = _slice(literal, text)
    attributes: dict[str, str] = {}
    bodies: list[tuple[InstructionRecord, ...]] = []
    for attribute in _trees(tree, "attribute"):
        (key,) = [child for child in attribute.children if _is_token(child)][:1]
        attributes[str(key)[:-1]] = text[key.end_pos : attribute.meta.end_pos]
        bodies += [_body(body, text) for body in attribute.find_data("body")]
    return InstructionRecord(
        name, is_root, opcode, shape, tuple(operands), value, attributes, tuple(bodies)
    )


def _slice(tree: Tree[Token], text: str) -> str:
    return text[tree.meta.start_pos : tree.meta.end_pos]
