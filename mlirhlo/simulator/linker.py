"""Lays out a kernel with the functions that it may call, and turns its instructions into closures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from mlirhlo.analysis.ptx.flat import FlatInstruction
from mlirhlo.analysis.ptx.liveness import read
from mlirhlo.dialects.ptx import (
    Address,
    Group,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
)
from mlirhlo.dialects.ptx.table import FORMS, matches
from mlirhlo.simulator.assembler import Assembler, Names, Recursion, Run
from mlirhlo.simulator.counters import Tally
from mlirhlo.simulator.lanes import Lanes, narrow
from mlirhlo.simulator.meanings import (
    MEANINGS,
    guarded_registers,
    leave_function,
    loaded_of,
    loads_waited_for,
    note_registers,
)
from mlirhlo.simulator.memory import GLOBAL_BASE, LOCAL_BASE, READ_ONLY
from mlirhlo.simulator.performance import unit_of
from mlirhlo.simulator.slots import Slot
from mlirhlo.simulator.specials import VOLATILE, refresh
from mlirhlo.simulator.variables import align_up, alignment, parameter_layout, sized, symbols_of

if TYPE_CHECKING:
    from mlirhlo.analysis.ptx.flat import FlatFunction
    from mlirhlo.simulator.cohort import Cohort
    from mlirhlo.simulator.program import Program


@dataclass(frozen=True, slots=True)
class Linked:
    """A function within the code of a kernel."""

    name: str
    start: int
    """Index of its first instruction."""
    parameters: tuple[tuple[int, int], ...]
    """Offset in the thread's local memory, and size, of each parameter."""
    results: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Code:
    """A kernel that is ready to run."""

    entry: str
    run: list[Run]
    instructions: list[FlatInstruction]
    names: list[Names]
    """Of the function that each instruction is in."""
    classes: Tally
    """Of the instruction table."""
    units: Tally
    """Of `performance`."""
    slots: list[Slot]
    parameters: list[tuple[Variable, int, int]]
    """Each parameter with its offset in the parameter block and its size."""
    parameter_block: int
    """Index of the parameter block in the arena."""
    parameter_bytes: int
    shared_bytes: int
    """Bytes of static shared memory; dynamic shared memory follows."""
    local_bytes: int
    functions: dict[str, Linked]
    granule: int
    """Bytes of the smallest access, by which races are told apart."""
    has_atomics: bool
    """Whether an access is atomic or strong."""
    synchronises: bool
    """Whether an instruction orders accesses of threads."""
    is_async: bool
    """Whether memory is read through the asynchronous proxy."""
    returning: dict[tuple[int, str], Callable[[Cohort, Lanes], None]]
    """What is done when a function returns to an instruction."""
    recursions: dict[str, Recursion]
    """Of functions that call themselves."""
    frame_bytes: int
    """Local memory of a call of them."""


SYNCHRONISING = frozenset({"fence", "membar", "mbarrier", "barrier"})
_ASYNC = frozenset({"wgmma", "tcgen05"})
"""Opcodes that read shared memory through the asynchronous proxy."""
ATOMIC = frozenset({"atom", "red", "multimem"})
ORDERS = frozenset({"acquire", "release", "acq_rel"})
_ATOMICALLY = frozenset({"volatile", "relaxed", "acquire", "release", "reduce"})
"""Modifiers of accesses that are strong, and of copies that add."""
STACK_BYTES = 16 << 10
"""Local memory of a thread in a kernel with functions that call themselves."""
_END = FlatInstruction(0, 0, None, guard_negated=False, opcode="ret", modifiers=(), operands=())
"""Stands for the end of a function without instructions."""


class Linker:
    """Lays out one kernel and the functions it may call."""

    def __init__(self, program: Program, entry: str) -> None:
        self.program, self.entry = program, entry
        self.order = list(self._reachable(entry))
        self.local = 16
        self.shared = 0
        self.starts: dict[str, int] = {}
        position = 0
        for name in self.order:
            self.starts[name] = position
            # One more instruction than the function has: falling off its end returns.
            position += len(program.flat(name).instructions) + 1
        self.symbols = dict(program.addresses)
        inner = (v for name in self.order for v in program.flat(name).variables.values())
        self._place_shared([*program.variables.values(), *inner])

    def _reachable(self, entry: str) -> Iterator[str]:
        seen, todo = set[str](), [entry]
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            yield name
            for instruction in self.program.flat(name).instructions:
                todo += [one for one in instruction.callees if one in self.program.functions]
                todo += [
                    one for one in symbols_in(instruction.operands) if one in self.program.functions
                ]
                if instruction.opcode == "call" and any(
                    isinstance(one, Register) for one in instruction.operands
                ):
                    todo += self._in_tables()

    def _in_tables(self) -> list[str]:
        """Functions whose addresses stand in variables."""
        return [
            name
            for variable in self.program.variables.values()
            if variable.initializer is not None
            for name in symbols_of(variable.initializer)
            if name in self.program.functions
        ]

    def _place_shared(self, variables: Iterable[Variable]) -> None:
        dynamic = list[Variable]()
        for variable in variables:
            if variable.space == "shared":
                if size := sized(variable):
                    self.shared = align_up(self.shared, alignment(variable))
                    self.symbols[variable.name] = self.shared
                    self.shared += size
                else:
                    dynamic.append(variable)
        for variable in dynamic:
            # All dynamic arrays share one address, behind the static ones.
            self.shared = align_up(self.shared, alignment(variable))
        for variable in dynamic:
            self.symbols[variable.name] = self.shared

    def _place_local(self, variable: Variable) -> tuple[int, int]:
        size = sized(variable)
        self.local = align_up(self.local, max(alignment(variable), 4))
        offset = self.local
        self.local += size
        return offset, size

    def link(self) -> Code:
        """The code of the kernel."""
        head = self.program.functions[self.entry].signature
        parameters, size = parameter_layout(head.parameters)
        block = self.program.arena.allocate(max(size, 1), f"parameters of {self.entry}", READ_ONLY)
        names, functions = dict[str, Names](), dict[str, Linked]()
        for name in self.order:
            symbols = dict(self.symbols)
            flat = self.program.flat(name)
            if name == self.entry:
                for variable, offset, _ in parameters:
                    symbols[variable.name] = GLOBAL_BASE + block + offset
            spots = {
                variable.name: self._place_local(variable)
                for variable in (
                    *(() if name == self.entry else flat.signature.parameters),
                    *flat.signature.results,
                    *flat.variables.values(),
                )
                if variable.space in ("local", "param")
            }
            symbols.update({name_: LOCAL_BASE + spot for name_, (spot, _) in spots.items()})
            names[name] = Names(
                name,
                _registers(flat),
                symbols,
                cache(partial(_read, flat)),
                self.program.file,
                self.program.lines,
            )
            functions[name] = Linked(
                name,
                self.starts[name],
                tuple(spots.get(one.name, (0, 0)) for one in flat.signature.parameters),
                tuple(spots.get(one.name, (0, 0)) for one in flat.signature.results),
            )
        return self._assemble(parameters, size, block, names, functions)

    def _assemble(
        self,
        parameters: list[tuple[Variable, int, int]],
        size: int,
        block: int,
        names: dict[str, Names],
        functions: dict[str, Linked],
    ) -> Code:
        sizes = {variable.name: extent for variable, _, extent in parameters}
        assembler = Assembler(sizes, functions, self._callers())
        run, instructions, of = list[Run](), list[FlatInstruction](), list[Names]()
        classes, units = list[str](), list[tuple[str, float]]()
        for name in self.order:
            flat = self.program.flat(name)
            assembler.names = names[name]
            note_registers(assembler, flat.instructions)
            loaded = loaded_of(flat.instructions)
            for op in flat.instructions:
                assembler.at(op, len(run), names[name], self.starts[name])
                meaning = MEANINGS.get(op.opcode)
                if meaning is None:
                    raise assembler.no_meaning()
                step = _refreshed(assembler, op, meaning(assembler))
                if assembler.product_registers:
                    step = guarded_registers(assembler, step)
                if loaded:
                    step = loads_waited_for(assembler, loaded, step)
                run.append(_guarded(assembler, op, step))
                instructions.append(op)
                of.append(names[name])
                classes.append(_category(op.opcode, op.mnemonic))
                units.append(unit_of(op, classes[-1]))
            run.append(leave_function(None if name == self.entry else name))
            instructions.append(flat.instructions[-1] if flat.instructions else _END)
            of.append(names[name])
            classes.append("control")
            units.append(("", 1))
        recursive = [name for name in self.order if assembler.cycle_of(name)]
        frame = align_up(self.local, 16)
        return Code(
            self.entry,
            run,
            instructions,
            of,
            Tally(classes),
            Tally([name for name, _ in units], [work for _, work in units]),
            assembler.slots,
            parameters,
            block,
            size,
            self.shared,
            max(self.local, STACK_BYTES) if recursive else self.local,
            functions,
            _granule(instructions),
            any(op.opcode in ATOMIC or _ATOMICALLY & set(op.modifiers) for op in instructions),
            any(op.opcode in SYNCHRONISING or ORDERS & set(op.modifiers) for op in instructions),
            any(op.opcode in _ASYNC or "bulk" in op.modifiers for op in instructions),
            assembler.returning,
            {name: assembler.recursion(name) for name in recursive},
            frame,
        )

    def _callers(self) -> dict[str, frozenset[str]]:
        """For each function, those from which it can be reached."""
        direct = {
            name: {
                symbol
                for op in self.program.flat(name).instructions
                if op.opcode == "call"
                for symbol in (*symbols_in(op.operands), *op.callees)
                if symbol in self.starts
            }
            for name in self.order
        }
        reached = dict[str, set[str]]()
        for name in self.order:
            seen, todo = set[str](), list(direct[name])
            while todo:
                one = todo.pop()
                if one not in seen:
                    seen.add(one)
                    todo += direct[one]
            reached[name] = seen
        return {
            name: frozenset(other for other in self.order if name in reached[other])
            for name in self.order
        }


def _category(opcode: str, mnemonic: str) -> str:
    """The class of an instruction in the table of PTX."""
    forms = [form for form, _ in matches(mnemonic)] or FORMS.get(opcode, ())
    return forms[0].category if forms else "other"


def _registers(flat: FlatFunction) -> dict[str, str]:
    registers = dict(flat.registers)
    for name, declared in flat.registers.items():
        if declared.startswith("v") and "." in declared:
            element = declared.partition(".")[2]
            registers.update({f"{name}.{part}": element for part in "xyzwrgba"[: int(declared[1])]})
    return registers


def _read(flat: FlatFunction) -> frozenset[str]:
    """The registers that an instruction of a function reads."""
    return frozenset(name for op in flat.instructions for name in read(op))


def _guarded(assembler: Assembler, op: FlatInstruction, run: Run) -> Run:
    """`run` for the threads whose guard holds; the others go on."""
    if op.guard is None:
        return run
    slot, negated, following = (
        assembler.predicate(op.guard.name),
        op.guard_negated,
        assembler.pc + 1,
    )

    def guarded(cohort: Cohort, lanes: Lanes) -> int | list[tuple[int, Lanes]] | None:
        flags = cohort.slots[slot][lanes]
        chosen = narrow(lanes, ~flags if negated else flags)
        if chosen is None:
            return None
        step = run(cohort, chosen)
        if chosen is lanes or step is None:
            return step
        others = narrow(lanes, flags if negated else ~flags)
        assert others is not None
        targets = [(step, chosen)] if isinstance(step, int) else step
        return [(following, others), *targets]

    return guarded


def _refreshed(assembler: Assembler, op: FlatInstruction, run: Run) -> Run:
    """`run` after reading clocks that the instruction mentions."""
    clocks = [one.name for one in op.operands if isinstance(one, Special) and one.name in VOLATILE]
    if not clocks:
        return run
    wide = clocks[0] in ("%clock64", "%globaltimer")
    slot = assembler.value(Special(clocks[0]), "u64" if wide else "u32")

    def refreshed(cohort: Cohort, lanes: Lanes) -> int | list[tuple[int, Lanes]] | None:
        refresh(cohort, clocks[0], slot)
        return run(cohort, lanes)

    return refreshed


def symbols_in(operands: Iterable[Operand]) -> Iterator[str]:
    """Names of variables and functions among operands."""
    for operand in operands:
        match operand:
            case Symbol(name):
                yield name
            case Vector(parts) | Group(parts):
                yield from symbols_in(parts)
            case Pair(first, second):
                yield from symbols_in((first, second))
            case Address(base):
                yield from symbols_in((base,))
            case _:
                pass


def _granule(instructions: list[FlatInstruction]) -> int:
    """The smallest width, up to four bytes, of an access to memory."""
    least = 4
    for op in instructions:
        if op.opcode in ("ld", "st", "atom", "red", "ldu", "multimem"):
            for name, size in (("8", 1), ("16", 2)):
                if any(
                    one in (f"b{name}", f"u{name}", f"s{name}", f"f{name}", f"bf{name}")
                    for one in op.modifiers
                ):
                    least = min(least, size)
    return least
