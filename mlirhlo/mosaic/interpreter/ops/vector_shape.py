"""`vector`: shapes and places of elements."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, integers, integers_of, name_of
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation

DYNAMIC = -(1 << 63)
"""What stands in a static position whose index is an operand."""


@means("vector.broadcast", "vector.splat")
def broadcast(op: Operation, scope: Scope) -> Run:
    """A scalar or vector repeated along new leading dimensions and along those of size one."""
    shape = shape_of(op.results[0].type)
    return lambda frame, a: np.broadcast_to(a, shape)


@means("vector.shape_cast", "tpu.reshape")
def shape_cast(op: Operation, scope: Scope) -> Run:
    """The same elements, row-major, in another shape."""
    shape = shape_of(op.results[0].type)
    return lambda frame, a: a.reshape(shape)


@means("vector.transpose", "tpu.transpose")
def transpose(op: Operation, scope: Scope) -> Run:
    """Result dimension k is the operand's `permutation[k]`."""
    permutation = integers_of(op, "permutation")
    return lambda frame, a: np.transpose(a, permutation)


def _position(op: Operation, name: str = "static_position") -> tuple[int, ...]:
    found = integers_of(op, name)
    return found if found is not None else integers_of(op, "position") or ()


def _place(static: tuple[int, ...], dynamic: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    rest = iter(dynamic)
    index = tuple(int(next(rest)) if at == DYNAMIC else at for at in static)
    for dim, (at, size) in enumerate(zip(index, shape, strict=False)):
        if not 0 <= at < size:
            raise fault(f"element {at} of dimension {dim} is asked for, which has {size}")
    return index


@means("vector.extract")
def extract(op: Operation, scope: Scope) -> Run:
    """The element, or the vector of the last dimensions, at a position."""
    static = _position(op)
    return lambda frame, a, *at: a[_place(static, at, a.shape)]


@means("vector.insert")
def insert(op: Operation, scope: Scope) -> Run:
    """The second vector with the first value at a position."""
    static = _position(op)

    def run(frame: Activation, value: Any, into: Any, *at: Any) -> Any:
        result = np.array(into)
        result[_place(static, at, into.shape)] = value
        return result

    return run


@means("vector.extractelement")
def extract_element(op: Operation, scope: Scope) -> Run:
    """The element of a vector of one or no dimension."""
    return lambda frame, a, *at: a[tuple(int(i) for i in at)]


@means("vector.insertelement")
def insert_element(op: Operation, scope: Scope) -> Run:
    """The vector with another element."""

    def run(frame: Activation, value: Any, into: Any, *at: Any) -> Any:
        result = np.array(into)
        result[tuple(int(i) for i in at)] = value
        return result

    return run


@means("vector.extract_strided_slice")
def extract_strided_slice(op: Operation, scope: Scope) -> Run:
    """A box of the leading dimensions, with strides."""
    offsets, sizes = integers_of(op, "offsets") or (), integers_of(op, "sizes") or ()
    strides = integers_of(op, "strides") or (1,) * len(offsets)
    index = tuple(
        slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides, strict=True)
    )
    return lambda frame, a: a[index]


@means("vector.insert_strided_slice")
def insert_strided_slice(op: Operation, scope: Scope) -> Run:
    """The second vector with the first one at offsets."""
    offsets = integers_of(op, "offsets") or ()
    shape = shape_of(op.operands[0].type)
    sizes = (1,) * (len(offsets) - len(shape)) + shape
    index = tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))

    def run(frame: Activation, value: Any, into: Any) -> Any:
        result = np.array(into)
        result[index] = value.reshape(sizes)
        return result

    return run


@means("vector.shuffle")
def shuffle(op: Operation, scope: Scope) -> Run:
    """Rows picked from two vectors on end; -1 leaves a row undefined (here: the first)."""
    mask = np.array(integers_of(op, "mask") or ())
    return lambda frame, a, b: np.concatenate([np.atleast_1d(a), np.atleast_1d(b)])[
        np.maximum(mask, 0)
    ]


@means("vector.create_mask")
def create_mask(op: Operation, scope: Scope) -> Run:
    """True below the bound in every dimension."""
    shape = shape_of(op.results[0].type)
    return lambda frame, *bounds: _below(shape, tuple(int(b) for b in bounds))


@means("vector.constant_mask")
def constant_mask(op: Operation, scope: Scope) -> Run:
    """True below the bound in every dimension."""
    sizes = attribute_of(op, "mask_dim_sizes")
    if sizes is None:
        raise unfit(op, "its sizes are missing")
    made = _below(shape_of(op.results[0].type), integers(sizes))
    return lambda frame: made


def _below(shape: tuple[int, ...], bounds: tuple[int, ...]) -> Any:
    mask = np.zeros(shape, np.bool_)
    mask[tuple(slice(0, max(bound, 0)) for bound in bounds)] = True
    return mask


@means("vector.step")
def step(op: Operation, scope: Scope) -> Run:
    """0, 1, 2, …"""
    type_ = op.results[0].type
    made = np.arange(shape_of(type_)[0]).astype(dtype_in(type_))
    return lambda frame: made


@means("vector.from_elements")
def from_elements(op: Operation, scope: Scope) -> Run:
    """A vector of scalars, row-major."""
    type_ = op.results[0].type
    shape, dtype = shape_of(type_), dtype_in(type_)
    return lambda frame, *elements: np.array(elements, dtype).reshape(shape)


@means("vector.to_elements")
def to_elements(op: Operation, scope: Scope) -> Run:
    """The elements, row-major."""
    single = len(op.results) == 1
    return lambda frame, a: a.reshape(-1)[0] if single else tuple(a.reshape(-1))


@means("vector.bitcast")
def bitcast(op: Operation, scope: Scope) -> Run:
    """The same bits of each row as elements of another width."""
    dtype, name = dtype_in(op.results[0].type), name_of(op)
    if dtype.kind == "b":
        raise unfit(op, f"{name} to booleans")
    return lambda frame, a: np.ascontiguousarray(a).view(dtype)


@means("vector.interleave")
def interleave(op: Operation, scope: Scope) -> Run:
    """Elements of two vectors by turns."""
    shape = shape_of(op.results[0].type)
    return lambda frame, a, b: np.stack([a, b], axis=-1).reshape(shape)


@means("vector.deinterleave")
def deinterleave(op: Operation, scope: Scope) -> Run:
    """Elements of even and of odd places."""
    return lambda frame, a: (a[..., 0::2], a[..., 1::2])
