"""`structured-merge-maps`: maps are computed where they are read, in maps, folds and contractions.

    %e = map(%x) {exp}   %b = map(%y) by (d0, d1) -> (d0)   %r = map(%e, %b) {divide}
 => %r = map(%x, %y by (d0, d1) -> (d0)) {exp, divide}

What stays an op of its own is a *root*. From the last op to the first, each map is merged into the roots that read
it, once for each map by which one does, unless that repeats work: a body that computes something is evaluated at
most as often as before, or is a few cheap instructions; what only moves elements goes wherever it is read. Maps are
composed once for each read and bodies copied once for each root and map, so the pass takes linear time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.quick import create_op, insert_before, region_of, replace
from mlirhlo.dialects.structured import (
    ContractOp,
    FoldOp,
    IndexOp,
    KernelOp,
    MapOp,
    identity_map,
)
from mlirhlo.dialects.structured.base import maps_attribute, passes_through
from mlirhlo.dialects.structured.index_maps import MAX_NODES, composed, node_count, value_range
from mlirhlo.lowering.structured.merged_bodies import MergedBody, splat_of

Reader: TypeAlias = "MapOp | FoldOp | ContractOp"
"""Ops with a body of the elements that they read."""
Instances: TypeAlias = "dict[AffineMap, None]"
"""The maps from a root's space to that of an op merged into it."""

_MAX_CHEAP = 4
"""Instructions of a body that may be repeated."""
_MAX_INSTANCES = 16
"""Of one op in one root."""


@dataclass(frozen=True)
class StructuredMergeMapsPass(ModulePass):
    """Computes maps where they are read, in maps, folds and contractions.

    Before:  `%e = structured.map ins(%x) {exp}`, `%r = structured.map ins(%e, %y) {divide}`
    After:   `%r = structured.map ins(%x, %y) {exp, divide}`
    Keeps: results, bit for bit. Needs: nothing to have run.
    """

    name = "structured-merge-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                merge_maps(kernel)


def merge_maps(kernel: KernelOp) -> bool:
    """Merges the maps of a kernel; whether there were any to merge."""
    ops = list(kernel.block.ops)
    plan = _planned(ops)
    if not plan.merged:
        return False
    by_root: dict[Operation, list[Operation]] = {}
    for op in ops:
        for root in plan.merged.get(op, ()):
            by_root.setdefault(root, []).append(op)
    for root, inside in by_root.items():
        _rebuild(cast("Reader", root), inside, plan)
    for op in reversed(ops):
        if op in plan.merged and not any(result.first_use for result in op.results):
            kernel.block.erase_op(op)
    return True


@dataclass
class _Plan:
    """What is merged into what."""

    merged: dict[Operation, dict[Operation, Instances]] = field(
        default_factory=dict[Operation, dict[Operation, Instances]]
    )
    """By op that is merged: its roots, and by which maps."""
    reads: dict[tuple[AffineMap, AffineMap, tuple[int, ...]], AffineMap] = field(
        default_factory=dict[tuple[AffineMap, AffineMap, tuple[int, ...]], AffineMap]
    )

    def composed(self, outer: AffineMap, inner: AffineMap, space: tuple[int, ...]) -> AffineMap:
        """First `inner`, then `outer`; each pair is composed once."""
        if inner.results == identity_map(inner.num_dims).results:
            return outer
        key = (outer, inner, space)
        found = self.reads.get(key)
        if found is None:
            found = self.reads[key] = composed(outer, inner, space)
        return found


def _planned(ops: Sequence[Operation]) -> _Plan:
    plan = _Plan()
    for op in reversed(ops):
        if isinstance(op, MapOp | ConstantOp):
            roots = _roots_of(op, plan)
            if roots is not None and _pays(op, roots):
                plan.merged[op] = roots
    return plan


def _roots_of(op: MapOp | ConstantOp, plan: _Plan) -> dict[Operation, Instances] | None:
    """The roots that read an op, and by which maps; None where it has to be an op of its own.

    What only moves elements may stay for some of its readers and be merged into the others.
    """
    is_free = isinstance(op, ConstantOp) or passes_through(op.body)
    roots: dict[Operation, Instances] = {}
    for result in op.results:
        for use in result.uses:
            reader = use.operation
            if not isinstance(reader, MapOp | FoldOp | ContractOp) or use.index >= len(
                reader.inputs
            ):
                if is_free:
                    continue
                return None
            read = reader.index_maps[use.index]
            own = {reader: {identity_map(len(reader.space)): None}}
            for root, instances in plan.merged.get(reader, own).items():
                into = roots.setdefault(root, {})
                space = cast("Reader", root).space
                for inner in instances:
                    map_ = plan.composed(read, inner, space)
                    if map_ not in into and node_count(map_) > MAX_NODES:
                        return None
                    into[map_] = None
                if len(into) > _MAX_INSTANCES:
                    return None
    return roots or None


def _pays(op: MapOp | ConstantOp, roots: Mapping[Operation, Instances]) -> bool:
    """Whether computing an op where it is read is no more work."""
    spaces = [cast("Reader", root).space for root in roots]
    if any(0 in space for space in spaces):
        return False
    if isinstance(op, ConstantOp):
        return splat_of(op) is not None
    if 0 in op.space:
        return False
    if passes_through(op.body):
        return True
    body = list(op.body.block.ops)[:-1]
    if any(isinstance(inner, IndexOp) for inner in body) and not _are_natural(roots):
        return False
    rows = [cast(Any, inner).opcode for inner in body if not isinstance(inner, IndexOp)]
    work = [row for row in rows if row.name != "constant"]
    if len(work) <= _MAX_CHEAP and all(row.is_plain for row in work):
        return len(roots) == 1 or len(work) <= 1
    evaluations = sum(
        prod(space) * len(instances)
        for space, instances in zip(spaces, roots.values(), strict=True)
    )
    return len(roots) == 1 and evaluations <= prod(op.space)


def _are_natural(roots: Mapping[Operation, Instances]) -> bool:
    """Whether indices never are negative on the way, so that scalar instructions compute them."""
    return all(
        _is_natural(map_, cast("Reader", root).space)
        for root, instances in roots.items()
        for map_ in instances
    )


def _is_natural(map_: AffineMap, space: Sequence[int]) -> bool:
    from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind

    divisions = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod)
    return all(
        value_range(part.lhs, space)[0] >= 0
        for result in map_.results
        for part in result.dfs()
        if isinstance(part, AffineBinaryOpExpr) and part.kind in divisions
    )


def _rebuild(root: Reader, inside: Sequence[Operation], plan: _Plan) -> None:
    """Replaces a root by one that computes what is merged into it."""
    space = root.space
    body = MergedBody(space)
    merged: dict[SSAValue, Operation] = {v: op for op in inside for v in op.results}

    def element(value: SSAValue, read: AffineMap, inner: AffineMap) -> SSAValue:
        map_ = plan.composed(read, inner, space)
        if value in merged:
            return body.computed[value, map_]
        return body.read(value, map_)

    for op in inside:
        for map_ in plan.merged[op][root]:
            if isinstance(op, ConstantOp):
                body.computed[op.output, map_] = body.constant_of(op)
                continue
            given = [
                element(value, read, map_)
                for value, read in zip(
                    cast(MapOp, op).inputs, cast(MapOp, op).index_maps, strict=True
                )
            ]
            results = body.inlined(cast(MapOp, op).body.block, given, map_)
            for result, scalar in zip(op.results, results, strict=True):
                body.computed[result, map_] = scalar
    identity = identity_map(len(space))
    given = [
        element(value, read, identity)
        for value, read in zip(root.inputs, root.index_maps, strict=True)
    ]
    block = body.finish(body.inlined(root.body.block, given, identity))
    inputs, maps = body.reads()
    properties = {**root.properties, "maps": maps_attribute(maps)}
    others = [root.detach_region(region) for region in root.regions[1:]]
    operands = [*inputs, *root.operands[len(root.inputs) :]]
    if isinstance(root, FoldOp):
        from xdsl.dialects.builtin import DenseArrayBase, i32

        counts = [len(inputs), len(root.inits)]
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, counts)
    new = create_op(
        type(root),
        operands,
        [result.type for result in root.results],
        properties,
        regions=[region_of(block), *others],
        attributes=dict(root.attributes),
    )
    insert_before(root, new)
    for old, result in zip(root.results, new.results, strict=True):
        result.name_hint = old.name_hint
        replace(old, result)
    block_of_root = root.parent
    assert block_of_root is not None
    block_of_root.erase_op(root)
