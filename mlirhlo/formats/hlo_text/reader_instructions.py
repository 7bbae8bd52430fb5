"""Instructions, token by token, with every rule and message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import Diagnostic, Severity
from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer, string, symbol, symbols_of
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr, read_literal
from mlirhlo.dialects.hlo.module import set_source, source_of
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, Instruction
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, compatible
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.table import OPCODES, DeclaredShape
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
from mlirhlo.formats.hlo_text.reader_attribute_lists import Attributes, AttributesReader, ReadBody
from mlirhlo.formats.hlo_text.reader_attributes import (
    opcode_info,
)
from mlirhlo.formats.hlo_text.reader_checks import check_replication
from mlirhlo.formats.hlo_text.reader_problems import Misfit, ReadProblem, coded
from mlirhlo.formats.hlo_text.reader_shapes import result_type
from mlirhlo.formats.hlo_text.reader_state import ModuleState, OpcodeInfo, Scope
from mlirhlo.formats.hlo_text.reader_tokens import expects, read_coded_shape
from mlirhlo.formats.hlo_text.suggestions import did_you_mean
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import shape_inference
    from mlirhlo.analysis.shape_inference import base


_MOST_BYTES = 1 << 28
"""Largest array that is made of a fingerprint's `0` or `1`."""


class InstructionReader:
    """Reads instructions from a lexer into a computation."""

    def __init__(self, state: ModuleState, lexer: Lexer, read_body: ReadBody) -> None:
        self.state, self.lexer = state, lexer
        self.attributes = AttributesReader(state, lexer, read_body)

    def instruction(self, scope: Scope) -> None:
        """Reads one instruction with its name."""
        lexer = self.lexer
        start = lexer.skip()
        is_root = lexer.accept_keyword("ROOT")
        token = lexer.look()
        if token.kind not in ("name", "word"):
            raise expects(lexer, "name", token)
        lexer.take()
        if not lexer.accept("="):
            raise expects(lexer, "'=' in instruction", lexer.look())
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
        shape = read_coded_shape(self.lexer) if lexer.at_shape() else None
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
        found = Attributes()
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
        self.attributes.read(scope, info, wrapped, found, with_attributes)
        if found.raw:
            found.properties["raw_attributes"] = string(", ".join(found.raw))
        try:
            type_ = self._complete(info, wrapped, operands, type_, found.properties)
        except Misfit as misfit:
            offset = open_at if misfit.code == codes.OPERAND_COUNT else token.start
            length = 1 if offset == open_at else len(token.text)
            raise ReadProblem(
                misfit.code, offset, misfit.message, length, help=misfit.help
            ) from None
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
            raise expects(self.lexer, "opcode", token)
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
            elif "calls" not in properties or "calls" in wrapped.specs:
                async_parts(type_)
                own = {key: value for key, value in properties.items() if key not in START_KEYS}
                for key in own:
                    if key not in COPIED and key not in ("sharding", "raw_attributes"):
                        del properties[key]
                if wrapped.row.name == "fusion":
                    for key in ("output_to_operand_aliasing", "calls"):
                        if key in properties:
                            own[key] = properties.pop(key)
                own.pop("sharding", None)
                own.pop("raw_attributes", None)
                computation = wrap(state, operands, type_, wrapped, own)
                properties["calls"] = symbol(computation.computation_name)
        if info.row.name == "parameter" and type_ is not None:
            check_replication(type_, properties)
        if info.check is not None:
            info.check(state, operands, type_, properties)
        if type_ is None:
            type_ = type_of(self._infer(info, operands, properties))
        elif info.row.declared_shape is not DeclaredShape.KEPT:
            type_ = result_type(info.row, operands, type_, properties)
        state.fit_sharding(type_, properties)
        return type_

    def _infer(
        self,
        info: OpcodeInfo,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
    ) -> Shape:
        names = [n for key in info.cls.calling_keys for n in symbols_of(properties.get(key))]
        callees = {name: self.state.program_layout(name) for name in names}
        shapes = [shape_of(value.type) for value in operands]
        try:
            return shape_inference.infer(info.row.name, shapes, properties, callees)
        except base.ConstraintError as error:
            raise Misfit(
                codes.NO_SHAPE,
                f"failed to infer shape for opcode: {info.row.name}, error: {error.message}",
                help=error.help,
            ) from None

    # -------------------------------------------------------------- operands

    # -------------------------------------------------------------- operands

    def _parameter_number(self, scope: Scope) -> int:
        lexer = self.lexer
        if not lexer.accept("("):
            raise expects(lexer, "'(' before parameter number", lexer.look())
        at = lexer.skip()
        if lexer.look().kind != "int":
            raise expects(lexer, "integer", lexer.look())
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
            raise expects(lexer, "')' after parameter number", lexer.look())
        return number

    def _literal(self, shape: Shape) -> Literal:
        lexer = self.lexer
        if not lexer.accept("("):
            raise expects(lexer, "'(' before constant literal", lexer.look())
        try:
            literal = self._essential(shape) or read_literal(lexer, shape, self._warn_of_scalar)
        except SyntaxProblem as problem:
            raise coded(problem, codes.LITERAL) from None
        if not lexer.accept(")"):
            raise expects(lexer, "')' after constant literal", lexer.look())
        return literal

    def _warn_of_scalar(self, offset: int) -> None:
        """Says (HLO0022) that a number stands for element 0 alone, not for the whole array."""
        import logging

        logging.getLogger(__name__).warning(
            "%s",
            Diagnostic(
                "HLO0022",
                "one number for a whole array: it is element 0, all other elements are zero",
                self.state.source.place(offset),
                help="write every element, or a scalar constant and a broadcast",
                severity=Severity.WARNING,
            ),
        )

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
        if shape.byte_size > _MOST_BYTES:
            raise self.lexer.problem(f"a constant of {shape.byte_size} bytes is too large")
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
            raise expects(lexer, "'(' at the beginning of operands", lexer.look())
        found: list[SSAValue] = []
        while not lexer.accept(")"):
            found.append(self._operand(scope))
            if not lexer.accept(",") and not lexer.peek(")"):
                raise expects(lexer, "',' or ')' at the end of operands", lexer.look())
        return found

    def _operand(self, scope: Scope) -> SSAValue:
        lexer = self.lexer
        start = lexer.skip()
        shape_read = lexer.at_shape()
        shape = read_coded_shape(self.lexer) if shape_read else None
        token = lexer.look()
        if token.kind in ("name", "word"):
            value = scope.values.get("%" + token.text)
            after = Lexer(lexer.text, token.end, lexer.end)
            if token.kind == "word" and after.peek("("):
                # A nested instruction.
                lexer.position = start
                op = self.right_hand_side(scope, None, start, with_attributes=False)
                return op.results[0]
            lexer.take()
            if value is None:
                value = self._missing(scope, token, shape)
            value = self._element(scope, token.text, value)
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
        raise expects(lexer, "an instruction name or a nested instruction", token)

    def _element(self, scope: Scope, name: str, value: SSAValue) -> SSAValue:
        """An element of a tuple, as `%while.7#1` says it; made once for all who read it.

        So dumps say it that leave get-tuple-element instructions out (`xla_dump_compact_gte`).
        """
        lexer = self.lexer
        while lexer.text.startswith("#", lexer.position, lexer.end):
            start = lexer.position
            lexer.position += 1
            index, shape = lexer.integer("an index"), shape_of(value.type)
            if not isinstance(shape, TupleShape) or not 0 <= index < len(shape.elements):
                message = f"{name} has no element {index}; it is of shape {shape}"
                raise ReadProblem(codes.SHAPE, start, message, lexer.position - start)
            name = f"{name}#{index}"
            element = scope.values.get("%" + name)
            if element is None:
                type_ = type_of(shape.elements[index])
                properties: dict[str, Attribute] = {"index": integer(index)}
                op = build.create(GetTupleElementOp, [value], type_, properties, None)
                self._define(scope, op, None, start)
                element = scope.values["%" + name] = op.results[0]
            value = element
        return value

    def _definition(self, name: str, value: SSAValue) -> tuple[tuple[str, int | None], ...]:
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
