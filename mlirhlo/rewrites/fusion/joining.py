"""Whether an instruction may be computed inside the group that reads it: the rules, kind by kind.

`admit` gives the places and the form that the group then has, or a `Refusal` that says why not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import cast

from mlirhlo.dialects.hlo.ops import ConcatenateOp, GatherOp
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.choosing import chosen_product
from mlirhlo.rewrites.fusion.edges import MOST_REGIONS, Edges
from mlirhlo.rewrites.fusion.graph import FREE, Node, Role
from mlirhlo.rewrites.fusion.groups import (
    AFTER,
    EACH_ROW,
    FULL,
    Form,
    Group,
    Kind,
    Path,
    evaluations,
    fold_form,
    paths_to,
    paths_under,
    readers_in,
)
from mlirhlo.rewrites.fusion.operands import is_read_in_place, leads_to
from mlirhlo.rewrites.fusion.spaces import FoldKind, Rows, major_to_minor


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which fusions may be formed: those that there are fast kernels for."""

    rows: bool = True
    """Values of rows used along their rows: softmax, layer norm."""
    columns: bool = True
    """Several outputs of reduces of columns."""
    products: bool = True
    """Dots and convolutions with what is computed from their elements."""
    updates: bool = True
    """Slices written in place with what they are computed from."""
    moves: bool = False
    """Transposes, reshapes, reversals, concatenations and pads read by others of the fusion;
    slices of what is reduced."""
    operands: bool = False
    """Dots with transposes and slices of their operands, which they read where these stand."""


@dataclass(slots=True, eq=False)
class Refusal:
    """Why an instruction stays outside."""

    code: str
    reason: str


@dataclass(slots=True, eq=False)
class Admission:
    """How an instruction joins."""

    form: Form
    paths: tuple[Path, ...]
    members: dict[Node, tuple[Path, ...]] | None = None
    """Places of the members so far, where the form changes them."""


_ONLY_AS_OUTPUT = opcodes(
    lambda row: row.movement in (Movement.COPY, Movement.JOIN, Movement.PERMUTE)
)
"""Moves that are computed with others only as the last step: there are fast kernels for that."""

_MOST_PIECES = 8
"""Pieces along the last dimension that edges cut a loop into."""
_SHORTEST_LINE = 64
"""Elements of lines with edges: without edges, short lines are walked as one."""
_MOST_PARTS = 3
"""Operands of a concatenate of which all elements are read, where there are too many edges to cut at."""
_CHEAP_CHAIN = 0.1
"""Nanoseconds for an element that are as good as none."""

_FEW_COLUMNS = 8
"""What is computed from sums while they are near goes in vectors of their columns: of fewer, most lanes
would do nothing."""


def admit(group: Group, node: Node, kinds: Kinds) -> Admission | Refusal:
    """Whether `node`, which `group` reads, can be computed in it."""
    refusal = _never(group, node, kinds)
    if refusal is not None:
        return refusal
    product = group.form.product
    if product is not None and leads_to(group.members, node, product):
        return Admission(group.form, paths_to(group.form, group.members, node))
    found = _with_form(group, node, kinds)
    if isinstance(found, Refusal):
        return found
    return _recomputed(node, found.paths) or found


def admit_output(group: Group, node: Node, found: Admission, kinds: Kinds) -> Refusal | None:
    """Whether what joins may be an output too."""
    keys = {key for key, _ in found.paths}
    kind = found.form.kind
    if len(group.outputs) >= cost.MOST_OUTPUTS:
        return Refusal("outputs", f"the fusion writes {len(group.outputs)} arrays already")
    if kind is Kind.LOOP or (kind is Kind.COLUMN and kinds.columns):
        allowed = keys in ({FULL}, {AFTER}) and (keys == {AFTER} or node.space == found.form.space)
    else:
        allowed = kind is Kind.ROW and (
            keys == {EACH_ROW} or (keys == {FULL} and node.space == found.form.space)
        )
    if allowed and (node.role not in FREE) and node.shape is not None:
        return None
    return Refusal("shape", f"a {kind.value} fusion cannot write it beside its other outputs")


def admit_beside(group: Group, node: Node, kinds: Kinds) -> Admission | None:
    """How what `group` does not read can be one more output of it, walked with the others."""
    form = group.form
    if node.barrier != group.outputs[0].barrier or len(group.outputs) >= cost.MOST_OUTPUTS:
        return None
    if group.code + node.code > cost.LARGEST_GROUP or any(
        o in group.members for o in node.operands
    ):
        return None
    if node.role is Role.REDUCE:
        same = node.fold is not None and form.fold is not None
        if same and kinds.columns and form.kind is Kind.COLUMN and node.shape is not None:
            wanted, have = node.fold, form.fold
            assert wanted is not None
            assert have is not None
            if (wanted.space, wanted.dimensions) == (have.space, have.dimensions):
                return Admission(form, ((AFTER, node.elements),))
        if form.kind is Kind.ROW and node.fold is not None and node.fold.rows == form.rows:
            if node.shape is not None:
                return Admission(form, ((EACH_ROW, node.elements),))
        return None
    if form.kind in (Kind.LOOP, Kind.ROW) and form.space == node.space:
        if form.kind is Kind.ROW or form.is_simple:
            return Admission(form, ((FULL, node.elements),))
    return None


def _never(group: Group, node: Node, kinds: Kinds) -> Refusal | None:
    kind = group.form.kind
    if kind is Kind.ALONE:
        return Refusal("consumer", f"`{group.outputs[0].opcode}` is never fused")
    if node.role is Role.OTHER:
        return Refusal("producer", f"`{node.opcode}` is never fused")
    if node.role is Role.UPDATE and not kinds.moves:
        return Refusal("in-place", "it writes into its operand's memory and is an output always")
    if node.role is Role.REDUCE and (node.fold is None or node.shape is None):
        return Refusal("producer", "a reduce of several results is an output always")
    if group.code + node.code > cost.LARGEST_GROUP:
        return Refusal("size", f"the fusion has {len(group.members)} instructions already")
    if len(group.inputs) + len(node.operands) > cost.MOST_INPUTS and node.role not in FREE:
        return Refusal("inputs", f"the fusion reads {len(group.inputs)} arrays already")
    product = group.form.product
    if product is not None and leads_to(group.members, node, product):
        if not kinds.operands or not is_read_in_place(group.members, node, product):
            return Refusal("operand", f"`{product.opcode}` reads its operands many times")
    if kinds.products and group.form.kind in (Kind.ROW, Kind.COLUMN, Kind.REDUCE):
        if (chosen := chosen_product(node)) is not None:
            return Refusal("chosen", f"with `{chosen.opcode}` it leaves out what it does not take")
    return None


def _with_form(group: Group, node: Node, kinds: Kinds) -> Admission | Refusal:
    form = group.form
    if node.rows is not None and form.kind is Kind.LOOP:
        rows = _as_rows(group, node, node.rows, kinds)
        if rows is not None:
            return rows
    paths = paths_to(form, group.members, node)
    if form.kind is Kind.UPDATE and any(key != FULL for key, _ in paths):
        if kinds.moves and (whole := _as_whole(group, node)) is not None:
            return whole
        if node.role is not Role.CONSTANT and not _below_update(group, node, kinds):
            return Refusal("in-place", "what is updated, and where, is read from memory")
    match node.role:
        case Role.REDUCE:
            return _reduce(group, node, paths)
        case Role.PRODUCT:
            return _product(group, node, paths, kinds)
        case Role.MOVE | Role.UPDATE:
            return _move(group, node, paths, kinds)
        case _:
            return Admission(form, paths)


def _below_update(group: Group, node: Node, kinds: Kinds) -> bool:
    """Whether only the update's value, not its place, depends on it; with moves its place may."""
    root = group.outputs[0]
    return root.operands[0] is not node if kinds.moves else node not in root.operands


def _as_whole(group: Group, node: Node) -> Admission | None:
    """An update of what nothing else reads: computed with it, all of it written."""
    root = group.outputs[0]
    if root.operands[0] is not node or len(node.users) > 1:
        return None
    if node.role not in (Role.ELEMENTWISE, Role.BROADCAST, Role.MOVE, Role.VIEW):
        return None
    new = Form(Kind.LOOP, root.space, is_simple=False)
    members = paths_under(group, new)
    return Admission(new, paths_to(new, members, node), members)


def _as_rows(group: Group, node: Node, rows: Rows, kinds: Kinds) -> Admission | Refusal | None:
    """A loop that turns into rows: around a reduce of each, or by values of each spread over it."""
    form = group.form
    if not form.is_simple:
        return None
    if form.space == rows.space:
        if not kinds.rows:
            return None
        refusal = _too_long(rows)
        if refusal is not None:
            return refusal
    elif node.role is not Role.REDUCE or node.elements != group.outputs[0].elements:
        return None
    new = Form(Kind.ROW, rows.space, rows=rows)
    members = paths_under(group, new)
    paths = paths_to(new, members, node)
    if any(key != EACH_ROW for key, _ in paths):
        return None
    return Admission(new, paths, members)


def _too_long(rows: Rows) -> Refusal | None:
    if rows.row_bytes > cost.LARGEST_ROW_BYTES:
        return Refusal("row", f"a row of {rows.row_bytes} bytes does not stay in the cache")
    if rows.count == 1 and rows.columns > cost.LARGEST_SINGLE_ROW:
        return Refusal("row", f"one row of {rows.columns} elements would be one core's work")
    return None


def _reduce(group: Group, node: Node, paths: tuple[Path, ...]) -> Admission | Refusal:
    form, fold = group.form, node.fold
    assert fold is not None
    keys = {key for key, _ in paths}
    if form.kind is Kind.ROW and keys == {EACH_ROW} and fold.rows == form.rows:
        spread = any(u.role is Role.BROADCAST for u in readers_in(group.members, node))
        refusal = _too_long(fold.rows) if spread and fold.rows is not None else None
        return refusal or Admission(form, paths)
    if form.kind in (Kind.COLUMN, Kind.REDUCE) and keys == {AFTER}:
        if form.fold is not None and (fold.space, fold.dimensions) == (
            form.fold.space,
            form.fold.dimensions,
        ):
            return Admission(form, paths)
    if form.kind is Kind.LOOP and form.is_simple and keys == {FULL}:
        if fold.kind is not FoldKind.ROWS and node.elements == group.outputs[0].elements:
            new = fold_form(fold)
            return Admission(new, ((AFTER, node.elements),), paths_under(group, new))
    if form.kind in (Kind.ROW, Kind.COLUMN, Kind.REDUCE):
        return Refusal("reduce", f"the {form.kind.value} fusion walks another array")
    return Refusal("reduce", "its result would be computed many times")


def _product(
    group: Group, node: Node, paths: tuple[Path, ...], kinds: Kinds
) -> Admission | Refusal:
    form = group.form
    assert node.shape is not None
    if not kinds.products:
        return Refusal("product", f"`{node.opcode}` is a kernel of its own")
    if form.product is not None:
        return Refusal("product", f"the fusion has a `{form.product.opcode}` already")
    if form.kind is not Kind.LOOP or not form.is_simple:
        return Refusal("product", f"a {form.kind.value} fusion cannot compute a `{node.opcode}`")
    if any(key != FULL for key, _ in paths) or node.space != form.space:
        return Refusal("product", f"it is not read element by element from `{node.opcode}`")
    if len(group.outputs) > 1:
        return Refusal("product", f"the fusion around a `{node.opcode}` has one output")
    columns = node.shape.dimensions[major_to_minor(node.shape)[-1]] if node.shape.rank else 1
    if columns < _FEW_COLUMNS:
        members = (m for m in group.members if m.is_expensive and m.role is Role.ELEMENTWISE)
        if dear := next(members, None):
            why = (
                f"`{dear.opcode}` goes in whole vectors, and `{node.opcode}` has {columns} columns"
            )
            return Refusal("product", why)
    return Admission(replace(form, kind=Kind.OUTPUT, product=node), paths)


def _move(group: Group, node: Node, paths: tuple[Path, ...], kinds: Kinds) -> Admission | Refusal:
    form = group.form
    if kinds.moves and form.kind in (Kind.ROW, Kind.COLUMN, Kind.REDUCE):
        return Admission(form, paths)
    if form.kind not in (Kind.LOOP, Kind.UPDATE):
        return Refusal("move", f"a {form.kind.value} fusion reads its arrays where they are walked")
    if node.opcode in _ONLY_AS_OUTPUT and not kinds.moves and not _numbers_places(group, node):
        if form.kind is not Kind.LOOP or node.opcode not in ("concatenate", "pad"):
            return Refusal("move", f"`{node.opcode}` is an output always")
        if not _has_few_edges(group, node):
            return Refusal("edges", f"with `{node.opcode}` a loop would have too many edges")
    return Admission(replace(form, is_simple=False), paths)


def _has_few_edges(group: Group, node: Node) -> bool:
    """Whether loops over what the group writes can be cut where a concatenate or pad has its edges."""
    if not group.outputs[0].space[0] or any(
        major_to_minor(n.shape) != tuple(range(n.shape.rank))
        for n in (*group.outputs, node)
        if n.shape is not None
    ):
        return False
    members = {member.op.output for member in (*group.members, node)}
    ends = {v for member in (*group.members, node) for v in member.op.inputs} - members
    edges = Edges.of([output.op.output for output in group.outputs], ends)
    pieces = [len(cuts) - 1 for cuts in edges.cuts]
    cut = max((d for d, count in enumerate(pieces) if count > 1), default=0)
    sizes = cast("tuple[int, ...]", group.outputs[0].space[0])
    if not edges.all_known or pieces[-1] > _MOST_PIECES or prod(sizes[cut:]) < _SHORTEST_LINE:
        return False
    # Elsewhere all parts are computed, and one is chosen.
    return prod(pieces) <= MOST_REGIONS or (
        len(node.operands) <= _MOST_PARTS and node.chain < _CHEAP_CHAIN
    )


def _numbers_places(group: Group, node: Node) -> bool:
    """Whether its operands are the numbers of the dimensions that gathers read at: which of them is known
    before anything runs."""
    return node.opcode == "concatenate" and all(
        user.opcode == "gather"
        and user.operands[0] is not node
        and cast(ConcatenateOp, node.op).dimensions == (cast(GatherOp, user.op).index_vector_dim,)
        and all(part.elements * len(node.operands) == node.elements for part in node.operands)
        for user in readers_in(group.members, node)
    )


def _recomputed(node: Node, paths: tuple[Path, ...]) -> Refusal | None:
    """Against computing elements more often than once."""
    if len(paths) > cost.MOST_PLACES:
        return Refusal("places", f"it would be computed at {len(paths)} different places")
    if node.role in FREE:
        return None
    computed = evaluations(paths)
    if computed <= node.elements:
        return None
    if node.is_expensive:
        times = computed / node.elements
        return Refusal("expensive", f"`{node.opcode}` would be computed {times:.3g} times")
    extra = (computed - node.elements) * node.chain
    saved = 2 * cost.BYTE_TIME * node.size_bytes + cost.KERNEL_TIME
    if extra > saved:
        return Refusal(
            "recomputed",
            f"computing it {computed / node.elements:.3g} times takes {extra:.3g} ns more, "
            f"its memory {saved:.3g} ns",
        )
    return None
