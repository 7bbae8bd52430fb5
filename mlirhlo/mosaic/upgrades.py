"""What changed between the versions of the stable form of kernels, as rules on old operations.

`upgrade(module, version)` applies every rule newer than `version`, in order. A rule sees an operation
in plain names. Defaults that readers fill in themselves (`priority`, `strict_ordering`, `add`)
need none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, ModuleOp, i32, i64
from xdsl.ir import Operation

from mlirhlo.mosaic.attributes import attribute_of, integers, integers_of, name_of

SEGMENTS = "operandSegmentSizes"


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
    Upgrade(14, "tpu.enqueue_dma", _one_more_segment(7)),
    Upgrade(14, "tpu.wait_dma", _one_more_segment(7)),
    Upgrade(14, "tpu.sem_signal", _one_more_segment(5)),
    Upgrade(15, "tpu.reinterpret_cast", _reinterpret_segments),
)
