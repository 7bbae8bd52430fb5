"""A computation as fusion sees it: a node an instruction, with what the decisions ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    BitcastOp,
    BroadcastOp,
    ComputationOp,
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    ReduceOp,
    ReshapeOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES, Instruction, classes_of
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import OPCODES, Movement
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.control_flow.defuser import is_taken_by_parts
from mlirhlo.rewrites.fusion.cost import CHAIN_LIMIT, EXPENSIVE, MOVE_CODE, code_size, element_time
from mlirhlo.rewrites.fusion.spaces import (
    Fold,
    Rows,
    Spread,
    broadcast_spread,
    major_to_minor,
    reduce_fold,
    same_elements,
)


class Role(Enum):
    """What an instruction is inside a fusion."""

    ELEMENTWISE = auto()
    CONSTANT = auto()
    """One number."""
    IOTA = auto()
    BROADCAST = auto()
    VIEW = auto()
    """Its operand with other dimensions of size 1."""
    MOVE = auto()
    """Elements of its operands at other places."""
    REDUCE = auto()
    PRODUCT = auto()
    """Dots and convolutions."""
    UPDATE = auto()
    """A slice of an array replaced."""
    OTHER = auto()
    """Never inside a fusion."""


FREE = (Role.CONSTANT, Role.IOTA, Role.BROADCAST, Role.VIEW)
"""What costs nothing to compute once more; not a set, since members of an `Enum` are slow to hash."""

_MOVEMENTS: Mapping[Movement | None, Role] = {
    Movement.BROADCAST: Role.BROADCAST,
    Movement.GATHER: Role.MOVE,
    Movement.JOIN: Role.MOVE,
    Movement.PERMUTE: Role.MOVE,
    Movement.SLICE: Role.MOVE,
    Movement.UPDATE: Role.UPDATE,
}

_ROLES: Mapping[str, Role] = {
    name: role
    for name, row in OPCODES.items()
    if (role := _MOVEMENTS.get(row.movement)) is not None
} | {
    "iota": Role.IOTA,
    "reduce": Role.REDUCE,
    "convolution": Role.PRODUCT,
    "dot": Role.PRODUCT,
}


def classes_in(*roles: Role) -> frozenset[type[Instruction]]:
    """Classes of what has one of these roles, by their opcodes."""
    return frozenset(OP_CLASSES[name] for name, role in _ROLES.items() if role in roles)


_PRODUCTS = classes_in(Role.PRODUCT)

_MOVED = classes_of(
    lambda row: (
        row.is_index_map
        and row.movement not in (Movement.BROADCAST, None)
        and row.name != "reverse"
    )
) | {BitcastOp}
"""Classes of what a dot may read in the place of its operand."""

INNER = classes_of(
    lambda row: (
        row.elementwise or row.is_index_map or row.name in _ROLES or row.name == "bitcast-convert"
    )
)
"""Classes of which some instructions may be inside a fusion."""


@dataclass(eq=False, slots=True)
class Node:
    """An instruction, by its place in the block."""

    index: int
    op: Instruction
    role: Role
    shape: ArrayShape | None
    """None unless the result is one static array."""
    space: tuple[object, ...] = ()
    """Dimensions and their order in memory: equal for arrays that are walked alike."""
    elements: int = 0
    size_bytes: int = 0
    operands: tuple[Node, ...] = ()
    users: list[Node] = field(default_factory=list["Node"])
    """Each once, in block order."""
    time: float = 0.0
    """Nanoseconds to compute one element, its operands given."""
    code: float = 1.0
    """How long LLVM takes for it; see `cost.code_size`."""
    is_expensive: bool = False
    """Never computed more often than once for an element."""
    chain: float = 0.0
    """Nanoseconds for one element with all that could be computed with it."""
    is_root: bool = False
    controlled: list[Node] = field(default_factory=list["Node"])
    """What waits for it by control dependencies."""
    controlled_by: list[Node] = field(default_factory=list["Node"])
    """What it waits for."""
    has_control: bool = False
    """Has control dependencies in either direction: stays an instruction of its own."""
    barrier: object = None
    """Sharding, backend configuration and scheduling attributes: equal for what may be fused."""
    fold: Fold | None = None
    """Of reduces."""
    spread: Spread | None = None
    """Of broadcasts."""
    rows: Rows | None = None
    """The rows that it has a value each of, for what is computed from reduces of rows."""
    from_product: bool = False
    """Whether it is element by element on the only use of a dot or convolution."""
    fusion: int | None = None
    """Of an instruction in an opened fusion: which of them."""

    @property
    def name(self) -> str:
        """For messages."""
        return self.op.instruction_name or self.op.opcode.name

    @property
    def opcode(self) -> str:
        """As HLO text says it."""
        return self.op.opcode.name


Roles: TypeAlias = "dict[Instruction, tuple[Role, ArrayShape | None]]"
"""What instructions are, and the shapes of those that give one static array."""

Opened: TypeAlias = "Mapping[FusionOp, ComputationOp]"
"""Fusions, in block order, that are looked at as the instructions in them, with what they run."""


def graph_of(
    computation: ComputationOp,
    *,
    moves: bool = False,
    among: Mapping[Instruction, bool] | None = None,
    roles: Roles | None = None,
    opened: Opened | None = None,
) -> list[Node]:
    """Nodes of a computation in block order. Linear in its instructions.

    `moves`: reshapes move elements as slices do; otherwise only those that change no order may be inside a fusion.
    `among`: only the instructions that `meeting` found, in `roles` it has written down.
    `opened`: their instructions stand where they stand, as `defuse` would put them there.
    """
    reader = _Reader({} if roles is None else roles, moves)
    instructions = computation.instructions if among is None else among
    if opened:
        reader.read_opened(instructions, opened)
    else:
        for op in instructions:
            node = reader.add(op, reader.by_value)
            if among is not None and not among[op]:
                node.role = Role.OTHER
    nodes = reader.nodes
    if (root := reader.by_value.get(computation.terminator.root)) is not None:
        root.is_root = True
    so_far = 0.0
    for node in nodes:
        _derive(node)
        so_far += node.time
        # Sums over operands count twice what is reached twice.
        node.chain = min(node.chain, so_far)
    return nodes


@dataclass(slots=True)
class _Reader:
    """Makes the nodes of a computation, one after the other."""

    roles: Roles
    moves: bool
    nodes: list[Node] = field(default_factory=list[Node])
    by_value: dict[SSAValue, Node] = field(default_factory=dict[SSAValue, Node])

    def add(self, op: Instruction, known: dict[SSAValue, Node]) -> Node:
        """The node of an instruction that reads values of `known`, where its own is put."""
        found = self.roles.get(op)
        if found is None:
            found = self.roles[op] = _role_of(op, moves=self.moves)
        node = _node(len(self.nodes), op, *found)
        node.operands = tuple([n for v in op.inputs if (n := known.get(v)) is not None])
        for operand in node.operands:
            if not operand.users or operand.users[-1] is not node:
                operand.users.append(node)
        if CONTROL_PREDECESSORS in op.properties:
            node.has_control = True
            for value in op.control_predecessors:
                if (before := known.get(value)) is not None:
                    before.has_control = True
                    before.controlled.append(node)
                    node.controlled_by.append(before)
        known[op.output] = node
        self.nodes.append(node)
        return node

    def read_opened(self, instructions: Iterable[Instruction], opened: Opened) -> None:
        """All instructions, those of opened fusions in their place."""
        parts: dict[SSAValue, Sequence[Node]] = {}
        count = 0
        for op in instructions:
            if type(op) is FusionOp and (body := opened.get(op)) is not None:
                self._open(op, body, parts, count)
                count += 1
            elif type(op) is GetTupleElementOp and op.operand in parts:
                self.by_value[op.output] = parts[op.operand][op.index]
            else:
                self.add(op, self.by_value)

    def _open(
        self,
        fusion: FusionOp,
        body: ComputationOp,
        parts: dict[SSAValue, Sequence[Node]],
        number: int,
    ) -> None:
        known: dict[SSAValue, Node] = {}
        inputs, root = fusion.inputs, body.root
        for op in body.instructions:
            if isinstance(op, ParameterOp):
                known[op.output] = self.by_value[inputs[op.parameter_number]]
                continue
            if op is root and is_taken_by_parts(fusion, body):
                parts[fusion.output] = [known[v] for v in op.inputs]
                return
            self.add(op, known).fusion = number
        self.by_value[fusion.output] = known[root.output]


def meeting(
    computation: ComputationOp,
    roles: Roles,
    *,
    moves: bool = False,
    siblings: bool = False,
    operands: bool = False,
) -> dict[Instruction, bool]:
    """What fusing could be about, in block order; nothing where every kernel is on its own.

    True: it may be inside a fusion, and reads or is read by another that may (`siblings`: or reads what
    another one reads; `operands`: or is a dot that reads a move). False: it reads, or is read by, one of
    those. No decision that makes the first fusion of a computation asks for more: where none is made of
    these, none is made of all.
    `roles` takes what was found out about instructions, for `graph_of`.
    """
    instructions = instruction_list(computation)

    def is_inner(op: Instruction) -> bool:
        found = roles.get(op)
        if found is None:
            found = roles[op] = _role_of(op, moves=moves)
        return found[0] is not Role.OTHER

    found: set[Instruction] = set()
    read: dict[Instruction, Instruction] = {}
    for op in instructions:
        # Dots and convolutions read their operands many times: those are never computed inside, or read
        # where what they are of stands.
        if type(op) not in INNER or (type(op) in _PRODUCTS and not operands):
            continue
        for value in op.inputs:
            source = cast(Instruction, value.owner)
            moved = type(op) not in _PRODUCTS or type(source) in _MOVED
            if moved and type(source) in INNER and is_inner(source) and is_inner(op):
                found |= {source, op}
            if type(op) in _PRODUCTS:
                continue
            if siblings and read.setdefault(source, op) is not op and is_inner(op):
                found |= {source, op, read[source]}
    if not found:
        return {}
    beside = {v.owner for op in found for v in op.operands}
    beside |= {use.operation for op in found for use in op.output.uses}
    return {op: op in found for op in instructions if op in found or op in beside}


def _node(index: int, op: Instruction, role: Role, shape: ArrayShape | None) -> Node:
    node = Node(index, op, role, shape)
    if shape is not None:
        node.barrier = barrier_of(op)
        node.space = (shape.dimensions, major_to_minor(shape))
        node.elements = shape.element_count
        node.size_bytes = shape.byte_size
    return node


def _role_of(op: Instruction, *, moves: bool) -> tuple[Role, ArrayShape | None]:
    """What it is, and its shape where that is one static array."""
    shape = op.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or not shape.element_type.is_array:
        return _role(op, None) if isinstance(op, ReduceOp) else Role.OTHER, None
    role = _role(op, shape) if shape.element_count else Role.OTHER
    if moves and role is Role.OTHER and _may_move(op, shape):
        role = Role.MOVE
    return role, shape


def _role(op: Instruction, shape: ArrayShape | None) -> Role:
    if isinstance(op, ParameterOp):
        return Role.OTHER
    name = op.opcode.name
    inputs = [shape_of(v.type) for v in op.inputs]
    if not all(isinstance(s, ArrayShape) and not s.is_dynamic and s.element_count for s in inputs):
        return Role.OTHER
    if isinstance(op, ConstantOp):
        return Role.CONSTANT if shape is not None and _is_one_number(op, shape) else Role.OTHER
    if op.opcode.elementwise or name == "bitcast-convert":
        alike = [s for s in inputs if isinstance(s, ArrayShape) and s.dimensions]
        assert shape is not None
        if all(_walked_alike(s, shape) for s in alike):
            return Role.ELEMENTWISE
        # Such as a copy into another layout.
        return Role.MOVE if name == "copy" else Role.OTHER
    if name in ("reshape", "bitcast"):
        (before,) = inputs
        assert isinstance(before, ArrayShape)
        assert shape is not None
        return Role.VIEW if same_elements(before, shape) else Role.OTHER
    return _ROLES.get(name, Role.OTHER)


def _may_move(op: Instruction, shape: ArrayShape | None) -> bool:
    """Whether it is a reshape of static arrays that are not empty."""
    if not isinstance(op, (BitcastOp, ReshapeOp)) or shape is None:
        return False
    inputs = [shape_of(v.type) for v in op.inputs]
    if not all(isinstance(s, ArrayShape) and not s.is_dynamic and s.element_count for s in inputs):
        return False
    source = inputs[0]
    assert isinstance(source, ArrayShape)
    return bool(shape.element_count) and source.element_type is shape.element_type


def barrier_of(op: Instruction) -> object:
    """Sharding, backend configuration and scheduling attributes: equal for what may be fused."""
    properties = op.properties
    if not _BARRIERS & properties.keys():
        return None
    attributes = op.frontend_attributes
    scheduling = () if attributes is None else attributes.entries
    return (
        properties.get("sharding"),
        properties.get("backend_config"),
        tuple(e for e in scheduling if e[0].startswith("_xla") or e[0].startswith("_scheduling")),
    )


_BARRIERS = frozenset({"sharding", "backend_config", "frontend_attributes"})


def _walked_alike(a: ArrayShape, b: ArrayShape) -> bool:
    return a.dimensions == b.dimensions and major_to_minor(a) == major_to_minor(b)


def _is_one_number(op: ConstantOp, shape: ArrayShape) -> bool:
    return shape.element_count == 1 and op.literal is not None and not op.literal.is_elided


def _derive(node: Node) -> None:
    """Facts that follow from those of the operands."""
    role, op = node.role, node.op
    if role is Role.OTHER:
        return
    if isinstance(op, ReduceOp):
        node.fold = reduce_fold(op)
        if node.fold is not None and node.shape is not None:
            node.rows = node.fold.rows
        node.is_expensive = True
        return
    if isinstance(op, BroadcastOp):
        node.spread = broadcast_spread(op)
    if role in (Role.MOVE, Role.VIEW):
        node.code = MOVE_CODE
    if role is Role.PRODUCT:
        node.is_expensive = node.from_product = True
        return
    if role is Role.UPDATE:
        node.is_expensive = True
        return
    assert node.shape is not None
    if role is Role.ELEMENTWISE:
        node.is_expensive = node.opcode in EXPENSIVE and not node.shape.element_type.is_integer
        node.time = element_time(node.opcode, node.shape.element_type)
        node.code = code_size(node.opcode, node.shape.element_type)
    chain = node.time
    for operand in node.operands:
        if operand.role not in (Role.REDUCE, Role.PRODUCT, Role.OTHER):
            chain += operand.chain
        if role in (Role.ELEMENTWISE, Role.VIEW):
            rows = operand.rows
            if node.rows is None and rows is not None and rows.count == node.elements:
                node.rows = rows
            if operand.from_product and len(operand.users) == 1 and not operand.is_root:
                node.from_product |= operand.space == node.space
    node.chain = min(chain, CHAIN_LIMIT)
