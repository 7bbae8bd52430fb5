"""Canonicalisation between stages: constants at the top, folds, common subexpressions, dead code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.mosaic.attributes import attribute_of, integer_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    functions_of,
    insert,
    is_vector,
    replace,
)
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_PURE_DIALECTS = ("arith.", "math.")
_PURE = frozenset(
    {
        "vector.broadcast",
        "vector.shape_cast",
        "vector.transpose",
        "vector.extract",
        "vector.extract_strided_slice",
        "vector.multi_reduction",
        "vector.bitcast",
        "vector.contract",
        "memref.dim",
        "tpu.reshape",
        "tpu.transpose",
        "tpu.iota",
        "tpu.concatenate",
        "tpu.bitcast",
        "tpu.bitcast_vreg",
        "tpu.reduce",
        "tpu.extf",
        "tpu.truncf",
        "tpu.sitofp",
        "tpu.uitofp",
        "tpu.fptosi",
        "tpu.fptoui",
        "tpu.matmul",
        "tpu.reciprocal",
        "tpu.logistic",
        "tpu.weird",
        "tpu.roll_vectors",
        "tpu.unroll_vectors",
        "tpu.pack_subelements",
        "tpu.unpack_subelements",
        "tpu.all_reduce",
        "tpu.memref_slice",
        "tpu.memref_squeeze",
        "tpu.memref_reshape",
        "tpu.memref_bitcast",
        "tpu.reinterpret_cast",
        "tpu.erase_memref_layout",
        "tpu.assume_multiple",
        "mosaic_tc.relayout",
    }
)
"""Operations that only compute their results."""
_LOADS = frozenset({"vector.load", "tpu.vector_load", "tpu.load", "memref.load"})
"""Operations that read memory: dead when unused, never merged."""
_RESHAPES = ("vector.shape_cast", "tpu.reshape")


def simplify(module: ModuleOp) -> None:
    """Folds, merges and removes until nothing changes."""
    for function in functions_of(module):
        changed = True
        while changed:
            changed = _fold_all(function)
            changed |= _merge(function.regions[0].blocks[0], {})
            changed |= _remove_dead(function)
        _remove_empty_else(function)
        _hoist_constants(function)


def is_pure(op: Operation) -> bool:
    """Whether the operation only computes its results."""
    name = name_of(op)
    return name.startswith(_PURE_DIALECTS) or name in _PURE


def _fold_all(function: Operation) -> bool:
    changed = False
    for op in list(function.walk()):
        fold = _FOLDS.get(name_of(op))
        if fold is not None and op.parent is not None:
            found = fold(op)
            if found is not None:
                replace(op, [found])
                changed = True
    return changed


def _fold_condition(op: Operation) -> SSAValue | None:
    """`cmpi ne (extui x), 0 => x`"""
    source = op.operands[0].owner
    if integer_of(op, "predicate") != 1 or constant_of(op.operands[1]) != 0:
        return None
    if not isinstance(source, Operation) or name_of(source) != "arith.extui":
        return None
    bit = source.operands[0]
    return bit if bit.type == op.results[0].type else None


def _fold_integers(op: Operation) -> SSAValue | None:
    """Sums and products of known integers."""
    type_ = op.results[0].type
    left, right = (constant_of(operand) for operand in op.operands)
    if is_vector(type_) or left is None or right is None:
        return None
    value = {
        "arith.addi": left + right,
        "arith.subi": left - right,
        "arith.muli": left * right,
    }[name_of(op)]
    if not -(1 << 31) <= value < 1 << 31:
        return None
    new = build(
        "arith.constant", (), (type_,), {"value": IntegerAttr(value, cast("Any", type_))}, op
    )
    return insert(new, op).results[0]


def _fold_index_cast(op: Operation) -> SSAValue | None:
    """The cast of a known integer."""
    known, type_ = constant_of(op.operands[0]), op.results[0].type
    source = op.operands[0].owner
    if known is None or is_vector(type_):
        return None
    if isinstance(source, Operation) and name_of(source) != "arith.constant":
        return None
    new = build(
        "arith.constant", (), (type_,), {"value": IntegerAttr(known, cast("Any", type_))}, op
    )
    return insert(new, op).results[0]


def _fold_broadcast(op: Operation) -> SSAValue | None:
    """The broadcast of a constant is a splat; one of leading ones added is one of less."""
    source, type_ = op.operands[0].owner, op.results[0].type
    if op.operands[0].type == type_:
        return op.operands[0]
    if not isinstance(source, Operation):
        return None
    if name_of(source) == "arith.constant":
        value = splat(attribute_of(source, "value"), type_)
        if value is not None:
            new = build("arith.constant", (), (type_,), {"value": value}, op)
            return insert(new, op).results[0]
    if name_of(source) == "vector.shape_cast":
        before, after = shape_in(source.operands[0].type), shape_in(source.results[0].type)
        if before and after == (1,) * (len(after) - len(before)) + before:
            new = build("vector.broadcast", source.operands, (type_,), None, op)
            return insert(new, op).results[0]
    return None


def splat(value: Attribute | None, type_: Attribute) -> Attribute | None:
    """The dense attribute with one value everywhere; None where `value` is none."""
    from xdsl.dialects.builtin import FloatAttr

    if isinstance(value, IntegerAttr | FloatAttr):
        number: Any = cast("Any", value).value.data
        element = cast("Any", type_).element_type
        if str(element) == "index":
            return None
        if isinstance(value, IntegerAttr):
            text = str(number)
            if str(element) == "i1":
                text = "true" if number else "false"
            return attribute(f"dense<{text}> : {type_}")
        return attribute(f"dense<{_float(cast('Any', value))}> : {type_}")
    if isinstance(value, DenseAttr | DenseIntOrFPElementsAttr):
        inner = str(cast("Attribute", value))
        text = inner[inner.index("<") + 1 : inner.rindex(">", 0, inner.rindex(" : "))]
        return attribute(f"dense<{text}> : {type_}") if "[" not in text else None
    return None


def _float(value: Any) -> str:
    return str(value).rpartition(" : ")[0] or str(value)


def _fold_reshape(op: Operation) -> SSAValue | None:
    """Reshapes of reshapes are one; to the same type, none."""
    source, type_ = op.operands[0].owner, op.results[0].type
    if op.operands[0].type == type_:
        return op.operands[0]
    if not isinstance(source, Operation):
        return None
    if name_of(source) == "arith.constant":
        value = splat(attribute_of(source, "value"), type_)
        if value is not None:
            new = build("arith.constant", (), (type_,), {"value": value}, op)
            return insert(new, op).results[0]
    if name_of(source) in _RESHAPES:
        if source.operands[0].type == type_:
            return source.operands[0]
        new = build(name_of(op), (source.operands[0],), (type_,), None, op)
        return insert(new, op).results[0]
    return None


def _fold_registers(op: Operation) -> SSAValue | None:
    """`unroll_vectors (roll_vectors x) => x`, where it has one register and one layout."""
    source = op.operands[0].owner
    if not isinstance(source, Operation) or name_of(source) != "tpu.roll_vectors":
        return None
    if len(op.results) != 1 or len(source.operands) != 1:
        return None
    if source.attributes.get("out_layout") != op.attributes.get("in_layout"):
        return None
    return source.operands[0]


_FOLDS: dict[str, Callable[[Operation], SSAValue | None]] = {
    "arith.cmpi": _fold_condition,
    "arith.addi": _fold_integers,
    "arith.subi": _fold_integers,
    "arith.muli": _fold_integers,
    "arith.index_cast": _fold_index_cast,
    "vector.broadcast": _fold_broadcast,
    "vector.shape_cast": _fold_reshape,
    "tpu.reshape": _fold_reshape,
    "tpu.unroll_vectors": _fold_registers,
}


def _key(op: Operation) -> object:
    return (
        name_of(op),
        tuple(op.operands),
        tuple(result.type for result in op.results),
        tuple(sorted(op.properties.items())),
        tuple(sorted((k, v) for k, v in op.attributes.items() if k != "in_layout")),
    )


def _merge(block: Block, known: dict[object, Operation]) -> bool:
    """Uses the first of equal operations, also in the regions under it."""
    changed = False
    inner = dict(known)
    for op in list(block.ops):
        if is_pure(op) and not op.regions:
            key = _key(op)
            first = inner.get(key)
            if first is not None:
                replace(op, first.results)
                changed = True
                continue
            inner[key] = op
        for region in op.regions:
            for nested in region.blocks:
                changed |= _merge(nested, inner)
    return changed


def _remove_dead(function: Operation) -> bool:
    changed = False
    for op in list(function.walk(reverse=True)):
        if op.parent is None or not op.results or any(result.first_use for result in op.results):
            continue
        if is_pure(op) or name_of(op) in _LOADS:
            Rewriter.erase_op(op)
            changed = True
    return changed


def _remove_empty_else(function: Operation) -> None:
    """An `else` that does nothing has no block."""
    for op in function.walk():
        if name_of(op) == "scf.if" and not op.results and op.regions[1].blocks:
            block = op.regions[1].blocks[0]
            if block.first_op is block.last_op:
                op.regions[1].detach_block(block)
                block.erase()


def _hoist_constants(function: Operation) -> None:
    """Puts constants first in their function, one of each."""
    block = function.regions[0].blocks[0]
    found: dict[object, Operation] = {}
    constants = [op for op in function.walk() if name_of(op) == "arith.constant"]
    for op in constants:
        first = found.setdefault(_key(op), op)
        if first is not op:
            replace(op, first.results)
    standing: set[Operation] = set()
    for op in block.ops:
        if name_of(op) != "arith.constant":
            break
        standing.add(op)
    # Each goes to the front, as in MLIR's folder: the first one found stands last.
    for op in found.values():
        if op in standing:
            continue
        block_of = op.parent_block()
        assert block_of is not None
        block_of.detach_op(op)
        first_op = block.first_op
        if first_op is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, first_op)
