"""Spreading shardings: from what the user annotated to every value that should follow.

The values of a module are nodes, each with axes by dimension; instructions tie the dimensions of nodes
together by factors (`factors`), control flow and tuples tie whole nodes. A factor that is cut in one node
is cut in the others where their dimensions are still open and the axes free. Sweeps forward and backward
go on until nothing changes: first along instructions that keep every element, then along the others, last
also where proposals conflict. Cuts only ever grow, so it ends.
Source: reference of the passes, "ShardingPropagation"; Shardy's propagation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import accumulate

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingAttr, ShardingKind
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ConditionalOp,
    CustomCallOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.spmd.factors import (
    Dims,
    Factors,
    gathered,
    leaves,
    spread,
)
from mlirhlo.rewrites.spmd.grid import Axes, Grids, Placement
from mlirhlo.rewrites.spmd.manual_regions import MANUAL_BORDERS
from mlirhlo.rewrites.spmd.partitioner import BARRIERS
from mlirhlo.rewrites.spmd.shifting_rules import factors_of
from mlirhlo.rewrites.spmd.sweeps import Sweeps
from mlirhlo.rewrites.spmd.ties import (
    ALL,
    CONFLICTS,
    KEEPS_ELEMENTS,
    Node,
    Tie,
    manual_of,
    pairs,
    same,
    where_equal,
)

_MOVES = opcodes(
    lambda row: (
        row.movement in (Movement.COPY, Movement.PERMUTE, Movement.RESHAPE) and not row.about_sizes
    )
) | {"convert"}


@dataclass(slots=True)
class _Graph:
    nodes: dict[tuple[SSAValue, int], Node] = field(
        default_factory=dict[tuple[SSAValue, int], Node]
    )
    ties: list[Tie] = field(default_factory=list[Tie])


class Propagation:
    """Shardings of a module under propagation."""

    def __init__(self, module: HloModule, grids: Grids) -> None:
        """Reads what is annotated."""
        self.module: HloModule = module
        self.grids: Grids = grids
        self.by_name: Mapping[str, ComputationOp] = module.by_name()
        self.graph: _Graph = _Graph()
        self.groups: dict[int, Node] = {}
        self.sweeps: Sequence[Sweeps] = ()
        """Those that are told of changed nodes."""
        self.reached: list[ComputationOp] = self._reach(module.entry)
        for computation in self.reached:
            for op in computation.instructions:
                self._nodes(op)
        for computation in self.reached:
            for op in computation.instructions:
                self.graph.ties += self._ties(op)

    def _reach(self, entry: ComputationOp) -> list[ComputationOp]:
        """Computations in which arrays live, not those of scalars that reductions apply; callers first."""
        reached: dict[ComputationOp, None] = {}
        waiting = [entry]
        while waiting:
            computation = waiting.pop()
            if computation in reached:
                continue
            reached[computation] = None
            called = [
                self.by_name[name]
                for op in computation.instructions
                if isinstance(op, CallOp | WhileOp | ConditionalOp)
                for name in op.called_computations
            ]
            waiting += reversed(called)
        return list(reached)

    # -------------------------------------------------------------- nodes

    def _nodes(self, op: Instruction) -> None:
        shapes = leaves(op.shape)
        given = self._given(op, len(shapes))
        is_entry = op.parent_op() is self.module.entry
        for k, shape in enumerate(shapes):
            if not isinstance(shape, ArrayShape):
                continue
            node = Node(shape.dimensions, open=(not shape.is_dynamic,) * shape.rank)
            sharding = given[k]
            if sharding is not None and sharding.shard_group is not None:
                self._grouped(sharding.shard_group.id, node)
            if sharding is not None and sharding.kind is not ShardingKind.UNKNOWN:
                node.placement = self.grids.placement(sharding, shape.rank)
                node.open = _open_dims(op, sharding, shape.rank)
            elif is_entry and isinstance(op, ParameterOp):
                allowed = self.module.allow_propagation_to_parameters
                node.open = (_allows(allowed.values if allowed else (), op.parameter_number),)
                node.open = node.open * shape.rank
            self.graph.nodes[op.output, k] = node
        if is_entry and op is self.module.entry.root and op.sharding is None:
            allowed = self.module.allow_propagation_to_output
            for k, shape in enumerate(shapes):
                if isinstance(shape, ArrayShape) and not _allows(
                    allowed.values if allowed else (), k
                ):
                    self.graph.nodes[op.output, k].open = (False,) * shape.rank

    def _given(self, op: Instruction, count: int) -> Sequence[Sharding | None]:
        sharding = op.sharding
        if sharding is None:
            return (None,) * count
        single = sharding.elements if sharding.kind is ShardingKind.TUPLE else (sharding,) * count
        return single if len(single) == count else (None,) * count

    def _grouped(self, group: int, node: Node) -> None:
        first = self.groups.setdefault(group, node)
        if first is not node and len(first.sizes) == len(node.sizes):
            self.graph.ties.append(same(first, node))

    def _all_of(self, value: SSAValue) -> list[Node | None]:
        return [self.graph.nodes.get((value, k)) for k in range(len(leaves(shape_of(value.type))))]

    # -------------------------------------------------------------- ties

    def _ties(self, op: Instruction) -> Iterator[Tie]:
        result = self._all_of(op.output)
        match op:
            case ParameterOp():
                return
            case TupleOp():
                parts = [node for v in op.inputs for node in self._all_of(v)]
                yield from pairs(parts, result)
            case GetTupleElementOp():
                shape = shape_of(op.operand.type)
                assert isinstance(shape, TupleShape)
                before = _leaves_before(shape)[op.index]
                parts = [self.graph.nodes.get((op.operand, before + k)) for k in range(len(result))]
                yield from pairs(parts, result)
            case CallOp():
                callee = self.by_name[op.to_apply]
                for value, parameter in zip(op.inputs, callee.parameters, strict=True):
                    yield from pairs(self._all_of(value), self._all_of(parameter.output))
                yield from pairs(self._all_of(callee.terminator.root), result)
            case WhileOp():
                body, condition = self.by_name[op.body], self.by_name[op.condition]
                yield from pairs(self._all_of(op.operand), result)
                yield from pairs(result, self._all_of(body.parameters[0].output))
                yield from pairs(result, self._all_of(condition.parameters[0].output))
                yield from pairs(self._all_of(body.terminator.root), result)
            case ConditionalOp():
                for name, value in zip(op.called_computations, op.inputs[1:], strict=True):
                    branch = self.by_name[name]
                    inside = self._all_of(branch.parameters[0].output)
                    yield from pairs(self._all_of(value), inside)
                    yield from pairs(self._all_of(branch.terminator.root), result)
            case CustomCallOp() if op.custom_call_target in MANUAL_BORDERS:
                inside = self._all_of(op.inputs[0])
                for a, b in zip(inside, result, strict=True):
                    if a is not None and b is not None:
                        yield where_equal(a, b)
            case _:
                yield from self._of_factors(op, result)

    def _of_factors(self, op: Instruction, result: Sequence[Node | None]) -> Iterator[Tie]:
        factors = factors_of(op)
        nodes: list[Node] = []
        dims: list[Dims] = []
        for value, own in zip(op.inputs, factors.operands, strict=True):
            node = self.graph.nodes.get((value, 0))
            if node is not None and own:
                nodes.append(node)
                dims.append(own)
        for node, own in zip(result, factors.results, strict=True):
            if node is not None and own:
                nodes.append(node)
                dims.append(own)
        if len(nodes) > 1:
            keeps = factors.is_elementwise or op.opcode.name in _MOVES
            source = None
            if isinstance(op, CustomCallOp) and op.custom_call_target in BARRIERS:
                source = 1 - BARRIERS.index(op.custom_call_target)
            yield Tie(nodes, dims, factors, KEEPS_ELEMENTS if keeps else ALL, source=source)

    # -------------------------------------------------------------- sweeps

    def run(self) -> None:
        """Propagates until nothing changes."""
        kept = [tie for tie in self.graph.ties if tie.level == KEEPS_ELEMENTS]
        settling = Sweeps(kept, partial(self._spread, conflicts=False))
        for level in (KEEPS_ELEMENTS, ALL, CONFLICTS):
            ties = [tie for tie in self.graph.ties if tie.level <= level]
            sweeps = Sweeps(ties, partial(self._spread, conflicts=level == CONFLICTS))
            self.sweeps = [settling, sweeps]
            while sweeps.both_ways():
                while level > KEEPS_ELEMENTS and settling.both_ways():
                    pass

    def _spread(self, tie: Tie, *, conflicts: bool) -> bool:
        """One tie: what its nodes have in common goes to all of them."""
        grid = self.grids.main
        wanted: dict[int, tuple[int, Axes]] = {}
        banned: set[int] = set()
        for number, (node, dims) in enumerate(zip(tie.nodes, tie.dims, strict=True)):
            place = node.placement
            if place is None or place.grid != grid or tie.source not in (None, number):
                continue
            for dim, axes in zip(dims, place.dims, strict=True):
                if not axes:
                    continue
                for factor, own in spread(axes, dim, tie.factors.sizes, grid).items():
                    if not own or factor in tie.factors.whole:
                        continue
                    weight, have = wanted.get(factor, (0, ()))
                    common = min(len(own), len(have))
                    if own[:common] != have[:common]:
                        if not conflicts:
                            banned.add(factor)
                        elif node.elements > weight:
                            wanted[factor] = (node.elements, own)
                    elif len(own) > len(have):
                        wanted[factor] = (node.elements, own)
        manual = manual_of(tie)
        if not wanted and not manual:
            return False
        cuts = {f: axes for f, (_, axes) in wanted.items() if f not in banned}
        owners: dict[int, int] = {}
        for axes in cuts.values():
            for axis in axes:
                owners[axis] = owners.get(axis, 0) + 1
        if not conflicts and tie.level == ALL:
            # An axis on two factors of one instruction: which of them gets it is decided last.
            cuts = {f: _until(axes, {a for a in axes if owners[a] > 1}) for f, axes in cuts.items()}
        weights = {f: wanted[f][0] for f in cuts}
        changed = False
        for node, dims in zip(tie.nodes, tie.dims, strict=True):
            changed |= self._grow(node, dims, cuts, weights, tie.factors, manual)
        return changed

    def _grow(
        self,
        node: Node,
        dims: Dims,
        cuts: Mapping[int, Axes],
        weights: Mapping[int, int],
        factors: Factors,
        manual: frozenset[int],
    ) -> bool:
        grid = self.grids.main
        if not any(node.open) or (node.placement is not None and node.placement.grid != grid):
            return False
        place = node.placement or Placement(grid, ((),) * len(node.sizes))
        changed = all(node.open) and not manual <= place.manual | place.used
        if changed:
            place = replace(place, manual=place.manual | (manual - place.used))
        order = sorted(
            range(len(dims)), key=lambda d: -max((weights.get(f, 0) for f in dims[d]), default=0)
        )
        for dim in order:
            if not node.open[dim]:
                continue
            here = place.dims[dim]
            axes = gathered(dims[dim], dict(cuts), factors.sizes, grid)
            if len(axes) <= len(here) or axes[: len(here)] != here:
                continue
            taken = place.used - set(here) | place.manual | place.unreduced
            axes = _until(axes, taken)
            while axes and grid.product(axes) > node.sizes[dim]:
                axes = axes[:-1]
            if len(axes) > len(here):
                place = place.with_dim(dim, axes)
                changed = True
        if changed:
            node.placement = place
            for sweeps in self.sweeps:
                sweeps.touch(node)
        return changed

    # -------------------------------------------------------------- writing

    def write(self) -> bool:
        """Gives instructions the shardings found; whether any changed."""
        changed = False
        for computation in self.reached:
            for op in computation.instructions:
                changed |= self._write(op)
        return changed

    def _write(self, op: Instruction) -> bool:
        shapes = leaves(op.shape)
        nodes = [self.graph.nodes.get((op.output, k)) for k in range(len(shapes))]
        given = self._given(op, len(shapes))
        if op.sharding is None and not any(n is not None and n.placement for n in nodes):
            return False
        single: list[Sharding] = []
        for node, old in zip(nodes, given, strict=True):
            found = Sharding(ShardingKind.REPLICATED)
            if old is not None and old.device is not None:
                found = old
            elif node is not None and node.placement is not None:
                found = node.placement.to_sharding()
            elif old is not None:
                found = old
            if old is not None and old.kind is not ShardingKind.NAMED and found == plain(old):
                found = old
            single.append(found)
        is_array = isinstance(op.shape, ArrayShape)
        if op.sharding is None and all(s.kind is ShardingKind.REPLICATED for s in single):
            return False
        new = single[0] if is_array else Sharding.tuple_of(single)
        if op.sharding is not None and (
            op.sharding == new or op.sharding.expanded(len(shapes)) == new
        ):
            return False
        op.properties["sharding"] = ShardingAttr(new)
        return True


@lru_cache(maxsize=64)
def _leaves_before(shape: TupleShape) -> tuple[int, ...]:
    """How many leaves stand before each element."""
    return tuple(accumulate((len(leaves(element)) for element in shape.elements), initial=0))


def plain(sharding: Sharding) -> Sharding:
    """Without what is said beside the cut."""
    return replace(sharding, shard_group=None, metadata=())


def _until(axes: Axes, stop: set[int] | frozenset[int]) -> Axes:
    """The axes before one of `stop`, or one that is there twice: of two factors of one dimension."""
    for k, axis in enumerate(axes):
        if axis in stop or axis in axes[:k]:
            return axes[:k]
    return axes


def _allows(values: Sequence[bool], number: int) -> bool:
    return bool(values) and values[number if number < len(values) and len(values) > 1 else 0]


def _open_dims(op: Instruction, sharding: Sharding, rank: int) -> tuple[bool, ...]:
    """Dimensions that an annotation leaves open: `?` of named shardings, `unspecified_dims`."""
    if sharding.named is not None and sharding.named.dimensions:
        closed = [d.is_closed for d in sharding.named.dimensions]
        return tuple(not c for c in closed)
    config = op.backend_config
    if isinstance(op, CustomCallOp) and config.startswith("unspecified_dims="):
        listed = {int(d) for d in config.partition("[")[2].rstrip("]").split(",") if d}
        return tuple(d in listed for d in range(rank))
    return (False,) * rank
