"""Bodies of structured ops as computations of HLO, which the interpreter applies to whole arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.ops import ComputationOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import module_of
from mlirhlo.dialects.structured import IndexOp, KernelOp, YieldOp
from mlirhlo.interp.engine import DeviceFrame, Interpreter
from mlirhlo.interp.reducers import reducer_of
from mlirhlo.interp.registry import Array, Value

if TYPE_CHECKING:
    from mlirhlo.interp.reducers import Reducer


def _parameter(block: Block, type_: Attribute, number: int) -> SSAValue:
    op = build.create(ParameterOp, [], type_, {"parameter_number": integer(number)})
    build.append(block, op)
    return op.output


def computation_of(name: str, region: Region) -> tuple[ComputationOp, tuple[int, ...]]:
    """A body as a computation: its arguments, then the indices along the dimensions that it names."""
    block = Block()
    values: dict[SSAValue, SSAValue] = {}
    for argument in region.block.args:
        values[argument] = _parameter(block, argument.type, len(values))
    indices: dict[int, SSAValue] = {}
    results: list[SSAValue] = []
    for op in region.block.ops:
        if isinstance(op, IndexOp):
            if op.dimension not in indices:
                number = len(region.block.args) + len(indices)
                indices[op.dimension] = _parameter(block, op.result.type, number)
            values[op.result] = indices[op.dimension]
        elif isinstance(op, YieldOp):
            results = [values[value] for value in op.operands]
        else:
            new = build.create(
                cast("type[Instruction]", type(op)),
                [values[value] for value in op.operands],
                op.results[0].type,
                dict(op.properties),
            )
            build.append(block, new)
            values[op.results[0]] = new.output
    shapes = tuple(shape_of(value.type) for value in results)
    if len(results) != 1:
        root = build.make("tuple", results, TupleShape(shapes))
        build.append(block, root)
        results = [root.output]
    return build.close(name, block, results[0]), tuple(indices)


class Bodies:
    """The bodies of a kernel, ready to be applied."""

    def __init__(self, kernel: KernelOp) -> None:
        self._names: dict[Region, tuple[str, tuple[int, ...]]] = {}
        computations: list[ComputationOp] = []
        for op in kernel.block.ops:
            for region in op.regions:
                name = f"body{len(computations)}"
                computation, dimensions = computation_of(name, region)
                computations.append(computation)
                self._names[region] = (name, dimensions)
        self.interpreter = Interpreter(module_of(computations) if computations else ModuleOp([]))
        self.frame = DeviceFrame(self.interpreter)

    def name(self, region: Region) -> str:
        """The computation's name."""
        return self._names[region][0]

    def reducer(self, region: Region) -> Reducer:
        """What a combiner folds with."""
        return reducer_of(self.interpreter, self.name(region))

    def apply(
        self, region: Region, arguments: Sequence[Array], space: Sequence[int] = ()
    ) -> tuple[Array, ...]:
        """What a body yields for arrays of arguments that broadcast to `space`; results broadcast to it."""
        name, dimensions = self._names[region]
        indices = [along(space, dim) for dim in dimensions]
        types = [p.shape for p in self.interpreter.computation(name).parameters[len(arguments) :]]
        given = [
            index.astype(cast(ArrayShape, shape).element_type.dtype)
            for index, shape in zip(indices, types, strict=True)
        ]
        return self.frame.call_elementwise(name, [*arguments, *given])

    def evaluate(
        self,
        opcode: str,
        inputs: Sequence[SSAValue],
        arrays: Sequence[Array],
        results: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
    ) -> tuple[Array, ...]:
        """What an HLO instruction gives for values of a kernel."""
        operands = [
            build.create(ParameterOp, [], value.type, {"parameter_number": integer(number)})
            for number, value in enumerate(inputs)
        ]
        shapes: tuple[Shape, ...] = tuple(shape_of(value.type) for value in results)
        shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
        op = build.make(opcode, operands, shape, properties)
        value: Value = self.interpreter.evaluate(op, list(arrays))
        return cast("tuple[Array, ...]", value if isinstance(value, tuple) else (value,))


def along(space: Sequence[int], dim: int) -> Array:
    """The index along a dimension, of size 1 in the others."""
    shape = [1] * len(space)
    shape[dim] = space[dim]
    return np.arange(space[dim], dtype=np.int64).reshape(shape)
