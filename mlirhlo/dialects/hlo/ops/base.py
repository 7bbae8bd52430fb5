"""What every instruction shares: operands, one result, common attributes, typed accessors.

An instruction is an op with any number of operands and one result; its opcode's row says the rest.
Control predecessors are operands too, the last ones: then replacing, cloning and dead-code removal
see them like any use. `inputs` leaves them out.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, TypeVar, cast, overload

from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.constraints import AnyAttr, BaseAttr, RangeOf
from xdsl.irdl.operations import (
    OpDef,
    OptPropertyDef,
    PropertyDef,
    ResultDef,
    VarOperandDef,
    get_accessors_from_op_def,
    traits_def,
)
from xdsl.traits import (
    Commutative,
    ConstantLike,
    EffectInstance,
    MemoryEffect,
    OpTrait,
    SymbolTable,
)

from mlirhlo.dialects.effects import NOTHING, TRAITS, WRITES, Effect
from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributes,
    Metadata,
    Origin,
    ResultAccuracy,
    Statistics,
)
from mlirhlo.dialects.hlo.attributes.base import (
    bool_of,
    int_of,
    ints,
    str_of,
    symbol_of,
    symbols_of,
)
from mlirhlo.dialects.hlo.attributes.sharding import Sharding
from mlirhlo.dialects.hlo.ops.assembly import parse_instruction, print_instruction
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.table import COMMON, OPCODES, UNWRITTEN, Opcode
from mlirhlo.dialects.hlo.table import CONTROL_PREDECESSORS as CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.types import shape_of

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

T = TypeVar("T")
OpT = TypeVar("OpT", bound="Instruction")

_at = cast("Callable[[tuple[Any, ...], int], Any]", cast(Any, tuple).__getitem__)
"""As xDSL's `SSAValues[place]`, which is a function of Python's."""


class Accessor(Generic[T]):
    """A typed view of one property: `op.dimensions` is a tuple of ints, not an attribute."""

    __slots__ = ("key", "read")

    def __init__(self, read: Callable[[Attribute | None], T], key: str | None = None) -> None:
        self.read = read
        self.key = key or ""

    def __set_name__(self, owner: type, name: str) -> None:
        if not self.key:
            self.key = name

    @overload
    def __get__(self, op: None, owner: type) -> Accessor[T]: ...
    @overload
    def __get__(self, op: Instruction, owner: type) -> T: ...
    def __get__(self, op: Instruction | None, owner: type) -> Accessor[T] | T:
        return self if op is None else self.read(op.properties.get(self.key))

    def __set__(self, op: Instruction, value: Never) -> Never:
        raise AttributeError(
            f"{op.name}: '{self.key}' is read-only here; set op.properties['{self.key}'] to an attribute"
        )


def ints_property(key: str | None = None) -> Accessor[tuple[int, ...]]:
    """A list of integers; `()` when absent."""
    return Accessor(ints, key)


def int_property(default: int = 0, key: str | None = None) -> Accessor[int]:
    """An integer with its default."""
    return Accessor(lambda a: int_of(a, default), key)


def optional_int_property(key: str | None = None) -> Accessor[int | None]:
    """An integer that may be absent."""
    return Accessor(lambda a: None if a is None else int_of(a), key)


def bool_property(default: bool = False, key: str | None = None) -> Accessor[bool]:
    """A bool with its default."""
    return Accessor(lambda a: bool_of(a, default), key)


def str_property(default: str = "", key: str | None = None) -> Accessor[str]:
    """A string with its default."""
    return Accessor(lambda a: str_of(a, default), key)


def float_property(key: str | None = None) -> Accessor[float]:
    """A float; 0.0 when absent."""
    return Accessor(
        lambda a: 0.0 if a is None else float(cast("FloatAttr[Any]", a).value.data), key
    )


def computation_property(key: str | None = None) -> Accessor[str]:
    """Name of a called computation."""
    return Accessor(lambda a: symbol_of(cast(Attribute, a)), key)


def computations_property(key: str | None = None) -> Accessor[tuple[str, ...]]:
    """Names of called computations; `()` when absent."""
    return Accessor(symbols_of, key)


def words_property(key: str | None = None) -> Accessor[tuple[str, ...]]:
    """A list of words; `()` when absent."""
    return Accessor(
        lambda a: (
            () if a is None else tuple(str_of(w) for w in cast("ArrayAttr[Attribute]", a).data)
        ),
        key,
    )


def integer_lists_property(key: str | None = None) -> Accessor[tuple[tuple[int, ...], ...]]:
    """A list of lists of integers; `()` when absent."""
    return Accessor(lambda a: () if a is None else tuple(cast(Any, a).data), key)


def shapes_property(key: str | None = None) -> Accessor[tuple[Shape, ...] | None]:
    """A list of shapes; None when absent."""
    return Accessor(
        lambda a: (
            None if a is None else tuple(shape_of(t) for t in cast("ArrayAttr[Attribute]", a).data)
        ),
        key,
    )


def value_property(type_: type[T], key: str | None = None) -> Accessor[T | None]:
    """The value of a structured attribute (`Window`, `Sharding`, …); None when absent."""

    def read(attribute: Any) -> T | None:
        value: T | None = None if attribute is None else attribute.data
        return value

    return Accessor(read, key)


def value_or(default: T, key: str | None = None) -> Accessor[T]:
    """The value of a structured attribute; `default` when absent."""

    def read(attribute: Any) -> T:
        value: T = default if attribute is None else attribute.data
        return value

    return Accessor(read, key)


class _Kind(ABCMeta):
    """Class of instructions' classes. None has virtual subclasses, so that `isinstance` need not ask
    for them; rewriting is mostly such questions, and these are several times as quick."""

    __instancecheck__ = type.__instancecheck__


class Instruction(IRDLOperation, metaclass=_Kind):
    """An HLO instruction: operands, one result, properties named as HLO text names attributes."""

    opcode: ClassVar[Opcode]
    """Row of the table."""

    # As xDSL has it, without a call of Python: sets and dicts of instructions are everywhere.
    __hash__ = object.__hash__

    sharding = value_property(Sharding)
    frontend_attributes = value_property(FrontendAttributes)
    statistics = value_property(Statistics)
    result_accuracy = value_property(ResultAccuracy)
    origin = value_property(Origin)
    metadata = value_property(Metadata)
    backend_config = str_property()

    @property
    def instruction_name(self) -> str | None:
        """Name without `%`; None for a new instruction that the printer will name."""
        name: str | None = _at(self.results, 0)._name
        return name

    @instruction_name.setter
    def instruction_name(self, name: str | None) -> None:
        # xDSL's own setter strips a trailing `_12`, which is part of HLO names.
        self.results[0]._name = name  # pyright: ignore[reportPrivateUsage]

    @property
    def output(self) -> OpResult:
        """The result."""
        output: OpResult = _at(
            self.results, 0
        )  # not `cast`, which is a call: asked for all the time
        return output

    @property
    def shape(self) -> Shape:
        """Shape of the result."""
        return shape_of(_at(self.results, 0)._type)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """Operands without control predecessors."""
        control = self.properties.get(CONTROL_PREDECESSORS)
        return self._operands if control is None else self._operands[: -int_of(control)]

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """Shapes of `inputs`."""
        return tuple(shape_of(v.type) for v in self.inputs)

    @property
    def control_predecessors(self) -> tuple[SSAValue, ...]:
        """Results of the instructions that must run before this one though it reads no value."""
        control = self.properties.get(CONTROL_PREDECESSORS)
        return () if control is None else self._operands[-int_of(control) :]

    @property
    def called_computations(self) -> tuple[str, ...]:
        """Names of all computations this instruction calls, in the opcode's attribute order."""
        keys = self.calling_keys
        if len(keys) == 1:
            return symbols_of(self.properties.get(keys[0]))
        names: list[str] = []
        for key in keys:
            names += symbols_of(self.properties.get(key))
        return tuple(names)

    calling_keys: ClassVar[tuple[str, ...]] = ()
    """Properties that refer to computations."""

    property_order: ClassVar[Mapping[str, int]] = {}
    """Place of each property in the row, for printing."""

    def print(self, printer: Printer) -> None:
        """Prints the custom MLIR form."""
        print_instruction(self, printer)

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Reads the custom MLIR form."""
        return parse_instruction(cls, parser)

    @property
    def has_side_effect(self) -> bool:
        """Whether it must be kept though nobody uses its result."""
        return self.opcode.side_effect

    def clone_without_regions(  # exact names survive cloning
        self,
        value_mapper: dict[SSAValue, SSAValue] | None = None,
        block_mapper: dict[Block, Block] | None = None,
        *,
        clone_name_hints: bool = True,
        clone_operands: bool = True,
    ) -> Any:
        """As xDSL's; the name is copied as it is."""
        clone = super().clone_without_regions(
            value_mapper, block_mapper, clone_name_hints=False, clone_operands=clone_operands
        )
        if clone_name_hints:
            clone.instruction_name = self.instruction_name
        return clone

    def defining(self, index: int) -> Operation | None:
        """The op that defines operand `index`."""
        owner = self._operands[index].owner
        return owner if isinstance(owner, Operation) else None


class Unary(Instruction):
    """An instruction that is about its first operand."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        operand: SSAValue = _at(self._operands, 0)
        return operand


class Binary(Instruction):
    """An instruction with a left and a right operand."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        operand: SSAValue = _at(self._operands, 0)
        return operand

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        operand: SSAValue = _at(self._operands, 1)
        return operand


_COMMON_PROPERTIES: Mapping[str, OptPropertyDef] = {
    **{spec.property_name: OptPropertyDef(BaseAttr(spec.kind.attribute)) for spec in COMMON},
    **{name: OptPropertyDef(AnyAttr()) for name in UNWRITTEN},
}

OP_CLASSES: dict[str, type[Instruction]] = {}
"""Class of every opcode, filled by `instruction` and `define_others`."""


def _row_keys(row: Opcode) -> tuple[str, ...]:
    return tuple(spec.property_name for spec in row.attributes)


class InstructionEffects(MemoryEffect):
    """Effects of an instruction that its properties decide, or the computations that it calls."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """A write where the instruction, or one that it reaches by calls, has a side effect of its own."""
        reached: set[str] = set()
        stack = [cast(Instruction, op)]
        while stack:
            current = stack.pop()
            if _has_own_effect(current):
                return WRITES
            for name in current.called_computations:
                if name not in reached:
                    reached.add(name)
                    callee = SymbolTable.lookup_symbol(op, name)
                    if callee is None:
                        return WRITES
                    stack += [i for i in callee.regions[0].block.ops if isinstance(i, Instruction)]
        return NOTHING


def _has_own_effect(op: Instruction) -> bool:
    row = op.opcode
    if row.name == "custom-call":
        return bool_of(op.properties.get("custom_call_has_side_effect"))
    return row.side_effect or row.communicates or row.is_asynchronous


def _traits(row: Opcode) -> tuple[OpTrait, ...]:
    kinds = [Commutative()] if row.commutes else [ConstantLike()] if row.name == "constant" else []
    if row.effect is Effect.BY_INSTANCE:
        return (*kinds, InstructionEffects())
    return (*kinds, *TRAITS[row.effect])


def classes_of(holds: Callable[[Opcode], bool]) -> frozenset[type[Instruction]]:
    """The classes of the opcodes whose rows have some property; the modules of the ops are imported by then."""
    return frozenset(cls for cls in OP_CLASSES.values() if holds(cls.opcode))


def instruction(opcode: str) -> Callable[[type[OpT]], type[OpT]]:
    """Class decorator: defines the op of an opcode from its row."""

    def define(cls: type[OpT]) -> type[OpT]:
        row = OPCODES[opcode]
        properties: dict[str, PropertyDef] = dict(_COMMON_PROPERTIES)
        for spec in row.attributes:
            if not spec.read_only or opcode == "constant":
                properties[spec.property_name] = OptPropertyDef(BaseAttr(spec.kind.attribute))
        if opcode == "parameter":
            properties["parameter_number"] = OptPropertyDef(AnyAttr())
        op_def = OpDef(
            name=row.op_name,
            operands=[("arguments", VarOperandDef(RangeOf(AnyAttr())))],
            results=[("result", ResultDef(AnyAttr()))],
            properties=properties,
            traits=traits_def(*_traits(row)),
        )
        cls.name = row.op_name
        for key, value in get_accessors_from_op_def(op_def, None).items():
            setattr(cls, key, value)
        cls.opcode = row
        cls.calling_keys = tuple(
            spec.property_name
            for spec in row.attributes
            if spec.kind.names_computations and not spec.read_only
        )
        cls.property_order = {
            key: place for place, key in enumerate((*_row_keys(row), *_COMMON_PROPERTIES))
        }
        OP_CLASSES[opcode] = cls
        return cls

    return define


_BASES: Mapping[object, type[Instruction]] = {1: Unary, 2: Binary}


def define_others() -> None:
    """Defines the classes of the opcodes that have none, with accessors by their number of operands."""
    for opcode, row in OPCODES.items():
        if opcode not in OP_CLASSES:
            name = "".join(map(str.capitalize, opcode.split("-"))) + "Op"
            body = {"__doc__": row.summary, "__module__": __package__}
            instruction(opcode)(type(name, (_BASES.get(row.arity, Instruction),), body))
