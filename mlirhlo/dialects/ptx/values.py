"""Operands and declarations of PTX as frozen values; `str()` writes each in PTX syntax."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register: `%r1`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Special:
    """A predefined read-only register: `%tid.x`, `%laneid`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name without `%`, or with an offset: a variable, function or label.

    In a module it may also name a register that was declared without `%`, or a constant such as
    `WARP_SZ`; `flat` tells these apart.
    """

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant, or a constant expression, with the text it was written as."""

    value: int
    """The integer (64 bits, signed unless `kind` is u64), or the bits of the float."""
    kind: str
    """`s64`, `u64`, `f32` (written `0f…`) or `f64` (written `0d…` or in decimals)."""
    text: str

    @property
    def number(self) -> int | float:
        """The value as a Python number."""
        match self.kind:
            case "f32":
                return float(struct.unpack("<f", struct.pack("<I", self.value))[0])
            case "f64":
                return float(struct.unpack("<d", struct.pack("<Q", self.value))[0])
            case _:
                return self.value

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a register: `%v.x` of a vector, `%r.b0` or `%r.h1` of a video operand."""

    register: Register | Symbol
    part: str

    def __str__(self) -> str:
        return f"{self.register}.{self.part}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`, or `[base, {x, y}]`: a tensor map, texture or surface with coordinates."""

    base: Register | Special | Symbol | Immediate
    offset: int = 0
    more: tuple[Operand, ...] = ()
    """What follows the first comma: a vector of coordinates, a sampler before it."""
    offset_text: str = ""
    """The offset as written where that is not its plain form: `+0`, `+0x10`."""

    def __str__(self) -> str:
        plain = f"+{self.offset}" if self.offset else ""
        return f"[{', '.join([f'{self.base}{self.offset_text or plain}', *map(str, self.more)])}]"


@dataclass(frozen=True, slots=True)
class Vector:
    """`{%r1, %r2}`."""

    parts: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.parts))}}}"


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)`: results or arguments of a call."""

    parts: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Pair:
    """`%r1|%p1`: two destinations."""

    first: Operand
    second: Operand

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p1`."""

    operand: Register | Symbol

    def __str__(self) -> str:
        return f"!{self.operand}"


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result that is not kept, or an absent state."""

    def __str__(self) -> str:
        return "_"


Operand: TypeAlias = (
    Register
    | Special
    | Symbol
    | Immediate
    | Component
    | Address
    | Vector
    | Group
    | Pair
    | Negated
    | Sink
)


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of an instruction, destinations first, as in the text."""

    parts: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate of an instruction: `@%p1`, `@!%p1`."""

    register: str
    is_negated: bool = False

    def __str__(self) -> str:
        return f"@{'!' if self.is_negated else ''}{self.register}"


@dataclass(frozen=True, slots=True)
class Generic:
    """`generic(x)` in an initializer: the generic address of a variable."""

    symbol: Symbol

    def __str__(self) -> str:
        offset = f"+{self.symbol.offset}" if self.symbol.offset else ""
        return f"generic({self.symbol.name}){offset}"


@dataclass(frozen=True, slots=True)
class Masked:
    """`0xFF00(x)` in an initializer: one byte of an address."""

    mask: Immediate
    symbol: Symbol | Generic

    def __str__(self) -> str:
        return f"{self.mask}({self.symbol})"


@dataclass(frozen=True, slots=True)
class Nested:
    """`{1, {2, x}}` in an initializer."""

    parts: tuple[Initializer, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.parts))}}}"


Initializer: TypeAlias = Immediate | Symbol | Generic | Masked | Nested


@dataclass(frozen=True, slots=True)
class Variable:
    """One declared name: a register (or a range of them), variable or parameter."""

    space: str
    """`reg`, `global`, `shared`, `const`, `local`, `param`, `tex`; `reg` also for register parameters."""
    type: str
    """Element type without its dot: `b8`, `f32`, `pred`, `texref`."""
    name: str
    """`_` for a parameter without a name."""
    dimensions: tuple[int | None, ...] = ()
    """Sizes of an array; None for one that the initializer, or the launch, gives."""
    count: int | None = None
    """The number of registers of a range, `%r<10>`."""
    vector: int = 1
    """Elements of a vector type: 4 for `.v4`."""
    alignment: int | None = None
    linkage: tuple[str, ...] = ()
    """`extern`, `visible`, `weak`, `common`."""
    attributes: tuple[str, ...] = ()
    """`.attribute(.managed, .unified(1, 2))`: `managed`, `unified(1, 2)`."""
    is_pointer: bool = False
    """A kernel parameter with `.ptr`."""
    pointer_space: str | None = None
    pointer_alignment: int | None = None
    initializer: Initializer | None = None

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the whole variable; None where a size is not stated, or it has no memory."""
        width = TYPE_BITS.get(self.type)
        if width is None or width < 8:
            return None
        total = width // 8 * self.vector
        for size in self.dimensions:
            if size is None:
                return None
            total *= size
        return total

    @property
    def declarator(self) -> str:
        """The name, with sizes and initializer."""
        sizes = "".join(f"[{'' if size is None else size}]" for size in self.dimensions)
        count = "" if self.count is None else f"<{self.count}>"
        value = "" if self.initializer is None else f" = {self.initializer}"
        return f"{self.name}{count}{sizes}{value}"

    @property
    def specifier(self) -> str:
        """All that stands before the name."""
        parts = [*self.linkage, self.space]
        if self.attributes:
            parts.append(f"attribute({', '.join(f'.{one}' for one in self.attributes)})")
        if self.is_pointer:
            parts += [self.type, "ptr", *filter(None, (self.pointer_space,))]
            if self.pointer_alignment is not None:
                parts.append(f"align {self.pointer_alignment}")
            return " ".join(f".{part}" for part in parts)
        if self.alignment is not None:
            parts.append(f"align {self.alignment}")
        if self.vector > 1:
            parts.append(f"v{self.vector}")
        return " ".join(f".{part}" for part in [*parts, self.type])

    def __str__(self) -> str:
        return f"{self.specifier} {self.declarator}"


@dataclass(frozen=True, slots=True)
class Declaration:
    """A statement that declares one or more names with one specifier: `.reg .pred p, q;`."""

    variables: tuple[Variable, ...]

    def __str__(self) -> str:
        names = ", ".join(variable.declarator for variable in self.variables)
        return f"{self.variables[0].specifier} {names};"


def quoted(strings: tuple[str, ...]) -> str:
    """`"a", "b"`; strings of PTX have no escapes."""
    return ", ".join(f'"{text}"' for text in strings)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive between a function's parameters and its body: `.maxntid 128, 1, 1`."""

    name: str
    values: tuple[int, ...] = ()
    strings: tuple[str, ...] = ()
    """The strings of a `.pragma`."""

    def __str__(self) -> str:
        if self.strings:
            return f".{self.name} {quoted(self.strings)};"
        return f".{self.name} {', '.join(map(str, self.values))}".rstrip()


@dataclass(frozen=True, slots=True)
class Signature:
    """The head of a function: `.visible .entry f(.param .u64 x) .maxntid 32`."""

    name: str
    is_entry: bool = False
    linkage: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    results: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    directives: tuple[Directive, ...] = ()
    has_list: bool = True
    """Whether the parameter list is written; a kernel without parameters may leave it out."""

    def __str__(self) -> str:
        parts = [f".{word}" for word in (*self.linkage, "entry" if self.is_entry else "func")]
        if self.attributes:
            parts.append(f".attribute({', '.join(f'.{one}' for one in self.attributes)})")
        if self.results:
            parts.append(f"({', '.join(map(str, self.results))})")
        parts.append(self.name)
        if self.has_list:
            parts.append(f"({', '.join(map(str, self.parameters))})")
        return " ".join([*parts, *map(str, self.directives)])

    def directive(self, name: str) -> tuple[int, ...] | None:
        """The values of a directive; None where it is absent."""
        for directive in self.directives:
            if directive.name == name:
                return directive.values
        return None


@dataclass(frozen=True, slots=True)
class Prototype:
    """`.callprototype (.param .b32 _) _ (.param .b64 _)`: the type of an indirect call."""

    results: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    directives: tuple[Directive, ...] = ()

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        tail = "".join(f" {directive}" for directive in self.directives)
        return f".callprototype ({results}) _ ({', '.join(map(str, self.parameters))}){tail};"


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """`.loc`: the source of the instructions that follow."""

    file: int
    line: int
    column: int
    function: Symbol | None = None
    """The label of the name of the function that was inlined."""
    inlined_at: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        text = f".loc {self.file} {self.line} {self.column}"
        if self.function is not None and self.inlined_at is not None:
            text += (
                f", function_name {self.function}, inlined_at {' '.join(map(str, self.inlined_at))}"
            )
        return text


TYPE_BITS = {
    "pred": 1,
    **{f"{kind}{bits}": bits for bits in (8, 16, 32, 64) for kind in "bsu"},
    "b128": 128,
    "f16": 16,
    "f16x2": 32,
    "bf16": 16,
    "bf16x2": 32,
    "f32": 32,
    "f64": 64,
    "texref": 64,
    "samplerref": 64,
    "surfref": 64,
}
"""Bits of the types of registers and variables."""
