"""Attribute lists, token by token: `, key=value, …` after the operands of an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.table import AttrSpec
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import Lexer, Token
from mlirhlo.formats.hlo_text.reader_attributes import (
    CONTROL,
    keeps_for_check,
    settle,
)
from mlirhlo.formats.hlo_text.reader_pieces import ATTRIBUTE
from mlirhlo.formats.hlo_text.reader_problems import ReadProblem, coded
from mlirhlo.formats.hlo_text.reader_state import ModuleState, OpcodeInfo, Scope
from mlirhlo.formats.hlo_text.reader_tokens import expects
from mlirhlo.formats.hlo_text.suggestions import did_you_mean

FORMER_KEYS: Mapping[str, str] = {"conv_kind": "convolution_kind"}
"""Keys that some versions of XLA printed, and what they are called now."""

CARRIED = frozenset({("dot", "sparsity")})
"""Attributes of former versions that nothing stands for now; they are kept as text."""

ReadBody = Callable[[], SymbolRefAttr]
"""Reads an inline computation `{ … }` and names it."""


@dataclass(slots=True)
class Attributes:
    """The attributes of one instruction."""

    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    control: list[SSAValue] = field(default_factory=list[SSAValue])
    raw: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])


class AttributesReader:
    """Reads attribute lists from a lexer."""

    def __init__(self, state: ModuleState, lexer: Lexer, read_body: ReadBody) -> None:
        self.state, self.lexer, self.read_body = state, lexer, read_body

    def read(
        self,
        scope: Scope,
        info: OpcodeInfo,
        wrapped: OpcodeInfo | None,
        found: Attributes,
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
                raise expects(lexer, "attribute name", token)
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
            spec = specs.get(FORMER_KEYS.get(key, key))
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
                raise expects(lexer, "a instruction name", token)
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
            return self.read_body()
        token = lexer.look()
        if token.kind not in ("name", "word"):
            raise expects(lexer, "computation name", token)
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
        self, token: Token, info: OpcodeInfo, specs: Mapping[str, AttrSpec], found: Attributes
    ) -> None:
        lexer = self.lexer
        if self.state.options.carry_unknown_attributes or (info.row.name, token.text) in CARRIED:
            end = lexer.text.find("\n", token.start)
            line = lexer.text[token.start : end if end >= 0 else None]
            match = ATTRIBUTE.match(", " + line)
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
