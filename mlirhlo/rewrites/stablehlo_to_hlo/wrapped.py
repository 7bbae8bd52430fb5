"""Ops and custom calls `mhlo.NAME`, and calls `chlo.ragged_dot`, that stand for CHLO's ops: how older
front ends say what StableHLO cannot.

XLA's importer takes those of CHLO's ops that have a `mhlo.attributes`; all others stay custom
calls. Source: the behaviour of jaxlib 0.10.2; torch_xla writes `erf` so, and jaxlib 0.5 to 0.8 what
`jax.export` makes of `ragged_dot` for accelerators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.chlo import OP_CLASSES
from mlirhlo.dialects.chlo.attributes import (
    PrecisionAttr,
    RaggedDotDimensionNumbers,
    RaggedDotDimensionNumbersAttr,
)
from mlirhlo.dialects.mhlo import ROWS as MHLO_ROWS
from mlirhlo.dialects.quick import replace
from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import numbers_of

_OPS: Mapping[str, str] = {
    **{name: chlo for name in MHLO_ROWS if (chlo := name.replace("mhlo.", "chlo.")) in OP_CLASSES},
    "mhlo.tan": "chlo.tan",
    "mhlo.topk": "chlo.top_k",
}

_RAGGED_DOT = "chlo.ragged_dot"


def unwrap(module: ModuleOp) -> None:
    """Replaces such calls and ops by CHLO's, in place."""
    found: list[Operation] = []
    named: list[Operation] = []
    for op in module.walk():
        if op.name == "stablehlo.custom_call" and _named(op):
            found.append(op)
        elif op.name in _OPS and op.name != "mhlo.topk":  # topk may be of the smallest
            named.append(op)
    for op in found:
        _replace(op, _named(op))
    for op in named:
        _put(op, _OPS[op.name], {}, dict(op.attributes))


def _named(op: Operation) -> str:
    """The op that a call stands for; empty where it is no such call."""
    target = op.properties.get("call_target_name")
    attributes = op.attributes.get("mhlo.attributes")
    if not isinstance(target, StringAttr) or not isinstance(attributes, DictionaryAttr):
        return ""
    largest = attributes.data.get("largest")
    if isinstance(largest, IntegerAttr) and not largest.value.data:
        return ""  # chlo.top_k has the largest only
    if target.data == "mhlo.topk" and "k" not in attributes.data:
        return ""
    if target.data == _RAGGED_DOT:
        return _RAGGED_DOT if _ragged_dot(attributes) is not None else ""
    return _OPS.get(target.data, "")


def _ragged_dot(attributes: DictionaryAttr) -> dict[str, Attribute] | None:
    """`ragged_dot_dimension_numbers`, a list of six dense lists in the order of the attribute's fields, and
    `precision_config`, a list of names, as attributes of CHLO; None where they are something else."""
    lists = attributes.data.get("ragged_dot_dimension_numbers")
    if not isinstance(lists, ArrayAttr):
        return None
    parts = cast("ArrayAttr[Attribute]", lists).data
    if len(parts) != len(fields(RaggedDotDimensionNumbers)) or not all(
        isinstance(part, DenseAttr) for part in parts
    ):
        return None
    found: dict[str, Attribute] = {
        "ragged_dot_dimension_numbers": RaggedDotDimensionNumbersAttr(
            RaggedDotDimensionNumbers(*map(numbers_of, parts))
        )
    }
    names = attributes.data.get("precision_config")
    if isinstance(names, ArrayAttr):
        words = cast("ArrayAttr[Attribute]", names).data
        if not all(isinstance(w, StringAttr) and w.data in PrecisionAttr.cases for w in words):
            return None
        found["precision_config"] = ArrayAttr(
            [PrecisionAttr(cast(StringAttr, word).data) for word in words]
        )
    return found


def _replace(op: Operation, name: str) -> None:
    attributes = op.attributes["mhlo.attributes"]
    assert isinstance(attributes, DictionaryAttr)
    kept = {k: v for k, v in op.attributes.items() if not k.startswith("mhlo.")}
    properties = _ragged_dot(attributes) if name == _RAGGED_DOT else None
    if properties is None:
        properties = {k: v for k, v in attributes.data.items() if k != "largest"}
    _put(op, name, properties, kept)


def _put(
    op: Operation,
    name: str,
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
) -> None:
    new = OP_CLASSES[name].create(
        operands=op.operands,
        result_types=[result.type for result in op.results],
        properties=properties,
        attributes=attributes,
    )
    new.location = op.location
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(new, op)
    for old, replacement in zip(op.results, new.results, strict=True):
        replace(old, replacement)
    block.erase_op(op)
