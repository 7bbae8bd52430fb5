"""What was read of memory nobody wrote, followed until it is discarded or comes to something.

A load of unwritten elements is no mistake while a select, or the mask of a store, leaves them out. Each value that
holds some has a mask of them here, by which the operations that use it are followed.
"""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.interpreter.clocks import Memory
from mlirhlo.mosaic.interpreter.memory import MemRef
from mlirhlo.mosaic.interpreter.registry import MEANINGS

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from mlirhlo.mosaic.interpreter.registry import Activation, Array

LOADS = frozenset({"vector.load", "tpu.vector_load", "tpu.strided_load", "memref.load"})
"""What may read unwritten elements that are discarded."""
_STORES = frozenset({"vector.store", "tpu.vector_store", "tpu.strided_store", "memref.store"})
_MOVES = frozenset(
    {
        *("vector.broadcast", "vector.shape_cast", "vector.transpose", "vector.extract"),
        *("vector.extract_strided_slice", "vector.insert_strided_slice"),
        *("tpu.reshape", "tpu.transpose", "tpu.concatenate", "tpu.repeat", "tpu.rotate"),
        *("tpu.dynamic_rotate", "tpu.broadcast_in_sublanes"),
    }
)
"""What moves elements: a mask of them moves in the same way."""
_CASTS = frozenset(
    {
        *("arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci"),
        *("arith.bitcast", "tpu.extf", "tpu.truncf"),
    }
)


@dataclass(slots=True, eq=False)
class Poison:
    """Elements of a value that nobody wrote."""

    mask: Array
    error: HloError
    """What is wrong with the read, if it comes to something."""
    source: tuple[Memory, Any] | None
    """Where all of the value is from, if its elements are what stands there or written ones."""
    is_new: bool = True
    """Whether the operation that runs has found it."""


def follow(frame: Activation, op: Operation, values: Sequence[Any], result: Any) -> None:
    """Notes what an operation that has run makes of poisoned operands. Raises `HloError` HLO0731 where they come
    to something.
    """
    poison = frame.core.poison
    has_new = False
    for value in op.results:
        if (known := poison.get(value)) is not None:
            if not known.is_new:
                del poison[value]
            has_new |= known.is_new
            known.is_new = False
    if has_new:
        return
    found = [poison.get(operand) for operand in op.operands]
    first = next((one for one in found if one is not None), None)
    if first is None:
        return
    name = name_of(op)
    if name in _STORES:
        _store(frame, op, values, found)
    elif name == "arith.select":
        condition, true, false = (_mask(one, v) for one, v in zip(found, values, strict=True))
        mask = condition | np.where(values[0], true, false)
        if mask.any():
            sources = {one.source for one in found if one is not None}
            is_kept = len(sources) == 1 and found[0] is None
            poison[op.results[0]] = _same(first, mask, first.source if is_kept else None)
    elif name in _MOVES:
        masks = [
            _mask(p, v) if isinstance(v, np.ndarray) else v
            for p, v in zip(found, values, strict=True)
        ]
        moved = np.asarray(MEANINGS[name](op, _NO_SCOPE)(frame, *masks))
        if moved.any():
            poison[op.results[0]] = _same(first, moved, first.source if name in _RESHAPES else None)
    elif name in _CASTS:
        poison[op.results[0]] = _same(first, first.mask, first.source)
    elif op.regions or not op.results or any(isinstance(value, MemRef) for value in values):
        raise first.error
    else:
        _spread(poison, op, found, values, result)


_RESHAPES = frozenset({"vector.shape_cast", "tpu.reshape"})
_NO_SCOPE: Any = None


def _same(one: Poison, mask: Any, source: Any) -> Poison:
    return Poison(np.asarray(mask), one.error, source, is_new=False)


def _mask(one: Poison | None, value: Any) -> Any:
    return np.zeros(np.shape(value), np.bool_) if one is None else one.mask


def _spread(
    poison: dict[SSAValue, Poison],
    op: Operation,
    found: Sequence[Poison | None],
    values: Sequence[Any],
    result: Any,
) -> None:
    """Element by element where the operation is elementwise, else over all of the results."""
    first = next(one for one in found if one is not None)
    results = result if isinstance(result, tuple) else (result,)
    is_elementwise = name_of(op).partition(".")[0] in ("arith", "math")
    for value, array in zip(op.results, results, strict=True):
        mask = np.ones(np.shape(array), np.bool_)
        if is_elementwise:
            masks = [_mask(one, v) for one, v in zip(found, values, strict=True)]
            mask = np.logical_or.reduce(np.broadcast_arrays(*masks))
        poison[value] = _same(first, mask, None)


def _store(
    frame: Activation, op: Operation, values: Sequence[Any], found: Sequence[Poison | None]
) -> None:
    """What is put back where it was read stays unwritten; what is masked off goes nowhere."""
    at = next(at for at, value in enumerate(values) if isinstance(value, MemRef))
    ref: MemRef = values[at]
    one = found[0]
    if one is None:
        raise next(other for other in found if other is not None).error
    stored = np.zeros(ref.shape, np.bool_)
    shadow = [one.mask, *values[1:]]
    shadow[at] = MemRef(stored, ref.space)
    core = frame.core
    checks, core.checks = core.checks, None
    try:
        MEANINGS[name_of(op)](op, _NO_SCOPE)(frame, *shadow)
    finally:
        core.checks = checks
    if not stored.any():
        return
    memory = ref.memory
    is_back = (
        checks is not None
        and memory is not None
        and one.source is not None
        and one.source == (memory, checks.last_write)
    )
    if not is_back or memory is None or ref.written is None or not memory.keeps_count(ref.written):
        raise one.error
    ref.written[stored] = False
    assert memory.written is not None
    memory.missing = int(memory.written.size - np.count_nonzero(memory.written))


def yielded(frame: Activation, op: Operation) -> None:
    """What a terminator hands on. Raises `HloError` HLO0731 where that is not followed."""
    poison = frame.core.poison
    parent = op.parent_op()
    for number, operand in enumerate(op.operands):
        one = poison.get(operand)
        if one is None:
            continue
        if parent is None or name_of(parent) != "scf.if":
            raise one.error
        poison[parent.results[number]] = replace(one, source=None, is_new=True)


__all__ = ["LOADS", "Poison", "follow", "yielded"]
