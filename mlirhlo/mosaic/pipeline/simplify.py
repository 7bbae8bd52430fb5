"""Canonicalisation between stages: constants at the top, folds, common subexpressions, dead code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import (
    functions_of,
    replace,
)
from mlirhlo.mosaic.pipeline.constants import fold_constants
from mlirhlo.mosaic.pipeline.control import simplify_control
from mlirhlo.mosaic.pipeline.folds import FOLDS, unmask_store, unroll_rolled

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
        "memref.cast",
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
        "tpu.reduce_index",
        "tpu.dynamic_rotate",
        "tpu.dynamic_gather",
        "tpu.gather",
        "tpu.sublane_shuffle",
        "tpu.create_mask",
        "tpu.create_subelement_mask",
        "tpu.mask_cast",
        "tpu.pack_vmsk",
        "tpu.assume_layout",
        "tpu.pack_elementwise",
        "tpu.unpack_elementwise",
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
LOADS = frozenset({"vector.load", "tpu.vector_load", "tpu.load", "memref.load"})
"""Operations that read memory: dead when unused, merged where nothing is written between them."""


def simplify(module: ModuleOp) -> None:
    """Folds and removes until nothing changes, then merges what is equal.

    Constants that are there go to the front before those that folds make, as in MLIR's driver. What
    merging makes foldable stays, as with the compiler.
    """
    for function in functions_of(module):
        _hoist_constants(function)
        changed = True
        while changed:
            changed = _fold_all(function)
            changed |= simplify_control(function)
            changed |= _remove_dead(function)
        _merge(function.regions[0].blocks[0], {})
        _remove_empty_else(function)
        _hoist_constants(function)


def is_pure(op: Operation) -> bool:
    """Whether the operation only computes its results."""
    name = name_of(op)
    return name.startswith(_PURE_DIALECTS) or name in _PURE


def _fold_all(function: Operation) -> bool:
    changed = False
    for op in list(function.walk()):
        fold = FOLDS.get(name_of(op))
        if op.parent is not None:
            found = fold_constants(op) if _is_foldable(op) else None
            if found is None and fold is not None:
                found = fold(op)
            if found is not None:
                replace(op, [found])
                changed = True
            elif name_of(op) == "tpu.unroll_vectors":
                changed |= unroll_rolled(op)
            elif name_of(op) == "vector.maskedstore":
                changed |= unmask_store(op)
    return changed


def _is_foldable(op: Operation) -> bool:
    name = name_of(op)
    return name.startswith(_PURE_DIALECTS) or name == "tpu.extf"


def _key(op: Operation) -> object:
    return (
        name_of(op),
        tuple(op.operands),
        tuple(result.type for result in op.results),
        tuple(sorted(op.properties.items())),
        tuple(sorted((k, v) for k, v in op.attributes.items() if k != "in_layout")),
    )


def _merge(block: Block, known: dict[object, Operation]) -> None:
    """Uses the first of equal operations, also in the regions under it; loads between two writes."""
    inner, loaded = dict(known), dict[object, Operation]()
    for op in list(block.ops):
        is_load = name_of(op) in LOADS
        if (is_load or is_pure(op)) and not op.regions:
            table = loaded if is_load else inner
            first = table.setdefault(_key(op), op)
            if first is not op:
                replace(op, first.results)
            continue
        loaded.clear()
        for region in op.regions:
            for nested in region.blocks:
                _merge(nested, inner)


def _remove_dead(function: Operation) -> bool:
    changed = False
    for op in list(function.walk(reverse=True)):
        if op.parent is None or not op.results or any(result.first_use for result in op.results):
            continue
        if is_pure(op) or name_of(op) in LOADS:
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
    for op in [op for op in function.walk() if name_of(op) == "arith.constant"]:
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
