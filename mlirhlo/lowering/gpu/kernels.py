"""Kernels of instructions and fusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, cast

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.gpu import GLOBAL
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.interned import UNIT, integers32
from mlirhlo.dialects.quick import create_op, prepend
from mlirhlo.lowering import target
from mlirhlo.lowering.builder import WORKSPACE
from mlirhlo.lowering.gpu.builder import KernelBuilder, gpu_module, in_space
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel, Launch
from mlirhlo.lowering.hlo_to_loops import builders
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import (
    buffer_type,
    physical_dimensions,
    physical_order,
)
from mlirhlo.lowering.hlo_to_loops.kernels import outputs_of
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, store
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_THREADS = 256


def build_kernel(
    name: str, op: Instruction, computations: Mapping[str, ComputationOp], device: GpuDevice
) -> GpuKernel:
    """The kernel that computes an instruction or fusion. Entry points are named after `name`.

    Raises `HloError` HLO0802 for an opcode without GPU code.
    """
    del device
    try:
        return _elements(name, op, computations)
    except HloError:
        pass
    try:
        return _loops(name, op, computations)
    except HloError as problem:
        why = problem.diagnostics[0].message
        raise error("HLO0802", f"`{op.opcode.name}` has no GPU code: {why}") from None


def _elements(name: str, op: Instruction, computations: Mapping[str, ComputationOp]) -> GpuKernel:
    """A thread an element."""
    if isinstance(op, FusionOp):
        computation = computations[op.calls]
        operands: list[SSAValue] = [p.output for p in computation.parameters]
        root = computation.root
        parts: Sequence[SSAValue] = root.inputs if isinstance(root, TupleOp) else (root.output,)
        outputs = [o for part in parts for o in outputs_of(part)]
    else:
        operands, outputs = list(op.inputs), outputs_of(op.output)
    shapes = [*(shape_of(value.type) for value in operands), *(o.shape for o in outputs)]
    if not all(isinstance(shape, ArrayShape) for shape in shapes):
        raise error("HLO0432", f"`{op.opcode.name}` of tuples has no lowering to a loop")
    types = [buffer_type(cast(ArrayShape, shape)) for shape in shapes]
    groups: dict[object, list[tuple[int, Output]]] = {}
    for at, output in enumerate(outputs, len(operands)):
        key = (physical_dimensions(output.shape), physical_order(output.shape))
        groups.setdefault(key, []).append((at, output))
    made: list[tuple[gpu.FuncOp, Launch]] = []
    for group in groups.values():
        if 0 not in group[0][1].shape.dimensions:
            entry = f"{name}_{len(made)}" if made else name
            made.append(_element_kernel(entry, types, operands, group))
    module = gpu_module(name, [function for function, _ in made])
    return GpuKernel(name, module, tuple(launch for _, launch in made))


def _element_kernel(
    entry: str,
    types: Sequence[MemRefType[Any]],
    operands: Sequence[SSAValue],
    group: Sequence[tuple[int, Output]],
) -> tuple[gpu.FuncOp, Launch]:
    """Outputs of the same dimensions."""
    b = KernelBuilder(entry, types, read_only=len(operands))
    shape = group[0][1].shape
    sizes, order = physical_dimensions(shape), physical_order(shape)
    count = prod(sizes)
    threads = min(_THREADS, -(-count // 32) * 32)
    blocks = -(-count // threads)
    index = b.index(b.add(b.mul(b.block_id(), threads), b.thread_id()))
    with b.if_(b.cmpi("ult", index, b.index(count))) if count % threads else nullcontext():
        places = Places(b, 0)
        indices = places.unlinear(Coordinate(index), sizes)
        place = [Coordinate(0)] * len(sizes)
        for at, d in enumerate(order):
            place[d] = indices[at]
        e = Elements(places, dict(zip(operands, b.arguments, strict=False)))
        for number, output in group:
            if output.part is None:
                value = e.at(output.value, place)
            else:
                value = e.parts(output.value, place)[output.part]
            bases = [c.base for c in indices]
            store(b, b.arguments[number], bases, value, output.shape, 0, None)
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    launch = Launch(entry, grid, block, tuple(range(len(types))))
    return b.finish_kernel(grid, block), launch


_ONES = integers32(1, 1, 1)
_SCALAR = target.Target(vector_bytes=64, registers=32)


def _loops(name: str, op: Instruction, computations: Mapping[str, ComputationOp]) -> GpuKernel:
    """The loops of the CPU, by one thread."""
    with target.using(_SCALAR):
        function = builders.build_kernel(name, op, computations)
    if any(op.name == "func.call" for op in function.walk()):
        raise error("HLO0432", "it calls functions of the CPU's libraries")
    body = function.body.blocks[0]
    # The loops' buffers are anywhere; LLVM finds out where.
    casts: list[memref.MemorySpaceCastOp] = []
    for at, argument in enumerate(tuple(body.args)):
        type_ = cast("MemRefType[Any]", argument.type)
        new = body.insert_arg(in_space(type_, GLOBAL), at)
        casts.append(create_op(memref.MemorySpaceCastOp, (new,), (type_,)))
        argument.replace_all_uses_with(casts[-1].results[0])
        body.erase_arg(argument)
    prepend(body, casts)
    count = len(body.args)
    workspaces: tuple[int, ...] = ()
    if (size := function.attributes.get(WORKSPACE)) is not None:
        workspaces = (cast("IntegerAttr[Any]", size).value.data,)
    kernel = create_op(
        gpu.FuncOp,
        properties={
            "function_type": type(function.function_type).from_lists(
                [a.type for a in body.args], ()
            ),
            "kernel": UNIT,
        },
        regions=[function.detach_region(0)],
        attributes={
            "sym_name": function.sym_name,
            "gpu.known_block_size": _ONES,
            "gpu.known_grid_size": _ONES,
        },
    )
    one = (1, 1, 1)
    launch = Launch(name, one, one, tuple(range(count)))
    return GpuKernel(name, gpu_module(name, [kernel]), (launch,), workspaces)
