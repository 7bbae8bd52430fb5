"""The rewriter that rules are handed: builds, replaces and erases instructions of HLO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener
from xdsl.rewriter import InsertPoint

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.shape_inference import infer
from mlirhlo.dialects.hlo.attributes.base import attribute_of
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule, set_source, source_of
from mlirhlo.dialects.hlo.ops import ComputationOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import (
    erase,
    insert_before,
    owners_of,
    read_instead,
    readers_of,
    replace,
)

InstructionT = TypeVar("InstructionT", bound=Instruction)


class Rewriter(PatternRewriter):
    """xDSL's rewriter with the habits of HLO: names, metadata and places survive a replacement."""

    def __init__(
        self,
        op: Operation,
        effects: Callable[[], SideEffects] | None = None,
        options: object = None,
    ) -> None:
        """`effects`: tells those of the module; the driver shares one answer among all rewrites.

        `options`: what the rules of a pass may ask for, as a rule the pass itself.
        """
        PatternRewriterListener.__init__(self)
        self.options = options
        self._effects: Callable[[], SideEffects] = effects or (lambda: effects_around(op))
        self.look_at(op)

    def look_at(self, op: Operation) -> None:
        """Starts anew with a match of `op`."""
        self._current_operation = op
        self._given_point: InsertPoint | None = None
        self.has_done_action = False

    @property
    def insertion_point(self) -> InsertPoint:
        """Before the matched operation, as long as no other is set; found when it is asked for."""
        if self._given_point is None:
            assert self._current_operation is not None
            return InsertPoint.before(self._current_operation)
        return self._given_point

    @insertion_point.setter
    def insertion_point(self, point: InsertPoint) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._given_point = point

    def has_side_effect(self, op: Instruction) -> bool:
        """Whether `op`, or anything it calls, has a side effect."""
        return self._effects().of_instruction(op)

    def computation(self, name: str) -> ComputationOp | None:
        """The computation `name` of the module; found once for all rewrites."""
        known = self._effects().computations.get(name)
        if known is not None and known.parent is not None:
            return known
        op = self._current_operation
        assert op is not None
        return effects_around(op).computations.get(name)

    def build(
        self,
        cls: type[InstructionT],
        *operands: SSAValue | Instruction,
        shape: Shape | None = None,
        **properties: Attribute | int | str | Sequence[int],
    ) -> InstructionT:
        """A new detached instruction; its shape is inferred where XLA infers one.

        Properties are attributes or, where they are bools, integers, strings (of computations their names) or lists
        of integers, just those. Raises `ConstraintError` when the operands do not fit, `TypeError` for other
        properties.
        """
        values = [v.output if isinstance(v, Instruction) else v for v in operands]
        own = {
            key: value
            if isinstance(value, Attribute)
            else attribute_of(value, is_computation=key in cls.calling_keys)
            for key, value in properties.items()
        }
        if shape is None:
            shape = infer(cls.opcode.name, [shape_of(v.type) for v in values], own, {})
        return cast(InstructionT, make(cls.opcode.name, values, shape, own))

    def replace(
        self,
        op: Operation,
        new_ops: Operation | Sequence[Operation],
        new_results: Sequence[SSAValue | None] | None = None,
        safe_erase: bool = True,
    ) -> None:
        """Puts `new_ops` before `op` and lets its users read the last one (or `new_results`).

        As in XLA, a new instruction of the same opcode takes the name, and one without metadata the
        metadata, of the instruction it replaces; control predecessors and successors move over.
        """
        new = (new_ops,) if isinstance(new_ops, Operation) else tuple(new_ops)
        if isinstance(op, Instruction):
            for fresh in new:
                if isinstance(fresh, Instruction):
                    inherit(fresh, op)
            if new and isinstance(last := new[-1], Instruction) and new_results is None:
                if last.instruction_name is None and last.opcode is op.opcode:
                    last.instruction_name = op.instruction_name
        self.has_done_action = True
        for fresh in new:
            insert_before(op, fresh)
            self.handle_operation_insertion(fresh)
        if new_results is None:
            new_results = new[-1].results if new else ()
        self.handle_operation_replacement(op, new_results)
        # As xDSL does it, but that new instructions have the names they were given.
        made = {result for fresh in new for result in fresh.results}
        for old, value in zip(op.results, new_results, strict=True):
            if value is None:
                old.erase(safe_erase)
            elif old is not value:
                readers = readers_of(old)
                (read_instead if value in made else replace)(old, value)
                for reader in readers:
                    self.handle_operation_modification(reader)
        self.erase(op, safe_erase)

    def erase(self, op: Operation, safe_erase: bool = True) -> None:
        """Takes `op` away, which nobody reads."""
        if op.regions or not safe_erase:
            super().erase(op, safe_erase)
            return
        self.has_done_action = True
        self.handle_operation_removal(op)
        erase(op)

    def replace_by_value(self, op: Instruction, value: SSAValue) -> None:
        """Lets the users of `op` read `value`, and erases `op`."""
        self.replace(op, (), (value,))

    def erase_unread(self, *ops: Operation | Block) -> None:
        """Erases those of `ops` that nobody reads, and then what only they read.

        Parameters, side effects and control dependencies stay, as where XLA replaces instructions.
        """
        stack = list(ops)
        while stack:
            op = stack.pop()
            if not isinstance(op, Instruction) or op.parent is None:
                continue
            if op.output.first_use is not None or op.control_predecessors:
                continue
            if isinstance(op, ParameterOp) or self.has_side_effect(op):
                continue
            stack += owners_of(op)
            self.erase(op)


def effects_around(op: Operation) -> SideEffects:
    """Side effects in the module that holds `op`."""
    root = op
    while (parent := root.parent_op()) is not None:
        root = parent
    return SideEffects.of(HloModule(root if isinstance(root, ModuleOp) else ModuleOp([])))


def inherit(fresh: Instruction, old: Instruction) -> None:
    """Gives a new instruction the metadata and the source place of the one it stands for."""
    if "metadata" not in fresh.properties and "metadata" in old.properties:
        fresh.properties["metadata"] = old.properties["metadata"]
    if (source := source_of(old)) is not None and source_of(fresh) is None:
        set_source(fresh, *source)
