"""What computations of two scalars do: known combinations, and what leaves the other side as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.identities import identity_element
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.rewrites.spmd.emit import Emitter, Estimate, Value
from mlirhlo.rewrites.spmd.factors import leaves
from mlirhlo.rewrites.spmd.part import Part
from mlirhlo.rewrites.spmd.tiles.local import Work


def addition(work: Work) -> str:
    """Name of the addition of the element type of the result; made if there is none."""
    shape = leaves(work.op.shape)[0]
    assert isinstance(shape, ArrayShape)
    return combination(work, "add", shape.element_type)


def combination(work: Work, opcode: str, type_: PrimitiveType) -> str:
    """Name of a computation; of no one where nothing is partial, so that none is made."""
    if not work.partial:
        return ""
    if type_.name == "pred" and opcode in ("add", "maximum"):
        opcode = "or"
    return work.emit.module.binary(opcode, type_) if isinstance(work.emit, Emitter) else "+"


def sole(type_: PrimitiveType) -> tuple[str, Any]:
    """Opcode and scalar by which all devices get what one has: the others give the scalar."""
    if type_ is et.PRED:
        return "or", np.zeros((), type_.dtype)
    opcode = "maximum" if type_ is et.F8E8M0FNU else "add"
    return opcode, identity(opcode, type_)


def from_device(part: Part, device: int, emit: Estimate) -> Part:
    """An array that only `device` has, on all."""
    grid, type_ = part.placement.grid, part.shape.element_type
    opcode, nothing = sole(type_)
    here_is = emit.compare(emit.partition_id(), emit.constant(device, et.U32), "EQ")
    value = emit.select(here_is, part.value, emit.constant(nothing, type_))
    joined = emit.all_reduce(value, grid, grid.axes, emit.module.binary(opcode, type_))
    return part.at(joined, part.placement)


def opcode_of(computation: ComputationOp) -> str | None:
    """The commutative opcode that a computation of two scalars is; None for anything else."""
    root, parameters = computation.root, computation.parameters
    if len(parameters) != 2 or len(tuple(computation.instructions)) != 3:
        return None
    if {*root.operands} != {p.output for p in parameters} or len(root.operands) != 2:
        return None
    return None if root.opcode.identity is None else root.opcode.name


def identity(opcode: str, type_: PrimitiveType) -> Any | None:
    """The scalar `e` with `opcode(e, x) == x`; None where there is none."""
    number = identity_element(OPCODES[opcode], type_)
    return None if number is None else np.array(number).astype(type_.dtype)


def is_identity(value: Value, opcode: str, type_: PrimitiveType) -> bool:
    """Whether a value is a constant that `opcode` leaves the other side with."""
    from xdsl.ir import SSAValue

    owner = value.owner if isinstance(value, SSAValue) else None
    if not isinstance(owner, ConstantOp) or owner.literal is None or owner.literal.is_elided:
        return False
    wanted = identity(opcode, type_)
    return wanted is not None and bool((owner.literal.array == wanted).all())
