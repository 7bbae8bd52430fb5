"""HLO text to a module of the hlo dialect.

There are two ways through a text, and each rule stands in one of them. The quick way
(`reader_fast`) takes lines that look as printers write them and looks their pieces up by text;
whatever it does not recognise, or finds wrong, it leaves alone. The general way
(`reader_general`, a recursive descent over `lexer`) takes the rest and makes every diagnostic. The
values of attributes are read by the dialect in both. The grammar of record, `grammar.lark`, is not
run when a file is read (Lark reaches a tenth of the speed and costs 60 ms to load): tests parse
the corpus and generated texts by it and compare with what was read here.

This module chooses between the forms of a file: a module, computations alone, one instruction.
Source: HLO text, "File structure".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr

from mlirhlo.diagnostics import SourceText
from mlirhlo.dialects.hlo.attributes.base import TRUE, string
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import Lexer
from mlirhlo.formats.hlo_text.reader_general import GeneralReader
from mlirhlo.formats.hlo_text.reader_header import check_aliases, read_module_header
from mlirhlo.formats.hlo_text.reader_problems import ReadProblem, fail
from mlirhlo.formats.hlo_text.reader_state import ModuleState, ReadOptions, Scope

DEFAULT_OPTIONS = ReadOptions()


def parse_module(
    text: str,
    file: str = "<string>",
    *,
    options: ReadOptions = DEFAULT_OPTIONS,
    first_line: int = 1,
) -> ModuleOp:
    """The module that `text` spells; `file` and `first_line` say where the text is from.

    Takes a whole module, computations without a header, or a single instruction. Raises `HloError`
    (HLO0001 to HLO0021) with the place; types and shapes are checked by the verifier only.
    """
    source = SourceText(file, text, first_line)
    state = ModuleState(source, options, ModuleOp([]))
    reader = GeneralReader(state)
    with paused_gc():
        try:
            nul = text.find("\0")
            if nul >= 0:
                raise ReadProblem(codes.CHARACTER, nul, "a NUL character cannot stand in HLO text")
            _read(state, reader)
        except SyntaxProblem as problem:
            fail(source, problem)
        except RecursionError:
            where = reader.lexer.position
            fail(source, ReadProblem(codes.TOO_DEEP, where, "maximum recursion depth exceeded"))
    return state.module


def _read(state: ModuleState, reader: GeneralReader) -> None:
    lexer = reader.lexer
    if lexer.is_keyword("HloModule"):
        read_module_header(state, lexer)
        reader.computations()
        _mark_entry(state)
        check_aliases(state)
    elif lexer.is_keyword("ENTRY") or _is_computation(lexer):
        reader.computations()
        _mark_entry(state)
        entry = HloModule(state.module).entry
        state.module.properties["sym_name"] = string("module_" + entry.computation_name)
    else:
        _read_single(state, reader)


def _is_computation(lexer: Lexer) -> bool:
    """Whether the text starts with a computation without ENTRY: a name, then `{` or a signature."""
    token = lexer.look()
    if not lexer.at_name():
        return False
    after = Lexer(lexer.text, token.end, lexer.end)
    return after.peek("{") or (after.peek("(") and token.text not in OPCODES and token.text != "b")


def _mark_entry(state: ModuleState) -> None:
    entry = state.entry or state.last
    assert entry is not None  # at least one computation was read
    entry.properties["is_entry"] = UnitAttr()


def _read_single(state: ModuleState, reader: GeneralReader) -> None:
    """One instruction; operands that nobody defined become parameters."""
    lexer = reader.lexer
    start = lexer.skip()
    scope = Scope("_", start, creates_parameters=True)
    token = lexer.look()
    is_named = token.text == "ROOT" or not (lexer.at_shape() or _is_bare_instruction(lexer))
    if is_named:
        reader.instructions.instruction(scope)
    else:
        scope.root = reader.instructions.right_hand_side(scope, "_", start).results[0]
    if not lexer.at_end():
        raise ReadProblem(
            codes.SYNTAX,
            lexer.position,
            f"expects the end after a single instruction, found {lexer.look().text[:40]!r}",
            help="a module starts with 'HloModule', a computation with 'ENTRY name {'",
        )
    computation = state.finish(scope, None, start)
    computation.properties["is_entry"] = UnitAttr()
    state.module.properties["sym_name"] = string("_")
    HloModule(state.module).set("is_scheduled", TRUE)


def _is_bare_instruction(lexer: Lexer) -> bool:
    token = lexer.look()
    return token.kind == "word" and Lexer(lexer.text, token.end, lexer.end).peek("(")
