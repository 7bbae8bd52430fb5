"""`bfloat16-propagation`: results that are only read as bf16 are computed as bf16."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import ClassVar, cast

from xdsl.ir import SSAValue

from mlirhlo.analysis.dataflow import (
    Position,
    ShapeIndex,
    callers_of,
    in_place_pairs,
    indices,
    sources_of,
)
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import BF16, F32, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule, Listing
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ComputationOp,
    ConditionalOp,
    ConstantOp,
    ConvertOp,
    ConvolutionOp,
    DotOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    ReduceOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import HANDS_ON, Arity, Calls, Movement, opcodes
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import read_instead
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

_ALIKE = opcodes(
    lambda row: (
        row.exact
        or (row.moves and row.data is not None and not row.about_sizes)
        or (row.movement is Movement.EXCHANGE and not row.is_asynchronous)
    )
) - {"ragged-all-to-all"}
"""Opcodes of which a rounded result is what they make of rounded operands."""
_MAKES = (
    _ALIKE | {"constant", "iota"} | opcodes(lambda row: row.contracts or row.arity is Arity.EVEN)
)
"""Opcodes that can give bf16, whatever they are given; so can element-wise ones."""
_WHOLE = (Calls.CONTROL, Calls.FUSED)
_NO_MATH = frozenset({"reduce-precision", "stochastic-convert"})


@dataclass(frozen=True)
class Bfloat16PropagationPass(HloPass):
    """Lets instructions give bf16 whose f32 results are only read as bf16.

    Before and after:

        %m = f32[4] multiply(%x, %y)   %r = f32[2,2] reshape(%m)   %c = bf16[2,2] convert(%r)
          =>   %m = bf16[4] multiply(%x, %y)   %r = bf16[2,2] reshape(%m)

    Conversions to bf16 read so, and what gives a rounded result for rounded operands: data movement, maximum,
    minimum, clamp, select, abs and negate. With `dots` products of matrices do too, and differ by that rounding;
    else every bit stays. Loops, conditionals, calls and fusions are looked through: what stands at one place of a
    loop's state, or is handed in and out of a fusion, has one type. Parameters and results of the program keep
    theirs, as do custom calls and reductions' functions. In a fusion, only what it gives, or makes of narrower
    operands, changes.
    Source: XLA's BFloat16Propagation.
    """

    name = "bfloat16-propagation"
    exact: ClassVar[bool] = False

    dots: bool = False
    """Operands of dots and convolutions of default precision are read as bf16, as TPUs do."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Narrows; whether anything was."""
        del trace
        if not self._is_wanted(module):
            return False
        copies = list(_separate_loops(module))
        narrow = _Places(module, dots=self.dots).narrow()
        for op, found in narrow.items():
            _narrow(op, found)
        for op in copies:
            _drop_if_same(op)
        if narrow:
            for op in tuple(module.instructions):
                if isinstance(op, ConvertOp):
                    _drop_if_same(op)
        return bool(narrow)

    def _is_wanted(self, module: HloModule) -> bool:
        """Whether anything may read f32 as bf16, or nothing reads it: all that is narrowed leads there."""
        if module.candidates(CallOp, ConditionalOp, WhileOp):
            return True
        readers = [op for op in module.candidates(ConvertOp) if _is_array(op.shape, BF16)]
        if self.dots:
            products = module.candidates(ConvolutionOp, DotOp)
            readers += filter(_is_of_default_precision, products)
        if any(_is_f32(shape) for op in readers for shape in op.input_shapes):
            return True
        listed = module.known(Listing.of).instructions
        results = chain.from_iterable(map(attrgetter("results"), listed))
        return any(
            r.first_use is None or (type(shape_of(r.type)) is TupleShape and _has_unread(r))
            for r in results
        )


def _has_unread(value: SSAValue) -> bool:
    """Whether nothing reads some element of a tuple."""
    users = [use.operation for use in value.uses]
    shape = shape_of(value.type)
    assert isinstance(shape, TupleShape)
    if not all(isinstance(user, GetTupleElementOp) for user in users):
        return any(isinstance(user, FusionOp) for user in users)
    read = {user.index for user in users if isinstance(user, GetTupleElementOp)}
    return len(read) < len(shape.elements)


def _separate_loops(module: HloModule) -> Iterator[Instruction]:
    """Copies of what loops begin with, so that other readers of it do not keep the state wide."""
    for op in tuple(module.instructions):
        if not isinstance(op, WhileOp) or not isinstance(start := op.operand.owner, TupleOp):
            continue
        if not start.output.has_one_use():
            continue
        copies: dict[int, Instruction] = {}
        for k, value in enumerate(start.inputs):
            owner = cast(Instruction, value.owner)
            if not _is_f32(owner.shape):
                continue
            copy = make("convert", [value], owner.shape)
            inherit(copy, start)
            block = start.parent
            assert block is not None
            block.insert_op_before(copy, start)
            copies[k] = copy
        if copies:
            start.operands = [
                copies[k].output if k in copies else value for k, value in enumerate(start.operands)
            ]
        yield from copies.values()


def _is_array(shape: Shape, element: PrimitiveType) -> bool:
    return isinstance(shape, ArrayShape) and shape.element_type is element


def _is_f32(shape: Shape) -> bool:
    return _is_array(shape, F32)


def _part(shape: Shape, index: ShapeIndex) -> Shape:
    for k in index:
        assert isinstance(shape, TupleShape)
        shape = shape.elements[k]
    return shape


# ---------------------------------------------------------------- which


@dataclass
class _Places:
    """Places of f32 arrays in groups that have one type, and what a narrow group asks of others."""

    module: HloModule
    dots: bool
    parents: dict[Position, Position] = field(default_factory=dict[Position, Position])
    wide_tuples: dict[Instruction, bool] = field(default_factory=dict[Instruction, bool])
    """Whether a reader of the whole tuple wants all of it in f32."""

    def narrow(self) -> dict[Instruction, set[ShapeIndex]]:
        """Instructions to change, with the shape indices of what becomes bf16."""
        module = self.module
        bodies = module.by_name()
        ops = list(module.instructions)
        places = [
            (op, index)
            for op in ops
            for index in indices(op.shape)
            if _is_f32(_part(op.shape, index))
        ]
        if not places:
            return {}
        callers = callers_of(ops, bodies)
        for op, index in places:
            for source in sources_of(op, index, bodies, callers):
                self._join((op, index), source)
        for op in ops:
            self._join_of(op, bodies)
        wide: set[Position] = set()
        needed_by: dict[Position, set[Position]] = {}
        running = self._running(ops)
        effects = SideEffects.of(module)
        for place in places:
            group = self._group(place)
            is_own = not sources_of(*place, bodies, callers)
            if (
                not self._may_change(place, running)
                or (is_own and not _can_give(place[0], effects))
                or _reads_bits(place[0])
            ):
                wide.add(group)
            for asked in self._asked(place):
                if asked is None:
                    wide.add(group)
                elif self._group(asked) != group:
                    needed_by.setdefault(self._group(asked), set()).add(group)
        _spread(wide, needed_by)
        self._keep_inner(ops, wide)
        found: dict[Instruction, set[ShapeIndex]] = {}
        for place in places:
            if self._group(place) not in wide:
                found.setdefault(place[0], set()).add(place[1])
        return found

    # ------------------------------------------------------------ groups

    def _group(self, place: Position) -> Position:
        """The one place that stands for a group."""
        root = place
        while (parent := self.parents.get(root, root)) != root:
            root = parent
        while (parent := self.parents.get(place, place)) != root and place != root:
            self.parents[place] = root
            place = parent
        return root

    def _join(self, a: Position, b: Position) -> None:
        first, second = self._group(a), self._group(b)
        if first != second:
            self.parents[first] = second

    def _join_of(self, op: Instruction, bodies: dict[str, ComputationOp]) -> None:
        """Fusions and their bodies; results that take the place of operands."""
        pairs: list[tuple[Position, Position]] = []
        if isinstance(op, FusionOp):
            body = bodies[op.calls]
            pairs += [((op, i), (body.root, i)) for i in indices(op.shape)]
            for parameter in body.parameters:
                given = cast(Instruction, op.inputs[parameter.parameter_number].owner)
                pairs += [((parameter, i), (given, i)) for i in indices(parameter.shape)]
        for number, of_operand, of_result in in_place_pairs(op, bodies):
            given = cast(Instruction, op.inputs[number].owner)
            pairs.append(((op, of_result), (given, of_operand)))
        for a, b in pairs:
            if _is_f32(_part(a[0].shape, a[1])):
                self._join(a, b)

    def _running(self, ops: list[Instruction]) -> set[str]:
        """Computations that may change: the entry, fusions, and what control flow calls."""
        entry = self.module.entry
        found = {name for op in ops if op.opcode.calls in _WHOLE for name in op.called_computations}
        others = {
            name for op in ops if op.opcode.calls not in _WHOLE for name in op.called_computations
        }
        return (found - others) | {entry.computation_name}

    def _may_change(self, place: Position, running: set[str]) -> bool:
        """Whether its computation may change, and no caller outside of the module sees it."""
        op = place[0]
        home = op.parent_op()
        if not isinstance(home, ComputationOp) or home.computation_name not in running:
            return False
        return home.is_entry is None or (
            not isinstance(op, ParameterOp) and op.output is not home.terminator.root
        )

    # ------------------------------------------------------------ readers

    def _asked(self, place: Position) -> Iterator[Position | None]:
        """Places that have to be narrow if this one is; None for a reader that wants f32."""
        op, index = place
        if not index:
            yield from self._asked_by_readers(op, index)
            return
        wide = self.wide_tuples.get(op)
        if wide is None:  # the same for every part: no reader of a whole tuple asks for one of them
            wide = self.wide_tuples[op] = None in self._asked_by_readers(op, index)
        if wide:
            yield None

    def _asked_by_readers(self, op: Instruction, index: ShapeIndex) -> Iterator[Position | None]:
        for use in op.output.uses:
            user = use.operation
            if isinstance(user, Instruction) and use.index < len(user.inputs):
                yield from self._asked_by(user, use.index, index)

    def _asked_by(
        self, user: Instruction, number: int, index: ShapeIndex
    ) -> Iterator[Position | None]:
        name = user.opcode.name
        if _reads_bits(user):
            yield None
            return
        if user.opcode.calls in _WHOLE or name in HANDS_ON or name == "bitcast":
            return  # one group with what stands on the other side
        if isinstance(user, GetTupleElementOp):
            return
        if index or not isinstance(shape := user.shape, ArrayShape):
            yield None
        elif (isinstance(user, ConvertOp) and shape.element_type is BF16) or (
            self.dots and name in ("convolution", "dot") and _is_of_default_precision(user)
        ):
            return
        elif shape.element_type is F32 and (
            number in (user.opcode.data_operands(len(user.inputs)) or (number,))
            if name in _ALIKE
            else self._is_extreme(user)
        ):
            yield user, ()
        else:
            yield None

    def _is_extreme(self, op: Instruction) -> bool:
        """Whether it takes the highest or the lowest of many."""
        if not isinstance(op, ReduceOp) and op.opcode.name != "reduce-window":
            return False
        if len(op.inputs) != 2:
            return False
        root = self.module.by_name()[op.called_computations[0]].root
        owners = [value.owner for value in root.inputs]
        simple = all(isinstance(owner, ParameterOp) for owner in owners)
        return simple and root.opcode.name in ("maximum", "minimum")

    def _keep_inner(self, ops: list[Instruction], wide: set[Position]) -> None:
        """Leaves results inside of fusions wide that nothing narrow is made of, and that stay inside."""
        fused = {op.calls for op in ops if isinstance(op, FusionOp)}
        homes: dict[Position, set[str]] = {}
        for op in ops:
            home = cast(ComputationOp, op.parent_op()).computation_name
            for index in indices(op.shape):
                if _is_f32(_part(op.shape, index)):
                    homes.setdefault(self._group((op, index)), set()).add(home)
        for op in ops:
            for index in indices(op.shape):
                group = self._group((op, index))
                names = homes.get(group)
                if names is None or len(names) > 1 or not names <= fused or group in wide:
                    continue
                if not any(self._is_narrow(value, wide) for value in op.inputs):
                    wide.add(group)

    def _is_narrow(self, value: SSAValue, wide: set[Position]) -> bool:
        owner = cast(Instruction, value.owner)
        return any(
            _is_f32(_part(owner.shape, index)) and self._group((owner, index)) not in wide
            for index in indices(owner.shape)
        )


def _spread(wide: set[Position], needed_by: dict[Position, set[Position]]) -> None:
    """What asks for a wide group to be narrow is wide."""
    work = list(wide)
    while work:
        for group in needed_by.get(work.pop(), ()):
            if group not in wide:
                wide.add(group)
                work.append(group)


def _can_give(op: Instruction, effects: SideEffects) -> bool:
    """Whether it can round what it computes to bf16 itself."""
    name = op.opcode.name
    if name in _NO_MATH or effects.of_instruction(op):
        return False
    if isinstance(op, ConstantOp):
        return op.literal is None or not op.literal.is_elided
    if isinstance(op, ParameterOp):
        return True  # of a fusion or a loop: what is handed in decides
    if not all(_rounds_once(op, shape) for shape in op.input_shapes):
        return False
    return op.opcode.elementwise or name in _MAKES or isinstance(op, FusionOp)


def _reads_bits(op: Instruction) -> bool:
    """Whether it takes the bits of one type for another one."""
    if op.opcode.name != "bitcast":
        return False
    return not _is_f32(op.shape) or not _is_f32(op.input_shapes[0])


def _rounds_once(op: Instruction, shape: Shape) -> bool:
    """Whether what `op` makes of numbers of the type has no rounding to f32 on its way to bf16."""
    if not isinstance(shape, ArrayShape):
        return True
    type_ = shape.element_type
    if type_.is_float or type_.is_complex:
        return type_.is_float and type_.bits <= 32
    return type_.bits <= 16 or not isinstance(op, (ConvertOp, DotOp, ConvolutionOp))


def _is_of_default_precision(op: Instruction) -> bool:
    precision = op.properties.get("operand_precision")
    algorithm = op.algorithm if isinstance(op, DotOp) else "unset"
    return precision is None and algorithm == "unset"


# ---------------------------------------------------------------- changing


def _narrow(op: Instruction, found: set[ShapeIndex]) -> None:
    """Gives parts of the result the type bf16, a constant its rounded value."""
    if isinstance(op, ConstantOp) and (literal := op.literal) is not None:
        op.properties["literal"] = LiteralAttr(_rounded(literal, found, ()))
    op.output._type = type_of(_narrowed(op.shape, found, ()))  # pyright: ignore[reportPrivateUsage]


def _rounded(literal: Literal, found: set[ShapeIndex], here: ShapeIndex) -> Literal:
    """A literal whose parts `found` are rounded."""
    if isinstance(literal.shape, TupleShape):
        parts = enumerate(literal.elements)
        return Literal.tuple_of([_rounded(part, found, (*here, k)) for k, part in parts])
    if here not in found:
        return literal
    shape = _narrowed(literal.shape, found, here)
    return Literal.from_array(shape, literal.array.astype(BF16.dtype))


def _narrowed(shape: Shape, found: set[ShapeIndex], here: ShapeIndex) -> Shape:
    if isinstance(shape, TupleShape):
        parts = enumerate(shape.elements)
        return TupleShape(tuple(_narrowed(part, found, (*here, k)) for k, part in parts))
    if here not in found:
        return shape
    assert isinstance(shape, ArrayShape)
    return ArrayShape(BF16, shape.dimensions, shape.dynamic, shape.layout)


def _drop_if_same(op: Instruction) -> None:
    """Takes a conversion away that gives what it is given."""
    if op.parent is None or op.shape != op.input_shapes[0] or op.control_predecessors:
        return
    read_instead(op.output, op.inputs[0])
    op.parent.erase_op(op)
