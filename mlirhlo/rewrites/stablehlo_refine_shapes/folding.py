"""Computing with shapes: ops on small constants of integers, as the interpreter computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import (
    MOST_ELEMENTS,
    array_of_value,
    is_integer,
    sizes_of,
)

with LATE:
    from mlirhlo.interp.ops import elementwise, elementwise_convert


if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = Sequence["NDArray[Any]"]

_ELEMENTWISE = frozenset(
    row.stablehlo
    for row in OPCODES.values()
    if row.elementwise and row.data is not None and row.arity in (1, 2)
    if row.stablehlo.startswith("stablehlo.")
)
"""Ops of the stablehlo dialect that have an opcode of the same name and meaning."""


def fold(op: Operation) -> NDArray[Any] | None:
    """The elements of the result of `op`, where they follow from constants or from types."""
    if len(op.results) != 1 or op.regions:
        return None
    type_ = op.results[0].type
    if not is_integer(type_):
        return None
    if op.name == "stablehlo.get_dimension_size":
        return _dimension_size(op)
    function = _FOLDS.get(op.name)
    if function is None and op.name not in _ELEMENTWISE:
        return None
    inputs: list[NDArray[Any]] = []
    for value in op.operands:
        found = array_of_value(value)
        if found is None:
            return None
        inputs.append(found)
    result = (function or _elementwise)(op, inputs)
    if result is None or result.size > MOST_ELEMENTS or not _fits(result, type_):
        return None
    return result


def _fits(array: NDArray[Any], type_: Attribute) -> bool:
    sizes = sizes_of(type_)
    return (
        sizes is not None
        and len(sizes) == array.ndim
        and all(size in (DYNAMIC_INDEX, own) for size, own in zip(sizes, array.shape, strict=True))
    )


def _element(type_: Attribute) -> PrimitiveType | None:
    return BY_MLIR.get(cast("TensorType[Attribute]", type_).element_type)


def _int(op: Operation, key: str) -> int:
    return cast(int, cast(Any, op.properties[key]).value.data)


def _ints(op: Operation, key: str) -> tuple[int, ...]:
    return tuple(int(v) for v in cast(Any, op.properties[key]).get_values())


def _dimension_size(op: Operation) -> NDArray[Any] | None:
    import numpy as np

    sizes = sizes_of(op.operands[0].type)
    dim = _int(op, "dimension")
    if sizes is None or not 0 <= dim < len(sizes) or sizes[dim] == DYNAMIC_INDEX:
        return None
    return np.array(sizes[dim], np.int32)


def _elementwise(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    import numpy as np

    type_ = _element(op.operands[0].type)
    if type_ is None:
        return None
    with np.errstate(all="ignore"):
        return cast(
            "NDArray[Any]",
            elementwise.function(op.name.removeprefix("stablehlo.").replace("_", "-"), type_)(
                *inputs
            ),
        )


def _compare(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    type_ = _element(op.operands[0].type)
    direction = cast(Any, op.properties["comparison_direction"]).data
    return (
        None if type_ is None else elementwise_convert.comparison(direction, type_, False)(*inputs)
    )


def _convert(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    source, target = _element(op.operands[0].type), _element(op.results[0].type)
    return (
        None
        if source is None or target is None
        else elementwise_convert.convert(inputs[0], source, target)
    )


def _select(op: Operation, inputs: Arrays) -> NDArray[Any]:
    import numpy as np

    return np.where(*inputs)


def _clamp(op: Operation, inputs: Arrays) -> NDArray[Any]:
    import numpy as np

    low, value, high = inputs
    return np.minimum(np.maximum(value, low), high)


def _reshape(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    sizes = sizes_of(op.results[0].type)
    if sizes is None or sizes.count(DYNAMIC_INDEX) > 1:
        return None
    return inputs[0].reshape(sizes_with_rest(sizes, inputs[0].size))


def sizes_with_rest(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """`sizes` with the unknown one worked out from the number of elements."""
    known = 1
    for size in sizes:
        known *= 1 if size == DYNAMIC_INDEX else size
    return tuple(count // max(known, 1) if size == DYNAMIC_INDEX else size for size in sizes)


def _broadcast(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    import numpy as np

    sizes = sizes_of(op.results[0].type)
    if sizes is None or DYNAMIC_INDEX in sizes:
        return None
    dims = _ints(op, "broadcast_dimensions")
    shape = [1] * len(sizes)
    for dim, into in enumerate(dims):
        shape[into] = inputs[0].shape[dim]
    order = sorted(range(len(dims)), key=dims.__getitem__)
    return np.broadcast_to(inputs[0].transpose(order).reshape(shape), sizes)


def _concatenate(op: Operation, inputs: Arrays) -> NDArray[Any]:
    import numpy as np

    return np.concatenate(inputs, axis=_int(op, "dimension"))


def _slice(op: Operation, inputs: Arrays) -> NDArray[Any]:
    bounds = zip(
        _ints(op, "start_indices"), _ints(op, "limit_indices"), _ints(op, "strides"), strict=True
    )
    return inputs[0][tuple(slice(*one) for one in bounds)]


def _transpose(op: Operation, inputs: Arrays) -> NDArray[Any]:
    return inputs[0].transpose(_ints(op, "permutation"))


def _iota(op: Operation, inputs: Arrays) -> NDArray[Any] | None:
    import numpy as np

    sizes, type_ = sizes_of(op.results[0].type), _element(op.results[0].type)
    if sizes is None or DYNAMIC_INDEX in sizes or type_ is None or np.prod(sizes) > MOST_ELEMENTS:
        return None
    dim = _int(op, "iota_dimension")
    shape = [1] * len(sizes)
    shape[dim] = sizes[dim]
    line = np.arange(sizes[dim]).astype(type_.dtype).reshape(shape)
    return np.broadcast_to(line, sizes)


_FOLDS: Mapping[str, Callable[[Operation, Arrays], NDArray[Any] | None]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convert": _convert,
    "stablehlo.iota": _iota,
    "stablehlo.reshape": _reshape,
    "stablehlo.select": _select,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""Ops that are no elementwise opcode of one type."""
