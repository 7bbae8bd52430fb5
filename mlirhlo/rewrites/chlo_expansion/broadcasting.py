"""`chlo.broadcast_*`: the operands brought to one shape, then the plain op. Static shapes."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.chlo import ROWS
from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.rewrites.chlo_expansion.emitter import Emitter, Value
from mlirhlo.rewrites.chlo_expansion.functions import EXPANSIONS
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import numbers_of
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

PLAIN: Mapping[str, str] = {
    name: f"stablehlo.{plain}" if f"stablehlo.{plain}" in OP_CLASSES else f"chlo.{plain}"
    for name in ROWS
    if (plain := name.removeprefix("chlo.broadcast_")) != name
}
"""The op of equal shapes that each broadcasting op is."""


def common_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Numpy's rule: aligned at the end, size 1 grows. Raises `ValueError`."""
    rank = max(map(len, shapes))
    found = [1] * rank
    for shape in shapes:
        for dim, size in enumerate(shape, rank - len(shape)):
            if size != 1 and found[dim] not in (1, size):
                raise ValueError(f"sizes {found[dim]} and {size} of dimension {dim} differ")
            if size != 1:
                found[dim] = size
    return tuple(found)


def expand_broadcast(op: Operation, plain: str) -> SSAValue:
    """The value of a broadcasting op. Raises `HloError` HLO0425."""
    emitter = Emitter(op)
    operands = [emitter.value(v) for v in op.operands]
    shapes = [tuple(v.type.get_shape()) for v in operands]
    if any(DYNAMIC_INDEX in shape for shape in shapes):
        raise problem(
            "HLO0425",
            op,
            "operands of unknown size cannot be broadcast",
            "refine the program's shapes first (stablehlo-refine-shapes)",
        )
    explicit = op.properties.get("broadcast_dimensions")
    try:
        shape = common_shape(shapes)
    except ValueError as found:
        if explicit is None:
            raise problem("HLO0425", op, f"{found}") from None
        shape = max(shapes, key=len)
    values = [_spread(v, shape, explicit) for v in operands]
    properties = {k: v for k, v in op.properties.items() if k != "broadcast_dimensions"}
    if plain.startswith("chlo."):
        return EXPANSIONS[plain](*values).ssa
    made = OP_CLASSES[plain].create(
        operands=[v.ssa for v in values],
        result_types=[r.type for r in op.results],
        properties=properties,
    )
    made.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    return made.results[0]


def _spread(value: Value, shape: tuple[int, ...], explicit: Attribute | None) -> Value:
    given = tuple(value.type.get_shape())
    if given == shape:
        return value
    first = len(shape) - len(given)
    dimensions = tuple(range(first, len(shape)))
    if explicit is not None and len(given) < len(shape) and given:
        dimensions = numbers_of(explicit)
    type_ = TensorType(value.type.element_type, shape)
    properties: dict[str, Attribute] = {"broadcast_dimensions": integers(dimensions)}
    result = value.emitter.op("broadcast_in_dim", (value,), type_, properties)
    return result if result.type == type_ else Value(value.emitter, result.ssa)
