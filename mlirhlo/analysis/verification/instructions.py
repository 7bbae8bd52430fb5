"""Per-instruction checks: constraints of the opcode, declared shape, layouts, shardings.

Instructions with the same opcode, types and attributes are checked once; on real dumps that is one
in ten. Identities are compared, not values: types and attributes are interned where they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference import ConstraintError, check_declared, infer
from mlirhlo.analysis.shape_inference.base import declare, plain
from mlirhlo.analysis.verification.layouts import layout_problem, shape_attributes
from mlirhlo.analysis.verification.report import LAYOUT, Report
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingAttr, ShardingKind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TupleShape,
    compatible,
    leaves,
)
from mlirhlo.dialects.hlo.table import ANNOTATIONS, CONTROL_FLOW, HANDS_ON
from mlirhlo.dialects.hlo.types import shape_of

declare(
    "instruction",
    c7="a tuple sharding has one part for each leaf of the shape, and only tuples have one",
    c8="a tiled sharding has as many dimensions as the array",
    c9="a sharding names devices the module has, each once",
    c10="a layout-sensitive check finds the same layout in values passed through",
)

_PASSES_LAYOUT_ON = HANDS_ON | CONTROL_FLOW
"""Opcodes that hand values on without touching them."""


@dataclass(slots=True)
class InstructionChecks:
    """Checks of single instructions, with what is known to be right already."""

    report: Report
    signatures: Mapping[str, ProgramLayout]
    device_count: int
    """Replicas times partitions; 1 when the module does not say."""
    layout_sensitive: bool = False
    _right: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    _right_types: set[int] = field(default_factory=set[int])
    _right_shardings: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def check(self, op: Instruction) -> bool:
        """Adds to the report what is wrong with `op` itself; whether its constraints hold."""
        properties = op.properties
        type_: Any = op.results[0].type
        key: tuple[object, ...] = (
            type(op),
            id(type_),
            *[id(value.type) for value in op.inputs],
            0,
            *[
                id(properties[k])
                for k in op.property_order
                if k in properties and k not in ANNOTATIONS
            ],
        )
        holds = key in self._right
        if not holds and self._check_constraints(op):
            self._right.add(key)
            holds = True
        if id(type_) not in self._right_types and self._check_layouts(op, op.shape):
            self._right_types.add(id(type_))
        for shapes in shape_attributes(type(op)):
            self._check_attribute_layouts(op, shapes)
        sharding = properties.get("sharding")
        if sharding is not None:
            pair = (id(sharding), id(type_))
            if pair not in self._right_shardings and self._check_sharding(op, sharding):
                self._right_shardings.add(pair)
        return holds

    def _check_constraints(self, op: Instruction) -> bool:
        try:
            check_declared(
                op.opcode.name, op.shape, op.input_shapes, op.properties, self.signatures
            )
        except ConstraintError as problem:
            self.report.broken(op, problem)
            return False
        if self.layout_sensitive and op.opcode.name in _PASSES_LAYOUT_ON:
            return self._check_same_layouts(op)
        return True

    def _check_same_layouts(self, op: Instruction) -> bool:
        wanted = infer(op.opcode.name, op.input_shapes, op.properties, self.signatures)
        if wanted != op.shape and compatible(wanted, op.shape):  # instruction_c10
            self.report.add(
                LAYOUT,
                "instruction_c10",
                f"{op.opcode.name}: the shape is {op.shape}, the value passed through {wanted}",
                op,
            )
            return False
        return True

    def _check_layouts(self, op: Instruction, shape: Shape, attribute: str | None = None) -> bool:
        if (problem := layout_problem(shape)) is None:
            return True
        constraint, message = problem
        self.report.add(LAYOUT, constraint, f"{op.opcode.name}: {message}", op, attribute=attribute)
        return False

    def _check_attribute_layouts(self, op: Instruction, key: str) -> None:
        """Layouts in a property that holds shapes; each value is looked at once."""
        value = op.properties.get(key)
        if value is None or id(value) in self._right_types:
            return
        is_list = isinstance(value, ArrayAttr)
        parts = cast("ArrayAttr[Attribute]", value).data if is_list else (value,)
        if all(self._check_layouts(op, shape_of(part), key) for part in parts):
            self._right_types.add(id(value))

    def _check_sharding(self, op: Instruction, attribute: Attribute) -> bool:
        assert isinstance(attribute, ShardingAttr)
        message = sharding_problem(attribute.data, op.shape, self.device_count)
        if message is None:
            return True
        self.report.add(
            LAYOUT, message[0], f"{op.opcode.name}: {message[1]}", op, attribute="sharding"
        )
        return False


def sharding_problem(sharding: Sharding, shape: Shape, devices: int) -> tuple[str, str] | None:
    """Constraint and message of what is wrong with `sharding` for `shape`; None if it fits."""
    if sharding.kind is ShardingKind.TUPLE:
        parts = [leaf for _, leaf in leaves(shape)]
        if not isinstance(shape, TupleShape):  # instruction_c7
            return "instruction_c7", f"a tuple sharding for {plain(shape)}, which is no tuple"
        # An empty tuple counts as one leaf.
        if len(sharding.elements) != max(len(parts), 1):
            message = (
                f"the sharding has {len(sharding.elements)} parts for the {len(parts)} leaves of"
                f" {plain(shape)}"
            )
            return "instruction_c7", message
        for element, leaf in zip(sharding.elements, parts, strict=False):
            found = sharding_problem(element, leaf, devices)
            if found is not None:
                return found
        return None
    return _leaf_problem(sharding, shape, devices)


def _leaf_problem(sharding: Sharding, shape: Shape, devices: int) -> tuple[str, str] | None:
    shown = sharding.to_text(metadata=False)
    ids: tuple[int, ...] = ()
    rank = None
    if sharding.named is not None:
        if sharding.kind is ShardingKind.NAMED and sharding.named.dimensions:
            rank = len(sharding.named.dimensions)
    elif sharding.tiles is not None:
        ids = sharding.tiles.ids()
        if sharding.kind is ShardingKind.TILED:
            rank = len(sharding.data_tiles)
    if rank is not None and isinstance(shape, ArrayShape) and rank != shape.rank:
        message = (  # instruction_c8
            "Number of tile assignment dimensions (excluding subgroups) is different than the input"
            f" rank. sharding={shown}, input_shape={plain(shape)}"
        )
        return "instruction_c8", message
    if len(set(ids)) != len(ids):  # instruction_c9
        return (
            "instruction_c9",
            f"a device has two tiles in sharding={shown}",
        )
    if devices > 1 and any(not 0 <= device < devices for device in ids):  # instruction_c9
        return (
            "instruction_c9",
            f"device {max(ids)} of sharding={shown} is none of the module's {devices}",
        )
    return None
