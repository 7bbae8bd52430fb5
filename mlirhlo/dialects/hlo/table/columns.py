"""The columns of the opcode table, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mlirhlo.dialects.effects import Effect
from mlirhlo.dialects.hlo.table.attributes import COMMON, AttrSpec

PLAIN_NS = 0.03
"""Nanoseconds for an element of what is one or two instructions of a processor, in vectors."""
ALL = slice(None)
FIRST = slice(1)
FIRST_TWO = slice(2)
AFTER_FIRST = slice(1, None)
AFTER_TWO = slice(2, None)


class Arity(Enum):
    """Operand counts that are not one number."""

    ANY = "any number of"
    EVEN = "an even number of"
    ODD = "an odd number of"
    NONE = "no parsed"
    """`parameter` and `constant`: the parentheses hold something else."""


class DeclaredShape(Enum):
    """What XLA's parser takes of the result shape that a text declares."""

    KEPT = "all of it"
    INFERRED = "nothing: the shape follows from the operands"
    DATA = "its first element: the rest of the tuple is always the same"


class Types(Enum):
    """Element types that an elementwise opcode takes."""

    ANY = "any, or what its own rule says"
    NUMBERS = "numbers, not pred"
    FLOATS = "floating point"
    FLOATS_OR_COMPLEX = "floating point or complex"
    BITS = "pred or integers"


class Extreme(Enum):
    """A number that every type with arithmetic has; `identities` says which."""

    ZERO = "zero"
    ONE = "one"
    ALL_ONES = "all ones"
    LEAST = "least"
    GREATEST = "greatest"


class Movement(Enum):
    """Where the elements of the operands are in the result of an opcode that makes no new ones."""

    VALUE = "whole values, as they are"
    COPY = "at the same indices"
    SELECT = "at the same indices, of one operand or the other"
    RESHAPE = "in the same row-major order"
    PERMUTE = "at indices in another order, each once"
    BROADCAST = "at several indices each"
    SLICE = "a rectangular part of them"
    GATHER = "parts at indices that an operand names"
    JOIN = "beside elements of other operands"
    UPDATE = "with a part of them replaced"
    EXCHANGE = "on other devices"


class Calls(Enum):
    """How the called computations are run."""

    CONTROL = "whole, on operands of the instruction or parts of them"
    ASYNCHRONOUS = "whole, while other instructions run"
    SCAN = "whole, once for each index of a dimension"
    FUSED = "as one kernel"
    ELEMENTS = "on single elements"
    TARGET = "as the target of the custom call does"


class Memory(Enum):
    """What the buffers of a result are."""

    OWN = "buffers of its own"
    PASSED = "in part those of operands, or of what computations return"
    UPDATED = "that of the first operand, written over"
    CHOSEN = "its own, or those of operands, written over: the instruction says which"


class Layouts(Enum):
    """What the layouts of operands and results have to do with each other."""

    FREE = "nothing, or what the opcode's own rule says"
    ALIKE = "operands and results of one rank are laid out alike"
    FIXED = "a compiler or a host has chosen them"


@dataclass(frozen=True, slots=True)
class Opcode:
    """What every tool needs to know of one opcode."""

    name: str
    """As XLA prints it: `dynamic-slice`."""
    arity: int | Arity
    attributes: tuple[AttrSpec, ...] = ()
    """In print order."""
    infers: bool = False
    """Whether the written result shape may be left out."""
    declared_shape: DeclaredShape = DeclaredShape.KEPT
    """What counts of a declared shape that does not fit; one that fits is kept, layouts and all."""
    elementwise: bool = False
    types: Types = Types.ANY
    """Of an elementwise opcode; its shape rule checks them."""
    accuracy: bool = False
    """Whether `result_accuracy` is allowed."""
    commutes: bool = False
    data: slice | None = None
    """Operands whose elements, in the result's own type, the result is made of; see `data_operands`."""
    gives_real: bool = False
    """Whether the result of complex numbers is of the type of their parts."""
    movement: Movement | None = None
    """Where the elements of operands go, where every element of the result is one of them, bit for bit."""
    indices: slice | None = None
    """Operands that say which elements, branches or sizes are meant; see `index_operands`."""
    own_type: bool = False
    """Whether the types of the results follow from operands and callees by a rule of its own."""
    exact: bool = False
    """Whether rounding its operands first gives what rounding its result gives: it rounds nothing itself."""
    free: bool = False
    """Whether it takes no code: the result stands for an operand, its parts, or something that is there anyway."""
    forwards: bool = False
    """Whether the result is the first operand, in the same memory."""
    transfers: bool = False
    """Whether it exchanges data with the host or another program while the module runs."""
    varies: bool = False
    """Whether the result depends on more than the operands: on a state, or on what comes from outside."""
    idempotent: bool = False
    """Whether `f(x, x)` is x."""
    bitwise: bool = False
    """Whether it works on single bits, so that numbers of integers mean nothing to it."""
    sees_width: bool = False
    """Whether the same integers in more bits give another number."""
    about_sizes: bool = False
    """Whether it reads or sets the sizes of dynamic dimensions."""
    work: str = ""
    """The kind of work whose costs are measured, where that is not that of plain elementwise opcodes."""
    element_ns: float = PLAIN_NS
    """Time that an element of an elementwise opcode takes in vectors of floats, measured on CPUs."""
    contracts: bool = False
    """Whether it sums products over contracting dimensions."""
    library: bool = False
    """Whether a library computes it on CPUs, on row-major arrays."""
    layouts: Layouts = Layouts.FREE
    calls: Calls | None = None
    memory: Memory = Memory.OWN
    stablehlo: str = ""
    """The op of StableHLO or CHLO with the same operands, result and, but for the accuracy, no attribute."""
    expands_complex: bool = False
    """Whether XLA computes `stablehlo` of complex numbers by an expansion."""
    is_root: bool = False
    """Whether it is a root: dearer than a sum, yet no elementary function."""
    identity: Extreme | None = None
    """What leaves the other operand as it is, on either side; the opcodes that have one commute and associate (sums
    and products of floats up to rounding), so that reductions are made of them."""
    side_effect: bool = False
    """Kept by dce even without users."""
    collective: bool = False
    transcendental: bool = False
    flops: int = 0
    """Floating-point operations an element of the result, for elementwise opcodes."""
    newer: bool = False
    """libtpu 0.0.51 and later."""
    summary: str = ""
    """The equation or sentence that says what it computes."""
    specs: Mapping[str, AttrSpec] = field(init=False, repr=False, compare=False)
    """Every attribute the reader takes, by key, common ones included."""

    def __post_init__(self) -> None:
        common = [spec for spec in COMMON if self.accuracy or spec.key != "result_accuracy"]
        own = () if self.name == "constant" else self.attributes
        object.__setattr__(self, "specs", {spec.key: spec for spec in (*own, *common)})

    @property
    def op_name(self) -> str:
        """Name of the op: `hlo.dynamic_slice`."""
        return "hlo." + self.name.replace("-", "_")

    @property
    def is_plain(self) -> bool:
        """Whether an element of it takes no more than one or two instructions of a processor."""
        return self.element_ns <= PLAIN_NS

    @property
    def instructions(self) -> float:
        """Instructions of a processor that an element of it takes, going by its time."""
        return max(1.0, self.element_ns / PLAIN_NS)

    def data_operands(self, count: int) -> Sequence[int]:
        """Those of `count` operands whose elements, in the result's own type, the result is made of.

        Indices, predicates and sizes are none; opcodes whose result is of a type by their nature have none.
        """
        if self.name == "scatter":
            return [number for number in range(count) if number != count // 2]
        return () if self.data is None else range(count)[self.data]

    def index_operands(self, count: int) -> Sequence[int]:
        """Those of `count` operands that say which elements, branches or sizes are meant."""
        if self.name == "scatter":
            return (count // 2,)
        return () if self.indices is None else range(count)[self.indices]

    @property
    def moves(self) -> bool:
        """Whether every element of the result is an element of an operand, bit for bit."""
        return self.movement is not None

    @property
    def is_index_map(self) -> bool:
        """Whether its elements are those of its operand, or numbers, at indices that are computed of the result's."""
        return self.name in ("bitcast", "constant") or (
            (self.indices is None and self.movement in _INDEX_MAPS) or self.name == "iota"
        )

    @property
    def is_trivial(self) -> bool:
        """Whether computing it once more costs nothing and reads no memory in another order."""
        return self.is_index_map and self.movement not in (Movement.PERMUTE, Movement.SLICE)

    @property
    def keeps_bytes(self) -> bool:
        """Whether the result has the bytes of the operand, where their layouts go together."""
        moves = self.movement in (Movement.COPY, Movement.RESHAPE)
        is_here = self.indices is None and not self.is_asynchronous
        return (moves and is_here) or self.name in ("bitcast", "bitcast-convert")

    @property
    def takes_pair(self) -> bool:
        """Whether it ends what began with a tuple of operands and results, and gives the results."""
        return (
            self.name.endswith("-done")
            and self.memory is Memory.PASSED
            and not (self.transfers or (self.moves and not self.collective))
        )

    @property
    def handles_whole(self) -> bool:
        """Whether it hands values on, exchanges them or calls computations with them, and computes nothing itself."""
        return self.free or self.transfers or self.calls in _WHOLE_CALLS

    @property
    def runs_whole(self) -> bool:
        """Whether its computations run as a whole, in an order with other instructions."""
        return self.calls in (Calls.CONTROL, Calls.ASYNCHRONOUS, Calls.SCAN)

    @property
    def names_device(self) -> bool:
        """Whether the result is a number of the device that runs it."""
        return self.collective and self.arity == 0

    @property
    def communicates(self) -> bool:
        """Whether it exchanges data between the devices of a module."""
        return self.collective and self.arity != 0

    @property
    def reduces_groups(self) -> bool:
        """Whether it combines the operands of several devices by a computation."""
        return self.collective and "to_apply" in self.specs

    @property
    def splits_groups(self) -> bool:
        """Whether it joins or splits arrays along a dimension by devices: groups have one size then."""
        return "replica_groups" in self.specs and "dimensions" in self.specs

    @property
    def groups_partitions(self) -> bool:
        """Whether a channel makes its groups name partitions, for want of an attribute that says so."""
        return (
            "channel_id" in self.specs
            and self.collective
            and "use_global_device_ids" not in self.specs
        )

    @property
    def effect(self) -> Effect:
        """What it affects beside its result. A parameter stays because it belongs to the signature."""
        if self.side_effect or self.name == "parameter":
            return Effect.WRITE
        depends = self.is_asynchronous or self.name == "custom-call"
        depends |= self.communicates
        depends |= any(spec.kind.names_computations for spec in self.attributes)
        return Effect.BY_INSTANCE if depends else Effect.NONE

    @property
    def is_asynchronous(self) -> bool:
        """Begins, goes on with or ends what runs aside."""
        return self.name.endswith(("-start", "-update", "-done"))

    @property
    def is_async_start(self) -> bool:
        """Begins an asynchronous pair."""
        return self.name.endswith("-start")

    def attribute(self, key: str) -> AttrSpec | None:
        """The attribute written `key`, common ones included."""
        return self.specs.get(key)


_INDEX_MAPS = (Movement.BROADCAST, Movement.RESHAPE, Movement.PERMUTE, Movement.SLICE)
_WHOLE_CALLS = (Calls.CONTROL, Calls.ASYNCHRONOUS, Calls.FUSED, Calls.TARGET)
