"""Matrix units by hand: a right side is staged, rows are multiplied by it, sums are taken out.

The units belong to a core. `tpu.matmul_push_rhs` stages a right side in a register of a unit;
`tpu.matmul_acc_lhs` and `tpu.matmul_lhs_fifo` first load one where `load_staged_rhs` names its register,
and then multiply. The one adds to accumulators, which `tpu.matmul_pop` empties, the other appends to a
queue, which `tpu.matmul_pop_fifo` takes from.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, flag_of, integer_of
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of
from mlirhlo.mosaic.interpreter.problems import fault
from mlirhlo.mosaic.interpreter.products import contract
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation

_MAPS = (0, 1), (1, 2), (0, 2)


@dataclass(slots=True)
class Unit:
    """What one matrix unit holds."""

    staged: dict[int, Any] = field(default_factory=dict[int, Any])
    """By register, right sides that wait to be loaded."""
    right: Any = None
    """What rows are multiplied by."""
    sums: dict[int, Any] = field(default_factory=dict[int, Any])
    """By accumulator."""
    queue: deque[Any] = field(default_factory=deque[Any])
    """Products in the order of their left sides."""


def _unit(frame: Activation, op: Operation) -> Unit:
    return frame.core.units.setdefault(integer_of(op, "mxu_index"), Unit())


@means("tpu.matmul_push_rhs")
def push_rhs(op: Operation, scope: Scope) -> Run:
    """Stages a right side, turned if it says so."""
    register, is_turned = integer_of(op, "staging_register"), flag_of(op, "transpose")

    def run(frame: Activation, rhs: Any) -> Any:
        _unit(frame, op).staged[register] = rhs.T if is_turned else rhs
        return ()

    return run


def _product(frame: Activation, op: Operation, lhs: Any) -> Any:
    """Rows times the right side that is loaded, or that is loaded first; in f32 or i32."""
    unit = _unit(frame, op)
    if attribute_of(op, "load_staged_rhs") is not None:
        register = integer_of(op, "load_staged_rhs")
        if register not in unit.staged:
            raise fault(
                f"nothing is staged in register {register} of this unit",
                "stage the right side with tpu.matmul_push_rhs before",
            )
        unit.right = unit.staged[register]
    if unit.right is None:
        raise fault(
            "no right side is loaded in this unit",
            "stage one with tpu.matmul_push_rhs, and say load_staged_rhs",
        )
    dtype = np.dtype(np.int32 if lhs.dtype.name.startswith(("int", "uint")) else np.float32)
    start = np.zeros((lhs.shape[0], unit.right.shape[1]), dtype)
    return contract(_MAPS, lhs, unit.right, start, dtype)


@means("tpu.matmul_acc_lhs")
def acc_lhs(op: Operation, scope: Scope) -> Run:
    """Adds a product to an accumulator; the first one is what it holds."""
    place = integer_of(op, "acc")

    def run(frame: Activation, lhs: Any) -> Any:
        product, sums = _product(frame, op, lhs), _unit(frame, op).sums
        if place in sums and sums[place].shape != product.shape:
            raise fault(
                f"accumulator {place} holds {list(sums[place].shape)} sums, and these are "
                f"{list(product.shape)}",
                "pop it before, or accumulate at another place",
            )
        sums[place] = sums[place] + product if place in sums else product
        return ()

    return run


@means("tpu.matmul_lhs_fifo")
def lhs_fifo(op: Operation, scope: Scope) -> Run:
    """Appends a product to the unit's queue."""

    def run(frame: Activation, lhs: Any) -> Any:
        _unit(frame, op).queue.append(_product(frame, op, lhs))
        return ()

    return run


def _taken(op: Operation, found: Any) -> Any:
    """What was popped, as the type of the operation's result."""
    shape, dtype = shape_of(op.results[0].type), dtype_in(op.results[0].type)
    if found.shape != shape:
        raise fault(
            f"what is popped is {list(found.shape)}, not {list(shape)}", "pop what was multiplied"
        )
    return found.astype(dtype)


@means("tpu.matmul_pop")
def pop(op: Operation, scope: Scope) -> Run:
    """Takes the sums of an accumulator, which is empty afterwards."""
    place = integer_of(op, "acc")

    def run(frame: Activation) -> Any:
        found = _unit(frame, op).sums.pop(place, None)
        if found is None:
            raise fault(f"accumulator {place} is empty", "multiply with tpu.matmul_acc_lhs before")
        return _taken(op, found)

    return run


@means("tpu.matmul_pop_fifo")
def pop_fifo(op: Operation, scope: Scope) -> Run:
    """Takes the oldest product of the unit's queue."""

    def run(frame: Activation) -> Any:
        queue = _unit(frame, op).queue
        if not queue:
            raise fault("the unit's queue is empty", "multiply with tpu.matmul_lhs_fifo before")
        return _taken(op, queue.popleft())

    return run
