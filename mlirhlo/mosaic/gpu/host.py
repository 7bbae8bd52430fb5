"""Kernels that JAX writes: the function of the host around a `gpu.launch`, read as a launch.

JAX's module of a kernel is a function that runs on the host: it loads the addresses of the arrays, describes them to
copies (tensor maps) and launches a region. `imported` runs that function on symbols and gives the region as a
`GpuKernel`: a function of the arrays, then of the tensor maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    i8,
)
from xdsl.dialects.llvm import LLVMArrayType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.quick import create_op
from mlirhlo.dialects.tpu.op_classes import class_of, groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.mosaic.attributes import integer_of, integers_of
from mlirhlo.mosaic.gpu.module import GpuKernel, Launch
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct
from mlirhlo.mosaic.language.trace import attribute, ints

_ARGUMENT = "mosaic_gpu.from_kernel_arg_idx"
_DESCRIBE = "mosaic_gpu_init_tma_desc"
_MAP_BYTES = 128
_MAP_TYPES = {1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 2, 9: 4, 10: 8}
"""Bytes of an element, by the number that JAX gives its type."""


@dataclass(frozen=True, slots=True)
class _Address:
    """Of an array: the number of the argument, and bytes from its start on."""

    argument: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Array:
    """A view of an array, as its type says."""

    argument: int
    offset: int
    type: Any


@dataclass(eq=False, slots=True)
class _Memory:
    """Memory of the host; the table of the arguments' addresses is one."""

    cells: dict[int, Any] = field(default_factory=dict[int, Any])
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class _Cell:
    """An address in memory of the host."""

    memory: _Memory
    offset: int = 0


def imported(module: ModuleOp, *, results: int = 1) -> GpuKernel:
    """The kernel of a module that JAX wrote, or `GpuKernel.as_text`; the last `results` of its arrays are results.

    Raises `HloError` HLO0700 for a module that launches nothing, HLO0758 for a launch that is not known.
    """
    own = _own(module, results)
    if own is not None:
        return own
    module = module.clone()
    launch = next((op for op in module.walk() if op.name == "gpu.launch"), None)
    if launch is None:
        raise error(
            "HLO0700",
            "the module launches no kernel",
            help="a module of JAX has one gpu.launch",
        )
    host = _Host(launch)
    return host.kernel(module, results)


def _own(module: ModuleOp, results: int) -> GpuKernel | None:
    """The kernel of a module as the language writes it; None for others."""
    function = next((op for op in module.ops if "mosaic_gpu.cluster_shape" in op.attributes), None)
    if function is None:
        return None
    blocks, cluster, threads = (
        prod(integers_of(function, f"mosaic_gpu.{word}") or ())
        for word in ("grid", "cluster", "threads")
    )
    shape = integers_of(function, "mosaic_gpu.cluster_shape") or ()
    launch = Launch((blocks // cluster,), cluster=shape, num_threads=threads // 128)
    types: list[Any] = [argument.type for argument in function.regions[0].blocks[0].args]
    structs = [ShapeDtypeStruct(t.get_shape(), dtype_in(t.element_type)) for t in types]
    name, count = cast(Any, function.properties["sym_name"]).data, len(structs) - results
    return GpuKernel(module, name, tuple(structs[:count]), tuple(structs[count:]), launch)


class _Host:
    """The host's function, run up to the launch."""

    def __init__(self, launch: Operation) -> None:
        self.launch = launch
        function = cast(Operation, launch.parent_op())
        self.values: dict[SSAValue, Any] = {}
        entry = function.regions[0].blocks[0]
        self.values.update(zip(entry.args, (None, _Cell(_Memory(is_table=True))), strict=False))
        self.arrays: dict[int, tuple[SSAValue, Any]] = {}
        for op in entry.ops:
            if op is launch:
                break
            self._run(op)

    # ------------------------------------------------------------ the host's code

    def _run(self, op: Operation) -> None:
        operands = [self.values.get(v) for v in op.operands]
        found = self._result(op, operands)
        values = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        self.values.update(zip(op.results, values, strict=False))
        for result in op.results:
            self.values.setdefault(result, None)

    def _result(self, op: Operation, operands: list[Any]) -> Any:
        first = operands[0] if operands else None
        match op.name:
            case "arith.constant" | "llvm.mlir.constant":
                return integer_of(op, "value")
            case "arith.index_cast" | "arith.index_castui" | "llvm.inttoptr" | "llvm.ptrtoint":
                return first
            case "arith.addi" | "arith.muli":
                x, y = operands
                return x + y if op.name == "arith.addi" else x * y
            case "llvm.mlir.undef":
                return {}
            case "llvm.insertvalue":
                return {**operands[0], integers_of(op, "position"): operands[1]}
            case "llvm.alloca":
                return _Cell(_Memory())
            case "llvm.getelementptr":
                return self._moved(op, operands)
            case "llvm.load":
                return self._loaded(first, op.results[0].type)
            case "llvm.store":
                operands[1].memory.cells[operands[1].offset] = operands[0]
                return None
            case "builtin.unrealized_conversion_cast" if _ARGUMENT in op.attributes:
                number = integer_of(op, _ARGUMENT)
                self.arrays[number] = op.results[0], op.results[0].type
                return _Array(number, 0, op.results[0].type)
            case "memref.extract_strided_metadata" if isinstance(first, _Array):
                strides = first.type.get_strides()
                return (first, first.offset, *first.type.get_shape(), *strides)
            case "memref.extract_aligned_pointer_as_index" if isinstance(first, _Array):
                return _Address(first.argument)
            case "func.call" if str(op.properties["callee"]) == f"@{_DESCRIBE}":
                self._describe(operands)
                return None
            case name if name.startswith("memref.") and isinstance(first, _Array):
                return _Array(first.argument, _start_of(op.results[0].type), op.results[0].type)
            case _:
                return None

    def _moved(self, op: Operation, operands: list[Any]) -> Any:
        (at,) = integers_of(op, "rawConstantIndices") or (0,)
        number = operands[1] if len(operands) > 1 else at
        element: Any = op.properties["elem_type"]
        base = operands[0]
        if isinstance(base, _Cell):
            size = 8 if not isinstance(element, IntegerType) else cast(Any, element).width.data // 8
            return _Cell(base.memory, base.offset + number * size)
        if isinstance(base, _Address):
            return _Address(base.argument, base.offset + number * dtype_in(element).itemsize)
        return None

    def _loaded(self, cell: Any, type_: Attribute) -> Any:
        if isinstance(type_, LLVMArrayType) or not isinstance(cell, _Cell):
            return cell  # tensor maps are passed on as they are in memory
        if cell.memory.is_table:
            return _Address(cell.offset // 8)
        return cell.memory.cells.get(cell.offset)

    def _describe(self, operands: Sequence[Any]) -> None:
        where, base, kind, rank, sizes, strides, swizzle, box = operands
        width = _MAP_TYPES.get(kind)
        if width is None or not isinstance(base, _Address) or base.offset:
            raise _unknown("a tensor map of packed elements, or of a part of an array")

        def numbers(cell: _Cell) -> list[int]:
            return [cell.memory.cells[cell.offset + 8 * at] for at in reversed(range(rank))]

        # Packages of the same layer import one another when they are used.
        parameter = import_module("mlirhlo.lowering.gpu.kernel").MapParameter
        where.memory.cells[where.offset] = parameter(
            base.argument,
            width,
            tuple(numbers(sizes)),
            tuple(n * width for n in numbers(strides)[1:]),
            tuple(numbers(box)),
            0 if swizzle == 16 else swizzle,
        )

    # ------------------------------------------------------------ the region

    def kernel(self, module: ModuleOp, results: int) -> GpuKernel:
        """The launched region as a kernel."""
        launch = self.launch
        row = ROWS["gpu.launch"]
        parts = groups(launch, row, row.operands, tuple(launch.operands))

        def numbers(what: str) -> list[int]:
            found = [self.values.get(v) for dim in "XYZ" for v in parts[f"{what}{dim}"]]
            if not all(isinstance(n, int) for n in found):
                raise _unknown(f"a launch whose {what} is not constant")
            return cast("list[int]", found)

        grid, threads = numbers("gridSize"), numbers("blockSize")
        cluster = numbers("clusterSize") or [1, 1, 1]
        shared = [self.values.get(v) for v in parts["dynamicSharedMemorySize"]]
        if threads[1:] != [1, 1] or threads[0] % 128:
            raise _unknown(f"blocks of {' x '.join(map(str, threads))} threads")
        block, maps = self._body(grid, threads, cluster)
        arrays = [self.arrays[n][1] for n in sorted(self.arrays)]
        structs = [ShapeDtypeStruct(t.get_shape(), dtype_in(t.element_type)) for t in arrays]
        count = len(structs) - results
        size = tuple(g // c for g, c in zip(grid, cluster, strict=True))
        shape = Launch(
            size, (), tuple(cluster), (), threads[0] // 128, sizes=cast(Any, tuple(grid))
        )
        name = cast(Any, module.properties.get("sym_name") or _NAMELESS).data
        found = _module(module, name, block, shape, int(shared[0] or 0) if shared else 0)
        return GpuKernel(
            found, name, tuple(structs[:count]), tuple(structs[count:]), shape, maps=maps
        )

    def _body(
        self, grid: Sequence[int], threads: Sequence[int], cluster: Sequence[int]
    ) -> tuple[Block, tuple[Any, ...]]:
        region = self.launch.regions[0]
        block = region.blocks[0]
        region.detach_block(block)
        head = _Head(block)
        kinds = ["block_id", "thread_id", "", "", "cluster_id", ""]
        sizes = [None, None, grid, threads, None, cluster]
        for number, argument in enumerate(list(block.args)):
            kind, dim = kinds[number // 3], number % 3
            if argument.first_use is not None:
                value = (
                    head.constant(cast(Any, sizes[number // 3])[dim])
                    if not kind
                    else head.identity(kind, "xyz"[dim])
                )
                argument.replace_all_uses_with(value)
        for argument in list(block.args):
            block.erase_arg(argument)
        for number in sorted(self.arrays):
            value, type_ = self.arrays[number]
            head.known[value] = block.insert_arg(type_, len(block.args))
        maps = self._maps(block, head)
        for op in list(block.walk()):
            for at, operand in enumerate(op.operands):
                if operand in self.values:
                    op.operands[at] = head.copied(operand)
        last = cast(Operation, block.last_op)
        last.detach()
        last.erase()
        block.add_op(create_op(cast(Any, class_of("func.return"))))
        return block, tuple(maps)

    def _maps(self, block: Block, head: _Head) -> list[Any]:
        """Tensor maps that the region reads become arguments, one each."""
        maps: list[Any] = []
        for value, known in list(self.values.items()):
            if not isinstance(known, _Cell) or not isinstance(value.type, LLVMArrayType):
                continue
            for use in list(value.uses):
                base = use.operation.results[0]
                for moved in [u.operation for u in base.uses]:
                    offset = (integers_of(moved, "rawConstantIndices") or (0,))[0]
                    if moved.name != "llvm.getelementptr" or len(moved.operands) > 1:
                        raise _unknown("a tensor map that is chosen when the kernel runs")
                    maps.append(known.memory.cells[offset])
                    type_ = MemRefType(i8, [_MAP_BYTES])
                    argument = block.insert_arg(type_, len(block.args))
                    pointer = head.cast(argument, moved.results[0].type)
                    moved.results[0].replace_all_uses_with(pointer)
                    moved.detach()
                    moved.erase()
                use.operation.detach()
                use.operation.erase()
        return maps


class _Head:
    """What stands at the start of a region that was launched."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.known: dict[SSAValue, SSAValue] = {}
        self._last: Operation | None = None

    def _add(self, op: Operation) -> SSAValue:
        if self._last is None:
            first = self.block.first_op
            assert first is not None
            self.block.insert_op_before(op, first)
        else:
            self.block.insert_op_after(op, self._last)
        self._last = op
        return op.results[0]

    def _new(self, name: str, operands: Sequence[SSAValue], type_: Attribute, **more: Any) -> Any:
        cls = cast(Any, class_of(name))
        return self._add(create_op(cls, operands, [type_], more))

    def constant(self, number: int) -> SSAValue:
        """An index."""
        index = attribute("index")
        return cast(
            SSAValue, self._new("arith.constant", (), index, value=attribute(f"{number} : index"))
        )

    def identity(self, kind: str, dim: str) -> SSAValue:
        """Where the thread is."""
        dimension = attribute(f"#gpu<dim {dim}>")
        return cast(SSAValue, self._new(f"gpu.{kind}", (), attribute("index"), dimension=dimension))

    def cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """A value as another type."""
        return cast(SSAValue, self._new("builtin.unrealized_conversion_cast", [value], type_))

    def copied(self, value: SSAValue) -> SSAValue:
        """What the host computed, computed in the region."""
        if value not in self.known:
            op = value.owner
            if isinstance(op, Block):
                raise _unknown("an argument of the host's function is read by the kernel")
            operands = [self.copied(v) for v in op.operands]
            new = op.clone(dict(zip(op.operands, operands, strict=True)))
            self._add(new)
            self.known.update(zip(op.results, new.results, strict=True))
        return self.known[value]


def _start_of(type_: Any) -> int:
    """Elements from the start of the array on, where a view begins."""
    layout = type_.layout
    offset = None if isinstance(layout, NoneAttr) else layout.get_offset()
    return int(offset or 0)


def _module(module: ModuleOp, name: str, block: Block, launch: Launch, shared: int) -> ModuleOp:
    from xdsl.dialects.func import FuncOp

    types = FunctionType.from_lists([argument.type for argument in block.args], [])
    function = FuncOp(name, types, Region(block))
    sizes = {
        "grid": launch.block_dims,
        "cluster": launch.cluster,
        "threads": (launch.num_threads * 128,),
        "shared_bytes": (shared,),
    }
    for word, numbers in sizes.items():
        function.attributes[f"mosaic_gpu.{word}"] = ints(numbers)
    found = ModuleOp([function], dict(module.attributes))
    found.properties["sym_name"] = attribute(f'"{name}"')
    return found


_NAMELESS: Any = attribute('"kernel"')


def _unknown(what: str) -> HloError:
    return error("HLO0758", what)
