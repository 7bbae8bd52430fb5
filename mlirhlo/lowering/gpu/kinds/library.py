"""Kinds `library` and `random_bits`: an instruction computed as a whole, by the loops of the CPU.

A parallel loop is a launch with a thread for each round (`grids.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TupleType, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.ops import OP_CLASSES, CustomCallOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.quick import new_block
from mlirhlo.dialects.structured import KernelOp, LibraryOp, RandomBitsOp, ReturnOp
from mlirhlo.interp.custom_calls import meaning_of
from mlirhlo.interp.custom_calls.lapack_signature import named
from mlirhlo.lowering import target
from mlirhlo.lowering.builder import WORKSPACE, memref_of
from mlirhlo.lowering.gpu.grids import kernels_of
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.lowering.gpu.kinds.factors import FACTORS
from mlirhlo.lowering.gpu.launches import Access, Plan, launches
from mlirhlo.lowering.hlo_to_loops import builders
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.loops import to_loops
from mlirhlo.lowering.loops.passes import schedule_loops
from mlirhlo.lowering.schedule.attributes import Schedule


@launches("library")
def library(plan: Plan, ops: Sequence[LibraryOp], schedule: Schedule) -> None:
    """Launches for each op: one for each of its parallel loops, and for what is between them."""
    del schedule
    for op in ops:
        instruction = _instruction(op.opcode.data, op.inputs, op.settings.data, op.outputs)
        factor = FACTORS.get(op.opcode.data)
        if factor is None or not factor(plan, op, instruction):
            _launch(plan, _function(plan.name, instruction), op.inputs, op.outputs)


@launches("random_bits")
def random_bits(plan: Plan, ops: Sequence[RandomBitsOp], schedule: Schedule) -> None:
    """A thread for each block of the counter, and a launch for the next state."""
    del schedule
    for op in ops:
        with target.using(target.GPU_THREADS):
            kernel = _alone(plan.name, op)
            schedule_loops(kernel)
            _launch(plan, to_loops(kernel), op.operands, op.results)


def _alone(name: str, op: RandomBitsOp) -> KernelOp:
    """A kernel of an op alone, without its schedule for GPUs."""
    block = new_block([v.type for v in op.operands])
    (state,) = block.args
    new = RandomBitsOp(state, op.algorithm.data, op.bits.type)
    block.add_ops([new, ReturnOp(new.results)])
    return KernelOp(name, block)


def _instruction(
    opcode: str,
    inputs: Sequence[SSAValue],
    settings: Mapping[str, Attribute],
    outputs: Sequence[SSAValue],
) -> Instruction:
    operands = Block(arg_types=[v.type for v in inputs]).args
    types = [v.type for v in outputs]
    type_ = types[0] if len(types) == 1 else TupleType(cast(Any, types))
    return create(OP_CLASSES[opcode], operands, type_, dict(settings))


def _function(name: str, instruction: Instruction) -> FuncOp:
    """The loops of an instruction. Raises `HloError` HLO0802 where GPUs cannot run them."""
    try:
        with target.using(target.GPU_THREADS):
            function = builders.build_kernel(name, instruction, {})
    except HloError as problem:
        raise _no_code(instruction, problem.diagnostics[0].message) from None
    helpers = helpers_of([function])
    if any(isinstance(op, FuncOp) and not op.body.blocks for op in helpers):
        raise _no_code(instruction, "it is a call of a library on the CPU")
    return function


def _launch(
    plan: Plan, function: FuncOp, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]
) -> None:
    helpers = helpers_of([function])
    known = {_name(op) for op in plan.ops}
    plan.ops += [op for op in helpers if _name(op) not in known]
    numbers = [plan.numbers[v] for v in (*inputs, *outputs)]
    access = Access(frozenset(numbers), frozenset(numbers[len(inputs) :]), frozenset())
    if (size := function.attributes.get(WORKSPACE)) is not None:
        bytes_ = cast("IntegerAttr[Any]", size).value.data
        numbers.append(plan.workspace(memref_of(i8, bytes_)))
    for kernel, blocks, threads in kernels_of(function, len(inputs), len(plan.launches)):
        plan.ops.append(kernel)
        grid, block = (blocks, 1, 1), (threads, 1, 1)
        plan.add(Launch(_name(kernel), grid, block, tuple(numbers)), access)


_WHEELS = {
    **dict.fromkeys(("cublas", "__cublas"), "nvidia-cublas"),
    **dict.fromkeys(("cudnn", "__cudnn"), "nvidia-cudnn-cu13"),
    **dict.fromkeys(("cusolver", "cuhybrid", "lapack", "__cusolver"), "nvidia-cusolver"),
    "cusparse": "nvidia-cusparse",
}
"""Of NVIDIA's libraries, by what targets begin with."""


def _no_code(instruction: Instruction, why: str) -> HloError:
    """Names the library of NVIDIA that has the routine."""
    opcode, name = instruction.opcode.name, f"`{instruction.opcode.name}`"
    wheel = "nvidia-cufft" if opcode == "fft" else ""
    if isinstance(instruction, CustomCallOp):
        target = instruction.custom_call_target
        name = f"custom call {target}"
        has_name = named(target) is not None or target in _MATRIX_TARGETS
        library = next((w for word, w in _WHEELS.items() if target.startswith(word)), "")
        wheel = library or ("nvidia-cusolver" if has_name else "")
    help_ = (
        f"NVIDIA has the routine in the library of its wheel {wheel}, which is not called for it; "
    )
    run = "it runs on the CPU and the interpreter (`--platform=Host`, `--platform=Interpreter`)"
    if isinstance(instruction, CustomCallOp) and meaning_of(instruction.custom_call_target) is None:
        run = (
            "give it a meaning with mlirhlo.interp.custom_calls.register_custom_call, and run the module on the "
            "CPU or the interpreter (`--platform=Host`, `--platform=Interpreter`)"
        )
    return error("HLO0802", f"{name} has no GPU code: {why}", help=help_ * bool(wheel) + run)


_MATRIX_TARGETS = frozenset(
    {
        "Cholesky",
        "Eigh",
        "Geev",
        "Gees",
        "Hessenberg",
        "LuDecomposition",
        "Schur",
        "Svd",
        "Tridiagonal",
    }
)
"""Decompositions that custom calls name without a library."""


def _name(op: Operation) -> str:
    symbol = op.properties.get("sym_name") or op.attributes["sym_name"]
    return cast(StringAttr, symbol).data
