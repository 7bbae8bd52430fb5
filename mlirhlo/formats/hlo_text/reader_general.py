"""The general way: computations and instructions token by token, with every rule and message.

A recursive descent over the tokens of `lexer`, values of attributes read by the dialect. It takes
what the quick way leaves: comments anywhere, several instructions on a line, nested operands,
inline computation bodies, shapes left out, the short forms of asynchronous instructions; and it
makes every diagnostic. Source: HLO text, "Computations and instructions", "Diagnostics".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.attributes.base import integer, string, symbol
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr, read_literal
from mlirhlo.dialects.hlo.module import set_source
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, compatible, read_shape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.table import OPCODES, AttrSpec
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import TYPE_WORDS, Lexer, Token
from mlirhlo.formats.hlo_text.reader_async import (
    COPIED,
    START_KEYS,
    async_parts,
    check_wrapped_opcode,
    split_opcode,
    wrap,
)
from mlirhlo.formats.hlo_text.reader_attributes import (
    CONTROL,
    OpcodeInfo,
    keeps_for_check,
    opcode_info,
    settle,
)
from mlirhlo.formats.hlo_text.reader_checks import check_replication
from mlirhlo.formats.hlo_text.reader_fast import FOOTER, read_header, read_lines
from mlirhlo.formats.hlo_text.reader_pieces import ATTRIBUTE, Pieces
from mlirhlo.formats.hlo_text.reader_problems import Misfit, ReadProblem, coded
from mlirhlo.formats.hlo_text.reader_state import ModuleState, Scope
from mlirhlo.formats.hlo_text.suggestions import did_you_mean

_LINE_END = re.compile(r"[ \t]*+\r?\n")


@dataclass(slots=True)
class _Attributes:
    """Attributes as they are being read."""

    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    control: list[SSAValue] = field(default_factory=list[SSAValue])
    raw: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])


class GeneralReader:
    """Reads computations from a lexer into a module."""

    def __init__(self, state: ModuleState) -> None:
        self.state = state
        self.lexer = Lexer(state.source.text)
        self.pieces = Pieces(state)

    # -------------------------------------------------------------- computations

    def computations(self) -> None:
        """Reads computations to the end of the text."""
        text, lexer = self.state.source.text, self.lexer
        while True:
            header = read_header(self.pieces, lexer.position)
            if header is None:
                self.computation()
            else:
                self._enter(header.scope, header.is_entry)
                lexer.position = read_lines(self.pieces, header.scope, header.end)
                footer = FOOTER.match(text, lexer.position)
                if footer is None or header.scope.block.first_op is None:
                    self._rest(header.scope, header.declared, header.declared_at, header.is_entry)
                else:
                    lexer.position = footer.end()
                    self._close(header.scope, header.declared, header.declared_at, header.is_entry)
            if lexer.at_end():
                return

    def computation(self) -> None:
        """Reads one computation, with its header."""
        lexer, state = self.lexer, self.state
        is_entry = lexer.accept_keyword("ENTRY")
        token = lexer.look()
        if lexer.at_name():
            lexer.take()
            name, offset = token.text, token.start
        elif state.essential_constants and lexer.peek("{"):
            # Fingerprints leave names out.
            name, offset = f"_{len(state.by_symbol)}", token.start
        else:
            raise self._expects("name", token)
        scope = Scope(name, offset)
        self._enter(scope, is_entry)
        declared, declared_at = None, offset
        if lexer.peek("("):
            declared, declared_at = self._signature()
        if not lexer.accept("{"):
            raise self._expects("'{' at the beginning of instruction list", lexer.look())
        self._rest(scope, declared, declared_at, is_entry)

    def _enter(self, scope: Scope, is_entry: bool) -> None:
        if is_entry and self.state.entry is not None:
            raise ReadProblem(
                codes.ROOT_OR_ENTRY,
                scope.offset,
                "expects only one ENTRY",
                len(scope.name),
                notes=(
                    ("the other ENTRY is here", self.state.offsets[self.state.entry_text_name]),
                ),
            )
        self.state.declare(scope, len(scope.name))

    def _rest(self, scope: Scope, declared: Shape | None, declared_at: int, is_entry: bool) -> None:
        self._instructions(scope)
        self._close(scope, declared, declared_at, is_entry)

    def _close(
        self, scope: Scope, declared: Shape | None, declared_at: int, is_entry: bool
    ) -> None:
        computation = self.state.finish(scope, declared, declared_at)
        self.state.written.append((scope.offset, self.lexer.position, computation.computation_name))
        if is_entry:
            self.state.entry, self.state.entry_text_name = computation, scope.name
        if self.lexer.peek(","):
            self._execution_thread(computation)

    def _signature(self) -> tuple[Shape, int]:
        lexer = self.lexer
        lexer.expect("(")
        if not lexer.accept(")"):
            while True:
                if not lexer.at_name():
                    raise self._expects("name", lexer.look())
                lexer.take()
                self.shape()
                if not lexer.accept(","):
                    break
            if not lexer.accept(")"):
                raise self._expects("')' at the end of param list", lexer.look())
        if not lexer.accept("->"):
            raise self._expects("'->' before the result's shape", lexer.look())
        declared_at = lexer.skip()
        return self.shape(), declared_at

    def _execution_thread(self, computation: ComputationOp) -> None:
        lexer = self.lexer
        while lexer.accept(","):
            token = lexer.take()
            if token.kind != "key" or token.text != "execution_thread":
                raise ReadProblem(
                    codes.UNKNOWN_ATTRIBUTE,
                    token.start,
                    f'unexpected attribute "{token.text}". Allowed attributes: execution_thread',
                    len(token.text),
                )
            thread = lexer.string()
            if thread not in ("", "main"):
                computation.properties["execution_thread"] = string(thread)

    def _instructions(self, scope: Scope) -> None:
        """Instructions up to and with the closing brace."""
        lexer, text = self.lexer, self.state.source.text
        while True:
            line_end = _LINE_END.match(text, lexer.position)
            if line_end is not None:
                lexer.position = read_lines(self.pieces, scope, line_end.end())
            token = lexer.look()
            if token.text == "}" and scope.block.first_op is not None:
                lexer.take()
                return
            if token.kind == "end" and scope.block.first_op is not None:
                raise ReadProblem(
                    codes.SYNTAX,
                    token.start,
                    f"expects '}}' at the end of computation {scope.name}, found the end",
                    notes=((f"computation {scope.name} begins here", scope.offset),),
                )
            self.instruction(scope)

    def _inline(self) -> SymbolRefAttr:
        """An inline body `{ … }`: a computation above that reads the same, else a new one, `_`."""
        lexer = self.lexer
        scope = Scope("_", lexer.skip())
        lexer.expect("{")
        self._instructions(scope)
        known = self.state.same_body(scope.offset, lexer.position)
        if known is not None:
            return symbol(known)
        computation = self.state.finish(scope, None, scope.offset, inline=True)
        return symbol(computation.computation_name)

    # -------------------------------------------------------------- instructions

    def instruction(self, scope: Scope) -> None:
        """Reads one instruction with its name."""
        lexer = self.lexer
        start = lexer.skip()
        is_root = lexer.accept_keyword("ROOT")
        token = lexer.look()
        if token.kind not in ("name", "word"):
            raise self._expects("name", token)
        lexer.take()
        if not lexer.accept("="):
            raise self._expects("'=' in instruction", lexer.look())
        if is_root and scope.root is not None:
            raise ReadProblem(
                codes.ROOT_OR_ENTRY, start, "one computation should have only one ROOT", 4
            )
        op = self.right_hand_side(scope, token.text, token.start)
        if is_root:
            scope.root = op.results[0]

    def right_hand_side(
        self, scope: Scope, name: str | None, start: int, *, with_attributes: bool = True
    ) -> Instruction:
        """Reads `shape opcode(operands), attributes` and makes the instruction.

        `name` is None for a nested instruction.
        """
        lexer = self.lexer
        shape = self.shape() if lexer.at_shape() else None
        token = lexer.look()
        info, wrapped = self._opcode(token)
        lexer.take()
        if shape is None and not info.row.infers:
            raise ReadProblem(
                codes.NO_SHAPE,
                token.start,
                f"cannot infer shape for opcode: {info.row.name}",
                len(token.text),
                help=f"write the result's shape before '{token.text}'",
            )
        open_at = lexer.skip()
        found = _Attributes()
        operands: list[SSAValue] = []
        type_ = None if shape is None else type_of(shape)
        if info.row.name == "parameter":
            number = self._parameter_number(scope)
            found.properties["parameter_number"] = integer(number)
        elif info.row.name == "constant":
            literal = self._literal(cast(Shape, shape))
            found.properties["literal"] = LiteralAttr(literal)
            type_ = type_of(literal.shape)
        else:
            operands = self._operands(scope)
            if 0 <= info.arity != len(operands):
                raise ReadProblem(
                    codes.OPERAND_COUNT,
                    open_at,
                    f"expects {info.arity} operands, but has {len(operands)} operands",
                    max(1, lexer.position - open_at),
                )
        self._attributes(scope, info, wrapped, found, with_attributes)
        try:
            type_ = self._complete(info, wrapped, operands, type_, found.properties)
        except Misfit as misfit:
            offset = open_at if misfit.code == codes.OPERAND_COUNT else token.start
            length = 1 if offset == open_at else len(token.text)
            raise ReadProblem(
                misfit.code, offset, misfit.message, length, help=misfit.help
            ) from None
        if found.raw:
            found.properties["raw_attributes"] = string(", ".join(found.raw))
        if found.control:
            found.properties[CONTROL_PREDECESSORS] = integer(len(found.control))
            operands = operands + found.control
        op = build.create(info.cls, operands, type_, found.properties, name)
        self._define(scope, op, name, start)
        return op

    def _define(self, scope: Scope, op: Instruction, name: str | None, start: int) -> None:
        if name is None:
            op.instruction_name = self.state.anonymous_names.unique(f"{op.opcode.name}.anon")
            scope.all_named = False
        else:
            if name in TYPE_WORDS or name.startswith("__"):
                suggestion = legal_name(name)
                raise ReadProblem(
                    codes.ILLEGAL_NAME,
                    start,
                    f"illegal instruction name: {name}; suggest renaming to: {suggestion}",
                    len(name),
                )
            earlier = scope.values.get("%" + name)
            if earlier is not None:
                from mlirhlo.dialects.hlo.module import source_of

                place = source_of(cast(Instruction, earlier.owner))
                raise ReadProblem(
                    codes.NAME_TAKEN,
                    start,
                    f"instruction already exists: {name}",
                    len(name),
                    notes=(
                        (
                            "instruction previously defined here",
                            None if place is None else place[1],
                        ),
                    ),
                )
            scope.values["%" + name] = op.results[0]
        set_source(op, self.state.source, start)
        build.append(scope.block, op)
        if isinstance(op, ParameterOp):
            scope.parameters[op.parameter_number] = op

    def _opcode(self, token: Token) -> tuple[OpcodeInfo, OpcodeInfo | None]:
        """The opcode's row, and for a short asynchronous form the wrapped opcode's."""
        if token.kind != "word":
            raise self._expects("opcode", token)
        info = opcode_info(token.text)
        if info is not None:
            return info, None
        parts = split_opcode(token.text)
        name = token.text if parts is None else parts[0]
        wrapped = opcode_info(name)
        if wrapped is not None and parts is not None:
            return cast(OpcodeInfo, opcode_info(parts[1])), wrapped
        what = "opcode" if parts is None else "async wrapped opcode"
        raise ReadProblem(
            codes.UNKNOWN_OPCODE,
            token.start,
            f"expects {what} but sees: {token.text}, error: Unknown opcode: {name}",
            len(token.text),
            help=did_you_mean(name, OPCODES),
        )

    def _complete(
        self,
        info: OpcodeInfo,
        wrapped: OpcodeInfo | None,
        operands: Sequence[SSAValue],
        type_: Attribute | None,
        properties: dict[str, Attribute],
    ) -> Attribute:
        """Checks the instruction and fills in what was left out. Raises `Misfit`."""
        state = self.state
        if wrapped is not None:
            assert type_ is not None  # no asynchronous opcode infers
            if info.row.name != "async-start":
                check_wrapped_opcode(state, operands, wrapped.row.name)
            elif "calls" not in properties:
                async_parts(type_)
                own = {key: value for key, value in properties.items() if key not in START_KEYS}
                for key in own:
                    if key not in COPIED and key != "sharding":
                        del properties[key]
                if wrapped.row.name == "fusion":
                    for key in ("output_to_operand_aliasing", "calls"):
                        if key in properties:
                            own[key] = properties.pop(key)
                own.pop("sharding", None)
                computation = wrap(state, operands, type_, wrapped, own)
                properties["calls"] = symbol(computation.computation_name)
        if info.row.name == "parameter" and type_ is not None:
            check_replication(type_, properties)
        if info.check is not None:
            info.check(state, operands, type_, properties)
        if type_ is None:
            type_ = type_of(self._infer(info, operands, properties))
        state.fit_sharding(type_, properties)
        return type_

    def _infer(
        self,
        info: OpcodeInfo,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
    ) -> Shape:
        from mlirhlo.analysis.shape_inference import infer
        from mlirhlo.analysis.shape_inference.base import ConstraintError
        from mlirhlo.dialects.hlo.attributes.base import symbols_of

        names = [n for key in info.cls.calling_keys for n in symbols_of(properties.get(key))]
        callees = {name: self.state.program_layout(name) for name in names}
        shapes = [shape_of(value.type) for value in operands]
        try:
            return infer(info.row.name, shapes, properties, callees)
        except ConstraintError as error:
            raise Misfit(
                codes.NO_SHAPE,
                f"failed to infer shape for opcode: {info.row.name}, error: {error.message}",
                help=error.help,
            ) from None

    # -------------------------------------------------------------- operands

    def _parameter_number(self, scope: Scope) -> int:
        lexer = self.lexer
        if not lexer.accept("("):
            raise self._expects("'(' before parameter number", lexer.look())
        at = lexer.skip()
        if lexer.look().kind != "int":
            raise self._expects("integer", lexer.look())
        number = lexer.integer()
        problem = None
        if number < 0:
            problem = "parameter number must be >= 0"
        elif number in scope.parameters:
            problem = f"Duplicate parameter number {number}"
        elif number >= 1 << 31:
            problem = f"parameter number {number} is too large"
        if problem is not None:
            raise ReadProblem(codes.PARAMETER_NUMBERS, at, problem, lexer.position - at)
        if not lexer.accept(")"):
            raise self._expects("')' after parameter number", lexer.look())
        return number

    def _literal(self, shape: Shape) -> Literal:
        lexer = self.lexer
        if not lexer.accept("("):
            raise self._expects("'(' before constant literal", lexer.look())
        try:
            literal = self._essential(shape) or read_literal(lexer, shape)
        except SyntaxProblem as problem:
            raise coded(problem, codes.LITERAL) from None
        if not lexer.accept(")"):
            raise self._expects("')' after constant literal", lexer.look())
        return literal

    def _essential(self, shape: Shape) -> Literal | None:
        """The array that a fingerprint's `0` or `1` stands for; None for other constants."""
        if (
            not self.state.essential_constants
            or not isinstance(shape, ArrayShape)
            or not shape.rank
        ):
            return None
        token = self.lexer.look()
        if token.text not in ("0", "1"):
            return None
        self.lexer.take()
        one = Literal.from_text(
            ArrayShape(shape.element_type, (), (), None),
            f"({token.text}, 0)" if shape.element_type.is_complex else token.text,
        )
        static = Literal.elided(shape).shape
        return Literal(static, one.data * shape.element_count)

    def _operands(self, scope: Scope) -> list[SSAValue]:
        lexer = self.lexer
        if not lexer.accept("("):
            raise self._expects("'(' at the beginning of operands", lexer.look())
        found: list[SSAValue] = []
        while not lexer.accept(")"):
            found.append(self._operand(scope))
            if not lexer.accept(",") and not lexer.peek(")"):
                raise self._expects("',' or ')' at the end of operands", lexer.look())
        return found

    def _operand(self, scope: Scope) -> SSAValue:
        lexer = self.lexer
        start = lexer.skip()
        shape_read = lexer.at_shape()
        shape = self.shape() if shape_read else None
        token = lexer.look()
        if token.kind in ("name", "word"):
            value = scope.values.get("%" + token.text)
            after = Lexer(lexer.text, token.end, lexer.end)
            if value is None and token.kind == "word" and after.peek("("):
                # A nested instruction.
                lexer.position = start
                op = self.right_hand_side(scope, None, start, with_attributes=False)
                return op.results[0]
            lexer.take()
            if value is None:
                value = self._missing(scope, token, shape)
            if shape is not None and not compatible(shape, shape_of(value.type)):
                raise ReadProblem(
                    codes.SHAPES_DIFFER,
                    start,
                    f"The declared operand shape {shape} is not compatible with the shape of the"
                    f" operand instruction {shape_of(value.type)}.",
                    token.start - start,
                    notes=self._definition(token.text, value),
                )
            return value
        if shape is not None and scope.creates_parameters:
            return self._new_parameter(scope, f"_{len(scope.parameters)}", shape, start)
        raise self._expects("an instruction name or a nested instruction", token)

    def _definition(self, name: str, value: SSAValue) -> tuple[tuple[str, int | None], ...]:
        from mlirhlo.dialects.hlo.module import source_of

        place = source_of(cast(Instruction, value.owner))
        return () if place is None else ((f"%{name} is defined", place[1]),)

    def _missing(self, scope: Scope, token: Token, shape: Shape | None) -> SSAValue:
        if scope.creates_parameters:
            if shape is not None:
                return self._new_parameter(scope, token.text, shape, token.start)
            raise ReadProblem(
                codes.UNKNOWN_INSTRUCTION,
                token.start,
                "Operand had no shape in HLO text; cannot create parameter for single-instruction module.",
                len(token.text),
                help=f"write a shape before it: f32[4] {token.text}",
            )
        raise ReadProblem(
            codes.UNKNOWN_INSTRUCTION,
            token.start,
            f"instruction does not exist: {token.text}",
            token.end - token.start,
            help=did_you_mean(token.text, [key[1:] for key in scope.values])
            or "operands are defined above their uses, in the same computation",
        )

    def _new_parameter(self, scope: Scope, name: str, shape: Shape, start: int) -> SSAValue:
        number = integer(len(scope.parameters))
        op = build.create(ParameterOp, (), type_of(shape), {"parameter_number": number}, name)
        self._define(scope, op, name, start)
        return op.results[0]

    # -------------------------------------------------------------- attributes

    def _attributes(
        self,
        scope: Scope,
        info: OpcodeInfo,
        wrapped: OpcodeInfo | None,
        found: _Attributes,
        with_attributes: bool,
    ) -> None:
        lexer = self.lexer
        specs, required = info.specs, info.required
        if wrapped is not None:
            specs = {**wrapped.specs, **info.specs}
            required = wrapped.required if info.row.name == "async-start" else ()
        while with_attributes and lexer.accept(","):
            token = lexer.look()
            if token.kind != "key":
                raise self._expects("attribute name", token)
            key = token.text
            if key in found.seen:
                raise ReadProblem(
                    codes.UNKNOWN_ATTRIBUTE,
                    token.start,
                    f"attribute {key} already exists",
                    len(key),
                )
            found.seen.add(key)
            lexer.take()
            spec = specs.get(key)
            try:
                if key == CONTROL:
                    found.control = self._control(scope)
                elif spec is None:
                    self._unknown(token, info, specs, found)
                else:
                    value = self._value(spec)
                    if value is not None:
                        found.properties[spec.property_name] = value
            except SyntaxProblem as problem:
                if isinstance(problem, ReadProblem) and problem.code == codes.UNKNOWN_ATTRIBUTE:
                    raise
                raise coded(problem, codes.ATTRIBUTE_VALUE).within(
                    f"error parsing attribute {key}", token.start
                ) from None
        for key in required:
            if key not in found.seen and not (wrapped is not None and "calls" in found.seen):
                raise ReadProblem(
                    codes.MISSING_ATTRIBUTE,
                    lexer.skip(),
                    f"attribute {key} is expected but not seen",
                    help=f"every {(wrapped or info).row.name} has {key}=; "
                    + ("write it after the operands" if with_attributes else "do not nest it"),
                )

    def _control(self, scope: Scope) -> list[SSAValue]:
        lexer = self.lexer
        found: dict[SSAValue, None] = {}

        def predecessor() -> None:
            token = lexer.look()
            if token.kind not in ("name", "word"):
                raise self._expects("a instruction name", token)
            lexer.take()
            value = scope.values.get("%" + token.text)
            if value is None:
                raise ReadProblem(
                    codes.UNKNOWN_INSTRUCTION,
                    token.start,
                    f"instruction '{token.text}' is not defined",
                    token.end - token.start,
                    help=did_you_mean(token.text, [key[1:] for key in scope.values]),
                )
            found[value] = None

        lexer.expect("{")
        predecessor()
        while lexer.accept(","):
            predecessor()
        lexer.expect("}")
        return list(found)

    def _value(self, spec: AttrSpec) -> Attribute | None:
        if not spec.kind.names_computations:
            return settle(spec, spec.kind.read(self.lexer))
        value = self._callees() if spec.kind is kinds.COMPUTATIONS else self._callee()
        return None if spec.read_only and not keeps_for_check(spec) else value

    def _callee(self) -> SymbolRefAttr:
        lexer = self.lexer
        if lexer.peek("{"):
            return self._inline()
        token = lexer.look()
        if token.kind not in ("name", "word"):
            raise self._expects("computation name", token)
        lexer.take()
        found = self.state.symbols.get(token.text)
        if found is None:
            raise ReadProblem(
                codes.UNKNOWN_COMPUTATION,
                token.start,
                f"computation does not exist: {token.text}",
                token.end - token.start,
                help=did_you_mean(token.text, self.state.symbols)
                or "computations are defined above their uses",
            )
        return found

    def _callees(self) -> Attribute:
        if not self.lexer.peek("{"):
            return ArrayAttr([self._callee()])
        return ArrayAttr(self.lexer.items("{", "}", self._callee))

    def _unknown(
        self, token: Token, info: OpcodeInfo, specs: Mapping[str, AttrSpec], found: _Attributes
    ) -> None:
        lexer = self.lexer
        if self.state.options.carry_unknown_attributes:
            match = ATTRIBUTE.match(
                ", " + lexer.text[token.start : lexer.text.find("\n", token.start)]
            )
            if match is not None:
                text = match.group()[2:].rstrip()
                found.raw.append(text)
                lexer.position = token.start + len(text)
                return
        allowed = ", ".join(sorted({*specs, CONTROL}))
        raise ReadProblem(
            codes.UNKNOWN_ATTRIBUTE,
            token.start,
            f'unexpected attribute "{token.text}". Allowed attributes: {allowed}',
            len(token.text),
            help=did_you_mean(token.text, specs),
        )

    # -------------------------------------------------------------- small things

    def shape(self) -> Shape:
        """Reads a shape."""
        try:
            return read_shape(self.lexer)
        except SyntaxProblem as problem:
            raise coded(problem, codes.SHAPE) from None

    def _expects(self, what: str, token: Token) -> ReadProblem:
        """A token is not what it should be."""
        text = self.state.source.text
        found = "the end" if token.kind == "end" else repr(text[token.start : token.end][:40])
        why = _WHY.get(token.kind, "") if what.endswith("name") else ""
        return ReadProblem(
            codes.SYNTAX,
            token.start,
            f"expects {what}, found {found}{why}",
            max(1, token.end - token.start),
        )


_WHY = {
    "keyword": ", which is a reserved word (write % before it)",
    "type": ", which is a primitive type",
    "key": ", which is the key of an attribute (a blank is missing before '=')",
}
