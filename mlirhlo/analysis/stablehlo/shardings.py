"""Checks of Shardy's shardings: of ops, arguments and results, and of the ops of `sdy`.

Shardy has no numbered specification; the numbers are ours, the rules those of its verifier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from mlirhlo.analysis.stablehlo.base import ConstraintError, declare
from mlirhlo.analysis.stablehlo.tensors import DYNAMIC, tensor_of
from mlirhlo.dialects.sdy.values import (
    AxisRef,
    Mesh,
    PropagationDirection,
    TensorSharding,
    quoted,
    symbol_text,
)

declare(
    "sdy.sharding",
    c1="the mesh is one of the module",
    c2="there is a dimension sharding for each dimension of the tensor",
    c3="axes are axes of the mesh",
    c4="parts of an axis divide it, and are neither all of it nor of size 1",
    c5="no axis stands twice, and no two parts overlap",
    c6="parts that follow each other are written as one",
    c7="replicated and unreduced axes are in the order of the mesh",
    c8="a closed dimension with a priority has an axis",
    c9="onto one device there are no dimension shardings, replicated or unreduced axes",
    c10="there is a sharding for each value",
    c11="ops that change the sharding of a tensor keep its type",
)
declare(
    "sdy.manual_computation",
    c1="there is a sharding for each operand and result, and an argument for each operand",
    c2="manual axes are axes of the mesh",
    c3="manual axes stand before free ones in each dimension",
    c4="arguments and returned values have the shapes that operands and results have on one device",
)
declare(
    "sdy.named_computation",
    c1="arguments have the types of operands, returned values those of results",
)
declare("sdy.propagation_barrier", c1="the direction is NONE, FORWARD or BACKWARD")
declare("sdy.data_flow_edge", c1="the input has no other use")

_BLOCKING = tuple(d.value for d in PropagationDirection if d is not PropagationDirection.BOTH)
_PER_VALUE = {"in_shardings": "operand", "out_shardings": "result"}


def meshes_of(module: ModuleOp) -> dict[str, Mesh]:
    """Meshes that the module names."""
    found: dict[str, Mesh] = {}
    for op in module.body.block.ops:
        name, mesh = op.properties.get("sym_name"), op.properties.get("mesh")
        if op.name == "sdy.mesh" and isinstance(name, StringAttr) and mesh is not None:
            found[name.data] = cast(Any, mesh).data
    return found


def check_shardings(op: Operation, meshes: Mapping[str, Mesh]) -> None:
    """Everything that `op` says of shardings is sound. Raises `ConstraintError`."""
    if op.name == "func.func":
        _check_function(op, meshes)
    elif op.name.startswith("sdy."):
        _check_sdy(op, meshes)
    attached = op.attributes.get("sdy.sharding")
    if attached is not None and attached.name == "sdy.sharding_per_value":
        _check_values(attached, [result.type for result in op.results], meshes, "result")


def _check_function(op: Operation, meshes: Mapping[str, Mesh]) -> None:
    kind = op.properties.get("function_type")
    if not isinstance(kind, FunctionType):
        return
    for key, types in (("arg_attrs", kind.inputs.data), ("res_attrs", kind.outputs.data)):
        rows = op.properties.get(key)
        if not isinstance(rows, ArrayAttr):
            continue
        for row, type_ in zip(cast("ArrayAttr[DictionaryAttr]", rows).data, types, strict=False):
            sharding = row.data.get("sdy.sharding")
            if sharding is not None and sharding.name == "sdy.sharding":
                check_sharding(cast(Any, sharding).data, type_, meshes)


def _check_sdy(op: Operation, meshes: Mapping[str, Mesh]) -> None:
    if isinstance(op, IRDLOperation):
        try:
            op.get_irdl_definition().verify(op)
        except VerifyException as problem:
            words = str(problem).strip().splitlines()[-1].strip()
            raise ConstraintError(f"{op.name}_form", words) from None
    for key in ("sharding", "out_sharding"):
        sharding = op.properties.get(key)
        if sharding is not None:
            check_sharding(cast(Any, sharding).data, op.results[0].type, meshes)
    if not op.regions and len(op.operands) == len(op.results) == 1:
        before, after = op.operands[0].type, op.results[0].type
        if before != after:  # c11
            raise ConstraintError("sdy.sharding_c11", f"{before} becomes {after}")
    if op.name == "sdy.data_flow_edge":
        uses = sum(1 for _ in op.operands[0].uses)
        if uses != 1:  # c1
            raise ConstraintError("sdy.data_flow_edge_c1", f"the input has {uses} uses")
    if op.name == "sdy.propagation_barrier":
        direction = cast(Any, op.properties["allowed_direction"]).value.data
        if direction not in _BLOCKING:  # c1
            raise ConstraintError(
                "sdy.propagation_barrier_c1", f"direction {direction} is none of {_BLOCKING}"
            )
    if op.name in ("sdy.manual_computation", "sdy.named_computation"):
        for key, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
            if key in op.properties:
                types = [value.type for value in values]
                _check_values(op.properties[key], types, meshes, _PER_VALUE[key])
    if op.name == "sdy.manual_computation":
        _check_manual(op, meshes)
    if op.name == "sdy.named_computation":
        inner, returned = _inside(op)
        if inner != [v.type for v in op.operands] or returned != [v.type for v in op.results]:
            raise ConstraintError(  # c1
                "sdy.named_computation_c1", "types inside differ from those of operands and results"
            )


def _check_values(
    attribute: Attribute, types: Sequence[Attribute], meshes: Mapping[str, Mesh], what: str
) -> None:
    shardings: tuple[TensorSharding, ...] = cast(Any, attribute).data.shardings
    if len(shardings) != len(types):  # c10
        raise ConstraintError(
            "sdy.sharding_c10", f"there are {len(shardings)} shardings for {len(types)} {what}s"
        )
    for sharding, type_ in zip(shardings, types, strict=True):
        check_sharding(sharding, type_, meshes)


def _mesh(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> Mesh:
    named = sharding.mesh_or_ref
    if isinstance(named, Mesh):
        return named
    if named not in meshes:  # c1
        known = ", ".join(map(symbol_text, meshes)) or "no mesh"
        raise ConstraintError(
            "sdy.sharding_c1",
            f"there is no mesh {symbol_text(named)}",
            help=f"the module has {known}",
        )
    return meshes[named]


def check_sharding(sharding: TensorSharding, type_: Attribute, meshes: Mapping[str, Mesh]) -> None:
    """`sharding` suits a value of type `type_`. Raises `ConstraintError`."""
    mesh = _mesh(sharding, meshes)
    named = (*sharding.replicated_axes, *sharding.unreduced_axes)
    if mesh.is_maximal:
        if sharding.dim_shardings or named:  # c9
            raise ConstraintError("sdy.sharding_c9", f"{sharding} is onto one device")
        return
    tensor = tensor_of(type_)
    rank = 0 if tensor is None else tensor.rank
    if len(sharding.dim_shardings) != rank:  # c2
        raise ConstraintError(
            "sdy.sharding_c2",
            f"{len(sharding.dim_shardings)} dimension shardings for rank {rank}: {sharding}",
        )
    seen: list[AxisRef] = []
    for dim, entry in enumerate(sharding.dim_shardings):
        _check_axes(entry.axes, mesh, seen)
        if entry.priority is not None and entry.is_closed and not entry.axes:  # c8
            raise ConstraintError(
                "sdy.sharding_c8", f"dimension {dim} is closed and empty, but has a priority"
            )
    for what, axes in (
        ("replicated", sharding.replicated_axes),
        ("unreduced", sharding.unreduced_axes),
    ):
        _check_axes(axes, mesh, seen)
        if list(axes) != sorted(axes, key=lambda axis: _place(axis, mesh)):  # c7
            raise ConstraintError(
                "sdy.sharding_c7", f"{what} axes are not in the order of the mesh: {sharding}"
            )


def _place(axis: AxisRef, mesh: Mesh) -> tuple[int, int, int]:
    names = [entry.name for entry in mesh.axes]
    part = axis.sub_axis_info
    return (
        names.index(axis.name),
        0 if part is None else part.pre_size,
        0 if part is None else part.size,
    )


def _check_axes(axes: Sequence[AxisRef], mesh: Mesh, seen: list[AxisRef]) -> None:
    """Axes of one list; `seen` has those of the lists before, and takes these."""
    for index, axis in enumerate(axes):
        size = mesh.axis_size(axis.name)
        if size is None:  # c3
            raise ConstraintError(
                "sdy.sharding_c3",
                f"{quoted(axis.name)} is no axis of the mesh",
                help="its axes are " + ", ".join(quoted(entry.name) for entry in mesh.axes),
            )
        part = axis.sub_axis_info
        if part is not None and (
            part.pre_size < 1
            or part.size < 2
            or part.size == size
            or size % (part.pre_size * part.size)
        ):  # c4
            raise ConstraintError("sdy.sharding_c4", f"{axis} is no part of an axis of {size}")
        for other in seen:  # c5
            if _overlap(axis, other, size):
                raise ConstraintError("sdy.sharding_c5", f"{other} and {axis} overlap")
        before = axes[index - 1] if index else None
        if before is not None and _follows(before, axis):  # c6
            raise ConstraintError("sdy.sharding_c6", f"{before} and {axis} are one part")
        seen.append(axis)


def _range(axis: AxisRef, size: int) -> tuple[int, int]:
    part = axis.sub_axis_info
    return (1, size) if part is None else (part.pre_size, part.pre_size * part.size)


def _overlap(a: AxisRef, b: AxisRef, size: int) -> bool:
    if a.name != b.name:
        return False
    (low, high), (other_low, other_high) = _range(a, size), _range(b, size)
    return low < other_high and other_low < high


def _follows(a: AxisRef, b: AxisRef) -> bool:
    first, second = a.sub_axis_info, b.sub_axis_info
    if a.name != b.name or first is None or second is None:
        return False
    return first.pre_size * first.size == second.pre_size


def _inside(op: Operation) -> tuple[list[Attribute], list[Attribute]]:
    """Types of the arguments of an op's region, and of what it returns."""
    block = op.regions[0].block
    last = block.last_op
    returned = () if last is None else last.operands
    return [value.type for value in block.args], [value.type for value in returned]


def _check_manual(op: Operation, meshes: Mapping[str, Mesh]) -> None:
    manual: tuple[str, ...] = cast(Any, op.properties["manual_axes"]).data.value
    inner, returned = _inside(op)
    for key, outer, local in (
        ("in_shardings", [value.type for value in op.operands], inner),
        ("out_shardings", [value.type for value in op.results], returned),
    ):
        shardings: tuple[TensorSharding, ...] = cast(Any, op.properties[key]).data.shardings
        if not len(outer) == len(local) == len(shardings):  # c1
            raise ConstraintError(
                "sdy.manual_computation_c1",
                f"{len(shardings)} {key}, {len(outer)} values outside, {len(local)} inside",
            )
        for sharding, kind, found in zip(shardings, outer, local, strict=True):
            _check_local(sharding, kind, found, manual, meshes)


def _check_local(
    sharding: TensorSharding,
    kind: Attribute,
    found: Attribute,
    manual: Sequence[str],
    meshes: Mapping[str, Mesh],
) -> None:
    mesh = _mesh(sharding, meshes)
    for name in manual:  # c2
        if mesh.axis_size(name) is None:
            raise ConstraintError(
                "sdy.manual_computation_c2", f"{quoted(name)} is no axis of the mesh"
            )
    tensor, local = tensor_of(kind), tensor_of(found)
    if tensor is None or local is None:
        return
    sizes: list[int] = []
    for dim, (size, entry) in enumerate(zip(tensor.sizes, sharding.dim_shardings, strict=True)):
        is_manual = [axis.name in manual for axis in entry.axes]
        if is_manual != sorted(is_manual, reverse=True):  # c3
            raise ConstraintError(
                "sdy.manual_computation_c3", f"a free axis stands first in dimension {dim}: {entry}"
            )
        parts = math.prod(axis.size(mesh) for axis in entry.axes if axis.name in manual)
        sizes.append(DYNAMIC if size == DYNAMIC else -(-size // parts))
    expected = tensor.with_sizes(sizes)
    if expected.sizes != local.sizes or expected.element != local.element:  # c4
        raise ConstraintError(
            "sdy.manual_computation_c4",
            f"{tensor} is {expected} on one device, not {local}",
        )
