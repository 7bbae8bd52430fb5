"""What is known while a module is read: its computations, names in use, pieces seen before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, TupleType
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.diagnostics import SourceText
from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr, ShardingKind
from mlirhlo.dialects.hlo.build import close
from mlirhlo.dialects.hlo.names import NameUniquer, legal_name
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.shapes import Shape, compatible, leaves
from mlirhlo.dialects.hlo.table import AttrSpec, Opcode
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.formats.hlo_text.reader_problems import (
    NAME_TAKEN,
    PARAMETER_NUMBERS,
    SHAPES_DIFFER,
    SYNTAX,
    ReadProblem,
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How HLO text is read."""

    keep_unset_layouts: bool = False
    """Leave layouts that `entry_computation_layout` does not give unset, instead of row-major."""
    carry_unknown_attributes: bool = False
    """Keep unknown attributes of instructions as text (property `raw_attributes`: `key=value, …`)
    instead of refusing them."""


@dataclass(slots=True)
class Scope:
    """The computation being read."""

    name: str
    offset: int
    """Of its name in the text."""
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Results by `%name`."""
    block: Block = field(default_factory=Block)
    root: SSAValue | None = None
    parameters: dict[int, Instruction] = field(default_factory=dict[int, Instruction])
    all_named: bool = True
    """False once an instruction was made that has no name in the text."""
    creates_parameters: bool = False
    """Whether operands nobody defined become parameters (a single instruction)."""


@dataclass(slots=True)
class ModuleState:
    """The module being read."""

    source: SourceText
    options: ReadOptions
    module: ModuleOp
    computations: dict[str, ComputationOp] = field(default_factory=dict[str, ComputationOp])
    """By their names in the text."""
    symbols: dict[str, SymbolRefAttr] = field(default_factory=dict[str, SymbolRefAttr])
    offsets: dict[str, int] = field(default_factory=dict[str, int])
    instruction_names: NameUniquer = field(default_factory=NameUniquer)
    computation_names: NameUniquer = field(default_factory=NameUniquer)
    anonymous_names: NameUniquer = field(default_factory=NameUniquer)
    by_symbol: dict[str, ComputationOp] = field(default_factory=dict[str, ComputationOp])
    alias_offset: int = 0
    """Where `input_output_alias` stands."""
    essential_constants: bool = False
    """Whether constants are those of a fingerprint: `0` and `1` stand for whole arrays."""
    entry: ComputationOp | None = None
    entry_text_name: str = ""
    last: ComputationOp | None = None
    """Computation written last."""
    written: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    """Begin, end and symbol of the top-level computations in the text."""
    bodies: dict[str, str] = field(default_factory=dict[str, str])
    """Symbol by the text of a body, filled by `same_body`."""
    wrapped: set[str] = field(default_factory=set[str])
    """Symbols of the computations that some async-start wraps."""
    started: dict[Instruction, Instruction] = field(default_factory=dict[Instruction, Instruction])
    """The async-start behind an update that was read."""
    on_threads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Symbols of computations that were put on a thread with all they call, and the thread."""
    expanded: dict[tuple[int, int], ShardingAttr] = field(
        default_factory=dict[tuple[int, int], ShardingAttr]
    )
    kept: list[Attribute] = field(default_factory=list[Attribute])
    """Attributes whose `id` is a key of `expanded`."""

    def declare(self, scope: Scope, length: int) -> None:
        """Checks that a top-level computation's name is new. Raises `ReadProblem`."""
        if scope.name in self.computations:
            raise ReadProblem(
                NAME_TAKEN,
                scope.offset,
                f"computation already exists: {scope.name}",
                length,
                notes=(("computation previously defined here", self.offsets[scope.name]),),
            )
        self.offsets[scope.name] = scope.offset

    def finish(
        self,
        scope: Scope,
        declared: Shape | None,
        declared_at: int,
        *,
        inline: bool = False,
    ) -> ComputationOp:
        """Closes a computation: root, parameters, unique names. Raises `ReadProblem`."""
        root = scope.root if scope.root is not None else _last_value(scope)
        numbers = scope.parameters
        if numbers and max(numbers) != len(numbers) - 1:
            missing = next(n for n in range(len(numbers) + 1) if n not in numbers)
            raise ReadProblem(
                PARAMETER_NUMBERS,
                scope.offset,
                f"computation {scope.name} has no parameter({missing}), but has parameter({max(numbers)})",
                max(1, len(scope.name)),
                help="number the parameters 0, 1, 2, … without a gap",
            )
        if declared is not None and not compatible(declared, shape_of(root.type)):
            raise ReadProblem(
                SHAPES_DIFFER,
                declared_at,
                f"Shape of computation {scope.name}, {declared.to_string(layout=False)}, is not compatible"
                f" with that of its root instruction {root._name},"  # pyright: ignore[reportPrivateUsage]
                f" {shape_of(root.type).to_string(layout=False)}",
            )
        name = self.computation_names.unique(legal_name(scope.name))
        computation = close(name, scope.block, root)
        self._name_instructions(scope, computation)
        self.by_symbol[name] = computation
        if not inline:
            self.computations[scope.name] = computation
            self.symbols[scope.name] = symbol(name)
            self.last = computation
        self.module.body.block.add_op(computation)
        return computation

    def _name_instructions(self, scope: Scope, computation: ComputationOp) -> None:
        names = scope.values.keys()
        if scope.all_named and self.instruction_names.take_all(names, "\n".join(names)):
            return
        for op in computation.instructions:
            unique = self.instruction_names.unique("%" + (op.instruction_name or "_"))
            op.instruction_name = unique[1:]

    def same_body(self, begin: int, end: int) -> str | None:
        """Symbol of a computation above whose body reads like the text from `begin` to `end`.

        Texts with full bodies print a callee both at top level and where it is called.
        """
        text = self.source.text
        while self.written:
            start, stop, name = self.written.pop()
            opening = text.find("{", start, stop)
            if opening >= 0:
                self.bodies[_body_key(text[opening:stop])] = name
        return self.bodies.get(_body_key(text[begin:end]))

    def program_layout(self, name: str) -> ProgramLayout:
        """Parameter shapes and result of a computation, by its symbol."""
        computation = self.by_symbol[name]
        parameters = tuple(p.shape for p in computation.parameters)
        return ProgramLayout(parameters, computation.root.shape)

    def fit_sharding(self, type_: Attribute, properties: dict[str, Attribute]) -> None:
        """Gives every leaf of a tuple its own sharding where one was written for all."""
        sharding = properties.get("sharding")
        if not isinstance(sharding, ShardingAttr) or not isinstance(type_, TupleType):
            return
        if sharding.data.kind is ShardingKind.TUPLE:
            return
        count = max(1, sum(1 for _ in leaves(shape_of(type_))))
        key = (id(sharding), count)
        found = self.expanded.get(key)
        if found is None:
            found = self.expanded[key] = ShardingAttr(sharding.data.expanded(count))
            self.kept.append(sharding)
        properties["sharding"] = found


def _body_key(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def _last_value(scope: Scope) -> SSAValue:
    last = scope.block.last_op
    if last is None:
        raise ReadProblem(SYNTAX, scope.offset, f"computation {scope.name} is empty")
    return last.results[0]


Check = Callable[[ModuleState, Sequence[SSAValue], Attribute | None, dict[str, Attribute]], None]
"""Completes the properties of an instruction from its operands and result type (None while it is
to be inferred); raises `Misfit`."""


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """One opcode as the reader needs it."""

    row: Opcode
    cls: type[Instruction]
    specs: Mapping[str, AttrSpec]
    """Attributes it takes, by key."""
    required: tuple[str, ...]
    """Keys that must be given."""
    arity: int
    """Number of operands, or -1 when the check decides."""
    check: Check | None
    """What is particular to the opcode."""
