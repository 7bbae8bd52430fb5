"""What becomes of each op on quantized values.

Ops that only move elements, and those with regions, take and return what is stored. Sums, matrix
products and convolutions are integer arithmetic. All others are done on the dequantized numbers,
and what they give is quantized again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute

from mlirhlo.dialects.hlo.table import OPCODES, Movement
from mlirhlo.dialects.quick import replace
from mlirhlo.dialects.stablehlo import ROWS
from mlirhlo.dialects.stablehlo.elements import array_of, dense
from mlirhlo.dialects.stablehlo.types import UniformQuantization
from mlirhlo.rewrites.chlo_expansion.emitter import Emitter, Value
from mlirhlo.rewrites.stablehlo_quant_to_math import arithmetic, products
from mlirhlo.rewrites.stablehlo_quant_to_math.types import (
    is_float,
    quantization_of,
    same_meaning,
    storage_type,
    with_element,
)
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

Quantizations: TypeAlias = "Mapping[SSAValue, UniformQuantization]"

MOVES = frozenset(name for name, row in ROWS.items() if "moves" in row.traits)
"""Ops that are the same on what is stored."""

_ORDERED = frozenset(
    row.stablehlo
    for row in OPCODES.values()
    if row.exact and (row.idempotent or row.movement is Movement.SELECT)
)
"""Ops that are the same on what is stored when all of it means the same: scales are positive."""


def legalize(module: ModuleOp) -> bool:
    """Rewrites `module` in place; whether it had quantized values. Raises `HloError` HLO0423."""
    listed = list(module.walk())
    # Types of many parts are hashed once, not for each that reads a part.
    types = {id(v.type): v.type for op in listed for v in (*op.operands, *_values(op))}
    quantized = {number for number, type_ in types.items() if storage_type(type_) != type_}
    ops = [op for op in listed if _is_quantized(op, quantized)]
    if not ops:
        return False
    known: dict[SSAValue, UniformQuantization] = {}
    for op in ops:
        for value in _values(op):
            found = quantization_of(value.type)
            if found is not None:
                if not is_float(found.expressed_type):
                    raise _unsupported(op, f"{found.expressed_type} cannot be quantized")
                known[value] = found
    work = [(op, _handler(op, known)) for op in ops]
    # Types change before ops do, so that whatever is emitted sees what is stored.
    for op in ops:
        _store(op)
    for op, handler in work:
        if handler is not None:
            _check_sizes(op)
            _replace(op, handler(op, known), known)
    return True


def _is_quantized(op: Operation, types: set[int]) -> bool:
    """Whether it has quantized values; `types`: ids of the types of such."""
    if isinstance(op, FuncOp) and storage_type(op.function_type) != op.function_type:
        return True
    return any(id(value.type) in types for value in (*op.operands, *_values(op)))


def _values(op: Operation) -> list[SSAValue]:
    """Values that `op` and the blocks of its regions define."""
    found: list[SSAValue] = list(op.results)
    for region in op.regions:
        for block in region.blocks:
            found += block.args
    return found


def _store(op: Operation) -> None:
    """Gives `op` and what it defines types of what is stored."""
    for value in _values(op):
        value._type = storage_type(value.type)  # pyright: ignore[reportPrivateUsage]
    for key, attribute in op.properties.items():
        if isinstance(attribute, TypeAttribute):
            op.properties[key] = storage_type(attribute)
    if op.name == "stablehlo.constant":
        given = op.properties["value"]
        type_ = op.results[0].type
        if cast(Any, given).type != type_:
            op.properties["value"] = dense(array_of(given), type_)


# -------------------------------------------------------------- which way

Handler: TypeAlias = "Callable[[Operation, Quantizations], Sequence[Value]]"
"""Emits what stands for an op; one value a result."""


def _handler(op: Operation, known: Quantizations) -> Handler | None:
    """What replaces `op`; None where it stays, on what is stored."""
    if not op.name.startswith(("stablehlo.", "chlo.")) or op.name in MOVES or op.regions:
        return None
    given = [known.get(v) for v in op.operands]
    made = [known.get(r) for r in op.results]
    every = (*given, *made)
    if op.name == "stablehlo.uniform_quantize":
        return _uniform_quantize
    if op.name == "stablehlo.uniform_dequantize":
        return _uniform_dequantize
    if op.name == "stablehlo.add" and len(every) == 3:
        left, right, result = every
        if left is not None and right is not None and result is not None:
            if arithmetic.adds_integers((left, right, result)):
                return _add
    if op.name in products.PRODUCTS and products.multiplies_integers(op, every):
        return _product
    if op.name in _ORDERED:
        rest = every[1:] if op.name == "stablehlo.select" else every
        first = rest[0]
        if first is not None and all(q is not None and same_meaning(first, q) for q in rest):
            return None
    return _on_numbers if op.results else None


def _check_sizes(op: Operation) -> None:
    """Raises `HloError` HLO0423 when a size is unknown."""
    for value in (*op.operands, *op.results):
        type_ = value.type
        if isinstance(type_, TensorType) and DYNAMIC_INDEX in type_.get_shape():
            raise _unsupported(
                op,
                f"quantized arithmetic needs known sizes, which {type_} has not",
                "refine the program's shapes first (stablehlo-refine-shapes)",
            )


def _unsupported(op: Operation, message: str, help: str | None = None) -> Exception:
    return problem("HLO0423", op, message, help)


# -------------------------------------------------------------- the ways


def _uniform_quantize(op: Operation, known: Quantizations) -> Sequence[Value]:
    value = Emitter(op).value(op.operands[0])
    source, target = known.get(op.operands[0]), known.get(op.results[0])
    if target is None:
        raise _unsupported(op, "its result is not quantized")
    if source is None:
        return (arithmetic.quantize(value, target),)
    if source.axis is not None and target.axis is not None and source.axis != target.axis:
        return (arithmetic.quantize(arithmetic.dequantize(value, source), target),)
    return (arithmetic.requantize(value, source, target),)


def _uniform_dequantize(op: Operation, known: Quantizations) -> Sequence[Value]:
    source = known.get(op.operands[0])
    if source is None:
        raise _unsupported(op, "its operand is not quantized")
    return (arithmetic.dequantize(Emitter(op).value(op.operands[0]), source),)


def _add(op: Operation, known: Quantizations) -> Sequence[Value]:
    emitter = Emitter(op)
    lhs, rhs = (emitter.value(v) for v in op.operands)
    kinds = (known[op.operands[0]], known[op.operands[1]], known[op.results[0]])
    return (arithmetic.add(lhs, rhs, kinds),)


def _product(op: Operation, known: Quantizations) -> Sequence[Value]:
    emitter = Emitter(op)
    values = [emitter.value(v) for v in op.operands]
    kinds = [known.get(v) for v in (*op.operands, *op.results)]
    return (products.multiply(op, values, kinds),)


def _on_numbers(op: Operation, known: Quantizations) -> Sequence[Value]:
    """Dequantized operands, the op itself, quantized results."""
    emitter = Emitter(op)
    operands: list[SSAValue] = []
    for operand in op.operands:
        source = known.get(operand)
        value = emitter.value(operand)
        operands.append(operand if source is None else arithmetic.dequantize(value, source).ssa)
    types: list[Attribute] = []
    for result in op.results:
        target = known.get(result)
        type_ = cast("TensorType[Attribute]", result.type)
        types.append(type_ if target is None else with_element(type_, target.expressed_type))
    made = type(op).create(
        operands=operands,
        result_types=types,
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    made.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    found: list[Value] = []
    for old, new in zip(op.results, made.results, strict=True):
        target = known.get(old)
        value = emitter.value(new)
        found.append(value if target is None else arithmetic.quantize(value, target))
    return found


def _replace(
    op: Operation, made: Sequence[Value], known: dict[SSAValue, UniformQuantization]
) -> None:
    for result, value in zip(op.results, made, strict=True):
        if result in known:
            known[value.ssa] = known[result]
        replace(result, value.ssa)
    op.detach()
    op.erase()
