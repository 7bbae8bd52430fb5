"""The driver: constants at the front of each function, rules until none applies.

Constants and their order are those of MLIR's greedy driver, so that what is exported afterwards
is numbered as XLA numbers it: equal constants are one, and the newest stands first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.quick import replace
from mlirhlo.dialects.stablehlo import OP_CLASSES, ROWS
from mlirhlo.dialects.stablehlo.elements import array_of, dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rule: TypeAlias = "Callable[[Operation, Simplifier], Sequence[SSAValue] | None]"
"""Values that stand for the results of an op; None where the rule does not apply."""

RULES: dict[str, list[Rule]] = {}
"""Rules by the name of the op they look at, in the order they are tried."""


def simplifies(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for ops of these names (without `stablehlo.`)."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault("stablehlo." + name, []).append(function)
        return function

    return register


CONSTANT = "stablehlo.constant"

KEPT = frozenset(
    name for name, row in ROWS.items() if row.traits & {"side_effect", "collective", "terminator"}
) - {"stablehlo.custom_call"} | {"stablehlo.composite", "stablehlo.optimization_barrier"}
"""Ops that stay though nothing uses them."""

_MOST_ROUNDS = 10


def is_removable(op: Operation) -> bool:
    """Whether an op may go when nothing uses its results."""
    name = op.name
    if name == CONSTANT:
        return True
    if name in KEPT or not name.startswith(("stablehlo.", "chlo.")):
        return False
    if name == "stablehlo.custom_call":
        effect = op.properties.get("has_side_effect")
        return effect is None or cast(Any, effect).value.data == 0
    return all(
        is_removable(inner) or inner.name == "stablehlo.return"
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
    )


class Simplifier:
    """Simplifies one function, or one region that sees nothing from outside."""

    __slots__ = ("_arrays", "_queued", "at", "block", "changed", "constants", "worklist")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.constants: dict[tuple[Attribute, Attribute], Operation] = {}
        self._arrays: dict[Operation, NDArray[Any]] = {}
        self.worklist: list[Operation] = []
        self._queued: set[Operation] = set()
        self.changed = False
        self.at: Operation | None = None

    # -------------------------------------------------------------- constants

    def array(self, value: SSAValue) -> NDArray[Any] | None:
        """The elements of a constant; None for other values."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name != CONSTANT:
            return None
        found = self._arrays.get(owner)
        if found is None:
            found = self._arrays[owner] = array_of(owner.properties["value"])
        return found

    def splat(self, value: SSAValue) -> Any:
        """The one element of a constant whose elements are all equal; None for other values."""
        found = self.array(value)
        if found is None or not found.size:
            return None
        first = found.reshape(-1)[0]
        if found.size == 1 or all(stride == 0 for stride in found.strides):
            return first
        flat = found.reshape(-1)
        return first if flat.tobytes() == flat[:1].tobytes() * flat.size else None

    def constant(self, array: NDArray[Any], type_: Attribute) -> SSAValue:
        """A constant, at the front of the function unless there is one already."""
        if array.size > 1 and not any(array.strides):
            array = array.reshape(-1)[:1].reshape(())  # one element stands for all
        value = dense(array, type_)
        key = (type_, value)
        found = self.constants.get(key)
        if found is None:
            found = OP_CLASSES[CONSTANT].create(result_types=[type_], properties={"value": value})
            found.location = UNKNOWN_LOC if self.at is None else self.at.location
            self.constants[key] = found
            first = self.block.first_op
            if first is None:
                self.block.add_op(found)
            else:
                self.block.insert_op_before(found, first)
        return found.results[0]

    # -------------------------------------------------------------- ops

    def make(
        self,
        name: str,
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: dict[str, Attribute] | None = None,
    ) -> Operation:
        """A new op in the place of the one being looked at."""
        at = self.at
        assert at is not None
        op = OP_CLASSES["stablehlo." + name].create(
            operands=operands, result_types=types, properties=properties or {}
        )
        op.location = at.location
        block = at.parent
        assert block is not None
        block.insert_op_before(op, at)
        self.push(op)
        return op

    def push(self, op: Operation) -> None:
        """Looks at `op` (again) next."""
        if op.name != CONSTANT and op not in self._queued:
            self._queued.add(op)
            self.worklist.append(op)

    def erase(self, op: Operation) -> None:
        """Takes away an op whose results nothing uses."""
        owners = [v.owner for v in op.operands]
        for region in op.regions:
            for inner in region.walk():
                owners += [v.owner for v in inner.operands]
                self._queued.discard(inner)
        self._forget(op)
        op.detach()
        op.erase()
        for owner in owners:
            if isinstance(owner, Operation) and owner.parent is not None:
                self._check_dead(owner)
        self.changed = True

    def _forget(self, op: Operation) -> None:
        self._queued.discard(op)
        self._arrays.pop(op, None)
        if op.name == CONSTANT:
            self.constants.pop((op.results[0].type, op.properties["value"]), None)

    def _check_dead(self, op: Operation) -> None:
        if any(r.first_use is not None for r in op.results):
            return
        if op.name == CONSTANT:
            self.erase(op)
        elif is_removable(op):
            self.push(op)

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Puts `values` where the results of `op` are used, and takes `op` away."""
        for result, value in zip(op.results, values, strict=True):
            for use in list(result.uses):
                self.push(use.operation)
            replace(result, value)
        self.erase(op)

    # -------------------------------------------------------------- running

    def run(self) -> bool:
        """Applies the rules; whether anything changed."""
        self._collect_constants()
        any_change = False
        for _ in range(_MOST_ROUNDS):
            self.changed = False
            self.worklist = [op for op in ops_of(self.block) if op.name != CONSTANT][::-1]
            self._queued = set(self.worklist)
            while self.worklist:
                op = self.worklist.pop()
                if op not in self._queued:
                    continue
                self._queued.discard(op)
                if op.parent is not None:
                    self._visit(op)
            any_change = any_change or self.changed
            if not self.changed:
                break
        return any_change

    def _visit(self, op: Operation) -> None:
        if is_removable(op) and all(r.first_use is None for r in op.results):
            self.erase(op)
            return
        rules = RULES.get(op.name)
        if rules is None and not op.results:
            return
        self.at = op
        for rule in (*ANY_OP, *(rules or ())):
            values = rule(op, self)
            if values is None:
                continue
            self.changed = True
            if values:
                self.replace(op, values)
            else:
                self.push(op)
            return

    def _collect_constants(self) -> None:
        """Moves every constant to the front, one after the other, equal ones becoming one.

        Constants that follow each other at the front stay as they are.
        """
        owned: set[Operation | None] = set()
        for op in list(ops_of(self.block)):
            if op.name != CONSTANT:
                continue
            value = op.properties.get("value")
            if value is None or op.attributes:
                continue
            key = (op.results[0].type, value)
            known = self.constants.get(key)
            if known is not None:
                replace(op.results[0], known.results[0])
                op.detach()
                op.erase()
                continue
            self.constants[key] = op
            owned.add(op)
            first = self.block.first_op
            if op.parent is self.block and (op is first or op.prev_op in owned):
                continue
            op.detach()
            assert first is not None
            self.block.insert_op_before(op, first)
        for op in list(self.constants.values()):
            if op.results[0].first_use is None:
                self.constants.pop((op.results[0].type, op.properties["value"]))
                op.detach()
                op.erase()


ANY_OP: list[Rule] = []
"""Rules tried on every op with results, before its own."""


def tensor(value: SSAValue) -> TensorType[Attribute]:
    """The tensor type of a value."""
    return cast("TensorType[Attribute]", value.type)


def shape(value: SSAValue) -> tuple[int, ...]:
    """The sizes of a tensor; negative where unknown."""
    return tuple(tensor(value).get_shape())


ISOLATED = frozenset({"sdy.manual_computation"})
"""Ops whose regions use nothing from outside, constants included."""


def ops_of(block: Block) -> Iterator[Operation]:
    """Ops of a block and of the regions within, in preorder; not those of isolated regions."""
    for op in block.ops:
        yield op
        if op.regions and op.name not in ISOLATED:
            for region in op.regions:
                for inner in region.blocks:
                    yield from ops_of(inner)


def defining(value: SSAValue, name: str) -> Operation | None:
    """The op called `stablehlo.<name>` that gives `value`; None when it is another one."""
    owner = value.owner
    if isinstance(owner, Block) or owner.name != "stablehlo." + name:
        return None
    return owner
