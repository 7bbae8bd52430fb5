"""What XLA checks and fills in when it makes an instruction, opcode by opcode.

These are only the checks of the parser (HLO text, "Opcodes" and "Diagnostics"); types and shapes
are the verifier's. A check gets operands, result type and properties, may complete the properties,
and raises `Misfit`; whoever called it knows the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import (
    bool_of,
    int_of,
    integers,
    ints,
    str_of,
    symbols_of,
)
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.header import BooleansAttr
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, compatible, leaves
from mlirhlo.dialects.hlo.table import Arity
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.hlo_text.reader_async import check_async_start, check_async_user
from mlirhlo.formats.hlo_text.reader_problems import (
    INSTRUCTION,
    MISSING_ATTRIBUTE,
    OPERAND_COUNT,
    UNKNOWN_ATTRIBUTE,
    Misfit,
)
from mlirhlo.formats.hlo_text.reader_state import Check, ModuleState

Values = Sequence[SSAValue]
Properties = dict[str, Attribute]
Type = Attribute | None

OPTIONAL_AFTER_ALL = frozenset({("broadcast", "dimensions")})
"""Required by the table, but a check says better when it may be left out."""

NO_GROUPS = ReplicaGroupsAttr(ReplicaGroups())


def _rank(value: SSAValue) -> int:
    shape = shape_of(value.type)
    return shape.rank if isinstance(shape, ArrayShape) else 0


def _even(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if len(values) % 2 or not values:
        raise Misfit(
            OPERAND_COUNT, f"expects an even number of operands, but has {len(values)} operands"
        )


def _odd(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if len(values) % 2 == 0:
        raise Misfit(
            OPERAND_COUNT, f"expects an odd number of operands, but has {len(values)} operands"
        )


def _compare(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    written = properties.get("type")
    if written is None:
        return
    shape = shape_of(values[0].type)
    if not isinstance(shape, ArrayShape):
        return
    element = shape.element_type
    default = "FLOAT" if element.is_float or element.is_complex else "SIGNED"
    if element.is_unsigned or element is PRED:
        default = "UNSIGNED"
    if str_of(written) == default:
        del properties["type"]


def _one_dimension(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    found = ints(properties.get("dimensions"))
    if len(found) != 1:
        raise Misfit(INSTRUCTION, f"expects one dimension in dimensions=, but has {len(found)}")


def _groups(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    properties.setdefault("replica_groups", NO_GROUPS)


def _all_gather(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    _groups(state, values, type_, properties)
    _one_dimension(state, values, type_, properties)
    _global_ids(state, values, type_, properties)


def _global_ids(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if bool_of(properties.get("use_global_device_ids")) and "channel_id" not in properties:
        raise Misfit(INSTRUCTION, "Cannot have use_global_device_ids=true without channel_id")


def _all_reduce(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    _groups(state, values, type_, properties)
    _global_ids(state, values, type_, properties)


def _reduce_scatter(
    state: ModuleState, values: Values, type_: Type, properties: Properties
) -> None:
    _all_gather(state, values, type_, properties)


def _all_to_all(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    _groups(state, values, type_, properties)
    if "dimensions" in properties:
        _one_dimension(state, values, type_, properties)


def _collective_permute(
    state: ModuleState, values: Values, type_: Type, properties: Properties
) -> None:
    if "slice_sizes" in properties and len(values) != 4:
        raise Misfit(
            OPERAND_COUNT,
            "CollectivePermute and CollectivePermuteStart must have exactly four operands for"
            " dynamic-slice and in-place update.",
        )


def _broadcast(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if "dimensions" not in properties:
        if _rank(values[0]):
            raise Misfit(MISSING_ATTRIBUTE, "attribute dimensions is expected but not seen")
        properties["dimensions"] = integers(())


def _map(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if not values:
        raise Misfit(OPERAND_COUNT, "Expected at least one operand.")
    if "dimensions" not in properties:
        properties["dimensions"] = integers(tuple(range(_rank(values[0]))))


def _dynamic_slice(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if not values:
        raise Misfit(OPERAND_COUNT, "Expected at least one operand.")
    _start_indices(values, 1)


def _dynamic_update_slice(
    state: ModuleState, values: Values, type_: Type, properties: Properties
) -> None:
    if len(values) < 2:
        raise Misfit(OPERAND_COUNT, "Expected at least two operands.")
    _start_indices(values, 2)


def _start_indices(values: Values, first: int) -> None:
    """One scalar for each dimension, or one vector."""
    count = len(values) - first
    if count != _rank(values[0]) and not (count == 1 and _rank(values[first]) == 1):
        raise Misfit(
            OPERAND_COUNT,
            "Wrong number of operands.",
            help=f"give {_rank(values[0])} start indices, or one vector of them",
        )


def _dot(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    # Scales, and in former versions the places of sparse elements, are further operands.
    more = "block_scaling_config" in properties or "raw_attributes" in properties
    if len(values) != 2 and not (len(values) > 2 and more):
        raise Misfit(OPERAND_COUNT, f"expects 2 operands, but has {len(values)} operands")


def _conditional(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if not values:
        raise Misfit(OPERAND_COUNT, "conditional expects a predicate or branch index as operand 0")
    shape = shape_of(values[0].type)
    is_pred = isinstance(shape, ArrayShape) and shape.element_type is PRED
    wanted = ("true_computation", "false_computation") if is_pred else ("branch_computations",)
    for key in ("true_computation", "false_computation", "branch_computations"):
        if key in wanted and key not in properties:
            raise Misfit(MISSING_ATTRIBUTE, f"attribute {key} is expected but not seen")
        if key not in wanted and key in properties:
            raise Misfit(
                UNKNOWN_ATTRIBUTE,
                f'unexpected attribute "{key}" of a conditional on {shape.to_string(layout=False)}.'
                f" Allowed attributes: {', '.join(sorted(wanted))}",
            )
    branches = 2 if is_pred else len(symbols_of(properties["branch_computations"]))
    if not branches or len(values) != branches + 1:
        raise Misfit(
            OPERAND_COUNT,
            f"conditional with {branches} branches expects {branches + 1} operands,"
            f" but has {len(values)} operands",
        )


def _custom_call(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    callee = properties.pop("to_apply", None)
    if callee is not None and "called_computations" not in properties:
        properties["called_computations"] = ArrayAttr([callee])
    if properties.get("called_computations") == _NOTHING:
        del properties["called_computations"]
    constraints = properties.get("operand_layout_constraints")
    if constraints is None:
        return
    types = cast("ArrayAttr[Attribute]", constraints).data
    if len(types) != len(values):
        raise Misfit(
            INSTRUCTION, f"Expected {len(values)} operand layout constraints, {len(types)} given"
        )
    for index, (wanted, value) in enumerate(zip(types, values, strict=True)):
        a, b = shape_of(wanted), shape_of(value.type)
        if a is not b and not compatible(a, b):
            raise Misfit(
                INSTRUCTION,
                f"Operand layout constraint shape {a} for operand {index} is not compatible with"
                f" operand shape {b}",
            )


_NOTHING = ArrayAttr[Attribute]([])


def _tuple(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if type_ is None:
        return
    shape = shape_of(type_)
    if not isinstance(shape, TupleShape):
        raise Misfit(INSTRUCTION, f"a tuple's shape is a tuple, not {shape}")
    if len(shape.elements) != len(values):
        raise Misfit(
            OPERAND_COUNT,
            f"expects {len(shape.elements)} operands, but has {len(values)} operands",
        )


def _outfeed(state: ModuleState, values: Values, type_: Type, properties: Properties) -> None:
    if "outfeed_shape" not in properties:
        properties["outfeed_shape"] = type_of(shape_of(values[0].type))


def _channel_of_operand(
    state: ModuleState, values: Values, type_: Type, properties: Properties
) -> None:
    owner = values[0].owner
    if not isinstance(owner, Instruction) or owner.opcode.name not in ("send", "recv"):
        return
    ours, theirs = properties.get("channel_id"), owner.properties.get("channel_id")
    if int_of(ours, -1) != int_of(theirs, -1):
        shown = ["none" if c is None else str(int_of(c)) for c in (ours, theirs)]
        raise Misfit(
            INSTRUCTION, f"channel_id {shown[0]} is not that of the operand, which is {shown[1]}"
        )


def _ragged_all_to_all(
    state: ModuleState, values: Values, type_: Type, properties: Properties
) -> None:
    _groups(state, values, type_, properties)


def check_replication(type_: Attribute, properties: Properties) -> None:
    """A parameter's replication flags: one for each leaf. Raises `Misfit`."""
    flags = properties.get("parameter_replication")
    if flags is None:
        return
    given, wanted = (
        len(cast(BooleansAttr, flags).data.values),
        sum(1 for _ in leaves(shape_of(type_))),
    )
    if given != wanted:
        raise Misfit(
            INSTRUCTION,
            f"parameter has {wanted} leaf buffers, but parameter_replication has {given} elements.",
        )


CHECKS: Mapping[str | Arity, Check] = {
    Arity.EVEN: _even,
    Arity.ODD: _odd,
    "all-gather": _all_gather,
    "all-gather-start": _all_gather,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "all-to-all": _all_to_all,
    "async-done": check_async_user,
    "async-start": check_async_start,
    "async-update": check_async_user,
    "broadcast": _broadcast,
    "collective-broadcast": _groups,
    "collective-permute": _collective_permute,
    "collective-permute-start": _collective_permute,
    "collective-reduce": _all_reduce,
    "compare": _compare,
    "concatenate": _one_dimension,
    "conditional": _conditional,
    "convolution": _dot,
    "custom-call": _custom_call,
    "dot": _dot,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "get-dimension-size": _one_dimension,
    "map": _map,
    "outfeed": _outfeed,
    "ragged-all-to-all": _ragged_all_to_all,
    "recv-done": _channel_of_operand,
    "reduce-scatter": _reduce_scatter,
    "scan": _one_dimension,
    "send-done": _channel_of_operand,
    "set-dimension-size": _one_dimension,
    "sort": _one_dimension,
    "tuple": _tuple,
}
"""By opcode, or for opcodes without a check of their own by arity."""
