"""Groups of instructions that become one fusion, and at which places each is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, cast

from mlirhlo.dialects.hlo.ops import GatherOp
from mlirhlo.rewrites.fusion.graph import Node, Role
from mlirhlo.rewrites.fusion.spaces import Fold, FoldKind, Rows, SpreadKind, major_to_minor

Path: TypeAlias = "tuple[object, int]"
"""From a place of the group to the place of an instruction, and how many places there are."""

FULL = "full"
"""Once for every place that the group walks."""
EACH_ROW = "row"
"""Once for every row."""
AFTER = "after"
"""Once for every element that a reduce gives."""
SCALAR = "scalar"


class Kind(Enum):
    """What kernel a group becomes."""

    LOOP = "loop"
    """Outputs element by element."""
    ROW = "row"
    """Rows, read once: reduces of a row and what uses their values."""
    COLUMN = "column"
    """Reduces of the most major dimensions."""
    REDUCE = "reduce"
    """Other reduces."""
    OUTPUT = "output"
    """A dot or convolution, and what is computed from each element of it."""
    UPDATE = "update"
    """A slice of an array, written in place."""
    ALONE = "alone"
    """No fusion."""


HLO_KINDS = {Kind.LOOP: "kLoop", Kind.UPDATE: "kLoop", Kind.OUTPUT: "kOutput"}
"""As HLO text says it; all others are `kInput`."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a group computes on the whole; changed as instructions join."""

    kind: Kind
    space: tuple[object, ...] = ()
    """Dimensions of what is walked."""
    rows: Rows | None = None
    """For `ROW`."""
    fold: Fold | None = None
    """For `COLUMN` and `REDUCE`."""
    is_simple: bool = True
    """Whether nothing moves elements."""
    product: Node | None = None
    """For `OUTPUT`."""


@dataclass(eq=False, slots=True)
class Group:
    """Instructions computed together."""

    form: Form
    order: float
    """Groups run in this order; see `order.Order`."""
    outputs: list[Node] = field(default_factory=list[Node])
    members: dict[Node, tuple[Path, ...]] = field(default_factory=dict[Node, "tuple[Path, ...]"])
    """With the places at which each is computed; users before their operands."""
    inputs: dict[Node, None] = field(default_factory=dict[Node, None])
    """What is read."""
    code: float = 0.0
    """How long LLVM takes for all members, as `cost.LARGEST_GROUP` counts."""

    @property
    def name(self) -> str:
        """For messages: the first output's."""
        return self.outputs[0].name

    def add(self, node: Node, form: Form, paths: tuple[Path, ...], *, is_output: bool) -> None:
        """Takes in an instruction whose users in the group are all in it."""
        if form is not self.form:
            self.form = form
        if is_output:
            self.outputs.append(node)
        self.members[node] = paths
        self.code += node.code
        self.inputs.pop(node, None)
        for operand in node.operands:
            self.inputs[operand] = None


def start(node: Node) -> Group:
    """A group of one instruction, its output."""
    group = Group(_first_form(node), node.index)
    group.add(node, group.form, ((_output_key(group.form, node), node.elements),), is_output=True)
    return group


def _first_form(node: Node) -> Form:
    match node.role:
        case Role.OTHER | Role.CONSTANT:
            return Form(Kind.ALONE)
        case Role.PRODUCT:
            return Form(Kind.OUTPUT, node.space, product=node)
        case Role.UPDATE:
            return Form(Kind.UPDATE, node.operands[1].space)
        case Role.REDUCE:
            fold = node.fold
            if fold is None:
                return Form(Kind.ALONE)
            return fold_form(fold)
        case Role.MOVE:
            return Form(Kind.LOOP, node.space, is_simple=False)
        case _:
            return Form(Kind.LOOP, node.space)


def fold_form(fold: Fold) -> Form:
    """Of a group around a reduce."""
    match fold.kind:
        case FoldKind.ROWS:
            return Form(Kind.ROW, fold.space, rows=fold.rows)
        case FoldKind.COLUMNS:
            return Form(Kind.COLUMN, fold.space, fold=fold)
        case FoldKind.OTHER:
            return Form(Kind.REDUCE, fold.space, fold=fold)


def _output_key(form: Form, node: Node) -> object:
    if form.kind in (Kind.LOOP, Kind.OUTPUT, Kind.ALONE, Kind.UPDATE) or node.space == form.space:
        return FULL
    return EACH_ROW if form.kind is Kind.ROW else AFTER


def paths_to(form: Form, members: dict[Node, tuple[Path, ...]], node: Node) -> tuple[Path, ...]:
    """Places at which the members read `node`, each once."""
    found: dict[Path, None] = {}
    for user in readers_in(members, node):
        paths = members[user]
        for number, operand in enumerate(user.operands):
            if operand is node:
                for path in paths:
                    found[_through(form, user, number, path)] = None
    return tuple(found)


def readers_in(members: Mapping[Node, object], node: Node) -> list[Node]:
    """Those of `members` that read `node`.

    What the whole computation reads, such as a constant, is asked about by every group: it is looked for among
    the members then, so that all groups together look at each instruction once.
    """
    if len(node.users) <= len(members):
        return [user for user in node.users if user in members]
    return [member for member in members if node in member.operands]


def paths_under(group: Group, form: Form) -> dict[Node, tuple[Path, ...]]:
    """Places of all members if the group had another form."""
    members: dict[Node, tuple[Path, ...]] = {}
    outputs = set(group.outputs)
    for node in group.members:
        paths = paths_to(form, members, node)
        if node in outputs:
            own = (_output_key(form, node), node.elements)
            paths = tuple(dict.fromkeys((own, *paths)))
        members[node] = paths
    return members


def _through(form: Form, user: Node, number: int, path: Path) -> Path:
    """Where `user`, computed at a path, reads its operand."""
    key, count = path
    operand = user.operands[number]
    match user.role:
        case Role.ELEMENTWISE | Role.VIEW:
            return path if operand.elements == user.elements else (SCALAR, 1)
        case Role.BROADCAST:
            spread = user.spread
            assert spread is not None
            if spread.kind is SpreadKind.SCALAR:
                return (SCALAR, 1)
            if key == FULL and spread.kind is SpreadKind.ROWS:
                # Kernels compute before a loop what stays the same in it.
                if form.rows is not None and operand.elements == form.rows.count:
                    return (EACH_ROW, operand.elements)
                return ((spread.key, key), operand.elements)
            return ((spread.key, key), count)
        case Role.REDUCE:
            if number < len(user.operands) // 2:
                return (FULL, operand.elements)
            return (SCALAR, 1)
        case Role.MOVE if user.opcode in ("concatenate", "pad"):
            # Each element of an operand goes to one place.
            part = -(-count * operand.elements // user.elements)
            return ((user.index, number, key), min(count, part))
        case Role.MOVE if user.opcode == "gather" and number == 1 and _takes_lines(user):
            # Kernels compute before a loop what stays the same in it.
            return ((user.index, number, key), operand.elements)
        case Role.UPDATE:
            return (FULL, operand.elements) if number == 1 else (("of", user.index, number), count)
        case _:
            return ((user.index, number, key), count)


def _takes_lines(gather: Node) -> bool:
    """Whether slices are neighbours in the result."""
    op, shape = cast(GatherOp, gather.op), gather.shape
    return (
        shape is not None and bool(op.offset_dims) and major_to_minor(shape)[-1] in op.offset_dims
    )


def evaluations(paths: tuple[Path, ...]) -> int:
    """How many elements are computed at all the places together."""
    return sum(count for _, count in paths)
