"""Turns instructions into closures over numbered registers ("slots").

A meaning (`meanings/`) is a function of the `Assembler`: it resolves the operands of the instruction at hand
to slots and returns a function `run(cohort, lanes)`. Registers, constants, addresses and special registers
are all slots, so that every instruction has one form: `slots[d][lanes] = f(slots[a][lanes], …)`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.dialects.ptx import (
    Component,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.memory import LOCAL_BASE, WINDOW_SHIFT
from mlirhlo.simulator.slots import Slot
from mlirhlo.simulator.types import DTYPES

if TYPE_CHECKING:
    from mlirhlo.formats.ptx import FlatInstruction
    from mlirhlo.simulator.cohort import Cohort
    from mlirhlo.simulator.linker import Linked

Split: TypeAlias = "list[tuple[int, Lanes]]"
Run: TypeAlias = "Callable[[Cohort, Lanes], int | Split | None]"
"""Executes an instruction. None goes on to the next one, an int jumps, a list says where which lanes go on."""

WIDTHS = {"pred": 0, "b128": 16}


@dataclass(frozen=True, slots=True)
class Recursion:
    """What each call of a function that calls itself has of its own."""

    level: int
    """Slot of the number of calls."""
    registers: tuple[int, ...]
    """Slots of its registers."""
    addresses: tuple[int, ...]
    """Slots of addresses in the local memory of all functions of the cycle."""


@dataclass
class Names:
    """What the names in one function stand for."""

    function: str
    registers: Mapping[str, str]
    """Types of the registers."""
    symbols: Mapping[str, int]
    """Addresses of variables, functions and labels."""
    read: Callable[[], frozenset[str]] = frozenset
    """Gives the registers that an instruction reads."""
    file: str = "<string>"
    lines: tuple[str, ...] = ()


@dataclass
class Assembler:
    """Resolves operands; one for each linked kernel, moved from instruction to instruction."""

    parameter_sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes of the kernel's parameters, by name."""
    functions: Mapping[str, Linked] = field(default_factory=dict[str, "Linked"])
    """Functions of the kernel's code, by name."""
    callers: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    """Functions that each function may be called from, directly or not."""
    returning: dict[tuple[int, str], Callable[[Cohort, Lanes], None]] = field(
        default_factory=dict[tuple[int, str], Any]
    )
    """What is done when a function returns to an instruction: results are copied."""
    frames: dict[str, set[int]] = field(default_factory=dict[str, "set[int]"])
    """Slots of addresses that move when a function calls itself, by function."""
    product_registers: dict[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )
    """Registers of products of warp groups, numbered, by function and name."""
    product_shapes: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])
    """By shape of such a product, 0 and one more than the indices of all."""
    slots: list[Slot] = field(default_factory=list[Slot])
    _known: dict[Any, int] = field(default_factory=dict[Any, int])
    names: Names = field(default_factory=lambda: Names("", {}, {}))
    op: Any = None
    """The instruction at hand."""
    pc: int = 0
    start: int = 0
    """Index of the first instruction of the function at hand."""

    def at(self, op: FlatInstruction, pc: int, names: Names, start: int) -> None:
        """Moves on to an instruction."""
        self.op, self.pc, self.names, self.start = op, pc, names, start

    # What the instruction says

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The words after the opcode."""
        result: tuple[str, ...] = self.op.modifiers
        return result

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Destinations and sources."""
        result: tuple[Operand, ...] = self.op.operands
        return result

    @property
    def count(self) -> int:
        """Number of operands."""
        return len(self.op.operands)

    def has(self, *modifiers: str) -> bool:
        """Whether one of the modifiers is there."""
        return any(one in self.op.modifiers for one in modifiers)

    def one_of(self, *modifiers: str, default: str = "") -> str:
        """The first of `modifiers` that the instruction has."""
        return next((one for one in self.op.modifiers if one in modifiers), default)

    @property
    def types(self) -> list[str]:
        """The modifiers that are types, in order."""
        return [one for one in self.op.modifiers if one in DTYPES or one == "b128"]

    @property
    def type(self) -> str:
        """The last type."""
        types = self.types
        if not types:
            raise self.no_meaning()
        return types[-1]

    def is_recursive(self, callee: str) -> bool:
        """Whether a call of `callee` here may be one of a chain of calls that comes back."""
        return callee in self.cycle_of(self.names.function)

    # Slots

    def source(self, index: int, type_name: str) -> int:
        """The slot of a source operand, as elements of a PTX type."""
        if index >= len(self.operands):
            raise self.wrong(f"operand {index + 1} is missing")
        return self.value(self.operands[index], type_name)

    def dest(self, index: int, type_name: str) -> int:
        """The slot of a destination; a scratch register for `_`."""
        return self.source(index, type_name)

    def value(self, operand: Operand, type_name: str) -> int:
        """The slot of any operand that is one register, constant or name."""
        dtype = DTYPES.get(type_name)
        match operand:
            case Register(name):
                return self._register(name, type_name, dtype)
            case Symbol(name) if name in self.names.registers:
                return self._register(name, type_name, dtype)
            case Component(register, part):
                return self._component(register.name, part, type_name)
            case Special(name):
                return self._special(name, type_name)
            case Symbol(name, offset):
                address = self.address_of(name) + offset
                if self.is_framed(name):
                    return self._framed(address, type_name)
                return self.constant(address, type_name)
            case Immediate():
                return self.constant(_number(operand, type_name), type_name)
            case Sink():
                return self.scratch(type_name)
            case _:
                raise self.wrong(f"{operand} cannot stand here")

    def address_of(self, name: str) -> int:
        """The address of a variable or function."""
        if name == "WARP_SZ":
            return 32
        if name not in self.names.symbols:
            raise self.wrong(f"{name} is not defined in this module")
        return self.names.symbols[name]

    def is_framed(self, name: str) -> bool:
        """Whether a name is a local variable of a function that calls itself: each call has its own."""
        return (
            self.is_recursive(self.names.function)
            and self.names.symbols[name] >> WINDOW_SHIFT == LOCAL_BASE >> WINDOW_SHIFT
        )

    def _framed(self, address: int, type_name: str) -> int:
        """The slot of an address that moves with the calls of the function at hand."""
        dtype = DTYPES[type_name]
        element = np.array([address & ((1 << dtype.itemsize * 8) - 1)], f"u{dtype.itemsize}")
        slot = self._known_slot(
            ("frame", self.names.function, dtype.str, address), Slot("frame", element.view(dtype))
        )
        self.frames.setdefault(self.names.function, set()).add(slot)
        return slot

    def cycle_of(self, function: str) -> frozenset[str]:
        """The functions that a function calls and is called from, itself among them; none if it cannot come back."""
        callers = self.callers.get(function, frozenset())
        if function not in callers:
            return frozenset()
        return frozenset(one for one in callers if function in self.callers[one])

    def level_of(self, function: str) -> int | None:
        """The slot of how often a function has called itself; None for one that does not."""
        cycle = self.cycle_of(function)
        return self.hidden(f"level of {min(cycle)}", "s64") if cycle else None

    def recursion(self, function: str) -> Recursion:
        """What a call within a cycle has of its own, once all functions are assembled."""
        cycle = self.cycle_of(function)
        registers = [slot for key, slot in self._known.items() if key[:2] == ("register", function)]
        addresses = [slot for one in sorted(cycle) for slot in self.frames.get(one, ())]
        level = self.hidden(f"level of {min(cycle)}", "s64")
        return Recursion(level, tuple(registers), tuple(addresses))

    def scratch(self, type_name: str) -> int:
        """A register of the simulator's own, whose value nothing keeps."""
        if type_name == "b128":
            return self._known_slot(("scratch", 16), Slot("register", "b128"))
        return self._known_slot(("scratch", type_name), Slot("register", DTYPES[type_name]))

    def hidden(self, name: str, type_name: str) -> int:
        """A register of the simulator's own with a name: the carry flag."""
        return self._known_slot(("hidden", name), Slot("register", DTYPES[type_name]))

    def constant(self, number: float | int, type_name: str) -> int:
        """The slot of a constant; integers wrap to the type."""
        dtype = DTYPES[type_name]
        if dtype.kind in "ui":
            bits = int(number) & ((1 << dtype.itemsize * 8) - 1)
            element = np.array([bits], f"u{dtype.itemsize}").view(dtype)
        else:
            element = np.array([number]).astype(dtype)
        return self._known_slot(
            ("constant", dtype.str, element.tobytes()), Slot("constant", element)
        )

    def width_of(self, operand: Operand) -> int:
        """Bytes of a register operand; 0 for a predicate and for what is no register."""
        if isinstance(operand, Register | Symbol) and operand.name in self.names.registers:
            return _width(self.names.registers[operand.name])
        return 0

    def predicate(self, name: str) -> int:
        """The slot of a guard."""
        return self._register(name, "pred", DTYPES["pred"])

    def condition(self, index: int) -> tuple[int, bool]:
        """The slot of a predicate operand, and whether it is negated."""
        operand = self.operands[index]
        if isinstance(operand, Negated):
            return self.value(operand.operand, "pred"), True
        return self.value(operand, "pred"), False

    def _register(self, name: str, type_name: str, dtype: Any) -> int:
        declared = self.names.registers.get(name)
        if declared is None:
            raise self.wrong(f"register {name} is not declared")
        base = self._base(name, declared)
        if type_name == declared and declared in WIDTHS:
            return base
        if "pred" in (declared, type_name):
            raise self.wrong(f"{name} is a .{declared} register; .{type_name} expected")
        if type_name == "b128" or dtype.itemsize > _width(declared):
            raise self.wrong(f"{name} has {_width(declared) * 8} bits; .{type_name} expected")
        if dtype == self.slots[base].value:
            return base
        return self._view(base, dtype, 0)

    def _base(self, name: str, declared: str) -> int:
        value: Any = "b128" if declared == "b128" else DTYPES[declared]
        if declared not in ("pred", "b128"):
            value = np.dtype(f"u{value.itemsize}")
        return self._known_slot(("register", self.names.function, name), Slot("register", value))

    def _view(self, base: int, dtype: Any, part: int) -> int:
        return self._known_slot(("view", base, dtype.str, part), Slot("view", dtype, base, part))

    def part(self, operand: Operand, type_name: str, part: int) -> int:
        """The slot of one element of a register that holds several: half `part` of a `.f16x2`."""
        if isinstance(operand, Register | Symbol) and operand.name in self.names.registers:
            base = self._base(operand.name, self.names.registers[operand.name])
            return self._view(base, DTYPES[type_name], part)
        if isinstance(operand, Immediate):
            bits = operand.value >> part * DTYPES[type_name].itemsize * 8
            return self.constant_bits(bits, type_name)
        raise self.wrong(f"{operand} cannot stand here")

    def constant_bits(self, bits: int, type_name: str) -> int:
        """The slot of a constant that is given by its bits."""
        dtype = DTYPES[type_name]
        element = np.array([bits & ((1 << dtype.itemsize * 8) - 1)], f"u{dtype.itemsize}").view(
            dtype
        )
        return self._known_slot(
            ("constant", dtype.str, element.tobytes()), Slot("constant", element)
        )

    def _component(self, name: str, part: str, type_name: str) -> int:
        declared = self.names.registers.get(f"{name}.{part}")
        if declared is not None:
            return self._register(f"{name}.{part}", type_name, DTYPES[type_name])
        if part[0] in "bh" and part[1:].isdigit():
            return self.part(Register(name), type_name, int(part[1:]))
        raise self.wrong(f"{name}.{part} is not declared")

    def _special(self, name: str, type_name: str) -> int:
        base = self._known_slot(("special", name), Slot("special", name))
        dtype = DTYPES[type_name]
        own = 8 if name in WIDE_SPECIALS else 4
        if dtype.itemsize <= own:
            return self._view(base, dtype, 0) if dtype != np.dtype(f"u{own}") else base
        return self._known_slot(("wide", name, dtype.str), Slot("special", f"wide {name}"))

    def _known_slot(self, key: Any, slot: Slot) -> int:
        found = self._known.get(key)
        if found is None:
            if slot.kind == "constant":
                slot.value.flags.writeable = False
            found = self._known[key] = len(self.slots)
            self.slots.append(slot)
        return found

    def parts(self, index: int) -> tuple[Operand, ...]:
        """The elements of a vector operand; a single operand is a vector of one."""
        operand = self.operands[index]
        if isinstance(operand, Vector):
            return operand.parts
        if isinstance(operand, Register):
            declared = self.names.registers.get(operand.name, "")
            if declared.startswith("v") and "." in declared:
                return tuple(Component(operand, part) for part in "xyzw"[: int(declared[1])])
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand,)

    # Errors

    @property
    def place(self) -> Place:
        """Where the instruction stands."""
        return place_of(self.op, self.names)

    def wrong(self, message: str) -> HloError:
        """The error HLO0773: operands that the instruction cannot have."""
        return error("HLO0773", f"{self.op.opcode}: {message}", self.place)

    def out_of_parameter(self, name: str, offset: int, size: int, extent: int) -> HloError:
        """The error HLO0775 for a read beyond a kernel parameter."""
        return error(
            "HLO0775",
            f"{self.op.opcode}: {size} bytes at offset {offset} of parameter {name} are "
            f"out of bounds: it has {extent} bytes",
            self.place,
            help="a parameter is read within its declared type",
        )

    def no_meaning(self) -> HloError:
        """The error HLO0772: an instruction that the simulator does not execute."""
        name = ".".join((self.op.opcode, *self.op.modifiers))
        return error(
            "HLO0772",
            f"the simulator has no meaning for {name}",
            self.place,
            help="ptx-opt --verify tells whether PTX has such an instruction",
        )


WIDE_SPECIALS = frozenset({"%clock64", "%globaltimer", "%gridid", "%current_graph_exec"})
"""Special registers of 64 bits."""


def place_of(op: FlatInstruction, names: Names) -> Place:
    """The place of an instruction in its file."""
    line = names.lines[op.line - 1] if 0 < op.line <= len(names.lines) else None
    column = len(line) - len(line.lstrip()) + 1 if line else 0
    length = len(line.strip()) if line else 1
    return Place(names.file, op.line, column, length, line, what=names.function)


def _width(type_name: str) -> int:
    return WIDTHS[type_name] if type_name in WIDTHS else DTYPES[type_name].itemsize


def _number(immediate: Immediate, type_name: str) -> int | float:
    """An immediate as a number of the type: a float's bits where the type is no float."""
    if type_name == "pred":
        return bool(immediate.value)
    if type_name in ("f32", "f64"):
        if immediate.kind in ("f32", "f64"):
            return immediate.number
        return immediate.value
    if type_name == "f16":
        if immediate.kind in ("f32", "f64"):
            return immediate.number
        result: int | float = struct.unpack("<e", struct.pack("<H", immediate.value & 0xFFFF))[0]
        return result
    if immediate.kind == "f64" and DTYPES[type_name].itemsize == 4:
        final: int | float = struct.unpack("<I", struct.pack("<f", immediate.number))[0]
        return final
    return immediate.value
