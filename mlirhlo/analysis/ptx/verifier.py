"""Judges PTX by the instruction table: forms, operands, and what a version and target have."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction, flat, place_of
from mlirhlo.analysis.ptx.operands import Shape, fits, shape_of
from mlirhlo.diagnostics import Diagnostic, HloError, Place
from mlirhlo.dialects.ptx.forms import Form
from mlirhlo.dialects.ptx.ops import AliasOp, FunctionOp, ModuleOp, VariableOp
from mlirhlo.dialects.ptx.requirements import Target, problem_of
from mlirhlo.dialects.ptx.table import FORMS, matches
from mlirhlo.dialects.ptx.values import Address, Operand, Symbol

MAX_DIAGNOSTICS = 100
"""More are not reported: they repeat the first."""


def verify_ptx(module: ModuleOp, text: str = "") -> list[Diagnostic]:
    """What is wrong with a module that was read, in order; empty if nothing is.

    Diagnostics show the line where the module's text is passed too.
    """
    judge = _Judge(module, text.split("\n"))
    if (problem := judge.target.problem) is not None:
        judge.report("HLO0764", problem, judge.header())
    for function in module.functions:
        if not function.is_declaration and len(judge.found) < MAX_DIAGNOSTICS:
            judge.function(function)
    return judge.found[:MAX_DIAGNOSTICS]


class _Judge:
    """One module, and what was judged before."""

    def __init__(self, module: ModuleOp, lines: Sequence[str]) -> None:
        self.found: list[Diagnostic] = []
        self.lines = lines
        self.target = Target.of(module.version, module.targets)
        self.known: dict[tuple[str, tuple[Shape, ...]], tuple[str, str, str | None] | None] = {}
        self.symbols = self.declared(module)
        places = (place_of(op) for op in module.statements)
        self.file = next((place.file for place in places if place is not None), "")

    def header(self) -> Place | None:
        """The line of the text with the version."""
        lines = enumerate(self.lines, 1)
        number = next((n for n, line in lines if line.lstrip().startswith(".version")), None)
        return None if number is None else Place(self.file, number)

    def declared(self, module: ModuleOp) -> frozenset[str]:
        """Names of the module's functions and variables; a second definition is reported."""
        defined: dict[str, Operation] = {}
        names: set[str] = set()
        for op in module.statements:
            match op:
                case FunctionOp():
                    own = [(op.symbol, not op.is_declaration)]
                case VariableOp():
                    own = [(one.name, "extern" not in one.linkage) for one in op.variables]
                case AliasOp():
                    own = [(op.alias.data, False)]
                case _:
                    continue
            for name, is_definition in own:
                names.add(name)
                if is_definition and name in defined:
                    message = f"'{name}' is defined twice"
                    self.report("HLO0761", message, place_of(op))
                elif is_definition:
                    defined[name] = op
        return frozenset(names)

    def report(self, code: str, message: str, place: Place | None, help: str | None = None) -> None:
        """Adds a diagnostic, with its line of the text."""
        if place is not None and 0 < place.line < len(self.lines):
            line = self.lines[place.line - 1].rstrip("\r")
            column = place.column or len(line) - len(line.lstrip()) + 1
            length = 1 if place.column else len(line.strip())
            place = Place(place.file, place.line, column, length, line)
        self.found.append(Diagnostic(code, message, place, help=help))

    def function(self, op: FunctionOp) -> None:
        """One function."""
        try:
            function = flat(op)
        except HloError as problem:
            for one in problem.diagnostics:
                self.report(one.code, one.message, one.place, one.help)
            return
        parameters = (*function.signature.parameters, *function.signature.results)
        own = {variable.name for variable in parameters}
        names = self.symbols | own | function.variables.keys() | function.labels.keys()
        for instruction in function.instructions:
            self.instruction(instruction, function, names)

    def instruction(
        self, instruction: FlatInstruction, function: FlatFunction, names: frozenset[str]
    ) -> None:
        """One instruction; the same mnemonic with the same shapes is judged once."""
        registers = function.registers
        shapes = tuple([shape_of(part, registers) for part in instruction.operands])
        key = instruction.mnemonic, shapes
        if key not in self.known:
            self.known[key] = self.judge(instruction, shapes)
        verdict = self.known[key]
        place = Place(self.file, instruction.line)
        if verdict is not None:
            code, message, advice = verdict
            self.report(code, message, place, advice)
        guard = instruction.guard
        if guard is not None and registers[guard.name] != "pred":
            message = f"{instruction.mnemonic}: the guard {guard} is no .pred register"
            self.report("HLO0763", message, place)
        for operand in instruction.operands:
            for symbol in symbols_in(operand):
                if symbol not in names and instruction.opcode != "call":
                    message = f"{instruction.mnemonic}: '{symbol}' is not declared"
                    self.report("HLO0761", message, place)

    def judge(
        self, instruction: FlatInstruction, shapes: tuple[Shape, ...]
    ) -> tuple[str, str, str | None] | None:
        """Code, message and help of what is wrong with a form."""
        mnemonic = instruction.mnemonic
        forms = FORMS.get(instruction.opcode)
        if forms is None:
            return "HLO0762", f"unknown instruction '{instruction.opcode}'", None
        candidates = matches(mnemonic)
        if not candidates:
            return "HLO0762", f"there is no '{mnemonic}'", nearest(forms, instruction.modifiers)
        problem: tuple[int, str] = -1, ""
        lacks: tuple[str, str, str | None] | None = None
        for form, choices in candidates:
            found = fits(form, choices, shapes)
            if found is not None:
                problem = max(problem, found)
                continue
            lacking = problem_of(form, instruction.modifiers, self.target)
            if lacking is None:
                return None
            lacks = lacks or ("HLO0764", f"{mnemonic} {lacking}", None)
        if lacks is not None:
            return lacks
        number, expected = problem
        if number < len(instruction.operands):
            given = f"operand {number + 1} is '{instruction.operands[number]}', expects {expected}"
        else:
            given = f"operand {number + 1} is missing: expects {expected}"
        return "HLO0763", f"{mnemonic}: {given}", f"the form is {candidates[0][0]}"


def symbols_in(operand: Operand) -> list[str]:
    """Names of variables and functions in an operand."""
    match operand:
        case Symbol(name):
            return [name]
        case Address(base=Symbol(name)):
            return [name]
        case _:
            return []


def nearest(forms: tuple[Form, ...], modifiers: tuple[str, ...]) -> str:
    """The forms that share most modifiers with what was written."""
    given = set(modifiers)

    def shared(form: Form) -> int:
        return len(given & {one for _, options, _ in form.groups for one in options})

    best = sorted(forms, key=shared, reverse=True)[:2]
    return "forms are " + ", ".join(map(str, dict.fromkeys(map(str, best))))
