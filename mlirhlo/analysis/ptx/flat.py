"""Functions of PTX as flat lists of instructions, with every name resolved."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.ptx.ops import (
    FunctionOp,
    InstructionOp,
    LabelOp,
    LocOp,
    PrototypeOp,
    ScopeOp,
    TargetsOp,
    VariableOp,
    body_of,
)
from mlirhlo.dialects.ptx.table import canonical
from mlirhlo.dialects.ptx.values import (
    Address,
    Component,
    Group,
    Negated,
    Operand,
    Pair,
    Prototype,
    Register,
    Signature,
    SourceLocation,
    Symbol,
    Variable,
    Vector,
)


@dataclass(slots=True)
class FlatInstruction:
    """An instruction with all names resolved."""

    number: int
    """Index in `FlatFunction.instructions`."""
    line: int
    """Line of the text, from 1; 0 if the module was not read from text."""
    guard: Register | None
    guard_negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    """In the documented order, whatever the text has."""
    operands: tuple[Operand, ...]
    """Destinations first. A `Symbol` here is a variable, parameter, function or label, never a register."""
    target: int | None = None
    """Of `bra`: index of the instruction to go on with; the count of instructions at the very end."""
    targets: tuple[int, ...] = ()
    """Of `brx.idx`: the same for each entry of its table."""
    callees: tuple[str, ...] = ()
    """Of an indirect `call` with a table: the functions that it may reach."""
    prototype: Prototype | None = None
    """Of an indirect `call` with a prototype: its type."""
    source: SourceLocation | None = None
    """The `.loc` in effect."""

    @property
    def mnemonic(self) -> str:
        """Opcode and modifiers: `ld.global.u32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(slots=True)
class FlatFunction:
    """What executes a function needs of it. Scopes are gone; names in them are unique."""

    signature: Signature
    registers: dict[str, str]
    """Type of every register in use: `b32`, `pred`, `v4.f32`."""
    variables: dict[str, Variable]
    """Variables declared in the body (`.shared`, `.local`, `.param` of calls …) by unique name."""
    instructions: list[FlatInstruction]
    labels: dict[str, int]
    """Label (unique) to the index of the next instruction."""

    @property
    def name(self) -> str:
        """The function's symbol."""
        return self.signature.name


def type_of(variable: Variable) -> str:
    """The type of a register in `FlatFunction.registers`."""
    return f"v{variable.vector}.{variable.type}" if variable.vector > 1 else variable.type


def place_of(op: Operation) -> Place | None:
    """Where an op stands in its text."""
    location = op.location
    if isinstance(location, FileLineColLoc):
        return Place(location.filename.data, location.line.data, location.column.data)
    return None


def line_of(op: Operation) -> int:
    """The line of an op in its text; 0 if it has none."""
    location = op.location
    return location.line.data if isinstance(location, FileLineColLoc) else 0


class _Scope:
    """The names that one `{ … }` declares, with those around it."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, str] = {}
        """Name in the text to unique name, of registers, variables and labels."""
        self.ranges: dict[str, tuple[Variable, str]] = {}
        """Prefix of `%r<10>` to its declaration and what is put after names to make them unique."""
        self.tables: dict[str, TargetsOp | PrototypeOp] = {}
        self.resolved: dict[Operand, Operand] = {}

    def register(self, name: str) -> tuple[str, str | None] | None:
        """Unique name and type (None where it is known by the name) of a register or other declared name."""
        stem = name.rstrip("0123456789")
        scope: _Scope | None = self
        while scope is not None:
            if (unique := scope.names.get(name)) is not None:
                return unique, None
            if (entry := scope.ranges.get(stem)) is not None and stem != name:
                number, (declared, suffix) = name[len(stem) :], entry
                if int(number) < (declared.count or 0) and (number == "0" or number[0] != "0"):
                    return name + suffix, type_of(declared)
            scope = scope.outer
        return None

    def table(self, name: str) -> TargetsOp | PrototypeOp | None:
        """The table or prototype under a label."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.tables:
                return scope.tables[name]
            scope = scope.outer
        return None


class _Flattening:
    """One function on its way to a `FlatFunction`."""

    def __init__(self, function: FunctionOp) -> None:
        self.flat = FlatFunction(function.signature, {}, {}, [], {})
        self.taken: dict[str, int] = {}
        self.source: SourceLocation | None = None
        self.jumps: list[tuple[FlatInstruction, tuple[str, ...], InstructionOp]] = []
        outer = _Scope()
        for variable in (*function.signature.results, *function.signature.parameters):
            self.declare(outer, variable)
        self.statements(body_of(function), _Scope(outer))
        for instruction, labels, op in self.jumps:
            self.link(instruction, labels, op)

    def unique(self, name: str) -> str:
        """`name`, with a number behind it where another scope has it too."""
        count = self.taken[name] = self.taken.get(name, 0) + 1
        return name if count == 1 else f"{name}${count}"

    def declare(self, scope: _Scope, variable: Variable, *, is_parameter: bool = True) -> None:
        """Makes the names of one declarator known."""
        if variable.count is not None and variable.space == "reg":
            unique = self.unique(f"{variable.name}<>")
            scope.ranges[variable.name] = variable, unique[len(variable.name) + 2 :]
            return
        unique = scope.names[variable.name] = self.unique(variable.name)
        if variable.space == "reg":
            self.flat.registers[unique] = type_of(variable)
        elif not is_parameter:
            self.flat.variables[unique] = replace(variable, name=unique)

    def statements(self, body: list[Operation], scope: _Scope) -> None:
        """All statements of one scope; its labels are known before the first."""
        label = ""
        for op in body:
            if isinstance(op, LabelOp):
                label = op.label
                scope.names[label] = self.unique(label)
            elif isinstance(op, TargetsOp | PrototypeOp):
                scope.tables[label] = op
        for op in body:
            match op:
                case InstructionOp():
                    self.instruction(op, scope)
                case VariableOp():
                    scope.resolved.clear()
                    for variable in op.variables:
                        self.declare(scope, variable, is_parameter=False)
                case LabelOp():
                    self.flat.labels[scope.names[op.label]] = len(self.flat.instructions)
                case ScopeOp():
                    self.statements(body_of(op), _Scope(scope))
                case LocOp():
                    self.source = op.source.data
                case _:
                    pass

    def instruction(self, op: InstructionOp, scope: _Scope) -> None:
        """Appends one instruction."""
        guard, instructions = op.guard, self.flat.instructions
        opcode, modifiers = canonical(op.mnemonic)
        found = scope.resolved
        try:
            operands = tuple(
                [found.get(part) or self.resolve(part, scope) for part in op.arguments]
            )
            condition = None if guard is None else self.resolve(Register(guard.register), scope)
        except HloError as problem:
            raise problem.at(place_of(op)) from None
        assert condition is None or isinstance(condition, Register)
        if opcode != "call":
            operands = tuple(
                [p.parts[0] if type(p) is Group and len(p.parts) == 1 else p for p in operands]
            )
        flat_one = FlatInstruction(
            len(instructions),
            line_of(op),
            condition,
            guard is not None and guard.is_negated,
            opcode,
            modifiers,
            operands,
            source=self.source,
        )
        instructions.append(flat_one)
        if opcode in ("bra", "brx"):
            self.jump(flat_one, scope, op)
        elif opcode == "call" and operands and isinstance(operands[-1], Symbol):
            self.call(flat_one, scope, operands[-1].name)

    def jump(self, instruction: FlatInstruction, scope: _Scope, op: InstructionOp) -> None:
        """Notes the labels of a branch; they are linked when all are known."""
        last = op.arguments[-1] if op.arguments else None
        if not isinstance(last, Symbol):
            raise error("HLO0761", f"{op.mnemonic}: expects a label, found '{last}'", place_of(op))
        names = [last.name]
        if instruction.opcode == "brx":
            table = scope.table(last.name)
            if not isinstance(table, TargetsOp):
                raise error("HLO0761", f"there is no .branchtargets '{last.name}'", place_of(op))
            names = list(table.names)
        known = [scope.register(name) for name in names]
        for name, one in zip(names, known, strict=True):
            if one is None:
                raise error("HLO0761", f"there is no label '{name}' in this scope", place_of(op))
        unique = tuple(one[0] for one in known if one is not None)
        self.jumps.append((instruction, unique, op))

    def link(
        self, instruction: FlatInstruction, labels: tuple[str, ...], op: InstructionOp
    ) -> None:
        """Replaces the labels of a branch by indices."""
        known = self.flat.labels
        for label in labels:
            if label not in known:
                raise error("HLO0761", f"'{label}' is no label", place_of(op))
        targets = tuple(known[label] for label in labels)
        if instruction.opcode == "brx":
            instruction.targets = targets
        else:
            instruction.target = targets[0]

    def call(self, instruction: FlatInstruction, scope: _Scope, name: str) -> None:
        """Adds the table or prototype of an indirect call."""
        match scope.table(name):
            case TargetsOp() as table:
                instruction.callees = table.names
            case PrototypeOp() as op:
                instruction.prototype = op.prototype
            case None:
                pass

    def resolve(self, operand: Operand, scope: _Scope) -> Operand:
        """The operand with unique names, and registers where names without `%` are those."""
        result = self.resolve_parts(operand, scope)
        scope.resolved[operand] = result
        return result

    def resolve_parts(self, operand: Operand, scope: _Scope) -> Operand:
        match operand:
            case Register():
                return self.name(operand, scope)
            case Symbol():
                return self.name(operand, scope)
            case Address(base=Register() | Symbol()) | Address(more=(_, *_)):
                base = operand.base
                if isinstance(base, Register | Symbol):
                    base = self.name(base, scope)
                more = tuple(self.resolve_parts(part, scope) for part in operand.more)
                offset = operand.offset
                if isinstance(base, Symbol):
                    base, offset = Symbol(base.name), offset + base.offset
                return replace(operand, base=base, offset=offset, more=more)
            case Vector():
                return Vector(tuple(self.resolve_parts(part, scope) for part in operand.parts))
            case Group():
                return Group(tuple(self.resolve_parts(part, scope) for part in operand.parts))
            case Pair():
                first, second = operand.first, operand.second
                return Pair(self.resolve_parts(first, scope), self.resolve_parts(second, scope))
            case Negated():
                inner = self.resolve_parts(operand.operand, scope)
                assert isinstance(inner, Register | Symbol)
                return Negated(inner)
            case Component():
                inner = self.resolve_parts(operand.register, scope)
                assert isinstance(inner, Register | Symbol)
                return Component(inner, operand.part)
            case _:
                return operand

    def name(self, operand: Register | Symbol, scope: _Scope) -> Register | Symbol:
        """What a name means in a scope."""
        known = scope.register(operand.name)
        if known is None:
            if isinstance(operand, Register):
                message = f"register '{operand.name}' is not declared"
                raise error(
                    "HLO0761", message, help="declare it by .reg in this scope or around it"
                )
            return operand
        unique, type_ = known
        registers = self.flat.registers
        if type_ is not None:
            registers[unique] = type_
        if unique in registers:
            return Register(unique)
        return Symbol(unique, operand.offset if isinstance(operand, Symbol) else 0)


def flat(function: FunctionOp) -> FlatFunction:
    """The body as a flat list. Raises `HloError` HLO0761 for a register or label that is not declared."""
    with paused_gc():
        return _Flattening(function).flat
