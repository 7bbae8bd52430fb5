"""The host's side of a program: its steps as MLIR, launches and copies with control flow around them.

    func.func @main(%x: memref<64xi8, 1>, %r: memref<4xi8, 1>) {
      %arena = gpu.alloc() : memref<256xi8, 1>
      %0 = memref.view %x[%c0][] : memref<64xi8, 1> to memref<16xf32, 1>
      gpu.launch_func @kernels::@fusion_0 blocks in (%c1, …) threads in (%c32, …) args(%0 : memref<16xf32, 1>, …)

Arguments are the module's parameters, then its results; a result that may be given a parameter's memory is there.
Buffers are bytes, of which each use views an array; constants are globals of device memory; all else lives at its
offset in one arena.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.gpu import CONTAINER, GLOBAL, LAUNCHED, MemcpyOp
from mlirhlo.dialects.interned import UNIT, integer64, integers32, integers64, string
from mlirhlo.dialects.memref import GlobalOp
from mlirhlo.dialects.nvgpu import TmaCreateDescriptorOp
from mlirhlo.dialects.quick import append, create_op, prepend, region_of
from mlirhlo.lowering.builder import INDEX, memref_of
from mlirhlo.lowering.gpu.builder import TENSOR_MAP_BYTES, in_space
from mlirhlo.lowering.gpu.kernel import Launch, MapParameter
from mlirhlo.lowering.gpu.library_calls import library_routine
from mlirhlo.lowering.gpu.planner import GpuPlan
from mlirhlo.lowering.llvm_module_text import KERNEL
from mlirhlo.lowering.plan.in_memory import physical_bytes
from mlirhlo.lowering.plan.plan import MAIN
from mlirhlo.lowering.plan.steps import Branch, Buffer, Callback, Copy, Kernel, Repeat, Step, While
from mlirhlo.nesting import Walk, walked


def whole_program(kernels: gpu.ModuleOp, plan: GpuPlan) -> ModuleOp:
    """A module of the kernels and the function of the host that launches them; takes over `kernels`."""
    host = _Host(kernels, plan)
    main = host.main()
    module = ModuleOp([kernels, *host.globals, *host.callees.values(), main])
    module.attributes[CONTAINER] = UNIT
    return module


def kernels_in(program: ModuleOp) -> gpu.ModuleOp:
    """The `gpu.module` of a program. Raises `HloError` HLO0804 where there is none."""
    found = next((op for op in program.ops if isinstance(op, gpu.ModuleOp)), None)
    if found is None:
        raise error("HLO0804", "the program has no `gpu.module`")
    return found


def with_code(program: ModuleOp, nvvm: ModuleOp) -> ModuleOp:
    """A copy of a program whose kernels are those of a module of the llvm dialect, which is taken apart."""
    copy = program.clone()
    block = kernels_in(copy).body.block
    for op in list(block.ops):
        block.erase_op(op, safe_erase=False)
    for op in list(nvvm.ops):
        op.detach()
        append(block, op)
        if KERNEL in op.attributes:
            op.attributes[LAUNCHED] = UNIT
    return copy


def code_of(program: ModuleOp) -> ModuleOp:
    """The kernels of a program in the llvm dialect, as a module of their own."""
    if not any(isinstance(op, gpu.ModuleOp) for op in program.ops):
        return program
    return ModuleOp([op.clone() for op in kernels_in(program).body.block.ops])


def _bytes(size: int) -> MemRefType[Any]:
    return in_space(memref_of(i8, size), GLOBAL)


class _Host:
    """The function of the host as it is built."""

    def __init__(self, kernels: gpu.ModuleOp, plan: GpuPlan) -> None:
        self.plan, self.unit = plan, kernels.sym_name.data
        self.signatures: Mapping[str, Sequence[Attribute]] = {
            op.sym_name.data: op.function_type.inputs.data
            for op in kernels.body.block.ops
            if isinstance(op, gpu.FuncOp)
        }
        self.globals: list[Operation] = []
        self.callees: dict[str, Operation] = {}
        """What the host computes itself, declared."""
        self.entry = self.block = Block(
            arg_types=[_bytes(b.size) for b in (*plan.parameters, *plan.results)]
        )
        names = [f"parameter{k}" for k in range(len(plan.parameters))]
        names += [f"result{k}" for k in range(len(plan.results))]
        for argument, name in zip(self.entry.args, names, strict=True):
            argument.name_hint = name
        self._heads: list[Operation] = []
        """Constants and memory, in front of all else."""
        self._numbers: dict[tuple[int, Attribute], SSAValue] = {}
        self._constants: dict[Buffer, SSAValue] = {}
        self._on_host: dict[int, SSAValue] = {}
        self._arena: SSAValue | None = None

    def main(self) -> func.FuncOp:
        """The whole function."""
        walked(self._steps(self.plan.steps))
        if self._arena is not None:
            append(self.block, gpu.DeallocOp(self._arena))
        append(self.block, func.ReturnOp())
        prepend(self.entry, self._heads)
        type_ = FunctionType.from_lists(self.entry.arg_types, ())
        return func.FuncOp(MAIN, type_, region_of(self.entry))

    # Values

    def _head(self, op: Operation) -> SSAValue:
        self._heads.append(op)
        return op.results[0]

    def _number(self, number: int, type_: Attribute = INDEX) -> SSAValue:
        found = self._numbers.get((number, type_))
        if found is None:
            value = IntegerAttr(number, cast(Any, type_))
            op = create_op(arith.ConstantOp, (), (type_,), {"value": value})
            found = self._numbers[number, type_] = self._head(op)
        return found

    def _emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        op = create_op(cls, operands, (type_,), properties)
        append(self.block, op)
        return op.results[0]

    def _memory(self, buffer: Buffer) -> tuple[SSAValue, int]:
        """The bytes that a buffer is a part of, and its offset there."""
        if buffer.literal is not None:
            return self._constant(buffer), 0
        buffer = buffer.alias or buffer
        if buffer.parameter is not None:
            return self.entry.args[buffer.parameter], 0
        if buffer.result is not None:
            return self.entry.args[len(self.plan.parameters) + buffer.result], 0
        if self._arena is None:
            self._arena = self._head(gpu.AllocOp(_bytes(self.plan.arena_size)))
            self._arena.name_hint = "arena"
        return self._arena, buffer.offset

    def _constant(self, buffer: Buffer) -> SSAValue:
        found = self._constants.get(buffer)
        if found is None:
            name, type_ = f"constant_{len(self.globals)}", _bytes(buffer.size)
            data = DenseIntOrFPElementsAttr(
                TensorType(i8, [buffer.size]), BytesAttr(physical_bytes(buffer))
            )
            properties: dict[str, Attribute] = {
                "sym_name": string(name),
                "sym_visibility": string("private"),
                "type": type_,
                "initial_value": data,
                "constant": UNIT,
            }
            self.globals.append(create_op(GlobalOp, properties=properties))
            found = self._constants[buffer] = self._head(memref.GetGlobalOp(name, type_))
        return found

    def _view(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """A buffer as an array."""
        memory, offset = self._memory(buffer)
        if memory.type == type_:
            return memory
        return self._emit(memref.ViewOp, (memory, self._number(offset)), type_)

    def _read(self, buffer: Buffer, size: int) -> SSAValue:
        """The number of some bytes in a buffer, copied to the host."""
        element = i8 if size == 1 else i32
        if size not in self._on_host:
            alloca = memref.AllocaOp.get(element, shape=[1])
            self._on_host[size] = self._head(alloca)
        source = self._view(buffer, in_space(memref_of(element, 1), GLOBAL))
        append(self.block, MemcpyOp(self._on_host[size], source))
        return self._emit(memref.LoadOp, (self._on_host[size], self._number(0)), element)

    # Steps

    def _steps(self, steps: Sequence[Step]) -> Walk[None]:
        for step in steps:
            match step:
                case Kernel():
                    for launch in self.plan.kernels[step.name].launches:
                        if 0 not in launch.grid:
                            self._launch(step, launch)
                case Copy():
                    if step.source.size:
                        type_ = _bytes(step.source.size)
                        source, target = (self._view(b, type_) for b in (step.source, step.target))
                        append(self.block, MemcpyOp(target, source))
                case While():
                    yield self._while(step)
                case Repeat():
                    yield self._repeat(step)
                case Branch():
                    yield self._branch(step)
                case Callback():
                    self._call(step)
                case _:
                    raise AssertionError("plans for GPUs have no slices")

    def _launch(self, step: Kernel, launch: Launch) -> None:
        buffers = (*step.reads, *step.writes)
        types = self.signatures[launch.entry]
        of_buffers = types[: len(launch.buffers)]
        operands = [
            self._view(buffers[k], t) for k, t in zip(launch.buffers, of_buffers, strict=True)
        ]
        operands += [self._tensor_map(operands[m.parameter], m) for m in launch.maps]
        sizes = [self._number(n) for n in (*launch.grid, *launch.block)]
        cluster = [self._number(n) for n in launch.cluster if max(launch.cluster) > 1]
        shared = [self._number(launch.shared_bytes, i32)] if launch.shared_bytes else []
        some = [1] * 3 if cluster else [0] * 3
        properties: dict[str, Attribute] = {
            "kernel": SymbolRefAttr(self.unit, [launch.entry]),
            "operandSegmentSizes": integers32(0, *[1] * 6, *some, len(shared), len(operands), 0),
        }
        values = [*sizes, *cluster, *shared, *operands]
        append(self.block, create_op(gpu.LaunchFuncOp, values, (), properties))

    def _tensor_map(self, buffer: SSAValue, described: MapParameter) -> SSAValue:
        properties: dict[str, Attribute] = {
            "element_bytes": integer64(described.element_bytes),
            "sizes": integers64(*described.dimensions),
            "strides": integers64(*described.strides),
            "box": integers64(*described.box),
            "swizzle": integer64(described.swizzle_bytes),
        }
        type_ = memref_of(i8, TENSOR_MAP_BYTES)
        return self._emit(TmaCreateDescriptorOp, (buffer,), type_, properties)

    def _inside(self, body: Callable[[], Walk[None]], end: Callable[[], Operation]) -> Walk[Region]:
        """A region of one block."""
        outer, self.block = self.block, Block()
        yield body()
        append(self.block, end())
        block, self.block = self.block, outer
        return region_of(block)

    def _while(self, step: While) -> Walk[None]:
        def goes_on() -> Operation:
            test = self._read(step.test, 1)
            return scf.ConditionOp(self._is_true(test))

        before = yield self._inside(lambda: self._steps(step.condition), goes_on)
        after = yield self._inside(lambda: self._steps(step.body), scf.YieldOp)
        append(self.block, create_op(scf.WhileOp, regions=[before, after]))

    def _repeat(self, step: Repeat) -> Walk[None]:
        bounds = [self._number(n) for n in (0, step.rounds, 1)]
        body = yield self._inside(lambda: self._steps(step.body), scf.YieldOp)
        body.block.insert_arg(INDEX, 0)
        append(self.block, create_op(scf.ForOp, bounds, regions=[body]))

    def _is_true(self, value: SSAValue) -> SSAValue:
        op = arith.CmpiOp(value, self._number(0, i8), "ne")
        append(self.block, op)
        return op.results[0]

    def _branch(self, step: Branch) -> Walk[None]:
        value = self._read(step.selector, 1 if step.by_pred else 4)
        value = self._is_true(value) if step.by_pred else value
        regions: list[Region] = []
        for steps in step.branches:
            regions.append((yield self._inside(partial(self._steps, steps), scf.YieldOp)))
        if step.by_pred:
            append(self.block, create_op(scf.IfOp, (value,), (), regions=regions))
            return
        *cases, default = regions
        number = self._emit(arith.IndexCastOp, (value,), INDEX)
        properties: dict[str, Attribute] = {"cases": integers64(*range(len(cases)))}
        append(
            self.block,
            create_op(scf.IndexSwitchOp, (number,), (), properties, regions=[default, *cases]),
        )

    def _call(self, step: Callback) -> None:
        op = self.plan.sites[step.site].op
        routine = library_routine(op)
        name = f"host_{step.site}" + ("" if op is None else f"_{op.opcode.name}").replace("-", "_")
        if routine is not None:
            name = f"library_{step.site}_{routine.function}"
        operands = [self._view(b, _bytes(b.size)) for b in (*step.reads, *step.writes)]
        if name not in self.callees:
            type_ = FunctionType.from_lists([v.type for v in operands], ())
            self.callees[name] = func.FuncOp.external(name, type_.inputs.data, ())
        append(self.block, func.CallOp(name, operands, ()))
