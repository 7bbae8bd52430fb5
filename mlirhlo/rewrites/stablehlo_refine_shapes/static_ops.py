"""Dynamic ops whose shapes are known, as the ops that have them in attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.attributes.base import integer, integers, symbols_of
from mlirhlo.dialects.stablehlo.elements import array_of, dense
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import (
    ints_of_value,
    is_static,
    new_op,
    replace,
    sizes_of,
)

Functions = Mapping[str, FuncOp]

SHAPE_OPERANDS = "indices_of_shape_operands"
"""Attribute of custom calls: which operands are the shapes of the results."""


def make_static(op: Operation, functions: Functions) -> bool:
    """Replaces a dynamic op by a static one, where all that it asks of operands is constant."""
    key = op.name
    if key == "stablehlo.custom_call":
        key = "@" + cast(Any, op.properties["call_target_name"]).data
        if key not in _STATIC:
            return _without_shapes(op)
    maker = _STATIC.get(key)
    if maker is None or not all(is_static(result.type) for result in op.results):
        return False
    return maker(op, functions)


def _put(
    op: Operation, name: str, count: int, properties: Mapping[str, Attribute], **more: Any
) -> bool:
    """Replaces `op` by op `name` of its first `count` operands."""
    types = [result.type for result in op.results]
    new = new_op(name, op.operands[:count], types, properties, op)
    for region in more.get("regions", ()):
        new.add_region(region)
    new.attributes.update({k: v for k, v in op.attributes.items() if k != SHAPE_OPERANDS})
    replace(op, new.results)
    return True


def _kept(op: Operation, *keys: str) -> dict[str, Attribute]:
    return {key: op.properties[key] for key in keys if key in op.properties}


def _reshape(op: Operation, functions: Functions) -> bool:
    return is_static(op.operands[0].type) and _put(op, "stablehlo.reshape", 1, {})


def _broadcast(op: Operation, functions: Functions) -> bool:
    if not is_static(op.operands[0].type):
        return False
    return _put(op, "stablehlo.broadcast_in_dim", 1, _kept(op, "broadcast_dimensions"))


def _iota(op: Operation, functions: Functions) -> bool:
    return _put(op, "stablehlo.iota", 0, _kept(op, "iota_dimension"))


def _lists(op: Operation, first: int) -> list[tuple[int, ...]] | None:
    """The operands from `first` on as numbers; None where one is not known."""
    found: list[tuple[int, ...]] = []
    for value in op.operands[first:]:
        numbers = ints_of_value(value)
        if numbers is None:
            return None
        found.append(numbers)
    return found


def _pad(op: Operation, functions: Functions) -> bool:
    lists = _lists(op, 2)
    if lists is None:
        return False
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    properties = {key: integers(values) for key, values in zip(keys, lists, strict=True)}
    return _put(op, "stablehlo.pad", 2, properties)


def _slice(op: Operation, functions: Functions) -> bool:
    lists = _lists(op, 1)
    if lists is not None:
        keys = ("start_indices", "limit_indices", "strides")
        properties = {key: integers(values) for key, values in zip(keys, lists, strict=True)}
        return _put(op, "stablehlo.slice", 1, properties)
    strides = ints_of_value(op.operands[3])
    if strides is None or any(stride != 1 for stride in strides):
        return False
    return _dynamic_slice(op)


def _dynamic_slice(op: Operation) -> bool:
    """A slice of known sizes from a start that only running tells."""
    sizes = sizes_of(op.results[0].type)
    starts = op.operands[1]
    assert sizes is not None
    element_type = cast("TensorType[Attribute]", starts.type).element_type
    one: TensorType[Attribute] = TensorType(element_type, [1])
    scalar: TensorType[Attribute] = TensorType(element_type, [])
    indices = [op.operands[0]]
    for dim in range(len(sizes)):
        bounds: dict[str, Attribute] = {
            "start_indices": integers((dim,)),
            "limit_indices": integers((dim + 1,)),
            "strides": integers((1,)),
        }
        part = new_op("stablehlo.slice", (starts,), (one,), bounds, op).results[0]
        indices.append(new_op("stablehlo.reshape", (part,), (scalar,), {}, op).results[0])
    properties = {"slice_sizes": integers(sizes)}
    new = new_op("stablehlo.dynamic_slice", indices, (op.results[0].type,), properties, op)
    replace(op, new.results)
    return True


def _gather(op: Operation, functions: Functions) -> bool:
    sizes = ints_of_value(op.operands[2])
    if sizes is None:
        return False
    properties = _kept(op, "dimension_numbers", "indices_are_sorted")
    return _put(op, "stablehlo.gather", 2, {**properties, "slice_sizes": integers(sizes)})


def _conv(op: Operation, functions: Functions) -> bool:
    padding = ints_of_value(op.operands[2])
    if padding is None:
        return False
    return _put(op, "stablehlo.convolution", 2, {**op.properties, "padding": _pairs(padding)})


def _pairs(flat: Sequence[int]) -> Attribute:
    import numpy as np

    type_: TensorType[Attribute] = TensorType(i64, [len(flat) // 2, 2])
    return dense(np.array(flat, np.int64).reshape(-1, 2), type_)


def _rng_bits(op: Operation, functions: Functions) -> bool:
    algorithm = op.attributes.pop("rng_algorithm", None)
    if algorithm is None:
        return False
    return _put(op, "stablehlo.rng_bit_generator", 1, {"rng_algorithm": algorithm})


def _top_k(op: Operation, functions: Functions) -> bool:
    k = ints_of_value(op.operands[1])
    return k is not None and _put(op, "chlo.top_k", 1, {"k": integer(k[0])})


def _reduce_window(op: Operation, functions: Functions) -> bool:
    """`reduce_window`, its body the function that the call names."""
    lists = _lists(op, len(op.operands) - 5)
    called = op.properties.get("called_computations")
    if lists is None:
        return False
    name = "".join(symbols_of(called)[:1])
    function = functions.get(name)
    if function is None:
        return False
    region = function.body.clone()
    ending = region.block.last_op
    assert ending is not None
    new_op("stablehlo.return", ending.operands, (), {}, ending)
    region.block.erase_op(ending)
    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    properties: dict[str, Attribute] = {
        key: integers(values) for key, values in zip(keys, lists[:4], strict=True)
    }
    properties["padding"] = _pairs(lists[4])
    count = len(op.operands) - 5
    return _put(op, "stablehlo.reduce_window", count, properties, regions=(region,))


def _operand(op: Operation, functions: Functions) -> bool:
    replace(op, op.operands[:1])
    return True


def _without_shapes(op: Operation) -> bool:
    """A custom call without the operands that only say the shapes of its results."""
    indices = shape_operands(op)
    if not indices or not all(is_static(result.type) for result in op.results):
        return False
    kept = [value for index, value in enumerate(op.operands) if index not in indices]
    types = [result.type for result in op.results]
    new = new_op("stablehlo.custom_call", kept, types, op.properties, op)
    new.attributes.update({k: v for k, v in op.attributes.items() if k != SHAPE_OPERANDS})
    replace(op, new.results)
    return True


def shape_operands(op: Operation) -> tuple[int, ...]:
    """Indices of the operands of a custom call that are the shapes of its results."""
    found = op.attributes.get(SHAPE_OPERANDS)
    if found is None:
        return ()

    indices = tuple(int(v) for v in array_of(found).reshape(-1))
    return indices if len(indices) == len(op.results) else ()


_STATIC: Mapping[str, Callable[[Operation, Functions], bool]] = {
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_conv": _conv,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.real_dynamic_slice": _slice,
    "@stablehlo.dynamic_reduce_window": _reduce_window,
    "@stablehlo.dynamic_rng_bit_generator": _rng_bits,
    "@stablehlo.dynamic_top_k": _top_k,
    "@stablehlo.shape_refinement_operand_wrapper": _operand,
}
"""Ops, and `@` targets of custom calls."""
