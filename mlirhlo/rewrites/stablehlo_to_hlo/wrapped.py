"""Ops and custom calls `mhlo.NAME` that stand for CHLO's: how older front ends say what StableHLO
cannot.

XLA's importer takes those of CHLO's ops that have a `mhlo.attributes`; all others stay custom
calls. Source: the behaviour of jaxlib 0.10.2; torch_xla writes `erf` so.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.chlo import OP_CLASSES

_OPS: Mapping[str, str] = {
    f"mhlo.{name}": f"chlo.{name}"
    for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")
} | {"mhlo.topk": "chlo.top_k"}


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
        _replace(op, _OPS[_named(op)])
    for op in named:
        _put(op, _OPS[op.name], {}, dict(op.attributes))


def _named(op: Operation) -> str:
    """The target where it stands for an op; empty otherwise."""
    target = op.properties.get("call_target_name")
    attributes = op.attributes.get("mhlo.attributes")
    if not isinstance(target, StringAttr) or not isinstance(attributes, DictionaryAttr):
        return ""
    largest = attributes.data.get("largest")
    if isinstance(largest, IntegerAttr) and not largest.value.data:
        return ""  # chlo.top_k has the largest only
    if target.data == "mhlo.topk" and "k" not in attributes.data:
        return ""
    return target.data if target.data in _OPS else ""


def _replace(op: Operation, name: str) -> None:
    attributes = op.attributes["mhlo.attributes"]
    assert isinstance(attributes, DictionaryAttr)
    kept = {k: v for k, v in op.attributes.items() if not k.startswith("mhlo.")}
    _put(op, name, {k: v for k, v in attributes.data.items() if k != "largest"}, kept)


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
        old.replace_all_uses_with(replacement)
    block.erase_op(op)
