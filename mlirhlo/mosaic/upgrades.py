"""What changed between the versions of the stable form of kernels, as rules on old operations.

`upgrade(module, version)` applies every rule newer than `version`, in order. A rule sees an operation
in plain names. Defaults that readers fill in themselves (`priority`, `strict_ordering`, `add`)
need none; nor do 10 (a splat of true is any byte that is not 0), 12 (operands that may be left out), and 20
(`tpu.reduce_index` keeps the reduced dimension: both forms have a meaning here). No operation of a TensorCore
is read otherwise from 9 or 19 on. Versions 16 to 20 are as the compiler in libtpu 0.0.52 takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.tpu.attributes import ReductionKindAttr
from mlirhlo.dialects.tpu.op_classes import class_of
from mlirhlo.mosaic.attributes import attribute_of, case_of, integers, integers_of, name_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in

SEGMENTS = "operandSegmentSizes"
_SUBCORES = 16
"""Of a SparseCore, before version 14."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One change of one operation."""

    version: int
    """First version that has the new form."""
    operation: str
    apply: Callable[[Operation], None]


def upgrade(module: ModuleOp, version: int) -> None:
    """Brings every operation of a module of `version` to the newest form, in place."""
    rules = [rule for rule in UPGRADES if rule.version > version]
    for op in module.walk(reverse=False) if rules else ():
        name = name_of(op)
        for rule in rules:
            if rule.operation == name:
                rule.apply(op)


def _set_segments(op: Operation, sizes: list[int]) -> None:
    op.attributes[SEGMENTS] = DenseArrayBase.from_list(i32, sizes)


def _segments_by_count(forms: dict[int, list[int]]) -> Callable[[Operation], None]:
    """The segments that a number of operands stood for before they were written down."""

    def apply(op: Operation) -> None:
        sizes = forms.get(len(op.operands))
        if sizes is not None and attribute_of(op, SEGMENTS) is None:
            _set_segments(op, sizes)

    return apply


def _one_more_segment(count: int) -> Callable[[Operation], None]:
    """Appends an empty segment, for an operand that came last."""

    def apply(op: Operation) -> None:
        sizes = integers_of(op, SEGMENTS)
        if sizes is not None and len(sizes) < count:
            _set_segments(op, [*sizes, 0])

    return apply


def _with_subcores(count: int) -> Callable[[Operation], None]:
    """Appends a segment for the subcore; before, a vector subcore was one number, 16 to a core."""
    append = _one_more_segment(count)

    def apply(op: Operation) -> None:
        sizes = list(integers_of(op, SEGMENTS) or ())
        if len(sizes) >= count:
            return
        append(op)
        if not sizes or not sizes[-1] or _core_of(op) != "sc_vector_subcore":
            return
        at = sum(sizes[:-1])
        linear = op.operands[at]
        per_core = _before(op, "arith.constant", (), {"value": IntegerAttr(_SUBCORES, i32)})
        core = _before(op, "arith.divui", (linear, per_core))
        subcore = _before(op, "arith.remui", (linear, per_core))
        op.operands = [*op.operands[:at], core, *op.operands[at + 1 :], subcore]
        _set_segments(op, [*sizes, 1])

    return apply


def _core_of(op: Operation) -> str:
    """The kind of core that runs an operation."""
    parent = op.parent_op()
    while parent is not None:
        kind = attribute_of(parent, "tpu.core_type")
        if kind is not None:
            return case_of(kind)
        parent = parent.parent_op()
    return ""


def _before(
    op: Operation,
    name: str,
    operands: tuple[SSAValue, ...],
    properties: dict[str, Attribute] | None = None,
) -> SSAValue:
    """A new i32 in front of an operation."""
    cls, block = class_of(name), op.parent_block()
    assert cls is not None
    assert block is not None
    made = cls.create(operands=operands, result_types=[i32], attributes=properties or {})
    block.insert_op_before(made, op)
    return made.results[0]


def _renamed(old: str, new: str) -> Callable[[Operation], None]:
    """One dimension became a list of them."""

    def apply(op: Operation) -> None:
        found = op.attributes.pop(old, None)
        if found is not None and new not in op.attributes:
            op.attributes[new] = DenseArrayBase.from_list(i32, list(integers(found)))

    return apply


def _reduction_dims(op: Operation) -> None:
    found = op.attributes.get("reduction_dims")
    if found is not None and not isinstance(found, DenseArrayBase):
        op.attributes["reduction_dims"] = DenseArrayBase.from_list(i64, list(integers(found)))


def _reinterpret_segments(op: Operation) -> None:
    if attribute_of(op, SEGMENTS) is None:
        _set_segments(op, [1, len(op.operands) - 1, 0])


def _transpose_hint(op: Operation) -> None:
    op.attributes.setdefault("transpose_lhs_hint", BoolAttr.from_bool(False))


def _along_the_last(op: Operation) -> None:
    rank = len(shape_in(op.operands[0].type))
    op.attributes.setdefault("dimension", IntegerAttr(rank - 1, i64))


def _kind_by_type(op: Operation) -> None:
    """`max` and `min` were of any type; now floats, signed and unsigned integers have their own."""
    kind = case_of(attribute_of(op, "kind"))
    if kind in ("max", "min"):
        suffix = "si" if element_name(op.operands[0].type).startswith(("i", "s")) else "f"
        op.attributes["kind"] = ReductionKindAttr(kind + suffix)


UPGRADES = (
    Upgrade(
        2,
        "tpu.enqueue_dma",
        _segments_by_count({3: [1, 0, 1, 1, 0, 0], 5: [1, 1, 1, 1, 1, 0]}),
    ),
    Upgrade(2, "tpu.sem_signal", _segments_by_count({2: [1, 1, 0, 0], 3: [1, 1, 1, 0]})),
    Upgrade(3, "vector.multi_reduction", _reduction_dims),
    Upgrade(5, "tpu.dynamic_gather", _renamed("dimension", "dimensions")),
    Upgrade(6, "tpu.iota", _renamed("dimension", "dimensions")),
    Upgrade(7, "tpu.wait_dma2", _segments_by_count({3: [1, 1, 1, 0, 0]})),
    Upgrade(13, "tpu.matmul", _transpose_hint),
    Upgrade(14, "tpu.enqueue_dma", _with_subcores(7)),
    Upgrade(14, "tpu.wait_dma", _with_subcores(7)),
    Upgrade(14, "tpu.sem_signal", _with_subcores(5)),
    Upgrade(15, "tpu.reinterpret_cast", _reinterpret_segments),
    Upgrade(16, "tpu.reinterpret_cast", _one_more_segment(4)),
    Upgrade(17, "tpu.scan", _along_the_last),
    Upgrade(18, "tpu.reduce", _kind_by_type),
    Upgrade(18, "tpu.scan", _kind_by_type),
)
