"""Functions of loops as kernels: each parallel loop is a launch of a thread a round.

    c = ...; scf.parallel (i) to 100 { body }; rest
      =>  kernel f:   i = block * 64 + thread;  if (i < 100) { c = ...; body }      2 blocks of 64 threads
          kernel f_1: c = ...; rest                                                 1 thread

What is cheap and the same in every thread (constants, views, loads from operands) is in all launches that use it.
Loops inside of a round, and functions whose launches would share more than memory, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith, func, gpu, memref, scf
from xdsl.dialects.builtin import FunctionType, IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from mlirhlo.dialects.gpu import GLOBAL
from mlirhlo.dialects.interned import UNIT, integers32, string
from mlirhlo.dialects.quick import append, create_op, prepend
from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.builder.types import NO_OVERFLOW
from mlirhlo.lowering.gpu.builder import in_space

_THREADS = 64
"""Of a block: rounds need many registers, and few of them should still use many multiprocessors."""
_WARP = 32


def kernels_of(function: FuncOp, operands: int, number: int) -> list[tuple[gpu.FuncOp, int, int]]:
    """The kernels of a function with their blocks and threads, in order.

    Takes the function apart. Its first arguments are `operands` that it only reads; `number`: of the first launch.
    """
    name = function.sym_name.data
    body = function.body.blocks[0]
    steps = _steps(body, operands)
    found: list[tuple[gpu.FuncOp, int, int]] = []
    for at, step in enumerate(steps):
        copy = function if len(steps) == 1 else function.clone()
        if copy is not function:
            _keep(copy.body.blocks[0], body, step, steps)
        rounds = _rounds(step)
        threads = min(_THREADS, -(-rounds // _WARP) * _WARP) if rounds > 1 else 1
        blocks = -(-rounds // threads)
        if len(step) == 1 and isinstance(step[0], scf.ParallelOp):
            _one_round(copy.body.blocks[0], rounds, threads)
        entry = f"{name}_{number + at}" if number + at else name
        found.append((_kernel(copy, entry, blocks, threads), blocks, threads))
    return found


def _steps(body: Block, operands: int) -> list[list[Operation]]:
    """What each launch does, but for what all of them may do; one step where launches would share values."""
    steps: list[list[Operation]] = []
    common: set[Operation] = set()
    for op in body.ops:
        if isinstance(op, func.ReturnOp) or _is_common(op, body, operands, common):
            common.add(op)
            continue
        if not steps or isinstance(op, scf.ParallelOp) or isinstance(steps[-1][0], scf.ParallelOp):
            steps.append([])
        steps[-1].append(op)
    number = {inner: at for at, step in enumerate(steps) for op in step for inner in op.walk()}
    results = [v for op in common if isinstance(op, memref.AllocaOp) for v in op.results]
    shared = any(len(_users(v, number)) > 1 and _is_written(v, common) for v in results)
    passed = any(
        number[u.operation] != at for op, at in number.items() for v in op.results for u in v.uses
    )
    is_open = any(_rounds(step) == 0 for step in steps)
    return [[op for step in steps for op in step]] if shared or passed or is_open else steps or [[]]


def _is_common(op: Operation, body: Block, operands: int, common: set[Operation]) -> bool:
    """Whether every launch may do it: it has no effect but on the thread's own memory."""
    if op.regions or not all(v.owner in common or v.owner is body for v in op.operands):
        return False
    if isinstance(op, memref.LoadOp):
        root = _root(op.memref)
        return isinstance(root.owner, memref.AllocaOp) or root in body.args[:operands]
    if op.name in ("memref.store", "vector.store"):
        return isinstance(_root(op.operands[1]).owner, memref.AllocaOp)
    return (
        isinstance(op, memref.AllocaOp | memref.GetGlobalOp)
        or op.has_trait(Pure)
        or op.name in _VIEWS
    )


_VIEWS = ("memref.view", "memref.reinterpret_cast", "memref.cast", "memref.subview")


def _root(buffer: SSAValue) -> SSAValue:
    """The buffer that a view is of."""
    while isinstance(buffer.owner, Operation) and buffer.owner.name in _VIEWS:
        buffer = buffer.owner.operands[0]
    return buffer


def _users(value: SSAValue, number: dict[Operation, int]) -> set[int]:
    """Steps that use a buffer, or a view of it."""
    found: set[int] = set()
    for use in value.uses:
        user = use.operation
        if user in number:
            found.add(number[user])
        elif user.name in _VIEWS:
            found |= _users(user.results[0], number)
    return found


def _is_written(value: SSAValue, common: set[Operation]) -> bool:
    """Whether more than what all launches do may write to a buffer."""
    for use in value.uses:
        user = use.operation
        if user.name in _VIEWS:
            if _is_written(user.results[0], common):
                return True
        elif user not in common and user.name not in ("memref.load", "vector.load"):
            return True
    return False


def _rounds(step: Sequence[Operation]) -> int:
    """Rounds of a step that is a parallel loop, 0 if that is not known; 1 of any other."""
    if len(step) != 1 or not isinstance(step[0], scf.ParallelOp):
        return 1
    bounds: list[int] = []
    for value in step[0].operands:
        owner = value.owner
        if not isinstance(owner, arith.ConstantOp):
            return 0
        bounds.append(cast("IntegerAttr[Any]", owner.value).value.data)
    first, end, each = bounds
    return end if (first, each) == (0, 1) else 0


def _keep(
    copy: Block, body: Block, step: Sequence[Operation], steps: Sequence[Sequence[Operation]]
) -> None:
    """Removes what other steps do from a copy of the body."""
    kept = set(step)
    others = {op for other in steps for op in other} - kept
    for op, mine in reversed(list(zip(body.ops, copy.ops, strict=True))):
        if op in others or (
            op not in kept and op.results and not any(r.uses for r in mine.results)
        ):
            copy.erase_op(mine)


def _one_round(body: Block, rounds: int, threads: int) -> None:
    """Puts the round of this thread in the place of the parallel loop."""
    (loop,) = (op for op in body.ops if isinstance(op, scf.ParallelOp))
    ops: list[Operation] = []

    def add(cls: type[Any], operands: Sequence[SSAValue], **properties: Any) -> SSAValue:
        ops.append(create_op(cls, operands, (INDEX,), properties))
        return ops[-1].results[0]

    dim = gpu.DimensionAttr(gpu.DimensionEnum("x"))
    width = add(arith.ConstantOp, (), value=IntegerAttr(threads, INDEX))
    block, thread = (add(cls, (), dimension=dim) for cls in (gpu.BlockIdOp, gpu.ThreadIdOp))
    start = add(arith.MuliOp, (block, width), overflowFlags=NO_OVERFLOW)
    index = add(arith.AddiOp, (start, thread), overflowFlags=NO_OVERFLOW)
    round_ = loop.body.blocks[0]
    round_.args[0].replace_all_uses_with(index)
    round_.erase_arg(round_.args[0])
    last = round_.last_op
    assert last is not None
    round_.erase_op(last)
    if rounds % threads:
        end = add(arith.ConstantOp, (), value=IntegerAttr(rounds, INDEX))
        ops.append(arith.CmpiOp(index, end, "ult"))
        round_.add_op(create_op(scf.YieldOp))
        inside = scf.IfOp(ops[-1].results[0], (), loop.detach_region(0))
        body.insert_ops_before([*ops, inside], loop)
    else:
        body.insert_ops_before(ops, loop)
        for op in tuple(round_.ops):
            op.detach()
            body.insert_op_before(op, loop)
    body.erase_op(loop)


def _kernel(function: FuncOp, name: str, blocks: int, threads: int) -> gpu.FuncOp:
    """A function as a kernel. Its buffers may be anywhere; LLVM finds out where."""
    body = function.body.blocks[0]
    casts: list[memref.MemorySpaceCastOp] = []
    for at, argument in enumerate(tuple(body.args)):
        type_ = cast("MemRefType[Any]", argument.type)
        new = body.insert_arg(in_space(type_, GLOBAL), at)
        casts.append(create_op(memref.MemorySpaceCastOp, (new,), (type_,)))
        argument.replace_all_uses_with(casts[-1].results[0])
        body.erase_arg(argument)
    prepend(body, casts)
    last = body.last_op
    assert last is not None
    body.erase_op(last)
    append(body, create_op(gpu.ReturnOp))
    return create_op(
        gpu.FuncOp,
        properties={
            "function_type": FunctionType.from_lists([a.type for a in body.args], ()),
            "kernel": UNIT,
        },
        regions=[function.detach_region(0)],
        attributes={
            "sym_name": string(name),
            "gpu.known_block_size": integers32(threads, 1, 1),
            "gpu.known_grid_size": integers32(blocks, 1, 1),
        },
    )
