"""VHLO to StableHLO, one operation at a time; older versions are upgraded on the way.

An attribute that an older version lacks is at its default, so that every version of an operation
becomes the same StableHLO.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.formats.vhlo import mapping
from mlirhlo.formats.vhlo.table import VhloOp

FUNC_OPS = {"func": "func.func", "call": "func.call"}
"""Operations of the func dialect that VHLO has copies of; `return` depends on where it stands."""


def target_name(opcode: str, *, in_function: bool) -> str:
    """The StableHLO (or func) name of an operation of VHLO."""
    if opcode == "return":
        return "func.return" if in_function else "stablehlo.return"
    return FUNC_OPS.get(opcode) or f"stablehlo.{opcode}"


def convert_attributes(op: VhloOp, given: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Properties from the attributes of an operation. Raises `mapping.Unsuitable`."""
    opcode = op.opcode
    values = dict(given)
    found: dict[str, Attribute] = {}
    group = mapping.GROUPS.get(opcode)
    if group is not None:
        found[group.property] = _structure(group, values)
    if opcode == "dot_general":
        algorithm = mapping.algorithm_of(values)
        for name in mapping.ALGORITHM_FIELDS:
            values.pop(name, None)
        if algorithm is not None:
            found["algorithm"] = algorithm
    for name, value in values.items():
        if mapping.is_default(opcode, name, value):
            continue
        if opcode == "dynamic_conv" and name == "padding":
            raise mapping.Unsuitable(
                "dynamic_conv has padding both as an operand and as an attribute"
            )
        if name == "channel_id":
            handle = stablehlo.ChannelHandle(mapping.number_of(value), mapping.LOST_CHANNEL_TYPE)
            found["channel_handle"] = stablehlo.ChannelHandleAttr(handle)
        elif name == "use_global_device_ids":
            found[name] = mapping.UNIT
        else:
            found[name] = mapping.to_plain(name, value)
    return dict(sorted(found.items()))


def _structure(group: mapping.Group, values: dict[str, Attribute]) -> Attribute:
    fields: dict[str, int | tuple[int, ...]] = {}
    for name, is_list in group.fields:
        value = values.pop(name, None)
        if value is None:
            if "batching" not in name:
                raise mapping.Unsuitable(f"the attribute '{name}' is missing")
            continue
        own = mapping.RENAMED.get(name, name)
        fields[own] = mapping.integers_of(value) if is_list else mapping.number_of(value)
    return group.cls(group.cls.value_class(**fields))
