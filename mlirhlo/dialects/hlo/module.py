"""A view of a `builtin.module` as an HLO module: name, header attributes, computations.

Header attributes are module attributes named `hlo.<key>`, absent at their default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation

from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonors,
    BufferDonorsAttr,
    InputOutputAliases,
    InputOutputAliasesAttr,
)
from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, string
from mlirhlo.dialects.hlo.attributes.header import (
    Booleans,
    BooleansAttr,
    ProgramLayout,
    ProgramLayoutAttr,
    StackFrames,
    StackFramesAttr,
)
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import ops_of

if TYPE_CHECKING:
    from mlirhlo.diagnostics import SourceText

HEADER_PREFIX = "hlo."

HEADER_CLASSES: Mapping[str, type[Attribute]] = {
    "is_scheduled": IntegerAttr,
    "input_output_alias": InputOutputAliasesAttr,
    "buffer_donor": BufferDonorsAttr,
    "alias_passthrough_params": IntegerAttr,
    "entry_computation_layout": ProgramLayoutAttr,
    "allow_spmd_sharding_propagation_to_parameters": BooleansAttr,
    "allow_spmd_sharding_propagation_to_output": BooleansAttr,
    "replica_count": IntegerAttr,
    "num_partitions": IntegerAttr,
    "frontend_attributes": FrontendAttributesAttr,
    "stack_frames": StackFramesAttr,
}
"""Class of each header attribute that has one of its own."""


T = TypeVar("T")

Facts: TypeAlias = "dict[Callable[[HloModule], Any], Any]"
"""Answers by question."""


@dataclass(slots=True)
class Listing:
    """The instructions of a module, found by class."""

    instructions: list[Instruction]
    """All, as they are stored."""
    ends: dict[ComputationOp, int]
    """Place in it behind each computation's last."""
    places: dict[type, list[int]]
    """Places in it of each class's."""
    _found: dict[tuple[type[Instruction], ...], list[Instruction]] = field(
        default_factory=dict[tuple[type[Instruction], ...], "list[Instruction]"]
    )

    @staticmethod
    def of(module: HloModule) -> Listing:
        """Of the module as it is now."""
        listed: list[Operation] = []
        ends: dict[ComputationOp, int] = {}
        for computation in module.computations:
            listed += ops_of(computation.block)
            if listed and type(listed[-1]) is ReturnOp:
                listed.pop()
            ends[computation] = len(listed)
        places: dict[type, list[int]] = defaultdict(list)
        for place, kind in enumerate(list(map(type, listed))):
            places[kind].append(place)
        return Listing(cast("list[Instruction]", listed), ends, dict(places))

    def by_computation(self) -> Iterator[tuple[ComputationOp, list[Instruction]]]:
        """Each computation with its instructions."""
        start = 0
        for computation, end in self.ends.items():
            yield computation, self.instructions[start:end]
            start = end

    def of_classes(self, kinds: tuple[type[Instruction], ...]) -> list[Instruction]:
        """Those of exactly these classes, as they are stored."""
        known = self._found.get(kinds)
        if known is None:
            found = [places for kind in kinds if (places := self.places.get(kind))]
            order = found[0] if len(found) == 1 else sorted(chain(*found))
            listed = self.instructions
            known = self._found[kinds] = [listed[place] for place in order]
        return list(known)


@dataclass(slots=True, unsafe_hash=True)
class HloModule:
    """View of `op`. Not frozen: a frozen dataclass has no setters."""

    op: ModuleOp
    facts: Facts | None = field(default=None, compare=False, repr=False)
    """Answers that `known` keeps; None = it keeps none."""
    kept: dict[Any, Any] | None = field(default=None, compare=False, repr=False)
    """What passes keep for their own next run on this module, by keys of theirs; None = nothing."""

    def known(self, ask: Callable[[HloModule], T]) -> T:
        """`ask(self)`, which is asked once between two passes that change the module.

        For what a pass wants to know before it changes anything; nobody may change the answer.
        """
        if self.facts is None:
            return ask(self)
        if ask not in self.facts:
            self.facts[ask] = ask(self)
        return cast(T, self.facts[ask])

    def afresh(self) -> HloModule:
        """A view that knows nothing yet: for a pass that runs another one when it changed the module."""
        return HloModule(self.op, {})

    @property
    def name(self) -> str:
        """Module name; empty when unnamed."""
        return self.op.sym_name.data if isinstance(self.op.sym_name, StringAttr) else ""

    @name.setter
    def name(self, name: str) -> None:
        self.op.properties["sym_name"] = string(name)

    def get(self, key: str) -> Attribute | None:
        """Header attribute `key` (without the `hlo.` prefix)."""
        return self.op.attributes.get(HEADER_PREFIX + key)

    def set(self, key: str, attribute: Attribute | None) -> None:
        """Sets header attribute `key`; None removes it."""
        if attribute is None:
            self.op.attributes.pop(HEADER_PREFIX + key, None)
        else:
            self.op.attributes[HEADER_PREFIX + key] = attribute

    def _value(self, key: str) -> Any:
        attribute = self.get(key)
        return None if attribute is None else cast(Any, attribute).data

    @property
    def is_scheduled(self) -> bool:
        """Whether block order is a schedule."""
        return bool_of(self.get("is_scheduled"))

    @property
    def replica_count(self) -> int:
        """Replicas; 1 by default."""
        return int_of(self.get("replica_count"), 1)

    @property
    def num_partitions(self) -> int:
        """Partitions; 1 by default."""
        return int_of(self.get("num_partitions"), 1)

    @property
    def input_output_alias(self) -> InputOutputAliases | None:
        """Outputs that share memory with parameters."""
        return cast("InputOutputAliases | None", self._value("input_output_alias"))

    @property
    def buffer_donor(self) -> BufferDonors | None:
        """Parameters that may be overwritten."""
        return cast("BufferDonors | None", self._value("buffer_donor"))

    @property
    def alias_passthrough_params(self) -> bool:
        """Whether parameters returned as they are alias the result."""
        return bool_of(self.get("alias_passthrough_params"))

    @property
    def program_layout(self) -> ProgramLayout:
        """`entry_computation_layout`; taken from the entry when the header has none."""
        value = self._value("entry_computation_layout")
        return self.entry_signature if value is None else cast(ProgramLayout, value)

    @property
    def entry_signature(self) -> ProgramLayout:
        """Shapes of the entry's parameters and root."""
        entry = self.entry
        return ProgramLayout(tuple(p.shape for p in entry.parameters), entry.root.shape)

    def set_program_layout(self, parameters: Sequence[Shape], result: Shape) -> None:
        """Sets `entry_computation_layout`."""
        self.set(
            "entry_computation_layout", ProgramLayoutAttr(ProgramLayout(tuple(parameters), result))
        )

    @property
    def allow_propagation_to_parameters(self) -> Booleans | None:
        """`allow_spmd_sharding_propagation_to_parameters`."""
        return cast("Booleans | None", self._value("allow_spmd_sharding_propagation_to_parameters"))

    @property
    def allow_propagation_to_output(self) -> Booleans | None:
        """`allow_spmd_sharding_propagation_to_output`."""
        return cast("Booleans | None", self._value("allow_spmd_sharding_propagation_to_output"))

    @property
    def frontend_attributes(self) -> FrontendAttributes | None:
        """Module-level frontend attributes."""
        return cast("FrontendAttributes | None", self._value("frontend_attributes"))

    @property
    def stack_frames(self) -> StackFrames | None:
        """The stack-frame tables."""
        return cast("StackFrames | None", self._value("stack_frames"))

    @property
    def _block(self) -> Block:
        block = self.op.regions[0].first_block
        assert block is not None
        return block

    @property
    def computations(self) -> Iterator[ComputationOp]:
        """Computations in stored order."""
        op = self._block.first_op
        while op is not None:
            following = op._next_op  # pyright: ignore[reportPrivateUsage]
            if type(op) is ComputationOp:
                yield op
            op = following

    @property
    def entry(self) -> ComputationOp:
        """The entry computation. Raises `ValueError` when none is marked."""
        op = self._block.last_op  # where it mostly is
        while op is not None:
            if type(op) is ComputationOp and "is_entry" in op.properties:
                return op
            op = op._prev_op  # pyright: ignore[reportPrivateUsage]
        raise ValueError("the module has no entry computation")

    def by_name(self) -> dict[str, ComputationOp]:
        """Computations by name."""
        found: dict[str, ComputationOp] = {}
        op = self._block.first_op
        while op is not None:
            if type(op) is ComputationOp:
                found[cast("StringAttr", op.properties["sym_name"]).data] = op
            op = op._next_op  # pyright: ignore[reportPrivateUsage]
        return found

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions of all computations."""
        for computation in self.computations:
            yield from computation.instructions

    def instruction_names(self) -> list[str]:
        """Names of all instructions that have one, as the module is now."""
        blocks = map(ops_of, [computation.block for computation in self.computations])
        results = chain.from_iterable(map(attrgetter("results"), chain.from_iterable(blocks)))
        return list(filter(None, map(attrgetter("_name"), results)))

    def instructions_of(self, *kinds: type[Instruction]) -> list[Instruction]:
        """The instructions of exactly these classes, of all computations; the quick way to find them."""
        wanted = frozenset(kinds)
        found: list[Instruction] = []
        for computation in self.computations:
            op = computation.block.first_op
            while op is not None:
                if type(op) in wanted:
                    found.append(cast(Instruction, op))
                op = op._next_op  # pyright: ignore[reportPrivateUsage]
        return found

    def candidates(self, *kinds: type[Instruction]) -> list[Instruction]:
        """`instructions_of` the module as it was when the pass began; see `known`."""
        if self.facts is None:
            return self.instructions_of(*kinds)
        return self.known(Listing.of).of_classes(kinds)

    def calling(self) -> list[Instruction]:
        """The `candidates` that may call computations."""
        return self.candidates(*_calling_classes())

    def result_types(self) -> list[Attribute]:
        """Types of all instructions, each object once; ask it through `known`."""
        listed = self.known(Listing.of).instructions
        results = chain.from_iterable(map(attrgetter("results"), listed))
        types: list[Attribute] = list(map(attrgetter("_type"), results))
        return list(dict(zip(map(id, types), types, strict=True)).values())

    def result_shapes(self) -> frozenset[Shape]:
        """Shapes of all instructions; ask it through `known`."""
        # Few types are many values': each is looked at once.
        return frozenset(map(shape_of, self.known(HloModule.result_types)))

    def fused_computations(self) -> frozenset[str]:
        """Names of the computations that fusions run, where it is asked through `known`, as the module was."""
        fusions = self.candidates(OP_CLASSES["fusion"])
        return frozenset(name for op in fusions for name in op.called_computations)


def holder(op: Instruction) -> ComputationOp:
    """The computation that an instruction of a module stands in."""
    found: Any = op.parent.parent.parent  # type: ignore[union-attr]
    computation: ComputationOp = found  # not `cast`, which is a call: asked for all the time
    return computation


@cache
def _calling_classes() -> tuple[type[Instruction], ...]:
    return tuple(cls for cls in OP_CLASSES.values() if cls.calling_keys)


def set_source(op: Instruction, source: SourceText, offset: int) -> None:
    """Remembers where in `source` an instruction's text begins (offset of its name)."""
    op.text_source = (source, offset)  # type: ignore[attr-defined]


def source_of(op: Instruction) -> tuple[SourceText, int] | None:
    """Where the instruction stands in the text it was read from; None for new or proto ones."""
    source: tuple[SourceText, int] | None = getattr(op, "text_source", None)
    return source
