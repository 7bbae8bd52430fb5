"""What a reducer computation is: one of the common operations, or something to call.

Recognised operations fold with numpy's ufuncs. XLA:CPU folds f16, bf16 and smaller floats in f32
and rounds once at the end, although the reducer's own type is narrow; so does this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlirhlo.dialects.hlo import identities
from mlirhlo.dialects.hlo.element_types import F32, Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import CallOp, ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.elementwise import maximum, minimum
from mlirhlo.interp.registry import Array, Program


@dataclass(frozen=True, slots=True)
class Reducer:
    """A computation of two values, or of two groups of values, that gives one, or a group."""

    name: str
    """Name of the computation."""
    element_type: PrimitiveType
    opcode: str | None = None
    """`add`, `multiply`, `maximum`, `minimum`, `and`, `or`, `xor` when it is just that."""
    takes_last: bool = False
    """Whether it is its second parameter."""

    @property
    def ufunc(self) -> np.ufunc | None:
        """The numpy function that folds as this does; None when it has to be called."""
        if self.opcode is None:
            return None
        if self.element_type.kind is Kind.PRED:
            return _PRED_UFUNCS.get(self.opcode)
        if self.element_type.is_complex and self.opcode not in ("add", "multiply"):
            return None
        return _UFUNCS.get(self.opcode)


_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_PRED_UFUNCS: dict[str, np.ufunc] = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def reducer_of(program: Program, name: str) -> Reducer:
    """What the computation `name` folds with. Raises `HloError` HLO0304 when there is none."""
    computation = program.computation(name)
    found = _plain(computation)
    root = computation.root
    if isinstance(root, CallOp) and _operands_are_parameters(root, len(computation.parameters)):
        # One look ahead is enough, and ends where computations call each other in a circle.
        inner = _plain(program.computation(root.to_apply))
        return replace(inner, name=name, element_type=found.element_type)
    return found


def _plain(computation: ComputationOp) -> Reducer:
    name, root, parameters = computation.computation_name, computation.root, computation.parameters
    shape = parameters[0].shape if parameters else root.shape
    element_type = shape.element_type if isinstance(shape, ArrayShape) else F32
    if len(parameters) != 2:
        return Reducer(name, element_type)
    if isinstance(root, ParameterOp):
        return Reducer(name, element_type, takes_last=root.parameter_number == 1)
    opcode = root.opcode.name
    if opcode in _UFUNCS and _both_parameters(root):
        return Reducer(name, element_type, opcode)
    return Reducer(name, element_type)


def _both_parameters(op: Instruction) -> bool:
    owners = [value.owner for value in op.inputs]
    numbers = {o.parameter_number for o in owners if isinstance(o, ParameterOp)}
    return numbers == {0, 1}


def _operands_are_parameters(op: Instruction, count: int) -> bool:
    owners = [value.owner for value in op.inputs]
    numbers = [o.parameter_number for o in owners if isinstance(o, ParameterOp)]
    return numbers == list(range(count)) and len(owners) == count


def identity_element(reducer: Reducer) -> Any:
    """The element that leaves the other one as it is, in the type folding is done in.

    Only for recognised operations.
    """
    assert reducer.opcode is not None
    type_ = reducer.element_type
    folded = F32 if type_.is_float else type_
    return np.array(
        identities.identity_element(OPCODES[reducer.opcode], folded), dtype=work_dtype(type_)
    )


_WIDE: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


def fold_dtype(reducer: Reducer) -> np.dtype[Any]:
    """Type in which a recognised operation folds: sums and products of f32 in f64."""
    work = work_dtype(reducer.element_type)
    return _WIDE.get(work, work) if reducer.opcode in ("add", "multiply") else work


def fold(reducer: Reducer, array: Array, axes: tuple[int, ...]) -> Array:
    """Folds axes by a recognised operation; in and out in `work_dtype`.

    Sums and products of f32 are kept in f64 on the way: the order of XLA's own folding is open.
    """
    ufunc = reducer.ufunc
    assert ufunc is not None
    initial = identity_element(reducer)
    result = ufunc.reduce(array, axis=axes, initial=initial, dtype=fold_dtype(reducer))
    result = np.asarray(result).astype(array.dtype, copy=False)
    if reducer.opcode in ("maximum", "minimum") and reducer.element_type.is_float:
        result = _sign_of_zero(result, array, axes, reducer.opcode)
    return result


def _sign_of_zero(result: Array, array: Array, axes: tuple[int, ...], opcode: str) -> Array:
    """numpy's extrema do not tell -0 from +0."""
    zero = result == 0
    if not np.any(zero):
        return result
    wanted = (array == 0) & (np.signbit(array) == (opcode == "minimum"))
    found = np.any(wanted, axis=axes)
    sign = -1.0 if opcode == "minimum" else 1.0
    signed = np.where(found, sign, -sign).astype(result.dtype)
    return np.where(zero, np.copysign(np.zeros((), result.dtype), signed), result)


def combine(reducer: Reducer, a: Array, b: Array) -> Array:
    """One application of a recognised operation, in `work_dtype`."""
    if reducer.element_type.is_float and reducer.opcode == "maximum":
        return maximum(a, b)
    if reducer.element_type.is_float and reducer.opcode == "minimum":
        return minimum(a, b)
    ufunc = reducer.ufunc
    assert ufunc is not None
    return np.asarray(ufunc(a, b))
