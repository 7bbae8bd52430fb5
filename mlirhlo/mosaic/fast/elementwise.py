"""Operations on values: what each is in StableHLO."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    integer_of,
    integers_of,
    plain,
)
from mlirhlo.mosaic.fast import integers, packing
from mlirhlo.mosaic.fast.sources import product_in_pairs
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, tensor, type_of
from mlirhlo.mosaic.interpreter.ops.tpu_matmul import maps_of

Translate: TypeAlias = "Callable[[Writer, Operation, list[Val]], Val]"

_SAME = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.subf": "subtract",
    "arith.subi": "subtract",
    "arith.mulf": "multiply",
    "arith.muli": "multiply",
    "arith.divf": "divide",
    "arith.divsi": "divide",
    "arith.remf": "remainder",
    "arith.remsi": "remainder",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shift_left",
    "arith.shrsi": "shift_right_arithmetic",
    "arith.shrui": "shift_right_logical",
    "arith.negf": "negate",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.atan2": "atan2",
    "math.ceil": "ceil",
    "math.cos": "cosine",
    "math.ctlz": "count_leading_zeros",
    "math.ctpop": "popcnt",
    "math.exp": "exponential",
    "math.floor": "floor",
    "math.log": "log",
    "math.log1p": "log_plus_one",
    "math.powf": "power",
    "math.round": "round_nearest_afz",
    "math.roundeven": "round_nearest_even",
    "math.rsqrt": "rsqrt",
    "math.sin": "sine",
    "math.sqrt": "sqrt",
    "math.tan": "tan",
    "math.tanh": "tanh",
}
_CONVERSIONS = (
    "arith.extf",
    "arith.truncf",
    "arith.sitofp",
    "arith.fptosi",
    "arith.extsi",
    "arith.trunci",
)
_FOLDS = {
    "add": ("add", 0),
    "maximumf": ("maximum", "0xFF800000"),
    "minimumf": ("minimum", "0x7F800000"),
    "maxsi": ("maximum", None),
    "minsi": ("minimum", None),
}


def _same(w: Writer, op: Operation, values: list[Val]) -> Val:
    made = w.like(_SAME[op.name], *values)
    known = _folded(op.name, [value.known for value in values])
    return Val(made.name, made.shape, made.element, known)


def _folded(name: str, numbers: list[int | None]) -> int | None:
    """What integer scalars that are constants come to."""
    if len(numbers) != 2:
        return None
    a, b = numbers
    if a is None or b is None:
        return None
    if name == "arith.addi":
        return a + b
    if name == "arith.subi":
        return a - b
    return a * b if name == "arith.muli" else None


def _constant(w: Writer, op: Operation, values: list[Val]) -> Val:
    shape, element = type_of(op.results[0].type)
    value: Any = attribute_of(op, "value")
    if isinstance(value, DenseAttr):
        if not value.data.is_splat:
            raise has_no_program(op, "its elements differ")
        return w.constant(value.array().reshape(-1)[0].item(), element, shape)
    number = value.value.data
    return w.constant(number if not isinstance(value, IntegerAttr) else int(number), element, shape)


def _convert(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.convert(values[0], type_of(op.results[0].type)[1])


def _index_cast(w: Writer, op: Operation, values: list[Val]) -> Val:
    return values[0]


def _select(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.select(*values)


def _scaled(w: Writer, value: Val, factor: float) -> Val:
    return w.like("multiply", value, w.constant(factor, value.element, value.shape))


def _exp2(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.like("exponential", _scaled(w, values[0], math.log(2)))


def _log2(w: Writer, op: Operation, values: list[Val]) -> Val:
    return _scaled(w, w.like("log", values[0]), 1 / math.log(2))


def _erf(w: Writer, op: Operation, values: list[Val]) -> Val:
    x = values[0]
    return w.emit(f"chlo.erf {x.name} : {x.type} -> {x.type}", x.shape, x.element)


def _trunc(w: Writer, op: Operation, values: list[Val]) -> Val:
    whole = w.like("floor", w.like("abs", values[0]))
    return w.like("multiply", w.like("sign", values[0]), whole)


def _isfinite(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.op("is_finite", values, values[0].shape, "i1")


def _isinf(w: Writer, op: Operation, values: list[Val]) -> Val:
    x = values[0]
    infinite = w.constant(math.inf, "f32", x.shape)
    return w.compare("EQ", w.like("abs", w.convert(x, "f32")), infinite)


def _isnan(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.compare("NE", values[0], values[0])


def _weird(w: Writer, op: Operation, values: list[Val]) -> Val:
    (x,) = values
    limit = w.constant("0x7F7FFFFF", x.element, x.shape)
    finite = w.compare("LE", w.like("abs", x), limit)
    return w.like("not", finite)


def _reciprocal(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.like("divide", w.constant(1.0, values[0].element, values[0].shape), values[0])


def _bits(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.op("bitcast_convert", [values[0]], values[0].shape, type_of(op.results[0].type)[1])


def _dynamic_gather(w: Writer, op: Operation, values: list[Val]) -> Val:
    """Along one dimension, the element at the index modulo its size."""
    x, index = values
    dims = integers_of(op, "dimensions") or ()
    if len(dims) != 1:
        raise has_no_program(op, "along several dimensions")
    return _taken(w, x, w.convert(index, "i32"), dims[0])  # A byte cannot say 128.


def _taken(w: Writer, x: Val, index: Val, dim: int) -> Val:
    """Along a dimension, the element at the index modulo its size."""
    rest = [d for d in range(len(x.shape)) if d != dim]
    size = w.constant(x.shape[dim], index.element, index.shape)
    wrapped = w.like("remainder", w.like("add", w.like("remainder", index, size), size), size)
    numbers = (
        f"offset_dims = [], collapsed_slice_dims = [{dim}], operand_batching_dims = {rest}, "
        f"start_indices_batching_dims = {rest}, start_index_map = [{dim}], "
        f"index_vector_dim = {len(x.shape)}"
    )
    sizes = ", ".join("1" for _ in x.shape)
    return w.emit(
        f'"stablehlo.gather"({x.name}, {wrapped.name}) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
        f"indices_are_sorted = false, slice_sizes = array<i64: {sizes}>}}> : ({x.type}, {wrapped.type}) "
        f"-> {tensor(index.shape, x.element)}",
        index.shape,
        x.element,
    )


def _broadcast(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.broadcast(values[0], type_of(op.results[0].type)[0])


def _reshape(w: Writer, op: Operation, values: list[Val]) -> Val:
    return w.reshape(values[0], type_of(op.results[0].type)[0])


def _transpose(w: Writer, op: Operation, values: list[Val]) -> Val:
    order = list(integers_of(op, "permutation") or ())
    shape = type_of(op.results[0].type)[0]
    return w.op("transpose", values, shape, values[0].element, f"dims = {order}")


def _extract(w: Writer, op: Operation, values: list[Val]) -> Val:
    (x, *dynamic) = values
    if dynamic:
        raise has_no_program(op, "at a place known when it runs")
    at = list(integers_of(op, "static_position") or ())
    rest = x.shape[len(at) :]
    sizes = (*[1] * len(at), *rest)
    starts = [*at, *[0] * len(rest)]
    return w.reshape(w.slice(x, starts, sizes, [1] * len(sizes)), rest)


def _repeat(w: Writer, op: Operation, values: list[Val]) -> Val:
    shape, element = type_of(op.results[0].type)
    times, dim = integer_of(op, "times", 1), integer_of(op, "dimension")
    return w.op("concatenate", values * times, shape, element, f"dim = {dim}")


def _strided_slice(w: Writer, op: Operation, values: list[Val]) -> Val:
    lists = [list(plain(attribute_of(op, n) or _none(op))) for n in ("offsets", "sizes", "strides")]
    x = values[0]
    offsets, sizes, strides = (
        [*found, *fill[len(found) :]]
        for found, fill in zip(
            lists, ([0] * len(x.shape), list(x.shape), [1] * len(x.shape)), strict=True
        )
    )
    return w.slice(x, offsets, sizes, strides)


def _none(op: Operation) -> Any:
    raise has_no_program(op)


def _concatenate(w: Writer, op: Operation, values: list[Val]) -> Val:
    shape, element = type_of(op.results[0].type)
    return w.op("concatenate", values, shape, element, f"dim = {integer_of(op, 'dimension')}")


def _iota(w: Writer, op: Operation, values: list[Val]) -> Val:
    """Row-major numbers within the dimensions named."""
    shape, element = type_of(op.results[0].type)
    found: Val | None = None
    step = 1
    for dim in reversed(integers_of(op, "dimensions") or ()):
        number = w.emit(f"stablehlo.iota dim = {dim} : {tensor(shape, element)}", shape, element)
        if step > 1:
            number = w.like("multiply", number, w.constant(step, element, shape))
        found = number if found is None else w.like("add", found, number)
        step *= shape[dim]
    return w.constant(0, element, shape) if found is None else found


def _extreme(kind: str, element: str) -> Any:
    bits = int(element.lstrip("i"))
    return -(1 << (bits - 1)) if kind == "maxsi" else (1 << (bits - 1)) - 1


def _reduction(w: Writer, op: Operation, values: list[Val]) -> Val:
    kind = case_of(attribute_of(op, "kind"))
    if kind not in _FOLDS:
        raise has_no_program(op, kind)
    name, start = _FOLDS[kind]
    x, acc = values
    if start is None:
        start = _extreme(kind, x.element)
    elif isinstance(start, str) and x.element != "f32":
        start = {"bf16": {"0xFF800000": "0xFF80", "0x7F800000": "0x7F80"}}[x.element][start]
    dims = integers_of(op, "reduction_dims") or ()
    neutral = w.constant(start, x.element)
    return w.like(name, w.reduce(name, x, neutral, dims), acc)


def _place(w: Writer, op: Operation, values: list[Val]) -> Val:
    (x,) = values
    dim, kind = integer_of(op, "axis"), case_of(attribute_of(op, "kind"))
    name, start = ("maximum", "0xFF800000") if kind == "arg_max" else ("minimum", "0x7F800000")
    best = w.reduce(name, x, w.constant(start, x.element), [dim])
    dims = [d for d in range(len(x.shape)) if d != dim]
    spread = w.op("broadcast_in_dim", [best], x.shape, x.element, f"dims = {dims}")
    type_ = "x".join([*map(str, x.shape), "i32"])
    places = w.emit(f"stablehlo.iota dim = {dim} : tensor<{type_}>", x.shape, "i32")
    beyond = w.constant(x.shape[dim], "i32", x.shape)
    chosen = w.select(w.compare("EQ", x, spread), places, beyond)
    found = w.reduce("minimum", chosen, w.constant(x.shape[dim], "i32"), [dim])
    return w.reshape(found, type_of(op.results[0].type)[0])


def _rotate(w: Writer, op: Operation, values: list[Val]) -> Val:
    x, amount = values
    dim = integer_of(op, "dimension")
    if attribute_of(op, "stride_dimension") is not None:
        return _turned_rows(w, op, x, amount)
    size = x.shape[dim]
    shape = list(x.shape)
    shape[dim] = 2 * size
    twice = w.op("concatenate", [x, x], shape, x.element, f"dim = {dim}")
    whole = w.constant(size, "i32")
    positive = w.like("remainder", w.like("add", w.like("remainder", amount, whole), whole), whole)
    start = w.like("subtract", whole, positive)
    if amount.known is not None:
        start = w.constant(size - amount.known % size, "i32")
    zero = w.constant(0, "i32")
    return w.read(twice, [start if d == dim else zero for d in range(len(shape))], x.shape)


def _turned_rows(w: Writer, op: Operation, x: Val, amount: Val) -> Val:
    """Row j turned by `amount + stride * j`."""
    dim, along = integer_of(op, "dimension"), integer_of(op, "stride_dimension")
    places, rows = (
        w.emit(f"stablehlo.iota dim = {d} : {tensor(x.shape, 'i32')}", x.shape, "i32")
        for d in (dim, along)
    )
    stride = w.constant(integer_of(op, "stride"), "i32", x.shape)
    turn = w.like("add", w.like("multiply", rows, stride), w.broadcast(amount, x.shape))
    return _taken(w, x, w.like("subtract", places, turn), dim)


def _matmul(w: Writer, op: Operation, values: list[Val]) -> Val:
    a, b, acc = values
    left, right, out = maps_of(op)
    both = [dim for dim in left if dim in right]
    summed, batch = [d for d in both if d not in out], [d for d in both if d in out]
    free = [dim for dim in (*left, *right) if dim not in both]
    lc, rc = ([side.index(dim) for dim in summed] for side in (left, right))
    lb, rb = ([side.index(dim) for dim in batch] for side in (left, right))
    order = [(*batch, *free).index(dim) for dim in out]
    is_turned = order != sorted(order)
    precision = case_of(attribute_of(op, "precision"), "bf16")
    if w.rounds_matmul_operands and precision == "bf16":
        a, b = w.rounded(a), w.rounded(b)
    if a.element != b.element:
        a, b = w.convert(a, acc.element), w.convert(b, acc.element)
    if len(a.shape) == 2 and lc == [1] and len(rc) == 1 and not is_turned:
        product = product_in_pairs(w, a, b, rc[0], acc)
        if product is not None:
            return w.like("add", product, acc)
    more = f"batching_dims = {lb} x {rb}, " if lb else ""
    more += f"contracting_dims = {lc} x {rc}"
    shape = [acc.shape[order.index(dim)] for dim in range(len(order))]
    product = w.op("dot_general", [a, b], tuple(shape), acc.element, more)
    if is_turned:
        product = w.op("transpose", [product], acc.shape, acc.element, f"dims = {order}")
    return w.like("add", product, acc)


TABLE: dict[str, Translate] = {
    **integers.TABLE,
    **packing.TABLE,
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_CONVERSIONS, _convert),
    "arith.bitcast": _bits,
    "arith.constant": _constant,
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast,
    "arith.select": _select,
    "math.erf": _erf,
    "math.exp2": _exp2,
    "math.isfinite": _isfinite,
    "math.isinf": _isinf,
    "math.isnan": _isnan,
    "math.log2": _log2,
    "math.trunc": _trunc,
    "tpu.assume_multiple": _index_cast,
    "tpu.concatenate": _concatenate,
    "tpu.repeat": _repeat,
    "tpu.dynamic_gather": _dynamic_gather,
    "tpu.dynamic_rotate": _rotate,
    "tpu.iota": _iota,
    "tpu.matmul": _matmul,
    "tpu.reciprocal": _reciprocal,
    "tpu.reduce_index": _place,
    "tpu.reshape": _reshape,
    "tpu.transpose": _transpose,
    "tpu.weird": _weird,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.extract_strided_slice": _strided_slice,
    "vector.multi_reduction": _reduction,
    "vector.shape_cast": _reshape,
    "vector.transpose": _transpose,
}
"""By operation, what writes its one result."""
